"""The graph of objects that a checkpoint saves: who holds whom, by what name."""
import collections.abc

import numpy as np

from tandem._face import CoreVariable


def is_keras_variable(x):
    return type(x).__module__.startswith("keras") and hasattr(x, "assign") and hasattr(x, "numpy") and hasattr(x, "path")


def is_leaf(x):
    return isinstance(x, CoreVariable) or is_keras_variable(x)


def is_trackable(x):
    """Whether a checkpoint knows how to look into it."""
    if is_leaf(x) or hasattr(x, "_trackable_children") or hasattr(x, "_saveable_state"):
        return True
    if isinstance(x, (list, tuple)) or isinstance(x, collections.abc.Mapping):
        return bool(children(x))
    return _has_attributes(x)


def _has_attributes(x):
    from tandem._module import Module

    return isinstance(x, Module) or _is_keras(x) or getattr(x, "_is_trackable", False)


def _is_keras(x):
    module = type(x).__module__
    return hasattr(x, "variables") and (
        module.startswith("keras") or any(k.__module__.startswith("keras.") for k in type(x).__mro__)
    ) and not isinstance(x, type)


_skipped = {"_tracker", "_self_tracked_trackables", "_metrics_module", "_inbound_nodes", "_outbound_nodes"}
# What a Keras object holds twice, or holds of others: on TensorFlow, Keras does not track these.
_keras_skipped = _skipped | {
    "_layers", "_metrics", "_losses", "_loss_ids", "_seed_generators", "_parent", "_inputs", "_outputs", "_nodes", "_operations_by_depth", "_nodes_by_depth",
    "_tensor_usage_count", "_loss_tracker", "_compile_metrics", "_compile_loss", "_compile_config", "_inputs_struct", "_outputs_struct", "history",
    "input_spec", "_input_spec",
}  # fmt: skip


def children(x):
    """{name: object}, in the order in which the attributes were set."""
    given = getattr(x, "_trackable_children", None)
    if given is not None and not _is_keras(x):
        return dict(given())
    if is_leaf(x):
        return {}
    if isinstance(x, collections.abc.Mapping):
        return {str(k): v for k, v in x.items() if isinstance(k, (str, int)) and is_trackable(v)}
    if isinstance(x, (list, tuple)):
        return {str(i): v for i, v in enumerate(x) if is_trackable(v)}
    if _is_keras(x):
        return _keras_children(x)
    return {k: v for k, v in getattr(x, "__dict__", {}).items() if k not in _skipped and is_trackable(v)}


def _keras_children(x):
    """By the names of attributes, as TensorFlow finds them; what hangs on none of them, by its place among the variables."""
    found = {k: v for k, v in vars(x).items() if k not in _keras_skipped and is_trackable(v)}
    held = {id(v) for c in found.values() for v in (c if isinstance(c, (list, tuple)) else [c])}
    own = [*getattr(x, "_trainable_variables", ()), *getattr(x, "_non_trainable_variables", ())]
    found.update({f"variables.{i}": v for i, v in enumerate(own) if id(v) not in held})
    return found


def children_and_seeds(x):
    """Generators of random numbers too, which checkpoints leave out as TensorFlow's do: a saved function has their state in it."""
    if _is_seed_generator(x):
        return {"state": x.state}
    held = {} if is_leaf(x) else getattr(x, "__dict__", {})
    return {**children(x), **{k: v for k, v in held.items() if _is_seed_generator(v)}}


def _is_seed_generator(x):
    return type(x).__name__ == "SeedGenerator" and type(x).__module__.startswith("keras")


def walk(root, children=children):
    """Objects by breadth, each with the number, the names of its children and the path under which it is first met."""
    numbers, order, paths = {id(root): 0}, [root], {id(root): ""}
    links, at = [], 0
    while at < len(order):
        x = order[at]
        found = []
        for name, child in children(x).items():
            if id(child) not in numbers:
                numbers[id(child)] = len(order)
                order.append(child)
                prefix = paths[id(x)]
                paths[id(child)] = f"{prefix}/{_escaped(name)}" if prefix else _escaped(name)
            found.append((name, numbers[id(child)]))
        links.append(found)
        at += 1
    return order, links, paths


def _escaped(name):
    return name.replace(".", "..").replace("/", ".S")


# Keras gives these 64 bits on its TensorFlow backend and 32 on the others; a file has what TensorFlow reads.
_wide = {"iteration": np.int64, "seed_generator_state": np.int64}


def value_of(x):
    array = np.asarray(x.numpy())
    return array.astype(_wide.get(x.name, array.dtype)) if is_keras_variable(x) else array


def put_value(x, array):
    if is_keras_variable(x) and x.name in _wide:
        array = array.astype(np.dtype(str(x.dtype)))
    x.assign(array)
