"""The devices that a program sees, by TensorFlow's names: physical ones, which of them it may use, and what they are divided into."""
import os
from collections import namedtuple

from tandem import _core

LOCAL = "/job:localhost/replica:0/task:0"
PhysicalDevice = namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = namedtuple("LogicalDevice", ["name", "device_type"])
_Known = namedtuple("_Known", ["engine_name", "device"])  # the engine's name, and what the program sees


class _State:
    physical = None  # of _Known, once somebody asked
    logical = None  # of _Known, from the start on
    visible = None  # PhysicalDevices; None is all
    parts = {}  # PhysicalDevice -> configurations
    started = False
    soft = True


def _type_of(engine_name):
    """What is not the CPU, or stands in for it, is a card."""
    return "CPU" if engine_name.split(":")[0] in ("cpu", "ref", "null") else "GPU"


def _all():
    """The devices that every program has, and the one that TANDEM_DEVICE names."""
    if _State.physical is None:
        made, counts, chosen = [], {}, os.environ.get("TANDEM_DEVICE")
        names = [name for name, is_ordinary in _core.physical_devices() if is_ordinary or name == chosen]
        if chosen in ("ref", "null"):
            names.remove("cpu")
        for name in sorted(names, key=lambda n: (not n.startswith("cpu"), n != chosen)):
            kind = _type_of(name)
            number = counts[kind] = counts.get(kind, -1) + 1
            made.append(_Known(name, PhysicalDevice(f"/physical_device:{kind}:{number}", kind)))
        _State.physical = made
    return _State.physical


def physical():
    return [k.device for k in _all()]


def engine_name_of_physical(device):
    for k in _all():
        if k.device == device:
            return k.engine_name
    raise ValueError(f"Unrecognized device: {device!r}")


def visible():
    return physical() if _State.visible is None else list(_State.visible)


def set_visible(devices):
    _State.visible = list(devices)
    _core.set_visible_devices([k.engine_name for k in _all() if k.device in _State.visible])


def has_started():
    return _State.started or _core.has_started()


def soft_placement():
    return _State.soft


def set_soft_placement(enabled):
    _State.soft = bool(enabled)
    if _State.logical is not None:  # before that nothing has been placed, and the engine need not start
        _core.set_soft_placement(_State.soft)


def parts_of(device):
    return _State.parts.get(device)


def divide(device, configurations):
    _State.parts[device] = list(configurations)
    limits = [int((c.memory_limit or 0) * 2**20) for c in configurations]
    _core.configure_device(engine_name_of_physical(device), limits)


def logical():
    """What the visible devices are divided into, as pairs of the engine's name and a LogicalDevice. From now on that stays so."""
    if _State.logical is None:
        _State.started = True
        made, counts = [], {}
        for known in _all():
            device = known.device
            if device not in visible():
                continue
            count = len(_State.parts.get(device) or [None])
            for i in range(count):
                number = counts[device.device_type] = counts.get(device.device_type, -1) + 1
                name = known.engine_name if count == 1 else f"{known.engine_name}:{i}"
                made.append(_Known(name, LogicalDevice(f"/device:{device.device_type}:{number}", device.device_type)))
        _State.logical = made
        _core.set_soft_placement(_State.soft)
    return _State.logical


_full_names = {}


def full_name(engine_name):
    """/job:localhost/replica:0/task:0/device:GPU:0 of "gpu:0"."""
    found = _full_names.get(engine_name)
    if found is None:
        short = next((k.device.name for k in logical() if k.engine_name == engine_name), None)
        if short is None:
            short = "/device:CPU:0" if _type_of(engine_name) != "GPU" else f"/device:{engine_name.upper()}"
        found = _full_names[engine_name] = LOCAL + short
    return found
