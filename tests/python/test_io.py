"""tf.io: records, examples, images, raw bytes, CSV, files."""

import numpy as np
import pytest

import tandem as tf
from tandem import _messages as train
from tandem import data, errors, io
from tandem._convert import convert


def example(**features):
    made = train.Example()
    for key, values in features.items():
        kind = made.features.feature[key]
        values = values if isinstance(values, list) else [values]
        if isinstance(values[0], bytes):
            kind.bytes_list.value.extend(values)
        elif isinstance(values[0], float):
            kind.float_list.value.extend(values)
        else:
            kind.int64_list.value.extend(values)
    return made.SerializeToString()


def test_messages():
    made = train.Example(features=train.Features(feature={"a": train.Feature(int64_list=train.Int64List(value=[1, -2]))}))
    read = train.Example.FromString(made.SerializeToString())
    assert list(read.features.feature["a"].int64_list.value) == [1, -2]
    assert read.features.feature["a"].WhichOneof("kind") == "int64_list"
    one = train.Example(features=train.Features(feature={"a": train.Feature(int64_list=train.Int64List(value=[1]))}))
    assert one.SerializeToString().hex() == "0a0c0a0a0a016112051a030a0101"


def test_records_there_and_back(tmp_path):
    for options in (None, "GZIP", io.TFRecordOptions("ZLIB")):
        file = str(tmp_path / "r.tfrecord")
        with io.TFRecordWriter(file, options) as writer:
            writer.write(b"one")
            writer.write("two")
        kind = io.TFRecordOptions.get_compression_type_string(options)
        assert list(data.TFRecordDataset(file, kind).as_numpy_iterator()) == [b"one", b"two"]
        assert list(io.tf_record_iterator(file, options)) == [b"one", b"two"]


def test_damaged_records(tmp_path):
    file = tmp_path / "r.tfrecord"
    with io.TFRecordWriter(str(file)) as writer:
        writer.write(b"a record")
    raw = bytearray(file.read_bytes())
    raw[14] ^= 1
    file.write_bytes(raw)
    with pytest.raises(errors.DataLossError):
        list(data.TFRecordDataset(str(file)))


FEATURES = {
    "x": io.FixedLenFeature([2], "float32"),
    "label": io.FixedLenFeature([], "int64", -1),
    "name": io.FixedLenFeature([], "string", ""),
}


def test_parse_examples():
    full, bare = example(x=[1.0, 2.0], label=-5, name=b"n"), example(x=[3.0, 4.0])
    one = io.parse_single_example(full, FEATURES)
    assert one["x"].numpy().tolist() == [1, 2] and one["label"].numpy() == -5 and one["name"].numpy() == b"n"
    both = io.parse_example([full, bare], FEATURES)
    assert (
        both["x"].numpy().tolist() == [[1, 2], [3, 4]]
        and both["label"].numpy().tolist() == [-5, -1]
        and both["name"].numpy().tolist() == [b"n", b""]
    )
    ragged = io.parse_example(
        [example(v=[1, 2, 3]), example(v=[4]), example(w=1)], {"v": io.FixedLenSequenceFeature([], "int64", True, 9)}
    )
    assert ragged["v"].numpy().tolist() == [[1, 2, 3], [4, 9, 9], [9, 9, 9]]


def test_examples_that_are_wrong():
    with pytest.raises(errors.InvalidArgumentError, match="x .* is required but could not be found"):
        io.parse_single_example(example(label=1), FEATURES)
    with pytest.raises(errors.InvalidArgumentError, match="values != expected"):
        io.parse_single_example(example(x=[1.0]), FEATURES)
    with pytest.raises(errors.InvalidArgumentError, match="Data types don't match"):
        io.parse_single_example(example(x=[1, 2]), FEATURES)
    for raw in (b"\x0a\xff", b"\xff" * 12, example(x=[1.0, 2.0])[:-3]):
        with pytest.raises(errors.InvalidArgumentError, match="Could not parse"):
            io.parse_single_example(raw, FEATURES)


def test_a_pipeline_of_examples(tmp_path):
    file = str(tmp_path / "r.tfrecord")
    with io.TFRecordWriter(file) as writer:
        for i in range(5):
            writer.write(example(x=[float(i), 0.5], label=i, name=str(i).encode()))
    d = data.TFRecordDataset(file).map(lambda r: io.parse_single_example(r, FEATURES)).shuffle(5).batch(2)
    seen = sorted(n for batch in d.as_numpy_iterator() for n in batch["name"].tolist())
    assert seen == [b"0", b"1", b"2", b"3", b"4"]
    batched = data.TFRecordDataset(file).batch(5).map(lambda r: io.parse_example(r, FEATURES))
    assert next(iter(batched))["label"].numpy().tolist() == [0, 1, 2, 3, 4]


def test_sequences_of_features():
    message = train.SequenceExample()
    message.context.feature["n"].int64_list.value.append(3)
    for row in ([1.0, 2.0], [3.0, 4.0]):
        message.feature_lists.feature_list["x"].feature.add().float_list.value.extend(row)
    for word in (b"a", b"b"):
        message.feature_lists.feature_list["w"].feature.add().bytes_list.value.append(word)
    context, sequences = io.parse_single_sequence_example(
        message.SerializeToString(),
        {"n": io.FixedLenFeature([], "int64")},
        {"x": io.FixedLenSequenceFeature([2], "float32"), "w": io.FixedLenSequenceFeature([], "string")},
    )
    assert context["n"].numpy() == 3 and sequences["x"].numpy().tolist() == [[1, 2], [3, 4]]
    assert sequences["w"].numpy().tolist() == [b"a", b"b"]
    with pytest.raises(errors.InvalidArgumentError, match="Feature list 'y' is required"):
        io.parse_single_sequence_example(message.SerializeToString(), {}, {"y": io.FixedLenSequenceFeature([], "int64")})
    as_json = '{"features": {"feature": {"label": {"int64List": {"value": [7]}}, "x": {"floatList": {"value": [1, 2]}}}}}'
    assert io.parse_single_example(io.decode_json_example(as_json), FEATURES)["label"].numpy() == 7


def test_images(tmp_path):
    colour = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    png = io.encode_png(colour)
    assert (io.decode_png(png).numpy() == colour).all() and io.decode_image(png, channels=1).shape == (5, 7, 1)
    assert io.decode_image(png, dtype="float32").numpy() == pytest.approx(colour / 255, abs=1e-6)
    bmp = b"BM" + (54 + 16).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
    bmp += (
        (1).to_bytes(4, "little") + (2).to_bytes(4, "little") + b"\1\0" + b"\x18\0" + bytes(24) + bytes([1, 2, 3, 0, 4, 5, 6, 0])
    )
    assert io.decode_bmp(bmp).numpy().tolist() == [[[6, 5, 4]], [[3, 2, 1]]]
    with pytest.raises(errors.InvalidArgumentError):
        io.decode_image(b"not an image")


def test_raw_bytes_and_base64():
    assert io.decode_raw(b"\1\0\2\0", "int16").numpy().tolist() == [1, 2]
    assert io.decode_raw([b"\0\1", b"\0\2"], "uint16", little_endian=False).numpy().tolist() == [[1], [2]]
    with pytest.raises(errors.InvalidArgumentError, match="not a multiple of 4"):
        io.decode_raw(b"abc", "float32")
    assert io.decode_base64(io.encode_base64(b"\xfb\xff")).numpy() == b"\xfb\xff"


def test_csv():
    a, b, c = io.decode_csv(["1,a,2.5", '3,"b,c",'], [[0], [""], [9.0]])
    assert a.numpy().tolist() == [1, 3] and b.numpy().tolist() == [b"a", b"b,c"] and c.numpy().tolist() == [2.5, 9.0]
    (last,) = io.decode_csv("1;2;3", [0], field_delim=";", select_cols=[2])
    assert last.numpy() == 3
    with pytest.raises(errors.InvalidArgumentError, match="Expect 2 fields but have 1"):
        io.decode_csv("1", [0, 0])
    with pytest.raises(errors.InvalidArgumentError, match="Field 0 in record 0 is not a valid int32: x"):
        io.decode_csv("x", [0])


@pytest.mark.parametrize(
    "value",
    [
        np.array([[1.5, -2.0]], np.float32),
        np.array([True, False]),
        np.array(7, np.int64),
        np.array([1, 2], np.uint8),
        np.array(["a", "ü"]),
    ],
)
def test_tensors_as_bytes(value):
    t = convert(value)
    back = io.parse_tensor(io.serialize_tensor(t), t.dtype)
    assert back.shape == t.shape and (back.numpy() == t.numpy()).all()
    with pytest.raises(errors.InvalidArgumentError, match="Type mismatch"):
        io.parse_tensor(io.serialize_tensor(t), "float64")


def test_files(tmp_path):
    file = str(tmp_path / "new" / "f.txt")
    io.write_file(file, "text")
    assert io.read_file(file).numpy() == b"text"
    assert [n.decode() for n in io.matching_files(str(tmp_path / "new" / "*")).numpy()] == [file]
    with pytest.raises(errors.NotFoundError):
        io.read_file(file + "x")
    g = io.gfile
    assert (
        g.exists(file)
        and g.isdir(str(tmp_path))
        and g.listdir(str(tmp_path)) == ["new/"]
        and g.glob(str(tmp_path / "new" / "*.txt")) == [file]
    )
    with g.GFile(file, "a") as f:
        f.write(" more\nline")
    with g.GFile(file) as f:
        assert list(f) == ["text more\n", "line"]
    with pytest.raises(errors.AlreadyExistsError):
        g.copy(file, file)
    g.copy(file, file + "2")
    g.rename(file + "2", file + "3")
    g.remove(file + "3")
    g.rmtree(str(tmp_path / "new"))
    assert not g.exists(file)
    with pytest.raises(errors.NotFoundError):
        g.remove(file)


def test_checkpoints_name_keras_objects_as_tensorflow_does(tmp_path):
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.l1 = tf.keras.layers.Dense(5)
            self.blocks = [tf.keras.layers.Dense(2)]

        def call(self, x):
            return self.blocks[0](self.l1(x))

    net, optimizer = Net(), tf.keras.optimizers.SGD(0.1)
    net(tf.ones([1, 1]))
    functional = tf.keras.Sequential([tf.keras.layers.Input([3]), tf.keras.layers.Dense(2)])
    lstm = tf.keras.layers.LSTM(3)
    lstm(tf.ones([1, 2, 3]))
    path = tf.train.Checkpoint(net=net, optimizer=optimizer, functional=functional, lstm=lstm).save(str(tmp_path / "c"))
    names = [k.replace("/.ATTRIBUTES/VARIABLE_VALUE", "") for k, _ in tf.train.list_variables(path)]
    assert {"net/l1/_kernel", "net/l1/bias", "net/blocks/0/_kernel", "optimizer/_iterations", "optimizer/_learning_rate"} <= set(names)
    assert {"functional/_functional/_operations/1/_kernel", "lstm/cell/kernel", "lstm/cell/recurrent_kernel"} <= set(names)
    bias = tf.Variable(tf.ones([5]))
    status = tf.train.Checkpoint(net=tf.train.Checkpoint(l1=tf.train.Checkpoint(bias=bias))).restore(path)
    status.assert_existing_objects_matched()
    assert bias.numpy().tolist() == [0] * 5


def test_what_is_attached_after_restoring_gets_its_value(tmp_path):
    save = tf.train.Checkpoint()
    save.listed = [tf.Variable(1.0)]
    save.listed.append(tf.Variable(2.0))
    save.mapped = {"one": save.listed[0]}
    save.mapped["two"] = save.listed[1]
    path = save.save(str(tmp_path / "c"))
    restore, two, later, alone = tf.train.Checkpoint(), tf.Variable(0.0), tf.Variable(0.0), tf.Variable(0.0)
    restore.mapped = {"two": two}
    restore.restore(path)
    assert two.numpy() == 2.0
    restore.listed = []
    assert repr(restore.listed) == "ListWrapper([])"
    restore.listed.append(later)
    restore.mapped["one"] = alone
    assert later.numpy() == 1.0 and alone.numpy() == 1.0


def test_a_checkpoint_has_the_place_of_an_iterator(tmp_path):
    iterator = iter(tf.data.Dataset.range(20).batch(2))
    checkpoint = tf.train.Checkpoint(step=tf.Variable(1), iterator=iterator)
    next(iterator), next(iterator)
    path = checkpoint.save(str(tmp_path / "c"))
    next(iterator)
    checkpoint.restore(path)
    assert next(iterator).numpy().tolist() == [4, 5]
    other = iter(tf.data.Dataset.range(20).batch(2))
    tf.train.Checkpoint(iterator=other).restore(path)
    assert next(other).numpy().tolist() == [4, 5]


def test_wav_files():
    samples = np.array([[0.0, 1.0], [0.5, -1.0], [-0.25, 2.0]], np.float32)
    wav = tf.audio.encode_wav(samples, 16000)
    assert wav.numpy()[:4] == b"RIFF" and len(wav.numpy()) == 44 + 12
    audio, rate = tf.audio.decode_wav(wav)
    assert rate.numpy() == 16000 and rate.dtype == tf.int32
    np.testing.assert_array_equal(audio, [[0.0, 32767 / 32768], [0.5, -1.0], [-0.25, 32767 / 32768]])
    np.testing.assert_array_equal(tf.audio.decode_wav(wav, desired_channels=1, desired_samples=4).audio, [[0.0], [0.5], [-0.25], [0.0]])
    with pytest.raises(errors.InvalidArgumentError, match="not a WAV file"):
        tf.audio.decode_wav(b"no")
    with pytest.raises(errors.InvalidArgumentError, match="cut off"):
        tf.audio.decode_wav(wav.numpy()[:50])
    with pytest.raises(errors.InvalidArgumentError, match="2-dimensional"):
        tf.audio.encode_wav([1.0], 8000)
