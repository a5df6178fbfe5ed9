import numpy as np
import tensorflow as tf

w, b = tf.Variable(tf.zeros((3, 1))), tf.Variable(0.0)
x = tf.constant(np.random.default_rng(0).normal(size=(64, 3)).astype("float32"))
y = tf.matmul(x, tf.constant([[1.0], [-2.0], [0.5]])) + 3.0


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    dw, db = tape.gradient(loss, [w, b])
    w.assign_sub(0.1 * dw)
    b.assign_sub(0.1 * db)
    return loss


for _ in range(200):
    loss = step(x, y)
assert float(loss) < 1e-4, loss
assert abs(float(b) - 3.0) < 0.05
assert step.experimental_get_tracing_count() == 1
