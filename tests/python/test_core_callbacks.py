"""tandem._core: custom gradients, functions that are computed again, host calls, eager scopes, jacobians, and errors by code."""
import gc
import threading
import weakref

import numpy as np
import pytest

import tandem
from tandem import _core, errors

ops = _core.ops


def tensor(values):
    return _core.ops.identity(np.asarray(values, "float32"))


def values(t):
    return np.asarray(t.numpy())


def compiled(body):
    function = _core.Function(lambda x: [body(x[0])])
    return lambda x: function([x])[0]


def gradient(body, x):
    tape = _core.Tape()
    tape.watch(x)
    return tape.gradients([body(x)], [x])[0]


def softplus(x):
    def f(inputs):
        e = ops.exp(inputs[0])
        return [ops.log(1 + e)], lambda g: [g[0] * (1 - 1 / (1 + e))]

    return _core.custom_gradient(f, [x])[0]


@pytest.mark.parametrize("way", ["at once", "tape inside", "tape around"])
def test_custom_gradient(way):
    x = tensor([0.0, 1.0])
    if way == "tape inside":
        found = compiled(lambda t: gradient(softplus, t))(x)
    else:
        found = gradient(compiled(softplus) if way == "tape around" else softplus, x)
    np.testing.assert_allclose(values(found), 1 / (1 + np.exp([0.0, -1.0])), rtol=1e-6)


def test_custom_gradient_of_variables():
    w = _core.Variable(np.float32(3.0))

    def f(inputs):
        def backward(gradients, numbers):
            assert numbers == [w.number]
            return [None, gradients[0] * 100]

        return [inputs[0] * w.read()], backward

    x = tensor(2.0)
    tape = _core.Tape()
    tape.watch(x)
    y = _core.custom_gradient(f, [x])[0]
    dx, dw = tape.gradients([y], [x, w])
    assert dx is None and values(dw) == 100


def test_an_exception_of_a_gradient_arrives_as_itself():
    def f(inputs):
        def backward(gradients):
            raise KeyError("mine")

        return [inputs[0] * 2], backward

    with pytest.raises(KeyError, match="mine"):
        gradient(lambda x: _core.custom_gradient(f, [x])[0], tensor(1.0))


def test_remat():
    calls = []

    def block(inputs):
        calls.append(1)
        return [ops.tanh(ops.exp(inputs[0]))]

    x = tensor([0.5, -0.5])
    wanted = values(gradient(lambda t: block([t])[0], x))
    for way in (lambda t: gradient(lambda u: _core.remat(block, [u])[0], t), compiled(lambda t: gradient(lambda u: _core.remat(block, [u])[0], t))):
        np.testing.assert_allclose(values(way(x)), wanted, rtol=1e-6)


# --- host calls ----------------------------------------------------------------------------------------------------------------------------


def test_host_call_computes():
    def reverse(inputs):
        return [values(inputs[0])[::-1].copy()]

    def body(x):
        return _core.host_call(reverse, [x * 2], [("float32", (3,))])[0] + 1

    for f in (body, compiled(body)):
        np.testing.assert_array_equal(values(f(tensor([1, 2, 3]))), [7, 5, 3])


def test_host_calls_happen_in_order_in_branches_and_loops():
    log = []

    def note(t):
        _core.host_call(lambda inputs: log.append(float(values(inputs[0]))) or [], [t])

    def body(x):
        note(x)
        _core.cond(x > 0, lambda _: [note(x * 10), x][1:], lambda _: [x])
        last = _core.while_loop(lambda s: [s[0] < 4], lambda s: [note(s[0]), s[0] * 2][1:], [x])[0]
        note(last)
        return x

    f = compiled(body)
    f(tensor(1.0))
    assert log == [1, 10, 1, 2, 4]
    log.clear()
    f(tensor(3.0))
    assert log == [3, 30, 3, 6]


def test_an_exception_of_a_host_call_arrives_as_itself_and_the_function_works_again():
    fails = [True]

    class Mine(Exception):
        pass

    def check(inputs):
        if fails[0]:
            raise Mine("x")
        return []

    def body(x):
        _core.host_call(check, [x])
        return x + 1

    f = compiled(body)
    with pytest.raises(Mine):
        f(tensor(1.0))
    fails[0] = False
    assert values(f(tensor(1.0))) == 2


def test_a_variable_of_the_step_is_an_error_and_no_deadlock():
    w = _core.Variable(np.float32(1.0))

    def body(x):
        w.store_add(x)
        _core.host_call(lambda _: [w.read(), []][1], [])
        return x

    f = compiled(body)
    with pytest.raises(errors.FailedPreconditionError, match="a host call asks for it"):
        f(tensor(1.0))
    w.store(5.0)
    assert values(w.read()) == 5


def test_host_calls_from_threads():
    f = compiled(lambda x: _core.host_call(lambda i: [i[0] * 2], [x], [("float32", ())])[0])
    found = []
    threads = [threading.Thread(target=lambda n=n: found.append((n, float(values(f(tensor(n))))))) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [(n, 2.0 * n) for n in range(8)]


class Model:
    """Holds its step, which calls back a method of the model: a cycle."""

    def __init__(self):
        self.step = _core.Function(self.body)

    def body(self, x):
        _core.host_call(self.note, x)
        return x

    def note(self, x):
        return []


def test_models_with_host_calls_are_collected():
    model = Model()
    model.step([tensor(1.0)])
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_dropped_functions_are_freed():
    class Body:
        def __call__(self, x):
            return [x[0] + 1]

    body = Body()
    gone = weakref.ref(body)
    f = _core.Function(body)
    f([tensor(1.0)])
    del f, body
    gc.collect()
    _core.release_memory()
    assert gone() is None


# --- scopes, jacobians, errors ---------------------------------------------------------------------------------------------------------------


def test_eager_scope():
    made = []

    def body(x):
        with _core.EagerScope():
            assert not _core.is_tracing()
            made.append(ops.add(tensor(1.0), 2))
        assert _core.is_tracing()
        return x + made[-1]

    f = compiled(body)
    assert values(f(tensor(1.0))) == 4 and values(made[0]) == 3

    def fails(x):
        with _core.EagerScope():
            raise KeyError("inside")

    with pytest.raises(KeyError):
        compiled(fails)(tensor(1.0))
    assert not _core.is_tracing()


def test_variables_made_while_tracing():
    made = []

    def body(x):
        if not made:
            made.append(_core.Variable(ops.full(2.0, shape=(2,)) * 3))
        return x * made[0].read()

    f = compiled(body)
    np.testing.assert_array_equal(values(f(tensor([1, 2]))), [6, 12])
    np.testing.assert_array_equal(values(made[0].read()), [6, 6])


def test_jacobian():
    x = tensor([1, 2, 3])
    tape = _core.Tape(persistent=True)
    tape.watch(x)
    y = x * x
    np.testing.assert_array_equal(values(tape.jacobian(y, x)), np.diag([2.0, 4, 6]))
    b = tensor([[1, 2], [3, 4]])
    tape.watch(b)
    np.testing.assert_array_equal(values(tape.batch_jacobian(b * b, b)), [np.diag([2.0, 4]), np.diag([6.0, 8])])


def test_errors_by_code():
    with pytest.raises(errors.InvalidArgumentError):
        ops.matmul(tensor([[1.0, 2.0]]), tensor([[1.0, 2.0]]))
    for kind in (errors.InvalidArgumentError, errors.OutOfRangeError, IndexError):
        with pytest.raises(kind):
            tensor([1.0])[7]
    assert tandem.errors is errors
