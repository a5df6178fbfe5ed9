"""TensorShape: the extents of a tensor, None where one is not known."""


class Dimension:
    """An extent as TensorFlow 1 had it; kept for programs that name it."""

    def __init__(self, value):
        self.value = None if value is None else int(value)

    def __int__(self):
        return self.value

    __index__ = __int__

    def __eq__(self, other):
        other = other.value if isinstance(other, Dimension) else other
        return None if self.value is None or other is None else self.value == other

    def __hash__(self):
        return hash(self.value)

    def is_compatible_with(self, other):
        other = Dimension(_value(other)).value
        return self.value is None or other is None or self.value == other

    def assert_is_compatible_with(self, other):
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other):
        self.assert_is_compatible_with(other)
        return Dimension(_value(other)) if self.value is None else Dimension(self.value)

    def _with(self, other, operation):
        other = _value(other)
        return Dimension(None if self.value is None or other is None else operation(self.value, other))

    def __add__(self, other):
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b)

    def __floordiv__(self, other):
        return self._with(other, lambda a, b: a // b)

    def __mod__(self, other):
        return self._with(other, lambda a, b: a % b)

    __radd__, __rmul__ = __add__, __mul__

    def __str__(self):
        return "?" if self.value is None else str(self.value)

    def __repr__(self):
        return f"Dimension({self.value})"


def _value(dimension):
    return getattr(dimension, "value", dimension)


def _extent(d):
    if d is None or type(d) is int:
        return d
    if isinstance(d, Dimension):
        return d.value
    if not isinstance(d, (str, bytes, float)):
        try:
            d = d.__index__()
        except AttributeError:
            raise TypeError(f"Dimension value must be integer or None or have an __index__ method, got value '{d!r}' with type '{type(d)!r}'") from None
        if d < 0:
            raise ValueError(f"Dimension {d} must be >= 0")
        return d
    raise TypeError(f"Dimension value must be integer or None or have an __index__ method, got value '{d!r}' with type '{type(d)!r}'")


class TensorShape(tuple):
    """A tuple of extents. TensorShape(None) is a shape of unknown rank."""

    _unknown = False

    def __new__(cls, dims=()):
        if type(dims) is cls:
            return dims
        if dims is None:
            made = tuple.__new__(cls)
            made._unknown = True
            return made
        if type(dims) is tuple:
            for d in dims:
                if d is not None and (type(d) is not int or d < 0):
                    break
            else:
                return tuple.__new__(cls, dims)
        if isinstance(dims, int):
            dims = (dims,)
        made = tuple.__new__(cls, [_extent(d) for d in dims])
        for d in made:
            if d is not None and d < 0:
                raise ValueError(f"Dimension {d} must be >= 0")
        return made

    @property
    def rank(self):
        return None if self._unknown else len(self)

    ndims = rank

    @property
    def dims(self):
        return None if self._unknown else [Dimension(d) for d in self]

    def as_list(self):
        if self._unknown:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self)

    def as_proto(self):
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

        if self._unknown:
            return TensorShapeProto(unknown_rank=True)
        return TensorShapeProto(dim=[TensorShapeProto.Dim(size=-1 if d is None else d) for d in self])

    def is_fully_defined(self):
        return not self._unknown and None not in tuple(self)

    def assert_is_fully_defined(self):
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def num_elements(self):
        if not self.is_fully_defined():
            return None
        n = 1
        for d in self:
            n *= d
        return n

    def is_compatible_with(self, other):
        other = TensorShape(other)
        if self._unknown or other._unknown:
            return True
        return len(self) == len(other) and all(a is None or b is None or a == b for a, b in zip(self, other))

    def is_subtype_of(self, other):
        if other._unknown:
            return True
        return not self._unknown and len(self) == len(other) and all(b is None or a == b for a, b in zip(self, other))

    def assert_is_compatible_with(self, other):
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def assert_has_rank(self, rank):
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other):
        other = TensorShape(other)
        if self.rank is not None and other.rank is not None and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def with_rank(self, rank):
        return self.merge_with(TensorShape([None] * rank))

    def with_rank_at_least(self, rank):
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank):
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def merge_with(self, other):
        other = TensorShape(other)
        if self._unknown:
            return other
        if other._unknown:
            return self
        self.assert_is_compatible_with(other)
        return TensorShape([b if a is None else a for a, b in zip(self, other)])

    def most_specific_compatible_shape(self, other):
        other = TensorShape(other)
        if self._unknown or other._unknown or len(self) != len(other):
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(self, other)])

    def concatenate(self, other):
        other = TensorShape(other)
        if self._unknown or other._unknown:
            return TensorShape(None)
        return TensorShape(tuple(self) + tuple(other))

    def __add__(self, other):
        return self.concatenate(other)

    def __radd__(self, other):
        return TensorShape(other).concatenate(self)

    def __getitem__(self, key):
        if self._unknown:
            return TensorShape(None) if isinstance(key, slice) else None
        got = tuple.__getitem__(self, key)
        return TensorShape(got) if isinstance(key, slice) else got

    def __iter__(self):
        if self._unknown:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return tuple.__iter__(self)

    def __len__(self):
        if self._unknown:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return tuple.__len__(self)

    def __bool__(self):
        return not self._unknown

    def __eq__(self, other):
        if isinstance(other, TensorShape):
            return self._unknown == other._unknown and tuple.__eq__(self, other)
        if other is None:
            return self._unknown
        try:
            return tuple.__eq__(self, tuple(other)) and not self._unknown
        except TypeError:
            return False

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return tuple.__hash__(self)

    def __repr__(self):
        return "TensorShape(None)" if self._unknown else f"TensorShape({list(self)})"

    def __str__(self):
        if self._unknown:
            return "<unknown>"
        return "(" + ", ".join(str(d) for d in self) + (",)" if len(self) == 1 else ")")

    def __reduce__(self):
        return TensorShape, (None if self._unknown else tuple(self),)


def as_shape(x):
    return x if isinstance(x, TensorShape) else TensorShape(x)
