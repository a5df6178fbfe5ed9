"""tf.distribute over the devices there are: the default strategy, one device, and Mirrored with one replica a device."""
import contextlib
import enum
import json
import os
import threading

from tandem import nest
from tandem._face import any_tensor, ops, tensor
from tandem._specs import TypeSpec


class ReduceOp(enum.Enum):
    SUM, MEAN = "SUM", "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation):
        return {"SUM": ReduceOp.SUM, "MEAN": ReduceOp.MEAN}[aggregation.name]


class InputReplicationMode(enum.Enum):
    PER_WORKER, PER_REPLICA = "PER_WORKER", "PER_REPLICA"


class InputOptions:
    def __init__(self, experimental_fetch_to_device=None, experimental_replication_mode=InputReplicationMode.PER_WORKER, experimental_place_dataset_on_device=False,
                 experimental_per_replica_buffer_size=1):  # fmt: skip
        self.experimental_fetch_to_device, self.experimental_replication_mode = experimental_fetch_to_device, experimental_replication_mode
        self.experimental_place_dataset_on_device, self.experimental_per_replica_buffer_size = experimental_place_dataset_on_device, experimental_per_replica_buffer_size


class RunOptions:
    def __init__(
        self,
        experimental_enable_dynamic_batch_size=True,
        experimental_bucketizing_dynamic_shape=False,
        experimental_xla_options=None,
    ):
        self.experimental_enable_dynamic_batch_size = experimental_enable_dynamic_batch_size


class InputContext:
    """What an input function is told about its place."""

    def __init__(self, num_input_pipelines=1, input_pipeline_id=0, num_replicas_in_sync=1):
        self.num_input_pipelines, self.input_pipeline_id, self.num_replicas_in_sync = num_input_pipelines, input_pipeline_id, num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size):
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size!r} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync!r}"
            )
        return global_batch_size // self.num_replicas_in_sync

    def __str__(self):
        return f"tf.distribute.InputContext(input pipeline id {self.input_pipeline_id}, total: {self.num_input_pipelines})"


class DistributedValues:
    """One value for each replica."""

    _makes_eager = "an argument has a value for each replica"

    def __init__(self, values):
        self._values = tuple(values)

    values = property(lambda self: self._values)

    def __repr__(self):
        return "PerReplica:{\n" + ",\n".join(f"  {i}: {v!r}" for i, v in enumerate(self._values)) + "\n}"


PerReplica = DistributedValues
_local = threading.local()


def _strategies():
    if not hasattr(_local, "stack"):
        _local.stack = []
    return _local.stack


class ReplicaContext:
    """Where a function runs: which replica it is."""

    def __init__(self, strategy, replica_id_in_sync_group):
        self._strategy, self._id = strategy, replica_id_in_sync_group

    strategy = property(lambda self: self._strategy)
    num_replicas_in_sync = property(lambda self: self._strategy.num_replicas_in_sync)
    devices = property(lambda self: (self._strategy.extended.worker_devices[int(self._id) if isinstance(self._id, int) else 0],))

    @property
    def replica_id_in_sync_group(self):
        return self._id

    def __enter__(self):
        self._before = getattr(_local, "replica", None)
        _local.replica = self
        return self

    def __exit__(self, *exception):
        _local.replica = self._before
        return False

    def merge_call(self, merge_fn, args=(), kwargs=None):
        return merge_fn(self._strategy, *args, **(kwargs or {}))

    def all_reduce(self, reduce_op, value, options=None):
        if self.num_replicas_in_sync > 1:
            raise NotImplementedError("all_reduce among several replicas of one process")
        return nest.map_structure(lambda v: any_tensor(v), value)

    def all_gather(self, value, axis, options=None):
        return self.all_reduce(None, value)


class StrategyExtended:
    def __init__(self, strategy, devices):
        self._strategy, self._devices = strategy, tuple(devices)

    worker_devices = property(lambda self: self._devices)
    parameter_devices = property(lambda self: self._devices)
    experimental_require_static_shapes = False

    def variable_created_in_scope(self, v):
        return getattr(v, "_distribute_strategy", None) is self._strategy or (
            getattr(v, "_distribute_strategy", None) is None and self._strategy is _default_strategy()
        )

    def colocate_vars_with(self, colocate_with_variable):
        return contextlib.nullcontext()

    def update(self, var, fn, args=(), kwargs=None, group=True):
        return fn(var, *args, **(kwargs or {}))

    def reduce_to(self, reduce_op, value, destinations, options=None):
        return self._strategy.reduce(reduce_op, value, axis=None)

    def call_for_each_replica(self, fn, args=(), kwargs=None):
        return self._strategy.run(fn, args, kwargs)


class Strategy:
    """Runs a function once for each replica; here replicas take turns."""

    _devices = ("/job:localhost/replica:0/task:0/device:CPU:0",)

    def __init__(self, extended=None):
        self._extended = extended or StrategyExtended(self, self._devices)

    extended = property(lambda self: self._extended)
    cluster_resolver = property(lambda self: None)

    @property
    def num_replicas_in_sync(self):
        return len(self._extended.worker_devices)

    @contextlib.contextmanager
    def scope(self):
        _strategies().append(self)
        before, _local.replica = getattr(_local, "replica", None), None
        _local.cross = True
        try:
            yield self
        finally:
            _strategies().pop()
            _local.replica = before
            _local.cross = bool(_strategies())

    def run(self, fn, args=(), kwargs=None, options=None):
        kwargs, results = kwargs or {}, []
        for i in range(self.num_replicas_in_sync):
            mine, named = _of_replica(args, i), _of_replica(kwargs, i)
            _strategies().append(self)
            try:
                with ReplicaContext(self, i):
                    results.append(fn(*mine, **named))
            finally:
                _strategies().pop()
        if len(results) == 1:
            return results[0]
        return nest.map_structure(lambda *values: DistributedValues(values), *results)

    def reduce(self, reduce_op, value, axis):
        name = reduce_op.upper() if isinstance(reduce_op, str) else reduce_op.value
        if axis is not None and not isinstance(axis, (int,)):
            axis = int(axis)

        def one(v):
            parts = [any_tensor(p) for p in (v.values if isinstance(v, DistributedValues) else [v])]
            if axis is None:
                total = parts[0]
                for p in parts[1:]:
                    total = total + p
                return total if name == "SUM" or len(parts) == 1 else total / len(parts)
            joined = ops.concatenate(parts, axis=axis) if len(parts) > 1 else parts[0]
            if name == "MEAN" and not joined.dtype.is_floating:
                joined = ops.cast(joined, dtype="float64")
            return (ops.sum if name == "SUM" else ops.mean)(joined, axis=[axis])

        return nest.map_structure(one, value)

    def gather(self, value, axis):
        parts = self.experimental_local_results(value)
        return ops.concatenate([tensor(p) for p in parts], axis=axis) if len(parts) > 1 else any_tensor(parts[0])

    def experimental_local_results(self, value):
        return value.values if isinstance(value, DistributedValues) else (value,)

    def experimental_distribute_dataset(self, dataset, options=None):
        if self.num_replicas_in_sync == 1:
            return dataset
        return DistributedDataset(dataset, self)

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        dataset = dataset_fn(InputContext(1, 0, self.num_replicas_in_sync))
        if self.num_replicas_in_sync == 1:
            return dataset
        return DistributedDataset(dataset, self, whole_batches=True)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn):
        class _Context:
            def __init__(self, i, n):
                self.replica_id_in_sync_group, self.num_replicas_in_sync = i, n

        values = [value_fn(_Context(i, self.num_replicas_in_sync)) for i in range(self.num_replicas_in_sync)]
        return DistributedValues(values) if len(values) > 1 else values[0]

    def update_config_proto(self, config_proto):
        return config_proto


def _of_replica(x, i):
    return nest.map_structure(lambda v: v.values[i] if isinstance(v, DistributedValues) else v, x)


class DistributedIterator:
    def __init__(self, iterator, strategy, whole_batches=False):
        self._iterator, self._strategy, self._whole_batches = iterator, strategy, whole_batches

    def __iter__(self):
        return self

    def __next__(self):
        batch, count = next(self._iterator), self._strategy.num_replicas_in_sync
        if self._whole_batches:  # one of the dataset's for each replica; the last ones may get none of a kind
            batches = [batch]
            for more in self._iterator:
                batches.append(more)
                if len(batches) == count:
                    break
            while len(batches) < count:
                batches.append(nest.map_structure(lambda x: x[:0], batch))
            return nest.map_structure(lambda *parts: DistributedValues(list(parts)), *batches)

        def split(x):
            size = -(-x.shape[0] // count)
            return DistributedValues([x[i * size : (i + 1) * size] for i in range(count)])

        return nest.map_structure(split, batch)

    def get_next(self):
        return next(self)

    def get_next_as_optional(self):
        from tandem.experimental import Optional

        try:
            return Optional(next(self), True)
        except StopIteration:
            return Optional()


class PerReplicaSpec(TypeSpec):
    """The type of a value for each replica."""

    def __init__(self, *specs):
        self._specs = specs

    def is_compatible_with(self, spec_or_value):
        return isinstance(spec_or_value, DistributedValues) and len(spec_or_value.values) == len(self._specs)

    def _key(self):
        return self._specs

    def __repr__(self):
        return f"PerReplicaSpec({', '.join(map(repr, self._specs))})"


class DistributedDataset:
    """Batches split among replicas, or a whole one for each."""

    def __init__(self, dataset, strategy, whole_batches=False):
        self._dataset, self._strategy, self._whole_batches = dataset, strategy, whole_batches

    @property
    def element_spec(self):
        """Without extents of batches: each replica has its own."""
        count = self._strategy.num_replicas_in_sync

        def spec(s):
            return PerReplicaSpec(*[type(s)([None, *s.shape[1:]], s.dtype)] * count)

        return nest.map_structure(spec, self._dataset.element_spec)

    def __iter__(self):
        return DistributedIterator(iter(self._dataset), self._strategy, self._whole_batches)

    def __len__(self):
        return len(self._dataset)


class OneDeviceStrategy(Strategy):
    """Everything on one device."""

    def __init__(self, device):
        self._device = device
        super().__init__()


class CrossDeviceOps:
    """How values of several devices are added; there is nothing to choose here."""

    def __init__(self, *args, **kwargs):
        pass


class HierarchicalCopyAllReduce(CrossDeviceOps):
    pass


class NcclAllReduce(CrossDeviceOps):
    pass


class ReductionToOneDevice(CrossDeviceOps):
    pass


class MirroredStrategy(Strategy):
    """A replica for each device that was asked for; devices that are not there share the CPU."""

    def __init__(self, devices=None, cross_device_ops=None):
        from tandem.config import list_logical_devices

        names = list(devices) if devices else [d.name for d in list_logical_devices("GPU") or list_logical_devices("CPU")]
        self._devices = tuple(
            f"/job:localhost/replica:0/task:0/device:{str(d).split('device:')[-1].lstrip('/').upper()}" for d in names
        )
        if len(set(self._devices)) != len(self._devices):
            raise ValueError(f"Duplicates in devices: {names}")
        super().__init__()


def _absent(name):
    def make(*args, **kwargs):
        raise NotImplementedError(f"tf.distribute.{name}: there is one process")

    return make


def _workers():
    """How many workers the variable TF_CONFIG names; one, if it is not set."""
    cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
    return sum(len(addresses) for role, addresses in cluster.items() if role in ("chief", "worker")) or 1


class MultiWorkerMirroredStrategy(MirroredStrategy):
    """One worker is a mirrored strategy of its own; several need a network, which is not there yet."""

    def __init__(self, cluster_resolver=None, communication_options=None):
        if _workers() > 1:
            raise NotImplementedError(f"tf.distribute.MultiWorkerMirroredStrategy: TF_CONFIG names {_workers()} workers, there is one process")
        super().__init__()


class CentralStorageStrategy(MirroredStrategy):
    """Variables on the CPU, a replica for each GPU; without one, everything is on the CPU."""

    def __init__(self, compute_devices=None, parameter_device=None):
        super().__init__(compute_devices)


class CommunicationImplementation(enum.Enum):
    AUTO, RING, NCCL = "AUTO", "RING", "NCCL"


class CommunicationOptions:
    """How workers would talk to each other; kept for programs that say it."""

    def __init__(self, bytes_per_pack=0, timeout_seconds=None, implementation=CommunicationImplementation.AUTO):
        self.bytes_per_pack, self.timeout_seconds, self.implementation = bytes_per_pack, timeout_seconds, implementation


ParameterServerStrategy, TPUStrategy, Server = [_absent(n) for n in ("ParameterServerStrategy", "TPUStrategy", "Server")]
_default = None


def _default_strategy():
    global _default
    if _default is None:
        _default = Strategy()
    return _default


def get_strategy():
    stack = _strategies()
    return stack[-1] if stack else getattr(_local, "chosen", None) or _default_strategy()


def has_strategy():
    return get_strategy() is not _default_strategy()


def get_replica_context():
    found = getattr(_local, "replica", None)
    if found is None and not _strategies():
        return ReplicaContext(get_strategy(), 0)
    return found


def in_cross_replica_context():
    return bool(_strategies()) and getattr(_local, "replica", None) is None


def experimental_set_strategy(strategy):
    if _strategies():
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    _local.chosen = strategy


class experimental:
    """Names that are in tf.distribute too."""

    MirroredStrategy = MirroredStrategy
    CentralStorageStrategy, MultiWorkerMirroredStrategy = CentralStorageStrategy, MultiWorkerMirroredStrategy
    CommunicationImplementation, CollectiveCommunication = CommunicationImplementation, CommunicationImplementation
    CommunicationOptions = CommunicationOptions
