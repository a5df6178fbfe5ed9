"""Why what still differs does: by function, the kind of difference, and the reason. What no row explains is listed without a reason."""
import re

REASONS = [
    # pattern of the function, kinds, reason
    (r"tf\.keras\.(ops|losses|metrics)\..*", ("dtype",), "Keras itself keeps 64-bit types on its TensorFlow backend alone; on every other backend they become 32 bits"),
    (r"tf\.keras\.optimizers\..*", ("dtype",), "Keras counts steps in int64 on its TensorFlow backend and in int32 on the others"),
    (r"tf\.keras\.(ops|activations)\.sparsemax", ("value", "gradient"), "Keras's TensorFlow backend adds up all partial sums; ours follows Martins and Astudillo, 2016"),
    (r"tf\.keras\.(ops|activations)\.(gelu|logaddexp2|leaky_relu)|tf\.nn\.gelu", ("value",), "constants of 32 bits in float64"),
    (r"tf\.linalg\.(cholesky|cholesky_solve|det|logdet|slogdet|sqrtm|logm|eigh?|eigvals(h)?|svd|qr|lu.*)", ("gradient",), "complex matrices are factorised on the host, without a gradient; of symmetric ones TensorFlow puts it into one triangle, ours is symmetric"),
    (r"tf\.(linalg\.tridiagonal_solve|nn\.(silu|swish)|math\.(reduce_euclidean_norm|cumprod))", ("gradient",), "TensorFlow's rule leaves out the conjugate of a complex operand"),
    (r"tf\.math\.(unsorted_)?segment_prod", ("gradient",), "products of groups of complex numbers have no gradient"),
    (r"tf\.nn\.isotonic_regression", ("gradient",), "of one row TensorFlow's gradient has another shape, and is that of the input alone"),
    (r"tf\.image\.(adjust_.*|rgb_to_grayscale|rgb_to_hsv)", ("value", "gradient"), "computed in 32 bits as there, rounded at other places; whole numbers differ by one"),
    (r"tf\.math\.floordiv", ("value",), "denormal quotients, which TensorFlow takes for 0"),
    (r".*", ("ended",), "the process of TensorFlow ends itself (a product of bfloat16 on this processor, a length computed from -1)"),
    (r"tf\.linalg\..*|tf\.(norm|eig|eigvals)", ("fails",), "complex and 16-bit matrices are not factorised; inv, solve, expm and products take complex ones"),
    (r"tf\.math\.(multiply_no_nan|squared_difference|xdivy|xlogy|xlog1py)", ("gradient",), "TensorFlow's rule leaves out the conjugate of a complex operand"),
    (r"tf\.math\.(acos|acosh|asin|asinh|atan|atanh|pow|rsqrt|log1p|xlogy|xlog1py|reduce_mean|sigmoid|reciprocal)", ("value",), "complex numbers at 0 and at infinity, and near the branch cuts"),
    (r"tf\.math\.(erf|softmax)|tf\.nn\.softmax", ("value",), "NaN and infinity: TensorFlow gives NaN for erf(inf) in float64, and 0 beside a NaN"),
    (r"tf\.nn\.softmax_cross_entropy_with_logits|tf\.keras\.losses\.categorical_crossentropy", ("gradient",), "TensorFlow's rule holds for labels that sum to 1; ours is the derivative for all"),
    (r"tf\.linalg\.(eigh|eigvalsh)", ("gradient",), "TensorFlow puts the gradient of a symmetric matrix into one triangle, ours is symmetric"),
    (r"tf\.math\.(betainc|zeta)|tf\.image\.hsv_to_rgb", ("gradient",), "TensorFlow has no gradient with respect to this argument"),
    (r"tf\.image\.(per_image_standardization|resize_with_pad|adjust_.*)", ("gradient",), "computed in 32 bits; TensorFlow rounds once more or less on the way back"),
    (r"tf\.(sort|argsort)", ("value",), "the order of NaN"),
    (r"tf\.math\.(special\..*|bessel.*|erfc?inv|digamma|lgamma|igammac?|zeta|polygamma|ndtri|betainc)", ("value", "gradient"), "special functions at poles, at infinity and beyond their domain, and by other polynomials"),
    (r"tf\.math\.(unsorted_)?segment_prod", ("gradient", "fails"), "products of groups have no gradient yet"),
    (r"tf\.saturate_cast|tf\.image\.convert_image_dtype", ("value",), "TensorFlow's limit for int32 and int64 is rounded up and overflows"),
    (r"tf\.image\.resize", ("value",), "bicubic without antialias: TensorFlow reads the weights from a table of 1024"),
    (r"tf\.image\.(yiq_to_rgb|yuv_to_rgb)", ("value", "gradient"), "the inverse matrix, to more digits"),
    (r"tf\.(io|image)\.(decode_png|encode_png|decode_image)", ("value", "shape"), "PNG of 16 bits and of two channels are read as 8 bits and one"),
    (r"tf\.nn\.conv2d", ("shape",), "an empty batch: TensorFlow gives the input's channels"),
    (r"tf\.strings\.unicode_script", ("fails",), "not there; raises NotImplementedError"),
    (r"tf\.(cond|case|switch_case)", ("structure", "fails", "value"), "run at once, TensorFlow gives back Python's own number; here it is a tensor"),
    (r"tf\.Tensor .*|tf\.math\..*", ("accepts",), "TensorFlow knows fewer types here; operators promote as docs/python.md says"),
    (r".*", ("accepts",), "more types or arguments are taken than TensorFlow takes"),
]  # fmt: skip


def reason(function, kind, text):
    if kind == "fails" and "ComplexTensor" in text:
        return "complex tensors are not taken"
    return next((text for pattern, kinds, text in REASONS if kind in kinds and re.fullmatch(pattern, function)), "")
