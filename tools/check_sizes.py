#!/usr/bin/env python3
"""Holds files to the sizes that CONTRIBUTING.md states: a file that has grown beyond them is usually two things.

usage: check_sizes.py [--root FOLDER]
Prints one line for each file that is too large; exits with 1 when there is one.
"""
import argparse
import pathlib
import sys

# Which files, what is counted, and the most of it.
LIMITS = [
    ("**/*.hpp", "lines", 300),
    ("**/*.cpp", "lines", 800),
    ("**/*.py", "lines", 800),
    ("docs/adr/[0-9]*.md", "words", 700),
]
FOLDERS = {"include", "src", "devices", "cli", "python", "bench", "examples", "tests", "tools", "docs"}


def too_large(root):
    for pattern, unit, most in LIMITS:
        for file in sorted(root.glob(pattern)):
            place = file.relative_to(root)
            if place.parts[0] not in FOLDERS:
                continue
            text = file.read_text()
            size = len(text.splitlines()) if unit == "lines" else len(text.split())
            if size > most:
                yield f"{place}: {size} {unit}, the most is {most}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    found = list(too_large(parser.parse_args().root))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
