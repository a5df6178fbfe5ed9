// Tokens and values of the small languages; every read is checked against the end of the text.
#include "ir/cursor.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/half.hpp"

namespace tandem::ir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Extents nest only through a few operators; more is not ours and could only exhaust the stack of whoever parses it.
constexpr int kDeepestDim = 64;
constexpr size_t kLongestDim = 1024;

}  // namespace

void Cursor::fail(std::string message) const { throw SyntaxError{position_, std::move(message)}; }

void Cursor::skip_space() {
  while (position_ < text_.size()) {
    if (text_[position_] == '#') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (is_space(text_[position_])) {
      ++position_;
    } else {
      return;
    }
  }
}

bool Cursor::at_end() const { return skipped().position_ == text_.size(); }

Cursor Cursor::skipped() const {
  Cursor c = *this;
  c.skip_space();
  return c;
}

char Cursor::peek() const {
  const Cursor c = skipped();
  return c.position_ < text_.size() ? text_[c.position_] : '\0';
}

bool Cursor::accept(std::string_view token) {
  const size_t before = position_;
  skip_space();
  const size_t end = position_ + token.size();
  const bool is_part_of_word = is_word(token.back()) && end < text_.size() && is_word(text_[end]);
  const bool found = rest().starts_with(token) && !is_part_of_word;
  position_ = found ? end : before;
  return found;
}

void Cursor::expect(std::string_view token) {
  if (accept(token)) return;
  skip_space();
  if (position_ == text_.size()) fail(cat("'", token, "' expected, the text ends"));
  fail(cat("'", token, "' expected, found ", quoted(rest().substr(0, 1))));
}

std::string_view Cursor::identifier() {
  skip_space();
  size_t end = position_;
  while (end < text_.size() && is_word(text_[end])) ++end;
  if (end == position_ || is_digit(text_[position_])) fail("a name expected");
  const std::string_view word = text_.substr(position_, end - position_);
  position_ = end;
  return word;
}

// The longest number here, but "2..5" is the number 2 and a range.
std::string_view Cursor::number_token() {
  skip_space();
  size_t end = position_;
  const auto at = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  const auto digits = [&] {
    while (is_digit(at(end))) ++end;
  };
  if (at(end) == '-' || at(end) == '+') ++end;
  for (std::string_view word : {"inf", "nan"})
    if (text_.substr(end).starts_with(word) && !is_word(at(end + 3))) return text_.substr(position_, end + 3 - position_);
  digits();
  if (at(end) == '.' && at(end + 1) != '.') {
    ++end;
    digits();
  }
  if (at(end) == 'e' || at(end) == 'E') {
    size_t exponent = end + 1;
    if (at(exponent) == '-' || at(exponent) == '+') ++exponent;
    if (is_digit(at(exponent))) {
      end = exponent;
      digits();
    }
  }
  return text_.substr(position_, end - position_);
}

int64_t Cursor::integer() {
  const std::string_view token = number_token();
  std::string_view digits = token;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  int64_t v = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) fail("an integer of at most 64 bits expected");
  position_ += token.size();
  return v;
}

int32_t Cursor::index() {
  size_t end = position_;
  while (end < text_.size() && is_digit(text_[end])) ++end;
  int32_t v = 0;
  if (end == position_ || std::from_chars(&text_[position_], text_.data() + end, v).ec != std::errc()) fail("a value's number expected");
  position_ = end;
  return v;
}

double Cursor::number() {
  const std::string_view token = number_token();
  std::string_view digits = token;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double v = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) fail("a number expected");
  position_ += token.size();
  return v;
}

std::string Cursor::string(char quote) {
  expect(std::string_view(&quote, 1));
  std::string out;
  while (position_ < text_.size() && text_[position_] != quote) {
    char c = text_[position_++];
    if (c == '\n') fail("a string ends on the line it began on");
    if (c == '\\') {
      if (position_ == text_.size()) fail("the text ends inside a string");
      c = text_[position_++];
      if (c == 'x') {
        const std::string_view code = rest().substr(0, 2);
        if (code.size() < 2 || hex_digit(code[0]) < 0 || hex_digit(code[1]) < 0) fail("two hexadecimal digits expected after \\x");
        c = static_cast<char>(hex_digit(code[0]) * 16 + hex_digit(code[1]));
        position_ += 2;
      } else if (c != '\\' && c != '\'' && c != '"') {
        fail("unknown escape in a string");
      }
    }
    out += c;
  }
  if (position_ == text_.size()) fail("the text ends inside a string");
  ++position_;
  return out;
}

DType Cursor::dtype() {
  skip_space();
  const size_t start = position_;
  const std::string_view word = identifier();
  if (const auto t = parse_dtype(word)) return *t;
  position_ = start;
  fail(cat("an element type expected, found ", quoted(word)));
}

template <class T, class F> std::vector<T> Cursor::list(F item) {
  std::vector<T> items;
  expect("[");
  if (accept("]")) return items;
  do items.push_back(item());
  while (accept(","));
  expect("]");
  return items;
}

Shape Cursor::shape() {
  const auto extents = list<int64_t>([&] { return integer(); });
  if (extents.size() > kMaxRank) fail(cat("at most ", kMaxRank, " dimensions, found ", extents.size()));
  for (int64_t e : extents)
    if (e < 0) fail(cat("extent ", e, " is negative"));
  return Shape(extents);
}

// The text of one extent goes as far as the next comma or bracket that is not inside parentheses.
Dim Cursor::dim() {
  skip_space();
  size_t end = position_;
  for (int depth = 0; end < text_.size(); ++end) {
    const char c = text_[end];
    if (c == '(' && ++depth > kDeepestDim) fail("an extent with too many parentheses");
    if (c == ')') --depth;
    if (c == ']' || c == '\n' || (c == ',' && depth <= 0)) break;
  }
  const std::string_view text = text_.substr(position_, end - position_);
  if (text.size() > kLongestDim) fail(cat("an extent is written in at most ", kLongestDim, " characters, found ", text.size()));
  try {
    const Dim d = parse_dim(text);
    position_ = end;
    return d;
  } catch (const UserError& e) {
    fail(e.what());
  }
}

Dims Cursor::dims() {
  return list<Dim>([&] { return dim(); });
}

TensorType Cursor::type() {
  const DType t = dtype();
  return {t, dims()};
}

void Cursor::one_number(DType t, std::vector<std::byte>& bytes) {
  const size_t at = bytes.size();
  bytes.resize(at + size_of(t));
  std::byte* element = &bytes[at];
  if (t == DType::Bool) {
    const bool is_true = accept("true");
    if (!is_true) expect("false");
    store_number(t, element, is_true);
  } else if (t == DType::U64 && peek() != '-') {
    const std::string_view token = number_token();
    uint64_t v = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), v);
    if (token.empty() || error != std::errc() || end != token.data() + token.size()) fail("an integer of at most 64 bits expected");
    position_ += token.size();
    std::memcpy(element, &v, sizeof v);
  } else if (is_int(t)) {
    const int64_t v = integer();
    const bool fits = dispatch(t, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        return std::in_range<T>(v);
      else
        return false;
    });
    if (!fits) fail(cat(v, " does not fit in ", name(t)));
    std::memcpy(element, Literal::scalar_int(t, v).bytes->data(), size_of(t));
  } else {
    store_number(t, element, number());
  }
}

std::vector<std::byte> Cursor::number_bytes(DType t) {
  std::vector<std::byte> bytes;
  expect("{");
  if (accept("}")) return bytes;
  do one_number(t, bytes);
  while (accept(","));
  expect("}");
  return bytes;
}

std::vector<std::byte> Cursor::hex_bytes() {
  expect("'");
  std::vector<std::byte> bytes;
  for (; position_ + 1 < text_.size() && hex_digit(text_[position_]) >= 0; position_ += 2) {
    const int low = hex_digit(text_[position_ + 1]);
    if (low < 0) fail("an even number of hexadecimal digits expected");
    bytes.push_back(static_cast<std::byte>(hex_digit(text_[position_]) * 16 + low));
  }
  expect("'");
  return bytes;
}

Literal Cursor::literal() {
  const DType t = dtype();
  const Shape s = shape();
  const std::vector<std::byte> bytes = accept("x") ? hex_bytes() : number_bytes(t);
  size_t expected = 0;
  try {
    expected = byte_size(s, t);
  } catch (const UserError& e) {
    fail(e.what());
  }
  if (bytes.size() != expected) fail(cat("a constant of ", name(t), s, " has ", expected, " bytes, found ", bytes.size()));
  if (t == DType::Bool && std::ranges::any_of(bytes, [](std::byte b) { return std::to_integer<int>(b) > 1; }))
    fail("a bool is stored as 00 or 01");
  return Literal::of(t, s, bytes.data());
}

Attr Cursor::value(AttrKind kind) {
  const auto is_list = [&] { return peek() == '['; };
  switch (kind) {
    case AttrKind::Bool:
      if (accept("true")) return true;
      expect("false");
      return false;
    case AttrKind::Int: return integer();
    case AttrKind::Float: return number();
    case AttrKind::String: return string('\'');
    case AttrKind::DType: return dtype();
    case AttrKind::Ints: return is_list() ? list<int64_t>([&] { return integer(); }) : Ints{integer()};
    case AttrKind::Floats: return is_list() ? list<double>([&] { return number(); }) : Floats{number()};
    case AttrKind::Shape: return is_list() ? dims() : Dims{Dim(integer())};
    case AttrKind::Literal: return literal();
    case AttrKind::Graphs: fail("graphs cannot be written here");
    case AttrKind::Function: break;
  }
  fail("functions of the host program cannot be written as text");
}

std::string line_and_column(std::string_view text, size_t position) {
  const std::string_view before = text.substr(0, position);
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 == 0: the first line
  return cat("line ", line, ", column ", column);
}

}  // namespace tandem::ir
