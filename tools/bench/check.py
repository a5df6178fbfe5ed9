"""Whether Tandem and Keras agree: the losses of the first steps, from the same weights and the same data.

usage: check.py --store     store Keras's losses of the tiny models for the test in tests/train, which needs no Keras
"""
import sys

import engines
from progress import Progress

PEERS = ("jax", "torch", "tensorflow")
STEPS = 10
TOLERANCE = 1e-4  # relative; float32 sums in another order differ by less, a wrong formula by more
# On TensorFlow Keras keeps the gradient of an embedding as rows and squares each of them for Adam: of a word that occurs twice in a
# batch it adds the squares, where the others square the sum. So its curves are others, by a few parts in 10,000.
OTHER_FORMULA = {("tensorflow", "transformer"), ("tensorflow", "lstm")}
STORED = engines.ROOT / "tests" / "data" / "keras_losses.txt"


def difference(a, b):
    return max(abs(x - y) / max(abs(x), abs(y)) for x, y in zip(a, b, strict=True))


def losses(engine, work, options, progress):
    return engines.run(engine, work, ["--losses", STEPS, *options], progress, f"{work}: {STEPS} losses on {engine}")


def check(works, progress):
    """Prints a line for each comparison; gives the number of those that differ."""
    peers = engines.available(PEERS, progress)
    wrong = 0
    for work in works:
        ours = losses("tandem", work, [], progress)["losses"]
        for peer in peers:
            if (peer, work) in OTHER_FORMULA:
                continue
            theirs = losses(peer, work, [], progress)["losses"]
            far = difference(ours, theirs)
            wrong += far > TOLERANCE
            print(f"{work:<12} {peer:<12} {'equal' if far <= TOLERANCE else 'DIFFERENT'}: {STEPS} losses from {ours[0]:.6f} to {ours[-1]:.6f}, "
                  f"largest relative difference {far:.1e}", flush=True)
            if far > TOLERANCE:
                print(f"  tandem {ours}\n  {peer} {theirs}", flush=True)
    if not peers:
        print("nothing to compare with")
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
