// Graph text read through a Builder.
#include "ir/parse.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "ir/builder.hpp"
#include "ir/cursor.hpp"

namespace tandem::ir {
namespace {

constexpr int kDeepestGraph = 64;

// File names of locations live as long as the process: a Location never owns its name.
const char* interned(std::string_view text) {
  static std::mutex mutex;
  static auto& names = *new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  const auto at = names.find(text);
  return (at != names.end() ? at : names.emplace(text).first)->c_str();
}

// "model.cpp:42" or "model.cpp".
Location location_of(std::string_view text) {
  const size_t colon = text.rfind(':');
  uint32_t line = 0;
  if (colon != std::string_view::npos && colon != 0) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, line);
    if (error == std::errc() && stop == end) return {interned(text.substr(0, colon)), line};
  }
  return {interned(text), 0};
}

class GraphParser {
 public:
  GraphParser(const OpTable& table, Cursor& cursor, int depth) : table_(table), cursor_(cursor), depth_(depth), builder_(table) {
    if (depth > kDeepestGraph) cursor.fail(cat("graphs are nested more than ", kDeepestGraph, " deep"));
  }

  Graph parse() {
    cursor_.expect("graph");
    std::string name;
    if (cursor_.peek() == '"')
      name = cursor_.string('"');
    else if (cursor_.peek() != '(')
      name = cursor_.identifier();
    header();
    cursor_.expect("{");
    while (cursor_.peek() == '%') node();
    cursor_.expect("return");
    std::vector<Value> outputs;
    make_inputs(std::numeric_limits<int32_t>::max());
    if (cursor_.peek() == '%') outputs = values();
    cursor_.expect("}");
    return builder_.finish(std::move(outputs), std::move(name));
  }

 private:
  struct Input {
    int32_t id;
    TensorType type;
    std::string name;
    Location location;
    size_t position;
  };

  int32_t id() {
    cursor_.expect("%");
    return cursor_.index();
  }

  void check_next(int32_t id, int32_t& last) {
    if (id <= last) cursor_.fail(cat("%", id, " follows %", last, ", numbers must increase"));
    last = id;
  }

  // What stands behind "# at" on the rest of this line.
  Location trailing_location() {
    std::string_view line = cursor_.rest();
    line = line.substr(0, line.find('\n'));
    constexpr std::string_view kMark = "# at ";
    const size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos || !line.substr(start).starts_with(kMark)) return {};
    std::string_view where = line.substr(start + kMark.size());
    while (!where.empty() && (where.back() == '\r' || where.back() == ' ')) where.remove_suffix(1);
    return where.empty() ? Location{} : location_of(where);
  }

  void header() {
    cursor_.expect("(");
    if (cursor_.accept(")")) return;
    int32_t last = -1;
    bool has_more = true;
    while (has_more) {
      Input in;
      cursor_.skip_space();
      in.position = cursor_.position();
      in.id = id();
      check_next(in.id, last);
      cursor_.expect(":");
      in.type = cursor_.type();
      if (cursor_.peek() == '"') in.name = cursor_.string('"');
      has_more = cursor_.accept(",");
      in.location = trailing_location();
      inputs_.push_back(std::move(in));
    }
    cursor_.expect(")");
  }

  // An error of the Builder gets the place in the text in front.
  template <class F> decltype(auto) at(size_t position, F f) {
    try {
      return f();
    } catch (const UserError& e) {
      throw SyntaxError{position, e.what()};
    }
  }

  // Inputs may stand between other nodes; their numbers say where.
  void make_inputs(int32_t before) {
    for (; next_input_ < inputs_.size() && inputs_[next_input_].id < before; ++next_input_) {
      const Input& in = inputs_[next_input_];
      builder_.location = in.location;
      made_[in.id] = {at(in.position, [&] { return builder_.input(in.type, in.name); })};
    }
  }

  Value value() {
    cursor_.skip_space();
    const size_t position = cursor_.position();
    const int32_t n = id();
    const size_t out = cursor_.rest().starts_with('.') ? (cursor_.expect("."), static_cast<size_t>(cursor_.index())) : 0;
    const auto found = made_.find(n);
    if (found == made_.end()) throw SyntaxError{position, cat("%", n, " is not there yet")};
    if (out >= found->second.size())
      throw SyntaxError{position, cat("%", n, " has ", found->second.size(), " results, asked for number ", out)};
    return found->second[out];
  }

  std::vector<Value> values() {
    std::vector<Value> all;
    do all.push_back(value());
    while (cursor_.accept(","));
    return all;
  }

  Attr attribute_value(const Signature::Attribute& a) {
    if (a.optional && cursor_.accept("none")) return {};
    if (a.kind != AttrKind::Graphs) return cursor_.value(a.kind);
    Graphs graphs;
    cursor_.expect("[");
    if (cursor_.accept("]")) return graphs;
    do graphs.push_back(std::make_shared<const Graph>(GraphParser(table_, cursor_, depth_ + 1).parse()));
    while (cursor_.accept(","));
    cursor_.expect("]");
    return graphs;
  }

  Attrs attributes(const OpDef& op) {
    Attrs attrs;
    do {
      const std::string name(cursor_.identifier());
      const auto known = std::ranges::find(op.signature.attributes, name, &Signature::Attribute::name);
      if (known == op.signature.attributes.end()) cursor_.fail(cat(op.name, " has no attribute '", name, "'"));
      if (attrs.find(name)) cursor_.fail(cat("attribute '", name, "' is there twice"));
      cursor_.expect("=");
      attrs.set(name, attribute_value(*known));
    } while (cursor_.accept(","));
    return attrs;
  }

  std::vector<TensorType> types() {
    std::vector<TensorType> all;
    if (cursor_.accept("()")) return all;
    do all.push_back(cursor_.type());
    while (cursor_.accept(","));
    return all;
  }

  // "on 1" behind the types.
  int32_t device() {
    if (!cursor_.accept("on")) return -1;
    cursor_.skip_space();
    return cursor_.index();
  }

  void node() {
    const int32_t n = id();
    make_inputs(n);
    check_next(n, last_node_);
    if (made_.contains(n)) cursor_.fail(cat("%", n, " is there twice"));
    cursor_.expect("=");
    cursor_.skip_space();
    const size_t start = cursor_.position();
    const std::string_view name = cursor_.identifier();
    if (name == "input") throw SyntaxError{start, "inputs are written in the graph's first line"};
    const OpDef& op = at(start, [&]() -> const OpDef& { return table_.at(name); });
    cursor_.expect("(");
    std::vector<Value> in;
    if (cursor_.peek() == '%') in = values();
    Attrs attrs;
    if (cursor_.accept(";")) attrs = attributes(op);
    cursor_.expect(")");
    cursor_.expect(":");
    cursor_.skip_space();
    const size_t types_start = cursor_.position();
    const std::vector<TensorType> written = types();
    builder_.device = device();
    builder_.location = trailing_location();
    std::vector<Value> results = at(start, [&] { return builder_.node(op, in, attrs); });
    check_types(op, results, written, types_start);
    made_[n] = std::move(results);
  }

  void check_types(const OpDef& op, const std::vector<Value>& results, const std::vector<TensorType>& written, size_t position) {
    if (results.size() != written.size())
      throw SyntaxError{position, cat(op.name, " has ", results.size(), " results, the text has ", written.size())};
    for (size_t i = 0; i < results.size(); ++i)
      if (!(builder_.type(results[i]) == written[i]))
        throw SyntaxError{position, cat(op.name, " gives ", builder_.type(results[i]), " as result ", i, ", the text says ", written[i])};
  }

  const OpTable& table_;
  Cursor& cursor_;
  int depth_;
  Builder builder_;
  std::vector<Input> inputs_;
  size_t next_input_ = 0;
  int32_t last_node_ = -1;
  std::map<int32_t, std::vector<Value>> made_;
};

}  // namespace

Graph parse(const OpTable& table, std::string_view text) {
  Cursor cursor(text);
  try {
    Graph g = GraphParser(table, cursor, 0).parse();
    if (!cursor.at_end()) cursor.fail("the end of the text expected");
    return g;
  } catch (const SyntaxError& e) {
    user_error("graph text, ", line_and_column(text, e.position), ": ", e.message);
  }
}

}  // namespace tandem::ir
