"""Writes what tf.data gives for small pipelines to tests/data/pipelines, which tests/unit/data_values.cpp compares with.

Run with a Python that has TensorFlow: `python tools/tfdata_values.py`. Also writes the files that the pipelines read: images, records.
"""
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests/data/pipelines"
LINES = []


def put(name, dataset):
    """One line a pipeline: elements with | between, components with ;, each as extents:numbers."""
    elements = []
    for element in dataset:
        components = [np.asarray(c) for c in tf.nest.flatten(element)]
        elements.append(";".join(f"{','.join(map(str, c.shape))}:{','.join(repr(float(x)) for x in c.ravel())}" for c in components))
    LINES.append(f"{name} {dataset.cardinality().numpy()} {'|'.join(elements)}")


def ragged(lengths):
    return tf.data.Dataset.from_generator(lambda: (np.arange(n, dtype=np.int64) + 10 * n for n in lengths),
                                          output_signature=tf.TensorSpec([None], tf.int64))


def pipelines():
    r = tf.data.Dataset.range
    put("range_step", r(10, 2, -3))
    put("batch", r(10).batch(4))
    put("batch_drop", r(10).batch(4, drop_remainder=True))
    put("unbatch", r(10).batch(4).unbatch())
    put("rebatch", r(10).batch(3).rebatch(4))
    put("rebatch_drop", r(10).batch(3).rebatch(4, drop_remainder=True))
    put("repeat_batch", r(3).repeat(3).batch(4))
    put("skip_take_shard", r(20).skip(3).take(12).shard(4, 2))
    put("concatenate", r(3).concatenate(r(10, 12)))
    put("zip", tf.data.Dataset.zip(r(5), r(10, 13)))
    put("enumerate", r(10, 13).enumerate(start=5))
    put("unique", tf.data.Dataset.from_tensor_slices(np.array([1, 3, 1, 2, 3, 4], np.int64)).unique())
    put("scan", r(6).scan(np.int64(0), lambda s, x: (s + x, s * 10 + x)))
    put("filter", r(10).filter(lambda x: x % 3 == 1))
    windows = lambda *a, **k: r(10).window(*a, **k).flat_map(lambda w: w.batch(99))
    put("window", windows(3))
    put("window_shift", windows(3, shift=1))
    put("window_stride", windows(3, shift=2, stride=2))
    put("window_drop", windows(3, shift=2, stride=2, drop_remainder=True))
    put("window_gap", windows(2, shift=4))
    many = lambda x: tf.data.Dataset.from_tensors(x).repeat(x + 1)
    put("flat_map", r(4).flat_map(many))
    put("interleave", r(6).interleave(many, cycle_length=2, block_length=1))
    put("interleave_block", r(6).interleave(many, cycle_length=3, block_length=2))
    put("interleave_wide", r(3).interleave(many, cycle_length=8, block_length=1))
    put("padded_batch", ragged([2, 4, 1, 3, 0]).padded_batch(2))
    put("padded_batch_value", ragged([2, 4, 1]).padded_batch(2, padded_shapes=[5], padding_values=np.int64(-1)))
    put("bucket", ragged([2, 7, 1, 3, 9, 4, 6, 5, 2]).bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2]))
    put("bucket_boundary", ragged([2, 1, 3, 4, 5, 2]).bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2], pad_to_bucket_boundary=True))
    put("choose", tf.data.Dataset.choose_from_datasets([r(3), r(10, 12)], tf.data.Dataset.from_tensor_slices(
        np.array([0, 1, 1, 0, 1, 0], np.int64)), stop_on_empty_dataset=False))
    put("choose_stop", tf.data.Dataset.choose_from_datasets([r(3), r(10, 12)], tf.data.Dataset.from_tensor_slices(
        np.array([0, 1, 1, 0, 1, 0], np.int64)), stop_on_empty_dataset=True))
    put("csv", tf.data.experimental.CsvDataset(str(FOLDER / "table.csv"), [tf.float32, tf.constant([7], tf.int32), tf.float64], header=True))


def files():
    (FOLDER / "table.csv").write_text('a,b,c\n1.5,2,3\n-2e3,,"4.25"\n"0.125",-5,1e-9\n')
    for compression in ("", "GZIP", "ZLIB"):
        name = f"records{'.' + compression.lower() if compression else ''}.tfrecord"
        with tf.io.TFRecordWriter(str(FOLDER / name), compression or None) as w:
            for n in (0, 1, 5, 300):
                w.write(bytes((7 * i + n) % 256 for i in range(n)))
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:37, 0:53]
    image = np.stack([x * 4, y * 6, (x + y) * 2], -1).astype(np.uint8)
    noise = rng.integers(0, 256, (9, 11, 4)).astype(np.uint8)
    pictures = {"colour.jpg": tf.io.encode_jpeg(image, quality=90), "grey.jpg": tf.io.encode_jpeg(image[:, :, :1], format="grayscale"),
                "colour.png": tf.io.encode_png(noise[:, :, :3]), "alpha.png": tf.io.encode_png(noise), "grey.png": tf.io.encode_png(noise[:, :, :1])}
    for name, data in pictures.items():
        (FOLDER / name).write_bytes(data.numpy())
        decoded = tf.io.decode_image(data).numpy()
        put("image_" + name, tf.data.Dataset.from_tensors(decoded))
        put("resized_" + name, tf.data.Dataset.from_tensors(tf.image.resize(decoded, [8, 20])))
    np.save(FOLDER / "array.npy", np.arange(24, dtype=np.float32).reshape(6, 4))
    np.save(FOLDER / "columns.npy", np.asfortranarray(np.arange(24, dtype=np.int16).reshape(6, 4)))
    np.savez(FOLDER / "stored.npz", x=np.arange(12, dtype=np.float64).reshape(6, 2), y=np.arange(6, dtype=np.int32))
    np.savez_compressed(FOLDER / "deflated.npz", x=np.arange(12, dtype=np.float64).reshape(6, 2), y=np.arange(6, dtype=np.int32))


FOLDER.mkdir(exist_ok=True)
files()
pipelines()
(FOLDER / "values.txt").write_text("\n".join(LINES) + "\n")
