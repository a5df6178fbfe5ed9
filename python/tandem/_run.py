"""`tandem run`: a program that says `import tensorflow as tf`, on Tandem."""
import argparse
import os
import runpy
import sys
import traceback


_EXAMPLES = """examples:
  tandem run train.py --epochs 3                               the program and its own arguments
  tandem run --emulate-gpu 1x512MiB@12GB/s train.py            cores of the CPU pose as a GPU
  tandem run --gpu-memory 2GiB train.py                        stays within so much of each GPU's memory
  tandem run --plan-only --card "RTX 3060" train.py            whether its training would fit, and how fast it would be
  tandem run --plan-only --gpu-memory 4GiB --html plan.html train.py
  tandem run --profile step.html train.py                      where the time goes
"""

# Options that are variables of the environment (docs/env.md) for this one program.
_VARIABLES = {"emulate_gpu": "TANDEM_EMULATE_GPU", "gpu_memory": "TANDEM_GPU_MEMORY", "host_memory": "TANDEM_HOST_MEMORY", "placement": "TANDEM_PLACEMENT"}


def _parser():
    parser = argparse.ArgumentParser(
        prog="tandem run",
        usage="tandem run [OPTIONS] (PROGRAM.py | -m MODULE) [ARGUMENTS]",
        description="Runs a TensorFlow or Keras program on Tandem, unchanged: `import tensorflow` gives tandem in this process.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is the name of a module")
    parser.add_argument("--full-traceback", action="store_true", help="show the library's own lines in tracebacks too")
    parser.add_argument("--emulate-gpu", metavar="NxSIZE[@RATE]", help="so many GPUs that are not there, each with so much memory, behind a link of that rate")
    parser.add_argument("--gpu-memory", metavar="SIZE", help="the most memory of each GPU that may be used, such as 512MiB or 4GiB")
    parser.add_argument("--host-memory", metavar="SIZE", help="the most of the host's memory for pipelines, staging and what waits there for a GPU")
    parser.add_argument("--placement", metavar="HOW", help="how layers are spread over devices; docs/env.md: TANDEM_PLACEMENT")
    parser.add_argument("--profile", metavar="FILE", help="records the run: FILE.html is a page, FILE.json a trace")
    plan = parser.add_argument_group("planning", "Runs the program until its first training step would begin, plans that step, prints it and ends.")
    plan.add_argument("--plan-only", action="store_true", help="plan instead of training: for --card, --device, or so much --gpu-memory")
    plan.add_argument("--card", metavar="NAME", help="a card of the catalogue (tandem plan --cards), which need not be there")
    plan.add_argument("--device", metavar="NAME", help="a device of this machine, such as gpu:0")
    plan.add_argument("--json", action="store_true", help="the plan as JSON")
    plan.add_argument("--html", metavar="FILE", help="the plan as a page too")
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


def _set_variables(options):
    for option, variable in _VARIABLES.items():
        value = getattr(options, option)
        # When a step is only planned, the limit is that of the card, and the program's own tensors stay where they are.
        if value is not None and not (options.plan_only and option == "gpu_memory"):
            os.environ[variable] = value


def _ask_for_plan(options):
    from tandem import memory

    memory._plan_only = {
        "limit_bytes": memory.parse_size(options.gpu_memory) if options.gpu_memory else 0,
        "card": options.card or "",
        "device": options.device or "",
        "html": options.html,
        "json": options.json,
    }


def _checked(arguments):
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.plan_only:
        if options.card and options.device:
            parser.error("--card and --device cannot both be given")
        if not (options.card or options.device or options.gpu_memory):
            parser.error('--plan-only needs --card "RTX 3060", --device gpu:0, or --gpu-memory 4GiB')
        if options.gpu_memory:
            from tandem.memory import parse_size

            try:
                parse_size(options.gpu_memory)
            except ValueError as e:
                parser.error(f"--gpu-memory: {e}")
    else:
        for name in ("card", "device", "json", "html"):
            if getattr(options, name):
                parser.error(f"--{name} is an option of --plan-only")
    return options


def main(arguments):
    options = _checked(arguments)
    _set_variables(options)
    os.environ["KERAS_BACKEND"] = "tandem"
    from tandem import _alias

    _alias.install()
    import keras_tandem  # noqa: F401 (a program may import keras before tensorflow)

    if options.plan_only:
        _ask_for_plan(options)
    if options.profile:
        from tandem import _profile

        _profile.start(options.profile)
    try:
        _run(options)
        if options.plan_only:
            sys.exit("tandem run: the program ended without a training step to plan: no model.fit and no train_on_batch was called")
    finally:
        if options.profile:
            _profile.stop()


def _run(options):
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
