// Dim: canonical polynomials over symbols and over the atoms floor(a/b), min(…) and max(…), whose operands are canonical themselves.
// Values never change once made, so they may be shared by threads.
#include <tandem/dim.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "base/text.hpp"

namespace tandem {
namespace {

constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();

// What cannot be taken apart by + and *. The text is canonical and serves as identity and order.
struct Atom {
  enum class Kind : uint8_t { Symbol, FloorDiv, Min, Max };
  Kind kind;
  Dims operands;  // FloorDiv: dividend, divisor; Min, Max: two or more, sorted
  std::string text;
};
using AtomRef = std::shared_ptr<const Atom>;

struct Factor {
  AtomRef atom;
  int power;
};
// coefficient * product of factors; the factors are sorted by text. The constant term has none.
struct Term {
  std::vector<Factor> factors;
  int64_t coefficient;
};
using Terms = std::vector<Term>;  // sorted, greatest monomial first, no two with the same factors, no coefficient 0

}  // namespace

struct Dim::Expression {
  Terms terms;
  size_t hash;
};

struct DimAccess {
  static const Terms* terms(const Dim& d) { return d.expression_ ? &d.expression_->terms : nullptr; }
  static Dim make(Terms terms);
};

namespace {

// --- arithmetic that does not wrap -----------------------------------------------------------------------------------------

[[noreturn]] void overflow(std::string_view what) { user_error("dim: ", what, " does not fit in 64 bits"); }

int64_t add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) overflow(cat(a, "+", b));
  return r;
}
int64_t subtract(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_sub_overflow(a, b, &r)) overflow(cat(a, "-", b));
  return r;
}
int64_t multiply(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) overflow(cat(a, "*", b));
  return r;
}
int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }  // b > 0

[[noreturn]] void bad_divisor(const Dim& a, const Dim& b, int64_t value) {
  user_error("dim: ", a, " divided by ", b, b.is_const() ? "" : cat(" = ", value), ", which must be positive");
}

// --- terms -----------------------------------------------------------------------------------------------------------------

int degree(const Term& t) {
  int n = 0;
  for (const Factor& f : t.factors) n += f.power;
  return n;
}

// Graded lexicographic order, the first atom being the most significant: a monomial order, as division needs.
int compare(const Term& a, const Term& b) {
  const int da = degree(a), db = degree(b);
  if (da != db) return da < db ? -1 : 1;
  for (size_t i = 0; i < a.factors.size() && i < b.factors.size(); ++i) {
    const int order = a.factors[i].atom->text.compare(b.factors[i].atom->text);
    if (order != 0) return order < 0 ? 1 : -1;
    if (a.factors[i].power != b.factors[i].power) return a.factors[i].power < b.factors[i].power ? -1 : 1;
  }
  return 0;
}

Terms terms_of(const Dim& d) {
  if (const Terms* t = DimAccess::terms(d)) return *t;
  return d.is(0) ? Terms{} : Terms{{{}, d.value()}};
}

Terms sum(const Terms& a, const Terms& b) {
  Terms out;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const int order = i == a.size() ? -1 : j == b.size() ? 1 : compare(a[i], b[j]);
    if (order > 0) {
      out.push_back(a[i++]);
    } else if (order < 0) {
      out.push_back(b[j++]);
    } else {
      const int64_t c = add(a[i].coefficient, b[j].coefficient);
      if (c != 0) out.push_back({a[i].factors, c});
      ++i, ++j;
    }
  }
  return out;
}

Term times(const Term& a, const Term& b) {
  Term out{{}, multiply(a.coefficient, b.coefficient)};
  size_t i = 0, j = 0;
  while (i < a.factors.size() || j < b.factors.size()) {
    const int order = i == a.factors.size() ? 1 : j == b.factors.size() ? -1 : a.factors[i].atom->text.compare(b.factors[j].atom->text);
    if (order < 0) {
      out.factors.push_back(a.factors[i++]);
    } else if (order > 0) {
      out.factors.push_back(b.factors[j++]);
    } else {
      out.factors.push_back({a.factors[i].atom, a.factors[i].power + b.factors[j].power});
      ++i, ++j;
    }
  }
  return out;
}

// A monomial order is kept by multiplication, so the products with one term are already sorted.
Terms times(const Terms& a, const Term& b) {
  Terms out;
  out.reserve(a.size());
  for (const Term& t : a) out.push_back(times(t, b));
  return out;
}

// a / b if b's factors and coefficient are contained in a's.
std::optional<Term> quotient_of(const Term& a, const Term& b) {
  if (a.coefficient == kSmallest && b.coefficient == -1) return std::nullopt;  // the one quotient that would trap
  if (a.coefficient % b.coefficient != 0) return std::nullopt;
  Term out{{}, a.coefficient / b.coefficient};
  size_t j = 0;
  for (const Factor& f : a.factors) {
    int power = f.power;
    if (j < b.factors.size() && b.factors[j].atom->text == f.atom->text) power -= b.factors[j++].power;
    if (power < 0) return std::nullopt;
    if (power > 0) out.factors.push_back({f.atom, power});
  }
  if (j != b.factors.size()) return std::nullopt;
  return out;
}

// --- text ------------------------------------------------------------------------------------------------------------------

std::string text_of(const Term& t, bool first) {
  const bool smallest = t.coefficient == kSmallest;  // its magnitude is no int64: the sign stays with the number
  const bool minus = t.coefficient < 0 && !smallest;
  const int64_t magnitude = minus ? -t.coefficient : t.coefficient;
  std::string out = minus ? "-" : first ? "" : "+";
  if (t.factors.empty()) return out + std::to_string(magnitude);
  bool any = false;
  for (const Factor& f : t.factors)
    for (int i = 0; i < f.power; ++i, any = true) {
      if (any) out += '*';
      out += f.atom->text;
    }
  if (magnitude != 1) out += '*' + std::to_string(magnitude);
  return out;
}

bool is_single_atom(const Dim& d) {
  const Terms* t = DimAccess::terms(d);
  return t && t->size() == 1 && t->front().coefficient == 1 && degree(t->front()) == 1;
}

std::string text_of(const Atom& a) {
  if (a.kind == Atom::Kind::FloorDiv) {
    const Dim &n = a.operands[0], &d = a.operands[1];
    const Terms* t = DimAccess::terms(n);
    const std::string dividend = t && t->size() > 1 ? '(' + n.str() + ')' : n.str();
    const std::string divisor = d.is_const() || is_single_atom(d) ? d.str() : '(' + d.str() + ')';
    return "floor(" + dividend + '/' + divisor + ')';
  }
  std::string out = a.kind == Atom::Kind::Min ? "min(" : "max(";
  for (const Dim& d : a.operands) {
    if (&d != &a.operands.front()) out += ',';
    out += d.str();
  }
  return out + ')';
}

Dim atom_dim(Atom a) {
  if (a.text.empty()) a.text = text_of(a);
  return DimAccess::make({{{{std::make_shared<const Atom>(std::move(a)), 1}}, 1}});
}

// --- bounds ----------------------------------------------------------------------------------------------------------------

// What is known of a value for every binding; a symbol is an extent and so never negative. Used to decide min, max and remainders.
struct Range {
  std::optional<int64_t> low, high;
};
using Bound = std::optional<int64_t>;

Bound bound_sum(Bound a, Bound b) {
  int64_t r;
  if (!a || !b || __builtin_add_overflow(*a, *b, &r)) return std::nullopt;
  return r;
}
Bound bound_product(Bound a, Bound b) {
  int64_t r;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &r)) return std::nullopt;
  return r;
}

Range range_of(const Dim& d);

Range range_of_extreme(const Atom& a) {
  const bool is_min = a.kind == Atom::Kind::Min;
  Range out = range_of(a.operands[0]);
  for (size_t i = 1; i < a.operands.size(); ++i) {
    const Range r = range_of(a.operands[i]);
    Bound& weak = is_min ? out.low : out.high;    // known only if known of all operands
    Bound& strong = is_min ? out.high : out.low;  // known if known of any
    const Bound other_weak = is_min ? r.low : r.high, other_strong = is_min ? r.high : r.low;
    auto pick = [&](int64_t x, int64_t y) { return is_min ? std::min(x, y) : std::max(x, y); };
    weak = weak && other_weak ? Bound(pick(*weak, *other_weak)) : std::nullopt;
    if (other_strong) strong = strong ? pick(*strong, *other_strong) : *other_strong;
  }
  return out;
}

Range range_of(const Atom& a) {
  if (a.kind == Atom::Kind::Symbol) return {0, std::nullopt};
  if (a.kind != Atom::Kind::FloorDiv) return range_of_extreme(a);
  const Range n = range_of(a.operands[0]);
  if (a.operands[1].is_const()) {
    const int64_t k = a.operands[1].value();
    return {n.low ? Bound(floor_quotient(*n.low, k)) : std::nullopt, n.high ? Bound(floor_quotient(*n.high, k)) : std::nullopt};
  }
  if (n.low && *n.low >= 0) return {0, n.high};  // the divisor is at least 1
  return {};
}

Range range_of(const Term& t) {
  Range out{1, 1};
  for (const Factor& f : t.factors) {
    const Range r = range_of(*f.atom);
    if (!r.low || *r.low < 0) return {};
    for (int i = 0; i < f.power; ++i) out = {bound_product(out.low, r.low), bound_product(out.high, r.high)};
  }
  out = {bound_product(out.low, t.coefficient), bound_product(out.high, t.coefficient)};
  if (t.coefficient < 0) std::swap(out.low, out.high);
  return out;
}

Range range_of(const Dim& d) {
  if (d.is_const()) return {d.value(), d.value()};
  Range out{0, 0};
  for (const Term& t : *DimAccess::terms(d)) {
    const Range r = range_of(t);
    out = {bound_sum(out.low, r.low), bound_sum(out.high, r.high)};
  }
  return out;
}

bool never_less(const Dim& a, const Dim& b) {
  const Range r = range_of(a - b);
  return r.low && *r.low >= 0;
}

// --- floor_div -------------------------------------------------------------------------------------------------------------

int64_t gcd_of(const Terms& terms, int64_t start) {
  int64_t g = start;
  for (const Term& t : terms)
    if (!t.factors.empty()) g = std::gcd(g, t.coefficient);
  return g;
}

const Term* constant_term(const Terms& terms) { return !terms.empty() && terms.back().factors.empty() ? &terms.back() : nullptr; }

// floor((floor(x/m) + c) / k) is floor((x + c*m) / (m*k)). Empty when `rest` is not of that form.
std::optional<Dim> merge_nested(const Terms& rest, int64_t k) {
  const Term* constant = constant_term(rest);
  const Term& head = rest.front();
  if (rest.size() != (constant ? 2u : 1u) || head.coefficient != 1 || degree(head) != 1) return std::nullopt;
  const Atom& atom = *head.factors.front().atom;
  if (atom.kind != Atom::Kind::FloorDiv || !atom.operands[1].is_const()) return std::nullopt;
  const int64_t m = atom.operands[1].value();
  return floor_div(atom.operands[0] + Dim(multiply(constant ? constant->coefficient : 0, m)), Dim(multiply(m, k)));
}

// Every coefficient is c = k*floor(c/k) + c mod k; the multiples of k go in front of the floor, and what stays is divided by a
// common factor. So all ways to write the same quotient meet: floor((b+5)/2) is floor((b+1)/2)+2.
Dim divide_by_number(const Dim& a, int64_t k) {
  Terms whole, rest;
  for (const Term& t : *DimAccess::terms(a)) {
    const int64_t q = floor_quotient(t.coefficient, k);
    const int64_t r = t.coefficient - q * k;
    if (q != 0) whole.push_back({t.factors, q});
    if (r != 0) rest.push_back({t.factors, r});
  }
  Dim front = DimAccess::make(std::move(whole));
  const Dim remainder = DimAccess::make(rest);
  const Range range = range_of(remainder);
  if (range.low && range.high && *range.low >= 0 && *range.high < k) return front;
  if (const auto merged = merge_nested(rest, k)) return front + *merged;
  const int64_t g = gcd_of(rest, k);
  if (g == 1) return front + atom_dim({Atom::Kind::FloorDiv, {remainder, Dim(k)}, ""});
  for (Term& t : rest) t.coefficient = floor_quotient(t.coefficient, g);
  if (rest.back().coefficient == 0) rest.pop_back();  // only the constant term can become 0
  return front + floor_div(DimAccess::make(std::move(rest)), Dim(k / g));
}

Dim divide_by_expression(const Dim& a, const Dim& b) {
  Terms whole, rest;
  const Terms& divisor = *DimAccess::terms(b);
  for (const Term& t : terms_of(a)) {
    const auto q = divisor.size() == 1 ? quotient_of(t, divisor.front()) : std::nullopt;
    if (q)
      whole.push_back(*q);
    else
      rest.push_back(t);
  }
  Dim front = DimAccess::make(std::move(whole));
  const Dim remainder = DimAccess::make(std::move(rest));
  if (remainder.is(0)) return front;
  return front + atom_dim({Atom::Kind::FloorDiv, {remainder, b}, ""});
}

// --- min and max -----------------------------------------------------------------------------------------------------------

void flatten(const Dim& d, Atom::Kind kind, Dims& out) {
  if (is_single_atom(d)) {
    const Atom& a = *DimAccess::terms(d)->front().factors.front().atom;
    if (a.kind == kind) {
      out.insert(out.end(), a.operands.begin(), a.operands.end());
      return;
    }
  }
  out.push_back(d);
}

Dim extreme(const Dim& a, const Dim& b, Atom::Kind kind) {
  Dims all, kept;
  flatten(a, kind, all);
  flatten(b, kind, all);
  for (size_t i = 0; i < all.size(); ++i) {
    bool needed = true;
    for (size_t j = 0; j < all.size() && needed; ++j) {
      if (i == j || (all[i] == all[j] && i < j)) continue;  // of equal operands the first stays
      needed = kind == Atom::Kind::Min ? !never_less(all[i], all[j]) : !never_less(all[j], all[i]);
    }
    if (needed) kept.push_back(all[i]);
  }
  if (kept.size() == 1) return kept.front();
  std::sort(kept.begin(), kept.end(), [](const Dim& x, const Dim& y) {
    if (x.is_const() != y.is_const()) return y.is_const();
    return x.str() < y.str();
  });
  return atom_dim({kind, std::move(kept), ""});
}

// --- evaluation ------------------------------------------------------------------------------------------------------------

int64_t eval_atom(const Atom& a, const Bindings& bindings) {
  switch (a.kind) {
    case Atom::Kind::Symbol: {
      const auto it = bindings.find(a.text);
      if (it == bindings.end()) user_error("dim: the symbol '", a.text, "' has no value");
      if (it->second < 0) user_error("dim: the symbol '", a.text, "' is ", it->second, ", an extent must not be negative");
      return it->second;
    }
    case Atom::Kind::FloorDiv: {
      const int64_t divisor = a.operands[1].eval(bindings);
      if (divisor <= 0) bad_divisor(a.operands[0], a.operands[1], divisor);
      return floor_quotient(a.operands[0].eval(bindings), divisor);
    }
    case Atom::Kind::Min:
    case Atom::Kind::Max: break;
  }
  int64_t out = a.operands[0].eval(bindings);
  for (size_t i = 1; i < a.operands.size(); ++i) {
    const int64_t v = a.operands[i].eval(bindings);
    out = a.kind == Atom::Kind::Min ? std::min(out, v) : std::max(out, v);
  }
  return out;
}

void collect(const Atom& a, std::vector<std::string>& out) {
  if (a.kind != Atom::Kind::Symbol) {
    for (const Dim& d : a.operands) d.collect_symbols(out);
  } else if (std::find(out.begin(), out.end(), a.text) == out.end()) {
    out.push_back(a.text);
  }
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Dim DimAccess::make(Terms terms) {
  if (terms.empty()) return {};
  if (terms.front().factors.empty()) return {terms.front().coefficient};
  size_t h = 0;
  auto mix = [&h](size_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15u + (h >> 29); };
  for (const Term& t : terms) {
    for (const Factor& f : t.factors) mix(std::hash<std::string>()(f.atom->text)), mix(static_cast<size_t>(f.power));
    mix(static_cast<size_t>(t.coefficient));
  }
  Dim d;
  d.expression_ = std::make_shared<const Dim::Expression>(Dim::Expression{std::move(terms), h});
  return d;
}

Dim Dim::symbol(std::string_view name) {
  const bool good =
      !name.empty() && !is_digit(name[0]) && std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); });
  if (!good) user_error("dim: '", name, "' is no name for a symbol (letters, digits and _, not starting with a digit)");
  return atom_dim({Atom::Kind::Symbol, {}, std::string(name)});
}

int64_t Dim::value() const {
  if (!is_const()) internal_error("a number was asked of the extent ", str(), ", which is symbolic");
  return value_;
}

int64_t Dim::eval(const Bindings& bindings) const {
  if (is_const()) return value_;
  int64_t out = 0;
  for (const Term& t : expression_->terms) {
    int64_t product = t.coefficient;
    for (const Factor& f : t.factors) {
      const int64_t v = eval_atom(*f.atom, bindings);
      for (int i = 0; i < f.power; ++i)
        if (__builtin_mul_overflow(product, v, &product)) overflow(cat("the value of ", *this));
    }
    if (__builtin_add_overflow(out, product, &out)) overflow(cat("the value of ", *this));
  }
  return out;
}

std::string Dim::str() const {
  if (is_const()) return std::to_string(value_);
  std::string out;
  for (const Term& t : expression_->terms) out += text_of(t, out.empty());
  return out;
}

size_t Dim::hash() const { return is_const() ? std::hash<int64_t>()(value_) : expression_->hash; }

void Dim::collect_symbols(std::vector<std::string>& out) const {
  if (is_const()) return;
  for (const Term& t : expression_->terms)
    for (const Factor& f : t.factors) collect(*f.atom, out);
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.is_const() || b.is_const()) return a.is_const() && b.is_const() && a.value_ == b.value_;
  if (a.expression_ == b.expression_) return true;
  const Terms &x = a.expression_->terms, &y = b.expression_->terms;
  if (a.expression_->hash != b.expression_->hash || x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i].coefficient != y[i].coefficient || compare(x[i], y[i]) != 0) return false;
  return true;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return {add(a.value_, b.value_)};
  return DimAccess::make(sum(terms_of(a), terms_of(b)));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return {subtract(a.value_, b.value_)};
  return a + Dim(-1) * b;
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return {multiply(a.value_, b.value_)};
  if (a.is(0) || b.is(0)) return {};
  const Terms left = terms_of(a);
  Terms out;
  for (const Term& t : terms_of(b)) out = sum(out, times(left, t));
  return DimAccess::make(std::move(out));
}

// Long division by leading terms. In a monomial order an exact quotient is always found this way.
bool divides_exactly(const Dim& a, const Dim& b, Dim& quotient) {
  if (b.is(0)) return false;
  const Terms divisor = terms_of(b);
  Terms rest = terms_of(a), out;
  while (!rest.empty()) {
    const auto q = quotient_of(rest.front(), divisor.front());
    if (!q) return false;
    out.push_back(*q);
    Term negative = *q;
    negative.coefficient = multiply(-1, negative.coefficient);
    rest = sum(rest, times(divisor, negative));
  }
  quotient = DimAccess::make(std::move(out));
  return true;
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.is_const() && b.value() <= 0) bad_divisor(a, b, b.value());
  if (a.is_const() && b.is_const()) return {floor_quotient(a.value(), b.value())};
  Dim exact;
  if (divides_exactly(a, b, exact)) return exact;
  return b.is_const() ? divide_by_number(a, b.value()) : divide_by_expression(a, b);
}

Dim ceil_div(const Dim& a, const Dim& b) {
  if (b.is_const() && b.value() <= 0) bad_divisor(a, b, b.value());
  if (a.is_const() && b.is_const()) return {a.value() / b.value() + (a.value() % b.value() > 0 ? 1 : 0)};
  Dim exact;
  if (divides_exactly(a, b, exact)) return exact;
  return floor_div(a - Dim(1), b) + Dim(1);
}

Dim min(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return {std::min(a.value(), b.value())};
  return extreme(a, b, Atom::Kind::Min);
}

Dim max(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return {std::max(a.value(), b.value())};
  return extreme(a, b, Atom::Kind::Max);
}

// --- lists of dims ---------------------------------------------------------------------------------------------------------

std::string str(const Dims& dims) {
  std::string out = "[";
  for (const Dim& d : dims) {
    if (out.size() > 1) out += ',';
    out += d.str();
  }
  return out + ']';
}

Dim product(const Dims& dims) {
  Dim out = 1;
  for (const Dim& d : dims) out = out * d;
  return out;
}

Dims to_dims(const Shape& s) { return {s.begin(), s.end()}; }

Shape bind(const Dims& dims, const Bindings& bindings) {
  Shape s;
  for (const Dim& d : dims) s.push_back(d.eval(bindings));
  return s;
}

Dims broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims result = longer;
  for (size_t back = 1; back <= shorter.size(); ++back) {  // counted from the last axis, where the shapes are aligned
    Dim& extent = result[longer.size() - back];
    const Dim& other = shorter[shorter.size() - back];
    if (extent.is(1)) {
      extent = other;
    } else if (!other.is(1) && !(other == extent)) {
      const Dim &x = a[a.size() - back], &y = b[b.size() - back];
      const std::string where = cat(" at axis -", back);
      if (x.is_const() && y.is_const())
        user_error("broadcast: shapes ", str(a), " and ", str(b), " do not fit (", x, " != ", y, where, ")");
      user_error("broadcast: shapes ", str(a), " and ", str(b), " do not fit, ", x, " and ", y, where,
                 " need not be equal\n  hint: use one symbol for extents that are the same");
    }
  }
  return result;
}

// --- unification -----------------------------------------------------------------------------------------------------------

namespace {

[[noreturn]] void mismatch(const Dims& dims, const Shape& shape, size_t axis, std::string_view what, const std::string& why) {
  user_error(what, ": shape ", shape, " does not fit ", str(dims), " (", why, " at axis ", axis, ")");
}

// Checks one axis, or finds the one symbol it still leaves free, where that symbol occurs as c*symbol. False when it can do neither.
bool solve(const Dims& dims, const Shape& shape, size_t axis, Bindings& bindings, std::string_view what) {
  const Dim& d = dims[axis];
  std::vector<std::string> names;
  d.collect_symbols(names);
  std::erase_if(names, [&](const std::string& n) { return bindings.find(n) != bindings.end(); });
  if (names.empty()) {
    const int64_t expected = d.eval(bindings);
    if (expected != shape[axis]) mismatch(dims, shape, axis, what, cat(d, " = ", expected, " != ", shape[axis]));
    return true;
  }
  if (names.size() > 1) return false;
  const std::string& name = names.front();
  int64_t slope = 0, offset = 0;
  for (const Term& t : *DimAccess::terms(d)) {
    int64_t value = t.coefficient;
    bool free = false;
    for (const Factor& f : t.factors) {
      std::vector<std::string> inside;
      collect(*f.atom, inside);
      if (std::find(inside.begin(), inside.end(), name) == inside.end()) {
        const int64_t v = eval_atom(*f.atom, bindings);
        for (int i = 0; i < f.power; ++i) value = multiply(value, v);
      } else if (free || f.power > 1 || f.atom->kind != Atom::Kind::Symbol) {
        return false;
      } else {
        free = true;
      }
    }
    (free ? slope : offset) = add(free ? slope : offset, value);
  }
  const int64_t target = subtract(shape[axis], offset);
  if (slope == 0) return false;
  if (target % slope != 0 || target / slope < 0) mismatch(dims, shape, axis, what, cat("no ", name, " makes ", d, " = ", shape[axis]));
  bindings.emplace(name, target / slope);
  return true;
}

}  // namespace

void unify(const Dims& dims, const Shape& shape, Bindings& bindings, std::string_view what) {
  if (dims.size() != shape.size())
    user_error(what, ": shape ", shape, " has ", shape.size(), " dimensions, ", str(dims), " has ", dims.size());
  std::vector<size_t> open;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const Dim& d = dims[axis];
    if (d.is_const()) {
      if (!d.is(shape[axis])) mismatch(dims, shape, axis, what, cat(d, " != ", shape[axis]));
    } else if (!is_single_atom(d) || !solve(dims, shape, axis, bindings, what)) {
      open.push_back(axis);  // what a plain symbol tells comes first: it may be what the others need
    }
  }
  for (size_t left = open.size() + 1; !open.empty() && open.size() < left;) {
    left = open.size();
    std::erase_if(open, [&](size_t axis) { return solve(dims, shape, axis, bindings, what); });
  }
  if (open.empty()) return;
  const Dim& d = dims[open.front()];
  std::vector<std::string> names;
  d.collect_symbols(names);
  std::erase_if(names, [&](const std::string& n) { return bindings.find(n) != bindings.end(); });
  user_error(what, ": the shape ", shape, " for ", str(dims), " leaves the symbol '", names.front(), "' open (", d, " = ",
             shape[open.front()], " at axis ", open.front(), ")\n  hint: give one input an axis that is just '", names.front(), "'");
}

}  // namespace tandem
