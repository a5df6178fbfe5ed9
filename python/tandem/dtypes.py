"""tf.dtypes."""
from tandem._arrays import cast, saturate_cast  # noqa: F401
from tandem._complex import complex_ as complex  # noqa: F401
from tandem._dtypes import DType, as_dtype, _by_name
from tandem._dtypes import double, half  # noqa: F401

globals().update(_by_name)


class experimental:
    """Types that exist by name."""

    float8_e5m2, float8_e4m3fn, int4, uint4 = (_by_name[n] for n in ("float8_e5m2", "float8_e4m3fn", "int4", "uint4"))


__all__ = ["DType", "as_dtype"]
