"""Training gives the same bits with any number of threads, and each time: `same_bits_test.py TRAIN` compares losses of whole models."""
import os
import subprocess
import sys

WORKS = ("mlp", "mlp_big", "cnn", "resnet", "transformer", "lstm")
STEPS = 3


def losses(train, work, threads):
    environment = dict(os.environ, TANDEM_THREADS=str(threads))
    run = subprocess.run([train, work, "--losses", str(STEPS)], env=environment, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{work} with {threads} threads: {run.stderr}")
    return run.stdout


def main():
    train = sys.argv[1]
    differing = []
    for work in WORKS:
        # Nine digits tell any two float32 numbers apart.
        one, two, again, three = (losses(train, work, threads) for threads in (1, 2, 2, 3))
        if not one == two == again == three:
            differing.append(f"{work}:\n  1 thread  {one}  2 threads {two}  again     {again}  3 threads {three}")
    if differing:
        sys.exit("the losses differ\n" + "\n".join(differing))
    print(f"{len(WORKS)} passed, 0 failed")


if __name__ == "__main__":
    main()
