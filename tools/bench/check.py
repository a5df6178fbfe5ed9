"""Whether Tandem and Keras agree: the losses of the first steps, from the same weights and the same data.

usage: check.py --store     store Keras's losses of the tiny models for the test in tests/train, which needs no Keras
"""
import sys

import engines
from progress import Progress

PEERS = ("jax", "torch", "tensorflow")
STEPS = 10
# Relative. Sums in another order change the last bits only, but a relu whose input is almost 0 then goes the other way and Adam's first
# steps make much of it: where the peers themselves differ by more than this, twice their difference counts. The tiny models of the
# test have no such place.
TOLERANCE = 1e-4
# On TensorFlow Keras keeps the gradient of an embedding as rows and squares each of them for Adam: of a word that occurs twice in a
# batch it adds the squares, where the others square the sum. So its curves are others, by a few parts in 10,000.
OTHER_FORMULA = {("tensorflow", "transformer"), ("tensorflow", "lstm")}
STORED = engines.ROOT / "tests" / "data" / "keras_losses.txt"


def difference(a, b):
    return max(abs(x - y) / max(abs(x), abs(y)) for x, y in zip(a, b, strict=True))


def losses(engine, work, options, progress):
    return engines.run(engine, work, ["--losses", STEPS, *options], progress, f"{work}: {STEPS} losses on {engine}")


def first_wrong_step(ours, peers):
    """The first step whose loss is farther from every peer's than the peers have been from each other, or None."""
    for step in range(STEPS):
        until = slice(step + 1)
        among = max(difference(a[until], b[until]) for a in peers for b in peers)
        nearest = min(difference(ours[step : step + 1], theirs[step : step + 1]) for theirs in peers)
        if nearest > max(TOLERANCE, 2 * among):
            return step
    return None


def check(works, progress):
    """Prints a line for each work; gives the number of works that differ."""
    names = engines.available(PEERS, progress)
    if not names:
        print("there is nothing to compare with")
    wrong = 0
    for work in works if names else []:
        ours = losses("tandem", work, [], progress)["losses"]
        peers = {n: losses(n, work, [], progress)["losses"] for n in names if (n, work) not in OTHER_FORMULA}
        step = first_wrong_step(ours, list(peers.values()))
        far = ", ".join(f"{difference(ours, theirs):.0e} to {name}" for name, theirs in peers.items())
        among = max(difference(a, b) for a in peers.values() for b in peers.values())
        print(f"{work:<12} {'equal' if step is None else f'DIFFERENT from step {step} on'}: {STEPS} losses from {ours[0]:.4f} to {ours[-1]:.4f}; "
              f"relative differences: {far}; {among:.0e} among these", flush=True)
        if step is not None:
            wrong += 1
            for name, found in {"tandem": ours, **peers}.items():
                print(f"  {name:<12} {found}", flush=True)
    return wrong


def store(progress):
    rows, versions = [], {}
    for work in engines.WORKS:
        result = losses("jax", work, ["--tiny"], progress)
        far = difference(result["losses"], losses("torch", work, ["--tiny"], progress)["losses"])
        if far > TOLERANCE:
            sys.exit(f"{work}: JAX and PyTorch differ by {far:.1e}")
        versions = result["versions"]
        rows.append(" ".join([work, *(f"{loss:.9g}" for loss in result["losses"])]))
    made_with = ", ".join(f"{name} {version}" for name, version in versions.items())
    STORED.write_text(f"# Losses of the first steps of the tiny models, by tools/bench/check.py --store with {made_with}.\n" + "\n".join(rows) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] != ["--store"]:
        sys.exit(__doc__)
    line = Progress()
    if engines.available(["jax", "torch"], line) == ["jax", "torch"]:
        store(line)
