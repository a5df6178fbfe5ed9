"""tf.data pipelines as batches for fit, evaluate and predict."""
import sys

from keras.src import tree
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.trainers.data_adapters.data_adapter import DataAdapter

from keras_tandem.src.arrays import dense_batches


class DatasetAdapter(DataAdapter):
    """Behind the interface that Keras takes batches from."""

    def __init__(self, dataset, class_weight=None):
        self._dataset, self._class_weight = dataset, class_weight

    @property
    def pipeline(self):
        return self._dataset._pipe

    def _weighted(self, batch):
        if self._class_weight is None:
            return batch
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(batch)
        if sample_weight is not None:
            raise ValueError("You cannot `class_weight` and `sample_weight` at the same time.")
        if tree.is_nested(y):
            raise ValueError("`class_weight` is only supported for Models with a single output.")
        return x, y, data_adapter_utils.class_weight_to_sample_weights(y, self._class_weight)

    def get_numpy_iterator(self):
        return (self._weighted(batch) for batch in self._dataset)

    def get_tf_dataset(self):
        return self._dataset

    def flat_batches(self):
        """Types of the tensors of a batch, a batch of placeholders, and how tensors become one; None when the engine cannot walk them alone."""
        types = self.pipeline.specs()
        if types is None or self._class_weight is not None or any(dtype.name == "string" or not dims for dtype, dims in types):
            return None
        nest = self._dataset._nest
        return [(dtype, tuple(dims)) for dtype, dims in types], nest.pack(list(range(1, len(types) + 1))), nest.pack

    @property
    def num_batches(self):
        count = int(self._dataset.cardinality())
        return count if count >= 0 else None

    @property
    def batch_size(self):
        return None

    @property
    def has_partial_batch(self):
        return None

    @property
    def partial_batch_size(self):
        return None


def adapted(x, y=None, sample_weight=None, class_weight=None):
    """x, or our own dataset behind Keras's interface."""
    module = sys.modules.get("tandem.data")
    if module is None or not isinstance(x, module.Dataset):
        return x
    for name, what, value in (("y", "the targets", y), ("sample_weights", "the sample weights", sample_weight)):
        if value is not None:
            raise ValueError(f"When providing `x` as a tf.data.Dataset, `{name}` should not be passed. Instead, {what} should be included as part of the tf.data.Dataset.")
    return DatasetAdapter(dense_batches(x), class_weight)
