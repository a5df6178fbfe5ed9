"""Stores what Keras gives for losses, metrics, optimizers, schedules and whole trainings in tests/data/keras_training.json.

Run with an environment that has Keras 3.15, for example one that ./dev bench made:
  ~/.cache/tandem/bench/jax/bin/python tools/keras/training.py
"""
import json
import os
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np

OUT = Path(__file__).resolve().parents[2] / "tests" / "data" / "keras_training.json"
random = np.random.RandomState(7)


def numbers(x):
    """A tensor as {"shape", "dtype", "values"}; float32 with nine digits, which is exact."""
    x = np.asarray(x)
    kind = "float32" if x.dtype.kind == "f" else "int32"
    values = [float(f"{v:.9g}") if np.isfinite(v) else str(v) for v in x.astype(np.float64).ravel()]
    return {"shape": list(x.shape), "dtype": kind, "values": [int(v) for v in values] if kind == "int32" else values}


def floats(*shape, low=-1.0, high=1.0):
    return random.uniform(low, high, shape).astype(np.float32)


def one_hot(y, n):
    return np.eye(n, dtype=np.float32)[y]


def shares(rows, columns):
    p = floats(rows, columns, low=0.05)
    return p / p.sum(-1, keepdims=True)


def own_config(thing):
    return {k: v for k, v in thing.get_config().items() if k != "name"}


# --- losses ----------------------------------------------------------------------------------------------------------------------------
def losses():
    L = keras.losses
    regression = (floats(6, 4), floats(6, 4))
    binary = (random.randint(0, 2, (6, 4)).astype(np.float32), floats(6, 4, low=0.0))
    logits = (binary[0], floats(6, 4, low=-3, high=3))
    classes = random.randint(0, 5, 6)
    categorical = (one_hot(classes, 5), shares(6, 5))
    categorical_logits = (one_hot(classes, 5), floats(6, 5, low=-3, high=3))
    sparse, sparse_logits = (classes, categorical[1]), (classes, categorical_logits[1])
    column = (random.randint(0, 2, 6), floats(6, 1, low=0.0))  # [6] beside [6, 1]
    steps = (random.randint(0, 5, (3, 4)), floats(3, 4, 5, low=-3, high=3))
    cases = [
        (L.MeanSquaredError, {}, regression), (L.MeanAbsoluteError, {}, regression), (L.MeanSquaredError, {}, column),
        (L.MeanAbsolutePercentageError, {}, regression), (L.MeanSquaredLogarithmicError, {}, (abs(regression[0]), regression[1])),
        (L.CosineSimilarity, {}, regression), (L.CosineSimilarity, {"axis": 1}, (floats(2, 3, 4), floats(2, 3, 4))),
        (L.Huber, {}, regression), (L.Huber, {"delta": 0.3}, regression), (L.LogCosh, {}, regression),
        (L.Hinge, {}, logits), (L.Hinge, {}, regression), (L.SquaredHinge, {}, logits), (L.CategoricalHinge, {}, categorical),
        (L.KLDivergence, {}, categorical), (L.Poisson, {}, (abs(regression[0]), abs(regression[1]))),
        (L.BinaryCrossentropy, {}, binary), (L.BinaryCrossentropy, {"from_logits": True}, logits), (L.BinaryCrossentropy, {}, column),
        (L.BinaryCrossentropy, {"from_logits": True, "label_smoothing": 0.2}, logits),
        (L.CategoricalCrossentropy, {}, categorical), (L.CategoricalCrossentropy, {"from_logits": True}, categorical_logits),
        (L.CategoricalCrossentropy, {"label_smoothing": 0.1}, categorical),
        (L.SparseCategoricalCrossentropy, {}, sparse), (L.SparseCategoricalCrossentropy, {"from_logits": True}, sparse_logits),
        (L.SparseCategoricalCrossentropy, {"from_logits": True}, (classes[:, None], sparse_logits[1])),
        (L.SparseCategoricalCrossentropy, {"from_logits": True}, steps),
        (L.SparseCategoricalCrossentropy, {"from_logits": True, "ignore_class": 2}, steps),
        (L.BinaryFocalCrossentropy, {}, binary), (L.BinaryFocalCrossentropy, {"from_logits": True, "gamma": 1.5, "apply_class_balancing": True}, logits),
        (L.CategoricalFocalCrossentropy, {}, categorical), (L.CategoricalFocalCrossentropy, {"from_logits": True, "alpha": 0.4}, categorical_logits),
        (L.Dice, {}, binary), (L.Tversky, {"alpha": 0.3, "beta": 0.6}, binary),
    ]
    return [stored_loss(*case) for case in cases]


def stored_loss(kind, config, data):
    y, p = data
    weight = floats(len(y), low=0.2, high=2.0)
    case = {"class": kind.__name__, "config": config, "y_true": numbers(y), "y_pred": numbers(p), "weight": numbers(weight)}
    for reduction in ("sum_over_batch_size", "sum", "none", "mean_with_sample_weight"):
        loss = kind(reduction=reduction, **config)
        case[reduction] = numbers(loss(y, p))
        if np.asarray(kind(reduction="none", **config)(y, p)).ndim == 1:
            case["weighted_" + reduction] = numbers(loss(y, p, weight))
    return case


def losses_of_sequences():
    """CTC and Circle; after all others, whose random numbers stay what they were."""
    L = keras.losses
    labels = np.array([[1, 2, 2], [3, 0, 0], [4, 1, 4], [2, 2, 0], [0, 0, 0]])  # repeated, short and none
    spoken = (labels, floats(5, 7, 5, low=-3, high=3))
    rows = floats(8, 4)
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    classes = np.array([0, 1, 0, 2, 1, 0, 3, 2])  # 3 has no pair
    return [stored_loss(*case) for case in [
        (L.CTC, {}, spoken), (L.Circle, {}, (classes, rows)), (L.Circle, {"gamma": 5.0, "margin": 0.25}, (classes[:, None], rows)),
        (L.Circle, {"gamma": 10.0, "remove_diagonal": False}, (classes, rows)),
    ]]


# --- metrics ---------------------------------------------------------------------------------------------------------------------------
def metrics():
    def binary(columns):
        return lambda: (random.randint(0, 2, (8, columns)).astype(np.float32), floats(8, columns, low=0.0))

    def categorical():
        return one_hot(random.randint(0, 4, 8), 4), shares(8, 4)

    def sparse():
        return random.randint(0, 4, 8), shares(8, 4)

    def regression():
        return floats(8, 3), floats(8, 3)

    def numbers_of_classes():
        return random.randint(0, 3, 8), random.randint(0, 3, 8)

    cases = [
        ("Accuracy", {}, numbers_of_classes), ("BinaryAccuracy", {}, binary(1)), ("BinaryAccuracy", {"threshold": 0.3}, binary(3)),
        ("CategoricalAccuracy", {}, categorical), ("SparseCategoricalAccuracy", {}, sparse),
        ("TopKCategoricalAccuracy", {"k": 2}, categorical), ("SparseTopKCategoricalAccuracy", {"k": 2}, sparse),
        ("MeanSquaredError", {}, regression), ("RootMeanSquaredError", {}, regression), ("MeanAbsoluteError", {}, regression),
        ("MeanAbsolutePercentageError", {}, regression), ("MeanSquaredLogarithmicError", {}, regression), ("CosineSimilarity", {}, regression),
        ("LogCoshError", {}, regression), ("KLDivergence", {}, categorical), ("Poisson", {}, categorical),
        ("BinaryCrossentropy", {}, binary(2)), ("CategoricalCrossentropy", {"label_smoothing": 0.1}, categorical),
        ("SparseCategoricalCrossentropy", {}, sparse), ("Hinge", {}, binary(2)), ("SquaredHinge", {}, binary(2)),
        ("CategoricalHinge", {}, categorical),
        ("TruePositives", {}, binary(2)), ("TrueNegatives", {"thresholds": [0.2, 0.7]}, binary(2)), ("FalsePositives", {}, binary(1)),
        ("FalseNegatives", {}, binary(1)), ("Precision", {}, binary(1)), ("Precision", {"thresholds": [0.3, 0.6]}, binary(1)),
        ("Recall", {}, binary(2)), ("Precision", {"top_k": 2}, categorical), ("Recall", {"class_id": 1}, categorical),
        ("AUC", {}, binary(1)), ("AUC", {"curve": "PR"}, binary(1)), ("AUC", {"num_thresholds": 20, "summation_method": "minoring"}, binary(1)),
        ("AUC", {"curve": "PR", "summation_method": "majoring"}, binary(1)),
        ("F1Score", {}, categorical), ("F1Score", {"average": "micro", "threshold": 0.3}, binary(3)),
        ("FBetaScore", {"beta": 2.0, "average": "weighted"}, categorical), ("FBetaScore", {"beta": 0.5, "average": "macro"}, categorical),
        ("MeanIoU", {"num_classes": 3}, numbers_of_classes), ("IoU", {"num_classes": 3, "target_class_ids": [0, 2]}, numbers_of_classes),
        ("MeanIoU", {"num_classes": 4, "sparse_y_true": False, "sparse_y_pred": False}, categorical),
        ("R2Score", {}, regression), ("R2Score", {"class_aggregation": "variance_weighted_average"}, regression),
    ]
    return [stored_metric(*case) for case in cases]


def stored_metric(name, config, make):
    kind = getattr(keras.metrics, name)
    data = [make() for _ in range(3)]
    plain, weighted = kind(**config), kind(**config)
    case = {"class": name, "config": config, "name": "", "batches": []}
    for y, p in data:
        # IoU keeps whole numbers, so its weights are whole
        weight = random.randint(0, 3, len(y)).astype(np.float32) if "IoU" in name else floats(len(y), low=0.2, high=2.0)
        plain.update_state(y, p)
        weighted.update_state(y, p, sample_weight=weight)
        case["batches"].append({"y_true": numbers(y), "y_pred": numbers(p), "weight": numbers(weight)})
    case["result"], case["weighted"] = numbers(plain.result()), numbers(weighted.result())
    return case


def areas_by_label():
    """AUC with several labels; after all others, as above."""
    def labels():
        return random.randint(0, 2, (8, 3)).astype(np.float32), floats(8, 3, low=0.0)

    def logits():
        return random.randint(0, 2, (8, 3)).astype(np.float32), floats(8, 3, low=-3, high=3)

    weights = [0.5, 2.0, 1.0]
    return [stored_metric("AUC", config, make) for config, make in [
        ({"multi_label": True}, labels), ({"multi_label": True, "num_labels": 3, "label_weights": weights}, labels),
        ({"multi_label": True, "curve": "PR", "from_logits": True}, logits), ({"label_weights": weights}, labels), ({"from_logits": True}, logits),
        ({"multi_label": True, "summation_method": "majoring", "thresholds": [0.2, 0.5, 0.6]}, labels),
    ]]


# --- optimizers and schedules ------------------------------------------------------------------------------------------------------------
def optimizers():
    O = keras.optimizers
    cases = [
        (O.SGD, {}), (O.SGD, {"momentum": 0.9}), (O.SGD, {"momentum": 0.8, "nesterov": True, "weight_decay": 0.01}),
        (O.RMSprop, {}), (O.RMSprop, {"momentum": 0.5, "centered": True, "clipvalue": 0.3}), (O.Adagrad, {"learning_rate": 0.1}),
        (O.Adadelta, {"learning_rate": 1.0}), (O.Adam, {}), (O.Adam, {"amsgrad": True, "clipnorm": 0.5}), (O.Adam, {"global_clipnorm": 0.7}),
        (O.AdamW, {}), (O.AdamW, {"weight_decay": 0.1, "learning_rate": 0.05}), (O.Adamax, {}), (O.Nadam, {}), (O.Lion, {}),
        (O.Lion, {"weight_decay": 0.1}), (O.Adafactor, {"learning_rate": 0.05}), (O.Adafactor, {"relative_step": False, "learning_rate": 0.3}),
        (O.Ftrl, {"learning_rate": 0.1}), (O.Ftrl, {"learning_rate": 0.1, "l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02, "beta": 0.1}),
        (O.Adam, {"use_ema": True, "ema_momentum": 0.6}), (O.SGD, {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2}),
        (O.Adam, {"gradient_accumulation_steps": 2}), (O.SGD, {"gradient_accumulation_steps": 3, "momentum": 0.9, "clipnorm": 1.0}),
        (O.SGD, {"loss_scale_factor": 4.0}),
    ]
    start = [floats(4, 3), floats(3)]
    gradients = [[floats(4, 3), floats(3)] for _ in range(5)]
    out = {"start": [numbers(v) for v in start], "gradients": [[numbers(g) for g in step] for step in gradients], "cases": []}
    schedule = O.schedules.ExponentialDecay(0.1, 2, 0.5)
    for kind, config in cases + [(O.Adam, {"learning_rate": schedule})]:
        optimizer = kind(**config)
        targets = [keras.Variable(v, name=n) for v, n in zip(start, ("kernel", "bias"))]
        steps = []
        for step in gradients:
            optimizer.apply_gradients(zip([keras.ops.convert_to_tensor(g) for g in step], targets))
            steps.append([numbers(t) for t in targets])
        state = [numbers(np.asarray(v)) for v in optimizer.variables]
        optimizer.finalize_variable_values(targets)
        if config.get("learning_rate") is schedule:
            config = {"learning_rate": keras.saving.serialize_keras_object(schedule)}
        out["cases"].append({"class": kind.__name__, "config": config, "steps": steps, "state": state, "final": [numbers(t) for t in targets]})
    return out


def schedules():
    S = keras.optimizers.schedules
    cases = [
        S.ExponentialDecay(0.1, 10, 0.9), S.ExponentialDecay(0.1, 10, 0.9, staircase=True),
        S.PiecewiseConstantDecay([5, 20], [0.1, 0.05, 0.01]), S.PolynomialDecay(0.1, 30), S.PolynomialDecay(0.1, 30, 0.01, power=2.0),
        S.PolynomialDecay(0.1, 12, 0.01, power=0.5, cycle=True), S.InverseTimeDecay(0.1, 10, 0.5), S.InverseTimeDecay(0.1, 10, 0.5, staircase=True),
        S.CosineDecay(0.1, 30), S.CosineDecay(0.1, 30, alpha=0.1), S.CosineDecay(0.0, 30, warmup_target=0.1, warmup_steps=8),
        S.CosineDecayRestarts(0.1, 7), S.CosineDecayRestarts(0.1, 7, t_mul=1.0, m_mul=0.8, alpha=0.05),
    ]
    steps = [0, 1, 4, 5, 6, 7, 9, 13, 20, 21, 30, 40]
    return {"steps": steps, "cases": [{"class": type(s).__name__, "config": s.get_config(), "rates": [float(np.float32(s(i))) for i in steps]} for s in cases]}


# --- whole trainings -----------------------------------------------------------------------------------------------------------------------
def trainings():
    x, classes = floats(50, 6), random.randint(0, 3, 50)
    y = (x @ floats(6, 2)).astype(np.float32)
    weights = [floats(6, 8), floats(8) * 0.1, floats(8, 3), floats(3) * 0.1]
    regression_weights = weights[:2] + [floats(8, 2), floats(2) * 0.1]
    binary_weights = weights[:2] + [floats(8, 1), floats(1) * 0.1]
    binary = (classes > 0).astype(np.int32)
    sample_weight = floats(50, low=0.1, high=2.0)
    other_x, other_classes = floats(20, 6), random.randint(0, 3, 20)

    def run(name, last, activation, compile_args, targets, start, fit_args, callbacks=(), validation=False, regularizer=None):
        model = keras.Sequential([keras.layers.Input((6,)),
                                  keras.layers.Dense(8, activation="relu", kernel_regularizer=regularizer),
                                  keras.layers.Dense(last, activation=activation)])
        model.set_weights(start)
        model.compile(**compile_args)
        compiled = json.loads(json.dumps(model.get_compile_config()))
        arguments = dict(fit_args)
        if "class_weight" in arguments:
            arguments["class_weight"] = {int(k): v for k, v in arguments["class_weight"].items()}
        if arguments.pop("sample_weight", False):
            arguments["sample_weight"] = sample_weight
        if validation:
            arguments["validation_data"] = (other_x, other_classes)
        history = model.fit(x, targets, shuffle=False, verbose=0, callbacks=[c() for c in callbacks], **arguments)
        evaluated = model.evaluate(x, targets, batch_size=16, verbose=0, return_dict=True)
        return {"name": name, "units": last, "activation": activation, "targets": numbers(targets), "start": [numbers(w) for w in start],
                "compile": compiled, "fit": fit_args, "validation": validation,
                "regularizer": regularizer, "history": {k: [float(v) for v in vs] for k, vs in history.history.items()},
                "epochs": history.epoch, "end": [numbers(w) for w in model.get_weights()], "evaluate": {k: float(v) for k, v in evaluated.items()},
                "predict": numbers(model.predict(x, batch_size=16, verbose=0)), "rate": float(np.asarray(model.optimizer.learning_rate))}

    sparse = {"optimizer": "adam", "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]}
    C = keras.callbacks
    runs = [
        run("plain", 3, "softmax", sparse, classes, weights, {"batch_size": 16, "epochs": 4}),
        run("split", 3, "softmax", sparse, classes, weights, {"batch_size": 16, "epochs": 4, "validation_split": 0.25}),
        run("class weights", 3, "softmax", {**sparse, "weighted_metrics": ["accuracy"]}, classes, weights,
            {"batch_size": 16, "epochs": 3, "class_weight": {"0": 0.5, "2": 3.0}}),
        run("sample weights", 2, None, {"optimizer": keras.optimizers.SGD(0.05, momentum=0.9), "loss": "mse", "metrics": ["mae"], "weighted_metrics": ["mae"]}, y,
            regression_weights, {"batch_size": 20, "epochs": 3, "sample_weight": True}),
        run("binary", 1, "sigmoid", {"optimizer": "rmsprop", "loss": "binary_crossentropy", "metrics": ["accuracy", keras.metrics.AUC(), keras.metrics.Precision()]},
            binary, binary_weights, {"batch_size": 16, "epochs": 3}),
        run("regularized", 2, None, {"optimizer": keras.optimizers.AdamW(0.01), "loss": "mse"}, y, regression_weights, {"batch_size": 32, "epochs": 3},
            regularizer="l2"),
        run("validation data", 3, "softmax", sparse, classes, weights, {"batch_size": 16, "epochs": 3, "steps_per_epoch": 2}, validation=True),
        run("early stopping", 3, "softmax", {**sparse, "optimizer": keras.optimizers.Adam(0.05)}, classes, weights,
            {"batch_size": 16, "epochs": 60, "validation_split": 0.3}, [lambda: C.EarlyStopping(patience=2, restore_best_weights=True)]),
        run("plateau", 3, "softmax", {**sparse, "optimizer": keras.optimizers.Adam(0.05)}, classes, weights,
            {"batch_size": 16, "epochs": 12, "validation_split": 0.3}, [lambda: C.ReduceLROnPlateau(patience=2, factor=0.5, cooldown=1)]),
        run("scheduler", 3, "softmax", sparse, classes, weights, {"batch_size": 16, "epochs": 4},
            [lambda: C.LearningRateScheduler(lambda epoch, rate: rate * 0.5)]),
        run("averages", 3, "softmax", {**sparse, "optimizer": keras.optimizers.Adam(0.01, use_ema=True, ema_momentum=0.8)}, classes, weights,
            {"batch_size": 16, "epochs": 2}),
    ]
    return {"x": numbers(x), "other_x": numbers(other_x), "other_y": numbers(other_classes), "sample_weight": numbers(sample_weight), "runs": runs}


def weighted_outputs():
    """Two outputs whose examples count differently; after all others, as above. Keras has class weights for one output only: for one of
    several they are the sample weights that it makes of them."""
    x, left, right = floats(40, 6), floats(40, 1), random.randint(0, 3, 40)
    weight, other = floats(40, low=0.1, high=2.0), floats(40, low=0.1, high=2.0)
    start = [floats(6, 5), floats(5) * 0.1, floats(5, 1), floats(1) * 0.1, floats(5, 3), floats(3) * 0.1]
    by_class = np.array([0.5, 1.0, 3.0], np.float32)[right]
    ones = np.ones(40, np.float32)

    def run(sample_weight):
        inputs = keras.Input((6,))
        hidden = keras.layers.Dense(5, activation="tanh")(inputs)
        model = keras.Model(inputs, [keras.layers.Dense(1, name="left")(hidden), keras.layers.Dense(3, activation="softmax", name="right")(hidden)])
        model.set_weights(start)
        model.compile(optimizer=keras.optimizers.Adam(0.01), loss=["mse", "sparse_categorical_crossentropy"], loss_weights=[1.0, 0.5],
                      weighted_metrics=[["mae"], ["accuracy"]])
        history = model.fit(x, [left, right], sample_weight=sample_weight, batch_size=16, epochs=3, shuffle=False, verbose=0)
        return {"start": [numbers(w) for w in start], "history": {k: [float(v) for v in vs] for k, vs in history.history.items()},
                "end": [numbers(w) for w in model.get_weights()]}

    runs = {"one for all": run(weight), "one each": run([weight, other]), "of the second": run([ones, other]),
            "classes of the second": run([ones, by_class])}
    return {"x": numbers(x), "left": numbers(left), "right": numbers(right), "weight": numbers(weight), "other_weight": numbers(other), "runs": runs}


def main():
    stored = {"keras": keras.__version__, "losses": losses(), "metrics": metrics(), "optimizers": optimizers(), "schedules": schedules(), "trainings": trainings()}
    stored["losses"] += losses_of_sequences()
    stored["metrics"] += areas_by_label()
    stored["weighted_outputs"] = weighted_outputs()
    OUT.write_text(json.dumps(stored, separators=(",", ":")).replace('},{"', '},\n{"') + "\n")
    print(OUT, OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
