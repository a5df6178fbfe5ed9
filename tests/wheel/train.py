"""A TensorFlow program for a machine that has the wheel alone: trains, saves, loads, and uses what the wheel brings along."""

import sys

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

random = np.random.default_rng(0)
images = random.normal(size=(256, 8, 8, 1)).astype("float32")
labels = (images.mean(axis=(1, 2, 3)) > 0).astype("int64")

keras.utils.set_random_seed(1)
model = keras.Sequential(
    [
        layers.Input((8, 8, 1)),
        layers.Conv2D(8, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(16, activation="tanh"),
        layers.Dense(2),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
history = model.fit(
    tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(256).batch(32).prefetch(2), epochs=5, verbose=0
).history
assert history["loss"][-1] < 0.8 * history["loss"][0], history

folder = sys.argv[1]
model.save(f"{folder}/model.keras")
again = keras.models.load_model(f"{folder}/model.keras")
np.testing.assert_array_equal(again.predict(images[:8], verbose=0), model.predict(images[:8], verbose=0))

# Libraries that the wheel brings along: JPEG, PNG, OpenBLAS and LAPACK.
picture = tf.constant(random.integers(0, 255, (16, 16, 3)).astype("uint8"))
np.testing.assert_array_equal(tf.io.decode_png(tf.io.encode_png(picture)), picture)
assert tf.io.decode_jpeg(tf.io.encode_jpeg(picture)).shape == (16, 16, 3)
square = random.normal(size=(20, 20))
np.testing.assert_allclose(tf.linalg.matmul(square, square), square @ square)
np.testing.assert_allclose(tf.linalg.svd(square, compute_uv=False), np.linalg.svd(square, compute_uv=False))
print(f"loss {history['loss'][0]:.3f} to {history['loss'][-1]:.3f} under tensorflow = {tf.__name__}")
