"""`tandem run`: a program that says `import tensorflow as tf`, on Tandem."""
import argparse
import os
import runpy
import sys
import traceback


def _parser():
    parser = argparse.ArgumentParser(
        prog="tandem run",
        usage="tandem run [OPTIONS] (PROGRAM.py | -m MODULE) [ARGUMENTS]",
        description="Runs a TensorFlow or Keras program on Tandem, unchanged: `import tensorflow` gives tandem in this process.",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is the name of a module")
    parser.add_argument("--full-traceback", action="store_true", help="show the library's own lines in tracebacks too")
    parser.add_argument("--emulate-gpu", metavar="SPEC", help="cores pose as GPUs, such as 2x512MiB@12GB/s; as TANDEM_EMULATE_GPU does")
    parser.add_argument("program", metavar="PROGRAM", help="the program's file, or a module with -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="given on to the program")
    return parser


def _is_library(file):
    from tandem import _core

    return _core.is_library(file) or file.endswith("/runpy.py")


def _show(kind, error, trace):
    """The traceback with the user's own lines; the library's are few and said to be left out."""
    frames = traceback.extract_tb(trace)
    shown = [f for f in frames if not _is_library(f.filename)]
    if not shown:
        return traceback.print_exception(kind, error, trace)
    print("Traceback (most recent call last):", file=sys.stderr)
    print("".join(traceback.format_list(shown)), end="", file=sys.stderr)
    if len(shown) < len(frames) and _is_library(frames[-1].filename):
        print(
            f"  ... {len(frames) - len(shown)} lines inside the library (tandem run --full-traceback shows them)", file=sys.stderr
        )
    print("".join(traceback.format_exception_only(kind, error)), end="", file=sys.stderr)


def main(arguments):
    options = _parser().parse_args(arguments)
    os.environ["KERAS_BACKEND"] = "tandem"
    if options.emulate_gpu is not None:
        os.environ["TANDEM_EMULATE_GPU"] = options.emulate_gpu
    from tandem import _alias

    _alias.install()
    import keras_tandem  # noqa: F401 (a program may import keras before tensorflow)

    sys.argv = [options.program, *options.arguments]
    try:
        if options.module:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        elif not os.path.exists(options.program):
            sys.exit(f"tandem run: there is no file {options.program}")
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(options.program)))
            runpy.run_path(options.program, run_name="__main__")
    except Exception:
        if options.full_traceback:
            raise
        _show(*sys.exc_info())
        sys.exit(1)
