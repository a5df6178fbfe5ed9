#include "llvm_emit_expressions.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace tandem::cpu {

using ir::Prim;
using ir::Scalar;
using ir::ScalarNode;
using llvm::Type;
using llvm::Value;

Expressions::Expressions(const codegen::LoopKernel& k, const Schedule& s, const Target& t, llvm::LLVMContext& context, llvm::Module& module)
    : LoopBlocks(t, context, module), kernel_(k), schedule_(s) {
  outputs_ = static_cast<int>(kernel_.extents.size());
  axes_ = outputs_ + static_cast<int>(kernel_.reduce_extents.size());
  axis_values_.assign(static_cast<size_t>(std::max(axes_, 1)), nullptr);
  axis_depth_.assign(static_cast<size_t>(std::max(axes_, 1)), 0);
  vector_axis_ = schedule_.mode == Mode::Along ? axes_ - 1 : schedule_.mode == Mode::ScanAlong ? -1 : outputs_ - 1;
}

void Expressions::read_arguments(Place& entry) {
  at(entry);
  auto read = [&](Value* base, Type* t, size_t i) { return b_.CreateLoad(t, b_.CreateConstGEP1_64(t, base, i)); };
  for (size_t i = 0; i < kernel_.inputs.size() + kernel_.outputs.size(); ++i)
    pointers_.push_back(read(function_->getArg(0), b_.getPtrTy(), i));
  for (size_t i = 0; i < kernel_.params.size(); ++i) params_.push_back(read(function_->getArg(1), b_.getInt64Ty(), i));
  Type* widest = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(lanes_));
  nowhere_ = b_.CreateAlloca(widest);
  b_.CreateStore(llvm::Constant::getNullValue(widest), nowhere_);
}

int Expressions::extent_parameter(int axis) {
  const Dim& d = axis < outputs_ ? kernel_.loops.extents[static_cast<size_t>(axis)]
                                 : kernel_.loops.reduction->extents[static_cast<size_t>(axis - outputs_)];
  return std::stoi(d.str().substr(1));
}

void Expressions::set_axis(int axis, Value* v, const Place& p) {
  axis_values_[static_cast<size_t>(axis)] = v;
  axis_depth_[static_cast<size_t>(axis)] = p.depth;
}

void Expressions::find_kept() {
  std::unordered_map<const ScalarNode*, int> first;
  const auto look = [&](std::span<const Scalar> roots, int walk) {
    for (const Scalar& s : ir::post_order(roots)) {
      if (!is_function(s->prim) || !varies(s)) continue;
      const auto [it, is_new] = first.emplace(s.get(), walk);
      if (is_new || it->second == walk || kept_.contains(s.get())) continue;
      b_.SetInsertPoint(&function_->getEntryBlock(), function_->getEntryBlock().begin());
      kept_.emplace(s.get(), Kept{b_.CreateAlloca(register_type(s->dtype), b_.getInt64(kMostKeptColumns)), it->second});
    }
  };
  int walk = 0;
  for (const ir::Reduction& r : kernel_.loops.row_reductions) look(r.element, walk++);
  look(kernel_.loops.results, walk);
}

Expressions::Uses Expressions::uses(const Scalar& s) {
  auto& known = uses_[combining_ ? 1 : 0];
  if (auto it = known.find(s.get()); it != known.end()) return it->second;
  Uses u;
  if (s->prim == Prim::Axis) u.axes = uint64_t{1} << s->index;
  if (s->prim == Prim::Acc || s->prim == Prim::Right) (schedule_.mode == Mode::Row && !combining_ ? u.row : u.state) = true;
  for (const Scalar& x : s->in) {
    const Uses v = uses(x);
    u.axes |= v.axes;
    u.state |= v.state;
    u.row |= v.row;
  }
  known.emplace(s.get(), u);
  return u;
}

Place& Expressions::home(const Scalar& s, Place& p) {
  int depth = uses(s).row ? row_depth_ : 0;
  for (uint64_t axes = uses(s).axes, j = 0; axes; axes >>= 1, ++j)
    if (axes & 1) depth = std::max(depth, axis_depth_[j]);
  Place* q = &p;
  while (q->parent && q->depth > depth) q = q->parent;
  return *q;
}

Value* Expressions::single(const Scalar& s, Place& here) {
  Place& p = home(s, here);
  Place::Memo& memo = p.single[varies(s) ? sub_ : 0];
  if (auto it = memo.find(s.get()); it != memo.end()) return it->second;
  Value* v;
  if (s->prim == Prim::Load) {
    v = load_single(s, p);
  } else {
    std::vector<Value*> in;
    for (const Scalar& x : s->in) in.push_back(single(x, p));
    at(p);
    v = leaf(s) ? leaf_value(s, false) : primitive(*s, in, false);
  }
  memo.emplace(s.get(), v);
  return v;
}

Value* Expressions::vectored(const Scalar& s, Place& here) {
  Place& p = home(s, here);
  Place::Memo& memo = p.lanes[varies(s) ? sub_ : 0];
  if (auto it = memo.find(s.get()); it != memo.end()) return it->second;
  const auto kept = kept_.find(s.get());
  Value* v;
  if (!varies(s)) {
    v = single(s, p);
    v = splat_at(p, v);
  } else if (shares_ && is_shared(s)) {
    Value* groups = shared(s, p);
    std::vector<int> pick;
    for (int i = 0; i < lanes_; ++i) pick.push_back((sub_ * lanes_ + i) / 4);
    at(p);
    v = b_.CreateShuffleVector(groups, pick);
  } else if (kept != kept_.end() && kept->second.walk < walk_) {
    Value* address = kept_address(s, kept->second, p);
    v = b_.CreateAlignedLoad(shaped(register_type(s->dtype), true), address, natural(s->dtype));
  } else if (s->prim == Prim::Load) {
    v = load_lanes(s, p);
  } else {
    std::vector<Value*> in;
    for (const Scalar& x : s->in) in.push_back(vectored(x, p));
    at(p);
    v = leaf(s) ? leaf_value(s, true) : primitive(*s, in, true);
    if (kept != kept_.end()) b_.CreateAlignedStore(v, kept_address(s, kept->second, p), natural(s->dtype));
  }
  memo.emplace(s.get(), v);
  return v;
}

bool Expressions::is_group(const Scalar& s) const {
  return s->prim == Prim::Shr && s->in[0].get() == shared_position_.get() && s->in[1]->prim == Prim::Const && s->in[1]->bits == 2;
}

bool Expressions::is_shared(const Scalar& s) {
  if (auto it = is_shared_.find(s.get()); it != is_shared_.end()) return it->second;
  bool is = is_group(s);
  if (!is && varies(s) && !leaf(s) && s->prim != Prim::Load)
    is = std::ranges::all_of(s->in, [&](const Scalar& x) { return !varies(x) || is_shared(x); });
  return is_shared_[s.get()] = is;
}

Value* Expressions::shared(const Scalar& s, Place& p) {
  if (auto it = shared_.find(s.get()); it != shared_.end()) return it->second;
  Value* v;
  if (is_group(s)) {
    const int sub = std::exchange(sub_, 0);
    Value* first = single(s, p);
    sub_ = sub;
    at(p);
    v = b_.CreateAdd(b_.CreateVectorSplat(lanes_, first), lane_numbers(b_.getInt64Ty()));
  } else {
    std::vector<Value*> in;
    for (const Scalar& x : s->in) in.push_back(varies(x) ? shared(x, p) : vectored(x, p));
    at(p);
    v = primitive(*s, in, true);
  }
  shared_.emplace(s.get(), v);
  return v;
}

Value* Expressions::kept_address(const Scalar& s, const Kept& kept, Place& p) {
  at(p);
  return b_.CreateGEP(register_type(s->dtype), kept.memory, axis_value(vector_axis_));
}

Value* Expressions::splat_at(Place& p, Value* v) {
  at(p);
  return b_.CreateVectorSplat(lanes_, v);
}

Value* Expressions::with_state(const Scalar& s, Place& p, Combination& c) {
  if (!uses(s).state) return c.lanes ? vectored(s, p) : single(s, p);
  if (s->prim == Prim::Acc) return c.left[static_cast<size_t>(s->index)];
  if (s->prim == Prim::Right) return c.right[static_cast<size_t>(s->index)];
  if (auto it = c.memo.find(s.get()); it != c.memo.end()) return it->second;
  TANDEM_CHECK(s->prim != Prim::Load, "a load's address depends on an accumulator");
  std::vector<Value*> in;
  for (const Scalar& x : s->in) in.push_back(with_state(x, p, c));
  at(p);
  Value* v = primitive(*s, in, c.lanes);
  c.memo.emplace(s.get(), v);
  return v;
}

Value* Expressions::leaf_value(const Scalar& s, bool lanes) {
  switch (s->prim) {
    case Prim::Const: return constant(*s);
    case Prim::Extent: return params_[static_cast<size_t>(s->index)];
    case Prim::Acc: return row_state_.at(static_cast<size_t>(s->index));
    case Prim::Axis: {
      Value* v = axis_value(s->index);
      return lanes ? b_.CreateAdd(b_.CreateVectorSplat(lanes_, v), lane_numbers(b_.getInt64Ty())) : v;
    }
    default: internal_error("cannot emit leaf ", ir::name(s->prim));
  }
}

Value* Expressions::axis_value(int axis) {
  Value* v = axis_values_[static_cast<size_t>(axis)];
  return axis == vector_axis_ && sub_ > 0 ? b_.CreateAdd(v, b_.getInt64(static_cast<uint64_t>(sub_) * static_cast<uint64_t>(lanes_))) : v;
}

Value* Expressions::lane_numbers(Type* t) {
  std::vector<llvm::Constant*> c;
  for (int i = 0; i < lanes_; ++i) c.push_back(llvm::ConstantInt::get(t, static_cast<uint64_t>(i)));
  return llvm::ConstantVector::get(c);
}

Value* Expressions::load_single(const Scalar& s, Place& p) {
  Value* index = single(s->in[0], p);
  Value* valid = s->guarded ? single(s->in[1], p) : nullptr;
  Value* otherwise = s->guarded ? single(s->in[2], p) : nullptr;
  at(p);
  Type* t = memory_type(s->dtype);
  Value* address = b_.CreateGEP(t, pointers_[static_cast<size_t>(s->index)], index);
  if (valid) address = b_.CreateSelect(valid, address, nowhere_);
  Value* v = from_memory(b_.CreateAlignedLoad(t, address, natural(s->dtype)), s->dtype);
  return valid ? b_.CreateSelect(valid, v, otherwise) : v;
}

Value* Expressions::load_lanes(const Scalar& s, Place& p) {
  const bool contiguous = codegen::step_along(s->in[0], vector_axis_) == 1;
  // A load that only varies through its guard reads one value.
  const bool repeated = !varies(s->in[0]);
  // All lanes or none: no mask, which a processor is slow with where the address is nobody's (a joined tensor beyond its part).
  const bool together = contiguous && s->guarded && !varies(s->in[1]);
  Value* valid = !s->guarded ? nullptr : together ? single(s->in[1], p) : vectored(s->in[1], p);
  Value* otherwise = s->guarded ? vectored(s->in[2], p) : nullptr;
  Type* t = memory_type(s->dtype);
  Type* vector_type = shaped(t, true);
  Value* base = pointers_[static_cast<size_t>(s->index)];
  Value* v;
  if (contiguous) {
    Value* index = single(s->in[0], p);
    at(p);
    Value* mask = together ? p.mask : both(p.mask, valid);
    Value* address = b_.CreateGEP(t, base, index);
    if (together) address = b_.CreateSelect(valid, address, nowhere_);
    v = mask ? b_.CreateMaskedLoad(vector_type, address, natural(s->dtype), mask, llvm::Constant::getNullValue(vector_type))
             : static_cast<Value*>(b_.CreateAlignedLoad(vector_type, address, natural(s->dtype)));
  } else {
    Value* index = repeated ? splat_at(p, single(s->in[0], p)) : vectored(s->in[0], p);
    at(p);
    Value* mask = both(p.mask, valid);
    if (!mask) mask = llvm::ConstantInt::getTrue(shaped(b_.getInt1Ty(), true));
    v = b_.CreateMaskedGather(vector_type, b_.CreateGEP(t, base, index), natural(s->dtype), mask,
                              llvm::Constant::getNullValue(vector_type));
  }
  v = from_memory(v, s->dtype);
  return valid ? b_.CreateSelect(valid, v, otherwise) : v;
}

const Scalar& Expressions::dense_index(int count) {
  Scalar& index = dense_index_[count];
  if (!index) {
    index = ir::constant_int(DType::I64, 0);
    for (int j = 0; j < count; ++j) index = j == 0 ? ir::axis(0) : index * extent_leaf(j) + ir::axis(j);
  }
  return index;
}

Scalar Expressions::extent_leaf(int axis) {
  auto n = std::make_shared<ScalarNode>();
  n->prim = Prim::Extent;
  n->dtype = DType::I64;
  n->index = extent_parameter(axis);
  n->dim = Dim::symbol(cat("p", n->index));
  return Scalar(std::move(n));
}

}  // namespace tandem::cpu
