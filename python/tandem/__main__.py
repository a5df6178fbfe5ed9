"""The command `tandem`: `run` is Python's part, everything else is the engine's own program."""
import os
import sys
from pathlib import Path

HELP = """usage: tandem COMMAND [OPTIONS]

  run PROGRAM.py [ARGUMENTS]   run a TensorFlow or Keras program on Tandem, unchanged
  run -m MODULE [ARGUMENTS]    the same for a module; tandem run --help lists limits, emulated GPUs, profiles and plans
"""


def _engine(arguments):
    """The C++ program, which lies in the package or, in a build folder, above it."""
    here = Path(__file__).parent
    for program in (here / "bin" / "tandem", here.parent.parent / "tandem"):
        if program.is_file():
            os.execv(program, [str(program), *arguments])
    sys.exit("tandem: the engine's own program is not installed beside this package")


def main():
    arguments = sys.argv[1:]
    if arguments and arguments[0] == "run":
        from tandem import _run

        _run.main(arguments[1:])
    elif not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP)
        _engine(["--help"])
    else:
        _engine(arguments)


if __name__ == "__main__":
    main()
