"""tf.config: devices, threads, and whether functions are compiled."""
from collections import namedtuple

from tandem import _core, _device_list, _function, errors
from tandem._device_list import LogicalDevice, PhysicalDevice  # noqa: F401 (names of tf.config)


class LogicalDeviceConfiguration(
    namedtuple("LogicalDeviceConfiguration", ["memory_limit", "experimental_priority", "experimental_device_ordinal"])
):
    def __new__(cls, memory_limit=None, experimental_priority=None, experimental_device_ordinal=None):
        return super().__new__(cls, memory_limit, experimental_priority, experimental_device_ordinal)


_state = {
    "growth": {},
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


def _of_type(devices, device_type):
    return [d for d in devices if device_type in (None, d.device_type)]


def list_physical_devices(device_type=None):
    return _of_type(_device_list.physical(), device_type)


def get_visible_devices(device_type=None):
    return _of_type(_device_list.visible(), device_type)


def set_visible_devices(devices, device_type=None):
    devices = list(devices) if isinstance(devices, (list, tuple)) and not isinstance(devices, PhysicalDevice) else [devices]
    for d in devices:
        _known(d)
        if device_type not in (None, d.device_type):
            raise ValueError(f"Unrecognized device: {d!r}")
    now = _device_list.visible()
    wanted = devices if device_type is None else [d for d in now if d.device_type != device_type] + devices
    if set(wanted) == set(now):
        return
    if _device_list.has_started():
        raise RuntimeError("Visible devices cannot be modified after being initialized")
    _device_list.set_visible(wanted)


def list_logical_devices(device_type=None):
    return _of_type([k.device for k in _device_list.logical()], device_type)


def _known(device):
    _device_list.engine_name_of_physical(device)


def set_logical_device_configuration(device, logical_devices):
    _known(device)
    configurations = list(logical_devices or [LogicalDeviceConfiguration()])
    if device.device_type == "CPU":
        for c in configurations:
            if c.memory_limit is not None:
                raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
            if c.experimental_priority is not None:
                raise ValueError("Setting experimental_priority on CPU virtual devices is currently not supported")
    else:
        if _state["growth"].get(device):
            raise ValueError("Cannot set memory growth on device when virtual devices configured")
        if len({c.memory_limit is None for c in configurations}) > 1 or (len(configurations) > 1 and configurations[0].memory_limit is None):
            raise ValueError("Setting memory limit is required for GPU virtual devices")
    if _device_list.parts_of(device) == configurations:
        return
    if _device_list.has_started():
        raise RuntimeError("Virtual devices cannot be modified after being initialized")
    _device_list.divide(device, configurations)


def get_logical_device_configuration(device):
    _known(device)
    parts = _device_list.parts_of(device)
    return parts if parts is not None else [LogicalDeviceConfiguration()] if device.device_type == "CPU" else None


def get_soft_device_placement():
    return _device_list.soft_placement()


def set_soft_device_placement(enabled):
    _device_list.set_soft_placement(enabled)


def experimental_connect_to_cluster(*args, **kwargs):
    raise NotImplementedError("tf.config.experimental_connect_to_cluster")


def experimental_connect_to_host(*args, **kwargs):
    raise NotImplementedError("tf.config.experimental_connect_to_host")


def _set_threads(which, count):
    count = int(count)
    if count == _state[which]:
        return
    if _device_list.has_started():
        raise RuntimeError(f"{which.capitalize()} op parallelism cannot be modified after initialization.")
    if count < 0:
        raise ValueError(f"{which}_op_parallelism_threads is {count}, it must be 0 or more")
    _state[which] = count


class threading:
    """The engine's threads. There is one pool: ops take turns in it, and each is divided among its threads. The number for one op (`intra`) is
    the pool's, 0 is all cores or what TANDEM_THREADS says. What runs beside it are input pipelines: the number of ops that run at once (`inter`)
    is the most threads that the autotuned stages of a pipeline take together, 0 is as many as their cores (TANDEM_DATA_CORES)."""

    @staticmethod
    def get_inter_op_parallelism_threads():
        return _state["inter"]

    @staticmethod
    def get_intra_op_parallelism_threads():
        return _state["intra"]

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads):
        _set_threads("inter", num_threads)
        _core.set_pipeline_threads(_state["inter"])

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads):
        _set_threads("intra", num_threads)
        _core.set_threads(_state["intra"])


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
        """Memory is taken when it is needed, with growth or without; what a device must not exceed is its memory_limit."""
        _known(device)
        if device.device_type == "CPU":
            raise ValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")
        if _device_list.parts_of(device) is not None:
            raise ValueError("Cannot set memory growth on device when virtual devices configured")
        if _state["growth"].get(device, False) == bool(enable):
            return
        if _device_list.has_started():
            raise RuntimeError("Physical devices cannot be modified after being initialized")
        _state["growth"][device] = bool(enable)

    @staticmethod
    def get_memory_growth(device):
        _known(device)
        if device.device_type == "CPU":
            raise ValueError("Cannot get memory growth on non-GPU and non-Pluggable devices")
        return _state["growth"].get(device, False)

    @staticmethod
    def get_memory_info(device):
        """{'current', 'peak'} in bytes, as TensorFlow has it, and the device's 'limit' (0: none). Of the CPU it is what the engine's tensors take."""
        current, peak, limit = _core.memory_info(_memory_device(device))
        return {"current": current, "peak": peak, "limit": limit}

    @staticmethod
    def get_memory_usage(device):
        return experimental.get_memory_info(device)["current"]

    @staticmethod
    def reset_memory_stats(device):
        _core.reset_peak(_memory_device(device))

    @staticmethod
    def get_device_details(device):
        _known(device)
        if device.device_type == "CPU":
            return {}
        name = _device_list.engine_name_of_physical(device)
        return {"device_name": next((d.description for d in _core.devices() if d.name.startswith(name)), name)}

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



def _memory_device(name):
    """The engine's name of 'GPU:0', '/device:GPU:0' or a full name."""
    from tandem import _devices

    try:
        return _devices.engine_name(name)
    except (ValueError, errors.InvalidArgumentError):
        raise ValueError(f"Failed parsing device name: '{name}'" if not str(name) else f"Failed parsing device name or no such device: '{name}'") from None
