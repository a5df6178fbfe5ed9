"""Elements as nests around flat lists of tensors. Tuples, dicts and attrs classes are structure; lists are tensors."""

import collections.abc

import numpy as np

from tandem import _core
from tandem._convert import convert
from tandem._specs import NoneTensorSpec, TensorSpec, TypeSpec


def _is_named_tuple(x):
    return isinstance(x, tuple) and hasattr(x, "_fields")


def is_structure(x):
    """Whether x has parts of its own. TensorShape is a tuple that has none."""
    if isinstance(x, tuple):
        return not hasattr(x, "as_list")
    return isinstance(x, collections.abc.Mapping) or hasattr(type(x), "__attrs_attrs__")


def _sorted_keys(d):
    return sorted(d, key=lambda k: (type(k).__name__, k))


def children(x):
    """The parts in the order in which TensorFlow flattens them: those of dicts by sorted keys."""
    if isinstance(x, tuple):
        return list(x)
    if isinstance(x, collections.abc.Mapping):
        return [x[k] for k in _sorted_keys(x)]
    return [getattr(x, a.name) for a in type(x).__attrs_attrs__]


def rebuilt(like, parts):
    """The same kind of structure around other parts."""
    if _is_named_tuple(like):
        return type(like)(*parts)
    if isinstance(like, tuple):
        return tuple(parts)
    if isinstance(like, collections.abc.Mapping):
        by_key = dict(zip(_sorted_keys(like), parts))
        ordered = [(k, by_key[k]) for k in like]
        if isinstance(like, collections.defaultdict):
            return type(like)(like.default_factory, ordered)
        try:
            return type(like)(ordered)
        except TypeError:
            return dict(ordered)
    return type(like)(*parts)


def map_leaves(function, x):
    return rebuilt(x, [map_leaves(function, c) for c in children(x)]) if is_structure(x) else function(x)


def leaves(x):
    return [leaf for c in children(x) for leaf in leaves(c)] if is_structure(x) else [x]


class Leaf:
    """What stands at one place of a nest: how its tensors become a value, and its spec. Here, one tensor."""

    count = 1

    def pack(self, tensors):
        return tensors[0]

    def spec(self, specs):
        return specs[0]


class RaggedRow(Leaf):
    """A row of a ragged tensor: one tensor, but a batch of them is ragged again."""

    def spec(self, specs):
        from tandem._ragged import RaggedTensorSpec

        return RaggedTensorSpec(specs[0].shape, specs[0].dtype, 0)


class NoneLeaf(Leaf):
    count = 0

    def pack(self, tensors):
        return None

    def spec(self, specs):
        return NoneTensorSpec()


class DatasetLeaf(Leaf):
    """A Dataset inside of an element, such as a window: its elements stacked."""

    def __init__(self, nest):
        self.nest, self.count = nest, nest.count

    def pack(self, tensors):
        from tandem.data._dataset import Dataset

        return Dataset._of(_core.Dataset.from_slices(tensors), self.nest, "_VariantDataset")

    def spec(self, specs):
        inner = [TensorSpec(s.shape[1:], s.dtype) if s.shape.rank is not None else s for s in specs]
        return DatasetSpec(self.nest.spec(inner))


class CompositeLeaf(Leaf):
    """A value of several tensors that knows itself how it is taken apart: `_components()` and `_from_components(list)`."""

    def __init__(self, like, count, spec=None):
        self.like, self.count, self._spec = like, count, spec

    def pack(self, tensors):
        return self.like._from_components(tensors)

    def spec(self, specs):
        found = self._spec or self.like._type_spec
        return found._with_component_specs(specs) if hasattr(found, "_with_component_specs") else found


class DatasetSpec(TypeSpec):
    """The type of a Dataset inside of another one."""

    def __init__(self, element_spec, dataset_shape=()):
        self._element_spec, self._shape = element_spec, dataset_shape

    element_spec = property(lambda self: self._element_spec)

    @staticmethod
    def from_value(value):
        return DatasetSpec(value.element_spec)

    def _key(self):
        return (self._element_spec,)

    def __repr__(self):
        return f"DatasetSpec({self._element_spec!r}, TensorShape([]))"


_TENSOR, _NONE = Leaf(), NoneLeaf()


class Nest:
    """A structure of leaves. Flat lists of tensors are put into it."""

    def __init__(self, template):
        self.template = template
        self.leaves = leaves(template)
        self.count = sum(leaf.count for leaf in self.leaves)
        self.is_plain = all(leaf is _TENSOR for leaf in self.leaves)
        self.takes_several = type(template) is tuple  # functions get a parameter for each part
        if template is _TENSOR:
            self.pack = lambda tensors: tensors[0]
        elif type(template) is tuple and all(part is _TENSOR for part in template):
            self.pack = tuple
        else:
            self.pack = self._pack

    def _pack(self, tensors):
        source = iter(tensors)
        return map_leaves(lambda leaf: leaf.pack([next(source) for _ in range(leaf.count)]), self.template)

    def spec(self, flat_specs):
        source = iter(flat_specs)
        return map_leaves(lambda leaf: leaf.spec([next(source) for _ in range(leaf.count)]), self.template)

    def arguments(self, tensors):
        """How a function of the user's gets an element."""
        value = self.pack(tensors)
        return value if self.takes_several else (value,)

    def same_kind(self, other):
        return _shape_of(self.template) == _shape_of(other.template)

    def __repr__(self):
        return repr(map_leaves(lambda leaf: type(leaf).__name__, self.template))


def _shape_of(x):
    """The structure alone, comparable."""
    if not is_structure(x):
        return type(x).__name__
    keys = tuple(_sorted_keys(x)) if isinstance(x, collections.abc.Mapping) else ()
    return ("dict" if keys else "tuple" if type(x) is tuple else type(x).__name__, keys, tuple(_shape_of(c) for c in children(x)))


ONE = Nest(_TENSOR)


def tuple_of(*nests):
    return Nest(tuple(n.template for n in nests))


def windows_of(nest):
    """Each tensor as a Dataset of its own."""
    return Nest(map_leaves(lambda leaf: DatasetLeaf(Nest(leaf)), nest.template))


def nest_of_spec(spec):
    """(Nest, flat list of TensorSpec) of an element_spec."""
    flat = []

    def leaf(s):
        if s is None or isinstance(s, NoneTensorSpec):
            return _NONE
        if hasattr(s, "ragged_rank"):
            from tandem._ragged import RaggedTensor

            like = RaggedTensor.from_row_splits(convert([], s.dtype), [0])
            flat.extend([TensorSpec(s.shape[s.ragged_rank :] if s.shape.rank is not None else None, s.dtype)])
            flat.extend([TensorSpec([None], s.row_splits_dtype)] * s.ragged_rank)
            return CompositeLeaf(like, 1 + s.ragged_rank, s)
        if hasattr(s, "_component_specs"):
            parts = s._component_specs()
            flat.extend(parts)
            return CompositeLeaf(s, len(parts), s)
        if isinstance(s, DatasetSpec):
            inner, inner_flat = nest_of_spec(s.element_spec)
            flat.extend(TensorSpec([None, *i.shape] if i.shape.rank is not None else None, i.dtype) for i in inner_flat)
            return DatasetLeaf(inner)
        if not isinstance(s, TensorSpec):
            if hasattr(s, "shape") and hasattr(s, "dtype"):
                s = TensorSpec(s.shape, s.dtype)
            else:
                raise NotImplementedError(f"elements of {type(s).__name__} are not supported")
        flat.append(s)
        return _TENSOR

    return Nest(map_leaves(leaf, spec)), flat


def flatten(value, to_tensor=convert):
    """(Nest, flat list of tensors) of a value."""
    from tandem.data._dataset import Dataset

    flat = []

    def leaf(x):
        if x is None:
            return _NONE
        if isinstance(x, Dataset):
            tensors = x._stacked()
            flat.extend(tensors)
            return DatasetLeaf(x._nest)
        if hasattr(x, "_components") and hasattr(x, "_from_components"):
            parts = list(x._components())
            flat.extend(parts)
            return CompositeLeaf(x, len(parts), _open_spec(x))
        flat.append(to_tensor(x))
        return _TENSOR

    return Nest(map_leaves(leaf, value)), flat


def _open_spec(x):
    """The spec of a composite, with extents that may be others in the next element."""
    spec = x._type_spec
    return spec._opened() if hasattr(spec, "_opened") else spec


# Arrays from here on are not copied: a pipeline reads them where they are.
SHARED_BYTES = 1 << 20


def shared(x):
    """A tensor of x; the memory of a large NumPy array is used as it is, and must not be written meanwhile."""
    if isinstance(x, np.ndarray) and x.nbytes >= SHARED_BYTES and x.dtype.kind in "biuf" and x.dtype.isnative and x.flags.aligned:
        made = _core.from_buffer(x, shares=True)
        if made is not None:
            return made
    if type(x).__module__.startswith("pandas."):
        x = np.asarray(x)
    return convert(x)
