"""Keras's Variable over the engine's."""
from keras.src.backend.common import KerasVariable

from keras_tandem.src import replicas
from tandem import _core


class Variable(KerasVariable):
    def _initialize(self, value):
        self._shape = self._validate_shape(tuple(value.shape))
        self._value = _core.Variable(value, name=self._path or self._name or "", trainable=bool(self._trainable), dtype=self._dtype)

    def _initialize_with_initializer(self, initializer):
        with _core.EagerScope():  # a layer may be built while its model's step is traced
            self._initialize(self._convert_to_tensor(initializer(self._shape, dtype=self._dtype), dtype=self._dtype))

    def _deferred_initialize(self):
        with _core.EagerScope():
            super()._deferred_initialize()

    def _direct_assign(self, value):
        if not replicas.stores_in_replica(self, value):
            self._value.store(value)

    def _convert_to_tensor(self, value, dtype=None):
        from keras_tandem.src.ops.core import convert_to_tensor

        return convert_to_tensor(value, dtype=dtype)

    def _maybe_autocast(self, value):
        if isinstance(value, _core.Variable):
            pending = replicas.pending_value(value)
            value = value.read() if pending is None else pending
        return super()._maybe_autocast(value)

    @property
    def trainable(self):
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = bool(value)
        if isinstance(self._value, _core.Variable):
            self._value.core_trainable = bool(value)

    def numpy(self):
        return self.value.numpy()

    def __tandem_tensor__(self):
        return self.value

    def __tandem_variable__(self):
        """The engine's variable, by which a tape differentiates."""
        return self._value

    def __array__(self, dtype=None, copy=None):
        array = self.value.numpy()
        return array if dtype is None else array.astype(dtype)

    def __deepcopy__(self, memo):
        copy = type(self)(
            self.value, trainable=self.trainable, dtype=self._dtype, autocast=self._autocast, aggregation=self._aggregation, name=self._name
        )
        memo[id(self)] = copy
        return copy
