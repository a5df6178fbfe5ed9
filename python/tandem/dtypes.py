"""tf.dtypes."""
from tandem._arrays import cast, saturate_cast  # noqa: F401
from tandem._complex import complex_ as complex  # noqa: F401
from tandem._dtypes import DType, as_dtype, _by_name
from tandem._dtypes import double, half  # noqa: F401

globals().update(_by_name)


class experimental:
    """Types that exist by name."""

    float8_e5m2, float8_e4m3fn, int4, uint4 = (_by_name[n] for n in ("float8_e5m2", "float8_e4m3fn", "int4", "uint4"))
    float4_e2m1fn, float8_e4m3b11fnuz, float8_e4m3fnuz, float8_e5m2fnuz = (
        _by_name[n] for n in ("float4_e2m1fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz")
    )
    int2, uint2 = _by_name["int2"], _by_name["uint2"]


QUANTIZED_DTYPES = frozenset(_by_name[n] for n in ("qint8", "quint8", "qint16", "quint16", "qint32"))


__all__ = ["DType", "as_dtype"]
