"""`import tensorflow` gives tandem, for this process: what `tandem run` installs."""
import importlib
import importlib.abc
import importlib.machinery
import sys

ALIAS = "tensorflow"


def _resolve(name):
    """The object that tensorflow.a.b stands for; ModuleNotFoundError when there is none."""
    target = importlib.import_module("tandem")
    path = ALIAS
    for part in name.split(".")[1:]:
        path += "." + part
        try:
            target = getattr(target, part)
        except AttributeError as e:
            raise ModuleNotFoundError(f"{path}: tandem has no such module\n  {e}", name=name) from None
    return target


class _Loader(importlib.abc.Loader):
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        # The import system gives whatever stands here now.
        found = sys.modules[module.__name__] = _resolve(module.__name__)
        if not hasattr(found, "__path__") and hasattr(found, "__dict__"):
            found.__path__ = []  # only then does `import tensorflow.a.b` look for b


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != ALIAS and not name.startswith(ALIAS + "."):
            return None
        return importlib.machinery.ModuleSpec(name, _Loader(), is_package=True)


def is_installed():
    return any(isinstance(f, _Finder) for f in sys.meta_path)


def install():
    if not is_installed():
        sys.meta_path.insert(0, _Finder())
