"""The graph of objects that a checkpoint saves: who holds whom, by what name."""
import collections.abc

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
    if hasattr(x, "_layers") and hasattr(x, "compile"):
        found = {f"layer-{i}": layer for i, layer in enumerate(x.layers)}
        own = {k: v for k, v in vars(x).items() if not k.startswith("_") and is_trackable(v) and k != "optimizer"}
        if getattr(x, "optimizer", None) is not None:
            own["optimizer"] = x.optimizer
        return {**found, **own}
    return {f"variables/{i}": v for i, v in enumerate(x.variables)}


def walk(root):
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


def value_of(x):
    return x.numpy()


def put_value(x, array):
    x.assign(array)
