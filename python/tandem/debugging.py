"""tf.debugging: assertions over tensors and their shapes."""
import numpy as np

from tandem import _core, errors
from tandem._convert import Composite
from tandem._dtypes import as_dtype
from tandem._face import CoreVariable, Tensor, any_tensor, api, number, ops, pair, tensor
from tandem._host_calls import assertion_text, check_when_run, text_of


def _raise_invalid(text):
    raise errors.InvalidArgumentError(None, None, text)


def _summary(x, summarize):
    values = np.asarray(x.numpy()).reshape(-1).tolist()
    few = 3 if summarize is None else summarize
    shown = ", ".join(str(v) for v in values[:few]) + (", ..." if len(values) > few >= 0 else "")
    return f"(shape={x.shape} dtype={x.dtype.name}) = {shown}"


def Assert(condition, data, summarize=None, name=None):
    condition = tensor(condition)
    data = list(data)
    if condition.is_traced:
        return check_when_run(condition, lambda shown: assertion_text(shown, summarize), data)
    if not bool(ops.all(condition).item()):
        text = " ".join(f"[{text_of(d, 3 if summarize is None else summarize)}]" for d in data)
        _raise_invalid(f"assertion failed: {text}")
    return None


def _assert_when_run(holds, message, text, summarize, **operands):
    """Inside of a compiled function the check happens when it runs, with what TensorFlow says there."""
    data = [str(message)] if message else []
    data.append(f"{text} did not hold element-wise:")
    for name, x in operands.items():
        known = x.__dict__.get("_graph_name") if isinstance(x, Tensor) else None
        data += [f"{name} ({known or f'{name}:0'}) = ", x]
    check_when_run(holds, lambda shown: assertion_text(shown, summarize), data)


def _compare(name, row, words):
    op = getattr(ops, row)

    @api
    def check(x, y, message=None, summarize=None, name=None):
        x, y = pair(x, y)
        x, y = any_tensor(x), any_tensor(y)
        if x.dtype.name == "string":
            holds = x == y if row == "equal" else x != y
        else:
            holds = op(x, y)
        if holds.is_traced:
            return _assert_when_run(holds, message, f"Condition x {words} y", summarize, x=x, y=y)
        if not bool(np.all(holds.numpy())):
            bad = np.argwhere(~np.asarray(holds.numpy()))
            first = f"\nIndices of first {min(3, len(bad))} different values:\n{bad[:3]}\nCorresponding x values:\n{_at(x, bad)}\nCorresponding y values:\n{_at(y, bad)}" if bad.size else ""
            _raise_invalid(
                f"{message + chr(10) if message else ''}Condition x {words} y did not hold.{first}\nFirst {_few(summarize)} "
                f"elements of x:\n{_first(x, summarize)}\nFirst {_few(summarize)} elements of y:\n{_first(y, summarize)}"
            )
        return None

    check.__name__ = check.__qualname__ = name
    return check


def _few(summarize):
    return 3 if summarize is None else summarize


def _first(x, summarize):
    return np.asarray(x.numpy()).reshape(-1)[: _few(summarize)]


def _at(x, bad):
    array = np.asarray(x.numpy())
    try:
        return np.array([array[tuple(i)] if array.ndim == len(i) else array for i in bad[:3]])
    except IndexError:
        return array


assert_equal, assert_none_equal = _compare("assert_equal", "equal", "=="), _compare("assert_none_equal", "not_equal", "!=")
assert_less, assert_less_equal = _compare("assert_less", "less", "<"), _compare("assert_less_equal", "less_equal", "<=")
assert_greater, assert_greater_equal = _compare("assert_greater", "greater", ">"), _compare(
    "assert_greater_equal", "greater_equal", ">="
)


def _against_zero(name, row, words):
    op = getattr(ops, row)

    def check(x, message=None, summarize=None, name=None):
        x = tensor(x)
        holds = op(x, 0)
        if holds.is_traced:
            return _assert_when_run(holds, message, f"Condition {words}", summarize, x=x)
        if not bool(np.all(holds.numpy())):
            _raise_invalid(
                f"{message + chr(10) if message else ''}Condition {words} did not hold element-wise:\nx {_summary(x, summarize)}"
            )

    check.__name__ = check.__qualname__ = name
    return check


assert_negative, assert_positive = _against_zero("assert_negative", "less", "x < 0"), _against_zero(
    "assert_positive", "greater", "x > 0"
)
assert_non_negative = _against_zero("assert_non_negative", "greater_equal", "x >= 0")
assert_non_positive = _against_zero("assert_non_positive", "less_equal", "x <= 0")


def assert_near(x, y, rtol=None, atol=None, message=None, summarize=None, name=None):
    x, y = pair(x, y)
    x, y = tensor(x), tensor(y)
    default = 10 * float(np.finfo(x.dtype.as_numpy_dtype).eps) if x.dtype.is_floating else 0
    rtol, atol = default if rtol is None else number(rtol), default if atol is None else number(atol)
    holds = ops.less_equal(ops.absolute(ops.subtract(x, y)), ops.add(ops.multiply(ops.absolute(y), rtol), atol))
    if holds.is_traced:
        text = f"x and y not equal to tolerance rtol = {rtol}, atol = {atol}"
        data = [str(message or ""), text, "x (x:0) = ", x, "y (y:0) = ", y]
        return check_when_run(holds, lambda shown: assertion_text(shown, summarize), data)
    if not bool(np.all(holds.numpy())):
        _raise_invalid(
            f"{message + chr(10) if message else ''}x and y not equal to tolerance rtol = {rtol}, atol = {atol}\nx "
            f"{_summary(x, summarize)}\ny {_summary(y, summarize)}"
        )


@api
def assert_all_finite(x, message, name=None):
    x = tensor(x)
    holds = ops.is_finite(x)
    if x.is_traced:
        check_when_run(holds, lambda shown: _not_finite(shown[0], message), [x])
    elif not bool(np.all(holds.numpy())):
        _raise_invalid(_not_finite(x, message))
    return x


def _not_finite(x, message):
    array = np.asarray(x.numpy()).astype(np.float64)
    kinds = " and ".join(k for k, bad in (("Inf", np.isinf(array).any()), ("NaN", np.isnan(array).any())) if bad)
    return f"{message} : Tensor had {kinds} values"


@api
def check_numerics(tensor_, message, name=None):
    return assert_all_finite(tensor_, message)


def assert_integer(x, message=None, name=None):
    x = tensor(x)
    if not x.dtype.is_integer:
        raise TypeError(f"{message or ''}Expected \"x\" to be integer type.  Found: {x.dtype!r}")


def assert_proper_iterable(values):
    if isinstance(values, (Tensor, Composite, np.ndarray, bytes, str)):
        raise TypeError(f"Expected argument \"values\" to be a \"proper\" iterable.  Found: {type(values)}")
    if not hasattr(values, "__iter__"):
        raise TypeError(f"Expected argument \"values\" to be iterable.  Found: {type(values)}")


def assert_rank(x, rank, message=None, name=None):
    found, wanted = any_tensor(x).ndim, int(number(rank))
    if found != wanted:
        raise ValueError(
            f"{message + '. ' if message else ''}Tensor must have rank {wanted}.  Received rank {found}, shape "
            f"{any_tensor(x).shape}"
        )


def assert_rank_at_least(x, rank, message=None, name=None):
    found, wanted = any_tensor(x).ndim, int(number(rank))
    if found < wanted:
        raise ValueError(
            f"{message + '. ' if message else ''}Tensor must have rank at least {wanted}.  Received rank {found}, shape "
            f"{any_tensor(x).shape}"
        )


def assert_rank_in(x, ranks, message=None, name=None):
    found, wanted = any_tensor(x).ndim, [int(number(r)) for r in ranks]
    if found not in wanted:
        raise ValueError(
            f"{message + '. ' if message else ''}Tensor must have rank in {tuple(wanted)}.  Received rank {found}, shape "
            f"{any_tensor(x).shape}"
        )


def assert_scalar(tensor, message=None, name=None):
    x = any_tensor(tensor)
    if x.ndim:
        raise ValueError(f"{message or ''}Expected scalar shape, saw shape: {x.shape}.")


def assert_type(tensor, tf_type, message=None, name=None):
    x = any_tensor(tensor)
    if x.dtype is not as_dtype(tf_type):
        raise TypeError(f"{message + chr(10) if message else ''}Expected tensor of type {as_dtype(tf_type)!r}, got {x.dtype!r}")


def assert_same_float_dtype(tensors=None, dtype=None):
    dtype = None if dtype is None else as_dtype(dtype)
    for t in tensors or []:
        if t is None:
            continue
        found = any_tensor(t).dtype
        if dtype is not None and found is not dtype:
            raise ValueError(f"Tensor type mismatch: {dtype.name} and {found.name}")
        dtype = found
    dtype = dtype or as_dtype("float32")
    if not dtype.is_floating:
        raise ValueError(f"Expected floating point type, got {dtype}.")
    return dtype


def is_numeric_tensor(tensor):
    return isinstance(tensor, (Tensor, CoreVariable)) and tensor.dtype.is_numeric


def assert_shapes(shapes, data=None, summarize=None, message=None, name=None):
    """Shapes with names for extents: the same name means the same extent."""
    pairs = list(shapes.items()) if isinstance(shapes, dict) else list(shapes)
    known = {}
    for x, spec in pairs:
        x = x.deref() if hasattr(x, "deref") else x
        x = any_tensor(x)
        found = list(x.shape)
        spec = [] if spec == () else list(spec) if isinstance(spec, (list, tuple, str)) else [spec]
        spec = [s if s != "." else None for s in spec]
        if "*" in spec:
            spec = spec[1:]
            found = found[len(found) - len(spec) :]
        elif Ellipsis in spec:
            at = spec.index(Ellipsis)
            after = len(spec) - at - 1
            found = found[:at] + found[len(found) - after :]
            spec = spec[:at] + spec[at + 1 :]
        if len(found) != len(spec):
            raise ValueError(
                f"{message + '. ' if message else ''}Specified by tensor {x.shape}: rank {len(found)} is not {len(spec)}"
            )
        for extent, want in zip(found, spec):
            if want is None or extent is None:
                continue
            if isinstance(want, (int, np.integer)) or (isinstance(want, str) and want.isdigit()):
                if extent != int(want):
                    raise ValueError(f"{message + '. ' if message else ''}Tensor dimension has size {extent}, expected {want}")
            elif known.setdefault(want, extent) != extent:
                raise ValueError(
                    f"{message + '. ' if message else ''}Tensor dimension '{want}' has sizes {known[want]} and {extent}"
                )


_flags = {"filter": True, "placement": False, "numerics": False}


def enable_traceback_filtering():
    _flags["filter"] = True


def disable_traceback_filtering():
    _flags["filter"] = False


def is_traceback_filtering_enabled():
    return _flags["filter"]


def set_log_device_placement(enabled):
    """Lines on stderr: which op runs on which device."""
    _flags["placement"] = bool(enabled)
    _core.set_log_placement(bool(enabled))


def get_log_device_placement():
    return _flags["placement"]


def enable_check_numerics(stack_height_limit=30, path_length_limit=50):
    raise NotImplementedError("tf.debugging.enable_check_numerics; tf.debugging.check_numerics looks at one tensor")


def disable_check_numerics():
    _flags["numerics"] = False


class experimental:
    """tf.debugging.experimental: TensorFlow's debugger V2, which this is no part of."""

    @staticmethod
    def enable_dump_debug_info(dump_root, tensor_debug_mode="NO_TENSOR", circular_buffer_size=1000, op_regex=None, tensor_dtypes=None):
        raise NotImplementedError("tf.debugging.experimental.enable_dump_debug_info: TensorFlow's debugger V2 is no part of this; tf.print and run_functions_eagerly are there")

    @staticmethod
    def disable_dump_debug_info():
        """Nothing is dumped."""
