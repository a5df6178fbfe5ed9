// One list of a kind's settings serves both ways: FieldWriter makes Keras's config of them, FieldReader takes them from one.
// Settings S have a template next to them:  template <class F> void describe(F& field, S& s) { field("units", s.units); … }
#pragma once
#include <nlohmann/json.hpp>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tandem/nn/layer.hpp>
#include <tandem/operand.hpp>

#include "base/text.hpp"

namespace tandem::nn {

inline Config to_config(bool v) { return v; }
inline Config to_config(int64_t v) { return v; }
inline Config to_config(double v) { return v; }
inline Config to_config(const std::string& v) { return v; }
inline Config to_config(const Layer& v) { return v ? serialize(v) : Config(); }
Config to_config(const Dims& v);  // null for a symbol
Config to_config(const IntList& v);
template <class T> Config to_config(const std::optional<T>& v);
template <class T> Config to_config(const std::vector<T>& v);
template <class A, class B> Config to_config(const std::pair<A, B>& v);
template <class Kind> Config to_config(const Named<Kind>& v) { return v.config(); }
template <class T> Config to_config(const std::optional<T>& v) { return v ? to_config(*v) : Config(); }
template <class T> Config to_config(const std::vector<T>& v) {
  Config list = Config::array();
  for (const T& e : v) list.push_back(to_config(e));
  return list;
}
template <class A, class B> Config to_config(const std::pair<A, B>& v) { return Config::array({to_config(v.first), to_config(v.second)}); }

class FieldWriter {
 public:
  template <class T> void operator()(const char* key, T& value) { out_[key] = to_config(value); }
  template <class T> void fixed(const char* key, const T& value) { out_[key] = value; }
  void absent(const char* key) { out_[key] = Config(Config::value_t::discarded); }  // what other layers have and this one has not
  Config take() { return std::move(out_); }

 private:
  Config out_ = Config::object();
};

class FieldReader {
 public:
  FieldReader(std::string what, const Config& in);  // `what` begins messages
  // What the config does not have stays as it is.
  template <class T> void operator()(const char* key, T& value) {
    if (const Config* found = find(key)) read(*found, key, value);
  }
  // Something that Keras has and we do not: only this value is taken.
  template <class T> void fixed(const char* key, const T& value) {
    const Config* found = find(key);
    if (found && *found != Config(value))
      user_error(what_, ": ", key, " is ", found->dump(), ", only ", Config(value).dump(), " is supported");
  }
  void absent(const char*) {}
  void finish() const;  // UserError for a key that nobody asked for

 private:
  const Config* find(const char* key);
  [[noreturn]] void expected(const char* wanted, const char* key, const Config& c) const;

  void read(const Config& c, const char*, Config& v) { v = c; }
  void read(const Config& c, const char* key, bool& v);
  void read(const Config& c, const char* key, int64_t& v);
  void read(const Config& c, const char* key, double& v);
  void read(const Config& c, const char* key, std::string& v);
  void read(const Config& c, const char* key, Layer& v);
  void read(const Config& c, const char* key, Dims& v);
  void read(const Config& c, const char* key, IntList& v);  // null, a number or a list
  template <class Kind> void read(const Config& c, const char*, Named<Kind>& v) { v = Named<Kind>::from_config(c); }
  template <class T> void read(const Config& c, const char* key, std::optional<T>& v) {
    if (c.is_null()) {
      v.reset();
    } else {
      read(c, key, v.emplace());
    }
  }
  template <class T> void read(const Config& c, const char* key, std::vector<T>& v) {
    if (!c.is_array()) expected("a list", key, c);
    v.clear();
    for (const Config& e : c) read(e, key, v.emplace_back());
  }
  template <class A, class B> void read(const Config& c, const char* key, std::pair<A, B>& v) {
    if (!c.is_array() || c.size() != 2) expected("a list of two", key, c);
    read(c[0], key, v.first);
    read(c[1], key, v.second);
  }

  std::string what_;
  const Config& in_;
  std::set<std::string> known_;
};

// A list that Keras writes as one number when it has one.
inline void one_or_list(FieldWriter& field, const char* key, const IntList& v) {
  field.fixed(key, v.values().size() == 1 ? Config(v.values()[0]) : to_config(v));
}
inline void one_or_list(FieldReader& field, const char* key, IntList& v) { field(key, v); }

// Extents of which some are the input's: -1 here, null in Keras's configs.
void extents_or_null(FieldWriter& field, const char* key, const IntList& v);
void extents_or_null(FieldReader& field, const char* key, IntList& v);

}  // namespace tandem::nn
