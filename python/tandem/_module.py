"""tf.Module: an object that knows the variables and modules in its attributes."""
import re

from tandem import nest
from tandem._face import CoreVariable
from tandem._names import get_current_name_scope, name_scope


def _snake(name):
    return re.sub(r"([a-z\d])([A-Z])", r"\1_\2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)).lower()


class _Meta(type):
    """Name scopes open while a module is made, as TensorFlow does it."""

    def __call__(cls, *args, **kwargs):
        return super().__call__(*args, **kwargs)


class Module(metaclass=_Meta):
    """A base for models: `variables`, `trainable_variables` and `submodules` come from the attributes, sorted by name."""

    _TF_MODULE_IGNORED_PROPERTIES = frozenset(("_name", "_name_scope", "_obj_reference_counts_dict"))

    def __init__(self, name=None):
        name = _snake(type(self).__name__) if name is None else name
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers (e.g. a valid class name)."
            )
        self._name = name
        outer = get_current_name_scope()
        self._scope = f"{outer}/{name}/" if outer else f"{name}/"

    @property
    def name(self):
        return self._name

    @property
    def name_scope(self):
        return name_scope(self._scope)

    @classmethod
    def with_name_scope(cls, method):
        import functools

        @functools.wraps(method)
        def call(self, *args, **kwargs):
            with self.name_scope:
                return method(self, *args, **kwargs)

        return call

    def _walk(self, found, seen, wanted, recursive, with_path=False, path=(), predicate=None):
        for key in sorted(vars(self)):
            if key in self._TF_MODULE_IGNORED_PROPERTIES:
                continue
            for inner, leaf in nest.flatten_with_paths(vars(self)[key]):
                at = (*path, key, *inner)
                is_module = isinstance(leaf, Module) or (
                    hasattr(leaf, "trainable_variables") and hasattr(leaf, "variables") and not isinstance(leaf, type)
                )
                if wanted(leaf) and id(leaf) not in found:
                    found[id(leaf)] = (at, leaf)
                if recursive and is_module and id(leaf) not in seen:
                    seen.add(id(leaf))
                    if isinstance(leaf, Module):
                        leaf._walk(found, seen, wanted, recursive, with_path, at)
                    else:
                        for i, v in enumerate(leaf.variables):
                            v = getattr(v, "value", v) if not isinstance(v, CoreVariable) else v
                            if wanted(v) and id(v) not in found:
                                found[id(v)] = ((*at, i), v)

    def _flatten(self, recursive=True, predicate=None, attribute_traversal_key=None, with_path=False, expand_composites=False):
        found = {}
        self._walk(found, {id(self)}, predicate or (lambda x: True), recursive, with_path)
        return tuple(found.values()) if with_path else tuple(leaf for _, leaf in found.values())

    @property
    def variables(self):
        return self._flatten(predicate=lambda x: isinstance(x, CoreVariable))

    @property
    def trainable_variables(self):
        return self._flatten(predicate=lambda x: isinstance(x, CoreVariable) and getattr(x, "trainable", True))

    @property
    def non_trainable_variables(self):
        return self._flatten(predicate=lambda x: isinstance(x, CoreVariable) and not getattr(x, "trainable", True))

    @property
    def submodules(self):
        return self._flatten(predicate=lambda x: isinstance(x, Module))
