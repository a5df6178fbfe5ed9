"""tf.experimental.ExtensionType: classes of the user's with tensors as fields, which pass through functions, datasets and control flow."""

import collections.abc
import inspect
import sys
import types
import typing

from tandem import nest
from tandem._convert import Composite
from tandem._dtypes import DType, as_dtype
from tandem._face import CoreVariable, any_tensor
from tandem._shape import TensorShape
from tandem._specs import TensorSpec, TypeSpec, type_spec_from_value
from tandem._tensor_class import Tensor

_PLAIN = (bool, int, float, str, bytes, DType, TensorShape)


class ImmutableDict(collections.abc.Mapping):
    """A mapping that does not change; fields of the kind Mapping are made into it."""

    def __init__(self, *args, **kwargs):
        self._dict = dict(*args, **kwargs)

    def __getitem__(self, key):
        return self._dict[key]

    def __contains__(self, key):
        return key in self._dict

    def __iter__(self):
        return iter(self._dict)

    def __len__(self):
        return len(self._dict)

    def __hash__(self):
        return hash(tuple(sorted(self._dict.items(), key=repr)))

    def __repr__(self):
        return f"ImmutableDict({self._dict!r})"


# --- fields: what an annotation takes ------------------------------------------------------------------------------------------


def _origin(kind):
    return typing.get_origin(kind)


def _is_extension(kind):
    return isinstance(kind, type) and issubclass(kind, ExtensionType)


def _is_tensor_kind(kind):
    return kind is Tensor or isinstance(kind, TensorSpec)


def _is_union(kind):
    return _origin(kind) in (typing.Union, types.UnionType)


def _check_kind(kind, where):
    """An annotation that no field may have is an error when the class is made."""
    if isinstance(kind, (str, typing.ForwardRef)) or kind in (None, type(None), Tensor, typing.Any, ...) or kind in _PLAIN:
        return
    if (
        isinstance(kind, (TypeSpec, type))
        and not (isinstance(kind, type) and issubclass(kind, (list, dict, set)))
        and _origin(kind) is None
    ):
        if isinstance(kind, TypeSpec) or issubclass(kind, (Composite, CoreVariable, TypeSpec)) or kind is tuple:
            return
        raise TypeError(f"In field {where}: Unsupported type annotation {kind!r}")
    origin, inner = _origin(kind), typing.get_args(kind)
    if origin is tuple or _is_union(kind):
        for k in inner:
            _check_kind(k, where)
    elif origin is collections.abc.Mapping:
        if inner[0] not in (bool, int, float, str, bytes, DType, TensorShape):
            raise TypeError(f"In field {where}: Mapping had a key {inner[0]!r}: keys are plain values such as str")
        _check_kind(inner[1], where)
    elif origin is not typing.Literal:
        raise TypeError(
            f"In field {where}: Unsupported type annotation {kind!r}\n  hint: tf.Tensor, str, int, float, bool, Tuple[X, ...], "
            "Mapping[str, X], Union, Optional, and extension types are taken"
        )


def _name_of(kind):
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


def _convert(value, kind, path, as_spec):
    """The value of a field, converted to what its annotation says; TypeError if it is something else."""

    def wrong(expected):
        found = type(value).__name__
        raise TypeError(f"{'.'.join(path)}: expected {expected}, got {found!r}")

    if _is_tensor_kind(kind) or isinstance(kind, TypeSpec):
        return _tensor_field(value, kind, path, as_spec, wrong)
    if kind in (None, type(None)):
        return None if value is None else wrong("None")
    if kind is TensorShape:
        if isinstance(value, TensorShape):
            return value
        try:
            return TensorShape(value)
        except (TypeError, ValueError):
            wrong("a tf.TensorShape")
    if kind is DType:
        try:
            return as_dtype(value)
        except TypeError:
            wrong("a tf.DType")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind in _PLAIN:
        return value if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)) else wrong(_name_of(kind))
    if isinstance(kind, type):
        if as_spec and issubclass(kind, Composite):
            wanted = kind.Spec if _is_extension(kind) else TypeSpec
            return value if isinstance(value, wanted) else wrong(f"a spec of {kind.__name__}")
        return value if isinstance(value, kind) else wrong(f"{kind.__name__}")
    origin, inner = _origin(kind), typing.get_args(kind)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            wrong("a tuple")
        if len(inner) == 2 and inner[1] is ...:
            return tuple(_convert(v, inner[0], (*path[:-1], f"{path[-1]}[{i}]"), as_spec) for i, v in enumerate(value))
        if len(inner) != len(value):
            wrong(f"a tuple with length {len(inner)}")
        return tuple(_convert(v, k, (*path[:-1], f"{path[-1]}[{i}]"), as_spec) for i, (v, k) in enumerate(zip(value, inner)))
    if origin is collections.abc.Mapping:
        if not isinstance(value, collections.abc.Mapping):
            wrong("a mapping")
        return ImmutableDict(
            {
                _convert(k, inner[0], (*path[:-1], f"{path[-1]}.keys()"), False): _convert(
                    v, inner[1], (*path[:-1], f"{path[-1]}[{k!r}]"), as_spec
                )
                for k, v in value.items()
            }
        )
    if origin is typing.Literal:
        return value if value in inner else wrong(f"one of {list(inner)}")
    if _is_union(kind):
        # Whatever is of one of the kinds already comes before what has to be made into one.
        for k in sorted(inner, key=lambda k: _is_tensor_kind(k) and not isinstance(value, (Tensor, CoreVariable))):
            try:
                return _convert(value, k, path, as_spec)
            except (TypeError, ValueError):
                continue
        wrong(f"one of {[_name_of(k) for k in inner]}")
    return value  # typing.Any


def _tensor_field(value, kind, path, as_spec, wrong):
    spec = kind if isinstance(kind, TypeSpec) else None
    if as_spec:
        return value if isinstance(value, TypeSpec) else wrong("a tf.TypeSpec")
    if (
        value is None
        or isinstance(value, TypeSpec)
        or isinstance(value, Composite)
        and not isinstance(value, Tensor)
        and spec is None
    ):
        wrong("a Tensor")
    try:
        # A variable stays one: its value is read when the field is used.
        made = value if isinstance(value, (CoreVariable, Composite)) else any_tensor(value, getattr(spec, "dtype", None))
    except (TypeError, ValueError):
        wrong("a Tensor")
    if spec is not None and not spec.is_compatible_with(made):
        raise TypeError(f"{'.'.join(path)}: expected {spec}, got {type_spec_from_value(made)}")
    return made


# --- both the values and their specs have fields ---------------------------------------------------------------------------------


def _fields(cls):
    """{name: annotation} of a class and its bases, with names of classes in quotes looked up when they are first needed."""
    found = cls.__dict__.get("_resolved_fields")
    if found is None:
        found = {}
        for base in reversed(cls.__mro__):
            if not _is_extension(base) or base in _BASES:
                continue
            space = {**vars(sys.modules.get(base.__module__, typing)), base.__name__: base, cls.__name__: cls}
            for name, kind in inspect.get_annotations(base).items():
                found[name] = (
                    typing.get_type_hints(types.SimpleNamespace(__annotations__={name: kind}), space)[name]
                    if _has_names(kind)
                    else kind
                )
        cls._resolved_fields = found
    return found


def _has_names(kind):
    return isinstance(kind, (str, typing.ForwardRef)) or any(_has_names(k) for k in typing.get_args(kind))


def _bind(what, names, defaults, args, kwargs):
    """{name: value} of a call with one parameter for each field."""
    if len(args) > len(names):
        raise TypeError(f"{what} takes {len(names)} fields, {len(args)} were given")
    values = dict(zip(names, args))
    for name, value in kwargs.items():
        if name not in names:
            raise TypeError(f"{what} got an unexpected keyword argument {name!r}; its fields are {list(names)}")
        if name in values:
            raise TypeError(f"{what} got multiple values for argument {name!r}")
        values[name] = value
    missing = [n for n in names if n not in values and n not in defaults]
    if missing:
        raise TypeError(
            f"{what} missing {len(missing)} required argument{'s' * (len(missing) > 1)}: {', '.join(map(repr, missing))}"
        )
    return {n: values[n] if n in values else defaults[n] for n in names}


class _Frozen:
    """Attributes are set while the object is made, and not after."""

    def __setattr__(self, name, value):
        if self.__dict__.get("_is_whole"):
            raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of {self._kind_name}.")
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        if self.__dict__.get("_is_whole"):
            raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of {self._kind_name}.")
        object.__delattr__(self, name)

    def _take_fields(self, fields, as_spec):
        """Converts what the constructor has set."""
        given = {k: v for k, v in self.__dict__.items() if not k.startswith("_")}
        missing, more = [n for n in fields if n not in given], [n for n in given if n not in fields]
        if missing or more:
            raise ValueError(
                f"{type(self).__name__}'s constructor must set the fields {list(fields)} and no others: "
                + (f"{missing} are missing" if missing else f"{more} are none of them")
            )
        for name, kind in fields.items():
            object.__setattr__(self, name, _convert(given[name], kind, (name,), as_spec))
        object.__setattr__(self, "_is_whole", True)

    def _values(self, fields):
        return {name: self.__dict__[name] for name in fields}


def _without(value, leaf):
    """The value of a field with `leaf` applied to each tensor and composite in it (or to the spec of one)."""
    if (
        isinstance(value, (Tensor, CoreVariable, Composite, TypeSpec)) or type(value) is object
    ):  # a bare object keeps a tensor's place
        return leaf(value)
    if isinstance(value, tuple) and not isinstance(value, TensorShape):
        return tuple(_without(v, leaf) for v in value)
    if isinstance(value, ImmutableDict):
        return ImmutableDict({k: _without(value[k], leaf) for k in sorted(value)})
    return value


def _flat_parts(values):
    """Tensors in the fields, those in composites among them, in a fixed order."""
    found = []

    def leaf(x):
        found.extend(nest.flatten(x, expand_composites=True) if isinstance(x, Composite) else [x])
        return x

    for value in values:
        _without(value, leaf)
    return found


def _packed_parts(values, parts):
    """{name: value} like `values` with other tensors in the places of theirs."""
    source = iter(parts)

    def leaf(x):
        if isinstance(x, Composite) and hasattr(x, "_components"):
            return x._from_components([next(source) for _ in x._components()])
        return next(source)

    return {name: _without(value, leaf) for name, value in values.items()}


class ExtensionTypeSpec(_Frozen, TypeSpec):
    """The type of an extension type: the specs of its tensors, and its other fields as they are."""

    _kind_name, _value_class = "ExtensionTypeSpec", None

    def __init__(self, *args, **kwargs):
        fields = _fields(self._value_class)
        for name, value in _bind(type(self).__name__, list(fields), {}, args, kwargs).items():
            object.__setattr__(self, name, value)

    @property
    def value_type(self):
        return self._value_class

    @classmethod
    def _of(cls, values):
        made = cls.__new__(cls)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        object.__setattr__(made, "_is_whole", True)
        return made

    def _own_values(self):
        return self._values(_fields(self._value_class))

    def _key(self):
        return tuple(self._own_values().items())

    def __eq__(self, other):
        return type(other) is type(self) and self._own_values() == other._own_values()

    __hash__ = TypeSpec.__hash__

    def __reduce__(self):
        return _spec_of, (self._value_class, self._own_values())

    def __repr__(self):
        return f"{self._value_class.__qualname__}.Spec({', '.join(f'{k}={v!r}' for k, v in self._own_values().items())})"

    def is_compatible_with(self, spec_or_value):
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else type_spec_from_value(spec_or_value)
        if type(other) is not type(self):
            return False

        def fits(a, b):
            if isinstance(a, TypeSpec):
                return isinstance(b, TypeSpec) and a.is_compatible_with(b)
            if isinstance(a, TensorShape):
                return isinstance(b, TensorShape) and a.is_compatible_with(b)
            if isinstance(a, tuple):
                return isinstance(b, tuple) and len(a) == len(b) and all(fits(x, y) for x, y in zip(a, b))
            if isinstance(a, ImmutableDict):
                return isinstance(b, ImmutableDict) and set(a) == set(b) and all(fits(a[k], b[k]) for k in a)
            return a == b

        theirs = other._own_values()
        return all(fits(value, theirs[name]) for name, value in self._own_values().items())

    def most_specific_common_supertype(self, others):
        def common(values):
            first = values[0]
            if isinstance(first, TypeSpec):
                return first.most_specific_common_supertype(values[1:]) if all(type(v) is type(first) for v in values) else None
            if isinstance(first, TensorShape):
                for v in values[1:]:
                    first = first.most_specific_compatible_shape(v)
                return first
            if isinstance(first, tuple) and all(isinstance(v, tuple) and len(v) == len(first) for v in values):
                made = tuple(common(list(column)) for column in zip(*values))
                return None if any(m is None for m in made) else made
            if isinstance(first, ImmutableDict) and all(isinstance(v, ImmutableDict) and set(v) == set(first) for v in values):
                made = {k: common([v[k] for v in values]) for k in first}
                return None if any(m is None for m in made.values()) else ImmutableDict(made)
            return first if all(v == first for v in values) else None

        if any(type(o) is not type(self) for o in others):
            return None
        columns = [o._own_values() for o in (self, *others)]
        made = {name: common([c[name] for c in columns]) for name in columns[0]}
        return None if any(m is None and columns[0][n] is not None for n, m in made.items()) else self._of(made)

    # --- as a template: what a value of this type is made of

    def _component_specs(self):
        found = []

        def leaf(spec):
            found.extend(spec._component_specs() if hasattr(spec, "_component_specs") else [spec])
            return spec

        for value in self._own_values().values():
            _without(value, leaf)
        return found

    def _from_components(self, parts):
        source = iter(parts)

        def leaf(spec):
            if hasattr(spec, "_component_specs"):
                return spec._from_components([next(source) for _ in spec._component_specs()])
            return next(source)

        parts = list(parts)
        values = {name: _without(value, leaf) for name, value in self._own_values().items()}
        return self._value_class._made(values, [s.shape.rank for s in self._component_specs()], parts)

    def _with_component_specs(self, specs):
        """The same kind of spec around others for its tensors."""
        source = iter(specs)

        def leaf(spec):
            if hasattr(spec, "_component_specs"):
                return spec._with_component_specs([next(source) for _ in spec._component_specs()])
            return next(source)

        specs = list(specs)
        values = {name: _without(value, leaf) for name, value in self._own_values().items()}
        return self._of(
            self._value_class._rebatched(values, [s.shape.rank for s in self._component_specs()], [s.shape for s in specs])
        )


def _spec_of(cls, values):
    return cls.Spec._of(values)


_classes = {}  # name in files -> class


class _Meta(type):
    def __new__(mcs, name, bases, space):
        given_spec = space.pop("Spec", None)
        if "__name__" in space:
            space["_saved_name"] = space.pop("__name__")
        cls = super().__new__(mcs, name, bases, space)
        if not bases or name in ("ExtensionType", "BatchableExtensionType") and space.get("__module__") == __name__:
            return cls
        for field, kind in inspect.get_annotations(cls).items():
            if field in _RESERVED or field.startswith("_"):
                raise ValueError(f"The field annotations for {name} are invalid. Field {field!r} is reserved.")
            _check_kind(kind, f"{field!r}")
        parts = {
            "_value_class": cls,
            "__module__": cls.__module__,
            "__qualname__": f"{cls.__qualname__}.Spec",
            "_kind_name": f"{name}.Spec",
        }
        inherited = (given_spec,) if given_spec is not None else ()
        _classes[saved_name(cls)] = cls
        cls.Spec = _SpecMeta("Spec", (*inherited, ExtensionTypeSpec), parts)
        return cls

    def __call__(cls, *args, **kwargs):
        if cls in _BASES:
            raise AssertionError(f"Cannot create an instance of {cls.__name__} because it is an abstract base class.")
        made = super().__call__(*args, **kwargs)
        made._take_fields(_fields(cls), False)
        made.__validate__()
        return made


class _SpecMeta(type):
    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        made._take_fields(_fields(cls._value_class), True)
        return made


_RESERVED = frozenset(("self",))


class ExtensionType(_Frozen, Composite, metaclass=_Meta):
    """A base for classes whose annotated fields hold tensors and plain values. Instances do not change."""

    _kind_name = "ExtensionType"
    _slices_alike = True  # a row of a batch is made of the rows of its tensors

    def __init__(self, *args, **kwargs):
        cls = type(self)
        fields = _fields(cls)
        defaults = {n: getattr(cls, n) for n in fields if hasattr(cls, n)}
        for name, value in _bind(f"{cls.__name__}()", list(fields), defaults, args, kwargs).items():
            object.__setattr__(self, name, value)

    def __validate__(self):
        """What a class checks of its own fields; called when one is made."""

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._own_values().items())})"

    def __eq__(self, other):
        if type(other) is not type(self) or self._type_spec != other._type_spec:
            return False
        from tandem import math

        same = [math.reduce_all(math.equal(a, b)) for a, b in zip(self._components(), other._components())]
        return math.reduce_all(same) if same else True

    def __ne__(self, other):
        from tandem import math

        same = self == other
        return not same if isinstance(same, bool) else math.logical_not(same)

    __hash__ = None

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _value_of, (type(self), self._own_values())

    def _own_values(self):
        return self._values(_fields(type(self)))

    # --- as a composite

    @classmethod
    def _made(cls, values, ranks=(), parts=()):
        """An object of values that need no conversion. `ranks` and `parts` say how far the tensors are in a batch."""
        made = cls.__new__(cls)
        values = cls._rebatched(values, ranks, [getattr(p, "shape", None) for p in parts])
        for name, value in values.items():
            object.__setattr__(made, name, value)
        object.__setattr__(made, "_is_whole", True)
        return made

    @classmethod
    def _rebatched(cls, values, ranks, shapes):
        return values

    def _components(self):
        return _flat_parts(self._own_values().values())

    def _from_components(self, parts):
        parts = list(parts)
        ranks = [getattr(getattr(p, "shape", None), "rank", None) for p in self._components()]
        return self._made(_packed_parts(self._own_values(), parts), ranks, parts)

    def _static_key(self):
        """What a function is traced for anew: the fields that are no tensors."""
        return repr({name: _without(value, lambda x: type(x).__name__) for name, value in self._own_values().items()})

    @property
    def _type_spec(self):
        def leaf(x):
            return x if isinstance(x, TypeSpec) else type_spec_from_value(x)

        return type(self).Spec._of({name: _without(value, leaf) for name, value in self._own_values().items()})

    def __dispatch__(self, function, args, kwargs):
        from tandem import _dispatch

        return _dispatch.call(function, args, kwargs)


def _value_of(cls, values):
    return cls._made(values)


class BatchableExtensionType(ExtensionType):
    """An extension type whose values can be stacked: fields that are shapes then get, or lose, the outer extent."""

    @classmethod
    def _rebatched(cls, values, ranks, shapes):
        pairs = [
            (rank, shape) for rank, shape in zip(ranks, shapes) if rank is not None and getattr(shape, "rank", None) is not None
        ]
        if not pairs:
            return values
        rank, shape = pairs[0]
        more = shape.rank - rank

        def moved(x):
            if more == 0 or x.rank is None:
                return x
            return TensorShape([*shape[:more], *x]) if more > 0 else x[-more:]

        return {name: moved(v) if isinstance(v, TensorShape) else v for name, v in values.items()}


_BASES = (ExtensionType, BatchableExtensionType)


# --- in files -------------------------------------------------------------------------------------------------------------------


def saved_name(cls):
    """The name under which a class stands in a file: its own __name__ in the class's body, or module and class."""
    return cls.__dict__.get("_saved_name") or f"{cls.__module__}.{cls.__qualname__}"


def class_named(name):
    """The newest class of that name; the program that reads a file must have made it before."""
    found = _classes.get(name)
    if found is None:
        raise ValueError(
            f"no extension type {name!r} is known here\n  hint: define or import the class before the file is loaded"
        )
    return found
