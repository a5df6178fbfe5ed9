"""Steps of fit, evaluate and predict on several devices: one graph, in which each replica has its rows of the batch."""
import contextlib
import sys

from keras.src import tree

from keras_tandem.src.ops.core import convert_to_tensor
from tandem import _core


def distribute():
    """The module tandem.distribute, or None while nobody has asked for a strategy."""
    return sys.modules.get("tandem.distribute")


def current_strategy():
    """The strategy whose scope is open, or None."""
    module = distribute()
    return module.get_strategy() if module is not None and module.has_strategy() else None


def several():
    """The context of a replica that is one of several; None elsewhere."""
    module = sys.modules.get("tandem.distribute._context")
    return None if module is None else module.several()


def scale_loss(value):
    """A replica's mean loss by its part of the batch, so that the sum over replicas is the mean of the whole batch."""
    replica = several()
    return value if replica is None else value * convert_to_tensor(replica.weight, value.dtype)


def unscale_loss(value):
    replica = several()
    return value if replica is None or not replica.weight else value / convert_to_tensor(replica.weight, value.dtype)


def merged(update, gradients):
    """update(gradients summed over the replicas), once for all of them. In one replica, or outside of any, just update(gradients)."""
    replica = several()
    if replica is None:
        return update(gradients)
    given = [g is not None for g in gradients]

    def once(strategy, values):
        from tandem.distribute._values import reduced

        found = iter(values)
        return update([reduced("SUM", next(found)) if there else None for there in given])

    return replica.merge_call(once, ([g for g in gradients if g is not None],))


def stores_in_replica(variable, value):
    """Whether a value that a replica assigns was dealt with: variables are shared by the replicas, and each has a value for them.

    Sums (metrics) take every replica's part where they stand, states of generators move on with every draw. Of what else is written the
    floating values become their mean by rows when all replicas are done, and of others the first replica's stays."""
    replica = several()
    if replica is None:
        return False
    number = variable._value.number
    replica.stored.add(number)
    if variable.aggregation == "sum" or variable.dtype.startswith("uint"):
        return False
    if variable.aggregation == "only_first_replica" or "float" not in variable.dtype:
        return replica.replica_id_in_sync_group != 0
    replica.pending[number] = (variable._value, "mean", value)
    return True


def pending_value(variable):
    """What this replica has assigned to a variable that the others have not seen yet; else None."""
    replica = several()
    found = replica.pending.get(variable.number) if replica is not None else None
    return None if found is None else found[2]


class ReplicatedStep:
    """step(data) in each replica, on its rows of the data. The number of rows has to be known while it is traced."""

    def __init__(self, trainer, name, step, strategy):
        self._trainer, self._name, self._step, self._strategy = trainer, name, step, strategy

    def __call__(self, data):
        strategy = self._strategy
        if strategy.num_replicas_in_sync == 1:
            return strategy.run_parts(self._step, [data], [1])[0]
        from tandem.distribute._values import rows_of, split

        rows = strategy.extended.rows_of_replicas(rows_of(tree.flatten(data)))
        with _on_host():  # only the rows of a device are copied to it
            parts = split_tree(data, rows, split)
        results = strategy.run_parts(self._step_and_stored, parts, rows)
        with self._strategy.scope():
            return self._together([r for r, _ in results], [n for n in rows if n], set().union(*[s for _, s in results]))

    def _step_and_stored(self, data):
        result, replica = self._step(data), several()
        return result, set() if replica is None else replica.stored

    def _together(self, results, rows, stored):
        from tandem.distribute._values import weighted_mean

        if len(results) == 1:
            return results[0]
        if self._name == "predict_step":
            return tree.map_structure(lambda *parts: _core.ops.concatenate([convert_to_tensor(p) for p in parts], axis=0), *results)
        if self._trainer._is_metrics_result(results[-1]):
            return self._trainer.get_metrics_result()
        weights = [n / sum(rows) for n in rows]
        if not isinstance(results[-1], dict):
            return tree.map_structure(lambda *parts: weighted_mean(parts, weights), *results)
        # A model's own step: metrics that the replicas have written are asked again, other numbers are means by rows.
        metrics = {m.name: m for m in self._trainer.metrics if any(v._value.number in stored for v in m.variables)}
        return {
            name: metrics[name].result() if name in metrics
            else tree.map_structure(lambda *parts: weighted_mean(parts, weights), *[r[name] for r in results])
            for name in results[-1]
        }  # fmt: skip


def split_tree(data, rows, split):
    leaves = tree.flatten(data)
    return [tree.pack_sequence_as(data, part) for part in split(leaves, rows)]


def _on_host():
    from tandem import device

    return device("/CPU:0")


def scope_of(strategy):
    return contextlib.nullcontext() if strategy is None else strategy.scope()


def measure(trainer, strategy, epoch_iterator):
    """Lets a strategy that wants it measure the devices with the model's own step. Nothing of it stays: variables get back what they had."""
    measured = getattr(strategy.extended, "measure", None)
    if measured is None or strategy.extended.is_measured or trainer.run_eagerly:
        return
    from keras_tandem.src import arrays
    from keras_tandem.src.compiled_step import CompiledStep
    from tandem.distribute._values import rows_of

    batch = tree.map_structure(lambda x: None if x is None else convert_to_tensor(arrays.plain(x)), arrays.first_batch(epoch_iterator))
    epoch_iterator.reset()
    variables = [*trainer.variables, *trainer.optimizer.variables]
    before = [v.numpy() for v in variables]
    count, steps = strategy.num_replicas_in_sync, {}

    def step_on(i):
        def step(data):
            alone = [data if k == i else None for k in range(count)]
            strategy.run_parts(trainer.train_step, alone, [int(k == i) for k in range(count)])
            return {"loss": trainer._loss_tracker.result()}

        return CompiledStep(trainer, f"train_step on {strategy.extended.worker_devices[i]}", step, by_size=True)

    def run(i, rows):
        if i not in steps:
            steps[i] = step_on(i)
        part = tree.map_structure(lambda x: None if x is None else x[:rows], batch)
        float(steps[i](part)["loss"])
        for v in trainer.trainable_variables[-1:]:
            v.numpy()

    try:
        measured(run, rows_of(tree.flatten(batch)))
    finally:
        for v, value in zip(variables, before):
            v.assign(value)
