// Cursor: reads the small languages of this folder (signatures, samples, graph text) from left to right.
// A mistake is a SyntaxError with its place; each language turns it into its own kind of error.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/op.hpp"

namespace tandem::ir {

struct SyntaxError {
  size_t position;
  std::string message;
};

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  size_t position() const { return position_; }
  std::string_view rest() const { return text_.substr(position_); }
  void skip_space();  // also "# comments" up to the end of the line
  bool at_end() const;
  char peek() const;                    // the next character that is no space; '\0' at the end
  bool accept(std::string_view token);  // a word is only taken as a whole; stays where it is otherwise
  void expect(std::string_view token);
  std::string_view identifier();  // letters, digits, _ ; does not begin with a digit
  int32_t index();                // digits, right here
  int64_t integer();
  double number();  // also inf, -inf, nan
  std::string string(char quote);
  DType dtype();
  Shape shape();              // [2,3]
  Dims dims();                // [b,floor(b/2),3]
  TensorType type();          // float32[b,3]
  Literal literal();          // what str(Literal) printed
  Attr value(AttrKind kind);  // all kinds but graphs; one number is also a list of one
  [[noreturn]] void fail(std::string message) const;

 private:
  Cursor skipped() const;
  Dim dim();
  std::string_view number_token();
  template <class T, class F> std::vector<T> list(F item);
  std::vector<std::byte> number_bytes(DType t);
  std::vector<std::byte> hex_bytes();
  void one_number(DType t, std::vector<std::byte>& bytes);

  std::string_view text_;
  size_t position_ = 0;
};

// "line 2, column 7": where a place in a text is, for messages.
std::string line_and_column(std::string_view text, size_t position);

}  // namespace tandem::ir
