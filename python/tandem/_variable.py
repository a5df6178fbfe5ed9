"""tf.Variable over the engine's: a value that keeps its shape and can be assigned."""
import contextlib
import enum
import sys
import weakref

import numpy as np

from tandem import _core
from tandem import errors
from tandem._dtypes import as_dtype
from tandem._face import Tensor, any_tensor, convert, has_promotion, ops, strict, tensor
from tandem._shape import TensorShape
from tandem._tensor import scalar_text


class VariableSynchronization(enum.Enum):
    AUTO, NONE, ON_WRITE, ON_READ = range(4)


class VariableAggregation(enum.Enum):
    NONE, SUM, MEAN, ONLY_FIRST_REPLICA = range(4)


eagerly = _core.EagerScope  # what is inside computes at once, whatever function is traced outside


_creators = []  # innermost last: f(next_creator, **kwargs)
_counts = {}


def unique_name(base):
    """As Keras and TensorFlow name what has no name: Variable, Variable_1, ..."""
    n = _counts.get(base, -1) + 1
    _counts[base] = n
    return base if n == 0 else f"{base}_{n}"


@contextlib.contextmanager
def variable_creator_scope(variable_creator):
    _creators.append(variable_creator)
    try:
        yield
    finally:
        _creators.remove(variable_creator)


def _created(args, kwargs):
    """A variable made through the creators that scopes have put in."""
    names = ("initial_value", "trainable", "validate_shape", "caching_device", "name", "variable_def", "dtype")
    kwargs = {**dict(zip(names, args)), **kwargs}

    def plain(**given):
        made = _core.Variable.__new__(Variable)
        made.__init__(**{k: v for k, v in given.items() if k in _arguments})
        return made

    def create(level):
        return plain if level < 0 else lambda **given: _creators[level](create(level - 1), **given)

    return create(len(_creators) - 1)(**kwargs)


_arguments = {
    "initial_value", "trainable", "validate_shape", "caching_device", "name", "variable_def", "dtype", "import_scope", "constraint", "synchronization",
    "aggregation", "shape", "experimental_enable_variable_lifting",
}  # fmt: skip


class Variable(_core.Variable):
    """A value that is read as a tensor and changed by assignment."""

    def __new__(cls, *args, **kwargs):
        if cls is Variable and _creators:
            return _created(args, kwargs)
        return _core.Variable.__new__(cls)

    def __init__(self, initial_value=None, trainable=None, validate_shape=True, caching_device=None, name=None, variable_def=None, dtype=None, import_scope=None,
                 constraint=None, synchronization=VariableSynchronization.AUTO, aggregation=VariableAggregation.NONE, shape=None,
                 experimental_enable_variable_lifting=True):  # fmt: skip
        if "_name" in self.__dict__:  # made by a creator
            return
        if initial_value is None:
            raise ValueError("`tf.Variable` requires an initial value: `initial_value` may not be None.")
        from tandem import _trace

        _trace.variable_is_made(self)
        with eagerly():
            value = initial_value() if callable(initial_value) else initial_value
            if not isinstance(value, Tensor) or not value.is_traced:
                value = any_tensor(value, dtype if not isinstance(value, Tensor) else None)
            if isinstance(value, Tensor) and value.is_traced:
                raise _trace.NeedsEager(
                    "a variable's first value is computed inside of the function: the first call runs without compiling"
                )
            if not isinstance(value, Tensor):
                raise NotImplementedError(f"tf.Variable of {value.dtype.name}")
            if dtype is not None and value.dtype is not as_dtype(dtype):
                value = ops.cast(value, dtype=as_dtype(dtype))
            super().__init__(value, name=name or "Variable", trainable=trainable is not False)
        scope = _scope_prefix()
        self._name = f"{scope}{name or 'Variable'}:0"
        self._trainable = trainable is not False
        self._constraint, self._synchronization, self._aggregation = constraint, synchronization, aggregation
        if shape is not None:
            self._static_shape = TensorShape(shape)
        _known[self.number] = self
        if "tandem.distribute" in sys.modules:
            strategy = sys.modules["tandem.distribute"].get_strategy()
            self._distribute_strategy = strategy if sys.modules["tandem.distribute"].has_strategy() else None

    # --- what it is

    name = property(lambda self: self._name)
    trainable = property(lambda self: self._trainable)
    constraint = property(lambda self: self._constraint)
    synchronization = property(lambda self: self._synchronization)
    aggregation = property(lambda self: self._aggregation)
    ndim = property(lambda self: len(self.dims))
    op = property(lambda self: self)
    handle = property(lambda self: self)
    graph = property(lambda self: None)
    is_traced = False
    _shared_name = property(lambda self: self._name.split(":")[0])
    initial_value = property(lambda self: self.read())
    __array_priority__ = 100

    def get_shape(self):
        return self.shape

    def ref(self):
        from tandem._tensor import Reference

        return Reference(self)

    experimental_ref = ref

    def is_initialized(self, name=None):
        return convert(True)

    @property
    def device(self):
        with eagerly():
            return self.read().device

    # --- reading

    def value(self):
        return self.read()

    def read_value(self):
        return ops.identity(self.read())

    def numpy(self):
        return self.read().numpy()

    def eval(self, session=None):
        return self.numpy()

    def initialized_value(self):
        return self.read()

    def __array__(self, dtype=None, copy=None):
        return self.read().__array__(dtype)

    def __getitem__(self, key):
        part = self.read()[key]
        return VariableSlice._of(part, self, key)

    def __iter__(self):
        return iter(self.read())

    def __len__(self):
        return len(self.read())

    def __bool__(self):
        return bool(self.read())

    def __int__(self):
        return int(self.read())

    def __float__(self):
        return float(self.read())

    def __index__(self):
        return self.read().__index__()

    def __round__(self, n=None):
        return self.read().__round__(n)

    def __complex__(self):
        return complex(self.read())

    def __hash__(self):
        raise TypeError("Variable is unhashable. Instead, use variable.ref() as the key. (Variable: %r)" % (self,))

    def __repr__(self):
        if _core.is_tracing():
            return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"
        array = self.numpy()
        text = repr(array) if np.ndim(array) or self.dtype.name == "string" else scalar_text(array)
        newline = "\n" if "\n" in text else ""
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, numpy={newline}{text}>"

    def __copy__(self):
        return Variable(self.read(), name=self.name.split(":")[0], trainable=self.trainable)

    def __deepcopy__(self, memo):
        made = self.__copy__()
        memo[id(self)] = made
        return made

    def __reduce__(self):
        return _restored, (self.numpy(), self.trainable, self.name.split(":")[0])

    def __getattr__(self, name):
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    # --- changing

    def _as_mine(self, value):
        """A tensor of the variable's type; another one is an error, unless types are promoted."""
        return ops.cast(value, dtype=self.dtype) if has_promotion() and isinstance(value, Tensor) else tensor(value, self.dtype)

    def _new_value(self, value):
        if isinstance(value, _core.Variable):
            value = value.read()
        value = self._as_mine(value) if not isinstance(value, np.ndarray) else convert(value, self.dtype)
        if not value.shape.is_compatible_with(self.shape) and "_static_shape" not in self.__dict__:
            name = self.name.split(":")[0]
            raise ValueError(
                f"Cannot assign value to variable ' {name}:0': Shape mismatch.The variable shape {self.shape}, and the assigned "
                f"value shape {value.shape} are incompatible."
            )
        return value

    def _left_to_replicas(self, new_value, is_sum_of_parts=False):
        """Whether an assignment in a replica was dealt with: a strategy's variables are shared by its replicas, and `aggregation` says what
        becomes of their values. Sums add up where the variable stands; without aggregation the first replica's value is the variable's."""
        module = sys.modules.get("tandem.distribute._context")
        replica = module.several() if module is not None else None
        if replica is None or self.__dict__.get("_distribute_strategy") is None:
            return False
        if self._aggregation is VariableAggregation.SUM and is_sum_of_parts:
            return False
        if self._aggregation in (VariableAggregation.SUM, VariableAggregation.MEAN):
            how = "sum" if self._aggregation is VariableAggregation.SUM else "mean"
            replica.pending[self.number] = (self, how, new_value())
            return True
        return replica.replica_id_in_sync_group != 0

    def assign(self, value, use_locking=False, name=None, read_value=True):
        value = self._new_value(value)
        if not self._left_to_replicas(lambda: value):
            self.store(value)
        return self if read_value else None

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        delta = self._new_value(delta) if not isinstance(delta, Tensor) or delta.ndim else self._as_mine(delta)
        if not self._left_to_replicas(lambda: self.read() + delta, is_sum_of_parts=True):
            self.store_add(delta)
        return self if read_value else None

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        delta = self._new_value(delta) if not isinstance(delta, Tensor) or delta.ndim else self._as_mine(delta)
        if not self._left_to_replicas(lambda: self.read() - delta, is_sum_of_parts=True):
            self.store_sub(delta)
        return self if read_value else None

    def load(self, value, session=None):
        self.assign(value)

    def count_up_to(self, limit):
        before = self.read()
        if before.item() >= limit:
            raise errors.OutOfRangeError(None, None, f"Reached limit of {limit}")
        self.assign_add(1)
        return before

    def _slices(self, sparse_delta):
        return convert_indices(sparse_delta.indices), tensor(sparse_delta.values, self.dtype)

    def _scattered(self, sparse_delta, mode):
        from tandem._indexed_slices import IndexedSlices

        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(f"Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: {sparse_delta}")
        at, values = self._slices(sparse_delta)
        wanted = [*at.dims, *self.dims[1:]]
        if list(values.dims) != wanted:
            values = ops.broadcast_to(values, shape=wanted)
        self.store(_scatter(self.read(), ops.expand_dims(at, axis=[-1]), values, mode))
        return self

    def scatter_add(self, sparse_delta, use_locking=False, name=None):
        return self._scattered(sparse_delta, "add")

    def scatter_sub(self, sparse_delta, use_locking=False, name=None):
        return self._scattered(sparse_delta, "sub")

    def scatter_update(self, sparse_delta, use_locking=False, name=None):
        return self._scattered(sparse_delta, "set")

    def scatter_max(self, sparse_delta, use_locking=False, name=None):
        return self._scattered(sparse_delta, "max")

    def scatter_min(self, sparse_delta, use_locking=False, name=None):
        return self._scattered(sparse_delta, "min")

    def scatter_mul(self, sparse_delta, use_locking=False, name=None):
        return self._scattered(sparse_delta, "mul")

    def scatter_div(self, sparse_delta, use_locking=False, name=None):
        return self._scattered(sparse_delta, "div")

    def batch_scatter_update(self, sparse_delta, use_locking=False, name=None):
        at, values = self._slices(sparse_delta)
        lead = at.dims[:-1]
        rows = [
            ops.broadcast_to(
                ops.expand_dims(ops.iota(shape=lead, axis=i, dtype="int32"), axis=[-1]), shape=at.dims
            ) for i in range(len(lead))
        ]
        self.store(_scatter(self.read(), ops.stack([*rows, ops.cast(at, dtype="int32")], axis=-1), values, "set"))
        return self

    def _scattered_nd(self, indices, updates, mode):
        self.store(_scatter(self.read(), tensor(indices), tensor(updates, self.dtype), mode))
        return self.read()

    def scatter_nd_add(self, indices, updates, name=None):
        return self._scattered_nd(indices, updates, "add")

    def scatter_nd_sub(self, indices, updates, name=None):
        return self._scattered_nd(indices, updates, "sub")

    def scatter_nd_update(self, indices, updates, name=None):
        return self._scattered_nd(indices, updates, "set")

    def scatter_nd_max(self, indices, updates, name=None):
        return self._scattered_nd(indices, updates, "max")

    def scatter_nd_min(self, indices, updates, name=None):
        return self._scattered_nd(indices, updates, "min")

    def sparse_read(self, indices, name=None):
        return ops.take(self.read(), tensor(indices), axis=0)

    def gather_nd(self, indices, name=None):
        return ops.gather_nd(self.read(), tensor(indices))


def convert_indices(x):
    x = tensor(x)
    return x if x.dtype.is_integer else ops.cast(x, dtype="int32")


def _scatter(x, at, values, mode):
    if mode == "sub":
        return strict.scatter(x, at, ops.negative(values), mode="add")
    if mode == "div":
        return strict.scatter(x, at, ops.reciprocal(values), mode="mul")
    return strict.scatter(x, at, values, mode=mode)


def _restored(array, trainable, name):
    return Variable(array, trainable=trainable, name=name)


def _scope_prefix():
    from tandem import _names

    return _names.current_prefix()


_known = weakref.WeakValueDictionary()  # by the engine's number


def of_number(number):
    """The Python object of a variable of the engine."""
    return _known.get(number)


class VariableSlice:
    """v[...]: a tensor that can also be assigned to. Only the assignments are here; the tensor itself gets them as attributes."""

    @staticmethod
    def _of(part, variable, key):
        part.assign = lambda value, name=None, read_value=True: _assign_slice(variable, key, value, None)
        part.assign_add = lambda value, name=None, read_value=True: _assign_slice(variable, key, value, strict.add)
        part.assign_sub = lambda value, name=None, read_value=True: _assign_slice(variable, key, value, strict.subtract)
        return part


def _assign_slice(variable, key, value, combine):
    """Writes into a part: the numbers of the elements that the key picks say where."""
    x = variable.read()
    count = 1
    for d in x.dims:
        count = count * d
    places = ops.reshape(ops.iota(shape=[count], dtype="int32"), shape=x.dims)[key]
    value = tensor(value, variable.dtype) if not isinstance(value, np.ndarray) else convert(value, variable.dtype)
    flat = ops.reshape(x, shape=[count])
    if combine is not None:
        value = combine(ops.take(flat, places, axis=0), value)
    value = ops.broadcast_to(value, shape=places.dims)
    at = ops.reshape(places, shape=[-1, 1])
    made = strict.scatter(flat, at, ops.reshape(value, shape=[-1]), mode="set")
    variable.store(ops.reshape(made, shape=x.dims))
    return variable
