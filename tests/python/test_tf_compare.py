"""The comparer of `./dev tf-compare`: that it sees what differs."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tools", "tf_compare"))

from cases import Cases  # noqa: E402
from compare import compare, numbers  # noqa: E402
from families import elementwise  # noqa: E402


def case(note=""):
    return {"function": "tf.math.exp", "code": "", "x": [], "grad": [], "seed": 1, "note": note}


def tensor(values, dtype="float32"):
    return {"value": ("tensor", dtype, np.array(values, dtype))}


def test_units_in_the_last_place():
    one = np.ones(2, np.float32)
    later = np.nextafter(one, np.float32(2))
    assert numbers(one, later, 1, "element") is None and numbers(one, later, 0, "element")[0] == "value"
    small = np.array([1e-6, 1.0], np.float32)
    moved = small + np.array([1e-8, 0], np.float32)
    assert numbers(small, moved, 4, "element")[0] == "value" and numbers(small, moved, 4, "tensor") is None
    assert numbers(np.array([1 + 1e-3j]), np.array([1 + 1.1e-3j]), 4, "element")[0] == "value"


def test_what_is_no_number():
    special = np.array([np.nan, np.inf, -np.inf, 0.0], np.float32)
    assert numbers(special, special.copy(), 0, "element") is None
    for place in range(3):
        other = special.copy()
        other[place] = 1
        assert numbers(special, other, 1e9, "element")[0] == "value"


def test_kinds():
    error = {"value": ("error", "InvalidArgumentError", "no")}
    assert compare(case(), tensor([1]), tensor([1])) is None and compare(case(), error, error) is None
    assert compare(case(), tensor([1]), tensor([2]))[0] == "value"
    assert compare(case("denormal"), tensor([1]), tensor([2]))[0] == "denormal"
    assert compare(case(), tensor([1]), tensor([1], "float64"))[0] == "dtype"
    assert compare(case(), tensor([1]), tensor([[1]]))[0] == "shape"
    assert compare(case(), tensor([1]), {"value": ("list", [])})[0] == "structure"
    assert compare(case(), error, tensor([1]))[0] == "accepts" and compare(case(), tensor([1]), error)[0] == "fails"
    assert compare(case(), {"value": ("error", "NotFoundError", "Could not find device")}, tensor([1]))[0] == "wider"
    assert compare(case(), None, tensor([1]))[0] == "ended" and compare(case(), tensor([1]), None)[0] == "ended"
    assert compare(case(), None, None) is None


def test_gradients():
    with_gradient = [{**tensor([1]), "gradient": [g]} for g in (("tensor", "float32", np.float32([2])), ("tensor", "float32", np.float32([3])), ("python", None))]
    for i, theirs in enumerate(with_gradient):
        for j, ours in enumerate(with_gradient):
            found = compare(case(), theirs, ours)
            assert found is None if i == j else found[0] == "gradient"


def test_cases_depend_on_the_seed_and_the_function_alone():
    def made(seed, only):
        cases = Cases(seed, 1, only)
        elementwise.fill(cases)
        return [c for c in cases.all if c["function"] == "tf.math.add"]

    alone, among, other = made(1, ["tf.math.add"]), made(1, ["tf.math"]), made(2, ["tf.math.add"])
    assert len(alone) > 50 and len(alone) == len(among)
    assert all(a.tobytes() == b.tobytes() for c, d in zip(alone, among) for a, b in zip(c["x"], d["x"]))
    assert not all(a.tobytes() == b.tobytes() for c, d in zip(alone, other) for a, b in zip(c["x"], d["x"]))
