"""Which strategy and which replica the running code belongs to."""
import threading

from tandem import nest
from tandem._face import any_tensor, ops
from tandem.distribute._values import DistributedValues, is_recorded, reduce_name, reduced

local = threading.local()  # stack: strategies whose scopes are open; replica; chosen


def strategies():
    if not hasattr(local, "stack"):
        local.stack = []
    return local.stack


class Within:
    """Code of a strategy: in one replica, or, with None, between all of them."""

    def __init__(self, strategy, replica):
        self._strategy, self._replica = strategy, replica

    def __enter__(self):
        self._before = replica()
        strategies().append(self._strategy)
        local.replica = self._replica
        return self._replica

    def __exit__(self, *exception):
        strategies().pop()
        local.replica = self._before
        return False


def replica():
    return getattr(local, "replica", None)


def several():
    """The context of a replica that is one of several; else None."""
    found = replica()
    return found if found is not None and found.runs_with > 1 else None


class ReplicaContext:
    """Where a function runs: which replica it is. `weight` is this replica's part of the rows, `runs_with` how many run together."""

    def __init__(self, strategy, replica_id_in_sync_group, weight=None, runs_with=1, take_part=None):
        self._strategy, self._id, self._take_part = strategy, replica_id_in_sync_group, take_part
        self.runs_with = runs_with
        self.weight = 1.0 / runs_with if weight is None else weight
        self.pending, self.stored = {}, set()  # of variables, by their numbers: values to be joined at the end; what was written

    strategy = property(lambda self: self._strategy)
    num_replicas_in_sync = property(lambda self: self._strategy.num_replicas_in_sync)
    replica_id_in_sync_group = property(lambda self: self._id)

    @property
    def devices(self):
        return (self._strategy.extended.worker_devices[self._id if isinstance(self._id, int) else 0],)

    def __enter__(self):
        self._scope = Within(self._strategy, self)
        return self._scope.__enter__()

    def __exit__(self, *exception):
        return self._scope.__exit__(*exception)

    def merge_call(self, merge_fn, args=(), kwargs=None):
        """merge_fn(strategy, …) once for all replicas, with a value for each of them; every replica has to come to this call."""
        if self._take_part is not None:
            return self._take_part(merge_fn, args, kwargs or {})
        with Within(self._strategy, None):
            return merge_fn(self._strategy, *args, **(kwargs or {}))

    def _joined(self, join, value):
        """join(strategy, structure with a value for each replica), the same for every replica."""
        flat = [any_tensor(v) for v in nest.flatten(value)]
        if self.runs_with == 1:
            return nest.pack_sequence_as(value, flat)
        return nest.pack_sequence_as(value, list(self.merge_call(join, (flat,))))

    def all_reduce(self, reduce_op, value, options=None):
        name = reduce_name(reduce_op)
        if self.runs_with > 1 and is_recorded(nest.flatten(value)):
            return self._differentiable_all_reduce(name, value)
        return self._joined(self._reduction(name), value)

    def _reduction(self, name):
        return lambda strategy, flat: [reduced(name, v) for v in flat]

    def _differentiable_all_reduce(self, name, value):
        """Each replica's loss depends on every replica's value: the gradient is reduced, too."""
        from tandem._gradient import custom_gradient

        @custom_gradient
        def all_reduce(*values):
            results = self._joined(self._reduction(name), list(values))
            return results, lambda *gradients: self.all_reduce(name, list(gradients))

        flat = nest.flatten(value)
        return nest.pack_sequence_as(value, nest.flatten(all_reduce(*flat)))

    def all_gather(self, value, axis, options=None):
        def gather(strategy, flat):
            return [ops.concatenate(list(v.values) if isinstance(v, DistributedValues) else [v] * self.runs_with, axis=axis) for v in flat]

        return self._joined(gather, value)

    def __repr__(self):
        return f"ReplicaContext(replica {self._id} of {self.num_replicas_in_sync})"
