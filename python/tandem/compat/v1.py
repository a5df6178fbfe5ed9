"""tf.compat.v1: switches and names whose meaning did not change. Sessions and graphs of TensorFlow 1 are not there."""
import tandem as _tf
from tandem._shape import Dimension  # noqa: F401


def enable_eager_execution(config=None, device_policy=None, execution_mode=None):
    """It is always on."""


def enable_v2_behavior():
    """It is always on."""


def enable_resource_variables():
    """They are the only ones."""


enable_v2_tensorshape = enable_control_flow_v2 = enable_v2_behavior
_equality = {}  # class -> its __eq__, __ne__ and __hash__, while tensors are compared as objects


def disable_tensor_equality():
    """== is of objects from now on, as in TensorFlow 1, and tensors can be keys."""
    if _equality:
        return
    from tandem._face import CoreVariable, Tensor
    from tandem._variable import Variable

    for kind in (Tensor, CoreVariable, Variable):
        _equality[kind] = {name: kind.__dict__.get(name) for name in ("__eq__", "__ne__", "__hash__")}
        kind.__eq__, kind.__ne__, kind.__hash__ = (lambda a, b: a is b), (lambda a, b: a is not b), object.__hash__


def enable_tensor_equality():
    for kind, members in _equality.items():
        for name, member in members.items():
            setattr(kind, name, member) if member is not None else delattr(kind, name)
    _equality.clear()


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
    if name == "SummaryMetadata":  # Keras's TensorBoard callback takes it from here
        from tensorboard.compat.proto.summary_pb2 import SummaryMetadata

        return SummaryMetadata
    if name not in _absent and hasattr(_tf, name):
        return getattr(_tf, name)
    raise AttributeError(f"tf.compat.v1 has no '{name}': see docs/coverage.md")


class variable_scope:
    """A prefix of names, for code that makes its variables itself. Variables by name (get_variable) are TensorFlow 1's and not there."""

    def __init__(self, name_or_scope, default_name=None, values=None, **rules):
        unknown = {k: v for k, v in rules.items() if v is not None and k not in ("reuse", "auxiliary_name_scope")}
        if unknown or rules.get("reuse"):
            raise NotImplementedError("tf.compat.v1.variable_scope: only a name; variables are shared by keeping the object that has them")
        self.name = getattr(name_or_scope, "name", name_or_scope) or default_name
        self._scope = _tf.name_scope(self.name)

    def __enter__(self):
        self._scope.__enter__()
        return self

    def __exit__(self, *exception):
        return self._scope.__exit__(*exception)
