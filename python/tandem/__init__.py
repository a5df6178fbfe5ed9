"""Tandem: TensorFlow programs on the CPU and the GPU together. `import tandem as tf`.

Names are loaded when they are first used: importing this package loads neither Keras nor the parts of the face."""
import importlib as _importlib
import os as _os

from tandem import _core
from tandem import _convert, _dtypes, _shape, errors, _tensor

__version__ = "2.21.0"

_core.configure({
    "convert": _convert.convert,
    "as_dtype": _dtypes.as_dtype,
    "shape": _shape.TensorShape,
    "index": _tensor.index,
    "raise_error": errors._raise,
    "dtypes": _dtypes._core_types,
    "folder": _os.path.dirname(_os.path.dirname(_os.path.abspath(__file__))),
})  # fmt: skip
_tensor.setup()

TensorShape, DType, as_dtype = _shape.TensorShape, _dtypes.DType, _dtypes.as_dtype
newaxis = None
for _type in _dtypes._by_name.values():
    globals()[_type.name] = _type
half, double = _dtypes.half, _dtypes.double
del _type

# The public modules: tf.<name> is tandem.<name>.
_modules = {
    "__internal__",
    "audio", "autodiff", "autograph", "bitwise", "compat", "config", "data", "debugging", "distribute", "dtypes", "experimental", "feature_column", "image", "io",
    "linalg", "lookup", "math", "memory", "nest", "nn", "profiler", "quantization", "queue", "ragged", "random", "saved_model", "sets", "signal", "sparse",
    "strings", "summary", "sysconfig", "test", "train", "types", "version", "xla",
}  # fmt: skip

# Where the names of tf itself are.
_homes = {
    "_arrays": """bitcast broadcast_dynamic_shape broadcast_static_shape broadcast_to cast concat constant convert_to_tensor ensure_shape expand_dims eye fill
        get_static_value identity identity_n is_symbolic_tensor is_tensor linspace meshgrid one_hot ones ones_like pad parallel_stack range rank repeat reshape
        reverse roll saturate_cast shape shape_n size slice split squeeze stack stop_gradient strided_slice tile transpose unstack where zeros zeros_like""",
    "_gather": """argsort batch_to_space boolean_mask dynamic_partition dynamic_stitch edit_distance extract_volume_patches gather gather_nd
        histogram_fixed_width histogram_fixed_width_bins required_space_to_batch_paddings reverse_sequence scatter_nd searchsorted sequence_mask sort
        space_to_batch space_to_batch_nd tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update
        unique unique_with_counts unravel_index""",
    "math": """abs acos acosh add add_n argmax argmin asin asinh atan atan2 atanh clip_by_global_norm clip_by_norm clip_by_value cos cosh cumsum divide equal exp
        floor greater greater_equal less less_equal logical_and logical_not logical_or maximum minimum multiply negative not_equal pow realdiv reduce_all
        reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum round scalar_mul sigmoid sign sin sinh sqrt square subtract tan
        tanh truediv truncatediv truncatemod""",
    "linalg": "eig eigvals einsum matmul norm tensordot matrix_square_root",
    "debugging": "Assert assert_equal assert_greater assert_less assert_rank",
    "_control": "case cond foldl foldr map_fn scan switch_case vectorized_map while_loop",
    "_function": "executing_eagerly function inside_function",
    "_gradient": "GradientTape RegisterGradient UnconnectedGradients custom_gradient grad_pass_through gradients hessians no_gradient recompute_grad",
    "_misc": """AggregationMethod CriticalSection DeviceSpec Graph Operation control_dependencies fingerprint get_logger group guarantee_const init_scope
        load_library load_op_library make_ndarray make_tensor_proto no_op register_tensor_conversion_function timestamp tuple""",
    "_graph_ops": """approx_top_k check_pinned conv conv2d_backprop_filter_v2 conv2d_backprop_input_v2 fftnd ifftnd irfftnd nondifferentiable_batch_function
        ragged_fill_empty_rows ragged_fill_empty_rows_grad rfftnd""",
    "_host_calls": "numpy_function py_function",
    "_names": "get_current_name_scope name_scope",
    "_specs": "NoneTensorSpec TensorSpec TypeSpec type_spec_from_value",
    "_variable": "Variable VariableAggregation VariableSynchronization variable_creator_scope",
    "_indexed_slices": "IndexedSlices IndexedSlicesSpec",
    "_ragged": "RaggedTensor RaggedTensorSpec",
    "_sparse": "SparseTensor SparseTensorSpec",
    "_tensor_array": "TensorArray TensorArraySpec",
    "_module": "Module",
    "_initializers": "constant_initializer ones_initializer random_normal_initializer random_uniform_initializer zeros_initializer",
    "_tensor_class": "Tensor",
    "_devices": "device",
    "_explain": "explain",
    "random": "random_index_shuffle",
    "data.optional": "OptionalSpec",
    "strings": "as_string",
}  # fmt: skip
_where = {name: home for home, names in _homes.items() for name in names.split()}
_renamed = {"complex": ("_complex", "complex_"), "print": ("_host_calls", "print_")}


def __getattr__(name):
    if name in _where or name in _renamed:
        home, theirs = _renamed.get(name) or (_where[name], name)
        found = getattr(_importlib.import_module(f"tandem.{home}"), theirs)
    elif name in _modules:
        try:
            found = _importlib.import_module(f"tandem.{name}")
        except ModuleNotFoundError as e:
            if e.name == f"tandem.{name}":
                raise _missing(name) from None
            raise
    elif name in ("keras", "initializers", "losses", "metrics", "optimizers"):
        import keras_tandem  # noqa: F401 (real Keras, on our backend)
        import keras._tf_keras.keras as keras

        found = keras if name == "keras" else getattr(keras, name)
    else:
        raise _missing(name)
    globals()[name] = found
    return found


def _missing(name):
    return AttributeError(f"module 'tandem' has no '{name}': docs/coverage.md lists what there is of TensorFlow")


def __dir__():
    return sorted({n for n in globals() if not n.startswith("_")} | set(_where) | set(_renamed) | _modules | {"keras"})



import keras_tandem  # noqa: E402, F401 (`import keras` from now on finds the backend; Keras itself is not loaded)
