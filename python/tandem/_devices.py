"""Devices as labels: everything runs where the engine puts it."""
import threading

_local = threading.local()


class device:
    """with tf.device("/GPU:0"): what is not there is placed on the CPU, as TensorFlow's soft placement does."""

    def __init__(self, device_name):
        if callable(device_name) and not isinstance(device_name, str):
            raise RuntimeError("tf.device does not support functions when eager execution is enabled.")
        self._name = device_name

    def __enter__(self):
        from tandem._misc import DeviceSpec

        if isinstance(self._name, str) and self._name:
            DeviceSpec.from_string(self._name if self._name.startswith("/") else "/" + self._name)
        self._before = getattr(_local, "name", None)
        _local.name = self._name

    def __exit__(self, *exception):
        _local.name = self._before
        return False
