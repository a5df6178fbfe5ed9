// Attribute values: text, equality, hash; constants as bytes.
#include "ir/attr.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/half.hpp"
#include "ir/graph.hpp"
#include "ir/op.hpp"

namespace tandem::ir {
namespace {

template <class T> constexpr bool kIsSmallFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T> T convert(double v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else if constexpr (kIsSmallFloat<T>) {
    return T(static_cast<float>(v));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(v);
  } else {
    if (std::isnan(v)) return 0;
    // The limits as doubles may round up to just outside the type, so the comparison includes equality.
    if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    return static_cast<T>(v);
  }
}

template <class T> T load_as(const std::byte* element) {
  T v;
  std::memcpy(&v, element, sizeof v);
  return v;
}

template <class T> double widen(T v) {
  if constexpr (kIsSmallFloat<T>)
    return static_cast<float>(v);
  else
    return static_cast<double>(v);
}

template <class T> std::string shortest(T v) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v).ptr;
  return {buffer.data(), end};
}

template <class T> std::string number_text(T v) {
  if constexpr (std::is_same_v<T, bool>)
    return v ? "true" : "false";
  else if constexpr (kIsSmallFloat<T>)
    return shortest(static_cast<float>(v));
  else if constexpr (std::is_integral_v<T>)
    return std::to_string(v);
  else
    return shortest(v);
}

Literal with_bytes(DType t, Shape s, std::vector<std::byte> bytes) {
  return {t, s, std::make_shared<const std::vector<std::byte>>(std::move(bytes))};
}

std::span<const std::byte> bytes_of(const Literal& v) {
  return v.bytes ? std::span<const std::byte>(*v.bytes) : std::span<const std::byte>();
}

// A number's text gives the same bits back, but for a NaN, which has many.
bool has_exact_text(const Literal& v) {
  if (!is_float(v.dtype)) return true;
  const auto bytes = bytes_of(v);
  const size_t width = size_of(v.dtype);
  for (size_t i = 0; i + width <= bytes.size(); i += width) {
    const double x = load_number(v.dtype, &bytes[i]);
    if (!std::isnan(x)) continue;
    std::array<std::byte, 8> plain;
    store_number(v.dtype, plain.data(), std::numeric_limits<double>::quiet_NaN());
    if (std::memcmp(plain.data(), &bytes[i], width) != 0) return false;
  }
  return true;
}

std::string hex_text(std::span<const std::byte> bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (std::byte b : bytes) {
    text += kDigits[std::to_integer<size_t>(b) >> 4];
    text += kDigits[std::to_integer<size_t>(b) & 15];
  }
  return text;
}

template <class T, class F> std::string list_text(const std::vector<T>& items, F text_of) {
  std::string text = "[";
  for (const T& x : items) {
    if (text.size() > 1) text += ',';
    text += text_of(x);
  }
  return text + ']';
}

bool same_graph(const GraphRef& a, const GraphRef& b) { return a == b || (a && b && *a == *b); }

bool same(const Literal& a, const Literal& b) {
  return a.dtype == b.dtype && a.shape == b.shape && std::ranges::equal(bytes_of(a), bytes_of(b));
}
bool same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }
bool same(const Floats& a, const Floats& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return same(x, y); });
}
bool same(const Graphs& a, const Graphs& b) { return std::ranges::equal(a, b, same_graph); }
template <class T> bool same(const T& a, const T& b) { return a == b; }

std::string_view view(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

size_t hash_one(std::monostate) { return 0; }
size_t hash_one(bool x) { return x ? 1 : 2; }
size_t hash_one(int64_t x) { return std::hash<int64_t>{}(x); }
size_t hash_one(double x) { return std::hash<uint64_t>{}(std::bit_cast<uint64_t>(x)); }
size_t hash_one(DType x) { return static_cast<size_t>(x); }
size_t hash_one(const std::string& x) { return std::hash<std::string>{}(x); }
size_t hash_one(const Dim& x) { return x.hash(); }
size_t hash_one(const GraphRef& x) { return x ? hash(*x) : 0; }
size_t hash_one(const HostFunctionRef& x) { return x ? static_cast<size_t>(x->number()) : 0; }
size_t hash_one(const Literal& x) {
  size_t h = hash_combine(static_cast<size_t>(x.dtype), std::hash<std::string_view>{}(view(bytes_of(x))));
  for (int64_t extent : x.shape) h = hash_combine(h, static_cast<size_t>(extent));
  return h;
}
template <class T> size_t hash_one(const std::vector<T>& xs) {
  size_t h = xs.size();
  for (const T& x : xs) h = hash_combine(h, hash_one(x));
  return h;
}

std::string graph_text(const GraphRef& g) {
  if (!g) return "graph";
  return cat("graph ", g->name, g->name.empty() ? "" : " ", "with ", g->nodes.size(), " nodes");
}

struct AttrText {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(bool x) const { return x ? "true" : "false"; }
  std::string operator()(int64_t x) const { return std::to_string(x); }
  std::string operator()(double x) const { return shortest(x); }
  std::string operator()(const std::string& x) const { return quoted(x); }
  std::string operator()(DType x) const { return std::string(name(x)); }
  std::string operator()(const Ints& x) const {
    return list_text(x, [](int64_t v) { return std::to_string(v); });
  }
  std::string operator()(const Floats& x) const {
    return list_text(x, [](double v) { return shortest(v); });
  }
  std::string operator()(const Dims& x) const { return tandem::str(x); }
  std::string operator()(const Graphs& x) const { return list_text(x, graph_text); }
  std::string operator()(const Literal& x) const { return str(x); }
  std::string operator()(const HostFunctionRef& x) const { return x ? cat("function ", x->name(), " #", x->number()) : "function"; }
};

constexpr size_t kLongestNumberList = 16;

}  // namespace

void store_number(DType t, std::byte* element, double value) {
  dispatch(t, [&](auto zero) {
    const auto v = convert<decltype(zero)>(value);
    std::memcpy(element, &v, sizeof v);
  });
}

double load_number(DType t, const std::byte* element) {
  return dispatch(t, [&](auto zero) { return widen(load_as<decltype(zero)>(element)); });
}

Literal Literal::scalar(DType t, double value) {
  std::vector<std::byte> bytes(size_of(t));
  store_number(t, bytes.data(), value);
  return with_bytes(t, {}, std::move(bytes));
}

Literal Literal::scalar_int(DType t, int64_t value) {
  if (!is_int(t)) return scalar(t, static_cast<double>(value));
  std::vector<std::byte> bytes(size_of(t));
  dispatch(t, [&](auto zero) {
    if constexpr (std::is_integral_v<decltype(zero)>) {
      const auto v = static_cast<decltype(zero)>(value);
      std::memcpy(bytes.data(), &v, sizeof v);
    }
  });
  return with_bytes(t, {}, std::move(bytes));
}

Literal Literal::of(DType t, Shape s, const void* data) {
  const size_t size = byte_size(s, t);
  std::vector<std::byte> bytes(size);
  if (size != 0) std::memcpy(bytes.data(), data, size);
  return with_bytes(t, s, std::move(bytes));
}

std::string quoted(std::string_view text, char quote) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out(1, quote);
  for (char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 32 || code == 127) {
      out += "\\x";
      out += kDigits[code >> 4];
      out += kDigits[code & 15];
    } else {
      out += c;
    }
  }
  return out + quote;
}

std::string str(const Literal& v) {
  const std::string type = cat(v.dtype, v.shape);
  const auto bytes = bytes_of(v);
  const size_t width = size_of(v.dtype);
  if (bytes.size() > kLongestNumberList * width || !has_exact_text(v)) return cat(type, "x'", hex_text(bytes), "'");
  std::string text = type + '{';
  for (size_t i = 0; i + width <= bytes.size(); i += width) {
    if (i != 0) text += ',';
    text += dispatch(v.dtype, [&](auto zero) { return number_text(load_as<decltype(zero)>(&bytes[i])); });
  }
  return text + '}';
}

std::string str(const Attr& a) { return std::visit(AttrText{}, a); }

bool equal(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  return std::visit([&](const auto& x) { return same(x, std::get<std::decay_t<decltype(x)>>(b)); }, a);
}

size_t hash(const Attr& a) {
  return hash_combine(a.index(), std::visit([](const auto& x) { return hash_one(x); }, a));
}

void Attrs::set(std::string_view name, Attr value) {
  for (Entry& e : entries_)
    if (e.name == name) {
      e.value = std::move(value);
      return;
    }
  entries_.push_back({std::string(name), std::move(value)});
}

const Attr* Attrs::find(std::string_view name) const {
  for (const Entry& e : entries_)
    if (e.name == name) return &e.value;
  return nullptr;
}

bool Attrs::has(std::string_view name) const {
  const Attr* a = find(name);
  return a && !std::holds_alternative<std::monostate>(*a);
}

bool operator==(const Attrs& a, const Attrs& b) {
  return std::ranges::equal(a.entries_, b.entries_,
                            [](const Attrs::Entry& x, const Attrs::Entry& y) { return x.name == y.name && equal(x.value, y.value); });
}

size_t Attrs::hash() const {
  size_t h = entries_.size();
  for (const Entry& e : entries_) h = hash_combine(hash_combine(h, hash_one(e.name)), ir::hash(e.value));
  return h;
}

}  // namespace tandem::ir
