"""tf.autograph."""
import enum

from tandem._function.autograph import do_not_convert, to_code, to_graph  # noqa: F401


class Feature(enum.Enum):
    ALL, AUTO_CONTROL_DEPS, ASSERT_STATEMENTS, BUILTIN_FUNCTIONS, EQUALITY_OPERATORS, LISTS, NAME_SCOPES = (
        "ALL", "AUTO_CONTROL_DEPS", "ASSERT_STATEMENTS", "BUILTIN_FUNCTIONS", "EQUALITY_OPERATORS", "LISTS", "NAME_SCOPES",
    )  # fmt: skip


def set_verbosity(level, alsologtostdout=False):
    from malt.utils import ag_logging

    ag_logging.set_verbosity(level, alsologtostdout)


def trace(*args):
    print(*args)


class experimental:
    Feature = Feature
    do_not_convert = staticmethod(do_not_convert)

    @staticmethod
    def set_loop_options(parallel_iterations=None, swap_memory=None, maximum_iterations=None, shape_invariants=None):
        """Loops take no options: their order and memory are planned."""
