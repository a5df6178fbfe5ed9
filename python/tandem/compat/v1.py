"""tf.compat.v1: switches and names whose meaning did not change. Sessions and graphs of TensorFlow 1 are not there."""
import tandem as _tf
from tandem._shape import Dimension  # noqa: F401


def enable_eager_execution(config=None, device_policy=None, execution_mode=None):
    """It is always on."""


def enable_v2_behavior():
    """It is always on."""


def enable_resource_variables():
    """They are the only ones."""


enable_v2_tensorshape = enable_tensor_equality = enable_control_flow_v2 = enable_v2_behavior


def disable_eager_execution():
    raise NotImplementedError("tf.compat.v1.disable_eager_execution: graphs of TensorFlow 1 are not there; use tf.function")


disable_v2_behavior = disable_eager_execution


def executing_eagerly_outside_functions():
    return True


def set_random_seed(seed):
    _tf.random.set_seed(seed)


def global_variables_initializer():
    return None


def dimension_value(dimension):
    return getattr(dimension, "value", dimension)


class logging:
    """Levels as in TensorFlow 1."""

    DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50

    @staticmethod
    def set_verbosity(v):
        import logging as python_logging

        python_logging.getLogger("tensorflow").setLevel(v)

    @staticmethod
    def info(msg, *args):
        import logging as python_logging

        python_logging.getLogger("tensorflow").info(msg, *args)

    warn = warning = info


_absent = {
    "Session",
    "InteractiveSession",
    "placeholder",
    "get_variable",
    "variable_scope",
    "Graph",
    "get_default_graph",
    "train",
    "layers",
    "estimator",
}


def __getattr__(name):
    if name not in _absent and hasattr(_tf, name):
        return getattr(_tf, name)
    raise AttributeError(f"tf.compat.v1 has no '{name}': see docs/coverage.md")
