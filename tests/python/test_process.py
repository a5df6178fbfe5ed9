"""The edges of the process: threads, fork, spawn, Ctrl-C, loading again, exceptions while tracing, collected models, the end."""

import functools
import gc
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest

import tandem as tf

X = np.linspace(-1, 1, 64, dtype="float32").reshape(16, 4)
# What most programs below begin with.
BEGIN = """
import os, sys, threading, time
import numpy as np
import tandem as tf

def child_of_fork(work):
    '''Runs `work` in a forked child, which then ends as a program does; gives its exit code, or "hangs".'''
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        work()
        sys.exit(0)
    for _ in range(300):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "hangs"
"""


def program(text, seconds=120, code=0):
    """Runs a program of its own; gives what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(text)], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def printed(text, **options):
    done = program(text, **options)
    assert done.stderr == ""
    return done.stdout.split()


# --- threads --------------------------------------------------------------------------------------------------------------------


def test_threads_compute_train_and_read_at_the_same_time():
    @tf.function
    def compiled(x):
        return tf.reduce_sum(tf.tanh(x) * x)

    def eager(n):
        return float(tf.reduce_sum(tf.matmul(X, X, transpose_b=True) * n))

    def shapes(n):  # a trace of its own for each thread, and one for all
        return [float(compiled(tf.ones((n + 1, k)))) for k in range(1, 5)]

    def fit(n):
        m = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
        m.compile(tf.keras.optimizers.SGD(0.01), "mse")
        return m.fit(X, X[:, :1], epochs=2, batch_size=4, shuffle=False, verbose=0).history["loss"]

    def read(n):
        return [int(v) for v in tf.data.Dataset.range(20).map(lambda v: v * n, num_parallel_calls=2).prefetch(2)]

    works = [(work, n) for work in (eager, shapes, read, fit) for n in range(2)]
    alone = [work(n) for work, n in works]
    together, errors = [None] * len(works), []

    def run(i):
        try:
            for _ in range(3):
                together[i] = works[i][0](works[i][1])
        except BaseException as e:  # noqa: BLE001 (of any kind: it has to be seen)
            errors.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert together == alone


# --- fork and spawn -------------------------------------------------------------------------------------------------------------


def test_a_forked_child_computes():
    assert printed("""
        @tf.function
        def old(x):
            return tf.reduce_sum(tf.tanh(x @ x))
        x = tf.random.stateless_normal((300, 300), [1, 2])
        before = float(old(x))

        def work():
            assert float(old(x)) == before                                  # compiled by the parent
            assert float(tf.function(lambda v: tf.reduce_max(v * 3 - v))(x)) > 1  # compiled here
            assert tf.linalg.svd(tf.cast(x[:20, :20], "float64"), compute_uv=False).shape == (20,)
            m = tf.keras.Sequential([tf.keras.layers.Dense(1)])
            m.compile("adam", "mse")
            m.fit(x, x[:, :1], epochs=1, verbose=0)
            assert [int(v) for v in tf.data.Dataset.range(4).prefetch(2)] == [0, 1, 2, 3]
            assert child_of_fork(lambda: print(int(tf.add(1, 1)), end=" ")) == 0
        print(child_of_fork(work), child_of_fork(work), float(old(x)) == before)
    """) == ["2", "2", "0", "0", "True"]


def test_a_child_of_a_fork_beside_a_computing_thread_is_told():
    assert printed("""
        started, goes_on = threading.Event(), threading.Event()
        def wait(arguments):
            started.set()
            goes_on.wait()
            return arguments
        busy = tf._core.Function(lambda arguments: tf._core.host_call(wait, arguments, [("float32", ())]))
        thread = threading.Thread(target=busy, args=([tf.constant(1.0)],))
        thread.start()
        started.wait()

        def work():
            for attempt in (lambda: tf.add(1, 1), lambda: tf.constant(np.ones(3)), lambda: next(iter(tf.data.Dataset.range(2)))):
                try:
                    attempt()
                    sys.exit(3)
                except tf.errors.FailedPreconditionError as e:
                    assert "forked" in str(e) and "spawn" in str(e)
        print(child_of_fork(work))
        goes_on.set()
        thread.join()
        print(int(tf.add(1, 1)), child_of_fork(lambda: print(int(tf.add(2, 2)), end=" ")))
    """) == ["0", "4", "2", "0"]


def test_forks_beside_threads_that_call_and_pipelines_that_call_python():
    assert printed("""
        x, goes_on = tf.ones((8, 8)), [True]
        def work():
            while goes_on:
                tf.matmul(x, x)
        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads:
            t.start()
        calling = tf.data.Dataset.range(10**9).map(lambda v: tf.py_function(lambda e: e + 1, [v], "int64"), num_parallel_calls=2)
        walk = iter(calling.prefetch(1000))
        next(walk)
        codes = [child_of_fork(lambda: print(int(tf.reduce_sum(x)), end=" ")) for _ in range(10)]
        goes_on.clear()
        for t in threads:
            t.join()
        print(set(codes))
    """) == ["64"] * 10 + ["{0}"]


def test_an_iterator_stays_with_the_parent():
    assert printed("""
        data = tf.data.Dataset.range(1000).map(lambda v: v + 1, num_parallel_calls=2).prefetch(2)
        walk = iter(data)
        next(walk)

        def work():
            global walk
            try:
                next(walk)
                sys.exit(3)
            except tf.errors.FailedPreconditionError as e:
                assert "fork" in str(e) and "another one in the child" in str(e)
            assert int(next(iter(data))) == 1
            if os.getpid() % 2:
                del walk  # collected at once, or at the end
        print(child_of_fork(work), child_of_fork(work), int(next(walk)))
    """) == ["0", "0", "2"]


def work_of_a_process(n):
    return float(tf.function(lambda x: tf.reduce_sum(x * x))(tf.range(n)))


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_multiprocessing(way):
    work_of_a_process(3)
    with multiprocessing.get_context(way).Pool(2) as pool:
        assert pool.map_async(work_of_a_process, [3, 4, 5]).get(timeout=100) == [5, 14, 30]


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """Who runs the tests in the background may have switched it off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------------------


def seconds_until_interrupted(work):
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.4, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        work()
    timer.join()
    return time.monotonic() - pressed[0]


def test_ctrl_c_ends_a_compiled_loop_that_would_not():
    v = tf.Variable(1.0)

    @tf.function
    def turn(n):
        while n > 0:
            n = n + tf.cast(v > 0, "int32")
            n = n - tf.cast(n > 1000, "int32")
        return n

    v.assign(-1.0)
    assert int(turn(tf.constant(0))) == 0  # compiled
    v.assign(1.0)
    assert seconds_until_interrupted(lambda: turn(tf.constant(1))) < 2
    assert int(turn(tf.constant(-5))) == -5 and float(v) == 1.0


def test_ctrl_c_ends_a_long_scan_and_a_loop_in_a_fit():
    @tf.function
    def scan(x):
        return tf.scan(lambda a, e: tf.sin(a + e), x, 0.0)[-1]

    scan(tf.ones((3,)))
    assert seconds_until_interrupted(lambda: scan(tf.ones((20_000_000,)))) < 2

    class Endless(tf.keras.Model):
        def call(self, x):
            return x

        def train_step(self, data):
            return {"loss": tf.while_loop(lambda n: n > 0, lambda n: (n * 1.5 - 0.5 * n,), (tf.reduce_mean(data[0]) * 0 + 1,))[0]}

    model = Endless()
    model.compile("sgd", "mse")
    assert seconds_until_interrupted(lambda: model.fit(X, X, epochs=1, verbose=0)) < 5


def test_other_threads_do_not_hear_of_ctrl_c():
    results = []
    loop = tf.function(lambda n: tf.while_loop(lambda i: i < n, lambda i: (i + 1,), (tf.constant(0),))[0])
    int(loop(tf.constant(1)))
    thread = threading.Thread(target=lambda: results.append(int(loop(tf.constant(2_000_000)))))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    thread.join()
    assert results == [2_000_000]


# --- loaded again ---------------------------------------------------------------------------------------------------------------


def test_reloading_leaves_everything_usable(tmp_path, monkeypatch):
    (tmp_path / "users_module.py").write_text(
        "import tandem as tf\nFACTOR = 2\n@tf.function\ndef scaled(x):\n    return x * FACTOR\n"
        "@tf.keras.utils.register_keras_serializable('users')\n"
        "class Layer(tf.keras.layers.Layer):\n    def call(self, x):\n        return scaled(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    users = importlib.import_module("users_module")
    old, kept = users.Layer(), tf.constant([1.0])
    assert float(old(kept)[0]) == 2
    (tmp_path / "users_module.py").write_text((tmp_path / "users_module.py").read_text().replace("FACTOR = 2", "FACTOR = 30"))
    importlib.reload(users)
    assert float(users.Layer()(kept)[0]) == 30
    again = importlib.reload(tf)
    assert again is tf and float((kept + again.constant([2.0]))[0]) == 3
    assert float(users.Layer()(kept)[0]) == 30 and float(again.function(lambda x: x + 1)(kept)[0]) == 2
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.reshape(kept, (5,))


CELL = """
import tandem as tf
{before}

class Block(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = tf.keras.layers.Dense(256)
    def call(self, x):
        return tf.nn.relu(self.inner(x))

model = tf.keras.Sequential([Block(), Block(), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(X, X[:, :1], epochs=1, verbose=0)
model.predict(X, verbose=0)

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    return tape.gradient(loss, model.trainable_variables)[0]

step(tf.constant(X))
"""


def test_a_function_with_control_flow_lets_go_of_its_model():
    def made():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])

        @tf.function
        def step(x):
            if tf.reduce_sum(x) > 0:  # converted: a function of its own, with the same cells
                x = -x
            return model(x)

        step(tf.constant(X))
        return weakref.ref(model)

    gone = [made() for _ in range(3)]
    gc.collect()
    assert [g() for g in gone] == [None] * 3


def test_a_wrapper_is_not_taken_for_what_it_wraps():
    def inner(x):
        return x + 1

    def twice(f):
        @functools.wraps(f)
        def call(x):
            return f(x) * 2

        return call

    assert int(tf.function(inner)(1)) == 2
    assert int(tf.function(twice(inner))(1)) == 4
    assert int(tf.function(twice(twice(inner)))(1)) == 8
    assert int(tf.function(inner)(1)) == 2


@pytest.mark.parametrize("before", ["", "tf.keras.backend.clear_session()"])
def test_a_cell_that_is_run_again_and_again_has_flat_memory(before):
    """Its models and functions are collected. A model here has 270 KB of weights, so one kept by each run would be seen."""
    grown = printed(f"""
        import gc
        X = np.linspace(-1, 1, 64, dtype="float32").reshape(16, 4)
        def resident():
            gc.collect()
            return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        cell, scope, seen = compile({CELL.format(before=before)!r}, "cell", "exec"), {{"X": X}}, []
        for i in range(32):
            exec(cell, scope)
            if i in (15, 31):
                seen.append(resident())
        print((seen[1] - seen[0]) // 1024)
    """)
    assert int(grown[0]) < 16 * 200, f"16 runs of a cell took {grown[0]} KB"


# --- exceptions while tracing ---------------------------------------------------------------------------------------------------


def test_an_exception_while_tracing_leaves_everything_usable():
    class Mine(Exception):
        pass

    fails = True

    def maybe(x):
        if fails:
            raise Mine("while tracing")
        return x * 2

    def in_branch(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: maybe(x), lambda: x)

    def in_loop(x):
        return tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, maybe(v)), (0, x))[1]

    def in_gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = maybe(x) * x
        return tape.gradient(y, x)

    def in_map(x):
        return next(iter(tf.data.Dataset.from_tensors(x).map(maybe)))

    def in_inner(x):
        return tf.function(maybe)(x)

    x = tf.constant([1.0, 2.0])
    for body, wanted in ((maybe, 2), (in_branch, 2), (in_loop, 4), (in_gradient, 4), (in_inner, 2)):
        f = tf.function(body)
        fails = True
        for _ in range(2):
            with pytest.raises(Mine, match="while tracing"):
                f(x)
            assert tf.executing_eagerly() and float(tf.reduce_sum(x)) == 3  # this thread traces no longer
        fails = False
        assert float(f(x)[0]) == wanted, body.__name__
    fails = True
    with pytest.raises(Mine):
        in_map(x)

    class Model(tf.keras.Model):
        def call(self, x):
            return x

        def train_step(self, data):
            return {"loss": tf.reduce_mean(maybe(data[0]))}

    model = Model()
    model.compile("sgd", "mse")
    with pytest.raises(Mine):
        model.fit(X, X, verbose=0)
    fails = False
    model.fit(X, X, verbose=0)


# --- the end --------------------------------------------------------------------------------------------------------------------


def test_a_clean_exit_with_everything_still_alive():
    assert printed("""
        import atexit
        atexit.register(lambda: print("atexit", float(tf.reduce_sum(tf.function(lambda x: x * 2)(kept)))))
        kept, variable = tf.constant([1.0, 2.0]), tf.Variable([3.0])
        called = tf.data.Dataset.range(10**9).map(lambda v: tf.py_function(lambda e: e, [v], "int64"), num_parallel_calls=2)
        generated = tf.data.Dataset.from_generator(lambda: iter(range(10**9)), output_signature=tf.TensorSpec((), "int64"))
        walks = [iter(called.prefetch(8)), iter(generated.prefetch(4))]
        for walk in walks:
            next(walk)
        model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
        model.compile("adam", "mse")
        model.fit(np.ones((8, 2)), np.ones((8, 2)), verbose=0)
        tape = tf.GradientTape(persistent=True)
        tape.__enter__()
        endless = tf.function(lambda: tf.while_loop(lambda i: i >= 0, lambda i: (i * 0,), (tf.constant(0),)))
        def work():
            while True:
                tf.add(kept, kept)
        for target in (work, work, endless):
            threading.Thread(target=target, daemon=True).start()
        time.sleep(0.3)
        print("done")
    """) == ["done", "atexit", "6.0"]


def test_an_exit_code_and_an_exception_arrive():
    program("tf.constant(1.0); sys.exit(7)", code=7)
    done = program("x = tf.Variable(1.0); raise KeyError('mine')", code=1)
    assert "KeyError: 'mine'" in done.stderr
