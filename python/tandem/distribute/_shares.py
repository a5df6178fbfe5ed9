"""TandemStrategy: GPUs and the CPU share each batch in unequal parts, by their speed."""
import time
import warnings

from tandem import _core, _devices, _function, errors
from tandem._device_list import full_name, logical
from tandem._face import ops
from tandem.distribute._strategy import Strategy, StrategyExtended, _engine_names

_LEAST_SHARE = 0.02  # below, what has to be copied costs more than the rows are worth
_RUNS, _WARM_UP_RUNS = 3, 2
_HALVINGS = 3  # of the rows, for a device whose memory they do not fit in


def _all_devices():
    found = [k for k in logical() if k.device.device_type == "GPU"] + [k for k in logical() if k.device.device_type == "CPU"][:1]
    return [k.engine_name for k in found]


def _seconds(run):
    """The best of a few; `run` waits for what it computes."""
    for _ in range(_WARM_UP_RUNS):
        run()
    best = float("inf")
    for _ in range(_RUNS):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


@_function.function
def _products(x):
    """Work of every network, compiled as a step is: products and a function of each element."""
    y = x
    for _ in range(8):
        y = ops.tanh(ops.matmul(y, x))
    return ops.sum(y)


class _SharedExtended(StrategyExtended):
    synchronizes_statistics = True  # a batch's mean and variance are those of the whole batch

    def __init__(self, strategy, devices, shares):
        super().__init__(strategy, devices)
        self._shares, self.is_measured = shares, shares is not None

    def shares(self):
        if self._shares is None:  # no model has been measured yet
            self._set_speeds([1.0 / _seconds(lambda d=d: self._run_products(d)) for d in self.engine_devices])
        return self._shares

    def _run_products(self, device):
        with _core.EagerScope(), _devices.on(device):
            _products(ops.full(0.001, [512, 512])).numpy()

    def _set_speeds(self, speeds):
        whole = sum(speeds)
        kept = [s if s >= _LEAST_SHARE * whole else 0.0 for s in speeds]
        self._shares = [s / sum(kept) for s in kept]

    def measure(self, run, rows):
        """run(i, n) computes n rows of a batch on device i, and waits. From then on each device gets rows as fast as it was."""
        if self.is_measured:
            return
        self.is_measured = True
        if len(self.engine_devices) > 1:
            self._set_speeds([self._speed(run, i, max(1, rows // len(self.engine_devices))) for i in range(len(self.engine_devices))])
        else:
            self._shares = [1.0]

    def _speed(self, run, i, rows):
        for _ in range(_HALVINGS + 1):
            try:
                return rows / _seconds(lambda n=rows: run(i, n))
            except errors.ResourceExhaustedError as e:
                problem, rows = e, rows // 2
                if rows == 0:
                    break
        warnings.warn(f"{self.worker_devices[i]} gets no part of the batches: {str(problem).splitlines()[0]}", stacklevel=2)
        return 0.0


class TandemStrategy(Strategy):
    """All devices work on each batch: every GPU and the CPU, or `devices`. Each gets rows by its speed, measured with the model's own step when
    `fit` begins, or by `shares`. Gradients are weighted by rows, so that an update is the one that a single device would compute."""

    def __init__(self, devices=None, shares=None):
        engine_devices = _engine_names(devices) if devices else _all_devices()
        if shares is not None:
            shares = [float(s) for s in shares]
            if len(shares) != len(engine_devices) or min(shares) < 0 or sum(shares) <= 0:
                raise ValueError(
                    f"TandemStrategy: shares {shares} for {len(engine_devices)} devices {[full_name(d) for d in engine_devices]}: it needs a "
                    "number from 0 for each, not all of them 0"
                )
            shares = [s / sum(shares) for s in shares]
        super().__init__(_SharedExtended(self, engine_devices, shares))

    @property
    def shares(self):
        """{device: its part of each batch}."""
        return dict(zip(self._extended.worker_devices, self._extended.shares()))
