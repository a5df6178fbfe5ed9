import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(1)
x = np.random.rand(512, 8).astype("float32")
y = (x.sum(axis=1) > 4).astype("int64")
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(512, seed=1).batch(32).prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential([layers.Dense(16, activation="relu", input_shape=(8,)), layers.Dense(1, activation="sigmoid")])
model.compile(optimizer=keras.optimizers.Adam(0.02), loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(data, epochs=8, verbose=0, validation_data=(x, y))
assert history.history["val_accuracy"][-1] > 0.85, history.history

for name in ("saved_folder", "saved.keras", "saved.h5"):  # Keras itself forgets the optimizer in what is saved after an .h5
    model.save(name)
    again = keras.models.load_model(name)
    np.testing.assert_allclose(again.predict(x[:4], verbose=0), model.predict(x[:4], verbose=0), rtol=1e-6)
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations)
