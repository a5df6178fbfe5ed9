"""What test_distribute.py runs in a process of its own, since devices are chosen before the first tensor: prints what it found as JSON.

The arguments are the devices of the strategies, by TensorFlow's names. With `cpus` in front, so many logical CPUs are made first."""
import json
import sys

import numpy as np
import tandem as tf
import keras

arguments = sys.argv[1:]
if arguments[0] == "cpus":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
    arguments = arguments[1:]
devices = arguments
random = np.random.RandomState(0)
x, y = random.rand(42, 8).astype("float32"), random.randint(0, 3, 42)
found = {}


class OwnStep(keras.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for m in self.metrics:
            if m.name == "loss":
                m.update_state(loss * float(tf.distribute.get_strategy().num_replicas_in_sync))
        return {"loss": self.metrics[0].result(), "one": tf.constant(1.0)}


def made(kind=keras.Sequential, normalized=False, **how):
    keras.utils.set_random_seed(1)
    model = kind([keras.layers.Dense(12, activation="relu", kernel_regularizer="l2")])
    if normalized:
        model.add(keras.layers.BatchNormalization(synchronized=normalized == "synchronized"))
    model.add(keras.layers.Dense(3, activation="softmax"))
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9, **how)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def trained(strategy, rows=42, **how):
    if strategy is None:
        model = made(**how)
    else:
        with strategy.scope():
            model = made(**how)
    history = model.fit(x[:rows], y[:rows], epochs=2, batch_size=12, verbose=0, shuffle=False).history
    return {
        "history": history,
        "evaluate": model.evaluate(x, y, batch_size=16, verbose=0),
        "predict": model.predict(x, batch_size=13, verbose=0).tolist(),
        "weights": [float(w.sum()) for w in model.get_weights()],
        "updates": int(model.optimizer.iterations),
    }


mirrored = lambda: tf.distribute.MirroredStrategy(devices)  # noqa: E731
unequal = lambda: tf.distribute.TandemStrategy(devices, shares=[3, 1, 1][: len(devices)])  # noqa: E731
found["fit"] = {"one": trained(None), "mirrored": trained(mirrored()), "unequal": trained(unequal())}
found["one row too few"] = {"one": trained(None, rows=37), "mirrored": trained(mirrored(), rows=37), "unequal": trained(unequal(), rows=37)}
found["clipped"] = {"one": trained(None, global_clipnorm=0.1), "mirrored": trained(mirrored(), global_clipnorm=0.1)}
found["normalized"] = {
    "one": trained(None, rows=36, normalized=True), "unequal": trained(unequal(), rows=36, normalized=True),
    "mirrored": trained(mirrored(), rows=36, normalized="synchronized"),
}  # fmt: skip
found["own step"] = {"one": trained(None, kind=OwnStep, rows=36)["history"], "mirrored": trained(mirrored(), kind=OwnStep, rows=36)["history"]}

measured = tf.distribute.TandemStrategy(devices)
found["measured"] = trained(measured)
found["shares"] = list(measured.shares.values())
without_fit = tf.distribute.TandemStrategy(devices)
found["shares without fit"] = list(without_fit.shares.values())
found["traces of the work"] = tf.distribute._shares._products.experimental_get_tracing_count()

# A loop of one's own, in a function and without one.
strategy = mirrored()
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(4)])
    optimizer = keras.optimizers.SGD(0.1)
    mean = keras.metrics.Mean()
    sums = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
    means = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
    firsts = tf.Variable(0.0)
squares = keras.losses.MeanSquaredError(reduction="none")


def step(x):
    context = tf.distribute.get_replica_context()
    with tf.GradientTape() as tape:
        each = squares(tf.ones([len(x), 4]), model(x, training=True))
        loss = tf.nn.compute_average_loss(each, global_batch_size=12)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    mean.update_state(each)
    sums.assign_add(1.0)
    means.assign(float(context.replica_id_in_sync_group))
    firsts.assign_add(1.0)
    return loss, context.all_reduce("sum", tf.reduce_sum(x)), context.all_gather(x, axis=0)


@tf.function
def compiled(x):
    loss, total, gathered = strategy.run(step, args=(x,))
    return strategy.reduce("SUM", loss, axis=None), strategy.reduce("MEAN", total, axis=None), strategy.gather(x, axis=0), gathered


dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(x).batch(12))
losses, same = [], True
for batch in dataset:
    loss, total, whole, gathered = compiled(batch)
    losses.append(float(loss))
    same &= abs(float(total) - whole.numpy().sum()) < 1e-3
    same &= all(np.array_equal(g, whole) for g in strategy.experimental_local_results(gathered))
found["own loop"] = {
    "losses": losses, "same": bool(same), "compiled": "eagerly" not in compiled.explain(), "mean": float(mean.result()), "sums": float(sums),
    "means": float(means), "firsts": float(firsts), "updates": int(optimizer.iterations),
}  # fmt: skip
batch = next(iter(dataset))
found["eager"] = [float(strategy.reduce("SUM", strategy.run(step, args=(batch,))[0], axis=None)), float(compiled(batch)[0])]
found["mean of rows"] = strategy.reduce("MEAN", batch, axis=0).numpy().tolist()
found["devices"] = [v.device for v in strategy.experimental_local_results(strategy.run(lambda: tf.constant(1.0) + 1.0))]
found["workers"] = list(strategy.extended.worker_devices)

errors = {}


def fails(name, function):
    try:
        function()
    except Exception as e:
        errors[name] = f"{type(e).__name__}: {e}"


def only_the_first():
    context = tf.distribute.get_replica_context()
    if context.replica_id_in_sync_group == 0:
        context.all_reduce("sum", tf.constant(1.0))


def in_a_branch():
    context = tf.distribute.get_replica_context()
    return tf.cond(firsts > 0.0, lambda: context.all_reduce("sum", tf.constant(1.0)), lambda: tf.constant(1.0))


fails("only the first", lambda: strategy.run(only_the_first))
fails("in a branch", tf.function(lambda: strategy.run(in_a_branch)))
fails("in the replica", lambda: strategy.run(lambda: 1 / 0))
fails("twice", lambda: tf.distribute.MirroredStrategy([devices[0], devices[0]]))
fails("not there", lambda: tf.distribute.MirroredStrategy(["/GPU:17"]))
fails("shares", lambda: tf.distribute.TandemStrategy(devices, shares=[1]))
found["errors"] = errors
found["after"] = float(strategy.reduce("SUM", strategy.run(lambda: tf.constant(2.0)), axis=None))
print(json.dumps(found))
