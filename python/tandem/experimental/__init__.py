"""tf.experimental: what of it exists."""

import contextlib
import importlib


def async_scope():
    return contextlib.nullcontext()


def async_clear_error():
    """Errors are raised where they happen."""


def enable_strict_mode():
    """Types are strict anyway."""


def function_executor_type(executor_type):
    return contextlib.nullcontext()


def register_filesystem_plugin(plugin_location):
    raise NotImplementedError("tf.experimental.register_filesystem_plugin")


class dlpack:
    """Memory shared with other libraries."""

    @staticmethod
    def to_dlpack(tf_tensor):
        return tf_tensor.__dlpack__()

    @staticmethod
    def from_dlpack(dlcapsule):
        from tandem import _core

        return _core.from_dlpack(dlcapsule.__dlpack__() if hasattr(dlcapsule, "__dlpack__") else dlcapsule)


class Optional:
    """A value or none."""

    def __init__(self, value=None, there=False):
        self._value, self._there = value, there

    @staticmethod
    def empty(element_spec):
        return Optional()

    @staticmethod
    def from_value(value):
        from tandem import nest
        from tandem._face import any_tensor

        return Optional(nest.map_structure(any_tensor, value), True)

    def has_value(self, name=None):
        from tandem._face import convert

        return convert(self._there)

    def get_value(self, name=None):
        if not self._there:
            from tandem import errors

            raise errors.InvalidArgumentError(None, None, "The given optional does not have a value.")
        return self._value

    @property
    def element_spec(self):
        from tandem import nest
        from tandem._specs import type_spec_from_value

        return nest.map_structure(type_spec_from_value, self._value)


_homes = {
    "_extension_type": "ExtensionType BatchableExtensionType ExtensionTypeSpec",
    "_dispatch": """dispatch_for_api dispatch_for_unary_elementwise_apis dispatch_for_binary_elementwise_apis dispatch_for_binary_elementwise_assert_apis
        unregister_dispatch_for""",
    "_row_partition": "RowPartition DynamicRaggedShape",
}  # fmt: skip
_where = {name: home for home, names in _homes.items() for name in names.split()}


def __getattr__(name):
    if name == "numpy":
        found = importlib.import_module("tandem.experimental.numpy")
    elif name in _where:
        found = getattr(importlib.import_module(f"tandem.{_where[name]}"), name)
    else:
        raise AttributeError(f"module 'tandem.experimental' has no '{name}': docs/coverage.md lists what there is of TensorFlow")
    globals()[name] = found
    return found


def __dir__():
    return sorted({n for n in globals() if not n.startswith("_")} | set(_where) | {"numpy"})
