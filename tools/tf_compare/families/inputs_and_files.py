"""tf.data and tf.io."""
import numpy as np

from inputs import array, text

SOURCES = {"r": "tf.data.Dataset.range(10)", "s": "tf.data.Dataset.from_tensor_slices(x[0])", "d": "tf.data.Dataset.from_tensor_slices({'a': x[0], 'b': (x[1], x[2])})"}


def fill(cases):
    dataset(cases)
    tables(cases)
    rng = cases.rng("tf.io")
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "float16", "float32", "float64", "bool", "complex64"):
        code = f"tf.io.decode_raw(x[0], tf.{dtype})"
        cases.code("tf.io.decode_raw", code, text([bytes(range(16)), bytes(range(1, 17))]))
        if dtype not in ("bool", "complex64"):
            cases.code("tf.io.decode_raw", f"tf.io.decode_raw(x[0], tf.{dtype}, little_endian=False)", text([bytes(range(16))]))
            cases.code("tf.io.decode_raw", f"tf.io.decode_raw(x[0], tf.{dtype}, fixed_length=8)", text([bytes(range(12)), b"ab"]))
        cases.code("tf.io.serialize_tensor", f"tf.io.parse_tensor(tf.io.serialize_tensor(x[0]), tf.{dtype})", array(rng, (2, 3), dtype))
        cases.code("tf.io.serialize_tensor", "tf.io.serialize_tensor(x[0])", array(rng, (2, 3), dtype))
    cases.code("tf.io.decode_raw", "tf.io.decode_raw(x[0], tf.int32)", text(["abc"]))
    cases.code("tf.io.parse_tensor", "tf.io.parse_tensor(b'zz', tf.float32)")
    cases.code("tf.io.parse_tensor", "tf.io.parse_tensor(tf.io.serialize_tensor([1]), tf.float32)")
    for pad in (False, True):
        cases.code("tf.io.encode_base64", f"tf.io.encode_base64(x[0], pad={pad})", text(["", "a", "ab", "abc?>", b"\xff\xfe"]))
        cases.code("tf.io.decode_base64", f"tf.io.decode_base64(tf.io.encode_base64(x[0], pad={pad}))", text(["", "a", "ab", "abc?>"]))
    cases.code("tf.io.decode_base64", "tf.io.decode_base64('!!')")
    for kind in ("", "ZLIB", "GZIP"):
        import gzip
        import zlib

        packed = {"": b"plain", "ZLIB": zlib.compress(b"text" * 9), "GZIP": gzip.compress(b"text" * 9, mtime=0)}[kind]
        cases.code("tf.io.decode_compressed", f"tf.io.decode_compressed(x[0], {kind!r})", text([packed]))
    for code in ("tf.io.decode_csv(x[0], [1, 2.0, 'z'])", "tf.io.decode_csv(x[0], [[], [0.0], ['']])", "tf.io.decode_csv(x[0], [1, 2.0])", "tf.io.decode_csv(x[0], ['', '', ''], select_cols=[0, 2])", "tf.io.decode_csv(x[0], [1.0, 2.0, 'z'], na_value='5')"):
        cases.code("tf.io.decode_csv", code, text(['1,2.5,"a,b"', ',,', '3,4,""""']))
        cases.code("tf.io.decode_csv", code, text(["x,y,z"]))
    cases.code("tf.io.decode_csv", "tf.io.decode_csv(['1|2'], [0, 0], field_delim='|')")
    examples(cases)


def examples(cases):
    make = "(lambda **f: tf.train.Example(features=tf.train.Features(feature={k: (tf.train.Feature(float_list=tf.train.FloatList(value=v)) if v and isinstance(v[0], float) else tf.train.Feature(bytes_list=tf.train.BytesList(value=v)) if v and isinstance(v[0], bytes) else tf.train.Feature(int64_list=tf.train.Int64List(value=v))) for k, v in sorted(f.items())})).SerializeToString())"
    two = f"[{make}(a=[1.5, 2.5], b=[3], c=[b'x', b'y']), {make}(a=[0.5, -1.0], b=[4, 5], c=[b'z'])]"
    for spec in (
        "{'a': tf.io.FixedLenFeature([2], tf.float32)}", "{'a': tf.io.FixedLenFeature([], tf.float32)}", "{'b': tf.io.VarLenFeature(tf.int64)}", "{'c': tf.io.VarLenFeature(tf.string), 'a': tf.io.FixedLenFeature([2], tf.float32)}", "{'b': tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}", "{'b': tf.io.RaggedFeature(tf.int64)}",
        "{'q': tf.io.FixedLenFeature([2], tf.float32)}", "{'q': tf.io.FixedLenFeature([2], tf.float32, default_value=[7.0, 8.0])}", "{'a': tf.io.FixedLenFeature([2], tf.int64)}", "{'s': tf.io.SparseFeature('b', 'a', tf.float32, 10)}", "{'q': tf.io.VarLenFeature(tf.float32)}", "{'q': tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True, default_value=3)}",
    ):  # fmt: skip
        cases.rng("tf.io.parse_example")
        cases.code("tf.io.parse_example", f"tf.io.parse_example({two}, {spec})")
        cases.code("tf.io.parse_single_example", f"tf.io.parse_single_example({two}[0], {spec})")
    cases.code("tf.io.parse_example", "tf.io.parse_example([b'junk!'], {'a': tf.io.FixedLenFeature([2], tf.float32)})")
    cases.code("tf.io.decode_json_example", """tf.io.parse_single_example(tf.io.decode_json_example('{"features": {"feature": {"a": {"int64List": {"value": ["7"]}}}}}'), {'a': tf.io.FixedLenFeature([], tf.int64)})""")
    cases.code("tf.train.Example", f"{make}(a=[1.5], b=[3, -4], c=[b'x'])")
    cases.code("tf.io.parse_single_sequence_example", """tf.io.parse_single_sequence_example(tf.train.SequenceExample(context=tf.train.Features(feature={'n': tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))}), feature_lists=tf.train.FeatureLists(feature_list={'w': tf.train.FeatureList(feature=[tf.train.Feature(int64_list=tf.train.Int64List(value=[1])), tf.train.Feature(int64_list=tf.train.Int64List(value=[2]))])})).SerializeToString(), {'n': tf.io.FixedLenFeature([], tf.int64)}, {'w': tf.io.FixedLenSequenceFeature([], tf.int64)})""")


def dataset(cases):
    r, s = SOURCES["r"], SOURCES["s"]
    for name, chains in {
        "batch": [f"{r}.batch(3)", f"{r}.batch(4, drop_remainder=True)", f"{r}.batch(0)", f"{r}.batch(3).element_spec", f"{s}.batch(2)"], "map": [f"{r}.map(lambda v: v * 2)", f"{s}.map(lambda v: (v + 1, tf.cast(v, tf.int32)))", f"{r}.map(lambda v: {{'k': v}}).element_spec", f"{r}.map(lambda v: v // 0)"], "filter": [f"{r}.filter(lambda v: v % 3 == 0)", f"{r}.filter(lambda v: v)"],
        "take": [f"{r}.take(3)", f"{r}.take(-1)", f"{r}.take(100)"], "skip": [f"{r}.skip(7)", f"{r}.skip(-1)"], "repeat": [f"{r}.take(2).repeat(3)", f"{r}.repeat(0)", f"{r}.repeat().take(12)"], "shuffle": [f"sorted(int(v) for v in {r}.shuffle(5))"], "zip": [f"tf.data.Dataset.zip(({r}, {s}))", f"tf.data.Dataset.zip({r}, {r})"], "concatenate": [f"{r}.concatenate({r}.take(2))", f"{r}.concatenate({s})"],
        "enumerate": [f"{s}.enumerate(start=5)"], "window": [f"{r}.window(3, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(3))", f"{r}.window(4).map(lambda w: w.reduce(tf.constant(0, tf.int64), lambda a, b: a + b))"], "flat_map": [f"{r}.take(3).flat_map(lambda v: tf.data.Dataset.range(v))"], "interleave": [f"{r}.take(4).interleave(lambda v: tf.data.Dataset.from_tensors(v).repeat(3), cycle_length=2, block_length=2)"],
        "padded_batch": [f"{r}.map(lambda v: tf.fill([v % 4], v)).padded_batch(4)", f"{r}.map(lambda v: tf.fill([v % 4], v)).padded_batch(4, padded_shapes=[5], padding_values=tf.constant(-1, tf.int64))", f"{r}.map(lambda v: tf.fill([v % 4], v)).padded_batch(4, padded_shapes=[2])"], "reduce": [f"{r}.reduce(tf.constant(0, tf.int64), lambda a, b: a + b)", f"{r}.reduce(0, lambda a, b: a + tf.cast(b, tf.int32))"],
        "scan": [f"{r}.scan(tf.constant(0, tf.int64), lambda st, v: (st + v, st))"], "take_while": [f"{r}.take_while(lambda v: v < 4)"], "unbatch": [f"{r}.batch(4).unbatch()"], "unique": [f"{r}.map(lambda v: v % 3).unique()"], "shard": [f"{r}.shard(3, 1)", f"{r}.shard(3, 4)"], "cache": [f"{r}.cache()"], "prefetch": [f"{r}.prefetch(2)"], "cardinality": [f"{r}.cardinality()", f"{r}.filter(lambda v: True).cardinality()", f"{r}.repeat().cardinality()", f"{r}.batch(3).cardinality()"],
        "range": ["tf.data.Dataset.range(2, 9, 3)", "tf.data.Dataset.range(5, 0, -2)", "tf.data.Dataset.range(3, output_type=tf.int32)", "tf.data.Dataset.range(3, output_type=tf.float32).element_spec"], "from_tensors": ["tf.data.Dataset.from_tensors(x[0])", "tf.data.Dataset.from_tensors((1, 'a', 2.5)).element_spec"], "from_tensor_slices": [s, SOURCES["d"], f"{SOURCES['d']}.element_spec", "tf.data.Dataset.from_tensor_slices(5)", "tf.data.Dataset.from_tensor_slices(([1, 2], [1, 2, 3]))", "tf.data.Dataset.from_tensor_slices(['a', 'b'])", "tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]]))"],
        "from_generator": ["tf.data.Dataset.from_generator(lambda: iter([1, 2, 3]), output_signature=tf.TensorSpec([], tf.int32))", "tf.data.Dataset.from_generator(lambda: iter([[1], [2, 3]]), output_signature=tf.TensorSpec([None], tf.float32))", "tf.data.Dataset.from_generator(lambda: iter(['a']), output_signature=tf.TensorSpec([], tf.int32))"], "group_by_window": [f"{r}.group_by_window(key_func=lambda v: v % 2, reduce_func=lambda k, d: d.batch(3), window_size=3)"],
        "bucket_by_sequence_length": [f"{r}.map(lambda v: tf.fill([v % 4 + 1], v)).bucket_by_sequence_length(lambda v: tf.shape(v)[0], [2, 4], [2, 2, 2])"], "choose_from_datasets": [f"tf.data.Dataset.choose_from_datasets([{r}, {s}.map(lambda v: tf.cast(v, tf.int64))], tf.data.Dataset.from_tensor_slices(tf.constant([0, 1, 0, 0, 1], tf.int64)))"], "sparse_batch": [f"{r}.map(lambda v: tf.fill([v % 3], v)).sparse_batch(4, [4])"], "ragged_batch": [f"{r}.map(lambda v: tf.fill([v % 3], v)).ragged_batch(4)"],
        "rebatch": [f"{r}.batch(4).rebatch(3)", f"{r}.batch(4).rebatch([2, 3])", f"{r}.batch(4).rebatch(3, drop_remainder=True)"], "get_single_element": [f"{r}.take(1).get_single_element()", f"{r}.get_single_element()"], "as_numpy_iterator": [f"list({r}.as_numpy_iterator())"], "apply": [f"{r}.apply(lambda d: d.take(2))"], "snapshot": [f"{r}.element_spec"], "ignore_errors": [f"{s}.map(lambda v: tf.debugging.check_numerics(1.0 / v, 'm')).ignore_errors()"], "assert_cardinality": [f"{r}.apply(tf.data.experimental.assert_cardinality(10))", f"{r}.apply(tf.data.experimental.assert_cardinality(9))"], "counter": ["tf.data.Dataset.counter(3, 2).take(3)"], "random": ["tf.data.Dataset.random(seed=4).take(2).element_spec"], "sample_from_datasets": [f"tf.data.Dataset.sample_from_datasets([{r}, {r}], weights=[1.0, 0.0])"],
    }.items():  # fmt: skip
        function = f"tf.data.Dataset.{name}"
        rng = cases.rng(function)
        for code in chains:
            cases.code(function, code, array(rng, (5,), "float32"), array(rng, (5, 2), "int32"), array(rng, (5,), "uint8"))


def tables(cases):
    cases.rng("tf.lookup")
    for code in (
        "tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(['a', 'b'], [1, 2]), -1).lookup(tf.constant(['b', 'z']))", "tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(['a', 'b'], tf.constant([0, 1], tf.int64)), 3).lookup(tf.constant(['b', 'zebra', 'q']))",
        "(lambda t: (t.insert(tf.constant([1, 2], tf.int64), tf.constant([5.0, 6.0])), t.lookup(tf.constant([2, 9], tf.int64)), t.size()))(tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, -1.0))[1:]", "tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 1], [1, 2]), -1)",
    ):
        cases.code("tf.lookup", code)
    _ = np
