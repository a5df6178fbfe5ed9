"""tf.keras: the same Keras on both, each on its own backend."""
import numpy as np

from inputs import FLOATS, array, distinct

ONE = """abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil conj cos cosh deg2rad digamma elu erf erfinv exp exp2 expm1 floor gelu glu hard_shrink hard_sigmoid hard_silu hard_tanh i0 imag isfinite isinf
    isnan leaky_relu log log10 log1p log2 log_sigmoid log_softmax logical_not nan_to_num negative normalize ones_like rad2deg real reciprocal relu relu6 round rsqrt selu sigmoid sign signbit silu sin sinc sinh soft_shrink
    softmax softplus softsign sparse_plus sparse_sigmoid sparsemax sqrt square squareplus tan tanh tanh_shrink threshold trunc zeros_like flip transpose ravel all any amax amin argmax argmin argsort average count_nonzero cumprod cumsum diff max mean
    median min prod sort std sum trace tril triu var diag diagonal logsumexp nonzero size shape squeeze unique angle""".split()  # fmt: skip
TWO = """add arctan2 bitwise_and bitwise_or bitwise_xor divide divide_no_nan equal floor_divide greater greater_equal hypot isclose left_shift less less_equal logaddexp logical_and logical_or logical_xor maximum minimum mod multiply
    not_equal power right_shift subtract true_divide outer inner kron cross dot matmul nextafter heaviside copysign gcd lcm ldexp vdot fmod logaddexp2""".split()  # fmt: skip
LOSSES = """binary_crossentropy binary_focal_crossentropy categorical_crossentropy categorical_focal_crossentropy categorical_hinge cosine_similarity dice hinge huber kl_divergence log_cosh mean_absolute_error mean_absolute_percentage_error
    mean_squared_error mean_squared_logarithmic_error poisson squared_hinge tversky circle""".split()  # fmt: skip
METRICS = """Accuracy AUC BinaryAccuracy BinaryCrossentropy BinaryIoU CategoricalAccuracy CategoricalCrossentropy CosineSimilarity F1Score FalseNegatives FalsePositives FBetaScore Hinge KLDivergence LogCoshError Mean MeanAbsoluteError
    MeanSquaredError Poisson Precision PrecisionAtRecall R2Score Recall RecallAtPrecision RootMeanSquaredError SensitivityAtSpecificity SpecificityAtSensitivity Sum TopKCategoricalAccuracy TrueNegatives TruePositives ConcordanceCorrelation PearsonCorrelation""".split()  # fmt: skip
OPTIMIZERS = "SGD RMSprop Adam AdamW Adadelta Adagrad Adamax Adafactor Nadam Ftrl Lion Lamb Muon".split()


def fill(cases):
    for name in ONE:
        function = f"tf.keras.ops.{name}"
        rng = cases.rng(function)
        for dtype in [*FLOATS, "int32", "uint8", "bool"]:
            for shape in [(4,), (2, 4)]:
                x = distinct(rng, shape, dtype) if name in ("argmax", "argmin", "argsort", "sort", "unique", "max", "min", "median") and dtype != "bool" else array(rng, shape, dtype, 0.1, 0.9) if dtype in FLOATS else array(rng, shape, dtype)
                cases.call(function, x)
    for name in TWO:
        function = f"tf.keras.ops.{name}"
        rng = cases.rng(function)
        for dtype in [*FLOATS, "int32", "int8", "uint8", "bool"]:
            cases.call(function, array(rng, (3,), dtype, 1, 5), array(rng, (3,), dtype, 1, 5))
            cases.call(function, array(rng, (3,), dtype, 1, 5), array(rng, (3,), "float32", 1, 5))
    for name in LOSSES:
        function = f"tf.keras.losses.{name}"
        rng = cases.rng(function)
        for dtype in ("float32", "float64", "float16"):
            y = array(rng, (4, 5), dtype, 0.05, 0.95)
            if name == "circle":
                cases.call(function, rng.integers(0, 3, (4,)), y)
                continue
            cases.call(function, array(rng, (4, 5), dtype, 0, 1), y)
            if "crossentropy" in name:
                cases.call(function, array(rng, (4, 5), dtype, 0, 1), y, from_logits=True)
                cases.call(function, array(rng, (4, 5), dtype, 0, 1), y, label_smoothing=0.1)
    rng = cases.rng("tf.keras.losses.sparse_categorical_crossentropy")
    for options in ({}, {"from_logits": True}, {"ignore_class": 1}):
        cases.call("tf.keras.losses.sparse_categorical_crossentropy", rng.integers(0, 5, (4,)), array(rng, (4, 5), "float32", 0.05, 0.95), **options)
    for name in METRICS:
        function = f"tf.keras.metrics.{name}"
        rng = cases.rng(function)
        arguments = {"BinaryIoU": "", "PrecisionAtRecall": "0.5", "RecallAtPrecision": "0.5", "SensitivityAtSpecificity": "0.5", "SpecificityAtSensitivity": "0.5"}.get(name, "")
        truth = rng.integers(0, 2, (6, 3)).astype(np.float32)
        update = "m.update_state(x[1])" if name in ("Mean", "Sum") else "m.update_state(x[0], x[1])"
        for more in ("", ", sample_weight=x[2]"):
            cases.code(function, f"(lambda m: ({update[:-1]}{more}), m.result())[1])(tf.keras.metrics.{name}({arguments}))", truth, array(rng, (6, 3), "float32", 0, 1), array(rng, (6,), "float32", 0.5, 2) if name not in ("Mean", "Sum") else array(rng, (6, 1), "float32", 0.5, 2))
    for name in OPTIMIZERS:
        function = f"tf.keras.optimizers.{name}"
        rng = cases.rng(function)
        for options in ("learning_rate=0.1", "learning_rate=0.1, clipnorm=0.5", "learning_rate=0.1, weight_decay=0.01", "learning_rate=0.1, use_ema=True"):
            cases.code(function, f"(lambda o, v: ([o.apply([g], [v]) if o.built else o.apply_gradients([(g, v)]) for g in (x[1], x[2], x[1])], tf.convert_to_tensor(v), [tf.convert_to_tensor(s) for s in o.variables]))(tf.keras.optimizers.{name}({options}), tf.keras.Variable(x[0]))[1:]", array(rng, (3, 4)), array(rng, (3, 4)), array(rng, (3, 4)))
    activations = "elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_tanh leaky_relu linear log_sigmoid log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus softsign sparse_plus sparsemax squareplus tanh tanh_shrink threshold".split()
    for name in activations:
        rng = cases.rng(f"tf.keras.activations.{name}")
        for dtype in FLOATS:
            cases.call(f"tf.keras.activations.{name}", array(rng, (2, 4), dtype), *((0.5, 1.0) if name == "threshold" else ()))
