// How Named things are found: one table a kind, and the members of Named, which each table's file instantiates.
#pragma once
#include <nlohmann/json.hpp>

#include <tandem/nn/weights.hpp>

#include "nn/fields.hpp"
#include "nn/names.hpp"

namespace tandem::nn {

template <class Kind> struct NamedEntry {
  std::string class_name;            // Keras's; its snake case is a name too
  std::vector<std::string> aliases;  // further names
  std::function<Named<Kind>(const Config& parameters)> make;
};

// Given for each kind by its file: what it is called, Keras's module, whether a config is only the name, the entries.
template <class Kind> struct NamedTable {
  static const char* what();
  static const char* module();
  static bool by_name_only();
  static const std::vector<NamedEntry<Kind>>& entries();
};

template <class Kind> struct Named<Kind>::Body {
  std::string class_name;
  Config parameters;
  Function function;
};

template <class Kind> Named<Kind> make_named(const std::string& name, const Config& parameters) {
  std::vector<std::string> known;
  for (const NamedEntry<Kind>& e : NamedTable<Kind>::entries()) {
    const std::string snake = snake_case(e.class_name);
    if (name == e.class_name || name == snake || std::find(e.aliases.begin(), e.aliases.end(), name) != e.aliases.end())
      return e.make(parameters);
    known.push_back(snake);
  }
  unknown_name(NamedTable<Kind>::what(), name, known);
}

template <class Kind> Named<Kind>::Named(const std::string& name) : Named(make_named<Kind>(name, Config::object())) {}
template <class Kind>
Named<Kind>::Named(const std::string& class_name, const Config& parameters, Function function)
    : body_(std::make_shared<const Body>(Body{class_name, parameters, std::move(function)})) {}
template <class Kind> Named<Kind> Named<Kind>::custom(const std::string& class_name, Function function) {
  return Named(class_name, Config::object(), std::move(function));
}

template <class Kind> Named<Kind> Named<Kind>::from_config(const Config& c) {
  if (c.is_null()) return {};
  if (c.is_string()) return Named(c.get<std::string>());
  const auto name = c.is_object() ? c.find("class_name") : c.end();
  if (!c.is_object() || name == c.end() || !name->is_string() || !c.contains("config"))
    user_error("the config of an ", NamedTable<Kind>::what(), " is ", c.dump().substr(0, 60),
               ", expected a name or an object with class_name and config");
  if (*name == "function" && c["config"].is_string()) return Named(c["config"].template get<std::string>());
  return make_named<Kind>(name->template get<std::string>(), c["config"]);
}

template <class Kind> std::string Named<Kind>::class_name() const { return body_ ? body_->class_name : ""; }

template <class Kind> Config Named<Kind>::config() const {
  if (NamedTable<Kind>::by_name_only()) return body_ ? body_->class_name : "linear";
  if (!body_) return nullptr;
  return {{"module", NamedTable<Kind>::module()},
          {"class_name", body_->class_name},
          {"config", body_->parameters},
          {"registered_name", nullptr}};
}

template <class Kind> const typename Named<Kind>::Function& Named<Kind>::function() const {
  if (!body_) user_error("there is no ", NamedTable<Kind>::what(), " to call");
  return body_->function;
}

}  // namespace tandem::nn
