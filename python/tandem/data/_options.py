"""tf.data.Options. What the pipelines have no use for is kept and does nothing."""

import enum


class AutoShardPolicy(enum.IntEnum):
    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.IntEnum):
    WARN = 0
    IGNORE = 1
    FAIL = 2


class AutotuneAlgorithm(enum.IntEnum):
    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class _Group:
    """Named settings; None until one is set. A name that is not known is an error, as a misspelt one would do nothing."""

    _names = ()

    def __init__(self):
        for name in self._names:
            object.__setattr__(self, name, None)

    def __setattr__(self, name, value):
        if name not in self._names:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)

    def __eq__(self, other):
        return type(other) is type(self) and all(getattr(self, n) == getattr(other, n) for n in self._names)

    __hash__ = None

    def _merged(self, other):
        made = type(self)()
        for name in self._names:
            mine, theirs = getattr(self, name), getattr(other, name)
            object.__setattr__(
                made, name, mine._merged(theirs) if isinstance(mine, _Group) else (mine if theirs is None else theirs)
            )
        return made


class AutotuneOptions(_Group):
    _names = ("enabled", "cpu_budget", "ram_budget", "autotune_algorithm", "initial_parallelism", "min_parallelism")


class DistributeOptions(_Group):
    _names = ("auto_shard_policy", "num_devices")


class OptimizationOptions(_Group):
    _names = (
        "apply_default_optimizations",
        "filter_fusion",
        "filter_parallelization",
        "inject_prefetch",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "noop_elimination",
        "parallel_batch",
        "seq_interleave_prefetch",
        "shuffle_and_repeat_fusion",
        "warm_start",
    )


class ThreadingOptions(_Group):
    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class ServiceOptions(_Group):
    _names = ("pinned",)


class Options(_Group):
    _names = (
        "autotune",
        "dataset_name",
        "deterministic",
        "experimental_deterministic",
        "experimental_distribute",
        "experimental_external_state_policy",
        "experimental_optimization",
        "experimental_service",
        "experimental_slack",
        "experimental_symbolic_checkpoint",
        "experimental_threading",
        "experimental_warm_start",
        "framework_type",
        "threading",
    )

    def __init__(self):
        super().__init__()
        self.autotune, self.experimental_distribute = AutotuneOptions(), DistributeOptions()
        self.experimental_optimization, self.threading = OptimizationOptions(), ThreadingOptions()
        self.experimental_service = ServiceOptions()
        object.__setattr__(self, "experimental_threading", self.threading)

    def merge(self, options):
        return self._merged(options)
