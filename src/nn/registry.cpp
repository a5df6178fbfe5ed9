// Kinds of layers by Keras's class name, and how a config becomes a layer.
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include <tandem/nn/layer.hpp>

#include "base/text.hpp"
#include "frontend/thread_state.hpp"
#include "nn/kind.hpp"
#include "nn/layer_frame.hpp"
#include "nn/names.hpp"
#include "nn/op_layer.hpp"

namespace tandem::nn {
namespace {

std::mutex& mutex() {
  static std::mutex m;
  return m;
}
struct Entry {
  LayerMaker maker = nullptr;
  bool is_own = false;  // one of Keras's, and not a program's
};
std::map<std::string, Entry>& makers() {  // by class name, or "package>Class"
  static auto& all = *new std::map<std::string, Entry>;
  return all;
}

// Ours, once, before the first use.
void register_own() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_core_layers();
    register_activation_layers();
    register_regularization_layers();
    register_reshaping_layers();
    register_einsum_layers();
    register_convolution_layers();
    register_pooling_layers();
    register_normalization_layers();
    register_merging_layers();
    register_recurrent_layers();
    register_wrapper_layers();
    register_attention_layers();
    register_preprocessing_layers();
    register_augmentation_layers();
    register_lambda_layer();
    register_networks();
  });
}

LayerMaker find_maker(const std::string& name) {  // null: there is none
  register_own();
  std::lock_guard guard(mutex());
  const auto found = makers().find(name);
  return found == makers().end() ? nullptr : found->second.maker;
}

// What Keras knows a program's own class by, after @register_keras_serializable(package), or in custom_objects when it was not registered;
// null for Keras's classes.
Config registered_name(const std::string& class_name) {
  std::lock_guard guard(mutex());
  const std::string in_package = ">" + class_name;
  for (const auto& [name, entry] : makers())
    if (name.ends_with(in_package)) return name;
  const auto found = makers().find(class_name);
  if (found == makers().end()) return class_name;
  return found->second.is_own ? Config() : Config("Custom>" + class_name);
}

struct Policy {
  DType dtype;  // of weights
  Precision precision = Precision::Float32;
};

// A name, or Keras's form of a policy.
Policy policy_from(const Config& c, const std::string& what) {
  const Config* name = &c;
  if (c.is_object() && c.contains("config") && c["config"].contains("name")) name = &c["config"]["name"];
  if (!name->is_string()) user_error(what, ": dtype is ", c.dump(), ", expected a name or a policy");
  const auto text = name->get<std::string>();
  if (const auto dtype = parse_dtype(text)) return {*dtype};
  for (const Precision p : {Precision::MixedFloat16, Precision::MixedBFloat16})
    if (text == tandem::name(p)) return {DType::F32, p};
  user_error(what, ": unknown dtype ", name->dump(), "\n  hint: a type, mixed_float16 or mixed_bfloat16");
}

}  // namespace

void register_own_layer(const char* class_name, LayerMaker maker) {
  std::lock_guard guard(mutex());
  makers()[class_name] = {maker, /*is_own=*/true};
}

void register_layer(const std::string& class_name, LayerMaker maker) {
  register_own();  // so that theirs is the last
  std::lock_guard guard(mutex());
  makers()[class_name] = {maker, /*is_own=*/false};
}

Layer layer_from_config(const std::string& class_name, const Config& config) {
  const LayerMaker maker = find_maker(class_name);
  if (!maker) {
    std::vector<std::string> known;
    {
      std::lock_guard guard(mutex());
      for (const auto& [name, entry] : makers()) known.push_back(name);
    }
    unknown_name("layer", class_name, known, cat("register_layer(\"", class_name.substr(0, 100), "\", …) makes a kind of your own known"));
  }
  if (!config.is_object()) user_error(class_name, ": the config is ", config.type_name(), ", expected an object");
  const frontend::LibraryScope library;  // networks call their layers when they are made
  Layer layer = maker(config);
  LayerBody& body = layer.body();
  if (const auto name = config.find("name"); name != config.end() && name->is_string()) body.name_ = name->get<std::string>();
  if (const auto dtype = config.find("dtype"); dtype != config.end() && !dtype->is_null()) {
    const Policy policy = policy_from(*dtype, class_name);
    body.dtype_ = policy.dtype;
    body.precision_ = policy.precision;
  }
  if (const auto r = config.find("activity_regularizer"); r != config.end()) body.activity_regularizer_ = Regularizer::from_config(*r);
  if (const auto t = config.find("trainable"); t != config.end() && t->is_boolean() && !t->get<bool>()) layer.set_trainable(false);
  return layer;
}

Config serialize(const Layer& layer) {
  const std::string name = layer.class_name();
  if (const auto* op = layer.as<OpNode>())
    return {{"module", op->module()}, {"class_name", name}, {"config", layer.config()}, {"registered_name", op->registered_name()}};
  register_own();
  const Config registered = registered_name(name);
  const Config module = name == "Functional"   ? Config("keras.src.models.functional")
                        : name == "Sequential" ? Config("keras")
                        : registered.is_null() ? Config("keras.layers")
                                               : Config();
  return {{"module", module},
          {"class_name", name},
          {"config", layer.config()},
          {"registered_name", name == "Functional" ? Config(name) : registered}};
}

Layer deserialize(const Config& object) {
  static thread_local int depth = 0;
  struct Level {
    Level() { ++depth; }
    ~Level() { --depth; }
  } level;
  if (depth > kDeepestNesting) user_error("layers are nested more than ", kDeepestNesting, " deep");
  const auto name = object.is_object() ? object.find("class_name") : object.end();
  if (!object.is_object() || name == object.end() || !name->is_string() || !object.contains("config"))
    user_error("a layer's config needs a class_name and a config, got ", object.dump().substr(0, 60));
  if (is_op(object))
    user_error("operation ", name->dump().substr(0, 60),
               " stands where a layer is expected\n  hint: operations are nodes of functional models");
  const auto registered = object.find("registered_name");
  const bool is_known = registered != object.end() && registered->is_string() && find_maker(registered->get<std::string>());
  return layer_from_config(is_known ? registered->get<std::string>() : name->get<std::string>(), object["config"]);
}

}  // namespace tandem::nn
