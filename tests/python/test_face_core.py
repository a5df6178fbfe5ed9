"""The core of the face: tensors, variables, printing, types."""
import subprocess
import sys

import numpy as np
import pytest

import tandem as tf


def test_import_is_lazy():
    code = "import sys, tandem; print('keras' in sys.modules, 'tandem.nn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split() == ["False", "False"]


def test_a_name_that_is_not_there_points_to_the_table():
    with pytest.raises(AttributeError, match="docs/coverage.md"):
        tf.no_such_name


def test_python_numbers_become_32_bits_and_are_not_cut():
    assert tf.constant(1).dtype == tf.int32 and tf.constant(1.0).dtype == tf.float32 and tf.constant(2**40).dtype == tf.int64
    with pytest.raises(TypeError):
        tf.constant(1.5, tf.int32)
    with pytest.raises(TypeError):
        tf.add(tf.constant(1), 1.5)


def test_types_are_strict():
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError)):
        tf.add(tf.constant(1), tf.constant(1.0))
    with pytest.raises(ValueError):
        tf.convert_to_tensor(tf.constant(1), tf.float32)
    assert (tf.constant(7) / tf.constant(2)).dtype == tf.float64
    assert tf.argmax([1.0, 3.0, 2.0]).dtype == tf.int64
    assert tf.reduce_sum(tf.constant([100, 100], tf.int8)).dtype == tf.int8
    assert tf.reduce_mean(tf.constant([1, 2])).numpy() == 1


def test_printing():
    assert repr(tf.constant([1, 2])) == "<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>"
    assert repr(
        tf.constant([[1.0], [2.0]])
    ) == "<tf.Tensor: shape=(2, 1), dtype=float32, numpy=\narray([[1.],\n       [2.]], dtype=float32)>"
    assert repr(tf.constant("a")) == "<tf.Tensor: shape=(), dtype=string, numpy=b'a'>"
    assert repr(tf.constant(3.14)).endswith("numpy=3.140000104904175>") and repr(tf.constant(3.14, tf.bfloat16)).endswith("numpy=3.140625>")
    assert str(tf.constant(3)) == "tf.Tensor(3, shape=(), dtype=int32)"
    assert repr(tf.Variable(1.0, name="w")) == "<tf.Variable 'w:0' shape=() dtype=float32, numpy=1.0>"


def test_variables():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    v[1:, 0].assign([9.0])
    v[0].assign_add([1.0, 1.0])
    np.testing.assert_array_equal(v.numpy(), [[2, 3], [9, 4]])
    v.scatter_update(tf.IndexedSlices([[7.0, 7.0]], [1]))
    v.scatter_nd_add([[0, 1]], [10.0])
    np.testing.assert_array_equal(v.numpy(), [[2, 13], [7, 7]])
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([1.0])
    assert v.ref() == v.ref() and v.trainable and v.name == "Variable:0"


def test_variable_creators():
    seen = []

    def creator(next_creator, **kwargs):
        seen.append(kwargs["initial_value"])
        return next_creator(**{**kwargs, "trainable": False})

    with tf.variable_creator_scope(creator):
        v = tf.Variable(3.0)
    assert seen == [3.0] and not v.trainable


def test_strings_move_like_numbers():
    s = tf.constant([["a", "b"], ["c", "d"]])
    assert tf.reshape(s, [4])[2].numpy() == b"c"
    assert tf.gather(s, [1], axis=1).numpy().tolist() == [[b"b"], [b"d"]]
    assert (s == "b").numpy().tolist() == [[False, True], [False, False]]
    assert tf.shape(s).numpy().tolist() == [2, 2] and isinstance(s, tf.Tensor) and tf.is_tensor(s)
    with pytest.raises((TypeError, tf.errors.InvalidArgumentError)):
        tf.exp(s)


def test_complex_numbers():
    z = tf.complex([3.0, 0.0], [4.0, 1.0])
    np.testing.assert_allclose(tf.abs(z).numpy(), [5, 1])
    np.testing.assert_allclose((z * z).numpy(), np.array([3 + 4j, 1j]) ** 2, rtol=1e-6)
    np.testing.assert_allclose(tf.signal.ifft(tf.signal.fft(z)).numpy(), z.numpy(), atol=1e-6)
    np.testing.assert_allclose(tf.exp(tf.constant(1j * np.pi)).numpy(), -1, atol=1e-12)


def test_nest():
    structure = {"b": [1, (2, 3)], "a": 4}
    assert tf.nest.flatten(structure) == [4, 1, 2, 3]
    assert tf.nest.map_structure(lambda x: x + 1, structure) == {"b": [2, (3, 4)], "a": 5}
    with pytest.raises(ValueError):
        tf.nest.assert_same_structure([1, 2], [1, [2]])


def test_ragged_and_sparse():
    r = tf.ragged.constant([[1, 2], [], [3]])
    assert (r + 1).to_list() == [[2, 3], [], [4]] and tf.reduce_sum(r, axis=1).numpy().tolist() == [3, 0, 3]
    assert r.to_tensor().numpy().tolist() == [[1, 2], [0, 0], [3, 0]] and tf.concat([r, r], 1).to_list()[2] == [3, 3]
    s = tf.sparse.from_dense([[0.0, 2.0], [3.0, 0.0]])
    np.testing.assert_allclose(tf.sparse.sparse_dense_matmul(s, [[1.0], [10.0]]).numpy(), [[20], [3]])
    assert tf.sparse.to_dense(tf.sparse.transpose(s)).numpy().tolist() == [[0, 3], [2, 0]]


def test_random_seeds():
    tf.random.set_seed(3)
    a, b = tf.random.normal([4]).numpy(), tf.random.normal([4]).numpy()
    tf.random.set_seed(3)
    np.testing.assert_array_equal(a, tf.random.normal([4]).numpy())
    assert not np.array_equal(a, b)
    x = tf.random.stateless_uniform([1000], [1, 2], 2.0, 3.0).numpy()
    assert 2 <= x.min() and x.max() < 3 and abs(x.mean() - 2.5) < 0.05
    g = tf.random.Generator.from_seed(1)
    assert not np.array_equal(g.normal([3]).numpy(), g.normal([3]).numpy())
    p = tf.random.poisson([20000], 4.0).numpy()
    assert abs(p.mean() - 4) < 0.1 and abs(p.var() - 4) < 0.2


def test_devices():
    with tf.device("/GPU:0"):
        assert tf.constant(1).device == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert tf.config.list_physical_devices("GPU") == []
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        v = tf.Variable(1.0)
    assert strategy.reduce("SUM", strategy.run(lambda: v * 2.0), axis=None).numpy() == 2.0


def test_numbers_of_numpy_keep_their_type():
    assert tf.constant(np.float64(1)).dtype == tf.float64 and tf.constant([np.float64(1), 2.0]).dtype == tf.float64
    assert tf.constant([2.0, np.float64(1)]).dtype == tf.float32 and tf.constant([np.float16(1), 2.0]).dtype == tf.float16
    assert tf.constant(range(3)).dtype == tf.int32
    assert tf.cast(np.log(2.0), tf.float64).numpy() == np.log(2.0)
    assert tf.maximum(0.0, [1, -1]).numpy().tolist() == [1.0, 0.0]


def test_formatting_is_of_the_value():
    x = tf.constant(1.5)
    assert f"{x} {x:.3f} {tf.constant([1, 2])} {tf.constant('a')}" == "1.5 1.500 [1 2] b'a'"


def test_a_tuple_or_a_mask_among_indices():
    x = tf.reshape(tf.range(24), [2, 3, 4])
    want = x.numpy()
    np.testing.assert_array_equal(x[:, (True, False, True)], want[:, [True, False, True]])
    np.testing.assert_array_equal(x[1, (0, 0, 1), tf.constant([0, 1, 1])], want[1, [0, 0, 1], [0, 1, 1]])


def test_tensor_equality_of_tensorflow_1():
    code = """
import tandem as tf
x, y = tf.Variable(0.0), tf.Variable(0.0)
assert (x == y).numpy()
tf.compat.v1.disable_tensor_equality()
assert (x == y) is False and (x == x) is True and len({x, y}) == 2
t = tf.constant(1)
assert (t == tf.constant(1)) is False and {t: 1}[t] == 1
tf.compat.v1.enable_tensor_equality()
assert (x == y).numpy() and (t == tf.constant(1)).numpy()
d = tf.compat.v1.Dimension(None)
assert d.is_compatible_with(16) and d.merge_with(3).value == 3 and (tf.compat.v1.Dimension(3) + 1).value == 4
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_program_that_names_tensorflow_as_its_backend(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os\nos.environ['KERAS_BACKEND'] = 'tensorflow'\nimport keras\nassert keras.backend.backend() == 'tandem'\n"
        "import tensorflow.experimental.numpy as tnp\nimport tensorflow.io.gfile\nimport tensorflow as tf\n"
        "assert tnp.ones([2]).shape == [2]\nassert keras.layers.Dense(1)(tf.ones([2, 3])).shape == [2, 1]\n"
    )
    subprocess.run([sys.executable, "-m", "tandem", "run", str(program)], check=True)


def test_one_worker_is_a_strategy_of_its_own(monkeypatch):
    for kind in (tf.distribute.MultiWorkerMirroredStrategy, tf.distribute.experimental.CentralStorageStrategy):
        strategy = kind()
        with strategy.scope():
            v = tf.Variable(2.0)
        assert strategy.num_replicas_in_sync == 1 and strategy.run(lambda: v * 3.0).numpy() == 6
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}')
    with pytest.raises(NotImplementedError, match="2 workers"):
        tf.distribute.MultiWorkerMirroredStrategy()


def test_a_variable_scope_is_a_prefix_of_names():
    with tf.compat.v1.variable_scope("model") as scope:
        assert tf.Variable(1.0, name="w").name == "model/w:0" and scope.name == "model"
    with pytest.raises(NotImplementedError, match="only a name"):
        tf.compat.v1.variable_scope("model", reuse=True)


def test_a_mirrored_strategy_takes_all_logical_devices():
    code = """
import tandem as tf
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy()
assert strategy.num_replicas_in_sync == 2
batches = strategy.experimental_distribute_dataset(tf.data.Dataset.range(9).batch(4))
found = [[x.numpy().tolist() for x in strategy.experimental_local_results(b)] for b in batches]
assert found == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8], []]], found
own = strategy.distribute_datasets_from_function(lambda context: tf.data.Dataset.range(5).batch(context.get_per_replica_batch_size(4)))
iterator = iter(own)
found = [[x.numpy().tolist() for x in strategy.experimental_local_results(iterator.get_next_as_optional().get_value())] for _ in range(2)]
assert found == [[[0, 1], [2, 3]], [[4], []]] and not iterator.get_next_as_optional().has_value(), found
doubled = tf.function(lambda x: strategy.run(lambda v: v * 2, args=(x,)), input_signature=[own.element_spec])
values = [v.numpy().tolist() for b in own for v in strategy.experimental_local_results(doubled(b))]
assert values == [[0, 2], [4, 6], [8], []], values
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_folder_of_the_users_may_be_called_tandem(tmp_path):
    import subprocess
    import sys

    folder = tmp_path / "tandem" / "work"
    folder.mkdir(parents=True)
    program = folder / "train.py"
    program.write_text(
        "import tensorflow as tf\n"
        "f = tf.function(lambda x: tf.boolean_mask(x, x > 1))\n"
        "f(tf.constant([1.0, 2.0]))\n"
        "print(f.explain())\n"
        "tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))\n"
    )
    done = subprocess.run([sys.executable, "-m", "tandem", "run", str(program)], capture_output=True, text=True, cwd=tmp_path)
    assert "(at train.py:2)" in done.stdout
    assert 'train.py", line 5' in done.stderr and "lines inside the library" in done.stderr
