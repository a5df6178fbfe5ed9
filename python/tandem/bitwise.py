"""tf.bitwise."""
from tandem import errors
from tandem._face import api, convert, ops, pair, strict, tensor
from tandem.math import _binary

bitwise_and, bitwise_or, bitwise_xor = _binary("bitwise_and"), _binary("bitwise_or"), _binary("bitwise_xor")


def _shift(name):
    """A shift by more than the width, or by a negative number, is taken for the nearest that there is."""
    row = getattr(strict, name)

    def shift(x, y, name=None):
        x, y = pair(x, y)
        x, y = tensor(x), tensor(y)
        if not y.dtype.is_integer:
            raise errors.InvalidArgumentError(None, None, f"{row_name}: takes whole numbers, got a tensor of {y.dtype.name}")
        return row(x, strict.clip(y, convert(0, y.dtype), convert(8 * y.dtype.size - 1, y.dtype)))

    row_name = shift.__name__ = shift.__qualname__ = name
    shift.__doc__ = row.__doc__
    return api(shift)


left_shift, right_shift = _shift("left_shift"), _shift("right_shift")


@api
def invert(x, name=None):
    return ops.bitwise_not(tensor(x))
