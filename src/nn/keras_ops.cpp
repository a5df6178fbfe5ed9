#include "nn/keras_ops.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/text.hpp"
#include "nn/names.hpp"
#include "ops/table.hpp"

namespace tandem::nn {
namespace {

using How = KerasField::How;
using Fields = std::vector<KerasField>;

KerasField fixed(const char* key, Config value) { return {key, "", How::Fixed, std::move(value)}; }
KerasField ignored(const char* key, Config value) { return {key, "", How::Ignored, std::move(value)}; }
KerasField list(const char* key, const char* attribute) { return {key, attribute, How::List}; }
KerasField same(const char* name) { return {name, name}; }

// A row has the first class that can say it; those behind are read only.
std::vector<KerasOp> make_table() {
  std::vector<KerasOp> all;
  const auto plain = [&](const char* module, std::initializer_list<std::pair<const char*, const char*>> pairs, const Fields& fields = {}) {
    for (const auto& [class_name, row] : pairs) all.push_back({class_name, module, row, fields});
  };
  const Fields reduction{same("axis"), same("keepdims")};
  constexpr const char *kNumpy = "numpy", *kNn = "nn", *kCore = "core", *kMath = "math", *kLinalg = "linalg";

  // Element by element.
  plain(kNumpy, {{"Add", "add"},
                 {"Subtract", "subtract"},
                 {"Multiply", "multiply"},
                 {"TrueDivide", "divide"},
                 {"Divide", "divide"},
                 {"DivideNoNan", "divide_no_nan"},
                 {"FloorDivide", "floor_divide"},
                 {"Mod", "remainder"},
                 {"Fmod", "fmod"},
                 {"Power", "power"},
                 {"Maximum", "maximum"},
                 {"Minimum", "minimum"},
                 {"Fmax", "fmax"},
                 {"Fmin", "fmin"},
                 {"Arctan2", "arctan2"},
                 {"Hypot", "hypot"},
                 {"Logaddexp", "logaddexp"},
                 {"Logaddexp2", "logaddexp2"},
                 {"Heaviside", "heaviside"},
                 {"Gcd", "gcd"},
                 {"Lcm", "lcm"},
                 {"Equal", "equal"},
                 {"NotEqual", "not_equal"},
                 {"Less", "less"},
                 {"LessEqual", "less_equal"},
                 {"Greater", "greater"},
                 {"GreaterEqual", "greater_equal"},
                 {"LogicalAnd", "logical_and"},
                 {"LogicalOr", "logical_or"},
                 {"LogicalXor", "logical_xor"},
                 {"LogicalNot", "logical_not"},
                 {"BitwiseAnd", "bitwise_and"},
                 {"BitwiseOr", "bitwise_or"},
                 {"BitwiseXor", "bitwise_xor"},
                 {"BitwiseNot", "bitwise_not"},
                 {"BitwiseInvert", "bitwise_not"},
                 {"BitwiseLeftShift", "left_shift"},
                 {"LeftShift", "left_shift"},
                 {"BitwiseRightShift", "right_shift"},
                 {"RightShift", "right_shift"},
                 {"Absolute", "absolute"},
                 {"Abs", "absolute"},
                 {"Negative", "negative"},
                 {"Sign", "sign"},
                 {"Signbit", "signbit"},
                 {"Ceil", "ceil"},
                 {"Floor", "floor"},
                 {"Trunc", "trunc"},
                 {"Exp", "exp"},
                 {"Exp2", "exp2"},
                 {"Expm1", "expm1"},
                 {"Log", "log"},
                 {"Log2", "log2"},
                 {"Log10", "log10"},
                 {"Log1p", "log1p"},
                 {"Sqrt", "sqrt"},
                 {"Cbrt", "cbrt"},
                 {"Square", "square"},
                 {"Reciprocal", "reciprocal"},
                 {"Sin", "sin"},
                 {"Cos", "cos"},
                 {"Tan", "tan"},
                 {"Sinh", "sinh"},
                 {"Cosh", "cosh"},
                 {"Tanh", "tanh"},
                 {"Arcsin", "arcsin"},
                 {"Arccos", "arccos"},
                 {"Arctan", "arctan"},
                 {"Arcsinh", "arcsinh"},
                 {"Arccosh", "arccosh"},
                 {"Arctanh", "arctanh"},
                 {"Sinc", "sinc"},
                 {"I0", "i0"},
                 {"Deg2rad", "deg2rad"},
                 {"Rad2deg", "rad2deg"},
                 {"Isnan", "is_nan"},
                 {"Isinf", "is_inf"},
                 {"Isfinite", "is_finite"},
                 {"Isneginf", "is_neginf"},
                 {"Isposinf", "is_posinf"},
                 {"Copy", "identity"},
                 {"Where", "where"}});
  plain(kNumpy, {{"Round", "round"}}, {same("decimals")});
  plain(kNumpy, {{"NanToNum", "nan_to_num"}}, {same("nan"), same("posinf"), same("neginf")});
  plain(kNumpy, {{"Clip", "clip"}}, {{"x_min", "", How::Operand}, {"x_max", "", How::Operand}});
  plain(kMath, {{"Erf", "erf"}, {"Erfc", "erfc"}, {"Erfinv", "erfinv"}, {"Rsqrt", "rsqrt"}});
  plain(kCore, {{"StopGradient", "stop_gradient"}});
  plain(kCore, {{"Cast", "cast"}}, {same("dtype")});

  // Activations and what belongs to them.
  plain(kNn, {{"Relu", "relu"},
              {"Relu6", "relu6"},
              {"Sigmoid", "sigmoid"},
              {"Softplus", "softplus"},
              {"Softsign", "softsign"},
              {"Silu", "silu"},
              {"LogSigmoid", "log_sigmoid"},
              {"HardSigmoid", "hard_sigmoid"},
              {"HardSilu", "hard_silu"},
              {"HardTanh", "hard_tanh"},
              {"TanhShrink", "tanh_shrink"},
              {"SparsePlus", "sparse_plus"},
              {"SparseSigmoid", "sparse_sigmoid"},
              {"Selu", "selu"}});
  plain(kNn, {{"Elu", "elu"}, {"Celu", "celu"}}, {same("alpha")});
  plain(kNn, {{"LeakyRelu", "leaky_relu"}}, {same("negative_slope")});
  plain(kNn, {{"Gelu", "gelu"}}, {same("approximate")});
  plain(kNn, {{"HardShrink", "hard_shrink"}, {"SoftShrink", "soft_shrink"}}, {same("threshold")});
  plain(kNn, {{"Threshold", "threshold"}}, {same("threshold"), same("default_value")});
  plain(kNn, {{"Squareplus", "squareplus"}}, {same("b")});
  plain(kNn, {{"Softmax", "softmax"}, {"LogSoftmax", "log_softmax"}, {"Sparsemax", "sparsemax"}}, {same("axis")});
  plain(kNn, {{"Normalize", "normalize"}}, {same("axis"), same("order"), same("epsilon")});
  plain(kNn, {{"Moments", "moments"}}, {list("axes", "axis"), same("keepdims"), fixed("synchronized", false)});
  plain(kNn, {{"OneHot", "one_hot"}}, {{"num_classes", "classes"}, same("axis"), same("dtype"), fixed("sparse", false)});
  plain(kNn, {{"LayerNorm", "layer_normalization"}}, {same("axis"), same("epsilon"), fixed("rms_scaling", false)});
  plain(kNn, {{"RMSNorm", "rms_normalization"}}, {same("axis"), same("epsilon")});
  plain(kNn, {{"BatchNorm", "batch_normalization"}}, {same("axis"), same("epsilon")});
  plain(kNn, {{"BinaryCrossentropy", "binary_crossentropy"}}, {same("from_logits")});
  plain(kNn,
        {{"CategoricalCrossentropy", "categorical_crossentropy"}, {"SparseCategoricalCrossentropy", "sparse_categorical_crossentropy"}},
        {same("from_logits"), same("axis")});

  // Reductions.
  plain(kNumpy,
        {{"Sum", "sum"},
         {"Mean", "mean"},
         {"Any", "any"},
         {"All", "all"},
         {"Median", "median"},
         {"Amax", "max"},
         {"Amin", "min"},
         {"Var", "var"},
         {"Std", "std"},
         {"Argmax", "argmax"},
         {"Argmin", "argmin"},
         {"Nansum", "nansum"},
         {"Nanmean", "nanmean"},
         {"Nanmax", "nanmax"},
         {"Nanmin", "nanmin"},
         {"Nanprod", "nanprod"},
         {"Nanvar", "nanvar"},
         {"Nanstd", "nanstd"},
         {"Nanmedian", "nanmedian"}},
        reduction);
  plain(kNumpy, {{"Max", "max"}, {"Min", "min"}}, {same("axis"), same("keepdims"), fixed("initial", nullptr)});
  plain(kNumpy, {{"Prod", "prod"}}, {same("axis"), same("keepdims"), fixed("dtype", nullptr)});
  plain(kNumpy, {{"CountNonzero", "count_nonzero"}}, {same("axis")});
  plain(kNumpy, {{"Quantile", "quantile"}, {"Nanquantile", "nanquantile"}}, {same("axis"), same("method"), same("keepdims")});
  plain(kMath, {{"Logsumexp", "logsumexp"}}, reduction);
  plain(kLinalg, {{"Norm", "norm"}}, {same("ord"), same("axis"), same("keepdims")});
  plain(kNumpy, {{"Cumsum", "cumsum"}, {"Cumprod", "cumprod"}}, {same("axis"), fixed("dtype", nullptr)});
  plain(kNumpy, {{"Sort", "sort"}, {"Argsort", "argsort"}}, {same("axis")});
  plain(kMath, {{"TopK", "top_k"}}, {same("k"), same("sorted")});
  plain(kMath, {{"InTopK", "in_top_k"}}, {same("k")});
  plain(kMath,
        {{"SegmentSum", "segment_sum"}, {"SegmentMax", "segment_max"}, {"SegmentMin", "segment_min"}, {"SegmentProd", "segment_prod"}},
        {{"num_segments", "segments"}, ignored("sorted", false)});

  // Shapes.
  plain(kNumpy, {{"Reshape", "reshape"}}, {list("newshape", "shape")});
  plain(kNumpy, {{"BroadcastTo", "broadcast_to"}}, {list("shape", "shape")});
  plain(kNumpy, {{"Transpose", "transpose"}}, {list("axes", "perm")});
  plain(kNumpy, {{"ExpandDims", "expand_dims"}, {"Squeeze", "squeeze"}, {"Flip", "flip"}}, {same("axis")});
  plain(kNumpy, {{"Swapaxes", "swapaxes"}}, {same("axis1"), same("axis2")});
  plain(kNumpy, {{"Moveaxis", "moveaxis"}}, {same("source"), same("destination")});
  plain(kNumpy, {{"Repeat", "repeat"}}, {same("repeats"), same("axis")});
  plain(kNumpy, {{"Tile", "tile"}}, {list("repeats", "repeats")});
  plain(kNumpy, {{"Roll", "roll"}}, {same("shift"), same("axis")});
  plain(kNumpy, {{"Rot90", "rot90"}}, {same("k"), list("axes", "axes")});
  plain(kNumpy, {{"Tril", "tril"}, {"Triu", "triu"}, {"Diag", "diag"}}, {same("k")});
  plain(kNumpy, {{"Diagonal", "diagonal"}, {"Trace", "trace"}}, {same("offset"), same("axis1"), same("axis2")});
  plain(kNumpy, {{"Take", "take"}, {"TakeAlongAxis", "take_along_axis"}}, {same("axis")});
  plain(kNumpy, {{"Split", "split"}}, {{"indices_or_sections", "sizes", How::Cuts}, same("axis")});
  plain(kCore, {{"Unstack", "unstack"}}, {ignored("num", nullptr), same("axis")});
  all.push_back({"Concatenate", kNumpy, "concatenate", {same("axis")}, /*takes_list=*/true});
  all.push_back({"Stack", kNumpy, "stack", {same("axis")}, /*takes_list=*/true});
  all.push_back({"Ravel", kNumpy, "reshape", {}, false, {{"shape", Dims{Dim(-1)}}}});
  all.push_back({"Fliplr", kNumpy, "flip", {}, false, {{"axis", ir::Ints{1}}}});
  all.push_back({"Flipud", kNumpy, "flip", {}, false, {{"axis", ir::Ints{0}}}});

  // Products, convolutions, matrices.
  plain(kNumpy, {{"Matmul", "matmul"}, {"Dot", "dot"}, {"Inner", "inner"}, {"Outer", "outer"}, {"Vdot", "vdot"}, {"Kron", "kron"}});
  plain(kNumpy, {{"Tensordot", "tensordot"}}, {same("axes")});
  plain(kNumpy, {{"Einsum", "einsum"}}, {{"subscripts", "equation"}});
  plain(kNn, {{"DotProductAttention", "dot_product_attention"}},
        {same("is_causal"), ignored("flash_attention", nullptr), fixed("attn_logits_soft_cap", nullptr)});
  const KerasField last = fixed("data_format", "channels_last");
  plain(kNn, {{"MaxPool", "max_pool"}, {"AveragePool", "average_pool"}}, {same("pool_size"), same("strides"), same("padding"), last});
  plain(kNn, {{"Conv", "conv"}, {"DepthwiseConv", "depthwise_conv"}, {"SeparableConv", "separable_conv"}},
        {same("strides"), same("padding"), last, {"dilation_rate", "dilation"}});
  plain(kLinalg, {{"Det", "det"}, {"Inv", "inverse"}, {"Solve", "solve"}, {"Eigh", "eigh"}});
  plain(kLinalg, {{"Cholesky", "cholesky"}}, {fixed("upper", false)});
  plain(kLinalg, {{"Qr", "qr"}}, {same("mode")});
  plain(kLinalg, {{"SVD", "svd"}}, {same("full_matrices"), fixed("compute_uv", true)});
  plain(kLinalg, {{"Pinv", "pinv"}}, {same("rcond")});
  return all;
}

bool is_whole(const Config& c) { return c.is_number_integer(); }

[[noreturn]] void unexpected(const std::string& what, const Config& value) {
  std::string text = value.dump(-1, ' ', false, Config::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  user_error(what, " is ", text, ", which is not supported");
}

// Where parts of these sizes end; none when one of them is what is left.
std::optional<Config> cuts_of(const Config& sizes) {
  Config cuts = Config::array();
  int64_t end = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].get<int64_t>() < 0) return {};
    end += sizes[i].get<int64_t>();
    if (i + 1 < sizes.size()) cuts.push_back(end);
  }
  return cuts;
}

}  // namespace

void expect_parts(int64_t count) {
  constexpr int64_t kMost = 65536;
  if (count > kMost) user_error("an axis is cut into ", count, " parts, at most ", kMost, " are possible");
}

Dims sizes_from(const KerasOp& op, const Config& cuts, const Dim& extent) {
  Dims sizes;
  if (is_whole(cuts)) {
    const auto parts = cuts.get<int64_t>();
    if (!extent.is_const()) user_error("an axis of extent ", extent.str(), " cannot be cut into ", parts, " parts before it is known");
    if (parts < 1 || parts > extent.value() || extent.value() % parts != 0)
      user_error("an axis of extent ", extent.value(), " cannot be cut into ", parts, " equal parts");
    expect_parts(parts);
    sizes.assign(static_cast<size_t>(parts), Dim(extent.value() / parts));
    return sizes;
  }
  const std::string what = cat(op.class_name, ": indices_or_sections");
  if (!cuts.is_array()) unexpected(what, cuts);
  int64_t end = 0;
  for (const Config& c : cuts) {
    if (!is_whole(c) || c.get<int64_t>() < end) unexpected(what, cuts);
    sizes.push_back(Dim(c.get<int64_t>() - end));
    end = c.get<int64_t>();
  }
  if (extent.is_const() && end > extent.value()) unexpected(what, cuts);
  sizes.push_back(Dim(-1));
  return sizes;
}

const std::vector<KerasOp>& keras_ops() {
  static const auto& all = *new std::vector<KerasOp>(make_table());
  return all;
}

const KerasOp* find_keras_op(const std::string& module, const std::string& class_name) {
  for (const KerasOp& op : keras_ops())
    if (op.class_name == class_name && op.module == module) return &op;
  return nullptr;
}

std::optional<Config> config_of(const ir::Attr& value) {
  if (std::holds_alternative<std::monostate>(value)) return Config();
  if (const auto* b = std::get_if<bool>(&value)) return Config(*b);
  if (const auto* i = std::get_if<int64_t>(&value)) return Config(*i);
  if (const auto* f = std::get_if<double>(&value)) return Config(*f);
  if (const auto* s = std::get_if<std::string>(&value)) return Config(*s);
  if (const auto* t = std::get_if<DType>(&value)) return Config(std::string(name(*t)));
  if (const auto* ints = std::get_if<ir::Ints>(&value)) return Config(*ints);
  if (const auto* floats = std::get_if<ir::Floats>(&value)) return Config(*floats);
  const auto* dims = std::get_if<Dims>(&value);
  if (!dims || std::any_of(dims->begin(), dims->end(), [](const Dim& d) { return !d.is_const(); })) return {};
  Config extents = Config::array();
  for (const Dim& d : *dims) extents.push_back(d.value());
  return extents;
}

ir::Attr attribute_from(const ir::Signature::Attribute& attribute, const Config& value, const std::string& what) {
  if (value.is_null()) return attribute.optional ? ir::Attr() : attribute.default_value;
  if (attribute.kind == ir::AttrKind::DType) {
    const auto dtype = value.is_string() ? parse_dtype(value.get<std::string>()) : std::nullopt;
    if (!dtype) unexpected(what, value);
    return *dtype;
  }
  if (value.is_boolean()) return value.get<bool>();
  if (is_whole(value)) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) unexpected(what, value);
  const bool whole = std::all_of(value.begin(), value.end(), [](const Config& c) { return is_whole(c) || c.is_null(); });
  if (!whole && !std::all_of(value.begin(), value.end(), [](const Config& c) { return c.is_number(); })) unexpected(what, value);
  if (!whole) return value.get<ir::Floats>();
  ir::Ints ints;
  for (const Config& c : value) ints.push_back(c.is_null() ? -1 : c.get<int64_t>());
  return ints;
}

ir::Attrs attributes_from(const KerasOp& op, const Config& config) {
  const ir::OpDef& row = tandem::ops::table().at(op.row);
  ir::Attrs attrs = op.preset;
  for (const auto& [key, value] : config.items()) {
    if (key == "name") continue;
    const auto field = std::find_if(op.fields.begin(), op.fields.end(), [&, k = key](const KerasField& f) { return f.key == k; });
    const std::string what = cat(op.class_name, ": ", key);
    if (field == op.fields.end()) user_error(op.class_name, ": the config has '", key, "', which this operation does not know");
    if (field->how == How::Fixed && value != field->value && !value.is_null()) unexpected(what, value);
    if (field->how == How::Cuts) attrs.set(field->attribute, Dims{Dim(-1)});  // one part, until the extent is known
    if (field->how != How::Attribute && field->how != How::List) continue;
    for (const auto& a : row.signature.attributes)
      if (a.name == field->attribute) attrs.set(a.name, attribute_from(a, value, what));
  }
  try {
    return ir::complete_attrs(row, attrs);
  } catch (const UserError& e) {
    throw UserError(cat(op.class_name, ": ", e.what()), e.code());
  }
}

std::optional<KerasForm> keras_form(const ir::OpDef& row, const ir::Attrs& attrs, const std::vector<OpArgument>& arguments) {
  static const std::unordered_map<std::string, std::vector<const KerasOp*>> by_row = [] {
    std::unordered_map<std::string, std::vector<const KerasOp*>> rows;
    for (const KerasOp& op : keras_ops())
      if (op.preset.entries().empty()) rows[op.row].push_back(&op);
    return rows;
  }();
  const auto found = by_row.find(std::string(row.name));
  if (found == by_row.end()) return {};
  const auto said = [&](const KerasOp& op) -> std::optional<Config> {
    Config config = Config::object();
    size_t operand = arguments.size() - static_cast<size_t>(std::count_if(op.fields.begin(), op.fields.end(),
                                                                          [](const KerasField& f) { return f.how == How::Operand; }));
    for (const KerasField& f : op.fields) {
      if (f.how == How::Fixed || f.how == How::Ignored) {
        config[f.key] = f.value;
      } else if (f.how == How::Operand) {
        if (operand >= arguments.size()) return {};
        const OpArgument& a = arguments[operand++];
        if (const auto* i = std::get_if<int64_t>(&a))
          config[f.key] = *i;
        else if (const auto* d = std::get_if<double>(&a))
          config[f.key] = *d;
        else
          return {};
      } else {
        std::optional<Config> value = config_of(*attrs.find(f.attribute));
        if (value && f.how == How::Cuts) value = cuts_of(*value);
        if (!value) return {};
        config[f.key] = f.how == How::Attribute && value->is_array() && value->size() == 1 ? (*value)[0] : *value;
      }
    }
    // What Keras has no word for must be as it is there.
    for (const auto& a : row.signature.attributes) {
      const bool is_said = std::any_of(op.fields.begin(), op.fields.end(), [&](const KerasField& f) { return f.attribute == a.name; });
      if (!is_said && !ir::equal(*attrs.find(a.name), a.default_value)) return {};
    }
    return config;
  };
  for (const KerasOp* op : found->second)
    if (std::optional<Config> config = said(*op)) return KerasForm{op, std::move(*config)};
  return {};
}

}  // namespace tandem::nn
