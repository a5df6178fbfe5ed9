"""Values that replicas have each for itself, and how they become one."""
import enum

from tandem import _core, nest
from tandem._convert import Composite
from tandem._face import any_tensor, ops
from tandem._specs import TypeSpec


class ReduceOp(enum.Enum):
    SUM, MEAN = "SUM", "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation):
        return {"SUM": ReduceOp.SUM, "MEAN": ReduceOp.MEAN}[aggregation.name]


def reduce_name(reduce_op):
    name = reduce_op.upper() if isinstance(reduce_op, str) else getattr(reduce_op, "value", None)
    if name not in ("SUM", "MEAN"):
        raise ValueError(f"Unsupported reduce_op: {reduce_op}, expected SUM or MEAN")
    return name


class DistributedValues(Composite):
    """One value for each replica. A tf.function takes and gives it as its tensors."""

    def __init__(self, values):
        self._values = tuple(values)

    values = property(lambda self: self._values)
    dtype = property(lambda self: self._values[0].dtype)
    is_traced = property(lambda self: any(getattr(v, "is_traced", False) for v in self._values))

    def _components(self):
        return list(self._values)

    def _from_components(self, parts):
        return type(self)(parts)

    def __repr__(self):
        return "PerReplica:{\n" + ",\n".join(f"  {i}: {v!r}" for i, v in enumerate(self._values)) + "\n}"


PerReplica = DistributedValues


class PerReplicaSpec(TypeSpec):
    """The type of a value for each replica."""

    def __init__(self, *specs):
        self._specs = specs

    def is_compatible_with(self, spec_or_value):
        return isinstance(spec_or_value, DistributedValues) and len(spec_or_value.values) == len(self._specs)

    def _key(self):
        return self._specs

    def __repr__(self):
        return f"PerReplicaSpec({', '.join(map(repr, self._specs))})"


def of_replica(structure, i):
    return nest.map_structure(lambda v: v.values[i] if isinstance(v, DistributedValues) else v, structure)


def regrouped(structures):
    """One structure of what each replica has; what is the same object everywhere stays that object."""
    if len(structures) == 1:
        return structures[0]

    def together(*values):
        return values[0] if all(v is values[0] for v in values) else DistributedValues(values)

    return nest.map_structure(together, *structures)


def total(parts):
    """Their sum, always in the order of the replicas."""
    result = any_tensor(parts[0])
    for p in parts[1:]:
        result = result + any_tensor(p)
    return result


def reduced(name, value, axis=None):
    """SUM or MEAN of one value over replicas, and over an axis of theirs. A value that is one object for all of them counts once, as in TensorFlow."""
    parts = [any_tensor(p) for p in (value.values if isinstance(value, DistributedValues) else [value])]
    if axis is None:
        return total(parts) if name == "SUM" or len(parts) == 1 else total(parts) / len(parts)
    joined = ops.concatenate(parts, axis=axis) if len(parts) > 1 else parts[0]
    if name == "MEAN" and not joined.dtype.is_floating:
        joined = ops.cast(joined, dtype="float64")
    return (ops.sum if name == "SUM" else ops.mean)(joined, axis=[axis])


def weighted_mean(parts, weights):
    parts = [any_tensor(p) for p in parts]
    if not parts[0].dtype.is_floating:
        return parts[0]
    return total([p * float(w) for p, w in zip(parts, weights)])


def rows_of(structure):
    """How many rows the tensors of a structure have, by the first that has any."""
    for x in nest.flatten(structure):
        if x is not None and getattr(x, "ndim", 0) and isinstance(x.shape[0], int):
            return x.shape[0]
    return None


def parts_by_shares(rows, shares):
    """How many rows each share gets: as near to it as whole rows allow, the largest remainders first."""
    whole = float(sum(shares))
    exact = [rows * s / whole for s in shares]
    counts = [int(e) for e in exact]
    by_rest = sorted(range(len(shares)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_rest[: rows - sum(counts)]:
        counts[i] += 1
    return counts


def split(structure, counts):
    """The rows of each tensor in parts, as one structure a part."""
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return [
        nest.map_structure(lambda x: None if x is None else x[start : start + count], structure) for start, count in zip(starts, counts)
    ]


def is_recorded(values):
    return _core.is_recording() and any(getattr(v, "dtype", None) is not None and v.dtype.is_floating for v in values)
