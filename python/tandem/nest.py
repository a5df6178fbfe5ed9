"""tf.nest: structures of lists, tuples, named tuples, dicts (in the order of sorted keys), attrs and data classes, with tensors as leaves."""
import collections.abc
import dataclasses

from tandem._convert import Composite


def _is_named_tuple(x):
    return isinstance(x, tuple) and hasattr(x, "_fields")


def _is_attrs(x):
    return hasattr(type(x), "__attrs_attrs__")


def _is_dataclass(x):
    """Those that say themselves how they are taken apart."""
    return dataclasses.is_dataclass(x) and hasattr(x, "__tf_flatten__") and not isinstance(x, type)


def _is_dict(x):
    return isinstance(x, collections.abc.Mapping)


def is_nested(seq):
    if isinstance(seq, (list, tuple)):
        from tandem._shape import TensorShape

        return not isinstance(seq, TensorShape)
    return _is_dict(seq) or _is_attrs(seq) or _is_dataclass(seq) or isinstance(seq, (collections.abc.MappingView,))


def _sorted_keys(d):
    try:
        return sorted(d)
    except TypeError:
        raise TypeError(f"nest only supports dicts with sortable keys, got {list(d)}") from None


def _children(x):
    """[(key, child)] of a nested structure."""
    if _is_dict(x):
        return [(k, x[k]) for k in _sorted_keys(x)]
    if _is_named_tuple(x):
        return list(zip(x._fields, x))
    if _is_attrs(x):
        return [(a.name, getattr(x, a.name)) for a in type(x).__attrs_attrs__]
    if _is_dataclass(x):
        return list(enumerate(x.__tf_flatten__()[1]))
    return list(enumerate(x))


def _rebuilt(like, children):
    """A structure of the kind of `like` around new children, given in the order of _children."""
    if _is_dict(like):
        found = dict(zip(_sorted_keys(like), children))
        ordered = [(k, found[k]) for k in like]
        if isinstance(like, collections.defaultdict):
            return type(like)(like.default_factory, ordered)
        if hasattr(like, "_type_spec_from_dict"):
            return like._type_spec_from_dict(ordered)
        try:
            return type(like)(ordered)
        except TypeError:
            return dict(ordered)
    if _is_named_tuple(like):
        return type(like)(*children)
    if _is_attrs(like):
        return type(like)(*children)
    if _is_dataclass(like):
        return type(like).__tf_unflatten__(like.__tf_flatten__()[0], tuple(children))
    if isinstance(like, collections.abc.MappingView):
        return list(children)
    if type(like) in (list, tuple):
        return type(like)(children)
    try:
        return type(like)(children)  # a subclass, or a list that tracks what is put into it
    except TypeError:
        return list(children)


def _parts(x):
    """The tensors that a composite is made of, or None."""
    return x._components() if isinstance(x, Composite) and hasattr(x, "_components") else None


def flatten(structure, expand_composites=False):
    if structure is None:
        return [None]
    flat = []
    _flatten_into(structure, flat, expand_composites)
    return flat


def _flatten_into(x, flat, expand):
    if type(x) is list or is_nested(x):
        for _, child in _children(x):
            _flatten_into(child, flat, expand)
        return
    parts = _parts(x) if expand else None
    flat.extend(parts) if parts is not None else flat.append(x)


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    if not is_nested(flat_sequence):
        raise TypeError(f"flat_sequence must be a sequence. Received:\n{flat_sequence!r}")
    flat = list(flat_sequence)
    if not is_nested(structure) and not (expand_composites and _parts(structure) is not None):
        if len(flat) != 1:
            raise ValueError(
                f"The target structure is of type `{type(structure)}`\n  {structure}\nHowever the input is a sequence "
                f"({type(flat_sequence)}) of length {len(flat)}."
            )
        return flat[0]
    wanted = len(flatten(structure, expand_composites))
    if wanted != len(flat):
        raise ValueError(
            f"Could not pack sequence. Structure had {wanted} atoms, but flat_sequence had {len(flat)} items.  Structure: "
            f"{structure}, flat_sequence: {flat_sequence}."
        )
    source = iter(flat)

    def build(x):
        if is_nested(x):
            return _rebuilt(x, [build(child) for _, child in _children(x)])
        parts = _parts(x) if expand_composites else None
        return next(source) if parts is None else x._from_components([next(source) for _ in parts])

    return build(structure)


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    if not isinstance(check_types, bool):
        raise TypeError(f"check_types must be a boolean, got {check_types!r}")

    def differ(a, b, why):
        raise why(
            f"The two structures don't have the same nested structure.\n\nFirst structure: type={type(nest1).__name__} "
            f"str={nest1}\n\n"
            f"Second structure: type={type(nest2).__name__} str={nest2}\n\nMore specifically: {type(a).__name__} {a} and "
            f"{type(b).__name__} {b} differ.\n"
            f"Entire first structure:\n{_dots(nest1)}\nEntire second structure:\n{_dots(nest2)}"
        )

    def walk(a, b):
        if is_nested(a) != is_nested(b):
            differ(a, b, ValueError)
        if not is_nested(a):
            return
        if check_types and type(a) is not type(b):
            both_dicts = _is_dict(a) and _is_dict(b)
            same_tuples = _is_named_tuple(a) and _is_named_tuple(b) and type(a).__name__ == type(b).__name__ and a._fields == b._fields
            lists = isinstance(a, list) and isinstance(b, list)
            if not (both_dicts or same_tuples or lists):
                differ(a, b, TypeError)
        ours, theirs = _children(a), _children(b)
        if len(ours) != len(theirs):
            differ(a, b, ValueError)
        if _is_dict(a) and [k for k, _ in ours] != [k for k, _ in theirs]:
            differ(a, b, ValueError)
        for (_, x), (_, y) in zip(ours, theirs):
            walk(x, y)

    walk(nest1, nest2)


def _dots(x):
    return _rebuilt(x, [_dots(c) for _, c in _children(x)]) if is_nested(x) else "."


def map_structure(func, *structure, **kwargs):
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types, expand = kwargs.pop("check_types", True), kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(f"Only valid keyword arguments are `check_types` and `expand_composites`, not: `{'`, `'.join(kwargs)}`")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand)
    flat = [flatten(s, expand) for s in structure]
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*flat)], expand)


def flatten_with_paths(structure, path=()):
    """[(path, leaf)] with keys and places as paths."""
    if is_nested(structure):
        return [found for key, child in _children(structure) for found in flatten_with_paths(child, (*path, key))]
    return [(path, structure)]
