#include "codegen/cost.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "codegen/routine_cost.hpp"

namespace tandem::codegen {
namespace {

using ir::Prim;
using ir::Scalar;

double count(const std::vector<int64_t>& extents) {
  double n = 1;
  for (int64_t e : extents) n *= static_cast<double>(e);
  return n;
}

// Distinct elements: an axis with stride 0 repeats what is there.
double stored_bytes(const Layout& o) {
  double n = static_cast<double>(size_of(o.dtype));
  for (size_t d = 0; d < o.shape.size(); ++d)
    if (o.strides[d] != 0 || o.shape[d] == 0) n *= static_cast<double>(o.shape[d]);
  return n;
}

struct Count {
  double flops = 0;
  std::map<int, double> read_bytes;  // by input

  // The roots are evaluated `times` times.
  void add(std::span<const Scalar> roots, double times) {
    for (const Scalar& s : ir::post_order(roots)) {
      if (addresses_.contains(s.get())) continue;
      if (is_free(s)) continue;
      if (s->prim == Prim::Load) {
        read_bytes[s->index] += times * static_cast<double>(size_of(s->dtype));
      } else {
        flops += times * (s->prim == Prim::Fma ? 2 : 1);
      }
    }
  }
  // A leaf that is no load, or made of numbers alone and so computed once. Operands are asked before their users.
  bool is_free(const Scalar& s) {
    if (s->in.empty()) {
      if (s->prim == Prim::Const || s->prim == Prim::Extent) numbers_.insert(s.get());
      return s->prim != Prim::Load;
    }
    const bool is = s->prim != Prim::Load && std::ranges::all_of(s->in, [&](const Scalar& x) { return numbers_.contains(x.get()); });
    if (is) numbers_.insert(s.get());
    return is;
  }
  // Marks what only computes addresses and guards.
  void find_addresses(std::span<const Scalar> roots) {
    for (const Scalar& s : ir::post_order(roots))
      if (s->prim == Prim::Load) {
        const size_t last = s->guarded ? s->in.size() - 1 : s->in.size();
        for (const Scalar& i : ir::post_order(std::span(s->in).first(last)))
          if (i->prim != Prim::Load) addresses_.insert(i.get());
      }
  }

 private:
  std::unordered_set<const ir::ScalarNode*> addresses_, numbers_;
};

Count count_stage(const LoopKernel& k) {
  Count c;
  const double outputs = count(k.extents);
  c.find_addresses(k.loops.results);
  if (k.loops.reduction) {
    const ir::Reduction& r = *k.loops.reduction;
    c.find_addresses(r.element);
    const double elements = outputs * count(k.reduce_extents);
    c.add(r.element, elements);
    c.add(r.in_order(), elements);
  }
  for (const ir::Reduction& r : k.loops.row_reductions) {  // along the last output axis
    c.find_addresses(r.element);
    c.add(r.element, outputs);
    c.add(r.in_order(), outputs);
  }
  c.add(k.loops.results, outputs);
  return c;
}

}  // namespace

Cost cost_of(const Kernel& kernel) {
  Cost cost;
  for (const Layout& o : kernel.out) cost.bytes += stored_bytes(o);
  if (kernel.stages.empty()) {  // no loops say what is read: each operand once
    for (const Layout& o : kernel.in) cost.bytes += stored_bytes(o);
    cost.flops = routine_flops(kernel);
    return cost;
  }
  std::vector<Layout> operands = kernel.in;
  operands.insert(operands.end(), kernel.partials.begin(), kernel.partials.end());
  for (const Layout& o : kernel.partials) cost.bytes += stored_bytes(o);  // written once; reading is counted below
  for (const LoopKernel& stage : kernel.stages) {
    const Count c = count_stage(stage);
    cost.flops += c.flops;
    for (const auto& [input, bytes] : c.read_bytes) cost.bytes += std::min(bytes, stored_bytes(operands[static_cast<size_t>(input)]));
  }
  return cost;
}

}  // namespace tandem::codegen
