// opgen: makes the public op functions, their documentation and the stubs of Python's callables from the table of ops.
//   opgen header FILE | source FILE | symbol-header FILE | symbol-source FILE | docs FILE | check-docs FILE | stubs FILE
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ir/sample.hpp"
#include "ops/callable.hpp"
#include "ops/table.hpp"

namespace tandem::opgen {
namespace {

using ir::AttrKind;
using ir::OpDef;
using ir::Signature;

// --- what is generated, and how it looks in C++ --------------------------------------------------------------------------------------

std::string cpp_name(std::string_view name) {
  static const std::set<std::string_view> kTaken = {"and",    "or",    "xor",    "not",   "compl",    "default", "switch", "while",
                                                    "for",    "if",    "else",   "do",    "case",     "int",     "float",  "double",
                                                    "bool",   "char",  "long",   "short", "const",    "static",  "new",    "delete",
                                                    "return", "union", "struct", "class", "template", "operator"};
  return std::string(name) + (kTaken.contains(name) ? "_" : "");
}

std::vector<const OpDef*> generated_rows() {
  std::vector<const OpDef*> rows;
  for (const OpDef* op : ops::table().all())
    if (ops::is_callable(*op)) rows.push_back(op);
  std::ranges::sort(rows, {}, &OpDef::name);
  return rows;
}

// How many results a call has when the signature leaves it to inference: what the samples say; -1 when that varies.
int result_count(const OpDef& op) {
  if (op.signature.results.size() > 1) return static_cast<int>(op.signature.results.size());
  int count = 0;
  for (const std::string_view text : op.samples) {
    const ir::Sample sample = ir::parse_sample(op, text);
    const auto types = ir::sample_types(op, sample);
    if (types.empty()) continue;
    std::vector<ir::TensorType> in;
    for (size_t i = 0; i < sample.operands.size(); ++i) in.push_back({types[0][i], to_dims(sample.operands[i].shape)});
    const int n = static_cast<int>(ir::infer(op, in, sample.attrs).size());
    if (count != 0 && count != n) return -1;
    count = n;
  }
  return count > 1 ? -1 : 1;
}

std::string result_type(int count) {
  return count == 1 ? "Tensor" : count < 0 ? "std::vector<Tensor>" : cat("std::array<Tensor, ", count, ">");
}

std::string dtype_constant(DType t) {
  static constexpr const char* kNames[] = {"Bool", "U8", "U16", "U32", "U64", "I8", "I16", "I32", "I64", "F16", "BF16", "F32", "F64"};
  return cat("DType::", kNames[static_cast<size_t>(t)]);
}

std::string float_text(double v) {
  std::ostringstream os;
  os.precision(17);
  os << v;
  const std::string text = os.str();
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string braced(const ir::Attr& a) {
  std::string text = "{";
  const auto list = [&](const auto& items) {
    for (const auto& x : items) text += cat(text.size() > 1 ? ", " : "", x);
  };
  if (const auto* ints = std::get_if<ir::Ints>(&a)) list(*ints);
  if (const auto* floats = std::get_if<ir::Floats>(&a)) list(*floats);
  if (const auto* dims = std::get_if<Dims>(&a)) list(*dims);
  return text + "}";
}

std::string attribute_type(const Signature::Attribute& a) {
  switch (a.kind) {
    case AttrKind::Bool: return a.optional ? "std::optional<bool>" : "bool";
    case AttrKind::Int: return a.optional ? "std::optional<int64_t>" : "int64_t";
    case AttrKind::Float: return a.optional ? "std::optional<double>" : "double";
    case AttrKind::String: return a.optional ? "std::optional<std::string>" : "const std::string&";
    case AttrKind::DType: return a.optional ? "std::optional<DType>" : "DType";
    case AttrKind::Ints: return "const IntList&";
    case AttrKind::Floats: return "const FloatList&";
    default: return "const DimList&";
  }
}

std::string default_text(const Signature::Attribute& a) {
  if (std::holds_alternative<std::monostate>(a.default_value)) return "{}";
  switch (a.kind) {
    case AttrKind::Bool: return std::get<bool>(a.default_value) ? "true" : "false";
    case AttrKind::Int: return std::to_string(std::get<int64_t>(a.default_value));
    case AttrKind::Float: return float_text(std::get<double>(a.default_value));
    case AttrKind::String: return cat('"', std::get<std::string>(a.default_value), '"');
    case AttrKind::DType: return dtype_constant(std::get<DType>(a.default_value));
    default: return braced(a.default_value);
  }
}

// The attribute's value as ir::Attr, in the generated source.
std::string attribute_value(const Signature::Attribute& a) {
  const std::string n = cpp_name(a.name);
  const bool is_list = a.kind == AttrKind::Ints || a.kind == AttrKind::Floats || a.kind == AttrKind::Shape;
  const std::string values = a.kind == AttrKind::Shape ? n + ".dims()" : n + ".values()";
  if (is_list) return a.optional ? cat(n, ".given() ? ir::Attr(", values, ") : ir::Attr()") : values;
  return a.optional ? cat(n, " ? ir::Attr(*", n, ") : ir::Attr()") : n;
}

// Parameters in C++ order: what must be given first, then what may be left out.
struct Parameter {
  std::string type, name, default_value;
};
std::vector<Parameter> parameters(const OpDef& op) {
  std::vector<Parameter> all;
  for (const Signature::Parameter& o : op.signature.operands)
    if (!o.optional) all.push_back({o.variadic ? "const OperandList&" : "const Operand&", cpp_name(o.name), ""});
  for (const Signature::Attribute& a : op.signature.attributes)
    if (a.required) all.push_back({attribute_type(a), cpp_name(a.name), ""});
  for (const Signature::Parameter& o : op.signature.operands)
    if (o.optional) all.push_back({"const Operand&", cpp_name(o.name), "{}"});
  for (const Signature::Attribute& a : op.signature.attributes)
    if (!a.required) all.push_back({attribute_type(a), cpp_name(a.name), default_text(a)});
  if (op.signature.operands.empty()) all.push_back({"std::source_location", "where", "std::source_location::current()"});
  return all;
}

std::string declaration(const OpDef& op, bool with_defaults) {
  std::string text = cat(result_type(result_count(op)), " ", cpp_name(op.name), "(");
  bool is_first = true;
  for (const Parameter& p : parameters(op)) {
    text += cat(is_first ? "" : ", ", p.type, " ", p.name, with_defaults && !p.default_value.empty() ? cat(" = ", p.default_value) : "");
    is_first = false;
  }
  return text + ")";
}

// "// …" lines of at most 140 columns.
std::string comment(std::string_view doc) {
  std::istringstream words{std::string(doc)};
  std::string text, line = "//", word;
  while (words >> word) {
    if (line.size() + 1 + word.size() > 140) {
      text += line + "\n";
      line = "//";
    }
    line += " " + word;
  }
  return text + line + "\n";
}

// --- the files -------------------------------------------------------------------------------------------------------------------

std::string header() {
  std::string text =
      "// Generated by opgen from the table of ops: one function a row. docs/ops.md lists them.\n"
      "#pragma once\n#include <array>\n#include <optional>\n#include <source_location>\n#include <string>\n#include <vector>\n\n"
      "#include <tandem/operand.hpp>\n#include <tandem/tensor.hpp>\n#include <tandem/variable.hpp>\n\nnamespace tandem {\n\n";
  for (const OpDef* op : generated_rows()) text += comment(op->doc) + declaration(*op, true) + ";\n";
  return text + "\n}  // namespace tandem\n";
}

std::string definition(const OpDef& op) {
  const Signature& s = op.signature;
  const bool is_variadic = !s.operands.empty() && s.operands.back().variadic;
  // Names that end in _ cannot be those of a parameter.
  std::string text = declaration(op, false) + " {\n" + cat("  static const ir::OpDef& row_ = row(\"", op.name, "\");\n");
  std::string operands = "{";
  for (const Signature::Parameter& o : s.operands)
    if (!o.variadic) operands += cat(operands.size() > 1 ? ", &" : "&", cpp_name(o.name));
  operands += "}";
  std::string where = s.operands.empty() ? "Location::of(where)" : "{}";
  if (is_variadic) {
    text += cat("  const std::vector<const Operand*> operands_ = joined(", operands, ", ", cpp_name(s.operands.back().name), ");\n");
    where = cat("Location::of(", cpp_name(s.operands.back().name), ".where())");
  } else {
    text += s.operands.empty() ? "  const std::span<const Operand* const> operands_;\n"
                               : cat("  const Operand* const operands_[] = ", operands, ";\n");
  }
  std::string attrs = "no_attrs()";
  if (!s.attributes.empty()) {
    attrs = "ir::Attrs{";
    for (size_t i = 0; i < s.attributes.size(); ++i)
      attrs += cat(i ? ", {\"" : "{\"", s.attributes[i].name, "\", ", attribute_value(s.attributes[i]), "}");
    attrs += "}";
  }
  const int count = result_count(op);
  const std::string call = cat(count == 1 ? "call" : "call_all", "(row_, operands_, ", attrs, ", ", where, ")");
  text += count > 1 ? cat("  return first<", count, ">(", call, ");\n") : cat("  return ", call, ";\n");
  return text + "}\n";
}

std::string source() {
  std::string text =
      "// Generated by opgen from the table of ops.\n#include <tandem/ops.hpp>\n\n#include \"frontend/apply.hpp\"\n\nnamespace tandem {\n"
      "using frontend::call;\nusing frontend::call_all;\nusing frontend::no_attrs;\nusing frontend::row;\n\nnamespace {\n"
      "std::vector<const Operand*> joined(std::initializer_list<const Operand*> first, const OperandList& rest) {\n"
      "  std::vector<const Operand*> all(first);\n  for (const Operand& o : rest.operands()) all.push_back(&o);\n  return all;\n}\n"
      "template <size_t N> std::array<Tensor, N> first(std::vector<Tensor> all) {\n"
      "  std::array<Tensor, N> results;\n  for (size_t i = 0; i < N; ++i) results[i] = std::move(all.at(i));\n  return results;\n}\n"
      "}  // namespace\n\n";
  for (const OpDef* op : generated_rows()) text += definition(*op);
  return text + "\n}  // namespace tandem\n";
}

// --- the same for symbols ----------------------------------------------------------------------------------------------------------

// A key makes other random numbers at each call, which an op in a graph of layers would not get; layers such as Dropout do.
bool takes_symbols(const OpDef& op) {
  return !op.signature.operands.empty() &&
         std::ranges::none_of(op.signature.operands, [](const auto& o) { return o.type == ir::OperandClass::Key; });
}

std::string on_symbols(std::string text) {
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"OperandList", "SymbolOperandList"}, {"Operand&", "SymbolOperand&"}, {"Tensor", "Symbol"}})
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

std::string symbol_header() {
  std::string text =
      "// Generated by opgen from the table of ops: one function on symbols a row, with the meaning that it has on tensors (docs/ops.md).\n"
      "#pragma once\n#include <array>\n#include <optional>\n#include <string>\n#include <vector>\n\n"
      "#include <tandem/nn/operand.hpp>\n\nnamespace tandem::nn::ops {\n\n";
  for (const OpDef* op : generated_rows())
    if (takes_symbols(*op)) text += on_symbols(declaration(*op, true)) + ";\n";
  return text + "\n}  // namespace tandem::nn::ops\n";
}

std::string symbol_definition(const OpDef& op) {
  const Signature& s = op.signature;
  const bool is_variadic = s.operands.back().variadic;
  std::string operands;
  for (const Signature::Parameter& o : s.operands)
    if (!o.variadic) operands += cat(operands.empty() ? "&" : ", &", cpp_name(o.name));
  std::string attrs;
  for (const Signature::Attribute& a : s.attributes) attrs += cat(attrs.empty() ? "{\"" : ", {\"", a.name, "\", ", attribute_value(a), "}");
  const int count = result_count(op);
  const std::string call =
      cat("call_op(\"", op.name, "\", ",
          is_variadic ? cat("joined({", operands, "}, ", cpp_name(s.operands.back().name), ")") : cat("{", operands, "}"), ", {", attrs,
          "}", is_variadic ? cat(", ", cpp_name(s.operands.back().name), ".where()") : "", ")");
  return cat(on_symbols(declaration(op, false)), " { return ",
             count == 1  ? cat(call, ".at(0)")
             : count > 1 ? cat("first<", count, ">(", call, ")")
                         : call,
             "; }\n");
}

std::string symbol_source() {
  std::string text =
      "// Generated by opgen from the table of ops.\n#include <tandem/nn/ops.hpp>\n\n#include \"nn/op_layer.hpp\"\n\nnamespace "
      "tandem::nn::ops {\nnamespace {\n"
      "std::vector<const SymbolOperand*> joined(std::initializer_list<const SymbolOperand*> first, const SymbolOperandList& rest) {\n"
      "  std::vector<const SymbolOperand*> all(first);\n  for (const SymbolOperand& o : rest.operands()) all.push_back(&o);\n  return "
      "all;\n}\n"
      "template <size_t... I> std::array<Symbol, sizeof...(I)> taken(const std::vector<Symbol>& all, std::index_sequence<I...>) { return "
      "{all.at(I)...}; }\n"
      "template <size_t N> std::array<Symbol, N> first(const std::vector<Symbol>& all) { return taken(all, std::make_index_sequence<N>{}); "
      "}\n"
      "}  // namespace\n\n";
  for (const OpDef* op : generated_rows())
    if (takes_symbols(*op)) text += symbol_definition(*op);
  return text + "\n}  // namespace tandem::nn::ops\n";
}

std::string gradient_text(const OpDef& op) {
  if (op.has(ir::kNotDifferentiable)) return "It has no gradient.";
  if (op.has(ir::kZeroGradient)) return "Its gradient is zero.";
  return "";
}

std::string docs() {
  std::string text =
      "# Ops\n\n"
      "Made from the table of ops by `opgen`; do not edit. Each is a function in `<tandem/ops.hpp>`. In signatures, operands come before "
      "the\n"
      "semicolon and attributes behind it; `?` may be left out, `...` is any number. Operands of class any, number, float, int and boolean "
      "are\n"
      "promoted to one element type; in C++ what must be given comes before what may be left out.\n\n";
  for (const OpDef* op : generated_rows()) {
    text += cat("## ", op->name, "\n\n`", op->name, op->sig, "`\n\n", op->doc);
    const std::string gradient = gradient_text(*op);
    text += cat(gradient.empty() ? "" : " ", gradient, "\n\n```cpp\n", declaration(*op, true), ";\n```\n\n");
  }
  text.pop_back();
  return text;
}

// --- Python's stubs ------------------------------------------------------------------------------------------------------------------

std::string python_type(AttrKind kind) {
  switch (kind) {
    case AttrKind::Bool: return "bool";
    case AttrKind::Int: return "int";
    case AttrKind::Float: return "float";
    case AttrKind::String: return "str";
    case AttrKind::DType: return "_DTypeLike";
    case AttrKind::Ints: return "int | Sequence[int]";
    case AttrKind::Floats: return "float | Sequence[float]";
    case AttrKind::Shape: return "_ShapeLike";
    default: internal_error("opgen: attributes of kind ", name(kind), " cannot be given from Python");
  }
}

std::string python_default(const Signature::Attribute& a) {
  if (std::holds_alternative<std::monostate>(a.default_value)) return "None";
  switch (a.kind) {
    case AttrKind::Bool: return std::get<bool>(a.default_value) ? "True" : "False";
    case AttrKind::DType: return cat('"', std::get<DType>(a.default_value), '"');
    case AttrKind::Ints:
    case AttrKind::Floats:
    case AttrKind::Shape: {
      const std::string list = braced(a.default_value);
      return cat("[", list.substr(1, list.size() - 2), "]");
    }
    default: return default_text(a);
  }
}

std::string python_result(const OpDef& op) {
  if (op.name == "split" || op.name == "unstack") return "tuple[Tensor, ...]";  // also of one
  const int count = result_count(op);
  if (count < 0) return "Tensor | tuple[Tensor, ...]";
  if (count == 1) return "Tensor";
  std::string text = "tuple[Tensor";
  for (int i = 1; i < count; ++i) text += ", Tensor";
  return text + "]";
}

// Python takes operands in their order, then attributes; what must be given behind something that need not be is given by name.
std::string stub(const OpDef& op) {
  std::string text = cat("def ", op.name, "(");
  bool was_optional = false, by_name = false;
  const auto add = [&](const std::string& parameter, bool is_optional) {
    if (was_optional && !is_optional && !by_name) {
      text += ", *";
      by_name = true;
    }
    was_optional |= is_optional;
    text += cat(text.back() == '(' ? "" : ", ", parameter);
  };
  for (const Signature::Parameter& o : op.signature.operands) {
    const char* type = o.variadic ? "Sequence[_TensorLike]" : "_TensorLike";
    add(cat(o.name, ": ", type, o.optional ? " | None = None" : ""), o.optional);
  }
  for (const Signature::Attribute& a : op.signature.attributes) {
    const std::string type = python_type(a.kind) + (a.optional ? " | None" : "");
    add(cat(a.name, ": ", type, a.required ? "" : cat(" = ", python_default(a))), !a.required);
  }
  text += cat(") -> ", python_result(op), ":\n    r\"\"\"", op.name, op.sig, "\n\n    ");
  for (const char c : op.doc) text += c == '\n' ? std::string("\n    ") : std::string(1, c);
  return text + "\n    \"\"\"\n\n";
}

std::string stubs() {
  std::string text =
      "# Generated by opgen from the table of ops: one function a row. docs/ops.md lists them.\n"
      "from collections.abc import Sequence\nfrom typing import Any\n\nfrom numpy.typing import ArrayLike\n\n"
      "from tandem._core import Dim, Tensor, Variable\n\n_TensorLike = Tensor | Variable | ArrayLike\n_DTypeLike = Any\n"
      "_ShapeLike = int | Dim | Tensor | Sequence[int | Dim]\n\n";
  for (const OpDef* op : generated_rows()) text += stub(*op);
  text.pop_back();
  return text;
}

std::string read_file(const char* path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

int write_file(const char* path, const std::string& text) {
  if (read_file(path) == text) return 0;  // an unchanged file keeps its time, and what depends on it is not built again
  std::ofstream out(path);
  out << text;
  out.close();
  if (out) return 0;
  std::cerr << "opgen: cannot write " << path << "\n";
  return 1;
}

int run(const std::string& what, const char* path) {
  if (what == "header") return write_file(path, header());
  if (what == "source") return write_file(path, source());
  if (what == "symbol-header") return write_file(path, symbol_header());
  if (what == "symbol-source") return write_file(path, symbol_source());
  if (what == "docs") return write_file(path, docs());
  if (what == "stubs") return write_file(path, stubs());
  if (what == "check-docs") {
    if (read_file(path) == docs()) return 0;
    std::cerr << "opgen: " << path << " is stale; make it with: opgen docs " << path << "\n";
    return 1;
  }
  std::cerr << "usage: opgen header|source|symbol-header|symbol-source|docs|check-docs|stubs FILE\n";
  return 2;
}

}  // namespace
}  // namespace tandem::opgen

int main(int argc, char** argv) try {
  return tandem::opgen::run(argc == 3 ? argv[1] : "", argc == 3 ? argv[2] : "");
} catch (const std::exception& e) {
  std::cerr << "opgen: " << e.what() << "\n";
  return 1;
}
