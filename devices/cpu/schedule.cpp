#include "schedule.hpp"

#include <algorithm>
#include <unordered_set>

namespace tandem::cpu {
namespace {

using ir::Prim;
using ir::Scalar;

constexpr int64_t kTile = 64;  // columns: a line of memory holds several rows' elements, and all lines stay in the L1 cache

constexpr double kLargestWindow = 9;  // elements: 3 x 3

struct Survey {
  std::unordered_set<const ir::ScalarNode*> seen;
  std::vector<const ir::ScalarNode*> loads;
  double cost = 0;

  void visit(const Scalar& s) {
    if (!s || !seen.insert(s.get()).second) return;
    if (s->prim == Prim::Load) loads.push_back(s.get());
    cost += is_function(s->prim) ? 8 : s->in.empty() ? 0 : 1;
    for (const Scalar& x : s->in) visit(x);
  }
};

bool uses_axis(const Scalar& s, int axis) {
  return std::ranges::any_of(ir::post_order(std::span(&s, 1)), [&](const Scalar& x) { return x->prim == Prim::Axis && x->index == axis; });
}

// Whether the axis does not step through the load's memory, or steps by one element: otherwise the lanes must be gathered.
bool is_cheap(const ir::ScalarNode& load, int axis) {
  const auto step = codegen::step_along(load.in[0], axis);
  return step == 0 || step == 1;
}

// What it costs to fill one vector when lanes lie along `axis`: contiguous and repeated loads are cheap, gathers are not.
double lane_cost(const std::vector<const ir::ScalarNode*>& loads, int axis, int64_t extent, int lanes) {
  double cost = 1;
  for (const ir::ScalarNode* l : loads) cost += is_cheap(*l, axis) ? 1 : lanes;
  const double filled = std::min<double>(1, static_cast<double>(extent) / lanes);
  return cost / std::max(filled, 1e-3);
}

}  // namespace

Schedule schedule(const codegen::LoopKernel& k, int lanes) {
  Schedule s;
  const int outputs = static_cast<int>(k.extents.size());
  if (outputs > 0) s.columns = k.extents.back();
  for (int j = 0; j + 1 < outputs; ++j)
    if (j != k.loops.scan_axis) s.rows *= k.extents[static_cast<size_t>(j)];

  s.column_unit = lanes;

  Survey survey;
  for (const Scalar& r : k.loops.results) survey.visit(r);
  if (!k.loops.row_reductions.empty()) {
    s.mode = Mode::Row;
    s.columns_divide = false;
    s.unroll = s.columns >= int64_t{kUnroll} * lanes ? kUnroll : 1;
    s.keeps = s.columns <= kMostKeptColumns;
    s.work_per_column = survey.cost + 1;
    for (const ir::Reduction& r : k.loops.row_reductions) {
      Survey elements;
      for (const Scalar& e : r.element) elements.visit(e);
      for (const Scalar& c : r.in_order()) elements.visit(c);
      s.work_per_column += elements.cost + 1;
    }
    return s;
  }
  if (!k.loops.reduction) {
    s.work_per_column = survey.cost + 1;
    for (const ir::ScalarNode* l : survey.loads)
      if (outputs > 1 && !is_cheap(*l, outputs - 1)) s.column_tile = kTile;
    if (outputs > 0 && s.columns >= int64_t{kUnroll} * lanes && codegen::shared_by_four(k.loops.results, outputs - 1)) {
      s.unroll = kUnroll;
      s.column_unit = int64_t{lanes} * s.unroll;
    }
    return s;
  }
  Survey elements;
  for (const Scalar& e : k.loops.reduction->element) elements.visit(e);
  double repeats = 1;
  for (int64_t e : k.reduce_extents) repeats *= static_cast<double>(e);
  if (k.loops.scan_axis >= 0) {
    s.mode = k.loops.scan_axis == outputs - 1 ? Mode::ScanAlong : Mode::Scan;
    s.columns_divide = s.mode == Mode::Scan;
    repeats = s.mode == Mode::Scan ? static_cast<double>(k.extents[static_cast<size_t>(k.loops.scan_axis)]) : 1;
  } else {
    const int reduces = static_cast<int>(k.reduce_extents.size()), axes = outputs + reduces;
    // Lanes that end at different elements cannot share a loop.
    const bool uneven = k.loops.reduction->limit && uses_axis(k.loops.reduction->limit, outputs - 1);
    const double across = outputs == 0 || uneven ? 1e30 : lane_cost(elements.loads, outputs - 1, s.columns, lanes);
    const double along = reduces == 0 ? 1e30 : lane_cost(elements.loads, axes - 1, k.reduce_extents.back(), lanes) * 1.01;
    s.mode = along < across ? Mode::Along : Mode::Across;
    if (s.mode == Mode::Along) {
      // By length alone, so that what is added to what does not depend on what was fused (I10).
      if (k.reduce_extents.back() >= int64_t{kUnroll} * lanes) s.unroll = kUnroll;
    } else {
      s.window = !k.loops.reduction->limit && repeats <= kLargestWindow && repeats > 1;
      // A long walk goes down a wide strip: the next lines of each row are fetched ahead, and pages are met fewer times.
      const int most = !s.window && k.loops.reduction->element.size() == 1 ? kMostUnroll : kUnroll;
      while (s.unroll < most && s.columns >= int64_t{2} * s.unroll * lanes) s.unroll *= 2;
      s.column_unit = int64_t{lanes} * s.unroll;
    }
  }
  s.work_per_column = survey.cost + 1 + repeats * (elements.cost + 1);
  return s;
}

}  // namespace tandem::cpu
