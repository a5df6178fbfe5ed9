"""Loops of compiled functions: datasets, scans, maps, ranges, arrays of tensors; gradients of graphs.

Numbers and texts are TensorFlow 2.21's.
"""
import sys

import numpy as np
import pytest

import tandem as tf
from function_support import is_compiled, values


# --- datasets -------------------------------------------------------------------------------------------------------------------

NUMBERS = tf.data.Dataset.range(6)


def test_a_loop_over_a_dataset():
    @tf.function
    def f(n):
        total, seen = tf.constant(0, tf.int64), 0
        for x in NUMBERS:
            seen += 1
            if x > n:
                break
            if x == 1:
                continue
            total += x
        return total, seen

    assert [values(f(tf.constant(n, tf.int64))) for n in (0, 1, 2, 9)] == [[0, 2], [0, 3], [2, 4], [14, 6]]
    assert is_compiled(f) and f.experimental_get_tracing_count() == 1


def test_loops_inside_of_loops_enumerate_and_zip():
    @tf.function
    def f(n, data):
        total = tf.constant(0, tf.int64)
        for _ in tf.range(n):
            for x in NUMBERS:
                for z in NUMBERS.take(2):
                    total += x * z
        for i, d in enumerate(data):
            total += i * d["a"]
        for a, b in zip(NUMBERS, NUMBERS.skip(1)):
            total += a * b
        return total

    data = tf.data.Dataset.from_tensor_slices({"a": np.arange(4)})
    assert f(tf.constant(3), data).numpy() == 45 + 14 + 40 and is_compiled(f)


def train_epoch(batches, step_size=0.001):
    w = tf.Variable(tf.zeros([2, 1]))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w - y) ** 2)
        w.assign_sub(step_size * tape.gradient(loss, w))
        return loss

    @tf.function
    def epoch():
        count, loss = 0, 0.0
        for x, y in batches:
            loss = step(x, y)
            count += 1
        return loss, count

    loss, count = epoch()
    return epoch, float(loss), int(count), w.numpy().ravel()


X = np.arange(24, dtype="float32").reshape(12, 2)
DATA = tf.data.Dataset.from_tensor_slices((X, X.sum(1, keepdims=True)))


def test_a_training_loop_over_a_dataset():
    epoch, loss, count, w = train_epoch(DATA.batch(4, drop_remainder=True))
    assert count == 3 and is_compiled(epoch)
    np.testing.assert_allclose([loss, *w], [270.95693969, 1.18137574, 1.27089429], rtol=1e-5)


def test_batches_of_several_sizes_run_eagerly_and_say_so():
    epoch, loss, count, w = train_epoch(DATA.batch(5))
    assert count == 3
    np.testing.assert_allclose([loss, *w], [23.28738213, 1.05528510, 1.13435388], rtol=1e-5)
    assert "may differ in shape" in epoch.explain() and "drop_remainder=True" in epoch.explain() and "test_compiled_loops.py:" in epoch.explain()


def test_iterators_inside_of_functions():
    outside = iter(NUMBERS)

    @tf.function
    def captured():
        return next(outside)

    assert [int(captured()) for _ in range(3)] == [0, 1, 2] and [int(x) for x in outside] == [3, 4, 5] and is_compiled(captured)
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        captured()
    partly = iter(NUMBERS)

    @tf.function
    def some(n):
        total = tf.constant(0, tf.int64)
        for x in partly:
            total += x
            if x >= n:
                break
        return total

    assert some(tf.constant(2, tf.int64)).numpy() == 3 and [int(x) for x in partly] == [3, 4, 5]


def test_gradients_around_what_takes_elements():
    numbers = tf.data.Dataset.range(1, 5)

    def product(w):
        made = w
        for x in numbers:
            made = made * w * tf.cast(x, tf.float32)
        return made

    @tf.function
    def inside(w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = product(w)
        return tape.gradient(y, w), y

    w = tf.constant(3.0)
    assert values(inside(w)) == [24 * 5 * 81.0, 24 * 243.0]
    assert "inside of a GradientTape takes elements of a dataset" in inside.explain()
    first_under_a_tape = tf.function(product)
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = first_under_a_tape(w)
    assert tape.gradient(y, w).numpy() == 24 * 5 * 81 and first_under_a_tape(w).numpy() == 24 * 243 and is_compiled(first_under_a_tape)
    whole = tf.function(product)
    walk = iter(numbers)
    one = tf.function(lambda w: w * tf.cast(next(walk), tf.float32))
    for _ in range(2):
        assert whole(w).numpy() == 24 * 243
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = whole(w)
        assert tape.gradient(y, w).numpy() == 24 * 5 * 81
    assert is_compiled(whole)
    found = []
    for _ in range(2):
        found.append(float(one(w)))
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = one(w)
        found += [float(y), float(tape.gradient(y, w))]
    assert found == [3.0, 6.0, 2.0, 9.0, 12.0, 4.0]


def test_python_loops_over_datasets_run_eagerly():
    @tf.function
    def comprehension():
        return tf.add_n([x for x in NUMBERS])

    assert comprehension().numpy() == 15 and "a Python loop over a dataset" in comprehension.explain()

    @tf.function
    def explicit():
        iterator = iter(NUMBERS)
        return next(iterator) + next(iterator) * 10

    assert explicit().numpy() == 10 and explicit().numpy() == 10 and is_compiled(explicit)

    @tf.function(autograph=False)
    def unconverted():
        total = tf.constant(0, tf.int64)
        for x in NUMBERS:
            total += x
        return total

    assert unconverted().numpy() == 15 and "runs eagerly" in unconverted.explain()


def test_iterators_as_arguments_do_not_trace_again():
    @tf.function
    def two(iterator):
        total = tf.constant(0, tf.int64)
        for _ in tf.range(2):
            total += next(iterator)
        return total

    @tf.function
    def one(iterator):
        found = iterator.get_next_as_optional()
        if found.has_value():
            result = found.get_value()
        else:
            result = tf.constant(-1, tf.int64)
        return result

    for _ in range(2):
        iterator = iter(NUMBERS)
        assert [int(two(iterator)) for _ in range(3)] == [1, 5, 9]
        iterator = iter(NUMBERS.take(2))
        assert [int(one(iterator)) for _ in range(3)] == [0, 1, -1]
    assert two.experimental_get_tracing_count() == one.experimental_get_tracing_count() == 1


def test_a_loop_that_an_exception_leaves_begins_anew():
    @tf.function
    def f(limit):
        total = tf.constant(0, tf.int64)
        for x in NUMBERS:
            tf.debugging.assert_less(x, limit, message="stop")
            total += x
        return total

    for _ in range(3):
        with pytest.raises(tf.errors.InvalidArgumentError, match="stop"):
            f(tf.constant(3, tf.int64))
        assert f(tf.constant(9, tf.int64)).numpy() == 15


@pytest.mark.timeout(60)
def test_elements_that_want_a_variable_of_the_step_are_errors_and_no_deadlock():
    v = tf.Variable(1, dtype=tf.int64)
    several = tf.data.Dataset.range(10**6).map(lambda x: x * v, num_parallel_calls=3).prefetch(4)
    iterator = iter(several)
    for _ in range(8):  # from now on other threads make the elements
        next(iterator)

    @tf.function
    def f(n):
        total = tf.constant(0, tf.int64)
        for _ in tf.range(n):
            v.assign_add(1)
            total += next(iterator)
        return total

    with pytest.raises(tf.errors.FailedPreconditionError, match="a host call asks for it"):
        f(tf.constant(100000))  # more than were made before


def test_calls_in_functions_of_a_dataset(capsys):
    def check(x):
        tf.print("element", x, output_stream=sys.stdout)
        tf.debugging.assert_less(x, tf.constant(3, tf.int64), message="too big")
        return tf.ensure_shape(tf.py_function(lambda t: t * 2, [x], tf.int64), [])

    doubled = NUMBERS.map(check)
    assert "called by Python" not in doubled.explain()
    found = []
    with pytest.raises(tf.errors.InvalidArgumentError, match="too big"):
        for x in doubled:
            found.append(int(x))
    assert found == [0, 2, 4] and capsys.readouterr().out == "element 0\nelement 1\nelement 2\nelement 3\n"


# --- scans, folds, maps, ranges, arrays -----------------------------------------------------------------------------------------

ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize(
    "body, wanted",
    [
        (lambda x: tf.scan(lambda a, e: a * 0.5 + e, x), [[[1.0, 2.0], [3.5, 5.0], [6.75, 8.5]]]),
        (lambda x: tf.scan(lambda a, e: a * 0.5 + e, x, reverse=True), [[[3.75, 5.5], [5.5, 7.0], [5.0, 6.0]]]),
        (lambda x: tf.scan(lambda a, e: (a[0] + tf.reduce_sum(e), a[1] + 1), x, (0.0, 0)), [[3.0, 10.0, 21.0], [1, 2, 3]]),
        (lambda x: tf.foldl(lambda a, e: a * 0.5 + e, x), [[6.75, 8.5]]),
        (lambda x: tf.foldr(lambda a, e: a * 0.5 + e, x), [[3.75, 5.5]]),
        (lambda x: tf.foldr(lambda a, e: a * 0.5 + tf.reduce_sum(e), x, 1.0), [9.375]),
        (lambda x: tf.map_fn(lambda r: (tf.cast(r[0], tf.int32), r * 2), x, fn_output_signature=(tf.int32, tf.float32)),
         [[1, 3, 5], [[2.0, 4.0], [6.0, 8.0], [10.0, 12.0]]]),
        (lambda x: tf.vectorized_map(lambda r: tf.reduce_sum(r * r), x), [[5.0, 25.0, 61.0]]),
        (lambda x: tf.map_fn(lambda i: x[0, 0] * tf.cast(i, tf.float32), tf.range(4), fn_output_signature=tf.float32), [[0.0, 1.0, 2.0, 3.0]]),
        (lambda x: tf.gradients(tf.reduce_sum(tf.scan(lambda a, e: a * e, x)), x), [[[19.0, 29.0], [6.0, 14.0], [3.0, 8.0]]]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("signature", [None, [tf.TensorSpec([None, 2])]])
def test_scans_and_maps_are_loops_of_the_graph(body, wanted, signature):
    f = tf.function(body, input_signature=signature)
    assert values(f(tf.constant(ROWS))) == wanted
    assert is_compiled(f)


def test_a_long_map_is_one_loop():
    f = tf.function(lambda x: tf.map_fn(lambda r: r * 2.0 + 1.0, x))
    x = tf.range(2000, dtype=tf.float32)
    assert f(x).numpy()[-1] == 1999 * 2 + 1
    assert len(f.get_concrete_function(x).graph_text().splitlines()) < 50


def test_loops_that_change_shapes_run_eagerly():
    @tf.function
    def f(x):
        return tf.while_loop(
            lambda i, a: i < 3, lambda i, a: (i + 1, tf.concat([a, a], 0)), (0, x), shape_invariants=(tf.TensorShape([]), tf.TensorShape([None]))
        )[1]

    assert f(tf.ones([1])).shape == (8,)
    assert "changes the shape of a variable" in f.explain() and "test_compiled_loops.py:" in f.explain()


def test_ranges_of_data():
    @tf.function
    def down(n):
        total = 0
        for i in tf.range(n, 0, -2):
            if i == 5:
                continue
            total += i
        for i in range(n):
            total += i
        return total

    assert [int(down(tf.constant(n))) for n in (9, 4, 0)] == [20 + 36, 6 + 6, 0] and is_compiled(down)

    @tf.function
    def as_tensor(n):
        return tf.range(n) * 2

    assert as_tensor(tf.constant(3)).numpy().tolist() == [0, 2, 4] and "tf.range of a tensor" in as_tensor.explain()


def test_tensor_arrays_stay_compiled():
    @tf.function
    def plain(x):
        made = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
        for i in tf.range(tf.shape(x)[0]):
            if x[i, 0] > 1.0:
                made = made.write(i, x[i] * 2.0)
            else:
                made = made.write(i, x[i])
        return made.stack()

    @tf.function
    def nested(x):
        made = tf.TensorArray(tf.float32, size=2)
        for i in tf.range(2):
            for j in tf.range(3):
                if j == 1:
                    made = made.write(i, x * tf.cast(i + j, tf.float32))
        return made.concat()

    @tf.function
    def loop(x):
        def body(i, made, s):
            return i + 1, made.write(i, s), s * 2.0

        _, made, s = tf.while_loop(lambda i, made, s: i < 3, body, (0, tf.TensorArray(tf.float32, 3), x))
        return made.stack(), s

    @tf.function
    def differentiated(x):
        rows = tf.TensorArray(tf.float32, 3).unstack(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            made, z = tf.TensorArray(tf.float32, 3), x[0]
            for i in tf.range(3):
                z = z * x[i]
                made = made.write(i, z)
            total = tf.reduce_sum(made.stack())
        return rows.read(rows.size() - 1), tape.gradient(total, x)

    assert values(plain(tf.constant([[1.0, 2.0], [3.0, 4.0]]))) == [[[1.0, 2.0], [6.0, 8.0]]]
    assert values(nested(tf.constant([1.0, 2.0]))) == [[1.0, 2.0, 2.0, 4.0]]
    assert values(loop(tf.constant([1.0, 2.0]))) == [[[1.0, 2.0], [2.0, 4.0], [4.0, 8.0]], [8.0, 16.0]]
    assert values(differentiated(tf.constant(ROWS))) == [[5.0, 6.0], [[38.0, 116.0], [6.0, 28.0], [3.0, 16.0]]]
    assert all(is_compiled(f) for f in (plain, nested, loop, differentiated))


# --- tf.gradients ---------------------------------------------------------------------------------------------------------------


def test_gradients_of_a_graph():
    w = tf.Variable([[2.0], [3.0]])

    @tf.function
    def f(x):
        h = x * 3.0
        y = tf.reduce_sum(h * h)
        return (
            tf.gradients(y, [x, h]),
            tf.gradients(tf.gradients(y, x)[0], h),
            tf.gradients([x * 2.0, x * 3.0], x, grad_ys=[x, None]),
            tf.gradients(tf.reduce_sum(tf.matmul(x, w)), [w, x]),
            tf.gradients(tf.constant(1.0) * 2.0, [x], unconnected_gradients="zero"),
            [g is None for g in tf.gradients(tf.constant(1.0) * 2.0, [x])],
            tf.gradients(tf.reduce_sum(h * x), [x, h], stop_gradients=[h]),
        )

    found = values(f(tf.constant([[1.0, 2.0]])))
    wanted = [[[18.0, 36.0]], [[6.0, 12.0]], [[6.0, 6.0]], [[5.0, 7.0]], [[1.0], [2.0]], [[2.0, 3.0]], [[0.0, 0.0]], True, [[3.0, 6.0]], [[1.0, 2.0]]]
    assert found == wanted and is_compiled(f)


def test_hessians():
    f = tf.function(lambda x: tf.hessians(tf.reduce_sum(x**3) + x[0] * x[1], x))
    assert values(f(tf.constant([1.0, 2.0]))) == [[[6.0, 1.0], [1.0, 12.0]]]


def test_gradients_where_there_is_no_graph_are_errors():
    with pytest.raises(RuntimeError, match="tf.gradients is not supported when eager execution is enabled"):
        tf.gradients(tf.constant(1.0), tf.constant(1.0))

    @tf.function
    def inside(x):
        y = x * x
        return tf.cond(x > 0.0, lambda: tf.gradients(y, x)[0], lambda: x)

    with pytest.raises(tf.errors.InvalidArgumentError, match="was computed outside of the branch or loop that asks"):
        inside(tf.constant(1.0))
