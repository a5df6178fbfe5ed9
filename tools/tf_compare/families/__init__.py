"""Cases by module of TensorFlow: each file has a function fill(cases)."""
import importlib
import pkgutil


def fill(cases):
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"families.{module}").fill(cases)
