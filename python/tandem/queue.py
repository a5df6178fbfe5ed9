"""tf.queue: queues between threads."""
import heapq
import random as _python_random
import threading

import numpy as np

from tandem import errors
from tandem._arrays import stack, unstack
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._face import any_tensor, number
from tandem._shape import TensorShape


class QueueBase:
    """Elements are tuples of tensors, or dicts when the components have names."""

    def __init__(self, dtypes, shapes, names, name="queue", capacity=None):
        many = isinstance(dtypes, (list, tuple))
        self._dtypes = [as_dtype(d) for d in (dtypes if many else [dtypes])]
        if shapes is not None:
            shapes = shapes if isinstance(shapes, list) or (
                isinstance(shapes, tuple) and not isinstance(shapes, TensorShape) and shapes and not isinstance(shapes[0], int)
            ) else [shapes]
        self._shapes = [TensorShape(None) if shapes is None else TensorShape(s) for s in (shapes or [None] * len(self._dtypes))]
        self._names = [names] if isinstance(names, str) else names
        self._name, self._capacity, self._items, self._closed = name, capacity, [], False
        self._changed = threading.Condition()

    dtypes = property(lambda self: self._dtypes)
    shapes = property(lambda self: self._shapes)
    names = property(lambda self: self._names)
    name = property(lambda self: self._name)
    queue_ref = property(lambda self: self)

    def _put(self, item):
        self._items.append(item)

    def _take(self):
        return self._items.pop(0)

    def _ready(self, count=1):
        return len(self._items) >= count

    def _parts(self, vals):
        if self._names:
            vals = [vals[n] for n in self._names]
        elif len(self._dtypes) == 1:
            vals = vals if isinstance(vals, (list, tuple)) and len(vals) == 1 and any_tensor(vals[0]).shape.is_compatible_with(self._shapes[0]) else [vals]
        made = [any_tensor(v, None if hasattr(v, "dtype") and not isinstance(v, np.ndarray) else d) for v, d in zip(vals, self._dtypes)]
        return made

    def _result(self, parts):
        if self._names:
            return dict(zip(self._names, parts))
        return parts[0] if len(parts) == 1 else list(parts)

    def enqueue(self, vals, name=None):
        parts = self._parts(vals)
        for p, s in zip(parts, self._shapes):
            if not p.shape.is_compatible_with(s):
                raise ValueError(f"Shapes {p.shape} and {s} are incompatible")
        with self._changed:
            if self._closed:
                raise errors.CancelledError(None, None, f"FIFOQueue '{self._name}' is closed.")
            self._changed.wait_for(lambda: self._closed or self._capacity is None or len(self._items) < self._capacity)
            if self._closed:
                raise errors.CancelledError(None, None, f"FIFOQueue '{self._name}' is closed.")
            self._put(parts)
            self._changed.notify_all()

    def enqueue_many(self, vals, name=None):
        columns = [unstack(p) for p in self._parts(vals)]
        for row in zip(*columns):
            self.enqueue(dict(zip(self._names, row)) if self._names else list(row) if len(row) > 1 else row[0])

    def dequeue(self, name=None):
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._ready())
            if not self._items:
                raise errors.OutOfRangeError(
                    None, None, f"FIFOQueue '{self._name}' is closed and has insufficient elements (requested 1, current size 0)"
                )
            parts = self._take()
            self._changed.notify_all()
        return self._result(parts)

    def _take_many(self, n, at_most):
        n = int(number(n))
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) >= n)
            if len(self._items) < n and (not at_most or not self._items):
                raise errors.OutOfRangeError(
                    None,
                    None,
                    f"queue '{self._name}' is closed and has insufficient elements (requested {n}, current size "
                    f"{len(self._items)})",
                )
            rows = [self._take() for _ in range(min(n, len(self._items)))]
            self._changed.notify_all()
        return self._result([self._joined(c) for c in zip(*rows)])

    def _joined(self, column):
        return stack(list(column))

    def dequeue_many(self, n, name=None):
        return self._take_many(n, False)

    def dequeue_up_to(self, n, name=None):
        return self._take_many(n, True)

    def size(self, name=None):
        return convert(np.int32(len(self._items)))

    def close(self, cancel_pending_enqueues=False, name=None):
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def is_closed(self, name=None):
        return convert(self._closed)

    @staticmethod
    def from_list(index, queues):
        return queues[int(number(index))]


class FIFOQueue(QueueBase):
    def __init__(self, capacity, dtypes, shapes=None, names=None, shared_name=None, name="fifo_queue"):
        super().__init__(dtypes, shapes, names, name, None if capacity < 0 else capacity)


class PaddingFIFOQueue(QueueBase):
    """Elements of different lengths are filled with zeros when they are taken together."""

    def __init__(self, capacity, dtypes, shapes, names=None, shared_name=None, name="padding_fifo_queue"):
        super().__init__(dtypes, shapes, names, name, None if capacity < 0 else capacity)

    def _joined(self, column):
        arrays = [np.asarray(c.numpy()) for c in column]
        size = np.max([a.shape for a in arrays], axis=0)
        return convert(np.stack([np.pad(a, [(0, n - m) for n, m in zip(size, a.shape)]) for a in arrays]))


class PriorityQueue(QueueBase):
    """The first component is the rank, lowest first."""

    def __init__(self, capacity, types, shapes, names=None, shared_name=None, name="priority_queue"):
        types = [types] if not isinstance(types, (list, tuple)) else list(types)
        shapes = [()] + (list(shapes) if isinstance(shapes, list) else [shapes])
        super().__init__(["int64", *types], shapes, names, name, None if capacity < 0 else capacity)
        self._count = 0

    def _put(self, item):
        self._count += 1
        heapq.heappush(self._items, (int(item[0].numpy()), self._count, item))

    def _take(self):
        return heapq.heappop(self._items)[2]


class RandomShuffleQueue(QueueBase):
    def __init__(
        self,
        capacity,
        min_after_dequeue,
        dtypes,
        shapes=None,
        names=None,
        seed=None,
        shared_name=None,
        name="random_shuffle_queue",
    ):
        super().__init__(dtypes, shapes, names, name, None if capacity < 0 else capacity)
        self._min, self._random = min_after_dequeue, _python_random.Random(seed)

    def _ready(self, count=1):
        return len(self._items) >= count + self._min or self._closed

    def _take(self):
        return self._items.pop(self._random.randrange(len(self._items)))
