"""CRC-32C with NumPy: many pieces of the data at once, joined by the algebra of the code."""
import numpy as np

_POLYNOMIAL = 0x82F63B78


def _table():
    t = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        t = np.where(t & 1, (t >> 1) ^ np.uint32(_POLYNOMIAL), t >> 1)
    return t


_TABLE = _table()
_LIST = _TABLE.tolist()


def _square(matrix):
    return _times(matrix, matrix)


def _times(matrix, vectors):
    """A 32 x 32 matrix over GF(2), given as columns, times each of some vectors."""
    made = np.zeros_like(vectors)
    for bit in range(32):
        made ^= np.where((vectors >> np.uint32(bit)) & np.uint32(1), matrix[bit], np.uint32(0))
    return made


def _shift(count):
    """The matrix of `count` zero bytes behind the data."""
    one = np.array([_POLYNOMIAL] + [1 << i for i in range(31)], np.uint32)  # one zero bit
    for _ in range(3):
        one = _square(one)
    made = np.array([1 << i for i in range(32)], np.uint32)
    while count:
        if count & 1:
            made = _times(one, made)
        one = _square(one)
        count >>= 1
    return made


def crc32c(data, crc=0):
    """Of bytes, going on from the code of what came before."""
    data = np.frombuffer(data, np.uint8)
    pieces = 1 << 12
    if len(data) < 1 << 16:
        state = crc ^ 0xFFFFFFFF
        for byte in data.tolist():
            state = _LIST[(state ^ byte) & 0xFF] ^ (state >> 8)
        return state ^ 0xFFFFFFFF
    length = len(data) // pieces
    head, rest = data[: length * pieces].reshape(pieces, length), data[length * pieces :]
    state = np.full(pieces, 0xFFFFFFFF, np.uint32)
    columns = np.ascontiguousarray(head.T)
    for column in columns:
        state = _TABLE[(state ^ column) & 0xFF] ^ (state >> np.uint32(8))
    codes, size = state ^ np.uint32(0xFFFFFFFF), length
    while len(codes) > 1:
        codes = _times(_shift(size), codes[0::2]) ^ codes[1::2]
        size *= 2
    whole = int(_times(_shift(length * pieces), np.array([crc], np.uint32))[0]) ^ int(codes[0])
    return crc32c(rest.tobytes(), whole)


def masked(crc):
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def unmasked(value):
    rotated = (value - 0xA282EAD8) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF
