"""Images read at computed places: interpolation, affine and perspective maps."""
import itertools

from tandem import _core

ops = _core.ops


# --- reading between elements -----------------------------------------------------------------------------------------------------------


def _mirrored(index, size):
    """0 1 2 3 2 1 0 1 …: the border element is not repeated."""
    period = max(2 * (size - 1), 1) if isinstance(size, int) else 2 * (size - 1)
    size, period = _number(size), _number(period)
    return ops.subtract(size - 1, ops.absolute(ops.subtract(ops.remainder(index, period), size - 1)))


def _reflected(index, size):
    """0 1 2 3 3 2 1 0 0 1 …: the border element is repeated."""
    place = ops.remainder(index, _number(2 * size))
    return ops.minimum(place, ops.subtract(_number(2 * size - 1), place))


def _number(extent):
    return extent if isinstance(extent, int) else ops.extent(dims=[extent])


def _inside(index, size, mode):
    """An index that can be read, and where it is a true one (None: everywhere)."""
    if mode == "wrap":
        return ops.remainder(index, _number(size)), None
    if mode == "mirror":
        return _mirrored(index, size), None
    if mode == "reflect":
        return _reflected(index, size), None
    clipped = ops.clip(index, 0, _number(size) - 1)
    if mode == "nearest":
        return clipped, None
    return clipped, ops.equal(clipped, index)


def _taps(place, size, order, mode):
    """What is read along one axis: (index, where valid, weight); a weight of None is 1."""
    if order == 0:
        return [(*_inside(ops.cast(ops.floor(place + 0.5), dtype="int32"), size, mode), None)]
    low = ops.floor(place)
    upper = place - low
    index = ops.cast(low, dtype="int32")
    return [(*_inside(index, size, mode), 1.0 - upper), (*_inside(index + 1, size, mode), upper)]


def interpolate(read, sizes, places, order, mode, fill, trailing=0):
    """The sum over neighbours along all axes. read(indices) gives elements, which may have `trailing` more axes than places."""

    def spread(x):
        return ops.expand_dims(x, axis=list(range(x.ndim, x.ndim + trailing))) if trailing else x

    total = None
    for taps in itertools.product(*(_taps(p, s, order, mode) for p, s in zip(places, sizes))):
        value = read([index for index, _, _ in taps])
        valid = weight = None
        for _, v, w in taps:
            if v is not None:
                valid = v if valid is None else ops.logical_and(valid, v)
            if w is not None:
                weight = w if weight is None else ops.multiply(weight, w)
        if valid is not None:
            value = ops.where(spread(valid), value, fill)
        if weight is not None:
            value = ops.multiply(value, spread(weight))
        total = value if total is None else ops.add(total, value)
    return total


def _computed_in(dtype):
    return "float64" if dtype.name == "float64" else "float32"


def _as_before(x, dtype):
    """Back to the type of the input; whole numbers are rounded."""
    if dtype.name.startswith(("int", "uint")):
        x = ops.floor(x + 0.5)
    return ops.cast(x, dtype=dtype)


def _strides(dims):
    strides, step = [], 1
    for d in reversed(dims):
        strides.insert(0, step)
        step = d * step
    return strides


def map_coordinates(x, coordinates, order, mode, fill):
    """x read at coordinates [rank of x, ...]."""
    dtype = x.dtype
    compute = _computed_in(dtype)
    flat = ops.cast(ops.reshape(x, shape=[-1]), dtype=compute)
    strides = _strides(x.dims)

    def read(indices):
        place = None
        for index, stride in zip(indices, strides):
            part = ops.multiply(index, _number(stride))
            place = part if place is None else ops.add(place, part)
        return ops.take_clipped(flat, place, axis=0)

    places = [ops.cast(coordinates[i], dtype=compute) for i in range(x.ndim)]
    return _as_before(interpolate(read, x.dims, places, order, mode, ops.cast(fill, dtype=compute)), dtype)


def sample(images, y, x, order, mode, fill):
    """Images [batch, height, width, channels] read at places y, x [batch, ...]."""
    dtype = images.dtype
    compute = _computed_in(dtype)
    batch, height, width, channels = images.dims
    pixels = ops.cast(ops.reshape(images, shape=[batch * height * width, channels]), dtype=compute)
    shape = [batch] + [1] * (y.ndim - 1)
    start = ops.multiply(ops.iota(shape=shape, axis=0), _number(height * width))

    def read(indices):
        row, column = indices
        return ops.take_clipped(pixels, ops.add(start, ops.add(ops.multiply(row, _number(width)), column)), axis=0)

    places = [ops.cast(y, dtype=compute), ops.cast(x, dtype=compute)]
    return _as_before(interpolate(read, (height, width), places, order, mode, ops.cast(fill, dtype=compute), trailing=1), dtype)


# --- maps of the plane ------------------------------------------------------------------------------------------------------------------


def grid(height, width, dtype="float32"):
    """y and x of each pixel, [1, height, width]."""
    shape = [1, height, width]
    return ops.cast(ops.iota(shape=shape, axis=1), dtype=dtype), ops.cast(ops.iota(shape=shape, axis=2), dtype=dtype)


def project(transforms, height, width):
    """Where each pixel of a result comes from: [batch, height, width] of y and of x. A transform is a0 a1 a2 b0 b1 b2 c0 c1:
    x' = (a0 x + a1 y + a2) / k, y' = (b0 x + b1 y + b2) / k, k = c0 x + c1 y + 1."""
    y, x = grid(height, width)
    t = ops.cast(transforms, dtype="float32")
    a0, a1, a2, b0, b1, b2, c0, c1 = (ops.reshape(t[:, i], shape=[t.dims[0], 1, 1]) for i in range(8))
    k = c0 * x + c1 * y + 1.0
    return ops.divide(b0 * x + b1 * y + b2, k), ops.divide(a0 * x + a1 * y + a2, k)


def project_images(images, transforms, order, mode, fill):
    """Images [batch, height, width, channels]; one transform for all, or one an image."""
    y, x = project(transforms, images.dims[1], images.dims[2])
    shape = [images.dims[0], *y.dims[1:]]
    return sample(images, ops.broadcast_to(y, shape=shape), ops.broadcast_to(x, shape=shape), order, mode, fill)


def homography(start, end):
    """The eight numbers of the transform that takes points end [batch, 4, 2] to start."""
    sx, sy, ex, ey = start[..., 0], start[..., 1], end[..., 0], end[..., 1]
    zero, one = ops.multiply(ex, 0), ops.add(ops.multiply(ex, 0), 1)
    x_rows = ops.stack([ex, ey, one, zero, zero, zero, -(sx * ex), -(sx * ey)], axis=-1)
    y_rows = ops.stack([zero, zero, zero, ex, ey, one, -(sy * ex), -(sy * ey)], axis=-1)
    matrix = ops.concatenate([x_rows, y_rows], axis=-2)
    target = ops.expand_dims(ops.concatenate([sx, sy], axis=-1), axis=[-1])
    return ops.squeeze(ops.solve(matrix, target), axis=[-1])
