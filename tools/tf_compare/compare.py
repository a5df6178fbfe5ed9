"""Two results of one case: equal, or what differs. Kinds of differences, worst first: value, dtype, shape, gradient, error."""
import ml_dtypes
import numpy as np

from tolerances import tolerance

FAILURES = ["value", "dtype", "shape", "structure", "gradient", "fails", "accepts", "ended"]

NO_FAILURES = ["wider", "denormal"]

# What TensorFlow says when it has no kernel for a type on a CPU, or its graph builder allows fewer types. It is no statement about what is right.
NO_KERNEL = ("UnimplementedError", "NotFoundError")
NO_TYPE = ("Value for attr", "Could not find device", "not in the list of allowed values", "not supported", "could not be found in the list")


def compare(case, theirs, ours):
    """(kind, text) of the first difference, or None.

    Kinds that are no failures: "wider", where TensorFlow has no kernel for the type and we have one; "denormal", where TensorFlow takes an
    argument for 0 that is none.
    """
    for side, other, who in ((ours, theirs, "tandem"), (theirs, ours, "TensorFlow")):
        if side is None:
            return None if other is None else ("ended", f"the process of {who} ended")
    a, b = theirs["value"], ours["value"]
    if a[0] == "error" and b[0] == "error":
        return None
    if a[0] == "error":
        if a[1] in NO_KERNEL or any(t in a[2] for t in NO_TYPE):
            return ("wider", f"TensorFlow: {a[1]}")
        return ("accepts", f"TensorFlow says {a[1]}: {a[2][:160]}; tandem gives {short(b)}")
    if b[0] == "error":
        return ("fails", f"tandem says {b[1]}: {b[2][:160]}; TensorFlow gives {short(a)}")
    limit = tolerance(case["function"])
    found = differs(a, b, limit.value, limit.scale)
    if found:
        return ("denormal", found[1]) if found[0] == "value" and case["note"] == "denormal" else found
    a, b = theirs.get("gradient"), ours.get("gradient")
    if a is None and b is None:
        return None
    if a is None or a[0] == "error":
        # A function that TensorFlow gives no gradient of, and we do.
        return None
    if b is None or b[0] == "error":
        return ("gradient", f"tandem: {b[2][:160] if b else 'no floating result'}")
    for i, (theirs, ours) in enumerate(zip(a, b)):
        if theirs == ("python", None):
            if ours != ("python", None) and np.any(ours[-1] != 0):
                return ("gradient", f"argument {i}: TensorFlow gives none, tandem {short(ours)}")
            continue
        if ours == ("python", None):
            if np.any(theirs[-1] != 0):
                return ("gradient", f"argument {i}: tandem gives none, TensorFlow {short(theirs)}")
            continue
        found = differs(theirs, ours, limit.gradient, "tensor")
        if found:
            return ("gradient", f"argument {i}: {found[0]}: {found[1]}")
    return None


def differs(a, b, limit, scale):
    if a[0] == "list" and b[0] == "list" or a[0] == "dict" and b[0] == "dict":
        if a[0] == "dict":
            if list(a[1]) != list(b[1]):
                return ("structure", f"keys {list(a[1])} and {list(b[1])}")
            pairs = zip(a[1].values(), b[1].values())
        else:
            if len(a[1]) != len(b[1]):
                return ("structure", f"{len(a[1])} parts and {len(b[1])}")
            pairs = zip(a[1], b[1])
        for i, (x, y) in enumerate(pairs):
            found = differs(x, y, limit, scale)
            if found:
                return (found[0], f"part {i}: {found[1]}")
        return None
    if a[0] != b[0]:
        # A NumPy array and a NumPy number, or a tensor where the other gives Python's number, are told apart.
        return ("structure", f"{short(a)} and {short(b)}")
    if a[0] == "python":
        same = a[1] == b[1] or a[1] != a[1] and b[1] != b[1]
        if not same and isinstance(a[1], float) and isinstance(b[1], float):
            return numbers(np.float64(a[1]), np.float64(b[1]), limit, scale)
        return None if same else ("value", f"{a[1]!r} and {b[1]!r}")
    if a[0] == "other":
        return None if a == b else ("structure", f"{a[1]} and {b[1]}")
    if a[1] != b[1]:
        return ("dtype", f"{a[1]} and {b[1]}")
    if a[0] == "ragged":
        if len(a[2]) != len(b[2]) or any(not np.array_equal(x, y) for x, y in zip(a[2], b[2])):
            return ("shape", f"row splits {[s.tolist() for s in a[2]]} and {[s.tolist() for s in b[2]]}"[:200])
        if any(x.dtype != y.dtype for x, y in zip(a[2], b[2])):
            return ("dtype", f"row splits of {a[2][0].dtype} and {b[2][0].dtype}")
    if a[0] == "sparse":
        if not np.array_equal(a[2], b[2]) or not np.array_equal(a[4], b[4]):
            return ("shape", f"indices {a[2].tolist()} of {a[4].tolist()} and {b[2].tolist()} of {b[4].tolist()}"[:240])
        return numbers(a[3], b[3], limit, scale)
    return numbers(a[-1], b[-1], limit, scale)


def numbers(a, b, limit, scale):
    """Arrays, element by element. `limit` is in units in the last place of TensorFlow's number, or of the tensor's largest."""
    if a.shape != b.shape:
        return ("shape", f"{a.shape} and {b.shape}")
    if a.dtype.kind == "c":
        return complexes(a, b, limit, scale)
    if a.dtype.kind != "f" and a.dtype.name != "bfloat16":
        same = a == b
        return None if np.all(same) else at(a, b, ~np.asarray(same))
    limits = ml_dtypes.finfo(a.dtype)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(x), np.abs(y))
        finite = np.isfinite(x) & np.isfinite(y)
        if scale == "tensor":
            size = np.full_like(size, np.max(size[finite], initial=0))
        unit = np.maximum(np.exp2(np.floor(np.log2(np.maximum(size, 1e-300)))) * float(limits.eps), float(limits.smallest_subnormal))
        # TensorFlow's kernels give zero for denormal results; ours keep them.
        tiny = float(limits.smallest_normal)
        wrong = np.abs(x - y) > limit * unit
        wrong &= ~((np.abs(x) < tiny) & (np.abs(y) < tiny))
    wrong = np.where(finite, wrong, ~((x == y) | (np.isnan(x) & np.isnan(y))))
    if not np.any(wrong):
        return None
    with np.errstate(all="ignore"):
        worst = np.where(finite & wrong, np.abs(x - y) / unit, np.where(wrong, np.inf, 0)).max()
    return at(a, b, wrong, f" ({worst:.3g} ulp)")


def complexes(a, b, limit, scale):
    """As distances in the plane: a part that is small beside the other is known as well as the whole number."""
    special = ~(np.isfinite(a.real) & np.isfinite(a.imag) & np.isfinite(b.real) & np.isfinite(b.imag))
    for part in ("real", "imag"):
        x, y = np.where(special, getattr(a, part), 0), np.where(special, getattr(b, part), 0)
        found = numbers(x, y, limit, scale)
        if found:
            return found
    with np.errstate(all="ignore"):
        size = np.where(special, 0, np.maximum(np.abs(a), np.abs(b)))
        if scale == "tensor":
            size = np.full_like(size, np.max(size, initial=0))
        wrong = np.where(special, 0, np.abs(a - b)) > limit * np.maximum(size * np.finfo(a.real.dtype).eps, np.finfo(a.real.dtype).smallest_normal)
    return at(a, b, wrong) if np.any(wrong) else None


def at(a, b, wrong, more=""):
    where = np.argwhere(wrong)
    place = tuple(int(i) for i in where[0])
    return ("value", f"{len(where)} of {a.size} elements, first at {place}: {a[place]!r} and {b[place]!r}{more}")


def short(r):
    if r[0] in ("tensor", "array"):
        return f"{r[1]}{list(r[2].shape)}"
    if r[0] in ("list", "dict"):
        return f"{r[0]} of {len(r[1])}"
    return f"{r[0]} {str(r[1])[:60]}"
