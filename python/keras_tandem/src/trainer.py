"""fit, evaluate, predict. The whole step is one compiled graph, and Python runs only where a callback wants to."""
import math
import warnings

import numpy as np
from keras.src import callbacks as callbacks_module
from keras.src import optimizers as optimizers_module
from keras.src import tree, utils
from keras.src.backend import config
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

from keras_tandem.src import arrays, micro_batches, planning, replicas
from keras_tandem.src.compiled_step import CompiledStep, types_of
from keras_tandem.src.datasets import DatasetAdapter, adapted
from keras_tandem.src.ops.core import convert_to_numpy, convert_to_tensor, shape
from keras_tandem.src.tape import GradientTape
from tandem import _core, errors

_PROGRESS_SECONDS = 0.05  # how often the progress bar is looked at


class Trainer(base_trainer.Trainer):
    def __init__(self):
        super().__init__()
        self.train_function = None
        self.test_function = None
        self.predict_function = None
        self._distribute_strategy = replicas.current_strategy()  # a model is made in the scope of the strategy that trains it
        object.__setattr__(self, "_traced_metrics", None)
        object.__setattr__(self, "_micro_batches", 1)

    # --- the steps, which a model may override --------------------------------------------------------------------------------------------

    def _predicted(self, x, training):
        return self(x, training=training) if self._call_has_training_arg else self(x)

    def _track_loss(self, loss, x):
        rows = shape(next(i for i in tree.flatten(x) if i is not None))[0]
        self._loss_tracker.update_state(replicas.unscale_loss(loss), sample_weight=convert_to_tensor(rows, "float32"))

    def _aggregate_additional_loss(self, loss):
        return replicas.scale_loss(super()._aggregate_additional_loss(loss))

    @property
    def distribute_strategy(self):
        from tandem import distribute

        return self._distribute_strategy or distribute.get_strategy()

    def train_step(self, data):
        if self._micro_batches > 1:
            return micro_batches.train_step(self, data, self._micro_batches)
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        with GradientTape() as tape:
            y_pred = self._predicted(x, training=True)
            loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True)
            self._track_loss(loss, x)
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        if self.trainable_weights:
            gradients = tape.gradient(loss, self.trainable_weights)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_weights))
        else:
            warnings.warn("The model does not have any trainable weights.")
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred = self._predicted(x, training=False)
        loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
        self._track_loss(loss, x)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data):
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self._predicted(x, training=False)

    def get_metrics_result(self):
        result = super().get_metrics_result()
        if _core.is_tracing() or replicas.several() is not None:
            object.__setattr__(self, "_traced_metrics", (result, dict(result)))
        return result

    def _is_metrics_result(self, result):
        """Whether a step that is being traced gives the metrics' results and nothing else: then no step has to compute them."""
        if not isinstance(result, dict) or self._traced_metrics is None or result is not self._traced_metrics[0]:
            return False
        before = self._traced_metrics[1]
        return result.keys() == before.keys() and all(result[k] is before[k] for k in before)

    # --- compiling them -------------------------------------------------------------------------------------------------------------------

    def _make_function(self, name, step):
        strategy, several = self._distribute_strategy, False
        if strategy is not None:
            step, several = replicas.ReplicatedStep(self, name, step, strategy), strategy.num_replicas_in_sync > 1
        one = step if self.run_eagerly else CompiledStep(self, name, step, by_size=several)

        def function(iterator):
            """Takes steps_per_execution batches; gives what the last step gave, or, when predicting, what all of them gave."""
            outputs = []
            for _, data in zip(range(self.steps_per_execution), iterator):
                outputs.append(one(_as_tensors(data)))
            if not outputs:
                raise StopIteration
            if name != "predict_step" or len(outputs) == 1:
                return outputs[-1]
            return tree.map_structure(lambda *parts: np.concatenate([convert_to_numpy(p) for p in parts]), *outputs)

        function.step = one
        return function

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self.train_function = self._make_function("train_step", self.train_step)
        return self.train_function

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = self._make_function("test_step", self.test_step)
        return self.test_function

    def make_predict_function(self, force=False):
        if self.predict_function is None or force:
            self.predict_function = self._make_function("predict_step", self.predict_step)
        return self.predict_function

    # --- loops ----------------------------------------------------------------------------------------------------------------------------

    def _epoch_iterator(self, x, y=None, sample_weight=None, **how):
        x = adapted(x, y, sample_weight, how.get("class_weight"))
        return EpochIterator(x, y=y, sample_weight=sample_weight, steps_per_execution=self.steps_per_execution, **how)

    def _build_for(self, epoch_iterator):
        """Makes the weights, the metrics' and the optimizer's state, as the first batch asks for."""
        with replicas.scope_of(self._distribute_strategy):
            self._build_in_scope(epoch_iterator)

    def _build_in_scope(self, epoch_iterator):
        needs_batch = not all(layer.built for layer in self._flatten_layers())
        needs_batch |= self._compile_metrics is not None and not self._compile_metrics.built
        needs_batch |= self._compile_loss is not None and not self._compile_loss.built
        if needs_batch or (self.optimizer is not None and not self.optimizer.built):
            self._symbolic_build(data_batch=_as_tensors(arrays.first_batch(epoch_iterator)) if needs_batch else None)
            epoch_iterator.reset()

    def _callback_list(self, callbacks, verbose, epochs, steps, **how):
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        return callbacks_module.CallbackList(callbacks, add_progbar=verbose != 0, verbose=verbose, epochs=epochs, steps=steps, model=self, **how)

    def _native_loop(self, function, epoch_iterator, shuffled, after=None):
        """The engine's own loop, when the data are arrays; else None."""
        adapter, step = epoch_iterator.data_adapter, function.step
        if self.run_eagerly:
            return None
        if isinstance(adapter, DatasetAdapter):
            return self._loop_over_dataset(step, adapter, epoch_iterator.steps_per_epoch)
        if type(adapter) is not ArrayDataAdapter or adapter._shuffle == "batch":
            return None
        data = arrays.as_tensors(adapter._inputs)
        if data is None:
            return None
        tensors, pack = step.flatten(data)
        compiled = step.compiled_for(data, types_of(tensors), pack)
        if compiled.why_eager:
            return None
        seed = int(np.random.randint(2**31 - 1)) if shuffled and adapter._shuffle else 0
        loop = _core.StepLoop.over_arrays(
            compiled.function, tensors, adapter.batch_size, bool(shuffled and adapter._shuffle), seed, epoch_iterator.steps_per_epoch, after
        )
        return _NativeLoop(self, loop, compiled)

    def _loop_over_dataset(self, step, adapter, steps):
        flat = adapter.flat_batches()
        if flat is None:
            return None
        types, data, pack = flat
        compiled = step.compiled_for(data, types, pack)
        if compiled.why_eager:
            return None
        return _NativeLoop(self, _core.StepLoop.over_dataset(compiled.function, adapter.pipeline, steps), compiled)

    def _run_epoch(self, native, function, epoch_iterator, callbacks, begin, end, stopped, kind):
        """All steps of an epoch, with callbacks between them; the last logs."""
        logs = {}
        if native is not None:
            return native.run_epoch(callbacks, begin, end, stopped, kind, self.steps_per_execution)
        with epoch_iterator.catch_stop_iteration():
            for first, last, iterator in epoch_iterator:
                begin(first)
                logs = function(iterator)
                end(last, pythonify_logs(logs) if kind != "predict" else logs)
                if stopped():
                    break
        return logs

    @traceback_utils.filter_traceback
    def fit(
        self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, validation_split=0.0, validation_data=None,
        shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, steps_per_epoch=None, validation_steps=None,
        validation_batch_size=None, validation_freq=1,
    ):  # fmt: skip
        self._assert_compile_called("fit")
        most = config.max_epochs()
        if most and most < epochs:
            warnings.warn("Limiting epochs to %d" % most)
            epochs = most
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        iterator = self._epoch_iterator(
            x, y, sample_weight, batch_size=batch_size, steps_per_epoch=steps_per_epoch, shuffle=shuffle, class_weight=class_weight
        )
        self._build_for(iterator)
        planning.before_first_step(self, lambda: arrays.first_batch(iterator))
        if self._distribute_strategy is not None:
            replicas.measure(self, self._distribute_strategy, iterator)
        callbacks = self._callback_list(callbacks, verbose, epochs, iterator.num_batches, add_history=True)
        self.stop_training = False
        self._cut_batches_if_asked()
        function = self.make_train_function()
        validation = None
        logs, epoch_logs = {}, None
        said = False
        callbacks.on_train_begin()
        random_state = np.random.get_state()
        native = self._native_loop(function, iterator, shuffled=True)

        def run_epoch():
            return self._run_epoch(
                native, function, iterator, callbacks, callbacks.on_train_batch_begin, callbacks.on_train_batch_end,
                lambda: self.stop_training, "train",
            )  # fmt: skip

        for epoch in range(self._initial_epoch or initial_epoch, epochs):
            self.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            try:
                logs = run_epoch()
            except errors.DoesNotFitError as refused:
                logs = None
                for parts in self._parts_that_may_fit(refused, native):
                    self._micro_batches = parts
                    function = self.make_train_function(force=True)
                    np.random.set_state(random_state)  # the same order of rows
                    native = self._native_loop(function, iterator, shuffled=True)
                    try:
                        logs = run_epoch()
                        break
                    except errors.DoesNotFitError:
                        continue
                    except micro_batches.CannotBeCut as why:
                        why.explain(refused)
                        break
                if logs is None:
                    self._micro_batches = 1
                    self.train_function = None
                    raise
            if verbose != 0 and not said:
                said = True
                _say_budget(function.step, self._micro_batches)
            epoch_logs = dict(self._get_metrics_result_or_logs(logs) or {})
            if validation_data is not None and self._should_eval(epoch, validation_freq):
                if validation is None:
                    val_x, val_y, val_weight = data_adapter_utils.unpack_x_y_sample_weight(validation_data)
                    validation = self._epoch_iterator(
                        val_x, val_y, val_weight, batch_size=validation_batch_size or batch_size, steps_per_epoch=validation_steps, shuffle=False
                    )
                val_logs = self.evaluate(callbacks=callbacks, return_dict=True, _iterator=validation)
                epoch_logs.update({f"val_{name}": value for name, value in val_logs.items()})
            callbacks.on_epoch_end(epoch, epoch_logs)
            if self.stop_training:
                break
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        callbacks.on_train_end(logs=epoch_logs)
        return self.history

    @traceback_utils.filter_traceback
    def evaluate(
        self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, callbacks=None, return_dict=False, **kwargs
    ):
        self._assert_compile_called("evaluate")
        iterator = kwargs.pop("_iterator", None)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        if iterator is None:
            iterator = self._epoch_iterator(x, y, sample_weight, batch_size=batch_size, steps_per_epoch=steps, shuffle=False)
        self._build_for(iterator)
        iterator.reset()
        callbacks = self._callback_list(callbacks, verbose, 1, iterator.num_batches)
        function = self.make_test_function()
        self.stop_evaluating = False
        callbacks.on_test_begin()
        self.reset_metrics()
        native = self._native_loop(function, iterator, shuffled=False)
        logs = self._run_epoch(
            native, function, iterator, callbacks, callbacks.on_test_batch_begin, callbacks.on_test_batch_end, lambda: self.stop_evaluating, "test"
        )
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        iterator = self._epoch_iterator(x, batch_size=batch_size, steps_per_epoch=steps, shuffle=False)
        callbacks = self._callback_list(callbacks, verbose, 1, iterator.num_batches)
        function = self.make_predict_function()
        self.stop_predicting = False
        callbacks.on_predict_begin()
        collected = _Collected()

        def end(last, outputs):
            collected.add(outputs)
            callbacks.on_predict_batch_end(last, {"outputs": outputs})

        self._run_epoch(None, function, iterator, callbacks, callbacks.on_predict_batch_begin, end, lambda: self.stop_predicting, "predict")
        callbacks.on_predict_end()
        return collected.joined()

    # --- batches in parts (micro_batches.py) ---------------------------------------------------------------------------------------------

    def _cut_batches_if_asked(self):
        parts = micro_batches.asked() or self._micro_batches
        if parts > 1 and type(self).train_step is Trainer.train_step:
            reason = micro_batches.why_not(self, is_asked=True)
            if reason:
                raise micro_batches.CannotBeCut(self, reason)
        if parts != self._micro_batches:
            self._micro_batches = parts
            self.train_function = None

    def _parts_that_may_fit(self, refused, native):
        """Into how many parts batches may be cut, now that a step does not fit in any other way; nothing has run yet."""
        own_step = type(self).train_step is not Trainer.train_step
        if self._micro_batches != 1 or micro_batches.asked() == 1 or own_step or native is None or native.has_begun:
            return []
        reason = micro_batches.why_not(self, is_asked=False)
        if reason:
            micro_batches.CannotBeCut(self, reason).explain(refused)
            return []
        return micro_batches.PARTS

    # --- single batches -------------------------------------------------------------------------------------------------------------------

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    "Arguments `sample_weight` and `class_weight` cannot be specified at the same time. "
                    f"Received: sample_weight={sample_weight}, class_weight={class_weight}"
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        planning.before_first_step(self, lambda: (x, y, sample_weight))
        return self._on_batch((x, y, sample_weight), self.make_train_function, return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._assert_compile_called("test_on_batch")
        return self._on_batch((x, y, sample_weight), self.make_test_function, return_dict)

    def _on_batch(self, data, make, return_dict):
        data = _as_tensors(data)
        with replicas.scope_of(self._distribute_strategy):
            self._symbolic_build(data_batch=data)
        function = make()
        self.reset_metrics()
        logs = pythonify_logs(function(iter([data])))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def predict_on_batch(self, x):
        outputs = self.make_predict_function()(iter([_as_tensors((x,))]))
        return tree.map_structure(convert_to_numpy, outputs)


class _NativeLoop:
    """One epoch after the other on the engine's loop; Python runs at callbacks only."""

    def __init__(self, trainer, loop, compiled):
        self._trainer, self._loop, self._compiled = trainer, loop, compiled

    @property
    def has_begun(self):
        return self._loop.step > 0

    def _logs(self):
        if self._compiled.gives_nothing:
            return self._trainer.get_metrics_result()
        return self._compiled.results(self._loop.results)

    def run_epoch(self, callbacks, begin, end, stopped, kind, steps_per_execution):
        loop = self._loop
        loop.begin_epoch()
        every_step = _wants_every_batch(callbacks, kind)
        seconds = math.inf if every_step else _seconds_between_looks(callbacks)
        steps = steps_per_execution if every_step else 2**62
        while not loop.at_end and not stopped():
            first = loop.step
            if every_step:
                begin(first)
            if loop.run(steps, seconds) == 0:
                break
            if every_step or seconds != math.inf:
                end(first + steps - 1 if every_step else loop.step - 1, pythonify_logs(self._logs()))
        return self._logs()


def _say_budget(step, parts):
    """What the step does so that it stays within a device's memory, if it has to do anything."""
    lines = getattr(step, "budget_summaries", list)()
    if parts > 1:
        parted = f"batches in {parts} parts, which rounds otherwise"
        lines = [f"{line}, {parted}" for line in lines] or [parted]
    for line in lines:
        print(line, flush=True)


def _as_tensors(data):
    return tree.map_structure(lambda x: None if x is None else convert_to_tensor(arrays.plain(x)), data)


def _wants_every_batch(callbacks, kind):
    """Whether some callback overrides what is called around each batch, and would do something there."""
    for c in callbacks.callbacks:
        if isinstance(c, (callbacks_module.ProgbarLogger, callbacks_module.History)):
            continue
        if getattr(c, "save_freq", None) == "epoch" and isinstance(c, (callbacks_module.ModelCheckpoint, callbacks_module.BackupAndRestore)):
            continue
        hooks = [getattr(c, f"on_{kind}_batch_begin"), getattr(c, f"on_{kind}_batch_end")]
        if kind == "train":
            hooks += [c.on_batch_begin, c.on_batch_end]
        if not all(utils.is_default(hook) for hook in hooks):
            return True
    return False


def _seconds_between_looks(callbacks):
    progress = any(isinstance(c, callbacks_module.ProgbarLogger) and c.verbose == 1 for c in callbacks.callbacks)
    return _PROGRESS_SECONDS if progress else math.inf


class _Collected:
    """Outputs of batches, one behind the other."""

    def __init__(self):
        self._parts = None

    def add(self, outputs):
        outputs = tree.map_structure(convert_to_numpy, outputs)
        if self._parts is None:
            self._parts = tree.map_structure(lambda _: [], outputs)
        tree.map_structure_up_to(outputs, lambda one, parts: parts.append(one), outputs, self._parts)
        self._structure = outputs

    def joined(self):
        if self._parts is None:
            raise ValueError("predict: there is no data")
        return tree.map_structure_up_to(self._structure, lambda parts: np.concatenate(parts, axis=0), self._parts)
