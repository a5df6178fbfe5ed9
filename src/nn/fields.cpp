#include "nn/fields.hpp"

namespace tandem::nn {

Config to_config(const Dims& v) {
  Config list = Config::array();
  for (const Dim& d : v) list.push_back(d.is_const() ? Config(d.value()) : Config());
  return list;
}

Config to_config(const IntList& v) { return v.given() ? Config(v.values()) : Config(); }

// What Layer itself reads, and what older files of Keras hold besides.
FieldReader::FieldReader(std::string what, const Config& in)
    : what_(std::move(what)), in_(in), known_{"name", "trainable", "dtype", "activity_regularizer", "quantization_config"} {
  if (!in.is_object()) user_error(what_, ": the config is ", in.type_name(), ", expected an object");
}

const Config* FieldReader::find(const char* key) {
  known_.insert(key);
  const auto it = in_.find(key);
  return it == in_.end() ? nullptr : &*it;
}

void FieldReader::finish() const {
  for (const auto& [key, value] : in_.items())
    if (!known_.contains(key)) user_error(what_, ": the config has '", key, "', which this kind of layer does not know");
}

void FieldReader::expected(const char* wanted, const char* key, const Config& c) const {
  std::string text = c.dump(-1, ' ', false, Config::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  user_error(what_, ": ", key, " is ", text, ", expected ", wanted);
}

void FieldReader::read(const Config& c, const char* key, bool& v) {
  if (!c.is_boolean()) expected("true or false", key, c);
  v = c.get<bool>();
}

void FieldReader::read(const Config& c, const char* key, int64_t& v) {
  const bool whole = c.is_number_integer() && !(c.is_number_unsigned() && c.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
  if (!whole) expected("a whole number", key, c);
  v = c.get<int64_t>();
}

void FieldReader::read(const Config& c, const char* key, double& v) {
  if (!c.is_number()) expected("a number", key, c);
  v = c.get<double>();
}

void FieldReader::read(const Config& c, const char* key, std::string& v) {
  if (!c.is_string()) expected("text", key, c);
  v = c.get<std::string>();
}

void FieldReader::read(const Config& c, const char*, Layer& v) { v = c.is_null() ? Layer() : deserialize(c); }

void FieldReader::read(const Config& c, const char* key, Dims& v) {
  if (!c.is_array()) expected("a list", key, c);
  v.clear();
  for (size_t i = 0; i < c.size(); ++i) {
    int64_t extent = 0;
    if (c[i].is_null()) {
      v.push_back(Dim::symbol(i == 0 ? "b" : cat("n", i)));
    } else {
      read(c[i], key, extent);
      v.push_back(Dim(extent));
    }
  }
}

void FieldReader::read(const Config& c, const char* key, IntList& v) {
  if (c.is_null()) {
    v = {};
  } else if (c.is_array()) {
    std::vector<int64_t> values;
    read(c, key, values);
    v = values;
  } else {
    int64_t value = 0;
    read(c, key, value);
    v = value;
  }
}

void extents_or_null(FieldWriter& field, const char* key, const IntList& v) {
  Config list;
  for (const int64_t n : v.values()) list.push_back(n < 0 ? Config() : Config(n));
  field.fixed(key, list);
}

void extents_or_null(FieldReader& field, const char* key, IntList& v) {
  std::optional<Dims> dims;
  field(key, dims);
  if (!dims) return;
  std::vector<int64_t> values;
  for (const Dim& d : *dims) values.push_back(d.is_const() ? d.value() : -1);
  v = values;
}

}  // namespace tandem::nn
