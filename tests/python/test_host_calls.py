"""Calls of the program inside compiled functions: printing, checks, Python functions; and whose line errors name.

Numbers and texts are TensorFlow 2.21's.
"""
import gc
import os
import sys
import threading
import weakref

import numpy as np
import pytest

import tandem as tf
from function_support import is_compiled, values


# --- tf.print -------------------------------------------------------------------------------------------------------------------


def show_all(x, y):
    tf.print("hello", x, {"b": x, "a": [1, "s", y]}, (x,), y, output_stream=sys.stdout)
    tf.print("plain", 3, 1.5, True, None, [1, "q"], "q", output_stream=sys.stdout)
    tf.print(x, y, sep="|", end="<end>\n", output_stream=sys.stdout)
    tf.print([x, "s"], [["a"]], tf.constant("st"), tf.constant(["u", "v"]), output_stream=sys.stdout)
    tf.print(tf.range(20), summarize=-1, output_stream=sys.stdout)
    tf.print(tf.range(20), summarize=1, output_stream=sys.stdout)
    tf.print(tf.reshape(tf.range(16), [8, 2]), tf.zeros([2, 1, 2]), output_stream=sys.stdout)
    numbers = [1e-5, 1e10, 1234567.0, 1e-4, 123456.7, -0.0]
    tf.print(tf.constant(numbers), tf.constant(1 / 3, tf.float64), tf.constant([True, False]), output_stream=sys.stdout)
    tf.print(tf.constant(1 / 3, tf.float16), tf.constant([np.nan, np.inf, -np.inf]), tf.constant([]), output_stream=sys.stdout)
    tf.print(tf.constant("alone"), output_stream=sys.stdout)
    return x


PRINTED = """hello [1 2] {'a': [1, 's', 3], 'b': [1 2]} ([1 2],) 3
plain 3 1.5 True None [1, 'q'] q
[1 2]|3<end>
[[1 2], 's'] [['a']] "st" ["u" "v"]
[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19]
[0 ... 19]
[[0 1]
 [2 3]
 [4 5]
 ...
 [10 11]
 [12 13]
 [14 15]] [[[0 0]]

 [[0 0]]]
[1e-05 1e+10 1234567 0.0001 123456.703 -0] 0.33333333333333331 [1 0]
0.333251953 [nan inf -inf] []
alone
"""


@pytest.mark.parametrize("compiled", [False, True])
def test_print_writes_as_tensorflow(compiled, capsys):
    f = tf.function(show_all) if compiled else show_all
    for _ in range(2):
        f(tf.constant([1.0, 2.0]), tf.constant(3))
        assert capsys.readouterr().out == PRINTED
    assert not compiled or is_compiled(f)


def test_print_without_tensors_appears_at_each_call_and_in_order(capsys):
    v = tf.Variable(1.0)

    @tf.function
    def f(n):
        tf.print("begin", output_stream=sys.stdout)
        for i in tf.range(n):
            if i % 2 == 0:
                tf.print("even", i, v, output_stream=sys.stdout)
            else:
                tf.print("odd", output_stream=sys.stdout)
            v.assign_add(1.0)
        tf.print("end")

    for _ in range(2):
        v.assign(1.0)
        f(tf.constant(3))
        captured = capsys.readouterr()
        assert captured.out == "begin\neven 0 1\nodd\neven 2 3\n" and captured.err == "end\n"
    assert is_compiled(f) and f.experimental_get_tracing_count() == 1


def test_print_to_a_file_and_a_function(tmp_path):
    path, lines = tmp_path / "out.txt", []

    @tf.function
    def f(x):
        tf.print(x, output_stream=f"file://{path}")
        tf.print("a", x, output_stream=lines.append)
        return x

    f(tf.constant(1))
    f(tf.constant(2))
    assert path.read_text() == "1\n2\n" and lines == ["a 1\n", "a 2\n"]


def test_summaries_are_written_when_the_function_runs(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    writer, steps = tf.summary.create_file_writer(str(tmp_path)), tf.Variable(0, dtype=tf.int64)

    @tf.function
    def f(x):
        steps.assign_add(1)
        with writer.as_default(), tf.name_scope("inside"):
            tf.summary.scalar("loss", x * 2.0, step=steps)
            with tf.summary.record_if(steps > 2):
                tf.summary.histogram("late", [x, x], step=steps)
        return x

    for i in range(4):
        f(tf.constant(float(i)))
    writer.flush()
    events = EventAccumulator(str(tmp_path), size_guidance={"tensors": 0})
    events.Reload()
    found = [(e.step, float(np.frombuffer(e.tensor_proto.tensor_content or np.float32(e.tensor_proto.float_val[0]).tobytes(), "float32")[0]))
             for e in events.Tensors("inside/loss")]  # fmt: skip
    assert found == [(1, 0.0), (2, 2.0), (3, 4.0), (4, 6.0)] and [e.step for e in events.Tensors("inside/late")] == [3, 4]
    assert is_compiled(f)


# --- checks ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "check, bad, text",
    [
        (lambda x: tf.debugging.assert_less(x, 10.0, message="too big"), [1.0, 20.0, 30.0, 40.0],
         "assertion failed: [too big] [Condition x < y did not hold element-wise:] [x (x:0) = ] [1 20 30...] [y (y:0) = ] [10]"),
        (lambda x: tf.debugging.assert_positive(x), [1, -3], "assertion failed: [Condition x > 0 did not hold element-wise:] [x (x:0) = ] [1 -3]"),
        (lambda x: tf.debugging.Assert(tf.reduce_all(x > 0), [x, "text", x[0]], summarize=2), [1, -3, 4, 5], "assertion failed: [1 -3...] [text] [1]"),
        (lambda x: tf.Assert(tf.reduce_all(x > 0), ["x is", x]), [[1, -3], [4, 5]], "assertion failed: [x is] [[1 -3][4...]...]"),
        (lambda x: tf.debugging.check_numerics(x, "bad"), [1, np.nan, np.inf], "bad : Tensor had Inf and NaN values"),
    ],
)  # fmt: skip
def test_assertions_say_what_tensorflow_says(check, bad, text):
    @tf.function
    def f(x):
        check(x)
        return x + 1

    bad = tf.constant(bad)
    good = tf.ones_like(bad)
    assert f(good).numpy().tolist() == (good.numpy() + 1).tolist()
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError) as e:
            f(bad)
        assert e.value.message.splitlines()[0] == text
    assert f(good) is not None and is_compiled(f)


def test_assertions_in_branches_loops_and_scans():
    @tf.function
    def f(x, limit):
        for _ in tf.range(3):
            if x > 0.0:
                tf.debugging.assert_less(x, limit, message="in the loop")
            x = x * 2.0
        tf.scan(lambda a, e: check(a + e), tf.stack([x, x]))
        return x

    def check(a):
        tf.Assert(a < 1000.0, ["in the scan", a])
        return a

    assert f(tf.constant(1.0), tf.constant(10.0)).numpy() == 8
    assert f(tf.constant(-100.0), tf.constant(0.0)).numpy() == -800
    with pytest.raises(tf.errors.InvalidArgumentError, match="in the loop"):
        f(tf.constant(1.0), tf.constant(3.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[in the scan\] \[1600\]"):
        f(tf.constant(100.0), tf.constant(1000.0))
    assert is_compiled(f)


def test_a_python_assert_over_a_tensor():
    @tf.function
    def f(x):
        assert x > 0, "must be positive"
        return x

    assert f(tf.constant(1)).numpy() == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
        f(tf.constant(-1))


# --- Python functions -----------------------------------------------------------------------------------------------------------


def tell_by_spec(f, x):
    return tf.py_function(f, [x], tf.TensorSpec([3], tf.float32))


def tell_by_set_shape(f, x):
    y = tf.py_function(f, [x], tf.float32)
    y.set_shape([3])
    return y


def tell_by_ensure_shape(f, x):
    return tf.ensure_shape(tf.py_function(f, [x], tf.float32), [3])


def tell_by_reshape(f, x):
    return tf.reshape(tf.reshape(tf.py_function(f, [x], tf.float32), [3, 1]), [3])


@pytest.mark.parametrize("tell", [tell_by_spec, tell_by_set_shape, tell_by_ensure_shape, tell_by_reshape])
def test_py_function_is_compiled_and_has_a_gradient(tell):
    calls = []

    def square(t):
        calls.append(t)
        return t * t * 2.0

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tell(square, x)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, x), loss

    for _ in range(2):
        calls.clear()
        assert values(f(tf.constant([1.0, 2.0, 3.0]))) == [[16.0, 128.0, 432.0], 392.0]
        assert len(calls) == 1  # the way back uses what the call has recorded
    assert is_compiled(f)


def test_gradients_around_functions_and_loops_with_py_function():
    @tf.function
    def f(x):
        for _ in tf.range(3):
            x = tf.ensure_shape(tf.py_function(lambda t: t * t, [x], tf.float32), [2])
        return tf.reduce_sum(x)

    x = tf.constant([1.0, 1.1])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x), 8 * x.numpy() ** 7, rtol=1e-5)
    assert is_compiled(f)


def test_numpy_function_several_results_and_no_gradient():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total, order = tf.numpy_function(lambda t: (t.sum(keepdims=True), np.argsort(t)), [x], [tf.float32, tf.int64])
            total, order = tf.ensure_shape(total, [1]), tf.reshape(order, [3, 1])
        return total, order, tape.gradient(total, x) is None

    total, order, unconnected = f(tf.constant([3.0, 1.0, 2.0]))
    assert total.numpy().tolist() == [6.0] and order.numpy().tolist() == [[1], [2], [0]] and bool(unconnected)
    assert is_compiled(f)


def test_a_symbolic_shape_can_be_told():
    traces = []

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def f(x):
        traces.append(1)
        y = tf.py_function(lambda t: t + 1.0, [x], tf.float32)
        y.set_shape(x.shape)
        return tf.reduce_sum(y, 0)

    assert f(tf.ones([3, 2])).numpy().tolist() == [6.0, 6.0]
    count = len(traces)
    assert f(tf.ones([5, 2])).numpy().tolist() == [10.0, 10.0] and len(traces) == count
    assert is_compiled(f)


def test_shapes_are_told_for_each_kind_of_arguments():
    @tf.function
    def f(x):
        y = tf.py_function(lambda t: t * 2.0, [x], tf.float32)
        y.set_shape(x.shape)
        return y + 1.0

    for n in (2, 3, 2, 4):
        assert f(tf.ones([n])).numpy().tolist() == [3.0] * n
    assert is_compiled(f)


def test_unknown_shapes_run_eagerly_and_wrong_ones_are_errors():
    @tf.function
    def unknown(x):
        return tf.py_function(lambda t: t[t > 1.0], [x], tf.float32) + 1.0

    assert unknown(tf.constant([3.0, 1.0, 2.0])).numpy().tolist() == [4.0, 3.0]
    assert unknown(tf.constant([3.0, 1.0, 0.0])).numpy().tolist() == [4.0]
    assert "runs eagerly: the result of py_function has a shape that is not known" in unknown.explain()
    assert "test_host_calls.py:" in unknown.explain()

    @tf.function
    def wrong(x):
        return tf.ensure_shape(tf.py_function(lambda t: t, [x], tf.float32), [3])

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"py_function: result 0 is float32\[2\], declared is float32\[3\]"):
        wrong(tf.constant([1.0, 2.0]))


def test_exceptions_arrive_as_themselves_and_held_variables_are_errors():
    class Mine(Exception):
        pass

    def fails(t):
        raise Mine("mine")

    @tf.function
    def f(x):
        tf.py_function(fails, [x], [])
        return x

    for _ in range(2):
        with pytest.raises(Mine, match="mine"):
            f(tf.constant(1.0))
    v = tf.Variable(1.0)

    @tf.function
    def g(x):
        v.assign_add(x)
        tf.py_function(lambda: v.numpy(), [], [])
        return x

    with pytest.raises(tf.errors.FailedPreconditionError, match="a host call asks for it"):
        g(tf.constant(1.0))


def test_thousands_of_calls_need_no_memory():
    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    seen = [0]

    def note(t):
        seen[0] += 1
        return t + 1.0

    @tf.function
    def f(x, n):
        for _ in tf.range(n):
            x = tf.ensure_shape(tf.py_function(note, [x], tf.float32), [1000])
        return x

    @tf.function
    def with_gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.ensure_shape(tf.py_function(note, [x], tf.float32), [1000])
        return tape.gradient(y, x)

    x = tf.zeros([1000])
    f(x, tf.constant(500))
    for _ in range(200):
        with_gradient(x)
    gc.collect()
    before = resident()
    assert f(x, tf.constant(10000)).numpy()[0] == 10000
    for _ in range(2000):
        with_gradient(x)
    gc.collect()
    assert seen[0] == 500 + 200 + 10000 + 2000
    assert resident() - before < 8 << 20


def test_two_threads_call_the_same_function():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.ensure_shape(tf.py_function(lambda t: t * t, [x], tf.float32), [])
        return y, tape.gradient(y, x)

    f(tf.constant(0.0))
    wrong = []

    def work(first):
        for i in range(first, first + 200):
            y, g = f(tf.constant(float(i)))
            if y.numpy() != i * i or g.numpy() != 2 * i:
                wrong.append((i, y, g))

    threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and is_compiled(f)


def test_functions_with_host_calls_are_collected():
    class Model:
        def __init__(self):
            self.step = tf.function(self.body)

        def body(self, x):
            tf.py_function(self.note, [x], [])
            for e in tf.data.Dataset.range(2):
                tf.print(e, output_stream=sys.stdout)
            return x

        def note(self, x):
            pass

    model = Model()
    model.step(tf.constant(1.0))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_custom_gradient_with_calls(capsys):
    @tf.custom_gradient
    def double(x):
        tf.print("forward", x, output_stream=sys.stdout)

        def gradient(dy):
            tf.print("backward", output_stream=sys.stdout)
            return dy * 3.0

        return x * 2.0, gradient

    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = double(x)
        return tape.gradient(y, x)

    @tf.function
    def plain(x):
        return double(x)

    assert inside(tf.constant(1.0)).numpy() == 3 and capsys.readouterr().out == "forward 1\nbackward\n"
    assert plain(tf.constant(1.0)).numpy() == 2 and capsys.readouterr().out == "forward 1\n"


def test_strings_beside_numbers(capsys):
    @tf.function
    def constant(x):
        text = tf.constant("const")
        tf.print(text, x, output_stream=sys.stdout)
        tf.Assert(x > 0.0, [text, x])
        return x + 1.0

    assert constant(tf.constant(1.0)).numpy() == 2 and capsys.readouterr().out == '"const" 1\n' and is_compiled(constant)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[const\] \[-1\]"):
        constant(tf.constant(-1.0))

    @tf.function
    def argument(s, x):
        return tf.cast(tf.strings.length(s), tf.float32) * x

    assert argument(tf.constant(["abc", "d"]), tf.constant(2.0)).numpy().tolist() == [6.0, 2.0]
    assert "runs eagerly" in argument.explain() and "string[2]" in argument.explain()
    rows = tf.data.Dataset.from_tensor_slices((["1,2", "3,4"], [1.0, 2.0]))
    rows = rows.map(lambda s, x: (tf.strings.to_number(tf.strings.split(s, ",")) * x, x * 2.0))
    assert [values(r) for r in rows] == [[[1.0, 2.0], 2.0], [[6.0, 8.0], 4.0]]


# --- lines ----------------------------------------------------------------------------------------------------------------------


def test_errors_and_reasons_name_the_users_line():
    @tf.function
    def wrong(x):
        y = x * 2.0
        if y[0, 0] > 0.0:
            y = y + 1.0
        return tf.matmul(y, tf.ones([3, 3]))

    first = wrong.python_function.__code__.co_firstlineno
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"at test_host_calls.py:{first + 5}"):
        wrong(tf.ones([2, 2]))

    @tf.function
    def mask(x):
        if x[0] > 0.0:
            y = tf.boolean_mask(x, x > 1.0)
        else:
            y = x
        return y

    first = mask.python_function.__code__.co_firstlineno
    assert mask(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0]
    assert mask.explain().endswith(f"runs eagerly: tf.boolean_mask has a shape that depends on numbers (at test_host_calls.py:{first + 3})")
