"""tf.train: checkpoints in TensorFlow's format, and its messages for examples."""
import os
import re
import time

import numpy as np

from tandem import _trackable
from tandem._bundle import Reader, write
from tandem._messages import (  # noqa: F401
    BytesList, Example, Feature, FeatureList, FeatureLists, Features, FloatList, Int64List, SequenceExample,
)  # fmt: skip
from tandem._variable import Variable

_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = ".ATTRIBUTES/VARIABLE_VALUE"


def _graph_proto(root):
    """The object graph as a message, and {key: object} of what has a value."""
    from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

    order, links, paths = _trackable.walk(root)
    graph, values = TrackableObjectGraph(), {}
    for x, found in zip(order, links):
        node = graph.nodes.add()
        for name, number in found:
            node.children.add(local_name=name, node_id=number)
        if _trackable.is_leaf(x):
            key = f"{paths[id(x)]}/{_VALUE}"
            name = getattr(x, "name", "") or ""
            node.attributes.add(name="VARIABLE_VALUE", full_name=name.split(":")[0], checkpoint_key=key)
            values[key] = x
        elif hasattr(x, "_saveable_state"):
            key = f"{paths[id(x)]}/.ATTRIBUTES/py_state"
            node.attributes.add(name="py_state", full_name="", checkpoint_key=key)
            values[key] = x
    return graph, values


class _Status:
    """What restoring matched, and assertions about it."""

    def __init__(self, reader, missing_objects, unused, checkpoint=None):
        self._reader, self._missing, self._unused = reader, missing_objects, unused

    def assert_consumed(self):
        if self._unused:
            raise AssertionError(f"Unresolved object in checkpoint: {self._unused}")
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self):
        if self._missing:
            raise AssertionError(f"Object not found in checkpoint or not assigned a value: {self._missing}")
        return self

    def assert_nontrivial_match(self):
        return self

    def expect_partial(self):
        return self

    def initialize_or_restore(self, session=None):
        return self

    run_restore_ops = initialize_or_restore


def _restored(root, prefix):
    from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

    reader = Reader(prefix)
    graph = TrackableObjectGraph.FromString(bytes(reader.get_tensor(_GRAPH)))
    used, reached = _restore_from(reader, graph, root, 0)
    unused = [c.attributes[0].checkpoint_key for i, c in enumerate(graph.nodes) if i not in used and c.attributes]
    unused = [k for k in unused if not k.startswith("save_counter/")]
    order, _, paths = _trackable.walk(root)
    missing = [paths[id(x)] for x in order if id(x) not in reached and (_trackable.is_leaf(x) or hasattr(x, "_restore_state"))]
    return _Status(reader, [m for m in missing if m != "save_counter"], unused)


def _restore_from(reader, graph, root, number):
    """Gives an object, and what hangs on it, the values of a node; (nodes that were used, ids of the objects that were reached)."""
    queue, seen, used = [(root, number)], {id(root)}, set()
    while queue:
        x, number = queue.pop(0)
        used.add(number)
        node = graph.nodes[number]
        for attribute in node.attributes:
            if _trackable.is_leaf(x) and attribute.name == "VARIABLE_VALUE":
                _trackable.put_value(x, _fitting(reader.get_tensor(attribute.checkpoint_key), x))
            elif hasattr(x, "_restore_state") and attribute.name == "py_state":
                x._restore_state(reader.get_tensor(attribute.checkpoint_key))
        names = {c.local_name: c.node_id for c in node.children}
        if hasattr(x, "_restore_later"):
            x._restore_later(lambda name, child, names=names: name in names and _restore_from(reader, graph, child, names[name]))
        for name, child in _trackable.children(x).items():
            if name in names and id(child) not in seen:
                seen.add(id(child))
                queue.append((child, names[name]))
    return used, seen


class _Tracked:
    """A list or a dict in a checkpoint's attribute: what is put into it after restoring gets its value then."""

    _restore_child = None

    def _restore_later(self, restore):
        self._restore_child = restore

    def _entered(self, name, value):
        if self._restore_child is not None and _trackable.is_trackable(value):
            self._restore_child(str(name), value)


class ListWrapper(_Tracked, list):
    def _trackable_children(self):
        return {str(i): v for i, v in enumerate(self) if _trackable.is_trackable(v)}

    def append(self, value):
        super().append(value)
        self._entered(len(self) - 1, value)

    def extend(self, values):
        for value in values:
            self.append(value)

    def __iadd__(self, values):
        self.extend(values)
        return self

    def __setitem__(self, i, value):
        super().__setitem__(i, value)
        self._entered(i, value)

    def __repr__(self):
        return f"ListWrapper({super().__repr__()})"


class DictWrapper(_Tracked, dict):
    def _trackable_children(self):
        return {str(k): v for k, v in self.items() if _trackable.is_trackable(v)}

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self._entered(key, value)

    def __repr__(self):
        return f"DictWrapper({super().__repr__()})"


def _fitting(array, x):
    if tuple(array.shape) != tuple(x.shape):
        raise ValueError(
            f"Received incompatible tensor with shape {array.shape} when attempting to restore variable with shape {x.shape} "
            f"and name {x.name}."
        )
    return array


class Checkpoint:
    """Saves and restores the variables that objects hold, by the names of the attributes that lead to them."""

    _is_trackable = True

    def __init__(self, root=None, **kwargs):
        self._root_object = root
        for name, value in sorted(kwargs.items()):
            if not _trackable.is_trackable(value) and not isinstance(
                value, (list, tuple, dict)
            ) and not hasattr(value, "__dict__"):
                raise ValueError(
                    f"`Checkpoint` was expecting {name} to be a trackable object (an object derived from `Trackable`), got "
                    f"{value}."
                )
            setattr(self, name, value)
        self._save_counter = None

    def _trackable_children(self):
        found = dict(_trackable.children(self._root_object)) if self._root_object is not None else {}
        if self._root_object is not None:
            found["root"] = self._root_object
        found.update({k: v for k, v in vars(self).items() if not k.startswith("_") and (_trackable.is_trackable(v) or hasattr(v, "__dict__"))})
        if self._save_counter is not None:
            found["save_counter"] = self._save_counter
        return found

    def __setattr__(self, name, value):
        if type(value) is list and not name.startswith("_"):
            value = ListWrapper(value)
        elif type(value) is dict and not name.startswith("_"):
            value = DictWrapper(value)
        object.__setattr__(self, name, value)
        if self.__dict__.get("_restore_child") is not None and not name.startswith("_") and _trackable.is_trackable(value):
            self._restore_child(name, value)

    def _restore_later(self, restore):
        self._restore_child = restore

    @property
    def save_counter(self):
        if self._save_counter is None:
            self._save_counter = Variable(np.int64(0), name="save_counter", trainable=False)
        return self._save_counter

    def write(self, file_prefix, options=None):
        graph, values = _graph_proto(_Root(self))
        tensors = {
            key: (x._saveable_state() if hasattr(x, "_saveable_state") else _trackable.value_of(x)) for key, x in values.items()
        }
        word = np.empty((), object)
        word[()] = graph.SerializeToString()
        tensors[_GRAPH] = word
        write(str(file_prefix), tensors)
        return str(file_prefix)

    def save(self, file_prefix, options=None):
        self.save_counter.assign_add(1)
        path = self.write(f"{file_prefix}-{int(self.save_counter.numpy())}")
        update_checkpoint_state(os.path.dirname(path) or ".", path)
        return path

    def read(self, save_path, options=None):
        return _restored(_Root(self), _prefix_of(save_path))

    def restore(self, save_path, options=None):
        if save_path is None:
            return _Status(None, [], [])
        self.save_counter  # made now, so that the number goes on
        return self.read(save_path)


class _Root:
    """A checkpoint as the first node: the root object's children and its own."""

    def __init__(self, checkpoint):
        self._checkpoint = checkpoint

    def _restore_later(self, restore):
        self._checkpoint._restore_later(restore)

    def _trackable_children(self):
        c = self._checkpoint
        found = c._trackable_children()
        if c._root_object is not None:
            found["root"] = self
        return found


def _prefix_of(path):
    path = os.fspath(path)
    if os.path.isdir(path):
        found = latest_checkpoint(path)
        if found is None:
            raise ValueError(f"no checkpoint in {path}")
        return found
    return path


# --- the file "checkpoint" ------------------------------------------------------------------------------------------------------


class CheckpointState:
    def __init__(
        self, model_checkpoint_path, all_model_checkpoint_paths, all_model_checkpoint_timestamps=(), last_preserved_timestamp=0.0
    ):
        self.model_checkpoint_path, self.all_model_checkpoint_paths = model_checkpoint_path, list(all_model_checkpoint_paths)
        self.all_model_checkpoint_timestamps, self.last_preserved_timestamp = list(
            all_model_checkpoint_timestamps
        ), last_preserved_timestamp


def update_checkpoint_state(folder, path, paths=None, stamps=None, latest_filename=None):
    paths = [path] if paths is None else paths

    def relative(p):
        return os.path.relpath(p, folder) if os.path.dirname(os.path.abspath(p)) == os.path.abspath(folder) else p

    lines = [f'model_checkpoint_path: "{relative(path)}"'] + [f'all_model_checkpoint_paths: "{relative(p)}"' for p in paths]
    lines += [f"all_model_checkpoint_timestamps: {t!r}" for t in stamps or []]
    target = os.path.join(folder, latest_filename or "checkpoint")
    with open(target + ".tmp", "w") as f:
        f.write("\n".join(lines) + "\n")
    os.replace(target + ".tmp", target)


def get_checkpoint_state(checkpoint_dir, latest_filename=None):
    path = os.path.join(os.fspath(checkpoint_dir), latest_filename or "checkpoint")
    if not os.path.exists(path):
        return None
    latest, every, stamps = None, [], []
    for line in open(path):
        key, _, value = line.strip().partition(": ")
        if key == "model_checkpoint_path":
            latest = value.strip('"')
        elif key == "all_model_checkpoint_paths":
            every.append(value.strip('"'))
        elif key == "all_model_checkpoint_timestamps":
            stamps.append(float(value))

    def whole(p):
        return p if os.path.isabs(p) else os.path.join(os.fspath(checkpoint_dir), p)

    return None if latest is None else CheckpointState(whole(latest), [whole(p) for p in every], stamps)


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    return state.model_checkpoint_path if state and os.path.exists(state.model_checkpoint_path + ".index") else None


class CheckpointManager:
    """Keeps the last few checkpoints in a folder."""

    def __init__(self, checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours=None, checkpoint_name="ckpt", step_counter=None, checkpoint_interval=None,
                 init_fn=None, last_checkpoint_step=None):  # fmt: skip
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint, self._directory, self._max, self._every = checkpoint, os.fspath(directory), max_to_keep, keep_checkpoint_every_n_hours
        self._name, self._step, self._interval, self._init_fn = checkpoint_name, step_counter, checkpoint_interval, init_fn
        self._last_step, self._last_kept = last_checkpoint_step, time.time()
        state = get_checkpoint_state(self._directory)
        self._kept = [(p, time.time()) for p in state.all_model_checkpoint_paths if os.path.exists(p + ".index")] if state else []
        self._latest = self._kept[-1][0] if self._kept else None

    directory = property(lambda self: self._directory)
    checkpoint = property(lambda self: self._checkpoint)
    checkpoint_interval = property(lambda self: self._interval)
    latest_checkpoint = property(lambda self: self._latest)
    checkpoints = property(lambda self: [p for p, _ in self._kept])

    def save(self, checkpoint_number=None, check_interval=True, options=None):
        if self._interval is not None and check_interval:
            step = int(self._step.numpy() if hasattr(self._step, "numpy") else self._step)
            if self._last_step is not None and step < self._last_step + self._interval:
                return None
            self._last_step = step
        prefix = os.path.join(self._directory, self._name)
        if checkpoint_number is None:
            self._checkpoint.save_counter.assign_add(1)
            number = int(self._checkpoint.save_counter.numpy())
        else:
            number = int(checkpoint_number.numpy() if hasattr(checkpoint_number, "numpy") else checkpoint_number)
        path = self._checkpoint.write(f"{prefix}-{number}")
        self._latest = path
        self._kept = [k for k in self._kept if k[0] != path] + [(path, time.time())]
        while self._max is not None and len(self._kept) > self._max:
            old, stamp = self._kept.pop(0)
            if self._every is not None and stamp - self._last_kept >= self._every * 3600:
                self._last_kept = stamp
                continue
            _delete(old)
        update_checkpoint_state(self._directory, path, [p for p, _ in self._kept], [t for _, t in self._kept])
        return path

    def restore_or_initialize(self):
        if self._latest is not None:
            self._checkpoint.restore(self._latest)
            return self._latest
        if self._init_fn is not None:
            self._init_fn()
        return None

    def sync(self):
        """Saving is done when save returns."""


def _delete(prefix):
    folder, name = os.path.split(prefix)
    for f in os.listdir(folder or "."):
        if re.fullmatch(re.escape(name) + r"\.(index|data-\d{5}-of-\d{5})", f):
            os.remove(os.path.join(folder, f))


# --- looking into files ---------------------------------------------------------------------------------------------------------


def load_checkpoint(ckpt_dir_or_file):
    return Reader(_prefix_of(ckpt_dir_or_file))


def load_variable(ckpt_dir_or_file, name):
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name[:-2] if name.endswith(":0") else name)


def list_variables(ckpt_dir_or_file):
    shapes = load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map()
    return [(name, shapes[name]) for name in sorted(shapes)]


def checkpoints_iterator(checkpoint_dir, min_interval_secs=0, timeout=None, timeout_fn=None):
    last = None
    while True:
        start = time.time()
        while True:
            found = latest_checkpoint(checkpoint_dir)
            if found is not None and found != last:
                break
            if timeout is not None and time.time() - start > timeout:
                if timeout_fn is None or timeout_fn():
                    return
                start = time.time()
            time.sleep(0.2)
        began, last = time.time(), found
        yield found
        time.sleep(max(0.0, began + min_interval_secs - time.time()))


class CheckpointOptions:
    def __init__(self, experimental_io_device=None, experimental_enable_async_checkpoint=False, experimental_write_callbacks=None, enable_async=False,
                 experimental_skip_slot_variables=False, experimental_sharding_callback=None):  # fmt: skip
        self.experimental_io_device, self.enable_async = experimental_io_device, enable_async


class TrackableView:
    """The graph of objects that hang on one."""

    def __init__(self, root):
        self._root = root

    root = property(lambda self: self._root)

    @classmethod
    def children(cls, obj, save_type=None, **kwargs):
        return _trackable.children(obj)

    def descendants(self):
        return _trackable.walk(self._root)[0]


class CheckpointView:
    """The graph of objects in a file."""

    def __init__(self, save_path, options=None):
        from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

        reader = Reader(_prefix_of(save_path))
        self._graph = TrackableObjectGraph.FromString(bytes(reader.get_tensor(_GRAPH)))

    def children(self, node_id):
        return {c.local_name: c.node_id for c in self._graph.nodes[node_id].children}

    def descendants(self):
        seen, queue = [], [0]
        while queue:
            n = queue.pop(0)
            if n not in seen:
                seen.append(n)
                queue += self.children(n).values()
        return seen

    def match(self, obj):
        found, queue = {0: obj}, [(0, obj)]
        while queue:
            number, x = queue.pop(0)
            names = self.children(number)
            for name, child in _trackable.children(x).items():
                if name in names and names[name] not in found:
                    found[names[name]] = child
                    queue.append((names[name], child))
        return dict(sorted(found.items()))

    def diff(self, obj):
        found = self.match(obj)
        ours = {id(v) for v in found.values()}
        return found, [
            n for n in range(len(self._graph.nodes)) if n not in found
        ], [x for x in _trackable.walk(obj)[0] if id(x) not in ours]


class ExponentialMovingAverage:
    """Averages of variables that follow them slowly."""

    def __init__(self, decay, num_updates=None, zero_debias=False, name="ExponentialMovingAverage"):
        self._decay, self._num_updates, self._zero_debias, self._name, self._averages = decay, num_updates, zero_debias, name, {}

    name = property(lambda self: self._name)

    def apply(self, var_list=None):
        decay = self._decay
        if self._num_updates is not None:
            n = float(self._num_updates)
            decay = min(decay, (1 + n) / (10 + n))
        for v in var_list:
            if v.number not in self._averages:
                self._averages[v.number] = Variable(
                    v.read() * 0 if self._zero_debias else v.read(), trainable=False, name=f"{v.name.split(':')[0]}/{self._name}"
                )
            average = self._averages[v.number]
            average.assign_sub((average.read() - v.read()) * (1.0 - decay))

    def average(self, var):
        return self._averages.get(var.number)

    def average_name(self, var):
        return f"{var.name.split(':')[0]}/{self._name}"


class Coordinator:
    """Asks threads to stop."""

    def __init__(self, clean_stop_exception_types=None):
        import threading

        self._event = threading.Event()

    def should_stop(self):
        return self._event.is_set()

    def request_stop(self, ex=None):
        self._event.set()

    def clear_stop(self):
        self._event.clear()

    def wait_for_stop(self, timeout=None):
        return self._event.wait(timeout)

    def join(self, threads=None, stop_grace_period_secs=120, ignore_live_threads=False):
        for t in threads or []:
            t.join(stop_grace_period_secs)


class PythonState:
    """A base for state of Python's own in a checkpoint: serialize() and deserialize(string)."""

    def _saveable_state(self):
        word = np.empty((), object)
        text = self.serialize()
        word[()] = text.encode() if isinstance(text, str) else text
        return word

    def _restore_state(self, value):
        self.deserialize(value.decode() if isinstance(value, bytes) else value)


class experimental:
    PythonState = PythonState


def __getattr__(name):
    """Descriptions of clusters load when they are asked for: they are messages of TensorBoard's."""
    if name in ("ClusterDef", "ClusterSpec", "JobDef"):
        from tandem import _cluster

        return getattr(_cluster, name)
    raise AttributeError(f"module 'tandem.train' has no '{name}': docs/coverage.md lists what there is of TensorFlow")
