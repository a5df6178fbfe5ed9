"""tf.distribute: one program on several devices. Replicas run one after the other in one graph, and the devices at once; see docs/adr/0047-distribution.md."""
from tandem.distribute._context import ReplicaContext
from tandem.distribute._datasets import (
    DistributedDataset,
    DistributedIterator,
    InputContext,
    InputOptions,
    InputReplicationMode,
)
from tandem.distribute._shares import TandemStrategy
from tandem.distribute._strategy import (
    CentralStorageStrategy,
    CommunicationImplementation,
    CommunicationOptions,
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    MirroredStrategy,
    MultiWorkerMirroredStrategy,
    NcclAllReduce,
    OneDeviceStrategy,
    ReductionToOneDevice,
    RunOptions,
    Strategy,
    StrategyExtended,
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from tandem.distribute._values import DistributedValues, PerReplica, PerReplicaSpec, ReduceOp


def _absent(name):
    def make(*args, **kwargs):
        raise NotImplementedError(f"tf.distribute.{name}: there is one process")

    return make


ParameterServerStrategy, TPUStrategy, Server = [_absent(n) for n in ("ParameterServerStrategy", "TPUStrategy", "Server")]


class experimental:
    """Names that are in tf.distribute too."""

    MirroredStrategy = MirroredStrategy
    CentralStorageStrategy, MultiWorkerMirroredStrategy = CentralStorageStrategy, MultiWorkerMirroredStrategy
    CommunicationImplementation, CollectiveCommunication = CommunicationImplementation, CommunicationImplementation
    CommunicationOptions = CommunicationOptions


__all__ = [
    "CentralStorageStrategy", "CommunicationImplementation", "CommunicationOptions", "CrossDeviceOps", "DistributedDataset", "DistributedIterator",
    "DistributedValues", "HierarchicalCopyAllReduce", "InputContext", "InputOptions", "InputReplicationMode", "MirroredStrategy",
    "MultiWorkerMirroredStrategy", "NcclAllReduce", "OneDeviceStrategy", "ParameterServerStrategy", "PerReplica", "PerReplicaSpec", "ReduceOp",
    "ReductionToOneDevice", "ReplicaContext", "RunOptions", "Server", "Strategy", "StrategyExtended", "TPUStrategy", "TandemStrategy", "experimental",
    "experimental_set_strategy", "get_replica_context", "get_strategy", "has_strategy", "in_cross_replica_context",
]  # fmt: skip
