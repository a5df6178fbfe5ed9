#include "codegen/gpu_schedule.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tandem::codegen {
namespace {

constexpr int64_t kSmallGroup = 64, kLargeGroup = 256;
constexpr int64_t kLargeFromUnits = 4096;
constexpr int64_t kGroupFromElements = 64;  // a shorter row does not fill a group
constexpr int64_t kEnoughItems = 1 << 14;   // with so many outputs each item may walk its own

int64_t product(std::span<const int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

// Whether neighbours in the innermost reduced axis lie side by side in some operand: then the items of a group read them together, and
// items that walk rows of their own would each touch another line.
bool reads_along(const LoopKernel& k, std::span<const ir::Scalar> elements, int axis) {
  for (const ir::Scalar& s : ir::post_order(elements))
    if (s->prim == ir::Prim::Load && step_along(s->in[0], axis) == 1) return true;
  return k.inputs.empty();
}

int64_t state_bytes(const ir::Reduction& r) {
  int64_t bytes = 0;
  for (const ir::Scalar& s : r.element) bytes += std::max<int64_t>(4, static_cast<int64_t>(size_of(s.dtype())));
  return bytes;
}

// As many items as the row has work for, and as the states of all fit into local memory.
int64_t group_for(int64_t elements, int64_t bytes, const GpuTarget& target) {
  int64_t items = std::min(elements >= 4 * kLargeGroup ? kLargeGroup : kSmallGroup, target.most_group_items);
  while (items > 1 && items * bytes > target.local_bytes) items /= 2;
  return items;
}

}  // namespace

GpuSchedule gpu_schedule(const LoopKernel& k, const GpuTarget& target) {
  GpuSchedule s;
  const std::span<const int64_t> extents(k.extents);
  int64_t length = 1;  // what one unit walks
  int64_t bytes = 0;   // of one item's state
  bool may_share = false;
  if (!k.loops.row_reductions.empty()) {
    s.units = product(extents.first(extents.size() - 1));
    length = extents.back();
    for (const ir::Reduction& r : k.loops.row_reductions) bytes = std::max(bytes, state_bytes(r));
    may_share = true;
  } else if (k.loops.scan_axis >= 0) {
    s.units = 1;
    for (size_t j = 0; j < extents.size(); ++j)
      if (static_cast<int>(j) != k.loops.scan_axis) s.units *= extents[j];
    length = extents[static_cast<size_t>(k.loops.scan_axis)];
    if (length == 0) s.units = 0;
    bytes = state_bytes(*k.loops.reduction);
    may_share = s.units < kLargeFromUnits && length >= 4 * kLargeGroup;
  } else {
    s.units = product(extents);
    if (k.loops.reduction && !k.reduce_extents.empty()) {
      length = product(k.reduce_extents);
      bytes = state_bytes(*k.loops.reduction);
      const int innermost = static_cast<int>(extents.size() + k.reduce_extents.size()) - 1;
      may_share = s.units < kEnoughItems || reads_along(k, k.loops.reduction->element, innermost);
    }
  }
  if (!target.is_cpu && may_share && length >= kGroupFromElements) {
    s.group_items = group_for(length, bytes, target);
    s.form = GpuForm::Group;
    return s;
  }
  s.group_items = std::min(s.units >= kLargeFromUnits ? kLargeGroup : kSmallGroup, target.most_group_items);
  return s;
}

}  // namespace tandem::codegen
