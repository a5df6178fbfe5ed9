"""tf.config: devices, threads, and whether functions are compiled."""
import os
from collections import namedtuple

from tandem import _function

PhysicalDevice = namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = namedtuple("LogicalDevice", ["name", "device_type"])


class LogicalDeviceConfiguration(
    namedtuple("LogicalDeviceConfiguration", ["memory_limit", "experimental_priority", "experimental_device_ordinal"])
):
    def __new__(cls, memory_limit=None, experimental_priority=None, experimental_device_ordinal=None):
        return super().__new__(cls, memory_limit, experimental_priority, experimental_device_ordinal)


_cpu = PhysicalDevice("/physical_device:CPU:0", "CPU")
_state = {
    "visible": [_cpu],
    "logical": {},
    "soft": True,
    "started": False,
    "sync": True,
    "tf32": True,
    "jit": "",
    "optimizer": {},
    "inter": 0,
    "intra": 0,
    "policy": "silent",
}

run_functions_eagerly, functions_run_eagerly = _function.run_functions_eagerly, _function.functions_run_eagerly
experimental_run_functions_eagerly, experimental_functions_run_eagerly = run_functions_eagerly, functions_run_eagerly


def list_physical_devices(device_type=None):
    return [d for d in [_cpu] if device_type in (None, d.device_type)]


def get_visible_devices(device_type=None):
    return [d for d in _state["visible"] if device_type in (None, d.device_type)]


def set_visible_devices(devices, device_type=None):
    devices = list(devices) if isinstance(devices, (list, tuple)) and not isinstance(devices, PhysicalDevice) else [devices]
    for d in devices:
        if d not in [_cpu]:
            raise ValueError(f"Unrecognized device: {d}")
    kept = [d for d in _state["visible"] if device_type is not None and d.device_type != device_type]
    _state["visible"] = kept + [d for d in devices if device_type in (None, d.device_type)]


def list_logical_devices(device_type=None):
    _state["started"] = True
    made = []
    for d in _state["visible"]:
        count = len(_state["logical"].get(d, [None]))
        made += [LogicalDevice(f"/device:{d.device_type}:{i}", d.device_type) for i in range(count)]
    return [d for d in made if device_type in (None, d.device_type)]


def _known(device):
    if device not in [_cpu]:
        raise ValueError(f"Unrecognized device: {device}")


def set_logical_device_configuration(device, logical_devices):
    _known(device)
    if device.device_type == "CPU" and any(c.memory_limit is not None for c in logical_devices or []):
        raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
    if _state["started"]:
        raise RuntimeError("Virtual devices cannot be modified after being initialized")
    _state["logical"][device] = list(logical_devices or [None])


def get_logical_device_configuration(device):
    _known(device)
    return _state["logical"].get(device, [LogicalDeviceConfiguration()] if device.device_type == "CPU" else None)


def get_soft_device_placement():
    return _state["soft"]


def set_soft_device_placement(enabled):
    _state["soft"] = bool(enabled)


def experimental_connect_to_cluster(*args, **kwargs):
    raise NotImplementedError("tf.config.experimental_connect_to_cluster")


def experimental_connect_to_host(*args, **kwargs):
    raise NotImplementedError("tf.config.experimental_connect_to_host")


class threading:
    """Numbers that programs set; the engine's pool takes its own from TANDEM_THREADS."""

    @staticmethod
    def get_inter_op_parallelism_threads():
        return _state["inter"]

    @staticmethod
    def get_intra_op_parallelism_threads():
        return _state["intra"]

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads):
        _state["inter"] = int(num_threads)

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads):
        _state["intra"] = int(num_threads)


class optimizer:
    """Switches of TensorFlow's graph optimizer; functions are always compiled here."""

    @staticmethod
    def get_experimental_options():
        return dict(_state["optimizer"])

    @staticmethod
    def set_experimental_options(options):
        _state["optimizer"].update(options)

    @staticmethod
    def get_jit():
        return _state["jit"]

    @staticmethod
    def set_jit(enabled):
        _state["jit"] = "autoclustering" if enabled is True or enabled == "autoclustering" else ""


class experimental:
    """tf.config.experimental."""

    VirtualDeviceConfiguration = LogicalDeviceConfiguration
    list_physical_devices, list_logical_devices = staticmethod(list_physical_devices), staticmethod(list_logical_devices)
    get_visible_devices, set_visible_devices = staticmethod(get_visible_devices), staticmethod(set_visible_devices)
    set_virtual_device_configuration = staticmethod(set_logical_device_configuration)
    get_virtual_device_configuration = staticmethod(get_logical_device_configuration)

    @staticmethod
    def set_memory_growth(device, enable):
        _known(device)
        if device.device_type == "CPU":
            raise ValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")

    @staticmethod
    def get_memory_growth(device):
        _known(device)
        raise ValueError("Cannot get memory growth on non-GPU and non-Pluggable devices")

    @staticmethod
    def get_memory_info(device):
        if "CPU" in str(device).upper():
            raise ValueError(f"Cannot get memory info for device '{device}': only devices with memory of their own report it")
        raise ValueError(f"Failed parsing device name or no such device: '{device}'")

    @staticmethod
    def get_memory_usage(device):
        return experimental.get_memory_info(device)

    @staticmethod
    def reset_memory_stats(device):
        experimental.get_memory_info(device)

    @staticmethod
    def get_device_details(device):
        _known(device)
        return {} if device.device_type == "CPU" else {"device_name": device.name}

    @staticmethod
    def enable_op_determinism():
        """Results are the same from run to run anyway."""

    @staticmethod
    def enable_tensor_float_32_execution(enabled):
        _state["tf32"] = bool(enabled)

    @staticmethod
    def tensor_float_32_execution_enabled():
        return _state["tf32"]

    @staticmethod
    def get_synchronous_execution():
        return _state["sync"]

    @staticmethod
    def set_synchronous_execution(enable):
        _state["sync"] = bool(enable)

    @staticmethod
    def get_device_policy():
        return _state["policy"]

    @staticmethod
    def set_device_policy(device_policy):
        _state["policy"] = device_policy or "silent"

    @staticmethod
    def disable_mlir_bridge():
        """There is no such bridge."""

    @staticmethod
    def enable_mlir_bridge():
        raise NotImplementedError("tf.config.experimental.enable_mlir_bridge")


def _threads():
    return int(os.environ.get("TANDEM_THREADS", os.cpu_count() or 1))
