"""tf.function, control flow and gradients."""
import numpy as np
import pytest

import tandem as tf


def test_traces_once_for_each_kind():
    count = []

    @tf.function
    def f(x):
        count.append(1)
        return x * 2

    assert f(tf.constant(1.0)).numpy() == 2 and f(tf.constant(5.0)).numpy() == 10
    assert len(count) == 1 == f.experimental_get_tracing_count()
    f(tf.constant([1.0, 2.0]))
    f(tf.constant([3.0, 4.0]))
    assert len(count) == 2
    f(3)
    f(3)
    f(4)
    assert len(count) == 4


def test_structures_and_python_values():
    @tf.function
    def f(d, flag=True):
        return {"sum": d["a"] + d["b"][0], "flag": flag, "none": None}

    made = f({"a": tf.constant(1), "b": (tf.constant(2),)})
    assert made["sum"].numpy() == 3 and made["none"] is None


def test_variables_are_made_on_the_first_call():
    class M(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = None

        @tf.function
        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(tf.ones_like(x))
            return self.v * x

    m, n = M(), M()
    assert m(tf.constant(3.0)).numpy() == 3 and m(tf.constant(4.0)).numpy() == 4
    n(tf.constant(1.0))
    assert n.v is not m.v and len(m.trainable_variables) == 1

    @tf.function
    def bad():
        return tf.Variable(1.0) + 1.0

    with pytest.raises(ValueError, match="singleton"):
        bad()
        bad()


def test_if_while_for_break_and_return():
    @tf.function
    def collatz(n):
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
            if steps > 1000:
                break
        return steps

    assert collatz(tf.constant(27)).numpy() == 111

    @tf.function
    def first_negative(xs):
        for x in xs:
            if x < 0:
                return x
        return tf.constant(0)

    assert first_negative(tf.constant([3, -4, -5])).numpy() == -4 and first_negative(tf.constant([3])).numpy() == 0

    @tf.function
    def both(a, b):
        return (a > 0 and b > 0) or not a < 10

    assert not both(tf.constant(1), tf.constant(-1)).numpy() and both(tf.constant(20), tf.constant(-1)).numpy()


def test_input_signature_and_unknown_extents():
    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def f(x):
        return tf.reshape(x, [tf.shape(x)[0] * 2])

    assert f(tf.ones([3, 2])).shape == (6,) and f(tf.ones([5, 2])).shape == (10,)
    assert f.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError):
        f(tf.ones([3, 3]))


def test_what_needs_data_runs_eagerly_and_says_so():
    @tf.function
    def f(x):
        return tf.boolean_mask(x, x > 0)

    assert f(tf.constant([1.0, -1.0, 2.0])).numpy().tolist() == [1, 2]
    assert "runs eagerly" in f.explain() and "boolean_mask" in f.explain()


def test_random_numbers_differ_between_calls():
    f = tf.function(lambda: tf.random.normal([3]))
    assert not np.array_equal(f().numpy(), f().numpy())


def test_get_concrete_function():
    f = tf.function(lambda x: x + 1.0)
    c = f.get_concrete_function(tf.TensorSpec([None], tf.float32))
    assert c(tf.constant([1.0, 2.0])).numpy().tolist() == [2, 3]
    assert c is f.get_concrete_function(tf.TensorSpec([None], tf.float32))


def test_run_functions_eagerly():
    seen = []
    f = tf.function(lambda x: seen.append(type(x)) or x)
    tf.config.run_functions_eagerly(True)
    try:
        f(1)
        f(1)
    finally:
        tf.config.run_functions_eagerly(False)
    assert seen == [int, int]


def test_control_flow_functions():
    assert tf.cond(tf.constant(True), lambda: 1, lambda: 2).numpy() == 1
    assert tf.while_loop(lambda i: i < 5, lambda i: [i + 2], [tf.constant(0)])[0].numpy() == 6
    assert tf.switch_case(tf.constant(1), [lambda: 10, lambda: 20]).numpy() == 20
    assert tf.map_fn(lambda x: x * x, tf.constant([1, 2, 3])).numpy().tolist() == [1, 4, 9]
    assert tf.scan(lambda a, x: a + x, tf.constant([1, 2, 3])).numpy().tolist() == [1, 3, 6]
    assert tf.foldr(lambda a, x: x - a, tf.constant([1, 2, 3])).numpy() == 2
    f = tf.function(lambda x: tf.cond(x > 0, lambda: x, lambda: 0.0))
    assert f(tf.constant(-3.0)).numpy() == 0
    g = tf.function(lambda x: tf.map_fn(lambda r: tf.reduce_sum(r), x))
    assert g(tf.constant([[1.0, 2.0], [3.0, 4.0]])).numpy().tolist() == [3, 7]


def test_tape():
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, x).numpy() == 108 and tape.gradient(y, {"x": x})["x"].numpy() == 6
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = v * v
    assert tape.watched_variables()[0] is v
    np.testing.assert_allclose(tape.jacobian(loss, v).numpy(), np.diag([2.0, 4.0]))
    with pytest.raises(RuntimeError, match="non-persistent"):
        tape.gradient(loss, v)
    with tf.GradientTape() as tape:
        y = x + 1.0
    assert tape.gradient(y, v) is None
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        first = inner.gradient(y, x)
    assert outer.gradient(first, x).numpy() == 18


def test_batch_jacobian():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    np.testing.assert_allclose(tape.batch_jacobian(y, x).numpy(), [np.diag([2.0, 4.0]), np.diag([6.0, 8.0])])


def test_custom_gradient():
    w = tf.Variable(2.0)

    @tf.custom_gradient
    def clipped(x):
        def backward(dy, variables=None):
            return tf.clip_by_value(dy, -1.0, 1.0), [dy * 100.0 for _ in variables]

        return x * w, backward

    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = clipped(x * 2.0) * 7.0
    assert y.numpy() == 84 and tape.gradient(y, x).numpy() == 2 and tape.gradient(y, w).numpy() == 700

    @tf.custom_gradient
    def doubled(x):
        return x, lambda dy: 2.0 * dy

    f = tf.function(lambda x: doubled(x) * 3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).numpy() == 6


def test_recompute_and_forward_mode():
    f = tf.recompute_grad(lambda x: tf.sin(x) * x)
    x = tf.constant(0.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.cos(0.5) * 0.5 + np.sin(0.5), rtol=1e-6)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(2.0)) as acc:
        y = x * x * x
    np.testing.assert_allclose(acc.jvp(y).numpy(), 2 * 3 * 0.25)


def test_a_call_costs_little_python():
    f = tf.function(lambda x: x + 1.0)
    x = tf.constant(1.0)
    f(x)
    assert f._plain is not None and f(x).numpy() == 2


def test_slices_of_an_unknown_extent_fit_each_other():
    @tf.function(input_signature=[tf.TensorSpec([None])])
    def f(x):
        return x[1:] - x[:-1], x[:2] + x[-2:], x[2:] * x[:-2]

    for values in ([1.0, 4.0, 9.0, 16.0], [1.0, 4.0], [3.0], []):
        x = np.array(values, "float32")
        for found, wanted in zip(f(tf.constant(x)), (x[1:] - x[:-1], x[:2] + x[-2:], x[2:] * x[:-2])):
            np.testing.assert_array_equal(found, wanted)
    assert f.explain().endswith(": compiled") and f.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    "body, wanted",
    [
        (lambda x, n: tf.one_hot([0, 2], n), lambda x: np.eye(len(x), dtype="float32")[[0, 2]]),
        (lambda x, n: tf.one_hot([[1], [9]], n, axis=1, dtype=tf.int32), lambda x: np.array([np.eye(len(x))[1], 0 * x])[:, :, None]),
        (lambda x, n: tf.linspace(-1.0, 3.0, n), lambda x: np.linspace(-1, 3, len(x), dtype="float32")),
        (lambda x, n: tf.repeat(x, n), lambda x: np.repeat(x, len(x))),
        (lambda x, n: tf.repeat(x[None], n, axis=0), lambda x: np.repeat(x[None], len(x), 0)),
        (lambda x, n: tf.tile(x, [n]), lambda x: np.tile(x, len(x))),
    ],
)  # fmt: skip
def test_extents_of_the_trace_as_arguments(body, wanted):
    f = tf.function(lambda x: body(x, tf.shape(x)[0]), input_signature=[tf.TensorSpec([None])])
    for n in (4, 3):
        x = np.arange(1, n + 1, dtype="float32")
        np.testing.assert_allclose(f(x), wanted(x), rtol=1e-6)
    assert f.explain().endswith(": compiled") and f.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    "body, wanted",
    [
        (lambda x, n: tf.zeros([n]), [0.0] * 3),
        (lambda x, n: tf.repeat(x, n), [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]),
        (lambda x, n: tf.one_hot(1, n), [0.0, 1.0, 0.0]),
        (lambda x, n: tf.reshape(tf.tile(x, [3]), [n, 2])[:, 1], [2.0] * 3),
        (lambda x, n: tf.linspace(0.0, 1.0, n), [0.0, 0.5, 1.0]),
    ],
)  # fmt: skip
def test_shapes_that_depend_on_data_run_eagerly(body, wanted):
    f = tf.function(body)
    assert f(tf.constant([1.0, 2.0]), tf.constant(3)).numpy().tolist() == wanted
    assert "runs eagerly" in f.explain() and "test_face_function.py:" in f.explain()


def test_a_loop_over_a_range_of_unknown_length():
    @tf.function
    def total(n, start):
        s = 0
        for i in tf.range(start, n, 2):
            if i > 100:
                break
            s += i
        return s

    assert [total(tf.constant(n), tf.constant(3)).numpy() for n in (3, 8, 1000)] == [0, 15, sum(range(3, 101, 2))]
    assert total.explain().endswith("compiled") and total.experimental_get_tracing_count() == 1
    as_tensor = tf.function(lambda n: tf.range(n) * 2)  # its shape depends on a value: it runs eagerly
    assert as_tensor(tf.constant(3)).numpy().tolist() == [0, 2, 4] and "eagerly" in as_tensor.explain()


def test_concrete_functions_of_strings_and_ragged_tensors_run_eagerly():
    double = tf.function(lambda a: a + a)
    concrete = double.get_concrete_function(tf.constant("a"))
    assert concrete(tf.constant("a")).numpy() == b"aa" and concrete(a=tf.constant("b")).numpy() == b"bb"
    assert concrete.inference_fn(tf.constant("c")).numpy() == b"cc"
    assert str(concrete.function_type).startswith("(a: TensorSpec(shape=(), dtype=tf.string, name=None)) -> ")
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a string tensor but is a int32 tensor"):
        concrete(tf.constant(1))
    rows = tf.ragged.constant([[1, 2], [3]])
    increment = tf.function(lambda x: x + 1)
    assert increment(rows).to_list() == [[2, 3], [4]]
    assert increment.get_concrete_function(rows)(rows).to_list() == [[2, 3], [4]]


def test_python_values_of_a_concrete_function_are_fixed():
    @tf.function
    def power(a, b):
        return a**b

    square = power.get_concrete_function(a=tf.TensorSpec(None, tf.float32), b=2)
    assert square(tf.constant(10.0)).numpy() == 100 and square(tf.constant(10.0), b=2).numpy() == 100
    with pytest.raises(TypeError, match="Can not cast 3 to Literal"):
        square(tf.constant(10.0), b=3)


def test_graph_def_has_the_nodes():
    f = tf.function(lambda x, y: tf.tanh(x) + y)
    nodes = f.get_concrete_function(tf.TensorSpec([None]), tf.constant(1.0)).graph.as_graph_def().node
    assert [n.op for n in nodes[:2]] == ["Placeholder", "Placeholder"] and [n.name for n in nodes[:2]] == ["x", "y"]
    by_op = {n.op: n for n in nodes}
    assert list(by_op["tanh"].input) == ["x"] and "y" in by_op["add"].input
    many = tf.function(lambda pairs: sum(tf.abs(tf.constant(y) - x) for x, y in pairs))
    sizes = [len(many.get_concrete_function([(1, 2)] * n).graph.as_graph_def().node) for n in (2, 5)]
    assert sizes[0] < sizes[1]


def test_traced_tensors_have_no_numpy():
    seen = []

    @tf.function
    def f(x):
        seen.append((hasattr(x, "numpy"), x))
        return x + 1

    f(tf.constant(1))
    assert seen[0][0] is False
    with pytest.raises(AttributeError, match="has no attribute 'numpy'"):
        seen[0][1].numpy()
    with pytest.raises(TypeError, match="outside the function"):
        tf.function(lambda b: b + seen[0][1])(tf.constant(2))


def test_a_function_that_makes_a_variable_in_each_call_is_an_error_in_the_first():
    @tf.function
    def f(x):
        return tf.Variable(1.0) + x

    with pytest.raises(ValueError, match="singleton tf.Variables"):
        f(1.0)


def test_a_used_tape_still_knows_its_variables():
    v = tf.Variable(2.0, name="watched")
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.gradient(y, v).numpy() == 4 and [w.name for w in tape.watched_variables()] == ["watched:0"]
    w = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        own, product = v, v * w
    assert tape.gradient(own, [v, w])[0].numpy() == 1 and tape.gradient(own, [v, w])[1] is None
    assert tape.gradient([own, product], v).numpy() == 4 and tape.gradient(own, v, output_gradients=tf.constant(5.0)).numpy() == 5


def test_printing_happens_each_time_a_function_runs(capfd):
    @tf.function
    def fizz(n):
        print("traced")
        for i in tf.range(1, n + 1):
            if i % 3 == 0:
                tf.print("fizz")
            else:
                tf.print(i)

    fizz(tf.constant(4))
    fizz(tf.constant(3))
    v = tf.Variable(1)

    @tf.function
    def shows(x):
        tf.print("v =", v, x, tf.constant("s"))

    shows(7)
    v.assign(5)
    shows(7)
    found = capfd.readouterr()
    assert found.err.split("\n") == ["1", "2", "fizz", "4", "1", "2", "fizz", 'v = 1 7 "s"', 'v = 5 7 "s"', ""]
    assert found.out == "traced\n"


def test_an_iterator_goes_on_in_each_call():
    @tf.function
    def double(iterator):
        return next(iterator) * 2

    iterator = iter(tf.data.Dataset.range(10))
    assert [double(iterator).numpy() for _ in range(3)] == [0, 2, 4]
    assert double.explain().endswith(": compiled") and double.experimental_get_tracing_count() == 1
