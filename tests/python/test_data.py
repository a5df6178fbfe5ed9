"""tf.data: sources, stages, nests, functions that are traced or called, errors, threads and the collector."""

import collections
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from tandem import data, errors
from tandem._convert import convert
from tandem._specs import NoneTensorSpec, TensorSpec

Dataset = data.Dataset


def numbers(dataset):
    return [x.tolist() for x in dataset.as_numpy_iterator()]


# --- sources and nests ----------------------------------------------------------------------------------------------------------


def test_slices_of_nests_keep_their_structure():
    Point = collections.namedtuple("Point", ["x", "y"])
    d = Dataset.from_tensor_slices({"b": np.arange(3), "a": (np.ones((3, 2)), Point([1, 2, 3], [4.0, 5.0, 6.0]))})
    assert list(d.element_spec) == ["b", "a"]
    assert d.element_spec["a"][0] == TensorSpec((2,), "float64")
    last = list(d)[-1]
    assert isinstance(last["a"][1], Point) and last["a"][1].y.numpy() == 6.0 and last["a"][1].x.dtype.name == "int32"
    assert len(d) == 3


def test_lists_are_tensors_and_none_stays():
    d = Dataset.from_tensor_slices(([1, 2], None))
    assert isinstance(d.element_spec[1], NoneTensorSpec)
    assert [(int(a), b) for a, b in d] == [(1, None), (2, None)]


def test_large_arrays_are_not_copied():
    x = np.zeros((1 << 18, 2), np.float32)
    first = next(iter(Dataset.from_tensor_slices(x).batch(2)))
    x[0, 0] = 5
    assert first.numpy()[0, 0] == 5
    small = np.zeros((4,), np.float32)
    d = Dataset.from_tensor_slices(small)
    small[0] = 5
    assert numbers(d)[0] == 0


def test_range_and_its_types():
    assert numbers(Dataset.range(5, 0, -2)) == [5, 3, 1]
    assert next(iter(Dataset.range(2))).dtype.name == "int64"
    assert next(iter(Dataset.range(2, output_type="float32"))).dtype.name == "float32"
    assert int(Dataset.counter(3, 2).cardinality()) == data.INFINITE_CARDINALITY
    assert numbers(Dataset.counter(3, 2).take(2)) == [3, 5]


def test_random_is_reproducible():
    assert numbers(Dataset.random(seed=4).take(5)) == numbers(Dataset.random(seed=4).take(5))


def test_generators():
    def rows(n):
        for i in range(n):
            yield i, [float(i)] * i

    d = Dataset.from_generator(rows, args=[3], output_signature=(TensorSpec((), "int32"), TensorSpec((None,), "float32")))
    assert d.element_spec == (TensorSpec((), "int32"), TensorSpec((None,), "float32"))
    assert [(int(a), b.tolist()) for a, b in d.as_numpy_iterator()] == [(0, []), (1, [1.0]), (2, [2.0, 2.0])]
    a, b = next(iter(d.padded_batch(3, padding_values=(0, -1.0))))
    assert b.numpy().tolist() == [[-1, -1], [1, -1], [2, 2]]
    loose = Dataset.from_generator(lambda: iter([[1], [2, 3]]), output_types="int64")
    assert loose.element_spec.shape.rank is None and numbers(loose) == [[1], [2, 3]]
    assert numbers(loose.map(lambda x: x * 2)) == [[2], [4, 6]]
    assert numbers(loose) == [[1], [2, 3]]  # again from the start


def test_a_generator_that_breaks_its_word():
    d = Dataset.from_generator(lambda: iter([[1, 2]]), output_signature=TensorSpec((3,), "int32"))
    with pytest.raises(TypeError, match=r"of shape \(2,\) where an element of shape \(3,\)"):
        list(d)
    with pytest.raises(TypeError, match="could not be converted to the expected type"):
        list(Dataset.from_generator(lambda: iter(["a"]), output_signature=TensorSpec((), "int32")))


def test_zip_enumerate_concatenate():
    d = Dataset.zip({"a": Dataset.range(3), "b": Dataset.range(3, 9)})
    assert [(int(e["a"]), int(e["b"])) for e in d] == [(0, 3), (1, 4), (2, 5)]
    assert [(int(i), int(x)) for i, x in Dataset.range(5, 7).enumerate(10)] == [(10, 5), (11, 6)]
    assert numbers(Dataset.range(2).concatenate(Dataset.range(2))) == [0, 1, 0, 1]
    with pytest.raises(TypeError, match="Incompatible"):
        Dataset.range(2).concatenate(d)


# --- stages ---------------------------------------------------------------------------------------------------------------------


def test_batches():
    d = Dataset.range(8).batch(4)
    assert d.element_spec == TensorSpec((None,), "int64")
    assert Dataset.range(8).batch(3, drop_remainder=True).element_spec == TensorSpec((3,), "int64")
    assert numbers(Dataset.range(8).batch(3)) == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert numbers(d.unbatch()) == list(range(8))
    assert numbers(d.rebatch(3)) == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert numbers(d.rebatch([1, 3])) == [[0], [1, 2, 3], [4], [5, 6, 7]]
    assert len(Dataset.range(7).batch(3)) == 3


def test_windows_are_datasets():
    windows = Dataset.range(5).window(3, shift=1, drop_remainder=True)
    assert [numbers(w) for w in windows] == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert numbers(windows.flat_map(lambda w: w.batch(3))) == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    pairs = Dataset.zip((Dataset.range(4), Dataset.range(4, 8))).window(2)
    both = pairs.flat_map(lambda a, b: Dataset.zip((a.batch(2), b.batch(2))))
    assert [(a.tolist(), b.tolist()) for a, b in both.as_numpy_iterator()] == [([0, 1], [4, 5]), ([2, 3], [6, 7])]


def test_interleave_in_tensorflows_order():
    d = Dataset.range(4).interleave(lambda x: Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2)
    assert numbers(d) == [0, 0, 1, 1, 0, 1, 2, 2, 3, 3, 2, 3]
    parallel = Dataset.range(4).interleave(
        lambda x: Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2, num_parallel_calls=2
    )
    assert numbers(parallel) == numbers(d)
    assert parallel.element_spec == TensorSpec((), "int64")


def test_choosing_elements():
    d = Dataset.range(10)
    assert numbers(d.take(3)) == [0, 1, 2] and numbers(d.skip(8)) == [8, 9] and numbers(d.shard(3, 1)) == [1, 4, 7]
    assert numbers(d.filter(lambda x: x % 3 == 0)) == [0, 3, 6, 9]
    assert numbers(d.take_while(lambda x: x < 4)) == [0, 1, 2, 3]
    assert numbers(d.map(lambda x: x // 4).unique()) == [0, 1, 2]
    assert len(d.take(-1)) == 10 and len(d.skip(-1)) == 0
    assert sorted(numbers(d.shuffle(5, seed=1))) == list(range(10))
    assert numbers(d.shuffle(5, seed=1)) == numbers(d.shuffle(5, seed=1))
    fixed = d.shuffle(10, seed=1, reshuffle_each_iteration=False)
    assert numbers(fixed) == numbers(fixed)


def test_cardinalities():
    d = Dataset.range(4)
    assert int(d.repeat().cardinality()) == data.INFINITE_CARDINALITY
    assert int(d.filter(lambda x: x > 1).cardinality()) == data.UNKNOWN_CARDINALITY
    with pytest.raises(TypeError, match="infinite"):
        len(d.repeat())
    with pytest.raises(TypeError, match="unknown"):
        len(d.filter(lambda x: x > 1))
    known = d.filter(lambda x: x > 1).apply(data.experimental.assert_cardinality(2))
    assert len(known) == 2 and numbers(known) == [2, 3]
    with pytest.raises(errors.InvalidArgumentError, match="expected to contain 3 elements but contained only 2"):
        numbers(d.take(2).apply(data.experimental.assert_cardinality(3)))


def test_reduce_and_scan():
    d = Dataset.range(1, 5)
    assert int(d.reduce(np.int64(0), lambda s, x: s + x)) == 10
    total, count = d.reduce((np.int64(0), np.int64(0)), lambda s, x: (s[0] + x, s[1] + 1))
    assert (int(total), int(count)) == (10, 4)
    assert numbers(d.scan(np.int64(0), lambda s, x: (s + x, s * 10))) == [0, 10, 30, 60]
    called = d.scan(np.int64(0), lambda s, x: (s + x.numpy(), s * 10))
    assert numbers(called) == [0, 10, 30, 60] and numbers(called) == [0, 10, 30, 60]


def test_groups():
    d = Dataset.range(7).group_by_window(lambda x: x % 2, lambda key, w: w.batch(2), window_size=2)
    assert numbers(d) == [[0, 2], [1, 3], [4, 6], [5]]
    rows = Dataset.from_generator(lambda: ([1] * n for n in (1, 5, 2, 6)), output_signature=TensorSpec((None,), "int32"))
    buckets = rows.bucket_by_sequence_length(lambda x: convert(list(x.dims), "int64")[0], [4], [2, 2])
    assert [b.shape for b in buckets.as_numpy_iterator()] == [(2, 2), (2, 6)]


def test_mixing_datasets():
    a, b = Dataset.range(3), Dataset.range(10, 13)
    choice = Dataset.from_tensor_slices(np.array([0, 1, 1, 0, 0], np.int64))
    assert numbers(Dataset.choose_from_datasets([a, b], choice)) == [0, 10, 11, 1, 2]
    mixed = Dataset.sample_from_datasets([a, b], weights=[0.5, 0.5], seed=1)
    assert sorted(numbers(mixed)) == [0, 1, 2, 10, 11, 12]
    skewed = Dataset.from_tensor_slices(np.array([0] * 90 + [1] * 10, np.int32)).shuffle(100, seed=1).repeat(20)
    labels = np.array([int(c) for c, _ in skewed.rejection_resample(lambda x: x, [0.5, 0.5], [0.9, 0.1], seed=3)])
    assert 0.4 < labels.mean() < 0.6


def test_keeping(tmp_path):
    runs = []
    d = Dataset.range(4).map(lambda x: (runs.append(1), x.numpy() * 2)[1])
    cached = d.cache()
    runs.clear()  # the trace that was tried
    assert numbers(cached) == numbers(cached) == [0, 2, 4, 6] and len(runs) == 4
    filed = Dataset.range(4).cache(str(tmp_path / "cache"))
    assert numbers(filed) == numbers(filed) == [0, 1, 2, 3]
    pairs = Dataset.from_tensor_slices({"x": np.arange(3), "s": ["a", "b", "c"]})
    pairs.save(str(tmp_path / "saved"))
    loaded = Dataset.load(str(tmp_path / "saved"))
    assert loaded.element_spec == pairs.element_spec and len(loaded) == 3
    assert [(int(e["x"]), e["s"]) for e in loaded.as_numpy_iterator()] == [(0, b"a"), (1, b"b"), (2, b"c")]
    with pytest.raises(errors.NotFoundError):
        Dataset.load(str(tmp_path / "nothing"))


def test_padded_shapes_and_strings():
    d = Dataset.from_tensor_slices([1, 2]).map(lambda n: (convert(np.ones(int(n), np.float32)), convert(["w"] * int(n))))
    x, s = next(iter(d.padded_batch(2, padded_shapes=([3], [None]), padding_values=(7.0, "-"))))
    assert x.numpy().tolist() == [[1, 7, 7], [1, 1, 7]] and s.numpy().tolist() == [[b"w", b"-"], [b"w", b"w"]]


def test_ragged():
    from tandem._ragged import RaggedTensor, RaggedTensorSpec

    rows = Dataset.from_generator(lambda: ([n] * n for n in (1, 3, 2)), output_signature=TensorSpec((None,), "int32"))
    d = rows.ragged_batch(2)
    assert isinstance(d.element_spec, RaggedTensorSpec)
    assert [b.to_list() for b in d] == [[[1], [3, 3, 3]], [[2, 2]]]
    ragged = RaggedTensor.from_row_lengths(convert(["a", "b", "c"]), [2, 1])
    slices = Dataset.from_tensor_slices((ragged, [10, 20]))
    assert [(r.tolist(), int(n)) for r, n in slices.as_numpy_iterator()] == [([b"a", b"b"], 10), ([b"c"], 20)]


def test_options():
    options = data.Options()
    options.deterministic = False
    options.autotune.enabled = False
    options.experimental_distribute.auto_shard_policy = data.experimental.AutoShardPolicy.DATA
    d = Dataset.range(3).with_options(options).batch(2)
    assert d.options().deterministic is False and d.options().experimental_distribute.auto_shard_policy == 2
    with pytest.raises(AttributeError):
        options.misspelt = 1


def test_single_elements_and_iterators():
    assert int(Dataset.range(1).get_single_element()) == 0
    with pytest.raises(errors.InvalidArgumentError, match="more than one"):
        Dataset.range(2).get_single_element()
    with pytest.raises(errors.InvalidArgumentError, match="empty"):
        Dataset.range(0).get_single_element()
    it = iter(Dataset.range(1))
    assert int(it.get_next()) == 0 and not bool(it.get_next_as_optional().has_value())
    with pytest.raises(errors.OutOfRangeError):
        it.get_next()


def test_an_iterator_goes_on_from_a_saved_position():
    d = Dataset.range(20).shuffle(7, seed=3).batch(3).prefetch(2)
    it = iter(d)
    next(it), next(it)
    state = it.save()
    rest = [x.numpy().tolist() for x in it]
    other = iter(d)
    other.restore(state)
    assert [x.numpy().tolist() for x in other] == rest


# --- functions ------------------------------------------------------------------------------------------------------------------


def test_a_function_is_traced_once():
    runs = []

    def double(x):
        runs.append(1)
        return x * 2

    d = Dataset.range(100).map(double).shuffle(10).batch(4).prefetch(2)
    assert sorted(sum(numbers(d), [])) == list(range(0, 200, 2)) and len(runs) == 1
    assert "called by Python" not in d.explain()


def test_a_function_that_needs_numbers_is_called():
    d = Dataset.range(4).map(lambda x: np.sqrt(x.numpy()).astype(np.float32), num_parallel_calls=data.AUTOTUNE)
    assert "called by Python for each element" in d.explain()
    assert d.element_spec == TensorSpec((), "float32")
    np.testing.assert_allclose(
        np.array(numbers(d.batch(2).map(lambda x: x + 1))), [[1.0, 2.0], [1 + 2**0.5, 1 + 3**0.5]], rtol=1e-6
    )


def test_a_function_with_a_mistake_raises_where_it_is_given():
    with pytest.raises(ZeroDivisionError):
        Dataset.range(3).map(lambda x: 1 // 0)
    with pytest.raises((ValueError, errors.InvalidArgumentError)):
        Dataset.from_tensor_slices(np.ones((3, 2), np.float32)).map(lambda x: x + np.ones(3, np.float32))
    with pytest.raises(TypeError, match="must return a `Dataset`"):
        numbers(Dataset.range(3).flat_map(lambda x: x))


class OwnError(Exception):
    pass


@pytest.mark.parametrize("calls", [None, 3])
def test_an_exception_arrives_as_itself(calls):
    def fail(x):
        if int(x) == 2:
            raise OwnError("two is bad")
        return int(x)

    d = Dataset.range(5).map(fail, num_parallel_calls=calls)
    with pytest.raises(OwnError, match="two is bad") as caught:
        list(d.prefetch(2))
    assert caught.value.__notes__ == ["map_callback: element 2"]
    assert numbers(d.ignore_errors()) == [0, 1, 3, 4]
    it = iter(d)
    next(it), next(it)
    with pytest.raises(OwnError):
        next(it)
    assert int(next(it)) == 3  # it goes on behind it


def test_dicts_and_tuples_as_arguments():
    d = Dataset.from_tensor_slices({"a": [1, 2]}).map(lambda e: (e["a"], {"b": e["a"] * 2})).map(lambda a, rest: a + rest["b"])
    assert numbers(d) == [3, 6]


# --- around it ------------------------------------------------------------------------------------------------------------------


def test_iterators_end_at_any_moment():
    for _ in range(10):
        it = iter(Dataset.range(1000).map(lambda x: x.numpy(), num_parallel_calls=4).prefetch(4))
        next(it)
        del it


def test_several_threads_share_an_iterator():
    it, found = iter(Dataset.range(500).map(lambda x: x + 0)), []
    threads = [threading.Thread(target=lambda: found.extend(int(x) for x in it)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == list(range(500))


@pytest.mark.parametrize("ahead", [0, 2])
def test_ctrl_c_ends_a_long_wait(ahead):
    d = Dataset.range(10**9).repeat().filter(lambda x: x < 0).prefetch(ahead)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.time()
    with pytest.raises(KeyboardInterrupt):
        next(iter(d))
    assert time.time() - start < 5


def test_cycles_through_functions_are_collected():
    class Model:
        pass

    model = Model()
    model.dataset = Dataset.range(3).map(lambda x: (model, x)[1])  # noqa: F821 (it is deleted below)
    list(model.dataset)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_functions_of_inner_datasets_outlive_their_python_objects():
    def inner(x):
        made = Dataset.range(3).map(lambda y: y.numpy() + 10)
        made.cycle = made  # only the collector can free it
        return made

    it = iter(Dataset.range(2).flat_map(inner))
    next(it)
    gc.collect()
    assert [int(x) for x in it] == [11, 12, 10, 11, 12]


def test_a_program_may_end_in_the_middle():
    code = (
        "from tandem import data\n"
        "it = iter(data.Dataset.range(10**6).map(lambda x: x.numpy(), num_parallel_calls=3).prefetch(8))\n"
        "next(it)\nprint('end')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "end\n" and not done.stderr


# --- files ----------------------------------------------------------------------------------------------------------------------


def test_text_records_and_lists_of_files(tmp_path):
    for name, text in (("a.txt", "one\ntwo\n"), ("b.txt", "three")):
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    lines = data.TextLineDataset(files)
    assert lines.element_spec == TensorSpec((), "string") and isinstance(lines, Dataset)
    assert list(lines.as_numpy_iterator()) == [b"one", b"two", b"three"]
    assert list(data.TextLineDataset(files, num_parallel_reads=2).as_numpy_iterator()) == [b"one", b"three", b"two"]
    listed = Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    assert [n.decode() for n in listed.as_numpy_iterator()] == files
    assert list(listed.flat_map(data.TextLineDataset).as_numpy_iterator()) == [b"one", b"two", b"three"]
    with pytest.raises(errors.NotFoundError, match="none.txt"):
        list(data.TextLineDataset(str(tmp_path / "none.txt")))
    with pytest.raises(errors.InvalidArgumentError, match="No files matched"):
        Dataset.list_files(str(tmp_path / "*.none"))
    fixed = data.FixedLengthRecordDataset(files[0], 2, header_bytes=2)
    assert list(fixed.as_numpy_iterator()) == [b"e\n", b"tw", b"o\n"]


def test_csv(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text('a,b,label\n1,x,0\n2,"y,z",1\n3,,1\n')
    d = data.experimental.make_csv_dataset(str(file), 2, label_name="label", num_epochs=1, shuffle=False)
    features, label = next(iter(d))
    assert (
        features["a"].numpy().tolist() == [1, 2]
        and features["b"].numpy().tolist() == [b"x", b"y,z"]
        and label.numpy().tolist() == [0, 1]
    )
    rows = data.experimental.CsvDataset(str(file), [0, "none", 0], header=True)
    assert [(int(a), b, int(c)) for a, b, c in rows.as_numpy_iterator()] == [(1, b"x", 0), (2, b"y,z", 1), (3, b"none", 1)]


def test_batches_of_sparse_rows():
    import tandem as tf

    rows = Dataset.from_tensor_slices([3, 1, 2]).map(lambda n: tf.ones([n]))
    batches = list(rows.sparse_batch(2, [4]))
    assert [tf.sparse.to_dense(b).numpy().tolist() for b in batches] == [[[1, 1, 1, 0], [1, 0, 0, 0]], [[1, 1, 0, 0]]]
    assert [b.shape.as_list() for b in rows.sparse_batch(2, [None])] == [[2, 3], [1, 2]]
    with pytest.raises(errors.DataLossError, match="does not fit"):
        list(rows.sparse_batch(2, [2]))


def test_batches_of_ragged_elements():
    import tandem as tf

    rows = Dataset.from_tensor_slices([3, 1, 2]).map(lambda n: tf.RaggedTensor.from_tensor(tf.ones([n, 2]) * tf.cast(n, tf.float32)))
    assert rows.element_spec.ragged_rank == 1  # a function that cannot be traced says what it gives when its first element is read
    batches = list(rows.batch(2))
    assert batches[0].to_list() == [[[3, 3], [3, 3], [3, 3]], [[1, 1]]] and batches[1].to_list() == [[[2, 2], [2, 2]]]
    assert rows.batch(2).element_spec.ragged_rank == 2 and [e.to_list() for e in rows.batch(3, drop_remainder=True)][0][1] == [[1, 1]]


def test_rows_of_ragged_tensors_through_batch_and_unbatch():
    import tandem as tf

    source = {"c": tf.ragged.constant([["red", "blue"], ["orange"], ["green"]]), "n": tf.ragged.constant([[7], [], [1, 3]]), "d": [1, 2, 3]}
    dataset = tf.data.Dataset.from_tensor_slices(source)
    assert dataset.element_spec["c"] == tf.RaggedTensorSpec([None], tf.string, 0)
    batches = list(dataset.batch(2))
    assert batches[0]["c"].to_list() == [[b"red", b"blue"], [b"orange"]] and batches[0]["n"].to_list() == [[7], []]
    assert batches[1]["d"].numpy().tolist() == [3] and dataset.batch(2).element_spec["n"] == tf.RaggedTensorSpec([None, None], tf.int32, 1)
    assert [e["n"].numpy().tolist() for e in dataset.batch(2).unbatch()] == [[7], [], [1, 3]]


def test_a_list_that_a_function_gives_is_several_tensors():
    import tandem as tf

    def both(x):
        return tf.py_function(lambda v: (v, tf.strings.as_string(v)), [x], [tf.int64, tf.string])

    assert [(a.numpy(), b.numpy()) for a, b in tf.data.Dataset.range(2).map(both)] == [(0, b"0"), (1, b"1")]
    assert next(iter(tf.data.Dataset.range(3).map(lambda x: [x, x + 1])))[1].numpy() == 1
    assert iter(tf.data.Dataset.range(3)).next().numpy() == 0


def test_a_dataset_of_a_missing_file_prints(tmp_path):
    import tandem as tf

    columns = tf.data.experimental.CsvDataset(str(tmp_path / "no.csv"), [999, 999]).map(lambda *items: tf.stack(items))
    (tmp_path / "no.csv").write_text("1,\n,4\n")
    assert [row.numpy().tolist() for row in columns] == [[1, 999], [999, 4]]
    dataset = tf.data.TextLineDataset(str(tmp_path / "no.txt")).map(lambda line: tf.strings.length(line))
    assert "element_spec" in repr(dataset)
    with pytest.raises(tf.errors.NotFoundError):
        next(iter(dataset))
