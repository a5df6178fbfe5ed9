"""tf.bitwise."""
from tandem._face import api, ops, tensor
from tandem.math import _binary

bitwise_and, bitwise_or, bitwise_xor = _binary("bitwise_and"), _binary("bitwise_or"), _binary("bitwise_xor")
left_shift, right_shift = _binary("left_shift"), _binary("right_shift")


@api
def invert(x, name=None):
    return ops.bitwise_not(tensor(x))
