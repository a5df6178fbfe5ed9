#!/usr/bin/env python3
"""docs/memory.svg: the memory of one training step over its time, within three limits, as it is planned for a card.

usage: .venv/bin/python tools/memory_picture.py
"""
import pathlib

import tandem  # noqa: F401 (before keras, whose backend it is)
import keras

from tandem import memory

CARD = "RTX 3060"
LIMITS = ("12GiB", "64MiB", "32MiB")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 330, 64, 16, 40, 44
COLOURS = ("#8a8f98", "#2f7de1", "#d9480f")
MIB = 2**20


def plans():
    convolutions = [keras.layers.Conv2D(16, 3, padding="same", activation="relu") for _ in range(4)]
    dense = [keras.layers.Flatten(), keras.layers.Dense(256, activation="relu"), keras.layers.Dense(10)]
    model = keras.Sequential([keras.layers.Input([28, 28, 1]), *convolutions, *dense])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return [memory.plan(model, 128, gpu_memory=limit, card=CARD, curve_points=0).as_dict()["planned"] for limit in LIMITS]


def steps(plan):
    """Points of a curve that changes where a step of the plan begins."""
    moments = sorted(plan["timeline"], key=lambda m: m["begin"])
    points = [(m["begin"], m["bytes"]) for m in moments]
    return points + [(plan["seconds"], moments[-1]["bytes"])]


def drawn(found):
    longest = max(p["seconds"] for p in found)
    highest = max(p["peak_bytes"] for p in found) * 1.05
    x = lambda seconds: LEFT + seconds / longest * (WIDTH - LEFT - RIGHT)
    y = lambda size: HEIGHT - BOTTOM - size / highest * (HEIGHT - TOP - BOTTOM)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" fill="#222">Memory of one training step of a small convolutional network, batch 128, planned for {CARD}</text>',
    ]
    for size in range(0, int(highest / MIB) + 1, 20):
        at = y(size * MIB)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#e3e5e8"/>')
        out.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" fill="#555">{size} MiB</text>')
    for tick in range(5):
        seconds = longest * tick / 4
        out.append(f'<text x="{x(seconds):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#555">{seconds * 1e3:.1f} ms</text>')
    for plan, limit, colour in zip(found, LIMITS, COLOURS):
        path, height = [], None
        for seconds, size in steps(plan):
            if height is not None:
                path.append(f"L{x(seconds):.1f} {height:.1f}")
            height = y(size)
            path.append(f"{'L' if path else 'M'}{x(seconds):.1f} {height:.1f}")
        shape = " ".join(path)
        base = f"{HEIGHT - BOTTOM}"
        out.append(f'<path d="{shape} L{x(plan["seconds"]):.1f} {base} L{LEFT} {base} Z" fill="{colour}" fill-opacity="0.14"/>')
        out.append(f'<path d="{shape}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        if limit != LIMITS[0]:
            at = y(plan["limit_bytes"])
            out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="{colour}" stroke-dasharray="5 4"/>')
            out.append(f'<text x="{WIDTH - RIGHT - 4}" y="{at - 5:.1f}" text-anchor="end" fill="{colour}">limit {limit[:-3]} MiB</text>')
    words = ("no limit needed", "within 64 MiB", "within 32 MiB")
    for i, (plan, word, colour) in enumerate(zip(found, words, COLOURS)):
        at = WIDTH - RIGHT - 230
        text = f"{word}: peak {plan['peak_bytes'] / MIB:.0f} MiB, {plan['seconds'] * 1e3:.1f} ms"
        out.append(f'<rect x="{at}" y="{TOP + 4 + 18 * i}" width="12" height="12" fill="{colour}"/>')
        out.append(f'<text x="{at + 18}" y="{TOP + 14 + 18 * i}" fill="#222">{text}</text>')
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    file = pathlib.Path(__file__).resolve().parents[1] / "docs" / "memory.svg"
    file.write_text(drawn(plans()))
    print(file)
