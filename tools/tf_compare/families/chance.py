"""Random numbers: shapes, types, limits, and means of many. TensorFlow promises the same bits for a seed only from its own generators."""
import numpy as np

SUMMARY = "(lambda y: (y.shape, y.dtype.name, bool(tf.reduce_all(tf.cast(y, tf.float64) >= {low})), bool(tf.reduce_all(tf.cast(y, tf.float64) {less} {high})), abs(float(tf.reduce_mean(tf.cast(y, tf.float64))) - {mean}) < {near}))({call})"


def summary(cases, function, call, low=-1e30, high=1e30, mean=0.0, near=1e30, less="<="):
    cases.rng(function)
    cases.code(function, SUMMARY.format(call=call, low=low, high=high, mean=mean, near=near, less=less))


def fill(cases):
    for t in ("float16", "bfloat16", "float32", "float64", "int32", "int64", "uint8"):
        for prefix, seed in (("tf.random.stateless_", ", seed=[1, 2]"), ("tf.random.", ""), ("tf.random.Generator.from_seed(3).", "")):
            name = prefix.split("(")[0].replace(".from_seed", "") if "Generator" in prefix else prefix
            for method in ("uniform", "normal", "truncated_normal"):
                full = name + ("." if "Generator" in name else "") + method
                whole = t.startswith(("int", "uint"))
                options = ", 0, 9" if method == "uniform" and whole else ""
                high = 9 if options else 1
                summary(cases, full, f"{prefix}{method}([50, 40]{options}, dtype=tf.{t}{seed})", *((0, high, high / 2 - (0.5 if whole else 0), 0.1 * high, "<") if method == "uniform" else (-8, 8, 0, 0.15)))
                cases.code(full, f"{prefix}{method}([0, 3]{options}, dtype=tf.{t}{seed}).shape")
                cases.code(full, f"{prefix}{method}([-1]{options}, dtype=tf.{t}{seed}).shape")
    for call, name in (
        ("tf.random.stateless_uniform([3], [1, 2], None, None, tf.int32).shape", "tf.random.stateless_uniform"), ("tf.random.stateless_uniform([3], [1, 2], 5, 3, tf.int32).shape", "tf.random.stateless_uniform"), ("tf.random.stateless_uniform([3], [1, 2], dtype=tf.int32).shape", "tf.random.stateless_uniform"),
        ("tf.random.stateless_uniform([3], 1).shape", "tf.random.stateless_uniform"), ("tf.random.stateless_uniform([3], [1, 2, 3]).shape", "tf.random.stateless_uniform"), ("tf.random.stateless_uniform([3], [1, 2]) == tf.random.stateless_uniform([3], [1, 2])", "tf.random.stateless_uniform"),
        ("tf.sort(tf.random.shuffle(tf.range(10)))", "tf.random.shuffle"), ("tf.sort(tf.random.experimental.stateless_shuffle(tf.range(10), [1, 2]))", "tf.random.experimental.stateless_shuffle"), ("tf.sort(tf.random.experimental.index_shuffle(tf.range(10), [1, 2, 3], 9))", "tf.random.experimental.index_shuffle"),
        ("tf.random.split([1, 2], 3).shape", "tf.random.split"), ("tf.random.split([1, 2], 3).dtype", "tf.random.split"), ("tf.random.fold_in([1, 2], 3).shape", "tf.random.fold_in"), ("tf.random.categorical([[0.0, -1e9, -1e9], [-1e9, -1e9, 0.0]], 4)", "tf.random.categorical"), ("tf.random.stateless_categorical([[0.0, -1e9, -1e9], [-1e9, -1e9, 0.0]], 4, [1, 2])", "tf.random.stateless_categorical"),
        ("tf.random.create_rng_state(5, 'philox').shape", "tf.random.create_rng_state"), ("tf.random.create_rng_state(5, 'philox')", "tf.random.create_rng_state"), ("tf.random.Generator.from_seed(5).state", "tf.random.Generator"), ("tf.random.Generator.from_seed(5).key", "tf.random.Generator"), ("tf.random.Generator.from_seed(5).algorithm", "tf.random.Generator"),
        ("tf.math.sobol_sample(2, 5)", "tf.math.sobol_sample"), ("tf.math.sobol_sample(3, 4, skip=2, dtype=tf.float64)", "tf.math.sobol_sample"), ("tf.random.uniform_candidate_sampler([[1]], 1, 3, True, 9).sampled_candidates.shape", "tf.random.uniform_candidate_sampler"),
    ):  # fmt: skip
        cases.rng(name)
        cases.code(name, call)
    for name, call, mean, near in (
        ("tf.random.gamma", "tf.random.gamma([2000], 2.0, 0.5)", 4, 0.4), ("tf.random.stateless_gamma", "tf.random.stateless_gamma([2000], [1, 2], 2.0, 0.5)", 4, 0.4), ("tf.random.poisson", "tf.random.poisson([2000], 3.0)", 3, 0.3), ("tf.random.stateless_poisson", "tf.random.stateless_poisson([2000], [1, 2], 3.0)", 3, 0.3),
        ("tf.random.stateless_binomial", "tf.random.stateless_binomial([2000], [1, 2], 10.0, 0.3)", 3, 0.3), ("tf.random.stateless_parameterized_truncated_normal", "tf.random.stateless_parameterized_truncated_normal([2000], [1, 2], 0.0, 1.0, -1.0, 1.0)", 0, 0.1),
    ):  # fmt: skip
        summary(cases, name, call, -2, 100, mean, near)
    for name in ("random_brightness", "random_contrast", "random_hue", "random_saturation", "random_flip_left_right", "random_flip_up_down", "random_crop"):
        args = {"random_brightness": "0.2", "random_contrast": "0.5, 1.5", "random_hue": "0.2", "random_saturation": "0.5, 1.5", "random_crop": "[3, 3, 3]"}.get(name, "")
        for full, seed in ((f"tf.image.{name}", ""), (f"tf.image.stateless_{name}", ", seed=[1, 2]")):
            cases.rng(full)
            cases.code(full, f"(lambda y: (y.shape, y.dtype))({full}(x[0]{', ' + args if args else ''}{seed}))", np.full((5, 6, 3), 0.5, np.float32))
