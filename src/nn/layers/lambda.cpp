#include <tandem/nn/layers/lambda.hpp>

#include <map>
#include <mutex>

#include "nn/kind.hpp"
#include "nn/names.hpp"

namespace tandem::nn {
namespace {

constexpr char kName[] = "Lambda";

struct Known {
  std::mutex mutex;
  std::map<std::string, FlatFunction> functions;
};
Known& known() {
  static auto& all = *new Known;
  return all;
}

FlatFunction registered(const std::string& function) {
  std::vector<std::string> names;
  {
    std::lock_guard guard(known().mutex);
    if (const auto it = known().functions.find(function); it != known().functions.end()) return it->second;
    for (const auto& [name, f] : known().functions) names.push_back(name);
  }
  const std::string how = cat("register_lambda(\"", function.substr(0, 100), "\", …) makes a function known");
  if (names.empty()) user_error("unknown function '", function.substr(0, 100), "' of a Lambda\n  hint: ", how);
  unknown_name("function of a Lambda", function, names, how);
}

class LambdaBody final : public LayerBody {
 public:
  LambdaBody(FlatFunction f, std::string function) : f_(std::move(f)), function_(std::move(function)) {}
  std::string class_name() const override { return kName; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return f_(inputs); }
  std::vector<Tensor> compute_mask(const std::vector<Tensor>&, const Pass&) const override { return {}; }
  Config config() const override {
    if (function_.empty())
      user_error("layer '", name(), "' (Lambda): its function has no name by which a file could hold it",
                 "\n  hint: register_lambda(\"my_function\", f), then Lambda(\"my_function\")");
    return {{"function", {{"module", "builtins"}, {"class_name", "function"}, {"config", function_}, {"registered_name", function_}}},
            {"arguments", Config::object()}};
  }

 private:
  const FlatFunction f_;
  const std::string function_;  // empty: only this program has it
};

Layer lambda_from(const Config& config) {
  Config function, arguments, mask, output_shape;
  FieldReader reader(kName, config);
  reader("function", function);
  reader("arguments", arguments);
  reader("mask", mask);
  reader("output_shape", output_shape);  // the function itself tells
  reader.finish();
  const auto text = [&](const char* key) { return function.is_object() && function.contains(key) ? function[key] : Config(); };
  if (text("class_name") == "__lambda__" || function.is_array())
    user_error("Lambda: its function is a lambda of Python, which only Python can run",
               "\n  hint: save the model with a named function, and give it here by register_lambda(\"its_name\", …)");
  if (text("class_name") != "function" || !text("config").is_string())
    user_error("Lambda: its function is ", function.dump().substr(0, 60), ", expected one with a name");
  if (!mask.is_null() || (arguments.is_object() && !arguments.empty()))
    user_error("Lambda: function '", text("config").get<std::string>(), "' has ", mask.is_null() ? "arguments" : "a mask",
               " in the file, which is not supported");
  return Lambda(text("config").get<std::string>());
}

}  // namespace

void register_lambda(const std::string& function, FlatFunction f) {
  if (function.empty()) user_error("register_lambda: a function needs a name");
  if (!f) user_error("register_lambda: function '", function, "' holds nothing");
  std::lock_guard guard(known().mutex);
  known().functions[function] = std::move(f);
}

Lambda::Lambda(const std::string& function, const NamedOptions& options) : Lambda(registered(function), function, options) {}
Lambda::Lambda(FlatFunction f, const std::string& function, const NamedOptions& options)
    : Layer(std::make_shared<LambdaBody>(std::move(f), function), options.name) {}

void register_lambda_layer() { register_own_layer(kName, &lambda_from); }

}  // namespace tandem::nn
