"""tf.device: where a program asks ops and variables to be, by TensorFlow's names and its rule for names that are not there."""
import threading

from tandem import _core, errors
from tandem._device_list import LOCAL, LogicalDevice, full_name, logical, soft_placement

_local = threading.local()  # spec: the innermost scope's, merged with those outside of it


def parsed(name):
    from tandem._misc import DeviceSpec

    if isinstance(name, LogicalDevice):
        name = name.name
    if isinstance(name, DeviceSpec):
        return name
    if not isinstance(name, str):
        raise ValueError(f"Expecting a string device name, got {name!r}")
    return DeviceSpec.from_string(name)


def _wanted(spec):
    """The full name that a spec stands for; a type without a number is its first device."""
    return f"/job:{spec.job or 'localhost'}/replica:{spec.replica or 0}/task:{spec.task or 0}/device:{spec.device_type}:{spec.device_index or 0}"


def available():
    return [full_name(k.engine_name) for k in logical()]


def _unsatisfied(wanted):
    kinds = sorted({k.device.device_type for k in logical()}, key="GPU CPU".find)
    raise errors.InvalidArgumentError(
        None, None, f"Could not satisfy device specification '{wanted}'. enable_soft_placement={int(soft_placement())}. "
        f"Supported device types [{', '.join(kinds)}]. All available devices [{', '.join(available())}].",
    )  # fmt: skip


def engine_name_of(spec):
    """The engine's name of the device that a spec asks for; None when it asks for none. One that is not there is another one, if placement is
    soft: a GPU is the first GPU, or the CPU when there is none."""
    if spec.device_type is None:
        return None
    wanted, devices = _wanted(spec), logical()
    for k in devices:
        if full_name(k.engine_name) == wanted:
            return k.engine_name
    if not wanted.startswith(LOCAL + "/") or not soft_placement():
        _unsatisfied(wanted)
    same = [k for k in devices if k.device.device_type == spec.device_type] or [k for k in devices if k.device.device_type == "CPU"]
    return same[0].engine_name


def engine_name(name):
    """Of a string, DeviceSpec or LogicalDevice; a device that is not there is an error."""
    spec = parsed(name)
    if spec.device_type is None:
        raise ValueError(f"Unknown device: {name!r} names no type")
    wanted = _wanted(spec)
    for k in logical():
        if full_name(k.engine_name) == wanted:
            return k.engine_name
    raise errors.InvalidArgumentError(None, None, f"{wanted} unknown device. All available devices [{', '.join(available())}].")


class device:
    """with tf.device("/GPU:0"): where what is inside computes, and where its variables are. None ends what a scope outside asks for."""

    def __init__(self, device_name):
        if callable(device_name) and not isinstance(device_name, str):
            raise RuntimeError("tf.device does not support functions when eager execution is enabled.")
        self._name = device_name

    def __enter__(self):
        outer = getattr(_local, "spec", None)
        if self._name is None or self._name == "":
            spec = None
        else:
            spec = parsed(self._name)
            if outer is not None:
                spec = outer.make_merged_spec(spec)
        engine = None if spec is None else engine_name_of(spec)
        self._outer, _local.spec = outer, spec
        self._before = _core.enter_device(engine)
        return self

    def __exit__(self, *exception):
        _core.leave_device(self._before)
        _local.spec = self._outer
        return False


class on:
    """As `device`, with the engine's own name of a device that is there."""

    def __init__(self, engine_name):
        self._name = engine_name

    def __enter__(self):
        self._before = _core.enter_device(self._name)

    def __exit__(self, *exception):
        _core.leave_device(self._before)
        return False


def device_of(tensor):
    """A tensor's full name of its device; "" for one that is traced and was not asked to be anywhere."""
    name = _engine_device(tensor)
    return full_name(name) if name else ""


def copied(tensor, name):
    return _core.to_device(tensor, name)


def on_gpu(self, gpu_index=0):
    """A copy on that GPU."""
    return copied(self, engine_name(f"/GPU:{gpu_index}"))


def on_cpu(self):
    """A copy that the host reads."""
    return copied(self, engine_name("/CPU:0"))


_engine_device = _core.Tensor.device.__get__  # before the face puts its own property there
