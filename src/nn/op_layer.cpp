#include "nn/op_layer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "frontend/apply.hpp"
#include "frontend/operator_list.hpp"
#include "nn/fields.hpp"
#include "nn/keras_ops.hpp"
#include "nn/names.hpp"
#include "ops/table.hpp"

namespace tandem::nn {
namespace {

constexpr char kOwnClass[] = "Op", kOwnName[] = "tandem>Op";  // what Keras has no class for
constexpr std::string_view kModule = "keras.src.ops.";

// --- constants in configs --------------------------------------------------------------------------------------------------------------

Config numpy_config(const Tensor& t) {
  const Shape shape = t.shape();
  std::vector<Config> values;
  if (t.dtype() == DType::Bool)
    for (const bool v : t.to_vector<bool>()) values.emplace_back(v);
  else if (is_int(t.dtype()))
    for (const int64_t v : t.to_vector<int64_t>()) values.emplace_back(v);
  else
    for (const double v : t.to_vector<double>()) values.emplace_back(v);
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {  // the innermost axis first
    std::vector<Config> outer;
    const auto extent = static_cast<size_t>(shape[static_cast<size_t>(axis)]);
    size_t count = 1;
    for (int k = 0; k < axis; ++k) count *= static_cast<size_t>(shape[static_cast<size_t>(k)]);
    for (size_t i = 0; i < count; ++i)
      outer.push_back(Config(std::vector<Config>(values.begin() + static_cast<ptrdiff_t>(i * extent),
                                                 values.begin() + static_cast<ptrdiff_t>((i + 1) * extent))));
    values = std::move(outer);
  }
  return {{"class_name", "__numpy__"}, {"config", {{"value", values.at(0)}, {"dtype", std::string(name(t.dtype()))}}}};
}

void flatten_numbers(const Config& value, size_t axis, const std::vector<int64_t>& shape, std::vector<double>& numbers) {
  const bool is_number = value.is_number() || value.is_boolean();
  if (axis == shape.size() ? !is_number : !value.is_array() || value.size() != static_cast<size_t>(shape[axis]))
    user_error("a constant in the file is not a rectangle of numbers");
  if (is_number) numbers.push_back(value.is_boolean() ? static_cast<double>(value.get<bool>()) : value.get<double>());
  if (!is_number)
    for (const Config& v : value) flatten_numbers(v, axis + 1, shape, numbers);
}

Tensor constant_from(const Config& config) {
  constexpr size_t kMostAxes = 32;  // NumPy's
  const auto value = config.find("value"), type = config.find("dtype");
  const auto dtype = type != config.end() && type->is_string() ? parse_dtype(type->get<std::string>()) : std::nullopt;
  if (value == config.end() || !dtype) user_error("a constant in the file has no value or no dtype that is known");
  std::vector<int64_t> shape;
  for (const Config* v = &*value; v->is_array() && shape.size() < kMostAxes; v = &v->front()) {
    shape.push_back(static_cast<int64_t>(v->size()));
    if (v->empty()) break;
  }
  std::vector<double> numbers;
  flatten_numbers(*value, 0, shape, numbers);
  return Tensor::from(numbers, Shape(shape)).cast(*dtype);
}

bool is_kind(const Config& c, const char* class_name) {
  const auto it = c.is_object() ? c.find("class_name") : c.end();
  return c.is_object() && it != c.end() && *it == class_name && c.contains("config");
}
bool is_constant(const Config& c) { return is_kind(c, "__numpy__") || is_kind(c, "__tensor__"); }

// --- what ops share ------------------------------------------------------------------------------------------------------------------

class OpLayer : public LayerBody, public OpNode {
 public:
  OpLayer() {
    keep_input_types();
    hide_lines();
  }
  // Keras's operations pass no masks on.
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }
  Config config() const final {
    Config all = settings();
    for (const char* key : {"trainable", "dtype"})  // what layers have and operations have not
      if (!all.contains(key)) all[key] = Config(Config::value_t::discarded);
    return all;
  }

 protected:
  virtual Config settings() const = 0;
};

// --- a row of the table --------------------------------------------------------------------------------------------------------------

class RowLayer final : public OpLayer {
 public:
  // As Keras says it, or without that as we do.
  RowLayer(const ir::OpDef& row, ir::Attrs attrs, std::vector<OpArgument> arguments, std::optional<KerasForm> keras)
      : row_(row), attrs_(std::move(attrs)), arguments_(std::move(arguments)), keras_(std::move(keras)) {}

  std::string class_name() const override { return keras_ ? keras_->op->class_name : kOwnClass; }
  Config module() const override { return keras_ ? Config(std::string(kModule) + keras_->op->module) : Config(); }
  Config registered_name() const override { return keras_ ? keras_->op->class_name : kOwnName; }

  void check(const std::vector<Spec>& inputs) const override {
    const auto count = static_cast<size_t>(
        std::count_if(arguments_.begin(), arguments_.end(), [](const OpArgument& a) { return std::holds_alternative<OpInput>(a); }));
    if (inputs.size() != count) user_error("takes ", count, count == 1 ? " input" : " inputs", ", got ", inputs.size());
  }

  void build(const std::vector<Spec>& inputs) override {
    if (row_.name == "unstack" && !inputs.empty()) {
      const int axis = normalize_axis(attrs_.get<int64_t>("axis"), static_cast<int>(inputs[0].dims.size()), "axis");
      if (const Dim& extent = inputs[0].dims[static_cast<size_t>(axis)]; extent.is_const()) expect_parts(extent.value());
    }
    if (!keras_) return;
    for (const KerasField& f : keras_->op->fields) {
      if (f.how != KerasField::How::Cuts) continue;
      const int axis = normalize_axis(attrs_.get<int64_t>("axis"), static_cast<int>(inputs[0].dims.size()), "axis");
      attrs_.set(f.attribute, sizes_from(*keras_->op, keras_->config.value(f.key, Config()), inputs[0].dims[static_cast<size_t>(axis)]));
    }
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    std::vector<Operand> operands;
    for (const OpArgument& a : arguments_)
      operands.push_back(std::visit(
          [&](const auto& v) {
            if constexpr (std::is_same_v<std::decay_t<decltype(v)>, OpInput>)
              return Operand(inputs[v.index]);
            else
              return Operand(v);
          },
          a));
    std::vector<const Operand*> pointers;
    for (const Operand& o : operands) pointers.push_back(&o);
    return frontend::call_all(row_, pointers, attrs_);
  }

  Config arguments(const std::vector<Config>& tensors) const override {
    Config all = Config::array();
    const size_t in_config =
        !keras_ ? 0 : static_cast<size_t>(std::count_if(keras_->op->fields.begin(), keras_->op->fields.end(), [](const KerasField& f) {
          return f.how == KerasField::How::Operand;
        }));
    for (size_t i = 0; i + in_config < arguments_.size(); ++i)
      all.push_back(std::visit(
          [&](const auto& v) -> Config {
            if constexpr (std::is_same_v<std::decay_t<decltype(v)>, OpInput>)
              return tensors.at(v.index);
            else if constexpr (std::is_same_v<std::decay_t<decltype(v)>, Tensor>)
              return numpy_config(v);
            else
              return v;
          },
          arguments_[i]));
    return keras_ && keras_->op->takes_list ? Config::array({all}) : all;
  }

 private:
  Config settings() const override {
    if (keras_) return keras_->config;
    Config attributes = Config::object();
    for (const auto& [key, value] : attrs_.entries()) {
      const std::optional<Config> written = config_of(value);
      if (!written) user_error("op ", row_.name, ": ", key, " is ", ir::str(value), ", which has a symbol and cannot be kept in a file");
      attributes[key] = *written;
    }
    return {{"op", std::string(row_.name)}, {"attributes", attributes}};
  }

  const ir::OpDef& row_;
  ir::Attrs attrs_;
  const std::vector<OpArgument> arguments_;
  const std::optional<KerasForm> keras_;
};

// --- indexing ------------------------------------------------------------------------------------------------------------------------

class GetItemLayer final : public OpLayer {
 public:
  struct Key {
    Index::Kind kind;
    int64_t at = 0;
    Slice range = {};
    Tensor indices = {};
  };
  static constexpr size_t kMost = 8;  // as Tensor::operator() takes

  GetItemLayer(std::vector<Key> keys, bool is_list) : keys_(std::move(keys)), is_list_(is_list) {}
  std::string class_name() const override { return "GetItem"; }
  Config module() const override { return std::string(kModule) + "numpy"; }
  Config registered_name() const override { return "GetItem"; }
  void check(const std::vector<Spec>& inputs) const override {
    if (inputs.size() != 1) user_error("takes one input, got ", inputs.size());
  }

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override {
    Index all[kMost];
    for (size_t i = 0; i < keys_.size(); ++i) {
      const Key& k = keys_[i];
      switch (k.kind) {
        case Index::Kind::Number: all[i] = k.at; break;
        case Index::Kind::Range: all[i] = k.range; break;
        case Index::Kind::Rest: all[i] = ellipsis; break;
        case Index::Kind::New: all[i] = newaxis; break;
        case Index::Kind::Gather: all[i] = k.indices; break;
        case Index::Kind::None: break;
      }
    }
    return {inputs[0](all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7])};
  }

  Config arguments(const std::vector<Config>& tensors) const override {
    Config keys = Config::array();
    for (const Key& k : keys_) keys.push_back(written(k));
    return Config::array({tensors.at(0), is_list_ ? keys : keys.at(0)});
  }

 private:
  Config settings() const override { return Config::object(); }

  static Config bound(const std::optional<Dim>& d) {
    if (!d) return nullptr;
    if (!d->is_const()) user_error("index: a bound of a slice is ", d->str(), ", a symbol, which cannot be kept in a file");
    return d->value();
  }
  static Config written(const Key& k) {
    switch (k.kind) {
      case Index::Kind::Number: return k.at;
      case Index::Kind::Range:
        return {{"class_name", "__slice__"},
                {"config",
                 {{"start", bound(k.range.start)},
                  {"stop", bound(k.range.stop)},
                  {"step", k.range.step == 1 ? Config() : Config(k.range.step)}}}};
      case Index::Kind::Rest: return {{"class_name", "__ellipsis__"}, {"config", Config::object()}};
      case Index::Kind::Gather: return numpy_config(k.indices);
      default: return nullptr;
    }
  }

  const std::vector<Key> keys_;
  const bool is_list_;
};

std::optional<int64_t> bound_from(const Config& slice, const char* key) {
  const auto it = slice.find(key);
  if (it == slice.end() || it->is_null()) return {};
  if (!it->is_number_integer()) user_error("GetItem: ", key, " of a slice is ", it->dump().substr(0, 60), ", expected a whole number");
  return it->get<int64_t>();
}

GetItemLayer::Key key_from(const Config& c) {
  if (c.is_null()) return {Index::Kind::New};
  if (c.is_number_integer()) return {Index::Kind::Number, c.get<int64_t>()};
  if (is_kind(c, "__ellipsis__")) return {Index::Kind::Rest};
  if (is_constant(c)) return {Index::Kind::Gather, 0, {}, constant_from(c["config"])};
  if (!is_kind(c, "__slice__")) user_error("GetItem: an index is ", c.dump().substr(0, 60), ", which is not supported");
  Slice s;
  if (const auto start = bound_from(c["config"], "start")) s.start = Dim(*start);
  if (const auto stop = bound_from(c["config"], "stop")) s.stop = Dim(*stop);
  s.step = bound_from(c["config"], "step").value_or(1);
  return {Index::Kind::Range, 0, s};
}

std::shared_ptr<LayerBody> get_item_from(const Config& args, std::vector<Config>& tensors) {
  if (args.size() != 2 || !is_kind(args[0], "__keras_tensor__"))
    user_error("GetItem: takes a tensor and an index, got ", args.size(), " arguments");
  tensors.push_back(args[0]);
  std::vector<GetItemLayer::Key> keys;
  const bool is_list = args[1].is_array();
  if (is_list)
    for (const Config& c : args[1]) keys.push_back(key_from(c));
  else
    keys.push_back(key_from(args[1]));
  if (keys.size() > GetItemLayer::kMost) user_error("GetItem: at most ", GetItemLayer::kMost, " indices, got ", keys.size());
  return std::make_shared<GetItemLayer>(std::move(keys), is_list);
}

// --- from configs --------------------------------------------------------------------------------------------------------------------

void collect(const std::string& what, const Config& c, std::vector<OpArgument>& arguments, std::vector<Config>& tensors) {
  if (c.is_array()) {
    for (const Config& e : c) {
      if (e.is_array()) user_error(what, ": an argument is a list of lists, which is not supported");
      collect(what, e, arguments, tensors);
    }
  } else if (is_kind(c, "__keras_tensor__")) {
    arguments.emplace_back(OpInput{tensors.size()});
    tensors.push_back(c);
  } else if (is_constant(c)) {
    arguments.emplace_back(constant_from(c["config"]));
  } else if (c.is_boolean()) {
    arguments.emplace_back(c.get<bool>());
  } else if (c.is_number_integer()) {
    arguments.emplace_back(c.get<int64_t>());
  } else if (c.is_number()) {
    arguments.emplace_back(c.get<double>());
  } else {
    user_error(what, ": an argument is ", c.dump().substr(0, 60), ", which is not supported");
  }
}

// Arguments in order; those with names are the row's operands of these names.
std::vector<OpArgument> arguments_from(const std::string& what, const ir::OpDef& row, const Config& args, const Config& kwargs,
                                       std::vector<Config>& tensors) {
  std::vector<OpArgument> all;
  for (const Config& c : args)
    if (!c.is_null()) collect(what, c, all, tensors);
  std::set<std::string> taken;
  for (const auto& operand : row.signature.operands) {
    const auto it = kwargs.find(operand.name);
    if (it == kwargs.end()) continue;
    taken.insert(operand.name);
    if (!it->is_null()) collect(what, *it, all, tensors);
  }
  for (const auto& [key, value] : kwargs.items())
    if (!value.is_null() && !taken.contains(key)) user_error(what, ": the argument '", key, "' of its call is not supported");
  return all;
}

std::shared_ptr<LayerBody> own_op_from(const Config& config, const Config& args, const Config& kwargs, std::vector<Config>& tensors) {
  const auto op = config.find("op"), attributes = config.find("attributes");
  if (op == config.end() || !op->is_string() || attributes == config.end() || !attributes->is_object())
    user_error(kOwnClass, ": the config needs an op and its attributes");
  const ir::OpDef& row = tandem::ops::table().at(op->get<std::string>());
  ir::Attrs attrs;
  for (const auto& a : row.signature.attributes)
    if (const auto it = attributes->find(a.name); it != attributes->end())
      attrs.set(a.name, attribute_from(a, *it, cat(row.name, ": ", a.name)));
  return std::make_shared<RowLayer>(row, ir::complete_attrs(row, attrs), arguments_from(std::string(row.name), row, args, kwargs, tensors),
                                    std::nullopt);
}

std::shared_ptr<LayerBody> keras_op_from(const std::string& module, const std::string& class_name, const Config& config, const Config& args,
                                         const Config& kwargs, std::vector<Config>& tensors) {
  const KerasOp* op = find_keras_op(module, class_name);
  if (!op) {
    std::vector<std::string> known{"GetItem"};
    for (const KerasOp& k : keras_ops()) known.push_back(k.class_name);
    unknown_name("operation of Keras", class_name, known);
  }
  const ir::OpDef& row = tandem::ops::table().at(op->row);
  std::vector<OpArgument> arguments = arguments_from(class_name, row, args, kwargs, tensors);
  for (const KerasField& f : op->fields)
    if (f.how == KerasField::How::Operand) collect(class_name, config.value(f.key, Config()), arguments, tensors);
  Config settings = config;
  settings.erase("name");
  return std::make_shared<RowLayer>(row, attributes_from(*op, config), std::move(arguments), KerasForm{op, std::move(settings)});
}

std::string text_in(const Config& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace

bool is_op(const Config& object) {
  return text_in(object, "module").starts_with(kModule) || text_in(object, "registered_name") == kOwnName;
}

Layer op_from_config(const Config& object, const Config& args, const Config& kwargs, std::vector<Config>& tensors) {
  const auto config = object.find("config");
  const std::string class_name = text_in(object, "class_name"), module = text_in(object, "module");
  if (config == object.end() || !config->is_object()) user_error(class_name, ": the operation has no config");
  if (!args.is_array() || !kwargs.is_object()) user_error(class_name, ": a call needs args and kwargs");
  const std::string inner = text_in(*config, "name"), name = inner.empty() ? text_in(object, "name") : inner;
  if (text_in(object, "registered_name") == kOwnName) return Layer(own_op_from(*config, args, kwargs, tensors), name);
  if (class_name == "GetItem") return Layer(get_item_from(args, tensors), name);
  return Layer(keras_op_from(module.substr(kModule.size()), class_name, *config, args, kwargs, tensors), name);
}

// --- calls in a program ----------------------------------------------------------------------------------------------------------------

std::vector<Symbol> call_op(std::string_view name, const std::vector<const SymbolOperand*>& operands, const ir::Attrs& attrs,
                            const std::source_location& given) {
  std::source_location where = given;
  for (const SymbolOperand* o : operands)
    if (where.line() == 0) where = o->where();
  return frontend::for_caller(where, [&] {
    const ir::OpDef& row = frontend::row(name);
    std::vector<Symbol> inputs;
    std::vector<OpArgument> arguments;
    size_t count = operands.size();
    while (count > 0 && operands[count - 1]->kind() == SymbolOperand::Kind::None) --count;
    for (size_t i = 0; i < count; ++i) {
      const SymbolOperand& o = *operands[i];
      switch (o.kind()) {
        case SymbolOperand::Kind::None: user_error(name, ": operand ", i, " is left out, but one behind it is given");
        case SymbolOperand::Kind::Symbol:
          arguments.emplace_back(OpInput{inputs.size()});
          inputs.push_back(o.symbol());
          break;
        case SymbolOperand::Kind::Tensor:
          if (!o.tensor().defined()) user_error(name, ": operand ", i, " holds nothing");
          if (o.tensor().is_traced()) user_error(name, ": operand ", i, " is traced, and a model outlives the trace");
          arguments.emplace_back(o.tensor());
          break;
        case SymbolOperand::Kind::Bool: arguments.emplace_back(o.as_int() != 0); break;
        case SymbolOperand::Kind::Int: arguments.emplace_back(o.as_int()); break;
        case SymbolOperand::Kind::Float: arguments.emplace_back(o.as_float()); break;
      }
    }
    if (inputs.empty()) user_error(name, ": none of its operands is a symbol\n  hint: on tensors it is tandem::", name);
    ir::Attrs complete = ir::complete_attrs(row, attrs);
    std::optional<KerasForm> form = keras_form(row, complete, arguments);
    return Layer(std::make_shared<RowLayer>(row, std::move(complete), std::move(arguments), std::move(form)))(inputs, {}, where);
  });
}

Symbol Symbol::operator()(const Index& a, const Index& b, const Index& c, const Index& d, const Index& e, const Index& f, const Index& g,
                          const Index& h) const {
  const Index* const all[] = {&a, &b, &c, &d, &e, &f, &g, &h};
  return frontend::for_caller(a.where(), [&] {
    std::vector<GetItemLayer::Key> keys;
    for (const Index* i : all) {
      if (i->kind() == Index::Kind::None) break;
      GetItemLayer::Key key{i->kind()};
      if (i->kind() == Index::Kind::Number) key.at = i->at();
      if (i->kind() == Index::Kind::Range) key.range = i->range();
      if (i->kind() == Index::Kind::Gather) key.indices = i->indices();
      keys.push_back(std::move(key));
    }
    const bool is_list = keys.size() != 1;
    return Layer(std::make_shared<GetItemLayer>(std::move(keys), is_list))(*this, {}, a.where());
  });
}

namespace ops {
#define TANDEM_BINARY(symbol, name) \
  Symbol operator symbol(const SymbolOperand& x, const SymbolOperand& y) { return call_op(name, {&x, &y}, {}).at(0); }
TANDEM_BINARY_OPERATORS(TANDEM_BINARY)
#undef TANDEM_BINARY
#define TANDEM_UNARY(symbol, name) \
  Symbol operator symbol(const SymbolOperand& x) { return call_op(name, {&x}, {}).at(0); }
TANDEM_UNARY_OPERATORS(TANDEM_UNARY)
#undef TANDEM_UNARY
}  // namespace ops

}  // namespace tandem::nn
