// Signatures: the text of an op's row read into operands, attributes and results.
#include "ir/cursor.hpp"
#include "ir/op.hpp"

#include <algorithm>
#include <array>

namespace tandem::ir {
namespace {

constexpr std::array<std::string_view, 9> kClassNames = {"any", "number", "float", "int", "boolean", "own", "bool", "index", "key"};
constexpr std::array<std::string_view, 11> kKindNames = {"bool",   "int",   "float",  "string",  "dtype",   "ints",
                                                         "floats", "shape", "graphs", "literal", "function"};

template <class E, size_t N> E one_of(Cursor& c, const std::array<std::string_view, N>& names, std::string_view what) {
  for (size_t i = 0; i < N; ++i)
    if (c.accept(names[i])) return static_cast<E>(i);
  c.fail(cat("a known ", what, " expected"));
}

class SignatureParser {
 public:
  explicit SignatureParser(std::string_view text) : cursor_(text) {}

  Signature parse() {
    cursor_.expect("(");
    if (cursor_.peek() != ';' && cursor_.peek() != ')') {
      do operand();
      while (cursor_.accept(","));
    }
    if (cursor_.accept(";")) {
      do attribute();
      while (cursor_.accept(","));
    }
    cursor_.expect(")");
    cursor_.expect("->");
    do result();
    while (cursor_.accept(","));
    if (!cursor_.at_end()) cursor_.fail("the end of the signature expected");
    return std::move(signature_);
  }

 private:
  std::string new_name() {
    const std::string found(cursor_.identifier());
    const auto is_found = [&](const auto& entry) { return entry.name == found; };
    if (std::ranges::any_of(signature_.operands, is_found) || std::ranges::any_of(signature_.attributes, is_found))
      cursor_.fail(cat("'", found, "' is there twice"));
    return found;
  }

  void operand() {
    Signature::Parameter o;
    o.name = new_name();
    cursor_.expect(":");
    o.type = one_of<OperandClass>(cursor_, kClassNames, "operand class");
    o.variadic = cursor_.accept("...");
    o.optional = !o.variadic && cursor_.accept("?");
    if (!signature_.operands.empty()) {
      const Signature::Parameter& last = signature_.operands.back();
      if (last.variadic) cursor_.fail(cat("nothing may follow '", last.name, "...'"));
      if (last.optional && !o.optional) cursor_.fail(cat("only optional operands may follow '", last.name, "'"));
    }
    signature_.operands.push_back(std::move(o));
  }

  void attribute() {
    Signature::Attribute a;
    a.name = new_name();
    cursor_.expect(":");
    a.kind = one_of<AttrKind>(cursor_, kKindNames, "attribute kind");
    a.optional = cursor_.accept("?");
    a.required = !a.optional;
    if (cursor_.accept("=")) {
      a.required = false;
      if (!(a.optional && cursor_.accept("none"))) a.default_value = cursor_.value(a.kind);
    }
    signature_.attributes.push_back(std::move(a));
  }

  void result() {
    const std::string word(cursor_.identifier());
    if (word != "same" && word != "custom" && !parse_dtype(word))
      cursor_.fail(cat("a result is same, custom or an element type, found '", word, "'"));
    signature_.results.push_back(word);
  }

  Cursor cursor_;
  Signature signature_;
};

}  // namespace

std::string_view name(OperandClass c) { return kClassNames[static_cast<size_t>(c)]; }
std::string_view name(AttrKind k) { return kKindNames[static_cast<size_t>(k)]; }

Signature parse_signature(std::string_view text) {
  try {
    return SignatureParser(text).parse();
  } catch (const SyntaxError& e) {
    internal_error("signature \"", text, "\": ", e.message, " at column ", e.position + 1);
  }
}

bool accepts(OperandClass c, DType t) {
  switch (c) {
    case OperandClass::Any:
    case OperandClass::Own: return true;
    case OperandClass::Number: return t != DType::Bool;
    case OperandClass::Float: return is_float(t);
    case OperandClass::Int: return is_int(t);
    case OperandClass::Boolean: return t == DType::Bool || is_int(t);
    case OperandClass::Bool: return t == DType::Bool;
    case OperandClass::Index: return t == DType::I32 || t == DType::I64;
    case OperandClass::Key: return t == DType::U32;
  }
  return false;
}

}  // namespace tandem::ir
