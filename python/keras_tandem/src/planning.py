"""Plans a model's training step without running it: for `tandem.memory.plan` and `tandem run --plan-only`."""
import sys

from keras.src import tree

from keras_tandem.src import arrays
from keras_tandem.src.compiled_step import types_of
from keras_tandem.src.ops.core import convert_to_tensor
from tandem import _core, memory


def _as_tensors(data):
    return tree.map_structure(lambda x: None if x is None else convert_to_tensor(arrays.plain(x)), data)


def _forecast(compiled, types, rows, model, **how):
    weights = [w._value for w in model.weights]
    optimizer = [v._value for v in model.optimizer.variables] if model.optimizer is not None else []
    ask = lambda specs, batch: _core.forecast(compiled.function, specs, weights, optimizer, batch, name=model.name, **how)  # noqa: E731
    if compiled.is_symbolic:
        return ask(compiled.specs, rows)
    # Something in the model wants the batch as a number.
    return ask([(dtype, [rows, *dims[1:]]) for dtype, dims in types], rows)


def plan_step(model, data, rows=None, **how):
    """`data`: a batch of fit; `rows`: how many examples the planned one has, if not as many."""
    model._assert_compile_called("plan")
    data = _as_tensors(data)
    model._symbolic_build(data_batch=data)
    step = model.make_train_function().step
    if model.run_eagerly:
        raise ValueError("plan: the model was compiled with run_eagerly=True, and a step that runs op by op is not planned as a whole")
    tensors, pack = step.flatten(data)
    types = types_of(tensors)
    compiled = step.compiled_for(data, types, pack)
    if compiled.why_eager:
        raise ValueError(f"plan: the step runs eagerly, and so is not planned as a whole: {compiled.why_eager}")
    return memory.Plan(_forecast(compiled, types, types[0][1][0] if rows is None else rows, model, **how))


def before_first_step(model, first_batch):
    """Where a program's first training step would begin: ends the program with the tables, if that is what was asked for."""
    if memory._plan_only is None:
        return
    options = dict(memory._plan_only)
    page, as_json = options.pop("html"), options.pop("json")
    plan = plan_step(model, first_batch(), **options)
    if page:
        plan.save(page)
    sys.stdout.write(plan._forecast.json() if as_json else repr(plan))
    sys.stdout.flush()
    raise SystemExit(0 if plan.fits else 1)
