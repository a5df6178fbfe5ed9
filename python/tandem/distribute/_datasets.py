"""Datasets whose batches are divided among replicas."""
import enum

from tandem import nest
from tandem.distribute._values import DistributedValues, PerReplicaSpec, regrouped, rows_of, split


class InputReplicationMode(enum.Enum):
    PER_WORKER, PER_REPLICA = "PER_WORKER", "PER_REPLICA"


class InputOptions:
    def __init__(self, experimental_fetch_to_device=None, experimental_replication_mode=InputReplicationMode.PER_WORKER, experimental_place_dataset_on_device=False,
                 experimental_per_replica_buffer_size=1):  # fmt: skip
        self.experimental_fetch_to_device, self.experimental_replication_mode = experimental_fetch_to_device, experimental_replication_mode
        self.experimental_place_dataset_on_device, self.experimental_per_replica_buffer_size = experimental_place_dataset_on_device, experimental_per_replica_buffer_size


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


class ValueContext:
    """What a function that makes a value for each replica is told."""

    def __init__(self, replica_id_in_sync_group=0, num_replicas_in_sync=1):
        self.replica_id_in_sync_group, self.num_replicas_in_sync = replica_id_in_sync_group, num_replicas_in_sync


class DistributedIterator:
    def __init__(self, iterator, strategy, whole_batches=False):
        self._iterator, self._strategy, self._whole_batches = iterator, strategy, whole_batches

    def __iter__(self):
        return self

    def __next__(self):
        batch, count = next(self._iterator), self._strategy.num_replicas_in_sync
        if not self._whole_batches:
            return regrouped(split(batch, self._strategy.extended.rows_of_replicas(rows_of(batch))))
        batches = [batch]  # one of the dataset's for each replica; the last ones may get no rows
        for more in self._iterator:
            batches.append(more)
            if len(batches) == count:
                break
        while len(batches) < count:
            batches.append(nest.map_structure(lambda x: x[:0], batch))
        return nest.map_structure(lambda *parts: DistributedValues(list(parts)), *batches)

    def get_next(self):
        return next(self)

    def get_next_as_optional(self):
        from tandem.experimental import Optional

        try:
            return Optional(next(self), True)
        except StopIteration:
            return Optional()

    @property
    def element_spec(self):
        return DistributedDataset(self._iterator, self._strategy, self._whole_batches).element_spec


class DistributedDataset:
    """Batches divided among replicas, or a whole one for each."""

    def __init__(self, dataset, strategy, whole_batches=False):
        self._dataset, self._strategy, self._whole_batches = dataset, strategy, whole_batches

    @property
    def element_spec(self):
        """Without extents of batches: each replica has its own."""
        count = self._strategy.num_replicas_in_sync

        def spec(s):
            return PerReplicaSpec(*[type(s)([None, *s.shape[1:]], s.dtype)] * count)

        return nest.map_structure(spec, self._dataset.element_spec)

    def cardinality(self):
        return self._dataset.cardinality()

    def __iter__(self):
        return DistributedIterator(iter(self._dataset), self._strategy, self._whole_batches)

    def __len__(self):
        return len(self._dataset)
