"""The devices that a program sees, by TensorFlow's names: physical ones, which of them it may use, and what they are divided into."""
import os
from collections import namedtuple

from tandem import _core

LOCAL = "/job:localhost/replica:0/task:0"
_GPUS = ("gpu", "opencl", "cuda")  # how the engine names them, with a number behind
_NO_DEVICES = ("late", "null", "ref")  # for tests and for planning: devices only where the program's environment says so

PhysicalDevice = namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = namedtuple("LogicalDevice", ["name", "device_type"])
_Known = namedtuple("_Known", ["engine_name", "device"])  # the engine's name, and what the program sees


class _State:
    physical = None  # of _Known, once somebody asked
    logical = None  # of _Known, from the start on
    visible = None  # PhysicalDevices; None is all
    parts = {}  # PhysicalDevice -> configurations
    started = False


def _type_of(engine_name):
    family = engine_name.split(":")[0]
    if family in _GPUS:
        return "GPU"
    if family in _NO_DEVICES:
        if os.environ.get("TANDEM_DEVICE") != engine_name:
            return None
        return "GPU" if family == "late" else "CPU"
    return "CPU" if family == "cpu" else None


def _all():
    if _State.physical is None:
        made, counts, chosen = [], {}, os.environ.get("TANDEM_DEVICE")
        names = [name for name, skipped in _core.physical_devices() if not skipped]
        if chosen == "ref":  # it stands in for the CPU
            names.remove("cpu")
        for name in sorted(names, key=lambda n: (not n.startswith("cpu"), n != chosen)):
            kind = _type_of(name)
            if kind is not None:
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
    hidden = [k.engine_name for k in _all() if k.device not in _State.visible and k.device.device_type != "CPU"]
    _core.set_hidden_devices(hidden)


def has_started():
    return _State.started or _core.has_started()


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
