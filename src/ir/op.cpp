// The op table, and what is derived from a row: completed attributes, result types, loops.
#include "ir/op.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "base/names.hpp"

namespace tandem::ir {

HostFunction::HostFunction(std::string name, Call call)
    : number_([] {
        static std::atomic<uint64_t> numbers{0};
        return ++numbers;
      }()),
      name_(std::move(name)),
      call_(std::move(call)) {}

namespace {

// --- near names ------------------------------------------------------------------------------------------------------------

// "\n  hint: did you mean 'matmul' or 'max'?", or nothing when nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  std::vector<std::pair<size_t, std::string_view>> near;
  for (std::string_view k : known)
    if (const size_t d = edit_distance(word, k); d <= std::max<size_t>(1, word.size() / 3)) near.emplace_back(d, k);
  std::ranges::sort(near);
  if (near.empty()) return {};
  std::string text = "\n  hint: did you mean ";
  for (size_t i = 0; i < std::min<size_t>(near.size(), 3); ++i) text += cat(i == 0 ? "'" : " or '", near[i].second, "'");
  return text + "?";
}

// --- attributes ------------------------------------------------------------------------------------------------------------

template <class To, class From> std::vector<To> converted(const std::vector<From>& v) { return {v.begin(), v.end()}; }

// The value as the kind holds it: one number stands for a list of one, a list of numbers for a shape. None where it does not fit.
Attr as_kind(AttrKind kind, const Attr& v) {
  const auto* i = std::get_if<int64_t>(&v);
  const auto* d = std::get_if<double>(&v);
  const auto* ints = std::get_if<Ints>(&v);
  switch (kind) {
    case AttrKind::Bool: return std::holds_alternative<bool>(v) ? v : Attr{};
    case AttrKind::Int: return i ? v : Attr{};
    case AttrKind::Float: return d ? v : i ? Attr(static_cast<double>(*i)) : Attr{};
    case AttrKind::String: return std::holds_alternative<std::string>(v) ? v : Attr{};
    case AttrKind::DType: return std::holds_alternative<DType>(v) ? v : Attr{};
    case AttrKind::Ints: {
      if (i) return Ints{*i};
      const auto* dims = std::get_if<Dims>(&v);
      if (!dims) return ints ? v : Attr{};
      Ints numbers;
      for (const Dim& extent : *dims) {
        if (!extent.is_const()) return {};
        numbers.push_back(extent.value());
      }
      return numbers;
    }
    case AttrKind::Floats: {
      if (i) return Floats{static_cast<double>(*i)};
      if (d) return Floats{*d};
      if (ints) return converted<double>(*ints);
      return std::holds_alternative<Floats>(v) ? v : Attr{};
    }
    case AttrKind::Shape: {
      if (i) return Dims{Dim(*i)};
      if (ints) return converted<Dim>(*ints);
      return std::holds_alternative<Dims>(v) ? v : Attr{};
    }
    case AttrKind::Graphs: {
      const auto* graphs = std::get_if<Graphs>(&v);
      return graphs && std::ranges::all_of(*graphs, [](const GraphRef& g) { return g != nullptr; }) ? v : Attr{};
    }
    case AttrKind::Literal: {
      const auto* l = std::get_if<Literal>(&v);
      return l && l->bytes && l->bytes->size() == byte_size(l->shape, l->dtype) ? v : Attr{};
    }
    case AttrKind::Function: {
      const auto* f = std::get_if<HostFunctionRef>(&v);
      return f && *f ? v : Attr{};
    }
  }
  return {};
}

std::vector<std::string_view> attribute_names(const OpDef& op) {
  std::vector<std::string_view> names;
  for (const Signature::Attribute& a : op.signature.attributes) names.push_back(a.name);
  return names;
}

void check_attribute_names(const OpDef& op, const Attrs& given) {
  for (const Attrs::Entry& e : given.entries()) {
    const auto names = attribute_names(op);
    if (std::ranges::find(names, e.name) != names.end()) continue;
    if (names.empty()) user_error(op.name, ": takes no attributes, got '", e.name, "'");
    user_error(op.name, ": no attribute is called '", e.name, "', there are ", joined(names), did_you_mean(e.name, names));
  }
}

Attr complete_attribute(const OpDef& op, const Signature::Attribute& a, const Attr* given) {
  if (!given) {
    if (a.required) user_error(op.name, ": attribute '", a.name, "' (", name(a.kind), ") is missing");
    return a.default_value;
  }
  if (std::holds_alternative<std::monostate>(*given)) {
    if (!a.optional) user_error(op.name, ": attribute '", a.name, "' must be of kind ", name(a.kind), ", got none");
    return {};
  }
  Attr v = as_kind(a.kind, *given);
  if (std::holds_alternative<std::monostate>(v))
    user_error(op.name, ": attribute '", a.name, "' must be of kind ", name(a.kind), ", got ", str(*given));
  return v;
}

// --- operands --------------------------------------------------------------------------------------------------------------

bool is_shared(OperandClass c) { return c <= OperandClass::Boolean; }

// The operand that the i-th value of a call is given to; the variadic one takes all the rest.
const Signature::Parameter& operand_at(const Signature& s, size_t i) { return s.operands[std::min(i, s.operands.size() - 1)]; }

std::string operand_name(const Signature& s, size_t i) {
  const Signature::Parameter& o = operand_at(s, i);
  return o.variadic ? cat(o.name, '[', i + 1 - s.operands.size(), ']') : o.name;
}

std::string described(const OpDef& op, std::span<const TensorType> in) {
  std::string text;
  for (size_t i = 0; i < in.size(); ++i) text += cat(i == 0 ? "" : ", ", operand_name(op.signature, i), " is ", in[i]);
  return text;
}

void check_count(const OpDef& op, std::span<const TensorType> in) {
  const auto& operands = op.signature.operands;
  const auto needed = static_cast<size_t>(std::ranges::count_if(operands, [](const auto& o) { return !o.optional && !o.variadic; }));
  const bool is_open = !operands.empty() && operands.back().variadic;
  if (in.size() >= needed && (is_open || in.size() <= operands.size())) return;
  std::vector<std::string> names;
  for (const auto& o : operands) names.push_back(cat(o.name, o.variadic ? "..." : o.optional ? "?" : ""));
  std::vector<std::string> got;
  for (const TensorType& t : in) got.push_back(t.str());
  const std::string count = is_open                    ? cat("at least ", needed)
                            : needed < operands.size() ? cat(needed, " to ", operands.size())
                                                       : cat(needed);
  user_error(op.name, ": takes ", count, count == "1" ? " operand" : " operands", names.empty() ? "" : cat(" (", joined(names), ")"),
             ", got ", in.size(), got.empty() ? "" : cat(" (", joined(got), ")"));
}

std::string_view needs(OperandClass c) {
  switch (c) {
    case OperandClass::Number: return "a number, not bool";
    case OperandClass::Float: return "a floating type";
    case OperandClass::Int: return "an integer type";
    case OperandClass::Boolean: return "bool or an integer type";
    case OperandClass::Bool: return "bool";
    case OperandClass::Index: return "int32 or int64";
    case OperandClass::Key: return "uint32";
    case OperandClass::Any:
    case OperandClass::Own: break;
  }
  return "any type";
}

// Classes are kept and the shared operands agree; returns their type T. Without any, the first operand's stands for it.
DType check_classes(const OpDef& op, std::span<const TensorType> in) {
  size_t first = in.size();
  for (size_t i = 0; i < in.size(); ++i) {
    const Signature::Parameter& o = operand_at(op.signature, i);
    if (!accepts(o.type, in[i].dtype))
      user_error(op.name, ": operand '", operand_name(op.signature, i), "' must be ", needs(o.type), ", got ", in[i]);
    if (!is_shared(o.type)) continue;
    if (first == in.size()) first = i;
    if (in[i].dtype != in[first].dtype)
      user_error(op.name, ": operands must have one element type, '", operand_name(op.signature, first), "' is ", in[first], ", '",
                 operand_name(op.signature, i), "' is ", in[i]);
  }
  if (first < in.size()) return in[first].dtype;
  return in.empty() ? DType::F32 : in[0].dtype;
}

DType result_dtype(const std::string& result, DType t) { return result == "same" ? t : *parse_dtype(result); }

std::vector<TensorType> infer_broadcast(const OpCall& call, DType t) {
  Dims dims;
  try {
    for (const TensorType& x : call.in) dims = broadcast(dims, x.dims);
  } catch (const UserError& e) {
    std::string_view reason = e.what();
    constexpr std::string_view kPrefix = "broadcast: ";
    if (reason.starts_with(kPrefix)) reason.remove_prefix(kPrefix.size());
    call.fail(described(call.op, call.in), ": ", reason);
  }
  return {{result_dtype(call.op.signature.results[0], t), std::move(dims)}};
}

std::vector<TensorType> infer_by_row(const OpCall& call) {
  try {
    return call.op.infer(call);
  } catch (const UserError& e) {
    // Helpers (broadcast, normalize_axis …) do not know for whom they work.
    if (std::string_view(e.what()).starts_with(cat(call.op.name, ":"))) throw;
    user_error(call.op.name, ": ", e.what());
  }
}

// What the signature promised, and what any tensor must be.
void check_results(const OpCall& call, DType t, const std::vector<TensorType>& out) {
  const auto& results = call.op.signature.results;
  const bool is_open = std::ranges::find(results, "custom") != results.end();
  if (!is_open && out.size() != results.size())
    internal_error(call.op.name, ": the signature has ", results.size(), " results, inference gave ", out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!is_open && out[i].dtype != result_dtype(results[i], t))
      internal_error(call.op.name, ": the signature says that result ", i, " is ", result_dtype(results[i], t), ", inference gave ",
                     out[i]);
    if (out[i].rank() > kMaxRank) call.fail("the result would have ", out[i].rank(), " dimensions, at most ", kMaxRank, " are supported");
    for (const Dim& d : out[i].dims)
      if (d.is_const() && d.value() < 0) call.fail("the result would have the negative extent ", d, ": ", out[i]);
    if (!std::ranges::all_of(out[i].dims, &Dim::is_const)) continue;
    try {
      byte_size(bind(out[i].dims, {}), out[i].dtype);
    } catch (const UserError& e) {
      call.fail("the result would be ", out[i], ": ", e.what());
    }
  }
}

// --- loops -----------------------------------------------------------------------------------------------------------------

// One element of an operand at a point of the output: its axes are aligned at the right, stretched ones stay at 0.
Scalar broadcast_load(int k, const TensorType& in, const Dims& out) {
  std::vector<Scalar> index;
  const size_t shift = out.size() - in.dims.size();
  for (size_t i = 0; i < in.dims.size(); ++i) {
    const size_t j = i + shift;
    const bool is_stretched = in.dims[i].is(1) && !out[j].is(1);
    index.push_back(is_stretched ? constant_int(DType::I64, 0) : axis(static_cast<int>(j)));
  }
  return load(k, in.dtype, std::move(index));
}

Loops loops_of_body(const OpCall& call, const TensorType& out) {
  std::vector<Scalar> loads;
  for (size_t k = 0; k < call.in.size(); ++k) {
    TANDEM_CHECK(call.in[k].rank() <= out.rank(), call.op.name, " of ", call.in[k], " gives ", out);
    loads.push_back(broadcast_load(static_cast<int>(k), call.in[k], out.dims));
  }
  Scalar result = call.op.body(call, loads);
  TANDEM_CHECK(result && result.dtype() == out.dtype, call.op.name, ": the body gives ", result ? name(result.dtype()) : "nothing",
               ", the type is ", out);
  Loops l;
  l.extents = out.dims;
  l.results.push_back(std::move(result));
  return l;
}

// --- rows ------------------------------------------------------------------------------------------------------------------

bool is_identifier(std::string_view s) {
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  return !s.empty() && !(s[0] >= '0' && s[0] <= '9') && std::ranges::all_of(s, is_word);
}

void check_row(const OpDef& row) {
  if (!is_identifier(row.name)) user_error("op '", row.name, "': a name is made of letters, digits and _");
  const int meanings =
      int(bool(row.body)) + (row.loops != nullptr) + (row.decompose != nullptr) + (row.evaluate != nullptr) + row.has(kStructural);
  if (meanings != 1)
    user_error("op '", row.name, "': a row has exactly one of body, loops, decompose, evaluate and the trait kStructural, this one has ",
               meanings);
  if (row.doc.empty()) user_error("op '", row.name, "': the row has no doc");
  const auto& results = row.signature.results;
  const bool is_custom = std::ranges::find(results, "custom") != results.end();
  if (!row.infer && (!row.body || is_custom))
    user_error("op '", row.name, "': the row has no infer, and its signature does not say its result");
  if (!row.body) return;
  if (row.signature.operands.size() != row.body.arity())
    user_error("op '", row.name, "': the body takes ", row.body.arity(), " arguments, the signature has ", row.signature.operands.size(),
               " operands");
  if (results.size() != 1) user_error("op '", row.name, "': a body gives one result, the signature has ", results.size());
  for (const Signature::Parameter& o : row.signature.operands)
    if (o.variadic || o.optional) user_error("op '", row.name, "': a body cannot have the optional or repeated operand '", o.name, "'");
}

}  // namespace

int64_t OpCall::axis(std::string_view attr, int rank) const { return normalize_axis(attrs.get<int64_t>(attr), rank, op.name); }

Ints OpCall::axes(std::string_view attr, int rank) const {
  Ints found;
  if (!attrs.has(attr)) {
    found.resize(static_cast<size_t>(rank));
    std::iota(found.begin(), found.end(), int64_t{0});
    return found;
  }
  for (int64_t a : attrs.get<Ints>(attr)) found.push_back(normalize_axis(a, rank, op.name));
  std::ranges::sort(found);
  if (const auto repeated = std::ranges::adjacent_find(found); repeated != found.end())
    fail("axis ", *repeated, " is there twice in ", attr, " = ", str(*attrs.find(attr)));
  return found;
}

const OpDef& OpTable::add(OpDef row) {
  row.signature = parse_signature(row.sig);
  check_row(row);
  const std::lock_guard lock(mutex_);
  if (by_name_.contains(row.name)) user_error("op '", row.name, "' is there already");
  row.id = static_cast<int>(rows_.size());
  const OpDef& added = rows_.emplace_back(std::move(row));
  by_name_.emplace(added.name, &added);
  return added;
}

const OpDef* OpTable::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

const OpDef& OpTable::at(std::string_view name) const {
  if (const OpDef* found = find(name)) return *found;
  std::vector<std::string_view> names;
  for (const OpDef* row : all()) names.push_back(row->name);
  user_error("no op is called '", name, "'", did_you_mean(name, names));
}

std::vector<const OpDef*> OpTable::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<const OpDef*> rows;
  for (const OpDef& row : rows_) rows.push_back(&row);
  return rows;
}

Attrs complete_attrs(const OpDef& op, const Attrs& given) {
  check_attribute_names(op, given);
  Attrs complete;
  for (const Signature::Attribute& a : op.signature.attributes) complete.set(a.name, complete_attribute(op, a, given.find(a.name)));
  return complete;
}

std::vector<TensorType> infer(const OpDef& op, std::span<const TensorType> in, const Attrs& attrs) {
  check_count(op, in);
  const DType t = check_classes(op, in);
  const OpCall call{op, in, attrs};
  std::vector<TensorType> out = op.infer ? infer_by_row(call) : infer_broadcast(call, t);
  check_results(call, t, out);
  return out;
}

Loops loops_of(const OpDef& op, std::span<const TensorType> in, const Attrs& attrs, std::span<const TensorType> out) {
  const OpCall call{op, in, attrs};
  if (op.loops) return op.loops(call, out);
  TANDEM_CHECK(op.body && out.size() == 1, op.name, " has neither loops nor a body");
  return loops_of_body(call, out[0]);
}

}  // namespace tandem::ir
