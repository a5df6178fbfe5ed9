"""Runs a function once for each replica: one after the other, each until it ends or waits for the others.

A replica may come to a place where all of them have to meet, such as `all_reduce` or an optimizer's update. Each has a thread for that, and they take
turns: at any time one thread works, and all of them belong to one trace when a function is traced.
"""
import contextlib
import sys
import threading

from tandem import _core, _devices
from tandem.distribute import _context
from tandem.distribute._values import of_replica, regrouped, total, weighted_mean

# Modules whose `_local` says what a thread is doing; a replica's thread begins with the caller's.
_LOCALS = (
    ("tandem._devices", "_local"), ("tandem._function.autograph", "_local"), ("tandem._names", "_local"), ("tandem._trace", "_local"),
    ("tandem.summary", "_local"), ("tandem.distribute._context", "local"), ("keras.src.backend.common.global_state", "GLOBAL_STATE_TRACKER"),
)  # fmt: skip


class _Stopped(BaseException):
    """Ends a replica whose fellow has failed."""


def _locals():
    return [getattr(sys.modules[name], attribute) for name, attribute in _LOCALS if name in sys.modules]


def _copied(value):
    return type(value)(value) if type(value) in (list, dict) else value


class _Replica:
    def __init__(self, strategy, number, weight, count, device, call):
        self.context = _context.ReplicaContext(strategy, number, weight, count, self._meet)
        self.result = self.error = self.meeting = None
        self._device, self._call, self._has_ended = device, call, False
        self._work = _core.ThreadWork()
        self._state = [(local, {k: _copied(v) for k, v in vars(local).items()}) for local in _locals()]
        self._my_turn, self._callers_turn = threading.Semaphore(0), threading.Semaphore(0)
        self._stops, self._thread = False, None

    def go_on(self, answer=None):
        """Lets it work until it ends or waits for the others."""
        self.meeting, self._answer = None, answer
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name=f"replica {self.context._id}")
            self._thread.start()
        self._my_turn.release()
        self._callers_turn.acquire()
        if self.error is not None:
            raise self.error

    def stop(self):
        if self._thread is not None:
            self._stops = True
            self._my_turn.release()
            self._thread.join()

    def _run(self):
        self._my_turn.acquire()
        for local, state in self._state:
            vars(local).update(state)
        self._state = None
        try:
            if not self._stops:
                with self._work, _on(self._device), self.context:
                    self.result = self._call()
        except _Stopped:
            pass
        except BaseException as e:
            self.error = e
        finally:
            self._has_ended = True
            self._callers_turn.release()

    def _meet(self, join, args, kwargs):
        if not self._work.at_start:
            raise RuntimeError(
                "merge_call called while defining a new graph or a tf.function. This can often happen if the function `fn` passed to "
                "`strategy.run()` contains a branch or a loop that is traced, with an all_reduce or an optimizer's update inside: they "
                "have to be outside of it"
            )
        self.meeting = (join, args, kwargs)
        self._callers_turn.release()
        self._my_turn.acquire()
        if self._stops:
            raise _Stopped()
        return self._answer

    has_ended = property(lambda self: self._has_ended)


def _on(engine_name):
    """On that device; the default strategy has none, and stays where the program is."""
    return contextlib.nullcontext() if engine_name is None else _devices.on(engine_name)


def run(strategy, numbers, calls, weights=None):
    """What calls[i]() gives as replica numbers[i]; weights are their parts of the batch."""
    devices, count = strategy.extended.engine_devices, len(calls)
    weights = weights or [1.0 / count] * count
    if count == 1:
        with _on(devices[numbers[0]]), _context.ReplicaContext(strategy, numbers[0], 1.0):
            return [calls[0]()]
    replicas = [_Replica(strategy, n, w, count, devices[n], call) for n, w, call in zip(numbers, weights, calls)]
    answers = [None] * count
    try:
        while True:
            for r, answer in zip(replicas, answers):
                r.go_on(answer)
            waiting = [r for r in replicas if not r.has_ended]
            if not waiting:
                break
            if len(waiting) < count:
                raise RuntimeError(
                    f"replicas {[r.context._id for r in waiting]} wait in an all_reduce, a merge_call or an optimizer's update that "
                    f"the other replicas of {count} do not come to"
                )
            answers = _joined(strategy, replicas)
        _store(strategy, replicas)
    finally:
        for r in replicas:
            r.stop()
    return [r.result for r in replicas]


def _joined(strategy, replicas):
    join = replicas[0].meeting[0]
    args = regrouped([r.meeting[1] for r in replicas])
    kwargs = regrouped([r.meeting[2] for r in replicas])
    with _on(strategy.extended.parameter_device), _context.Within(strategy, None):
        result = join(strategy, *args, **kwargs)
    return [of_replica(result, i) for i in range(len(replicas))]


def _store(strategy, replicas):
    """What replicas have assigned to variables that they share: one value of all of theirs."""
    written = {}
    for r in replicas:
        for number, (variable, how, value) in r.context.pending.items():
            written.setdefault(number, (variable, how, []))[2].append((r.context.weight, value))
    with _on(strategy.extended.parameter_device):
        for variable, how, found in written.values():
            values = [value for _, value in found]
            whole = sum(w for w, _ in found)
            variable.store(total(values) if how == "sum" else weighted_mean(values, [w / whole for w, _ in found]))
