// Reads the text of a Dim back.
#include <tandem/dim.hpp>

#include "base/text.hpp"

namespace tandem {
namespace {

constexpr int kMaxNesting = 64;  // of parentheses: a parser must not run out of stack

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}
  Dim all() {
    Dim d = expression(0);
    peek();  // skips spaces
    if (position_ != text_.size()) fail("an operator or the end");
    return d;
  }

 private:
  // expression: [-] term { (+|-) term };  term: factor { * factor };  factor: [-] number | name | f(…) | ( expression )
  Dim expression(int depth) {
    if (depth > kMaxNesting) user_error("dim: '", text_.substr(0, 40), "…' is nested more than ", kMaxNesting, " deep");
    Dim d;
    if (peek() == '-' && !(position_ + 1 < text_.size() && is_digit(text_[position_ + 1]))) {
      ++position_;
      d = Dim(0) - term(depth);
    } else {
      d = term(depth);
    }
    while (peek() == '+' || peek() == '-') {
      const bool plus = text_[position_++] == '+';
      const Dim t = term(depth);
      d = plus ? d + t : d - t;
    }
    return d;
  }

  Dim term(int depth) {
    Dim d = factor(depth);
    while (accept('*')) d = d * factor(depth);
    return d;
  }

  Dim factor(int depth) {
    const char c = peek();
    if (is_digit(c) || c == '-') return number();
    if (is_letter(c)) return named(depth);
    if (!accept('(')) fail("a number, a name or '('");
    Dim d = expression(depth + 1);
    expect(')');
    return d;
  }

  Dim number() {
    const bool minus = accept('-');
    if (!is_digit(peek())) fail("a digit");
    int64_t value = 0;
    while (position_ < text_.size() && is_digit(text_[position_])) {  // negative all along, because that side holds one more
      const int digit = text_[position_++] - '0';
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, digit, &value))
        user_error("dim: a number in '", text_, "' does not fit in 64 bits");
    }
    return minus ? Dim(value) : Dim(0) - Dim(value);
  }

  Dim named(int depth) {
    const size_t start = position_;
    while (position_ < text_.size() && (is_letter(text_[position_]) || is_digit(text_[position_]))) ++position_;
    const std::string_view name = text_.substr(start, position_ - start);
    if (peek() != '(') return Dim::symbol(name);
    if (name != "floor" && name != "min" && name != "max") fail("floor, min or max before '('");
    ++position_;
    Dim d = expression(depth + 1);
    if (name == "floor") {
      expect('/');
      d = floor_div(d, factor(depth + 1));
    } else {
      if (peek() != ',') fail("','");
      while (accept(',')) d = name == "min" ? min(d, expression(depth + 1)) : max(d, expression(depth + 1));
    }
    expect(')');
    return d;
  }

  char peek() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(cat("'", c, "'"));
  }
  [[noreturn]] void fail(std::string_view expected) {
    user_error("dim: cannot read '", text_, "': expected ", expected, " at position ", position_);
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

Dim parse_dim(std::string_view text) { return Parser(text).all(); }

}  // namespace tandem
