// Samples: the text of a call read, the types it stands for, and values that are the same everywhere.
#include "ir/sample.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "ir/cursor.hpp"

namespace tandem::ir {
namespace {

using Fill = SampleOperand::Fill;

// --- reading ---------------------------------------------------------------------------------------------------------------

class SampleParser {
 public:
  SampleParser(const OpDef& op, std::string_view text) : op_(op), cursor_(text) { sample_.text = text; }

  Sample parse() {
    cursor_.expect("(");
    if (cursor_.peek() != ';' && cursor_.peek() != ')') {
      do sample_.operands.push_back(operand());
      while (cursor_.accept(","));
    }
    if (cursor_.accept(";")) {
      do attribute();
      while (cursor_.accept(","));
    }
    cursor_.expect(")");
    while (cursor_.accept("!")) {
      if (cursor_.accept("grad"))
        sample_.gradient = false;
      else if (cursor_.accept("numpy"))
        sample_.numpy = false;
      else
        cursor_.fail("'grad' or 'numpy' expected after '!'");
    }
    if (!cursor_.at_end()) cursor_.fail("the end of the sample expected");
    check_operand_count();
    sample_.attrs = complete_attrs(op_, given_);
    return std::move(sample_);
  }

 private:
  void check_operand_count() const {
    const auto& operands = op_.signature.operands;
    const bool is_open = !operands.empty() && operands.back().variadic;
    if (sample_.operands.size() > operands.size() && !is_open)
      cursor_.fail(cat("at most ", operands.size(), " operands, found ", sample_.operands.size()));
  }

  SampleOperand operand() {
    SampleOperand o;
    if (cursor_.peek() == '[') {
      o.shape = cursor_.shape();
      dtype(o);
      fill(o);
    } else {
      o.fill = Fill::Values;
      o.shape = Shape(values(o.values, 0));
      dtype(o);
    }
    return o;
  }

  void dtype(SampleOperand& o) {
    o.has_dtype = cursor_.accept(":");
    if (o.has_dtype) o.dtype = cursor_.dtype();
  }

  void fill(SampleOperand& o) {
    if (cursor_.accept("in")) {
      o.has_range = true;
      o.low = cursor_.number();
      cursor_.expect("..");
      o.high = cursor_.number();
      if (!(o.low <= o.high)) cursor_.fail(cat("the range ", o.low, "..", o.high, " is empty"));
    } else if (cursor_.accept("special")) {
      o.fill = Fill::Special;
    } else if (cursor_.accept("distinct")) {
      o.fill = Fill::Distinct;
    } else if (cursor_.accept("posdef")) {
      o.fill = Fill::PosDef;
    } else if (cursor_.accept("symmetric")) {
      o.fill = Fill::Symmetric;
    }
    const bool is_matrix = o.fill == Fill::PosDef || o.fill == Fill::Symmetric;
    if (is_matrix && (o.shape.rank() < 2 || o.shape[o.shape.size() - 1] != o.shape[o.shape.size() - 2]))
      cursor_.fail(cat("a square matrix expected, found ", o.shape));
  }

  double value() {
    if (cursor_.accept("true")) return 1;
    if (cursor_.accept("false")) return 0;
    return cursor_.number();
  }

  // {1,2} is a vector, {{1,2},{3,4}} a matrix, 5 a number; returns the shape.
  std::vector<int64_t> values(std::vector<double>& out, int depth) {
    if (!cursor_.accept("{")) {
      out.push_back(value());
      return {};
    }
    if (depth == kMaxRank) cursor_.fail(cat("at most ", kMaxRank, " dimensions"));
    std::vector<int64_t> shape{0};
    if (cursor_.accept("}")) return shape;
    do {
      std::vector<int64_t> inner = values(out, depth + 1);
      inner.insert(inner.begin(), shape[0]);
      if (shape[0] != 0 && inner != shape) cursor_.fail("rows of different lengths");
      shape = std::move(inner);
      ++shape[0];
    } while (cursor_.accept(","));
    cursor_.expect("}");
    return shape;
  }

  void attribute() {
    const std::string name(cursor_.identifier());
    const auto known = std::ranges::find(op_.signature.attributes, name, &Signature::Attribute::name);
    if (known == op_.signature.attributes.end()) cursor_.fail(cat("there is no attribute '", name, "'"));
    cursor_.expect("=");
    given_.set(name, known->optional && cursor_.accept("none") ? Attr{} : cursor_.value(known->kind));
  }

  const OpDef& op_;
  Cursor cursor_;
  Sample sample_;
  Attrs given_;
};

// --- types -----------------------------------------------------------------------------------------------------------------

const Signature::Parameter& operand_at(const OpDef& op, size_t i) {
  const auto& operands = op.signature.operands;
  return operands[std::min(i, operands.size() - 1)];
}

struct Range {
  double low, high;
};

// What the element type can hold of the range that was asked for; low > high when that is nothing.
Range range_of(const SampleOperand& o, DType t) {
  Range r = o.has_range ? Range{o.low, o.high} : is_float(t) ? Range{-2, 2} : is_signed(t) ? Range{-5, 5} : Range{0, 10};
  if (is_float(t)) return r;
  const auto bits = static_cast<double>(size_of(t) * 8);
  const double largest = std::exp2(is_signed(t) ? bits - 1 : bits) - 1;
  return {std::max(std::ceil(r.low), is_signed(t) ? -largest : 0), std::min(std::floor(r.high), largest)};
}

// How many values without ties the type has room for, exactly representable.
int64_t distinct_room(DType t) {
  switch (t) {
    case DType::Bool: return 2;
    case DType::U8:
    case DType::I8:
    case DType::BF16: return 256;
    case DType::F16: return 2048;
    default: return int64_t{1} << 16;
  }
}

bool holds(DType t, double v) {
  if (is_float(t)) return true;
  if (t == DType::Bool) return v == 0 || v == 1;
  if (v != std::trunc(v)) return false;
  const auto bits = static_cast<double>(size_of(t) * 8);
  const double end = std::exp2(is_signed(t) ? bits - 1 : bits);
  return v < end && v >= (is_signed(t) ? -end : 0);
}

// Whether the values asked for exist in a type: no -1 in uint8, no 300 values without ties in int8, no 0.5 in integers.
bool can_fill(const SampleOperand& o, DType t) {
  switch (o.fill) {
    case Fill::Range: return t == DType::Bool || range_of(o, t).low <= range_of(o, t).high;
    case Fill::Special: return true;
    case Fill::Distinct: return element_count(o.shape) <= distinct_room(t);
    case Fill::PosDef:
    case Fill::Symmetric: return is_float(t);
    case Fill::Values: return std::ranges::all_of(o.values, [&](double v) { return holds(t, v); });
  }
  return false;
}

// Operands that take the same type together: those of T, those of any type of their own, and the indices. What has one type only
// (bool, key) is its own group too.
int group_of(OperandClass c) {
  switch (c) {
    case OperandClass::Own: return 1;
    case OperandClass::Index: return 2;
    case OperandClass::Bool: return 3;
    case OperandClass::Key: return 4;
    default: return 0;
  }
}
constexpr int kGroupCount = 5;

// An operand of a type of its own that names it leaves its group to the others.
bool is_pinned(const Signature::Parameter& operand, const SampleOperand& o) { return o.has_dtype && group_of(operand.type) != 0; }

std::vector<DType> types_of_group(const OpDef& op, const Sample& s, int group) {
  std::vector<DType> types;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    bool fits = true;
    for (size_t k = 0; k < s.operands.size(); ++k) {
      const Signature::Parameter& operand = operand_at(op, k);
      const SampleOperand& o = s.operands[k];
      if (group_of(operand.type) != group || is_pinned(operand, o)) continue;
      fits = fits && accepts(operand.type, t) && (!o.has_dtype || o.dtype == t) && can_fill(o, t);
    }
    if (fits) types.push_back(t);
  }
  return types;
}

bool has_free_operand(const OpDef& op, const Sample& s, int group) {
  for (size_t k = 0; k < s.operands.size(); ++k) {
    const Signature::Parameter& operand = operand_at(op, k);
    if (group_of(operand.type) == group && !is_pinned(operand, s.operands[k])) return true;
  }
  return false;
}

// --- values ----------------------------------------------------------------------------------------------------------------

// Integer arithmetic only up to the last step, which is exact: the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {  // splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  uint64_t below(uint64_t n) { return bits() % n; }                      // the slight bias does not matter here
  double in(Range r, DType t) {
    if (t == DType::Bool) return static_cast<double>(bits() >> 63);
    if (is_float(t)) return r.low + (r.high - r.low) * unit();
    return r.low + std::floor((r.high - r.low + 1) * unit());
  }

 private:
  uint64_t state_;
};

uint64_t seed_of(const OpDef& op, const Sample& s, size_t operand, DType t) {
  uint64_t h = 0xCBF29CE484222325u;  // FNV-1a
  const auto add = [&](std::string_view text) {
    for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    h = (h ^ 0xFF) * 0x100000001B3u;
  };
  add(op.name);
  add(s.text);
  add(std::to_string(operand));
  add(name(t));
  return h;
}

// Elements as they are stored: some special numbers (the largest 64-bit integers) are no doubles.
using Element = std::array<std::byte, 8>;

template <class T> Element element_of_bits(T bits) {
  Element e{};
  std::memcpy(e.data(), &bits, sizeof bits);
  return e;
}

Element element_of_bits(DType t, uint64_t bits) {
  switch (size_of(t)) {
    case 1: return element_of_bits(static_cast<uint8_t>(bits));
    case 2: return element_of_bits(static_cast<uint16_t>(bits));
    case 4: return element_of_bits(static_cast<uint32_t>(bits));
    default: return element_of_bits(bits);
  }
}

Element element_of(DType t, double v) {
  Element e{};
  store_number(t, e.data(), v);
  return e;
}

// NaN, infinities, -0, 0, the largest, the most negative, the smallest normal and the smallest number, one, minus one.
std::vector<Element> special_elements(DType t) {
  if (t == DType::Bool) return {element_of(t, 0), element_of(t, 1)};
  if (is_int(t)) {
    const unsigned bits = static_cast<unsigned>(size_of(t)) * 8;
    const uint64_t ones = ~uint64_t{0} >> (64 - bits);
    const uint64_t sign = uint64_t{1} << (bits - 1);
    std::vector<Element> e{element_of_bits(t, 0), element_of_bits(t, 1), element_of_bits(t, ones)};  // 0, 1, and -1 or the largest
    if (is_signed(t)) e.insert(e.end(), {element_of_bits(t, sign - 1), element_of_bits(t, sign), element_of_bits(t, sign + 1)});
    return e;
  }
  const unsigned mantissa = t == DType::F16 ? 10 : t == DType::BF16 ? 7 : t == DType::F32 ? 23 : 52;
  const unsigned bits = static_cast<unsigned>(size_of(t)) * 8;
  const uint64_t sign = uint64_t{1} << (bits - 1);
  const uint64_t infinity = (sign - 1) >> mantissa << mantissa;
  const double inf = std::numeric_limits<double>::infinity();
  return {element_of(t, std::numeric_limits<double>::quiet_NaN()),
          element_of(t, inf),
          element_of(t, -inf),
          element_of(t, -0.0),
          element_of(t, 0),
          element_of_bits(t, infinity - 1),
          element_of_bits(t, sign | (infinity - 1)),
          element_of_bits(t, uint64_t{1} << mantissa),
          element_of_bits(t, 1),
          element_of(t, 1),
          element_of(t, -1)};
}

class Filler {
 public:
  Filler(const SampleOperand& o, DType t, size_t operand, uint64_t seed)
      : o_(o),
        t_(t),
        operand_(operand),
        count_(static_cast<size_t>(element_count(o.shape))),
        bytes_(byte_size(o.shape, t)),
        random_(seed) {}

  Literal literal() {
    switch (o_.fill) {
      case Fill::Range: uniform(); break;
      case Fill::Special: special(); break;
      case Fill::Distinct: distinct(); break;
      case Fill::PosDef:
      case Fill::Symmetric: matrices(); break;
      case Fill::Values:
        for (size_t i = 0; i < count_; ++i) put(i, o_.values[i]);
        break;
    }
    return Literal::of(t_, o_.shape, bytes_.data());
  }

 private:
  void put(size_t i, double v) { store_number(t_, &bytes_[i * size_of(t_)], v); }
  void put(size_t i, const Element& e) { std::copy_n(e.begin(), size_of(t_), bytes_.begin() + static_cast<ptrdiff_t>(i * size_of(t_))); }

  void uniform() {
    const Range r = range_of(o_, t_);
    for (size_t i = 0; i < count_; ++i) put(i, random_.in(r, t_));
  }

  // Every special number in front, beginning elsewhere in each operand so that they meet in different pairs; then one in four.
  void special() {
    uniform();
    const std::vector<Element> all = special_elements(t_);
    for (size_t i = 0; i < count_; ++i) {
      if (i < all.size())
        put(i, all[(i + 3 * operand_) % all.size()]);
      else if (random_.below(4) == 0)
        put(i, all[random_.below(all.size())]);
    }
  }

  void distinct() {
    std::vector<size_t> order(count_);
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = count_; i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
    const double step = is_float(t_) ? 0.25 : 1;
    const double shift = is_signed(t_) ? static_cast<double>(count_ / 2) : 0;
    for (size_t i = 0; i < count_; ++i) put(i, step * (static_cast<double>(order[i]) - shift));
  }

  void matrices() {
    const auto n = static_cast<size_t>(o_.shape.back());
    std::vector<double> a(n * n);
    for (size_t first = 0; first < count_; first += n * n) {
      for (double& x : a) x = 2 * random_.unit() - 1;
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
          put(first + i * n + j, o_.fill == Fill::PosDef ? positive(a, n, i, j) : (a[i * n + j] + a[j * n + i]) / 2);
    }
  }

  // A*A^T + n*I: eigenvalues of at least n. The same order of the sum on both sides of the diagonal keeps it exactly symmetric.
  static double positive(const std::vector<double>& a, size_t n, size_t i, size_t j) {
    double sum = i == j ? static_cast<double>(n) : 0;
    for (size_t k = 0; k < n; ++k) sum += a[i * n + k] * a[j * n + k];
    return sum;
  }

  const SampleOperand& o_;
  DType t_;
  size_t operand_;
  size_t count_;
  std::vector<std::byte> bytes_;
  Random random_;
};

}  // namespace

Sample parse_sample(const OpDef& op, std::string_view text) {
  try {
    return SampleParser(op, text).parse();
  } catch (const SyntaxError& e) {
    internal_error("sample \"", text, "\" of ", op.name, ": ", e.message, " at column ", e.position + 1);
  } catch (const UserError& e) {
    internal_error("sample \"", text, "\" of ", op.name, ": ", e.what());
  }
}

std::vector<std::vector<DType>> sample_types(const OpDef& op, const Sample& s) {
  std::vector<DType> fixed(s.operands.size());
  for (size_t k = 0; k < fixed.size(); ++k) fixed[k] = s.operands[k].dtype;
  std::vector<std::vector<DType>> all{fixed};
  for (int group = 0; group < kGroupCount; ++group) {
    if (!has_free_operand(op, s, group)) continue;
    std::vector<std::vector<DType>> more;
    for (const auto& assignment : all)
      for (DType t : types_of_group(op, s, group)) {
        more.push_back(assignment);
        for (size_t k = 0; k < s.operands.size(); ++k)
          if (group_of(operand_at(op, k).type) == group && !is_pinned(operand_at(op, k), s.operands[k])) more.back()[k] = t;
      }
    all = std::move(more);
  }
  TANDEM_CHECK(!all.empty(), "sample \"", s.text, "\" of ", op.name, " admits no element type");
  return all;
}

std::vector<Literal> sample_values(const OpDef& op, const Sample& s, const std::vector<DType>& types) {
  TANDEM_CHECK(types.size() == s.operands.size(), "sample \"", s.text, "\" of ", op.name, ": ", types.size(), " types for ",
               s.operands.size(), " operands");
  std::vector<Literal> values;
  for (size_t k = 0; k < types.size(); ++k) values.push_back(Filler(s.operands[k], types[k], k, seed_of(op, s, k, types[k])).literal());
  return values;
}

}  // namespace tandem::ir
