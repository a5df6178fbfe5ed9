"""Strategies: on which devices a program's replicas run."""
import contextlib
import enum
import json
import os

from tandem import _devices, nest
from tandem._device_list import full_name, logical
from tandem._face import any_tensor, ops, tensor
from tandem.distribute import _context, _replicas
from tandem.distribute._datasets import DistributedDataset, InputContext, ValueContext
from tandem.distribute._values import DistributedValues, of_replica, parts_by_shares, reduce_name, reduced, regrouped, rows_of


class RunOptions:
    def __init__(self, experimental_enable_dynamic_batch_size=True, experimental_bucketizing_dynamic_shape=False, experimental_xla_options=None):
        self.experimental_enable_dynamic_batch_size = experimental_enable_dynamic_batch_size
        self.experimental_bucketizing_dynamic_shape, self.experimental_xla_options = experimental_bucketizing_dynamic_shape, experimental_xla_options


class StrategyExtended:
    """A strategy's devices: by the engine's names, None where the program's own choice stays."""

    experimental_require_static_shapes = False

    def __init__(self, strategy, engine_devices, parameter_device=None):
        self._strategy, self.engine_devices = strategy, tuple(engine_devices)
        self.parameter_device = parameter_device or self.engine_devices[0]

    worker_devices = property(lambda self: tuple(full_name(d or "cpu") for d in self.engine_devices))
    parameter_devices = property(lambda self: (full_name(self.parameter_device or "cpu"),))

    def shares(self):
        """Parts of a batch, by replica."""
        return [1.0] * len(self.engine_devices)

    def rows_of_replicas(self, rows):
        return parts_by_shares(rows, self.shares())

    def variable_created_in_scope(self, v):
        made_by = getattr(v, "_distribute_strategy", None)
        return made_by is self._strategy or (made_by is None and self._strategy is default_strategy())

    def colocate_vars_with(self, colocate_with_variable):
        return contextlib.nullcontext()

    def update(self, var, fn, args=(), kwargs=None, group=True):
        return fn(var, *args, **(kwargs or {}))

    def reduce_to(self, reduce_op, value, destinations, options=None):
        return self._strategy.reduce(reduce_op, value, axis=None)

    def batch_reduce_to(self, reduce_op, value_destination_pairs, options=None):
        return [self.reduce_to(reduce_op, value, to) for value, to in value_destination_pairs]

    def call_for_each_replica(self, fn, args=(), kwargs=None):
        return self._strategy.run(fn, args, kwargs)


class Strategy:
    """Runs a function once for each replica, and joins what they give."""

    def __init__(self, extended=None):
        self._extended = extended if extended is not None else StrategyExtended(self, [None])

    extended = property(lambda self: self._extended)
    cluster_resolver = property(lambda self: None)
    num_replicas_in_sync = property(lambda self: len(self._extended.engine_devices))

    @contextlib.contextmanager
    def scope(self):
        """Variables that are made here belong to the strategy, and are on its first device."""
        if _context.several() is not None:
            raise RuntimeError("Must not be called inside a replica context: `strategy.scope` belongs around `strategy.run`")
        where = self._extended.parameter_device
        with _context.Within(self, None), contextlib.nullcontext() if where is None else _devices.on(where):
            yield self

    def run(self, fn, args=(), kwargs=None, options=None):
        """fn once for each replica, with each its part of PerReplica arguments."""
        kwargs, count = kwargs or {}, self.num_replicas_in_sync
        if _context.several() is not None:
            raise RuntimeError("`strategy.run` inside a replica context: a replica cannot have replicas")
        fn = _converted(fn)
        parts = [(of_replica(args, i), of_replica(kwargs, i)) for i in range(count)]
        calls = [lambda a=a, k=k: fn(*a, **k) for a, k in parts]
        return regrouped(_replicas.run(self, range(count), calls, _weights(args, kwargs, count)))

    def run_parts(self, fn, parts, rows):
        """fn of one part of a batch for each replica that has rows of it: [what fn gives]. Weights are by rows."""
        numbers = [i for i, n in enumerate(rows) if n]
        calls = [lambda i=i: fn(parts[i]) for i in numbers]
        return _replicas.run(self, numbers, calls, [rows[i] / sum(rows) for i in numbers])

    def reduce(self, reduce_op, value, axis):
        name = reduce_name(reduce_op)
        axis = axis if axis is None or isinstance(axis, int) else int(axis)
        with _replicas._on(self._extended.parameter_device):
            return nest.map_structure(lambda v: reduced(name, v, axis), value)

    def gather(self, value, axis):
        parts = self.experimental_local_results(value)
        with _replicas._on(self._extended.parameter_device):
            return ops.concatenate([tensor(p) for p in parts], axis=axis) if len(parts) > 1 else any_tensor(parts[0])

    def experimental_local_results(self, value):
        return value.values if isinstance(value, DistributedValues) else (value,)

    def experimental_distribute_dataset(self, dataset, options=None):
        return dataset if self.num_replicas_in_sync == 1 else DistributedDataset(dataset, self)

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        dataset = dataset_fn(InputContext(1, 0, self.num_replicas_in_sync))
        return dataset if self.num_replicas_in_sync == 1 else DistributedDataset(dataset, self, whole_batches=True)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn):
        count = self.num_replicas_in_sync
        values = [value_fn(ValueContext(i, count)) for i in range(count)]
        return DistributedValues(values) if count > 1 else values[0]

    def update_config_proto(self, config_proto):
        return config_proto


def _converted(fn):
    """Inside of a tf.function, replicas' functions are a part of it: their Python `if` and `for` may be over tensors."""
    from tandem._function import autograph

    return autograph.converted_if_enabled(fn)


def _weights(args, kwargs, count):
    """By rows, where each replica has rows of its own; else all alike."""
    for x in nest.flatten((args, kwargs)):
        if isinstance(x, DistributedValues):
            rows = [rows_of(v) for v in x.values]
            if None not in rows and sum(rows):
                return [n / sum(rows) for n in rows]
    return [1.0 / count] * count


def _engine_names(devices):
    """Of TensorFlow's; a name that is not there is an error, as are two of the same."""
    names = [_devices.engine_name(d) for d in devices]
    if len(set(names)) != len(names):
        raise ValueError(f"Duplicates in devices: {[full_name(n) for n in names]}")
    return names


def _best():
    """The GPUs there are, or else the CPU, which may be several logical ones."""
    gpus = [k.engine_name for k in logical() if k.device.device_type == "GPU"]
    return gpus or [k.engine_name for k in logical() if k.device.device_type == "CPU"]


class OneDeviceStrategy(Strategy):
    """Everything on one device."""

    def __init__(self, device):
        spec = _devices.parsed(device)
        super().__init__(StrategyExtended(self, [_devices.engine_name_of(spec) if spec.device_type else _best()[0]]))


class CrossDeviceOps:
    """How values of several devices are added; there is one way here: on the first device, in the order of the replicas."""

    def __init__(self, *args, **kwargs):
        pass


class HierarchicalCopyAllReduce(CrossDeviceOps):
    pass


class NcclAllReduce(CrossDeviceOps):
    pass


class ReductionToOneDevice(CrossDeviceOps):
    pass


class MirroredStrategy(Strategy):
    """A replica for each GPU, or, when there is none, for each logical CPU; `devices` says which ones instead."""

    def __init__(self, devices=None, cross_device_ops=None):
        super().__init__(StrategyExtended(self, _engine_names(devices) if devices else _best()))


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


class CentralStorageStrategy(Strategy):
    """Variables on the CPU, a replica for each GPU; without one, everything is on the CPU."""

    def __init__(self, compute_devices=None, parameter_device=None):
        devices = _engine_names(compute_devices) if compute_devices else _best()
        super().__init__(StrategyExtended(self, devices, _devices.engine_name(parameter_device or "/CPU:0")))


class CommunicationImplementation(enum.Enum):
    AUTO, RING, NCCL = "AUTO", "RING", "NCCL"


class CommunicationOptions:
    """How workers would talk to each other; kept for programs that say it."""

    def __init__(self, bytes_per_pack=0, timeout_seconds=None, implementation=CommunicationImplementation.AUTO):
        self.bytes_per_pack, self.timeout_seconds, self.implementation = bytes_per_pack, timeout_seconds, implementation


_default = None


def default_strategy():
    global _default
    if _default is None:
        _default = Strategy()
    return _default


def get_strategy():
    stack = _context.strategies()
    return stack[-1] if stack else getattr(_context.local, "chosen", None) or default_strategy()


def has_strategy():
    return get_strategy() is not default_strategy()


def get_replica_context():
    found = _context.replica()
    if found is None and not _context.strategies():
        return _context.ReplicaContext(get_strategy(), 0)
    return found


def in_cross_replica_context():
    return bool(_context.strategies()) and _context.replica() is None


def experimental_set_strategy(strategy):
    if _context.strategies():
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    _context.local.chosen = strategy
