"""Not written yet."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args, **kwargs):
        raise NotImplementedError(f"{__name__}.{name} is not there yet")

    return missing
