"""Name scopes: prefixes of names, which nothing depends on but printing."""
import threading

_local = threading.local()


def _stack():
    if not hasattr(_local, "stack"):
        _local.stack = []
    return _local.stack


def current_prefix():
    return "".join(f"{name}/" for name in _stack())


def get_current_name_scope():
    return "/".join(_stack())


class name_scope:
    """with tf.name_scope("layer"): what is named inside begins with layer/."""

    def __init__(self, name, default_name=None, values=None):
        if not isinstance(name, str) and name is not None:
            raise ValueError("name for name_scope must be a string.")
        self._name = name if name is not None else default_name

    @property
    def name(self):
        return self._name

    def __enter__(self):
        stack = _stack()
        self._before = list(stack)
        if not self._name:
            stack.clear()
        elif self._name.endswith("/"):
            stack[:] = self._name[:-1].split("/")
        else:
            stack.append(self._name)
        return current_prefix()

    def __exit__(self, *exception):
        _stack()[:] = self._before
        return False
