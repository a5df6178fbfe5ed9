"""tf.nn: convolutions, pools, normalisation, losses, embeddings, CTC."""
import numpy as np

from cases import Raw
from inputs import FLOATS, array, distinct, sparse, special

KINDS = [*FLOATS, "int32"]


def fill(cases):
    convolutions(cases)
    pools(cases)
    losses(cases)
    normal(cases)
    rest(cases)


def convolutions(cases):
    for dtype in KINDS:
        rng = cases.rng("tf.nn.conv" + dtype)
        for padding in ("SAME", "VALID"):
            stride, dilation = int(rng.integers(1, 3)), int(rng.integers(1, 3))
            c = cases.call
            c("tf.nn.conv1d", array(rng, (2, 7, 3), dtype), array(rng, (3, 3, 4), dtype), stride, padding)
            c("tf.nn.conv2d", array(rng, (2, 7, 6, 3), dtype), array(rng, (3, 2, 3, 4), dtype), stride, padding)
            c("tf.nn.conv2d", array(rng, (1, 7, 6, 2), dtype), array(rng, (2, 2, 2, 3), dtype), 1, padding, dilations=2)
            c("tf.nn.conv2d", array(rng, (1, 5, 5, 4), dtype), array(rng, (2, 2, 2, 4), dtype), 1, padding)  # groups
            c("tf.nn.conv2d", array(rng, (1, 2, 5, 5), dtype), array(rng, (2, 2, 2, 4), dtype), 1, padding, data_format="NCHW")
            c("tf.nn.conv3d", array(rng, (1, 4, 4, 5, 2), dtype), array(rng, (2, 2, 3, 2, 2), dtype), [1, stride, stride, stride, 1], padding)
            c("tf.nn.convolution", array(rng, (2, 7, 3), dtype), array(rng, (3, 3, 4), dtype), padding=padding, dilations=dilation)
            c("tf.nn.depthwise_conv2d", array(rng, (1, 6, 6, 3), dtype), array(rng, (3, 3, 3, 2), dtype), [1, stride, stride, 1], padding)
            c("tf.nn.separable_conv2d", array(rng, (1, 6, 6, 2), dtype), array(rng, (3, 3, 2, 2), dtype), array(rng, (1, 1, 4, 3), dtype), [1, stride, stride, 1], padding)
            c("tf.nn.atrous_conv2d", array(rng, (1, 6, 6, 2), dtype), array(rng, (2, 2, 2, 3), dtype), 2, padding)
            c("tf.nn.dilation2d", distinct(rng, (1, 6, 6, 2), dtype), array(rng, (2, 3, 2), dtype, -0.4, 0.4), [1, stride, stride, 1], padding, "NHWC", [1, 1, 1, 1])
            c("tf.nn.erosion2d", distinct(rng, (1, 6, 6, 2), dtype), array(rng, (2, 3, 2), dtype, -0.4, 0.4), [1, stride, stride, 1], padding, "NHWC", [1, 1, 1, 1])
            size = 6 if padding == "SAME" else 7
            c("tf.nn.conv2d_transpose", array(rng, (1, 3, 3, 4), dtype), array(rng, (3, 3, 2, 4), dtype), [1, size, size, 2], 2, padding)
            c("tf.nn.conv1d_transpose", array(rng, (1, 3, 4), dtype), array(rng, (3, 2, 4), dtype), [1, size, 2], 2, padding)
            c("tf.nn.conv3d_transpose", array(rng, (1, 3, 3, 3, 2), dtype), array(rng, (3, 3, 3, 2, 2), dtype), [1, size, size, size, 2], 2, padding)
            c("tf.nn.conv_transpose", array(rng, (1, 3, 3, 4), dtype), array(rng, (3, 3, 2, 4), dtype), [1, size, size, 2], 2, padding)
            c("tf.nn.atrous_conv2d_transpose", array(rng, (1, 6, 6, 3), dtype), array(rng, (2, 2, 2, 3), dtype), [1, 6 if padding == "SAME" else 8, 6 if padding == "SAME" else 8, 2], 2, padding)
        cases.call("tf.nn.conv2d", array(rng, (0, 5, 5, 2), dtype), array(rng, (2, 2, 2, 4), dtype), 1, "SAME")
    rng = cases.rng("tf.nn.conv2d")
    cases.call("tf.nn.conv2d", array(rng, (1, 5, 5, 2)), array(rng, (2, 2, 3, 4)), 1, "SAME", note="channels that do not fit")
    cases.call("tf.nn.conv2d", array(rng, (1, 2, 2, 2)), array(rng, (3, 3, 2, 4)), 1, "VALID", note="too small")
    cases.call("tf.nn.conv2d", array(rng, (1, 5, 5, 2)), array(rng, (2, 2, 2, 4)), 1, [[0, 0], [1, 2], [0, 1], [0, 0]])
    cases.call("tf.nn.conv2d", array(rng, (1, 5, 5, 2)), array(rng, (2, 2, 2, 4)), 0, "SAME")


def pools(cases):
    for name, rank in {"avg_pool1d": 1, "avg_pool2d": 2, "avg_pool3d": 3, "max_pool1d": 1, "max_pool2d": 2, "max_pool3d": 3, "avg_pool": 2, "max_pool": 2}.items():
        function = f"tf.nn.{name}"
        rng = cases.rng(function)
        for dtype in KINDS:
            for padding in ("SAME", "VALID"):
                for size, stride in ((2, 2), (3, 1), (2, 3)):
                    cases.call(function, distinct(rng, (2, 6, 5, 4)[: rank + 1] + (2,), dtype), size, stride, padding)
        cases.call(function, array(rng, (1, 1, 1, 1)[: rank + 1] + (2,)), 3, 1, "VALID", note="too small")
    rng = cases.rng("tf.nn.pool")
    for kind in ("MAX", "AVG"):
        for dtype in FLOATS:
            cases.call("tf.nn.pool", distinct(rng, (1, 6, 6, 2), dtype), [2, 2], kind, strides=[2, 2], padding="SAME")
            cases.call("tf.nn.pool", distinct(rng, (1, 6, 6, 2), dtype), [2, 2], kind, dilations=[2, 2], padding="VALID")
    rng = cases.rng("tf.nn.max_pool_with_argmax")
    for include in (False, True):
        for dtype in FLOATS:
            cases.call("tf.nn.max_pool_with_argmax", distinct(rng, (2, 4, 5, 2), dtype), 2, 2, "SAME", include_batch_in_index=include)
    for name in ("fractional_max_pool", "fractional_avg_pool"):
        rng = cases.rng(f"tf.nn.{name}")
        cases.code(f"tf.nn.{name}", f"[t.shape for t in tf.nn.{name}(x[0], 1.5, seed=3)]", distinct(rng, (1, 8, 8, 1), "float32"))


def losses(cases):
    for dtype in KINDS:
        rng = cases.rng("losses" + dtype)
        for shape in [(4, 3), (2, 2, 5), (0, 3), (3,)]:
            logits = array(rng, shape, dtype)
            labels = array(rng, shape, dtype, 0, 1)
            cases.call("tf.nn.sigmoid_cross_entropy_with_logits", labels=labels, logits=logits)
            cases.call("tf.nn.weighted_cross_entropy_with_logits", labels, logits, 1.5)
            cases.call("tf.nn.softmax_cross_entropy_with_logits", labels=labels, logits=logits)
            cases.call("tf.nn.softmax_cross_entropy_with_logits", labels=labels, logits=logits, axis=0)
            cases.call("tf.nn.sparse_softmax_cross_entropy_with_logits", labels=rng.integers(0, shape[-1], shape[:-1]), logits=logits)
            cases.call("tf.nn.log_poisson_loss", labels, logits, compute_full_loss=bool(rng.integers(0, 2)))
            cases.call("tf.nn.l2_loss", logits)
    rng = cases.rng("losses")
    cases.call("tf.nn.sigmoid_cross_entropy_with_logits", labels=np.float32(0.5), logits=special("float32"), grad=[])
    cases.call("tf.nn.sparse_softmax_cross_entropy_with_logits", labels=np.array([0, 3]), logits=array(rng, (2, 3)), note="label beyond the end")
    cases.call("tf.nn.sparse_softmax_cross_entropy_with_logits", labels=np.array([0, -1]), logits=array(rng, (2, 3)))
    cases.call("tf.nn.softmax_cross_entropy_with_logits", labels=array(rng, (1, 3)), logits=array(rng, (2, 3)))
    cases.call("tf.nn.compute_average_loss", array(rng, (4,)), global_batch_size=8)
    cases.call("tf.nn.compute_average_loss", array(rng, (4,)), sample_weight=array(rng, (4,)))
    cases.call("tf.nn.scale_regularization_loss", array(rng, (4,)))
    for blank in (0, 2, -1):
        cases.call("tf.nn.ctc_loss", np.array([[1, 0], [1, 1]]) if blank == -1 else np.array([[1, 3], [1, 1]]) if blank else np.array([[1, 3], [2, 2]]), array(rng, (6, 2, 4)), np.array([2, 1]), np.array([6, 5]), blank_index=blank, grad=[1])
    cases.call("tf.nn.ctc_unique_labels", np.array([[1, 3, 3, 1], [2, 2, 0, 0]]))
    cases.call("tf.nn.collapse_repeated", np.array([[1, 1, 2, 2, 1], [3, 3, 3, 0, 0]]), np.array([5, 3]))
    for merge in (True, False):
        cases.call("tf.nn.ctc_greedy_decoder", array(rng, (6, 2, 4)), np.array([6, 4], np.int32), merge_repeated=merge, grad=[])
    cases.call("tf.nn.ctc_beam_search_decoder", array(rng, (6, 2, 4)), np.array([6, 4], np.int32), beam_width=8, top_paths=2, grad=[])
    for shape in [(5,), (2, 5), (0, 3)]:
        for decreasing in (True, False):
            cases.call("tf.nn.isotonic_regression", array(rng, shape), decreasing=decreasing)


def normal(cases):
    for dtype in KINDS:
        rng = cases.rng("normal" + dtype)
        x = array(rng, (2, 3, 4, 5), dtype)
        cases.call("tf.nn.batch_normalization", x, array(rng, (5,), dtype), array(rng, (5,), dtype, 0.5, 2), array(rng, (5,), dtype), array(rng, (5,), dtype), 1e-3)
        cases.call("tf.nn.batch_normalization", x, array(rng, (5,), dtype), array(rng, (5,), dtype, 0.5, 2), None, None, 1e-3)
        cases.call("tf.nn.batch_norm_with_global_normalization", x, array(rng, (5,), dtype), array(rng, (5,), dtype, 0.5, 2), array(rng, (5,), dtype), array(rng, (5,), dtype), 1e-3, True)
        cases.call("tf.nn.moments", x, [0, 1])
        cases.call("tf.nn.moments", x, [-1], keepdims=True)
        cases.call("tf.nn.weighted_moments", x, [0, 1], array(rng, (2, 3, 4, 5), dtype, 1, 2))
        cases.call("tf.nn.sufficient_statistics", x, [0, 2])
        cases.call("tf.nn.sufficient_statistics", x, [0, 2], shift=array(rng, (), dtype))
        cases.call("tf.nn.normalize_moments", array(rng, (), dtype, 4, 5), array(rng, (3,), dtype), array(rng, (3,), dtype, 5, 9), None)
        cases.call("tf.nn.local_response_normalization", x, depth_radius=2, bias=1.5, alpha=0.7, beta=0.6)
        cases.call("tf.nn.lrn", x)
        cases.call("tf.nn.bias_add", x, array(rng, (5,), dtype))
        cases.call("tf.nn.bias_add", x, array(rng, (3,), dtype), data_format="NCHW")
        cases.call("tf.nn.bias_add", x, array(rng, (4,), dtype))
        cases.call("tf.nn.leaky_relu", x, alpha=0.3)
        cases.call("tf.nn.gelu", x, approximate=True)
        cases.call("tf.nn.silu", x, beta=1.5)
        cases.call("tf.nn.crelu", x, axis=1)


def rest(cases):
    rng = cases.rng("tf.nn.embedding_lookup_sparse")
    ids = sparse([[0, 0], [0, 1], [2, 0], [3, 0]], np.array([1, 3, 0, 2]), [4, 2])
    weights = sparse([[0, 0], [0, 1], [2, 0], [3, 0]], np.array([1, 2, 0.5, 3], np.float32), [4, 2])
    for combiner in ("sum", "mean", "sqrtn"):
        for dtype in ("float32", "float64", "float16"):
            cases.call("tf.nn.embedding_lookup_sparse", array(rng, (5, 3), dtype), ids, None, combiner=combiner)
            cases.call("tf.nn.embedding_lookup_sparse", array(rng, (5, 3), "float32"), ids, weights, combiner=combiner)
            cases.call("tf.nn.safe_embedding_lookup_sparse", array(rng, (5, 3), dtype), ids, combiner=combiner)
    cases.call("tf.nn.safe_embedding_lookup_sparse", array(rng, (5, 3)), ids, weights, default_id=1)
    for name in ("all_candidate_sampler", "uniform_candidate_sampler", "log_uniform_candidate_sampler"):
        cases.rng(f"tf.random.{name}")
        cases.code(f"tf.random.{name}", f"[t.shape for t in tf.random.{name}(tf.constant([[1], [2]], tf.int64), 1, 3, True, {3 if name[0] == 'a' else 9})]" if name[0] != "a" else "[t.shape for t in tf.random.all_candidate_sampler(tf.constant([[1], [2]], tf.int64), 1, 3, True)]")
    cases.rng("tf.nn.compute_accidental_hits")
    cases.call("tf.nn.compute_accidental_hits", np.array([[1, 2], [3, 4]]), np.array([4, 1, 7]), 2)
    for name in ("fake_quant_with_min_max_args", "fake_quant_with_min_max_vars", "fake_quant_with_min_max_vars_per_channel", "quantize_and_dequantize", "quantize_and_dequantize_v2"):
        function = f"tf.quantization.{name}"
        rng = cases.rng(function)
        for bits in (8, 4):
            for narrow in (False, True):
                x = array(rng, (3, 4), "float32", -8, 8)
                if name.endswith("args"):
                    cases.call(function, x, -6, 5, bits, narrow)
                elif "vars" in name:
                    low, high = (np.full(4, -5, np.float32), np.full(4, 4, np.float32)) if "channel" in name else (np.float32(-5), np.float32(4))
                    cases.call(function, x, low, high, bits, narrow, grad=[0])
                else:
                    cases.call(function, x, -5.0, 4.0, num_bits=bits, narrow_range=narrow, range_given=True, grad=[0])
                    cases.call(function, x, -5.0, 4.0, num_bits=bits, grad=[0])
    function = "tf.quantization.fake_quant_with_min_max_args_gradient"
    rng = cases.rng(function)
    cases.call(function, array(rng, (3, 4)), array(rng, (3, 4), low=-8, high=8), grad=[])
    function = "tf.nn.with_space_to_batch"
    rng = cases.rng(function)
    cases.code(function, "tf.nn.with_space_to_batch(x[0], [2], 'VALID', lambda t, n, p: t * 2)", array(rng, (1, 4, 1)))
    for rate in (0.0, 1.0, 0.5):
        rng = cases.rng("tf.nn.dropout")
        cases.code("tf.nn.dropout", f"(lambda y: (y.shape, y.dtype, tf.reduce_all((y == 0) | (abs(y - x[0] / {1 - rate or 1}) < 1e-5))))(tf.nn.dropout(x[0], {rate}))", array(rng, (4, 5), low=1, high=2))
    _ = Raw
