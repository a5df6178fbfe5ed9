#include "codegen/c_values.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/half.hpp"
#include "base/text.hpp"

namespace tandem::codegen {
namespace {

using ir::Prim;
using ir::Scalar;
using ir::ScalarNode;

bool is_small_float(DType t) { return t == DType::F16 || t == DType::BF16; }
bool is_double(DType t) { return t == DType::F64; }
int bits_of(DType t) { return static_cast<int>(size_of(t)) * 8; }

DType unsigned_of(DType t) {
  switch (t) {
    case DType::I8: return DType::U8;
    case DType::I16: return DType::U16;
    case DType::I32: return DType::U32;
    case DType::I64: return DType::U64;
    default: return t;
  }
}

// Replaces $T by the type, $U by its unsigned twin, $N by a name, $B by the number of bits.
std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [from, to] : values)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

// What texts about the bits of 16-bit floats are filled with.
std::vector<std::pair<std::string, std::string>> words_for_bits(const CDialect& d) {
  const auto type = [&](DType t) { return std::string(d.types[static_cast<size_t>(t)]); };
  return {{"$H", type(DType::U16)}, {"$U", type(DType::U32)}, {"$B", std::string(d.bits_of_float)}, {"$F", std::string(d.float_of_bits)}};
}

// ---- ranges ----
// Sums and products of what is known, unless they leave 64 bits.
std::optional<int64_t> checked(Prim p, int64_t a, int64_t b) {
  int64_t r = 0;
  const bool over = p == Prim::Add   ? __builtin_add_overflow(a, b, &r)
                    : p == Prim::Sub ? __builtin_sub_overflow(a, b, &r)
                                     : __builtin_mul_overflow(a, b, &r);
  if (over) return std::nullopt;
  return r;
}

CRange hull(Prim p, const CRange& a, const CRange& b) {
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (const int64_t x : {a.low, a.high})
    for (const int64_t y : {b.low, b.high}) {
      const auto r = checked(p, x, y);
      if (!r) return {};
      low = std::min(low, *r);
      high = std::max(high, *r);
    }
  return CRange::of(low, high);
}

CRange range_of(Prim p, const std::vector<CRange>& in) {
  const bool known = std::ranges::all_of(in, [](const CRange& r) { return r.known; });
  const CRange& a = in[0];
  const CRange b = in.size() > 1 ? in[1] : CRange{};
  switch (p) {
    case Prim::Add:
    case Prim::Sub:
    case Prim::Mul: return known ? hull(p, a, b) : CRange{};
    case Prim::Neg: return known ? hull(Prim::Sub, CRange::of(0, 0), a) : CRange{};
    // One side alone bounds the result on one end only; both ends are needed.
    case Prim::Min: return known ? CRange::of(std::min(a.low, b.low), std::min(a.high, b.high)) : CRange{};
    case Prim::Max: return known ? CRange::of(std::max(a.low, b.low), std::max(a.high, b.high)) : CRange{};
    case Prim::Div:
      if (known && b.low > 0) return CRange::of(std::min(a.low / b.low, a.low / b.high), std::max(a.high / b.low, a.high / b.high));
      return {};
    case Prim::Rem:
      if (b.known && b.low > 0) return CRange::of(a.known && a.low >= 0 ? 0 : 1 - b.high, b.high - 1);
      return {};
    default: return {};
  }
}

CRange range_of_type(DType t) {
  switch (t) {
    case DType::Bool: return CRange::of(0, 1);
    case DType::U8: return CRange::of(0, UINT8_MAX);
    case DType::U16: return CRange::of(0, UINT16_MAX);
    case DType::U32: return CRange::of(0, UINT32_MAX);
    case DType::I8: return CRange::of(INT8_MIN, INT8_MAX);
    case DType::I16: return CRange::of(INT16_MIN, INT16_MAX);
    case DType::I32: return CRange::of(INT32_MIN, INT32_MAX);
    default: return {};
  }
}

std::string integer_literal(DType t, int64_t v, const CDialect& d) {
  const auto u = static_cast<uint64_t>(v);
  switch (t) {
    case DType::U64: return cat(u, "UL");
    case DType::U32: return cat(static_cast<uint32_t>(u), "u");
    case DType::I64: return v == INT64_MIN ? "(-9223372036854775807L - 1L)" : v < 0 ? cat("(", v, "L)") : cat(v, "L");
    case DType::I32: return v == INT32_MIN ? "(-2147483647 - 1)" : v < 0 ? cat("(", v, ")") : cat(v);
    default: return cat("((", d.types[static_cast<size_t>(t)], ")", v, ")");
  }
}

}  // namespace

// ---- helpers ----

void CHelpers::add(const std::string& name, const std::string& text) {
  if (names_.insert(name).second) text_ += cat(d_.function, d_.function.empty() ? "" : " ", text);
}

std::string CHelpers::integer(Prim p, DType t) {
  const std::string type(d_.types[static_cast<size_t>(t)]), other(d_.types[static_cast<size_t>(unsigned_of(t))]);
  const std::string name = cat("tandem_", ir::name(p), "_", type);
  const bool sign = is_signed(t);
  const std::vector<std::pair<std::string, std::string>> values = {
      {"$N", name}, {"$T", type}, {"$U", other}, {"$B", cat(bits_of(t))}, {"$W", sign ? "long" : "ulong"}};
  std::string text;
  switch (p) {
    case Prim::Div:
      text = sign ? "$T $N($T a, $T b) { return b == 0 ? ($T)0 : b == -1 ? ($T)(0 - ($U)a) : ($T)(a / b); }\n"
                  : "$T $N($T a, $T b) { return b == 0 ? ($T)0 : ($T)(a / b); }\n";
      break;
    case Prim::Rem:
      text = sign ? "$T $N($T a, $T b) { return b == 0 || b == -1 ? ($T)0 : ($T)(a % b); }\n"
                  : "$T $N($T a, $T b) { return b == 0 ? ($T)0 : ($T)(a % b); }\n";
      break;
    case Prim::Shl: text = "$T $N($T a, $T b) { return ($U)b >= $B ? ($T)0 : ($T)(($U)a << ($U)b); }\n"; break;
    case Prim::Shr:
      text = sign ? "$T $N($T a, $T b) { return ($U)b >= $B ? (a < 0 ? ($T)-1 : ($T)0) : ($T)(a >> ($U)b); }\n"
                  : "$T $N($T a, $T b) { return b >= $B ? ($T)0 : ($T)(a >> b); }\n";
      break;
    case Prim::MulHi:
      text = bits_of(t) == 64 ? cat("$T $N($T a, $T b) { return ", sign ? d_.high_of_signed : d_.high_of_unsigned, "(a, b); }\n")
                              : "$T $N($T a, $T b) { return ($T)((($W)a * ($W)b) >> $B); }\n";
      break;
    default: internal_error("no helper for ", ir::name(p));
  }
  const std::string wide(d_.types[static_cast<size_t>(sign ? DType::I64 : DType::U64)]);
  auto all = values;
  all.back().second = wide;
  add(name, filled(text, all));
  return name;
}

std::string CHelpers::extreme(Prim p, DType t) {
  const bool is_min = p == Prim::Min;
  const std::string type(d_.types[static_cast<size_t>(t)]);
  const std::string name = cat("tandem_", is_min ? "min_" : "max_", type);
  const bool wide = is_double(t);
  // Of two zeros, the sign decides: min takes the negative one.
  const std::string sign = cat(wide ? d_.bits_of_double : d_.bits_of_float, wide ? "(a) >> 63" : "(a) >> 31");
  add(name, filled(cat("$T $N($T a, $T b) {\n  if (a != a || b != b) return a + b;\n  return a ", is_min ? "<" : ">", " b || (a == b && (",
                       sign, is_min ? ") != 0" : ") == 0", ") ? a : b;\n}\n"),
                   {{"$N", name}, {"$T", type}}));
  return name;
}

std::string CHelpers::saturating(DType from, DType to) {
  const std::string type(d_.types[static_cast<size_t>(from)]), target(d_.types[static_cast<size_t>(to)]);
  const std::string name = cat("tandem_", target, "_of_", type);
  const int bits = bits_of(to);
  const bool sign = is_signed(to);
  // The bounds are powers of two, which each floating type has; what reaches the upper one is too large.
  const std::string suffix = is_double(from) ? "" : "f";
  const auto power = [&](int e) { return cat("0x1p", e, suffix); };
  const std::string low = sign ? cat("-", power(bits - 1)) : cat("0.0", suffix), high = power(sign ? bits - 1 : bits);
  const int64_t least = sign ? static_cast<int64_t>(~uint64_t{0} << (bits - 1)) : 0;
  const int64_t most = static_cast<int64_t>(sign ? ~(~uint64_t{0} << (bits - 1)) : bits == 64 ? ~uint64_t{0} : ~(~uint64_t{0} << bits));
  add(name, cat(target, " ", name, "(", type, " x) {\n  return x != x ? ", integer_literal(to, 0, d_), " : x <= ", low, " ? ",
                integer_literal(to, least, d_), " : x >= ", high, " ? ", integer_literal(to, most, d_), " : (", target, ")x;\n}\n"));
  return name;
}

std::string CHelpers::to_bits(DType t) {
  const auto values = words_for_bits(d_);
  if (t == DType::BF16) {
    add("tandem_bfloat16_bits", filled("$H tandem_bfloat16_bits(float x) {\n"
                                       "  const $U b = $B(x);\n"
                                       "  if ((b & 0x7fffffffu) > 0x7f800000u) return ($H)((b | 0x400000u) >> 16);\n"
                                       "  return ($H)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);\n}\n",
                                       values));
    return "tandem_bfloat16_bits";
  }
  // As base/half.cpp does it: adding 0.5 rounds what will be subnormal.
  add("tandem_half_bits", filled("$H tandem_half_bits(float x) {\n"
                                 "  const $U b = $B(x), sign = b >> 16 & 0x8000u, m = b & 0x7fffffffu;\n"
                                 "  if (m > 0x7f800000u) return ($H)(sign | 0x7e00u | (m >> 13 & 0x3ffu));\n"
                                 "  if (m >= 0x477ff000u) return ($H)(sign | 0x7c00u);\n"
                                 "  if (m < 0x38800000u) return ($H)(sign | ($B($F(m) + 0.5f) - 0x3f000000u));\n"
                                 "  const $U r = m - 0x38000000u;\n"
                                 "  return ($H)(sign | ((r + 0xfffu + (r >> 13 & 1u)) >> 13));\n}\n",
                                 values));
  return "tandem_half_bits";
}

std::string CHelpers::from_bits(DType t) {
  const auto values = words_for_bits(d_);
  if (t == DType::BF16) {
    add("tandem_float_of_bfloat16", filled("float tandem_float_of_bfloat16($H h) { return $F(($U)h << 16); }\n", values));
    return "tandem_float_of_bfloat16";
  }
  add("tandem_float_of_half", filled("float tandem_float_of_half($H h) {\n"
                                     "  const $U sign = ($U)(h & 0x8000u) << 16, m = h & 0x7fffu;\n"
                                     "  if (m > 0x7c00u) return $F(sign | 0x7fc00000u | m << 13);\n"
                                     "  if (m == 0x7c00u) return $F(sign | 0x7f800000u);\n"
                                     "  if (m >= 0x0400u) return $F(sign | ((m << 13) + 0x38000000u));\n"
                                     "  return $F(sign | $B((float)m * 0x1p-24f));\n}\n",
                                     values));
  return "tandem_float_of_half";
}

std::string CHelpers::rounded(DType t) {
  const std::string name = t == DType::F16 ? "tandem_to_half" : "tandem_to_bfloat16";
  if (!names_.contains(name)) {
    const std::string from = from_bits(t), to = to_bits(t);
    add(name, cat("float ", name, "(float x) { return ", from, "(", to, "(x)); }\n"));
  }
  return name;
}

// A quotient or root of floats, computed in double and rounded, is the correctly rounded one: double has more than twice the digits.
std::string CHelpers::divide() {
  use_double();
  add(std::string(d_.divide), cat("float ", d_.divide, "(float a, float b) { return (float)((double)a / (double)b); }\n"));
  return std::string(d_.divide);
}
std::string CHelpers::square_root() {
  use_double();
  add(std::string(d_.square_root), cat("float ", d_.square_root, "(float a) { return (float)sqrt((double)a); }\n"));
  return std::string(d_.square_root);
}

// ---- values ----

std::string_view CValues::memory_type(const CDialect& d, DType t) {
  return d.types[static_cast<size_t>(is_small_float(t) ? DType::U16 : t)];
}
std::string CValues::to_memory(CHelpers& helpers, const std::string& value, DType t) {
  return is_small_float(t) ? cat(helpers.to_bits(t), "(", value, ")") : value;
}

std::string CValues::wide(const CValue& v) const { return v.narrow ? cat("(", type(DType::I64), ")", v.text) : v.text; }

std::vector<CValue> CValues::write(std::span<const Scalar> roots, std::string& out, std::string_view indent) {
  const std::vector<Scalar> shared = ir::share(roots);
  kept_.insert(kept_.end(), shared.begin(), shared.end());
  for (const Scalar& s : ir::post_order(shared)) {
    if (done_.contains(s.get())) continue;
    if (s->dtype == DType::F64) helpers_.use_double();
    if (s->in.empty()) {
      done_.emplace(s.get(), leaf(*s));
      continue;
    }
    CValue v = s->prim == Prim::Load ? load(*s) : node(*s);
    const std::string name = cat("v", next_name_++);
    out += cat(indent, "const ", v.narrow ? type(DType::I32) : type(s->dtype), " ", name, " = ", v.text, ";\n");
    v.text = name;
    done_.emplace(s.get(), std::move(v));
  }
  std::vector<CValue> results;
  for (const Scalar& s : shared) results.push_back(of(s));
  return results;
}

CValue CValues::leaf(const ScalarNode& n) const {
  switch (n.prim) {
    case Prim::Axis: return leaves_.axes.at(static_cast<size_t>(n.index));
    case Prim::Acc: return {leaves_.acc.at(static_cast<size_t>(n.index))};
    case Prim::Right: return {leaves_.right.at(static_cast<size_t>(n.index))};
    case Prim::Extent: {
      const int64_t v = leaves_.params->at(static_cast<size_t>(n.index));
      const CRange r = CRange::of(v, v);
      if (r.is_narrow()) return {cat("((", type(DType::I32), ")p", n.index, ")"), true, r};
      return {cat("p", n.index), false, r};
    }
    case Prim::Const: {
      if (n.dtype != DType::I64) return {constant(n)};
      const auto v = static_cast<int64_t>(n.bits);
      const CRange r = CRange::of(v, v);
      return {integer_literal(r.is_narrow() ? DType::I32 : DType::I64, v, d_), r.is_narrow(), r};
    }
    default: internal_error("a leaf that kernels do not have: ", ir::name(n.prim));
  }
}

std::string CValues::constant(const ScalarNode& n) const {
  if (!is_float(n.dtype))
    return n.dtype == DType::Bool ? cat("((", type(DType::Bool), ")", n.bits != 0 ? 1 : 0, ")")
                                  : integer_literal(n.dtype, ir::constant_int_value(n), d_);
  if (n.dtype == DType::F64) return cat(d_.double_of_bits, "(0x", hex(n.bits), "UL)");
  const auto f = static_cast<float>(ir::constant_value(n));
  char text[64];
  if (std::isfinite(f)) {  // the shortest text that is this number
    const auto end = std::to_chars(text, text + sizeof text, f).ptr;
    std::string s(text, end);
    if (s.find_first_of(".e") == std::string::npos) s += ".0";
    return f < 0 || std::signbit(f) ? cat("(", s, "f)") : cat(s, "f");
  }
  return cat(d_.float_of_bits, "(0x", hex(std::bit_cast<uint32_t>(f)), "u)");
}

CValue CValues::load(const ScalarNode& n) {
  const CValue& at = of(n.in[0]);
  std::string value = cat("in", n.index, "[", at.text, "]");
  if (n.dtype == DType::Bool) value = cat("(", value, " != 0)");
  if (is_small_float(n.dtype)) value = cat(helpers_.from_bits(n.dtype), "(", value, ")");
  if (!n.guarded) return {value};
  // What is not valid is not read.
  const CValue& otherwise = of(n.in[2]);
  return {cat(of(n.in[1]).text, " ? ", value, " : ", n.dtype == DType::I64 ? wide(otherwise) : otherwise.text)};
}

CValue CValues::node(const ScalarNode& n) {
  const DType t = n.in[0]->dtype;
  if (n.prim == Prim::Cast) {
    if (n.dtype == DType::I64 && !is_float(t)) {
      const CRange r = range_of_type(t);
      if (r.is_narrow()) return {cat("(", type(DType::I32), ")", of(n.in[0]).text), true, r};
      return {cat("(", type(DType::I64), ")", of(n.in[0]).text), false, r};
    }
    return {cast(of(n.in[0]).text, t, n.dtype)};
  }
  if (n.prim == Prim::Bitcast) return {bitcast(t == DType::I64 ? wide(of(n.in[0])) : of(n.in[0]).text, t, n.dtype)};
  if (n.prim == Prim::Select) {
    const CValue &a = of(n.in[1]), &b = of(n.in[2]);
    if (n.dtype != DType::I64) return {cat(of(n.in[0]).text, " ? ", a.text, " : ", b.text)};
    CRange r;
    if (a.range.known && b.range.known) r = CRange::of(std::min(a.range.low, b.range.low), std::max(a.range.high, b.range.high));
    const bool narrow = a.narrow && b.narrow;
    return {cat(of(n.in[0]).text, " ? ", narrow ? a.text : wide(a), " : ", narrow ? b.text : wide(b)), narrow, r};
  }
  if (n.dtype == DType::I64) return index_arithmetic(n);
  std::vector<std::string> in;
  for (const Scalar& s : n.in) in.push_back(of(s).text);
  if (n.prim >= Prim::Eq && n.prim <= Prim::Ge) {  // an int beside a long becomes one
    static constexpr std::string_view kSigns[] = {"==", "!=", "<", "<=", ">", ">="};
    return {cat("(", in[0], " ", kSigns[static_cast<size_t>(n.prim) - static_cast<size_t>(Prim::Eq)], " ", in[1], ")")};
  }
  return {is_float(t) ? floating(n, in, t) : integer(n, in, t)};
}

// In 32 bits where operands and result have room there.
CValue CValues::index_arithmetic(const ScalarNode& n) {
  std::vector<CRange> ranges;
  bool narrow = true;
  for (const Scalar& s : n.in) {
    ranges.push_back(of(s).range);
    narrow = narrow && of(s).narrow;
  }
  const CRange r = range_of(n.prim, ranges);
  const auto a = [&](size_t i) -> const std::string& { return of(n.in[i]).text; };
  if (narrow && r.is_narrow()) {
    switch (n.prim) {
      case Prim::Add: return {cat(a(0), " + ", a(1)), true, r};
      case Prim::Sub: return {cat(a(0), " - ", a(1)), true, r};
      case Prim::Mul: return {cat(a(0), " * ", a(1)), true, r};
      case Prim::Div: return {cat(a(0), " / ", a(1)), true, r};
      case Prim::Rem: return {cat(a(0), " % ", a(1)), true, r};
      case Prim::Neg: return {cat("-", a(0)), true, r};
      case Prim::Min: return {cat(a(0), " < ", a(1), " ? ", a(0), " : ", a(1)), true, r};
      case Prim::Max: return {cat(a(0), " < ", a(1), " ? ", a(1), " : ", a(0)), true, r};
      default: break;
    }
  }
  std::vector<std::string> in;
  for (const Scalar& s : n.in) in.push_back(wide(of(s)));
  const std::string text = integer(n, in, DType::I64);
  if (r.is_narrow()) return {cat("(", type(DType::I32), ")(", text, ")"), true, r};
  return {text, false, r};
}

std::string CValues::cast(const std::string& v, DType from, DType to) {
  if (to == DType::Bool) return cat("(", v, " != 0)");
  if (is_float(from) && !is_float(to)) return cat(helpers_.saturating(from == DType::F64 ? DType::F64 : DType::F32, to), "(", v, ")");
  const std::string plain = cat("(", type(to), ")", v);
  return is_small_float(to) ? cat(helpers_.rounded(to), "(", plain, ")") : plain;
}

std::string CValues::bitcast(const std::string& v, DType from, DType to) {
  // Through an unsigned integer of that width.
  const DType middle = unsigned_of(is_float(from)        ? (from == DType::F64   ? DType::U64
                                                            : from == DType::F32 ? DType::U32
                                                                                 : DType::U16)
                                   : from == DType::Bool ? DType::U8
                                                         : from);
  std::string bits = is_small_float(from) ? cat(helpers_.to_bits(from), "(", v, ")")
                     : from == DType::F32 ? cat(d_.bits_of_float, "(", v, ")")
                     : from == DType::F64 ? cat(d_.bits_of_double, "(", v, ")")
                                          : cat("(", type(middle), ")", v);
  if (is_small_float(to)) return cat(helpers_.from_bits(to), "((", type(DType::U16), ")", bits, ")");
  if (to == DType::F32) return cat(d_.float_of_bits, "(", bits, ")");
  if (to == DType::F64) return cat(d_.double_of_bits, "(", bits, ")");
  if (to == DType::Bool) return cat("(", bits, " != 0)");
  return cat("(", type(to), ")", bits);
}

// Sums and products are those of unsigned numbers, which wrap.
std::string CValues::integer(const ScalarNode& n, const std::vector<std::string>& in, DType t) {
  const std::string& a = in[0];
  const std::string b = in.size() > 1 ? in[1] : "";
  const std::string_view T = type(t), U = type(bits_of(t) == 64 ? DType::U64 : DType::U32);
  const bool is_bool = t == DType::Bool;
  const auto wrapping = [&](std::string_view sign) { return cat("(", T, ")((", U, ")", a, " ", sign, " (", U, ")", b, ")"); };
  const auto bitwise = [&](std::string_view sign) { return cat("(", T, ")(", a, " ", sign, " ", b, ")"); };
  switch (n.prim) {
    case Prim::Add: return wrapping("+");
    case Prim::Sub: return wrapping("-");
    case Prim::Mul: return wrapping("*");
    case Prim::Fma: return cat("(", T, ")((", U, ")", a, " * (", U, ")", b, " + (", U, ")", in[2], ")");
    case Prim::Neg: return cat("(", T, ")(0 - (", U, ")", a, ")");
    case Prim::Min: return is_bool ? bitwise("&") : cat("(", a, " < ", b, " ? ", a, " : ", b, ")");
    case Prim::Max: return is_bool ? bitwise("|") : cat("(", a, " < ", b, " ? ", b, " : ", a, ")");
    case Prim::And: return bitwise("&");
    case Prim::Or: return bitwise("|");
    case Prim::Xor: return bitwise("^");
    case Prim::Not: return is_bool ? cat("(", a, " == 0)") : cat("(", T, ")(~", a, ")");
    case Prim::Abs: return is_signed(t) ? cat("(", a, " < 0 ? (", T, ")(0 - (", U, ")", a, ") : ", a, ")") : a;
    case Prim::Floor:
    case Prim::Ceil:
    case Prim::Trunc:
    case Prim::Round: return a;
    case Prim::Div:
    case Prim::Rem: {
      // The compiler sees a divisor that is a number and needs no test of it.
      const Scalar& divisor = n.in[1];
      if (divisor->prim == Prim::Const && divisor->bits != 0 && ir::constant_int_value(*divisor) != -1)
        return bitwise(n.prim == Prim::Div ? "/" : "%");
      return cat(helpers_.integer(n.prim, t), "(", a, ", ", b, ")");
    }
    case Prim::Shl:
    case Prim::Shr:
    case Prim::MulHi: return cat(helpers_.integer(n.prim, t), "(", a, ", ", b, ")");
    default: internal_error("primitive ", ir::name(n.prim), " on ", name(t));
  }
}

std::string CValues::floating(const ScalarNode& n, const std::vector<std::string>& in, DType t) {
  const auto rounded = [&](const std::string& v) { return is_small_float(t) ? cat(helpers_.rounded(t), "(", v, ")") : v; };
  const auto call = [&](std::string_view f) {
    std::string text = cat(f, "(", in[0]);
    for (size_t i = 1; i < in.size(); ++i) text += cat(", ", in[i]);
    return text + ")";
  };
  switch (n.prim) {
    case Prim::Add: return rounded(cat("(", in[0], " + ", in[1], ")"));
    case Prim::Sub: return rounded(cat("(", in[0], " - ", in[1], ")"));
    case Prim::Mul: return rounded(cat("(", in[0], " * ", in[1], ")"));
    case Prim::Div:
      if (!is_double(t) && !d_.divide.empty()) return rounded(call(helpers_.divide()));
      return rounded(cat("(", in[0], " / ", in[1], ")"));
    case Prim::Sqrt:
      if (!is_double(t) && !d_.square_root.empty()) return rounded(call(helpers_.square_root()));
      break;
    case Prim::Neg: return cat("(-", in[0], ")");
    case Prim::Min:
    case Prim::Max: return call(helpers_.extreme(n.prim, is_double(t) ? t : DType::F32));
    default: break;
  }
  const auto f = std::ranges::find(d_.functions, n.prim, &CFunction::prim);
  if (f == d_.functions.end()) internal_error("primitive ", ir::name(n.prim), " on ", name(t), ": ", d_.name, " has no function for it");
  const std::string result = call(is_double(t) ? f->wide : f->single);
  return n.prim == Prim::Abs ? result : rounded(result);
}

}  // namespace tandem::codegen
