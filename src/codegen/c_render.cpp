// The loops around the values: which element an item computes, in which order states are joined, and what is stored where.
#include "codegen/c_render.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "codegen/c_values.hpp"

namespace tandem::codegen {
namespace {

using ir::Prim;
using ir::Scalar;

// Counters run a group beyond the end at most.
constexpr int64_t kMostInInt = INT32_MAX - 65536;

class Renderer {
 public:
  Renderer(const LoopKernel& k, const GpuSchedule& s, const CDialect& d)
      : k_(k), s_(s), d_(d), helpers_(d), outputs_(k.loops.extents.size()) {
    for (const int64_t e : k.extents) extents_.push_back(e);
    for (const int64_t e : k.reduce_extents) extents_.push_back(e);
    for (const Dim& dim : k.loops.extents) extent_names_.push_back(dim.str());
    if (k.loops.reduction)
      for (const Dim& dim : k.loops.reduction->extents) extent_names_.push_back(dim.str());
    for (size_t j = 0; j < extents_.size(); ++j)
      axes_.push_back({cat("a", j), is_int(extents_[j]), CRange::of(0, std::max<int64_t>(extents_[j] - 1, 0))});
  }

  CSource run() {
    if (!k_.loops.row_reductions.empty())
      rows();
    else if (k_.loops.scan_axis >= 0)
      scan();
    else if (k_.loops.reduction)
      reduce();
    else
      map();
    return finish();
  }

 private:
  static bool is_int(int64_t extent) { return extent <= kMostInInt; }
  std::string_view type(DType t) const { return d_.types[static_cast<size_t>(t)]; }
  std::string_view counter(bool narrow) const { return type(narrow ? DType::I32 : DType::I64); }
  std::string_view axis_type(size_t j) const { return counter(axes_[j].narrow); }
  std::string extent(size_t j) const { return cat("((", axis_type(j), ")", extent_names_[j], ")"); }

  // ---- text ----
  template <class... T> void line(const T&... parts) { body_ += cat(indent_, parts..., "\n"); }
  template <class... T> void open(const T&... parts) {
    line(parts..., " {");
    indent_ += "  ";
  }
  void close() {
    indent_.resize(indent_.size() - 2);
    line("}");
  }

  // ---- values ----
  CValues values(std::vector<std::string> acc, std::vector<std::string> right = {}) {
    return {d_, helpers_, next_name_, {axes_, std::move(acc), std::move(right), &k_.params, &k_.inputs}};
  }
  static std::vector<std::string> names(std::string_view prefix, size_t first, size_t n) {
    std::vector<std::string> all;
    for (size_t i = 0; i < n; ++i) all.push_back(cat(prefix, first + i));
    return all;
  }
  std::string cast_to(const CValue& v, DType t) const { return t == DType::I64 && v.narrow ? cat("(", type(t), ")", v.text) : v.text; }

  void declare(const ir::Reduction& r, const std::vector<std::string>& state) {
    CValues scope = values({});
    const auto identity = scope.write(r.identity, body_, indent_);
    for (size_t i = 0; i < state.size(); ++i) line(type(r.element[i].dtype()), " ", state[i], " = ", identity[i].text, ";");
  }
  // state = combine(state, right)
  void join(const ir::Reduction& r, std::span<const Scalar> combine, const std::vector<std::string>& state,
            const std::vector<std::string>& right) {
    CValues scope = values(state, right);
    const auto joined = scope.write(combine, body_, indent_);
    // A result may be one of the states, so all are known before one is written.
    if (state.size() == 1) return line(state[0], " = ", joined[0].text, ";");
    const int first = next_name_;
    next_name_ += static_cast<int>(state.size());
    for (size_t i = 0; i < state.size(); ++i)
      line("const ", type(r.element[i].dtype()), " v", first + static_cast<int>(i), " = ", joined[i].text, ";");
    for (size_t i = 0; i < state.size(); ++i) line(state[i], " = v", first + static_cast<int>(i), ";");
  }
  // The element at the current axes joins the state, behind all that is in it. `seen`: what Acc means in the element.
  void take_element(const ir::Reduction& r, const std::vector<std::string>& state, const std::vector<std::string>& seen) {
    CValues scope = values(seen);
    const auto element = scope.write(r.element, body_, indent_);
    std::vector<std::string> right;
    for (size_t i = 0; i < element.size(); ++i) right.push_back(cast_to(element[i], r.element[i].dtype()));
    join(r, r.in_order(), state, right);
  }
  void store(std::span<const Scalar> results, size_t first, const std::vector<std::string>& acc, const std::string& at) {
    CValues scope = values(acc);
    const auto v = scope.write(results, body_, indent_);
    for (size_t i = 0; i < results.size(); ++i)
      line("out", first + i, "[", at, "] = ", CValues::to_memory(helpers_, v[i].text, results[i].dtype()), ";");
  }

  // ---- axes ----
  // Declares axes [first, last) but `except`, from their place in the space they span.
  void decode(const std::string& place, bool narrow, size_t first, size_t last, int except = -1) {
    std::vector<size_t> all;
    for (size_t j = first; j < last; ++j)
      if (static_cast<int>(j) != except) all.push_back(j);
    std::string rest = place;
    for (size_t i = all.size(); i-- > 0;) {
      const size_t j = all[i];
      if (i == 0) {
        line("const ", axis_type(j), " a", j, " = (", axis_type(j), ")", rest, ";");
        break;
      }
      const std::string e = cat("((", counter(narrow), ")", extent_names_[j], ")"), next = cat("r", next_name_++);
      line("const ", counter(narrow), " ", next, " = ", rest, " / ", e, ";");
      line("const ", axis_type(j), " a", j, " = (", axis_type(j), ")(", rest, " - ", next, " * ", e, ");");
      rest = next;
    }
  }
  // Opens what runs for each unit; `unit` is its number.
  void open_units() {
    narrow_units_ = s_.units <= kMostInInt;  // the last group may count beyond
    const std::string_view t = counter(narrow_units_);
    if (s_.form == GpuForm::Group) {
      line("const ", t, " unit = (", t, ")", d_.group, ";");
      line("const ", type(DType::I32), " item = (", type(DType::I32), ")", d_.item, ";");
      open("");  // there are as many groups as units
    } else {
      line("const ", t, " unit = (", t, ")", d_.item_of_all, ";");
      open("if (unit < (", t, ")units)");
    }
  }

  // ---- groups ----
  // The states of the group's items become one, which all of them have then. Which ones meet depends on the number of items alone.
  void join_group(const ir::Reduction& r, const std::vector<std::string>& state) {
    const std::vector<std::string> shared = shared_states(r);
    for (size_t i = 0; i < state.size(); ++i) line(shared[i], "[item] = ", state[i], ";");
    line(d_.barrier, ";");
    open("for (int other = ", s_.group_items / 2, "; other > 0; other /= 2)");
    open("if (item < other)");
    std::vector<std::string> right;
    for (const std::string& s : shared) right.push_back(cat(s, "[item + other]"));
    join(r, r.combine, state, right);
    for (size_t i = 0; i < state.size(); ++i) line(shared[i], "[item] = ", state[i], ";");
    close();
    line(d_.barrier, ";");
    close();
    for (size_t i = 0; i < state.size(); ++i) line(state[i], " = ", shared[i], "[0];");
    line(d_.barrier, ";");  // the next one writes there
  }
  // Local memory for a state an item; reductions with components of the same types take turns in it.
  std::vector<std::string> shared_states(const ir::Reduction& r) {
    std::vector<std::string> names;
    for (size_t i = 0; i < r.element.size(); ++i) {
      const std::string name = cat("shared_", type(r.element[i].dtype()), "_", i);
      const std::string declaration = cat("  ", d_.local, " ", type(r.element[i].dtype()), " ", name, "[", s_.group_items, "];\n");
      if (locals_.find(declaration) == std::string::npos) locals_ += declaration;
      names.push_back(name);
    }
    return names;
  }

  // ---- the four kinds of kernels ----
  void map() {
    open_units();
    decode("unit", narrow_units_, 0, outputs_);
    store(k_.loops.results, 0, {}, "unit");
    close();
  }

  void reduce() {
    const ir::Reduction& r = *k_.loops.reduction;
    const std::vector<std::string> state = names("acc", 0, r.element.size());
    open_units();
    decode("unit", narrow_units_, 0, outputs_);
    declare(r, state);
    const size_t last = extents_.size();
    std::string first_extent;
    if (r.limit) {
      CValues scope = values({});
      const auto limit = scope.write(std::span(&r.limit, 1), body_, indent_);
      const std::string& l = limit[0].text;
      line("const ", axis_type(outputs_), " limit = (", axis_type(outputs_), ")(", l, " < 0 ? 0 : ", l, " > ", extent(outputs_), " ? ",
           extent(outputs_), " : ", l, ");");
      first_extent = "limit";
    }
    const auto extent_of = [&](size_t j) { return j == outputs_ && r.limit ? first_extent : extent(j); };
    if (s_.form == GpuForm::Group) {
      int64_t all = 1;
      for (size_t j = outputs_; j < last; ++j) all *= extents_[j];
      const bool narrow = all <= kMostInInt;
      std::string count = cat("(", counter(narrow), ")1");
      for (size_t j = outputs_; j < last; ++j) count += cat(" * ", extent_of(j));
      line("const ", counter(narrow), " elements = ", count, ";");
      open("for (", counter(narrow), " e = item; e < elements; e += ", s_.group_items, ")");
      decode("e", narrow, outputs_, last);
      take_element(r, state, {});
      close();
      join_group(r, state);
      open("if (item == 0)");
      store(k_.loops.results, 0, state, "unit");
      close();
    } else {
      for (size_t j = outputs_; j < last; ++j) open("for (", axis_type(j), " a", j, " = 0; a", j, " < ", extent_of(j), "; ++a", j, ")");
      if (last == outputs_) open("");  // one element, in a scope of its own
      take_element(r, state, {});
      for (size_t j = outputs_; j < std::max(last, outputs_ + 1); ++j) close();
      store(k_.loops.results, 0, state, "unit");
    }
    close();
  }

  void rows() {
    const size_t along = outputs_ - 1;
    const auto& all = k_.loops.row_reductions;
    const bool group = s_.form == GpuForm::Group;
    open_units();
    decode("unit", narrow_units_, 0, along);
    std::vector<std::string> seen;
    const auto open_row = [&] {
      open("for (", axis_type(along), " a", along, " = ", group ? "item" : "0", "; a", along, " < ", extent(along), "; a", along,
           " += ", group ? s_.group_items : 1, ")");
    };
    for (const ir::Reduction& r : all) {
      const std::vector<std::string> state = names("acc", seen.size(), r.element.size());
      declare(r, state);
      open_row();
      take_element(r, state, seen);
      close();
      if (group) join_group(r, state);
      seen.insert(seen.end(), state.begin(), state.end());
    }
    const size_t row_results = static_cast<size_t>(k_.loops.row_results), whole = k_.loops.results.size() - row_results;
    const std::span<const Scalar> results(k_.loops.results);
    if (whole > 0) {
      open_row();
      const bool narrow = narrow_units_ && fits_int(s_.units, extents_[along]);
      store(results.first(whole), 0, seen, cat("(", counter(narrow), ")unit * ", extent(along), " + a", along));
      close();
    }
    if (row_results > 0) {
      if (group) open("if (item == 0)");
      store(results.subspan(whole), whole, seen, "unit");
      if (group) close();
    }
    close();
  }
  static bool fits_int(int64_t a, int64_t b) {
    int64_t r = 0;
    return !__builtin_mul_overflow(a, b, &r) && r <= kMostInInt;
  }

  // An item walks its row from the first to the last element. A group cuts it into as many pieces as it has items: each item joins its own
  // piece, one of them joins the pieces, and then each walks its piece once more behind what came before.
  void scan() {
    const ir::Reduction& r = *k_.loops.reduction;
    const auto along = static_cast<size_t>(k_.loops.scan_axis);
    const std::vector<std::string> state = names("acc", 0, r.element.size());
    open_units();
    decode("unit", narrow_units_, 0, outputs_, k_.loops.scan_axis);
    int64_t all = 1;
    for (const int64_t e : extents_) all = fits_int(all, e) ? all * e : int64_t{1} << 40;
    const std::string_view t = counter(all <= kMostInInt);
    line(
        "const ", t, " inner = 1",
        [&] {
          std::string product;
          for (size_t j = along + 1; j < outputs_; ++j) product += cat(" * (", t, ")", extent_names_[j]);
          return product;
        }(),
        ";");
    line("const ", t, " row = ((", t, ")unit / inner) * (", t, ")", extent_names_[along], ";");
    const std::string at = cat("(row + a", along, ") * inner + (", t, ")unit % inner");
    const auto walk = [&](const std::string& first, const std::string& last, bool stores) {
      open("for (", axis_type(along), " a", along, " = ", first, "; a", along, " < ", last, "; ++a", along, ")");
      take_element(r, state, {});
      if (stores) store(k_.loops.results, 0, state, at);
      close();
    };
    declare(r, state);
    if (s_.form == GpuForm::Item) {
      walk("0", extent(along), true);
    } else {
      const std::string_view a = axis_type(along);
      line("const ", a, " piece = (", extent(along), " + ", s_.group_items - 1, ") / ", s_.group_items, ";");
      line("const ", a, " first = item * piece < ", extent(along), " ? item * piece : ", extent(along), ";");
      line("const ", a, " last = first + piece < ", extent(along), " ? first + piece : ", extent(along), ";");
      walk("first", "last", false);
      const std::vector<std::string> shared = shared_states(r);
      for (size_t i = 0; i < state.size(); ++i) line(shared[i], "[item] = ", state[i], ";");
      line(d_.barrier, ";");
      open("if (item == 0)");  // what each piece has before it
      const std::vector<std::string> before = names("before", 0, state.size());
      declare(r, before);
      open("for (int i = 0; i < ", s_.group_items, "; ++i)");
      std::vector<std::string> own;
      for (size_t i = 0; i < state.size(); ++i) {
        own.push_back(cat("own", i));
        line("const ", type(r.element[i].dtype()), " own", i, " = ", shared[i], "[i];");
        line(shared[i], "[i] = before", i, ";");
      }
      join(r, r.in_order(), before, own);
      close();
      close();
      line(d_.barrier, ";");
      for (size_t i = 0; i < state.size(); ++i) line(state[i], " = ", shared[i], "[item];");
      walk("first", "last", true);
    }
    close();
  }

  // ---- the whole program ----
  CSource finish() {
    CSource source;
    source.params_in_memory = k_.params.size() > kParamsByValue;
    std::string arguments, prologue;
    const auto memory = [&](std::string_view name, size_t i, DType t, bool is_const) {
      const std::string pointer = cat(d_.global, is_const ? " const " : " ", CValues::memory_type(d_, t), "*");
      const std::string bytes = cat(d_.global, is_const ? " const " : " ", type(DType::U8), "*");
      arguments += cat(arguments.empty() ? "" : ", ", bytes, " ", name, i, "_memory, const ", type(DType::U64), " ", name, i, "_offset");
      prologue += cat("  ", pointer, " ", name, i, " = (", pointer, ")(", name, i, "_memory + ", name, i, "_offset);\n");
    };
    for (size_t i = 0; i < k_.inputs.size(); ++i) memory("in", i, k_.inputs[i], true);
    for (size_t i = 0; i < k_.outputs.size(); ++i) memory("out", i, k_.outputs[i], false);
    const std::string_view i64 = type(DType::I64);
    arguments += cat(", const ", i64, " units");
    if (source.params_in_memory) {
      arguments += cat(", ", d_.global, " const ", i64, "* params");
      for (size_t i = 0; i < k_.params.size(); ++i) prologue += cat("  const ", i64, " p", i, " = params[", i, "];\n");
    } else {
      for (size_t i = 0; i < k_.params.size(); ++i) arguments += cat(", const ", i64, " p", i);
    }
    for (const auto* types : {&k_.inputs, &k_.outputs})
      for (const DType t : *types)
        if (t == DType::F64) helpers_.use_double();
    source.text = cat("// ", d_.name, "\n", d_.preamble, helpers_.uses_double() ? d_.double_preamble : std::string_view(), helpers_.text(),
                      d_.kernel, " ", kCEntry, "(", arguments, ") {\n", locals_, prologue, body_, "}\n");
    return source;
  }

  const LoopKernel& k_;
  const GpuSchedule& s_;
  const CDialect& d_;
  CHelpers helpers_;
  const size_t outputs_;
  std::vector<int64_t> extents_;  // output axes, then reduce axes
  std::vector<std::string> extent_names_;
  std::vector<CValue> axes_;
  bool narrow_units_ = true;
  int next_name_ = 0;
  std::string body_, indent_ = "  ", locals_;
};

}  // namespace

CSource render_c(const LoopKernel& kernel, const GpuSchedule& schedule, const CDialect& dialect) {
  return Renderer(kernel, schedule, dialect).run();
}

bool uses_double(const LoopKernel& kernel) {
  std::vector<Scalar> roots = kernel.loops.results;
  const auto add = [&](const ir::Reduction& r) {
    for (const auto* list : {&r.element, &r.identity, &r.combine, &r.later}) roots.insert(roots.end(), list->begin(), list->end());
  };
  if (kernel.loops.reduction) add(*kernel.loops.reduction);
  for (const ir::Reduction& r : kernel.loops.row_reductions) add(r);
  return std::ranges::any_of(ir::post_order(roots), [](const Scalar& s) { return s->dtype == DType::F64; });
}

}  // namespace tandem::codegen
