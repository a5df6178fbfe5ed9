// OwnKinds: losses, metrics and schedules of the program's own, by the names that files know them by.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tandem/nn/config.hpp>

namespace tandem::nn {

template <class Maker> class OwnKinds {
 public:
  void add(const std::string& name, Maker maker) {  // "Class", or "package>Class"
    std::lock_guard guard(mutex_);
    makers_[name] = maker;
  }
  Maker find(const std::string& name) const {  // null: there is none
    constexpr std::string_view kPackage = "Custom>";
    std::lock_guard guard(mutex_);
    auto found = makers_.find(name);
    if (found == makers_.end() && name.starts_with(kPackage)) found = makers_.find(name.substr(kPackage.size()));
    return found == makers_.end() ? nullptr : found->second;
  }
  // What Keras knows such a class by, after @register_keras_serializable(package); null when nobody registered it.
  Config registered_name(const std::string& class_name) const {
    std::lock_guard guard(mutex_);
    for (const auto& [name, maker] : makers_)
      if (name.ends_with(">" + class_name)) return name;
    return makers_.contains(class_name) ? Config("Custom>" + class_name) : Config();
  }
  std::vector<std::string> names() const {
    std::lock_guard guard(mutex_);
    std::vector<std::string> all;
    for (const auto& [name, maker] : makers_) all.push_back(name);
    return all;
  }
  // What a saved object is to be looked for as: a class with a package is never one of Keras's, whatever its own name is.
  std::string name_in(const Config& saved) const {
    const auto text = [&](const char* key) {
      const auto found = saved.find(key);
      return found != saved.end() && found->is_string() ? found->template get<std::string>() : std::string();
    };
    const std::string registered = text("registered_name"), class_name = text("class_name");
    return find(registered) || (has_package(registered) && !find(class_name)) ? registered : class_name;
  }
  // The end of a hint for a name that is not known.
  static std::string unknown_hint(const std::string& name, const char* register_function) {
    return has_package(name) ? std::string("an own one is made known by ") + register_function : "";
  }

 private:
  static bool has_package(const std::string& name) { return name.find('>') != std::string::npos; }

  mutable std::mutex mutex_;
  std::map<std::string, Maker> makers_;
};

// Keras's forms of a class and of a function that its user wrote.
inline Config own_class(const std::string& class_name, const Config& registered_name, Config config) {
  return {{"module", nullptr}, {"class_name", class_name}, {"config", std::move(config)}, {"registered_name", registered_name}};
}
inline Config own_function(const Config& registered_name) {
  return {{"module", "builtins"}, {"class_name", "function"}, {"config", registered_name}, {"registered_name", "function"}};
}

}  // namespace tandem::nn
