// Constant folding: a node of constants is computed here, once, instead of in each run.
#include <cmath>
#include <optional>

#include "base/log.hpp"
#include "codegen/interpret.hpp"
#include "ir/rewrite.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

constexpr int64_t kMostElements = 1 << 16;  // beyond this the interpreter would be felt

bool all_exact(std::span<const ir::Scalar> roots) {
  return std::ranges::all_of(ir::post_order(roots), [](const ir::Scalar& s) { return ir::is_exact(s->prim); });
}

// Sums and products of floats depend on how a device cuts a reduction into blocks; of integers they do not.
bool is_exact(const ir::Loops& l) {
  if (!all_exact(l.results)) return false;
  if (!l.reduction) return l.scan_axis < 0;
  return std::ranges::none_of(l.reduction->identity, [](const ir::Scalar& s) { return is_float(s.dtype()); }) &&
         all_exact(l.reduction->element) && all_exact(l.reduction->combine);
}

bool is_random(const ir::OpDef& op) {
  return std::ranges::any_of(op.signature.operands, [](const auto& o) { return o.type == ir::OperandClass::Key; });
}

std::optional<int64_t> element_count_of(const ir::TensorType& t) {
  int64_t count = 1;
  for (const Dim& d : t.dims) {
    if (!d.is_const()) return {};
    if (d.is(0)) return 0;
    if (count > kMostElements) continue;  // large enough, and it must not overflow
    count *= d.value();
  }
  return count;
}

// Which NaN comes out of arithmetic depends on the order of operands in a machine instruction.
bool has_nan(const ir::Literal& l) {
  if (!is_float(l.dtype)) return false;
  const size_t width = size_of(l.dtype);
  for (size_t i = 0; i < l.bytes->size(); i += width)
    if (std::isnan(ir::load_number(l.dtype, l.bytes->data() + i))) return true;
  return false;
}

class Folder {
 public:
  explicit Folder(const ir::OpTable& table) : constant_(table.at("constant")) {}

  ir::Graph run(const ir::Graph& g) {
    ir::Graph out = g;
    for (ir::Node& n : out.nodes) {
      map_subgraphs(n, [&](const ir::Graph& inner) { return run(inner); });
      if (auto value = folded(out, n)) {
        const Location where = n.location;
        n = {&constant_, {}, {{"value", std::move(*value)}}, n.types, where};
      }
    }
    return out;
  }

 private:
  std::optional<ir::Literal> folded(const ir::Graph& g, const ir::Node& n) const {
    if (n.op->has(ir::kStructural) || (!n.op->body && !n.op->loops) || n.types.size() != 1 || is_random(*n.op)) return {};
    // A result that is larger than the operands is better made where it is used: a filled tensor, a counter.
    const std::optional<int64_t> count = element_count_of(n.types[0]);
    if (!count || *count > kMostElements) return {};
    int64_t largest = 1;
    for (ir::Value v : n.inputs) {
      if (g.node(v).op != &constant_) return {};
      largest = std::max(largest, element_count(g.node(v).attrs.get<ir::Literal>("value").shape));
    }
    if (*count > largest) return {};
    try {
      return evaluated(g, n);
    } catch (const Error& e) {
      log::line(log::Topic::Pass, "fold: ", n.op->name, " is left as it is: ", e.what());
      return {};
    }
  }

  static std::optional<ir::Literal> evaluated(const ir::Graph& g, const ir::Node& n) {
    std::vector<ir::TensorType> types;
    std::vector<codegen::HostOperand> in;
    for (ir::Value v : n.inputs) {
      const auto& l = g.node(v).attrs.get<ir::Literal>("value");
      types.push_back(g.type(v));
      in.push_back({codegen::Layout::dense(l.dtype, l.shape), const_cast<std::byte*>(l.bytes->data())});  // only read
    }
    const ir::Loops loops = ir::loops_of(*n.op, types, n.attrs, n.types);
    if (!is_exact(loops)) return {};
    const Shape shape = tandem::bind(n.types[0].dims, {});
    const DType dtype = n.types[0].dtype;
    auto bytes = std::make_shared<std::vector<std::byte>>(byte_size(shape, dtype));
    const codegen::HostOperand out{codegen::Layout::dense(dtype, shape), bytes->data()};
    codegen::interpret(loops, {}, in, {&out, 1});
    ir::Literal result{dtype, shape, std::move(bytes)};
    if (has_nan(result)) return {};
    return result;
  }

  const ir::OpDef& constant_;
};

}  // namespace

ir::Graph fold(const ir::OpTable& table, const ir::Graph& g) { return Folder(table).run(g); }

}  // namespace tandem::passes
