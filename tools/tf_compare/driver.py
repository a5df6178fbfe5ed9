"""Runs cases on one engine: driver.py ENGINE CASES RESULTS FIRST. Each result is written at once, so that a case that ends the process costs only itself.

ENGINE is `tensorflow` or `tandem`; the file needs nothing but NumPy beside it.
"""
import collections.abc
import os
import pickle
import sys
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402

MOST_ELEMENTS = 40  # of a dataset


class Engine:
    def __init__(self, name):
        warnings.simplefilter("ignore")
        if name == "tensorflow":
            import tensorflow as tf

            tf.config.threading.set_intra_op_parallelism_threads(1)
            tf.config.threading.set_inter_op_parallelism_threads(1)
            tf.get_logger().setLevel("ERROR")
            import logging

            logging.getLogger("absl").setLevel("ERROR")
        else:
            import tandem as tf
        self.tf = tf

    # --- arguments

    def build(self, x):
        tf = self.tf
        if isinstance(x, (np.ndarray, np.generic)):
            x = np.asarray(x)
            if x.dtype == object:
                return tf.constant(x.tolist() if x.ndim else x.item(), dtype=tf.string, shape=x.shape)
            return tf.constant(x)
        if x.kind == "ragged":
            rows, dtype, rank = x.parts
            return tf.ragged.constant(rows, dtype=None if dtype is None else tf.as_dtype(dtype), ragged_rank=rank)
        if x.kind == "sparse":
            indices, values, shape = x.parts
            return tf.SparseTensor(indices, self.build(values), shape)
        if x.kind == "array":
            return x.parts[0]
        raise ValueError(x.kind)

    # --- results as data

    def encode(self, out, depth=0):
        tf = self.tf
        if depth > 8:
            return ("other", "deep")
        if out is None or isinstance(out, (bool, int, float, complex, str, bytes)):
            return ("python", out)
        if isinstance(out, np.ndarray) or isinstance(out, np.generic):
            return ("array", out.dtype.name, np.asarray(out))
        if isinstance(out, tf.IndexedSlices):
            return self.encode(tf.convert_to_tensor(out))
        if isinstance(out, tf.RaggedTensor):
            splits = [np.asarray(s) for s in out.nested_row_splits]
            return ("ragged", out.dtype.name, splits, np.asarray(out.flat_values.numpy()))
        if isinstance(out, tf.SparseTensor):
            return ("sparse", out.dtype.name, np.asarray(out.indices), np.asarray(out.values.numpy()), np.asarray(out.dense_shape))
        if isinstance(out, tf.data.Dataset):
            items = []
            for item in out:
                items.append(self.encode(item, depth + 1))
                if len(items) == MOST_ELEMENTS:
                    break
            return ("list", items)
        if isinstance(out, tf.TensorShape):
            return ("python", None if out.rank is None else tuple(out.as_list()))
        if isinstance(out, tf.DType):
            return ("python", out.name)
        if isinstance(out, tf.TypeSpec):
            return ("python", repr(out))
        if isinstance(out, dict) or isinstance(out, collections.abc.Mapping):
            return ("dict", {k: self.encode(v, depth + 1) for k, v in sorted(out.items())})
        if isinstance(out, (list, tuple)):
            return ("list", [self.encode(v, depth + 1) for v in out])
        if isinstance(out, tf.Variable):
            out = out.read_value()
        if hasattr(out, "numpy") and hasattr(out, "dtype"):
            return ("tensor", tf.as_dtype(out.dtype).name, np.asarray(out.numpy()))
        if hasattr(out, "to_dense"):  # a linear operator
            return self.encode(out.to_dense(), depth + 1)
        return ("other", type(out).__name__)

    def leaves(self, out):
        tf = self.tf
        if isinstance(out, tf.RaggedTensor):
            return [out.flat_values]
        if isinstance(out, tf.SparseTensor):
            return [out.values]
        if isinstance(out, dict):
            return [t for k in sorted(out) for t in self.leaves(out[k])]
        if isinstance(out, (list, tuple)):
            return [t for o in out for t in self.leaves(o)]
        if hasattr(out, "to_dense"):
            return [out.to_dense()]
        if hasattr(out, "numpy") and hasattr(out, "dtype"):
            return [out]
        return []

    def weighted_sum(self, out, seed):
        """A number that depends on every floating element differently."""
        tf = self.tf
        rng, total = np.random.default_rng(seed), 0.0
        for leaf in self.leaves(out):
            kind = tf.as_dtype(leaf.dtype)
            if not (kind.is_floating or kind.is_complex):
                continue
            weights = rng.uniform(0.5, 1.5, tuple(leaf.shape))
            for part in [tf.math.real(leaf), tf.math.imag(leaf)] if kind.is_complex else [leaf]:
                total += tf.reduce_sum(part * tf.cast(tf.constant(weights), part.dtype))
        return total

    def run(self, case):
        tf = self.tf
        result = {}
        try:
            x = [self.build(v) for v in case["x"]]
            scope = {"tf": tf, "x": x, "np": np}
            if case["grad"]:
                watched = [x[i] for i in case["grad"]]
                with tf.GradientTape() as tape:
                    tape.watch(watched)
                    out = eval(case["code"], scope)
                    result["value"] = self.encode(out)
                    total = self.weighted_sum(out, case["seed"])
                if not isinstance(total, float):
                    try:
                        result["gradient"] = [self.encode(g) for g in tape.gradient(total, watched)]
                    except Exception as e:
                        result["gradient"] = failure(e)
            else:
                result["value"] = self.encode(eval(case["code"], scope))
        except Exception as e:
            if "value" in result:
                result["gradient"] = failure(e)
            else:
                result["value"] = failure(e)
        return result


def failure(e):
    return ("error", type(e).__name__, str(e)[:300])


def main():
    name, cases, results, first = sys.argv[1:5]
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    with open(cases, "rb") as f:
        cases = pickle.load(f)
    engine = Engine(name)
    with open(results, "ab") as f:
        for case in cases[int(first) :]:
            result = engine.run(case)
            try:
                line = pickle.dumps(result)
            except Exception as e:
                line = pickle.dumps({"value": ("other", f"cannot be stored: {e}")})
            f.write(line)
            f.flush()


if __name__ == "__main__":
    main()
