// Prints the calls that are compared with NumPy, one JSON object a line: what tools/numpy_values.py computes from.
#include <cstdio>
#include <iostream>

#include "values.hpp"

namespace {

using namespace tandem;

std::string json_text(std::string_view s) {
  std::string r = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') r += '\\';
    if (c == '\t')
      r += "\\t";
    else
      r += c;
  }
  return r + "\"";
}
std::string number(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  const std::string s = text;
  if (s == "-0") return "-0.0";  // as a JSON integer it would lose its sign
  return s == "nan" || s == "-nan" ? "NaN" : s == "inf" ? "Infinity" : s == "-inf" ? "-Infinity" : s;
}
template <class T, class F> std::string list(const T& xs, F f) {
  std::string r = "[";
  for (const auto& x : xs) r += cat(r.size() > 1 ? "," : "", f(x));
  return r + "]";
}
std::string json(const ir::Attr& a) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>)
          return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, int64_t>)
          return cat(v);
        else if constexpr (std::is_same_v<T, double>)
          return number(v);
        else if constexpr (std::is_same_v<T, std::string>)
          return json_text(v);
        else if constexpr (std::is_same_v<T, DType>)
          return json_text(name(v));
        else if constexpr (std::is_same_v<T, ir::Ints>)
          return list(v, [](int64_t x) { return cat(x); });
        else if constexpr (std::is_same_v<T, ir::Floats>)
          return list(v, number);
        else if constexpr (std::is_same_v<T, Dims>)
          return list(v, [](const Dim& d) { return cat(d.value()); });
        else
          return "null";
      },
      a);
}

}  // namespace

int main() {
  for (const ir::OpDef* op : ops::table().all())
    tandem::testing::for_each_sample(
        *op, [&](const ir::Sample& s, const std::vector<DType>& types, const std::vector<ir::Literal>& in, const std::string&) {
          if (!tandem::testing::compared_with_numpy(s, types)) return;
          std::string attrs, inputs;
          for (const auto& e : s.attrs.entries()) attrs += cat(attrs.empty() ? "" : ",", json_text(e.name), ":", json(e.value));
          for (const auto& l : in) {
            std::string values;
            for (size_t i = 0; i < tandem::testing::count(l); ++i)
              values += cat(i ? "," : "", is_float(l.dtype) ? number(tandem::testing::at(l, i)) : tandem::testing::integer_text(l, i));
            inputs += cat(inputs.empty() ? "" : ",", "{\"dtype\":", json_text(name(l.dtype)), ",\"shape\":", l.shape.str(), ",\"values\":[",
                          values, "]}");
          }
          std::cout << "{\"key\":" << json_text(tandem::testing::call_key(*op, s, types, in)) << ",\"op\":" << json_text(op->name)
                    << ",\"attrs\":{" << attrs << "},\"inputs\":[" << inputs << "]}\n";
        });
}
