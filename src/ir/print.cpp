// The text of a graph.
#include "ir/print.hpp"

#include <algorithm>

#include "ir/op.hpp"

namespace tandem::ir {
namespace {

bool is_bare_name(std::string_view s) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_word = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !s.empty() && is_letter(s[0]) && std::ranges::all_of(s, is_word);
}

std::string value_text(Value v) { return v.out == 0 ? cat('%', v.node) : cat('%', v.node, '.', v.out); }

std::string values_text(const std::vector<Value>& values) {
  std::string text;
  for (Value v : values) text += (text.empty() ? "" : ", ") + value_text(v);
  return text;
}

// A comment lasts to the end of its line, whatever the file is called.
std::string location_text(const Location& where) {
  if (!where) return {};
  std::string text = where.str();
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 32; }, '?');
  return "  # at " + text;
}

class Printer {
 public:
  std::string text;

  void graph(const Graph& g, const std::string& indent) {
    text += "graph";
    if (!g.name.empty()) text += ' ' + (is_bare_name(g.name) ? g.name : quoted(g.name, '"'));
    inputs(g, indent);
    text += " {\n";
    for (size_t i = 0; i < g.nodes.size(); ++i)
      if (g.nodes[i].op->name != "input") node(i, g.nodes[i], indent + "  ");
    text += indent + "  return";
    if (!g.outputs.empty()) text += ' ' + values_text(g.outputs);
    text += '\n' + indent + '}';
  }

 private:
  // On one line, unless there are locations to be kept.
  void inputs(const Graph& g, const std::string& indent) {
    const bool has_lines = std::ranges::any_of(g.inputs, [&](Value v) { return bool(g.node(v).location); });
    const std::string line = '\n' + indent + "  ";
    text += '(';
    for (size_t i = 0; i < g.inputs.size(); ++i) {
      const Node& n = g.node(g.inputs[i]);
      if (has_lines) text += line;
      text += cat(value_text(g.inputs[i]), ": ", g.type(g.inputs[i]));
      if (const Attr* name = n.attrs.find("name"); name && !std::get<std::string>(*name).empty())
        text += ' ' + quoted(std::get<std::string>(*name), '"');
      if (i + 1 < g.inputs.size()) text += has_lines ? "," : ", ";
      text += location_text(n.location);
    }
    if (has_lines) text += '\n' + indent;
    text += ')';
  }

  void node(size_t index, const Node& n, const std::string& indent) {
    text += cat(indent, '%', index, " = ", n.op->name, '(', values_text(n.inputs));
    const char* separator = "; ";
    for (const Attrs::Entry& e : n.attrs.entries()) {
      text += separator + e.name + '=';
      attribute(e.value, indent);
      separator = ", ";
    }
    text += ") :";
    for (size_t i = 0; i < n.types.size(); ++i) text += (i == 0 ? " " : ", ") + n.types[i].str();
    if (n.types.empty()) text += " ()";
    if (n.device >= 0) text += cat(" on ", n.device);
    text += location_text(n.location) + '\n';
  }

  void attribute(const Attr& a, const std::string& indent) {
    const auto* graphs = std::get_if<Graphs>(&a);
    if (!graphs || graphs->empty()) {
      text += str(a);
      return;
    }
    text += '[';
    for (size_t i = 0; i < graphs->size(); ++i) {
      text += (i == 0 ? "\n" : ",\n") + indent + "  ";
      graph(*(*graphs)[i], indent + "  ");
    }
    text += '\n' + indent + ']';
  }
};

}  // namespace

std::string print(const Graph& g) {
  Printer p;
  p.graph(g, "");
  return p.text + '\n';
}

}  // namespace tandem::ir
