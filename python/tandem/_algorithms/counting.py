"""How often values occur."""
from tandem import _core

ops = _core.ops


def histogram(x, low, high, bins):
    """Counts of a vector's elements in bins of equal width from low to high, which are tensors of its type, and the bins' edges.
    The last bin has both of its edges; what lies outside is not counted."""
    half, zero = (ops.cast(n, dtype=x.dtype) for n in (0.5, 0))
    around = ops.where(ops.equal(low, high), half, zero)  # equal ends: a range of 1 around the value
    low, high = ops.subtract(low, around), ops.add(high, around)
    edges = ops.linspace(low, high, num=bins + 1)
    inside = ops.logical_and(ops.greater_equal(x, low), ops.less_equal(x, high))
    bin_ = ops.subtract(ops.searchsorted(edges, x, right=True), 1)
    counts = ops.segment_sum(ops.cast(inside, dtype="int32"), ops.clip(bin_, 0, bins - 1), segments=bins)
    return counts, edges


def unique_of_size(x, size, fill=None):
    """The different values of a vector in ascending order, the first place of each, which of them each element is, and how often
    each occurs, cut or filled up to a size: with `fill` (none: the least value), its place, and 0. No shape depends on values."""
    found, inverse, counts, number = ops.unique(x)
    last = ops.subtract(ops.extent(dims=[x.dims[0]], dtype="int32"), 1)
    # In a stable order of the elements, those of one value stand together, the first of them first.
    first = ops.take(ops.argsort(x), ops.minimum(ops.cumsum(counts, exclusive=True), last))
    places = ops.iota(shape=[size], axis=0, dtype="int32")
    real = ops.less(places, number)

    def sized(part, filling):
        return ops.where(real, ops.take(part, ops.minimum(places, last)), filling)

    found = sized(found, found[0] if fill is None else fill)
    return found, sized(first, first[0]), inverse, sized(counts, ops.cast(0, dtype="int32"))
