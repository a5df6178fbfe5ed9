// Emits machine code for canonical loops. The vectors are written out here, explicitly: LLVM only selects instructions. That keeps
// compiling in the low milliseconds and the bits under our control: a tail runs the same vector code under a mask, so what an element
// becomes never depends on where it stands.
#include "llvm_emit.hpp"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>

#include "base/text.hpp"
#include "llvm_emit_values.hpp"

namespace tandem::cpu {
namespace {

using codegen::LoopKernel;
using ir::Prim;
using ir::Scalar;
using ir::ScalarNode;
using llvm::BasicBlock;
using llvm::PHINode;
using llvm::Type;
using llvm::Value;

// A place in the loop nest. Expressions are emitted at the outermost place that knows all their axes, so nothing invariant is
// computed in an inner loop.
struct Place {
  Place* parent = nullptr;
  int depth = 0;
  bool vector = false;          // lanes are spread here
  Value* mask = nullptr;        // lanes that exist, in a tail; null: all
  BasicBlock* block = nullptr;  // ends in a placeholder until the place is left
  using Memo = std::unordered_map<const ScalarNode*, Value*>;
  Memo single[kMostUnroll], lanes[kMostUnroll];  // one for each vector that is worked on together
};

struct Loop {
  BasicBlock* before;
  BasicBlock* exit;
  PHINode* index;
  Value* end;
  std::vector<PHINode*> carried;
};

class Emitter final : LaneValues {
 public:
  Emitter(const LoopKernel& k, const Schedule& s, const Target& t, llvm::LLVMContext& context, llvm::Module& module)
      : LaneValues(t, context, module), kernel_(k), schedule_(s) {}

  void run() {
    Type* pointer = b_.getPtrTy();
    Type* i64 = b_.getInt64Ty();
    function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, i64, i64, i64, i64}, false),
                                       llvm::Function::ExternalLinkage, kKernelSymbol, module_);
    function_->addFnAttr("target-cpu", target_.cpu);
    function_->addFnAttr("target-features", target_.features);
    function_->addFnAttr("prefer-vector-width", target_.wide ? "512" : "256");
    function_->addFnAttr(llvm::Attribute::NoUnwind);

    outputs_ = static_cast<int>(kernel_.extents.size());
    axes_ = outputs_ + static_cast<int>(kernel_.reduce_extents.size());
    axis_values_.assign(static_cast<size_t>(std::max(axes_, 1)), nullptr);
    axis_depth_.assign(static_cast<size_t>(std::max(axes_, 1)), 0);
    vector_axis_ = schedule_.mode == Mode::Along ? axes_ - 1 : schedule_.mode == Mode::ScanAlong ? -1 : outputs_ - 1;
    if (kernel_.loops.reduction) reduction_ = &*kernel_.loops.reduction;

    Place entry;
    entry.block = new_block("entry");
    read_arguments(entry);
    walk_rows(entry);
    finish(entry);
  }

 private:
  // ---- blocks ----
  BasicBlock* new_block(const char* label) {
    auto* block = BasicBlock::Create(context_, label, function_);
    new llvm::UnreachableInst(context_, block);
    return block;
  }
  void at(const Place& p) { b_.SetInsertPoint(p.block->getTerminator()); }
  void end_block(BasicBlock* block) {  // drops the placeholder; the caller writes the real end
    block->getTerminator()->eraseFromParent();
    b_.SetInsertPoint(block);
  }
  void finish(Place& p) {
    end_block(p.block);
    b_.CreateRetVoid();
  }

  // for (index = begin; index < end; index += step) with values carried around; leaves `outer` in the block behind the loop.
  Loop open_loop(Place& outer, Place& inner, Value* begin, Value* end, const std::vector<Value*>& initial) {
    Loop l;
    inner.parent = &outer;
    inner.depth = outer.depth + 1;
    inner.block = new_block("body");
    l.before = outer.block;
    l.exit = new_block("exit");
    l.end = end;
    end_block(outer.block);
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), inner.block, l.exit);
    at(inner);
    l.index = b_.CreatePHI(b_.getInt64Ty(), 2);
    l.index->addIncoming(begin, l.before);
    for (Value* v : initial) {
      l.carried.push_back(b_.CreatePHI(v->getType(), 2));
      l.carried.back()->addIncoming(v, l.before);
    }
    return l;
  }
  std::vector<Value*> close_loop(Loop& l, Place& outer, Place& inner, Value* step, const std::vector<Value*>& next) {
    end_block(inner.block);
    Value* following = b_.CreateAdd(l.index, step);
    b_.CreateCondBr(b_.CreateICmpSLT(following, l.end), l.index->getParent(), l.exit);
    l.index->addIncoming(following, inner.block);
    b_.SetInsertPoint(l.exit->getTerminator());
    std::vector<Value*> results;
    for (size_t i = 0; i < next.size(); ++i) {
      l.carried[i]->addIncoming(next[i], inner.block);
      auto* out = b_.CreatePHI(next[i]->getType(), 2);
      out->addIncoming(l.carried[i]->getIncomingValue(0), l.before);
      out->addIncoming(next[i], inner.block);
      results.push_back(out);
    }
    outer.block = l.exit;
    return results;
  }

  // if (condition) then-part; values flow out through both ways.
  template <class F> std::vector<Value*> emit_if(Place& outer, Value* condition, const std::vector<Value*>& otherwise, F body) {
    Place inner;
    inner.parent = &outer;
    inner.depth = outer.depth + 1;
    inner.block = new_block("then");
    BasicBlock* before = outer.block;
    BasicBlock* exit = new_block("join");
    end_block(before);
    b_.CreateCondBr(condition, inner.block, exit);
    std::vector<Value*> then = body(inner);
    end_block(inner.block);
    b_.CreateBr(exit);
    b_.SetInsertPoint(exit->getTerminator());
    std::vector<Value*> results;
    for (size_t i = 0; i < then.size(); ++i) {
      auto* phi = b_.CreatePHI(then[i]->getType(), 2);
      phi->addIncoming(otherwise[i], before);
      phi->addIncoming(then[i], inner.block);
      results.push_back(phi);
    }
    outer.block = exit;
    return results;
  }

  // ---- the nest ----
  void read_arguments(Place& entry) {
    at(entry);
    auto read = [&](Value* base, Type* t, size_t i) { return b_.CreateLoad(t, b_.CreateConstGEP1_64(t, base, i)); };
    for (size_t i = 0; i < kernel_.inputs.size() + kernel_.outputs.size(); ++i)
      pointers_.push_back(read(function_->getArg(0), b_.getPtrTy(), i));
    for (size_t i = 0; i < kernel_.params.size(); ++i) params_.push_back(read(function_->getArg(1), b_.getInt64Ty(), i));
    // Where a guarded load of a single value reads when it must not read its operand.
    nowhere_ = b_.CreateAlloca(b_.getInt64Ty());
    b_.CreateStore(b_.getInt64(0), nowhere_);
  }

  int extent_parameter(int axis) {
    const Dim& d = axis < outputs_ ? kernel_.loops.extents[static_cast<size_t>(axis)]
                                   : kernel_.loops.reduction->extents[static_cast<size_t>(axis - outputs_)];
    return std::stoi(d.str().substr(1));
  }
  Value* extent_value(int axis) { return params_[static_cast<size_t>(extent_parameter(axis))]; }

  // Rows are numbered through. The innermost of their axes is a loop of its own, so that what does not vary along it is computed outside;
  // the others are counted along like an odometer: dividing a row's number costs more than a short row.
  void walk_rows(Place& entry) {
    std::vector<int> row_axes;
    for (int j = 0; j + 1 < outputs_; ++j)
      if (j != kernel_.loops.scan_axis) row_axes.push_back(j);
    Value *first = function_->getArg(2), *end = function_->getArg(3);
    if (row_axes.size() < 2) {
      Place row;
      Loop rows = open_loop(entry, row, first, end, {});
      if (!row_axes.empty()) set_axis(row_axes[0], rows.index, row);
      one_row(row);
      close_loop(rows, entry, row, b_.getInt64(1), {});
      return;
    }
    const int last = row_axes.back();
    row_axes.pop_back();
    at(entry);
    Value* extent = extent_value(last);
    Value* outer_first = b_.CreateUDiv(first, extent);
    Value* outer_end = b_.CreateUDiv(b_.CreateAdd(end, b_.CreateSub(extent, b_.getInt64(1))), extent);
    std::vector<Value*> start(row_axes.size());
    Value* rest = outer_first;
    for (size_t i = row_axes.size(); i-- > 0;) {
      start[i] = i == 0 ? rest : b_.CreateURem(rest, extent_value(row_axes[i]));
      if (i != 0) rest = b_.CreateUDiv(rest, extent_value(row_axes[i]));
    }
    Place outer, row;
    Loop outers = open_loop(entry, outer, outer_first, outer_end, start);
    for (size_t i = 0; i < row_axes.size(); ++i) set_axis(row_axes[i], outers.carried[i], outer);
    at(outer);
    Value* before = b_.CreateMul(outers.index, extent);  // rows before this outer one
    Value* row_first = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(first, before), b_.getInt64(0));
    Value* row_end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(end, before), extent);
    Loop rows = open_loop(outer, row, row_first, row_end, {});
    set_axis(last, rows.index, row);
    one_row(row);
    close_loop(rows, outer, row, b_.getInt64(1), {});
    at(outer);
    std::vector<Value*> next(row_axes.size());
    Value* carry = b_.getInt64(1);
    for (size_t i = row_axes.size(); i-- > 0;) {
      Value* sum = b_.CreateAdd(outers.carried[i], carry);
      if (i == 0) {
        next[i] = sum;
        break;
      }
      Value* over = b_.CreateICmpEQ(sum, extent_value(row_axes[i]));
      next[i] = b_.CreateSelect(over, b_.getInt64(0), sum);
      carry = b_.CreateZExt(over, b_.getInt64Ty());
    }
    close_loop(outers, entry, outer, b_.getInt64(1), next);
  }

  void one_row(Place& row) {
    switch (schedule_.mode) {
      case Mode::Along: along(row); break;
      case Mode::Row: row_by_row(row); break;
      case Mode::ScanAlong: scan_along(row); break;
      default: columns(row); break;
    }
  }

  // Whole vectors, then one masked vector for what is left.
  template <class F> std::vector<Value*> vector_loop(Place& outer, Value* begin, Value* end, std::vector<Value*> carried, F body) {
    at(outer);
    Value* middle = whole_end(begin, end, 1);
    Place inner;
    Loop l = open_loop(outer, inner, begin, middle, carried);
    inner.vector = true;
    std::vector<Value*> state(l.carried.begin(), l.carried.end());
    carried = close_loop(l, outer, inner, b_.getInt64(lanes_), body(inner, l.index, state));
    at(outer);
    return emit_if(outer, b_.CreateICmpSLT(middle, end), carried, [&](Place& tail) {
      at(tail);
      tail.vector = true;
      Value* left = b_.CreateTrunc(b_.CreateSub(end, middle), b_.getInt32Ty());
      tail.mask = b_.CreateICmpULT(lane_numbers(b_.getInt32Ty()), b_.CreateVectorSplat(lanes_, left));
      return body(tail, middle, carried);
    });
  }

  void set_axis(int axis, Value* v, const Place& p) {
    axis_values_[static_cast<size_t>(axis)] = v;
    axis_depth_[static_cast<size_t>(axis)] = p.depth;
  }

  void columns(Place& row) {
    Value* begin = schedule_.mode == Mode::Across && schedule_.unroll > 1 ? across_several(row) : function_->getArg(4);
    vector_loop(row, begin, function_->getArg(5), {}, [&](Place& p, Value* column, const std::vector<Value*>&) {
      if (outputs_ > 0) set_axis(outputs_ - 1, column, p);
      if (schedule_.mode == Mode::Map) {
        store_results(p, {});
      } else if (schedule_.mode == Mode::Across) {
        store_results(p, reduce(p, outputs_, identities(p, true),
                                [&](Place& q, std::vector<Value*> state) { return combine(q, state, elements(q), true); }));
      } else {
        scan(p);
      }
      return std::vector<Value*>{};
    });
  }

  // Several vectors of columns at a time: the reduction walks down a wide strip of memory. Returns where whole strips end.
  Value* across_several(Place& row) {
    const int count = schedule_.unroll;
    at(row);
    Value* middle = whole_end(function_->getArg(4), function_->getArg(5), count);
    Place strip;
    Loop l = open_loop(row, strip, function_->getArg(4), middle, {});
    strip.vector = true;
    set_axis(outputs_ - 1, l.index, strip);
    std::vector<Value*> state = reduce(strip, outputs_, repeated(identities(strip, true), count),
                                       [&](Place& q, const std::vector<Value*>& s) { return combine_several(q, s, count); });
    const size_t components = state.size() / static_cast<size_t>(count);
    for (sub_ = 0; sub_ < count; ++sub_) store_results(strip, part(state, sub_, components));
    sub_ = 0;
    close_loop(l, row, strip, b_.getInt64(static_cast<uint64_t>(lanes_ * count)), {});
    return middle;
  }

  // begin, plus as many whole groups of `count` vectors as fit before `end`.
  Value* whole_end(Value* begin, Value* end, int count) {
    const uint64_t mask = ~static_cast<uint64_t>(lanes_ * count - 1);
    return b_.CreateAdd(begin, b_.CreateAnd(b_.CreateSub(end, begin), b_.getInt64(mask)));
  }
  static std::vector<Value*> repeated(const std::vector<Value*>& v, int count) {
    std::vector<Value*> r;
    for (int i = 0; i < count; ++i) r.insert(r.end(), v.begin(), v.end());
    return r;
  }
  static std::vector<Value*> part(const std::vector<Value*>& v, int index, size_t size) {
    const auto begin = v.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(index) * size);
    return {begin, begin + static_cast<std::ptrdiff_t>(size)};
  }
  // The states of several vectors, each combined with its own elements.
  std::vector<Value*> combine_several(Place& q, const std::vector<Value*>& state, int count) {
    const size_t components = state.size() / static_cast<size_t>(count);
    std::vector<Value*> next;
    for (sub_ = 0; sub_ < count; ++sub_)
      for (Value* v : combine(q, part(state, sub_, components), elements(q), true)) next.push_back(v);
    sub_ = 0;
    return next;
  }

  void along(Place& row) {
    at(row);
    Place cell;
    Loop cells = open_loop(row, cell, function_->getArg(4), function_->getArg(5), {});
    if (outputs_ > 0) set_axis(outputs_ - 1, cells.index, cell);
    std::vector<Value*> state = reduce(cell, outputs_, identities(cell, true), [](Place&, std::vector<Value*> s) { return s; });
    at(cell);
    store_results(cell, across_lanes(cell, state));
    close_loop(cells, row, cell, b_.getInt64(1), {});
  }

  // A row stays in the first cache while its reductions, and then its results, walk over it.
  void row_by_row(Place& row) {
    row_depth_ = row.depth;
    row_state_.clear();
    if (schedule_.keeps) find_kept();
    for (const ir::Reduction& r : kernel_.loops.row_reductions) {
      reduction_ = &r;
      std::vector<Value*> state = along_axis(row, outputs_ - 1, function_->getArg(5), identities(row, true));
      for (Value* v : across_lanes(row, state)) row_state_.push_back(v);
      ++walk_;
    }
    const size_t whole = kernel_.loops.results.size() - static_cast<size_t>(kernel_.loops.row_results);
    if (whole > 0)
      vector_loop(row, b_.getInt64(0), function_->getArg(5), {}, [&](Place& p, Value* column, const std::vector<Value*>&) {
        set_axis(outputs_ - 1, column, p);
        store_results(p, {});
        return std::vector<Value*>{};
      });
    std::vector<Value*> values;
    for (size_t o = whole; o < kernel_.loops.results.size(); ++o) values.push_back(single(kernel_.loops.results[o], row));
    Value* index = single(dense_index(outputs_ - 1), row);
    at(row);
    for (size_t o = whole; o < kernel_.loops.results.size(); ++o) {
      const DType t = kernel_.loops.results[o].dtype();
      Value* address = b_.CreateGEP(memory_type(t), pointers_[kernel_.inputs.size() + o], index);
      b_.CreateAlignedStore(to_memory(values[o - whole], t), address, natural(t));
    }
  }

  struct Kept {
    Value* memory;
    int walk;  // the first that computes it
  };
  // Functions of an element that a later walk over the row asks for again (softmax: exp) are put down beside the row when they are first
  // computed. There is room for them on the stack, because only rows of kMostKeptColumns are scheduled so.
  void find_kept() {
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

  // Combines all elements along one axis into `state`, lanes side by side.
  std::vector<Value*> along_axis(Place& p, int axis, Value* end, std::vector<Value*> state) {
    at(p);
    Value* begin = schedule_.unroll > 1 ? along_several(p, axis, end, state) : b_.getInt64(0);
    return vector_loop(p, begin, end, state, [&](Place& q, Value* i, const std::vector<Value*>& s) {
      set_axis(axis, i, q);
      return combine(q, s, elements(q), true);
    });
  }

  // Loops over the reduce axes from `axis` on; in Along mode the last one is a vector loop that combines by itself.
  template <class F> std::vector<Value*> reduce(Place& p, int axis, std::vector<Value*> state, F innermost) {
    if (axis == axes_) return innermost(p, state);
    if (schedule_.window) return written_out(p, axis, state, innermost);
    Value* end = axis == outputs_ && kernel_.loops.reduction->limit ? single(kernel_.loops.reduction->limit, p) : extent_value(axis);
    at(p);
    if (schedule_.mode == Mode::Along && axis == axes_ - 1) return along_axis(p, axis, end, state);
    Place inner;
    Loop l = open_loop(p, inner, b_.getInt64(0), end, state);
    inner.vector = p.vector;
    inner.mask = p.mask;
    set_axis(axis, l.index, inner);
    state = reduce(inner, axis + 1, {l.carried.begin(), l.carried.end()}, innermost);
    return close_loop(l, p, inner, b_.getInt64(1), state);
  }

  // The turns of a short loop one after the other.
  template <class F> std::vector<Value*> written_out(Place& p, int axis, std::vector<Value*> state, F innermost) {
    for (int64_t i = 0; i < kernel_.reduce_extents[static_cast<size_t>(axis - outputs_)]; ++i) {
      Place turn;  // in the same block; only what varies along the axis is its own
      turn.parent = &p;
      turn.depth = p.depth + 1;
      turn.vector = p.vector;
      turn.mask = p.mask;
      turn.block = p.block;
      set_axis(axis, b_.getInt64(static_cast<uint64_t>(i)), turn);
      state = reduce(turn, axis + 1, state, innermost);
      p.block = turn.block;
    }
    return state;
  }

  // Several independent states, so that one combination need not wait for the one before; joined at the end of the axis.
  Value* along_several(Place& p, int axis, Value* end, std::vector<Value*>& state) {
    const int count = schedule_.unroll;
    const size_t components = state.size();
    std::vector<Value*> several = state;
    for (Value* v : repeated(identities(p, true), count - 1)) several.push_back(v);
    at(p);
    Value* middle = whole_end(b_.getInt64(0), end, count);
    Place inner;
    Loop l = open_loop(p, inner, b_.getInt64(0), middle, several);
    inner.vector = true;
    set_axis(axis, l.index, inner);
    several = combine_several(inner, {l.carried.begin(), l.carried.end()}, count);
    several = close_loop(l, p, inner, b_.getInt64(static_cast<uint64_t>(lanes_ * count)), several);
    state = part(several, 0, components);
    for (int i = 1; i < count; ++i) state = combine(p, state, part(several, i, components), true);
    at(p);
    return middle;
  }

  void scan(Place& p) {
    at(p);
    Place inner;
    const int axis = kernel_.loops.scan_axis;
    std::vector<Value*> start = identities(p, true);
    Loop l = open_loop(p, inner, b_.getInt64(0), extent_value(axis), start);
    inner.vector = true;
    inner.mask = p.mask;
    set_axis(axis, l.index, inner);
    std::vector<Value*> state = combine(inner, {l.carried.begin(), l.carried.end()}, elements(inner), true);
    store_results(inner, state);
    close_loop(l, p, inner, b_.getInt64(1), state);
  }

  void scan_along(Place& row) {
    at(row);
    Place inner;
    std::vector<Value*> start = identities(row, false);
    Loop l = open_loop(row, inner, function_->getArg(4), function_->getArg(5), start);
    set_axis(outputs_ - 1, l.index, inner);
    std::vector<Value*> state = combine(inner, {l.carried.begin(), l.carried.end()}, elements(inner), false);
    store_results(inner, state);
    close_loop(l, row, inner, b_.getInt64(1), state);
  }

  // ---- reductions ----
  std::vector<Value*> identities(Place& p, bool lanes) {
    std::vector<Value*> r;
    for (const Scalar& s : reduction_->identity) r.push_back(lanes ? splat_at(p, single(s, p)) : single(s, p));
    return r;
  }
  std::vector<Value*> elements(Place& p) {
    std::vector<Value*> r;
    for (const Scalar& s : reduction_->element) r.push_back(p.vector ? vectored(s, p) : single(s, p));
    return r;
  }
  // In a tail along the reduce axis, lanes that do not exist keep their state.
  std::vector<Value*> combine(Place& p, const std::vector<Value*>& left, const std::vector<Value*>& right, bool lanes) {
    Combination c{left, right, {}, lanes};
    std::vector<Value*> r;
    combining_ = true;
    for (const Scalar& s : reduction_->combine) r.push_back(with_state(s, p, c));
    combining_ = false;
    if (p.mask && (schedule_.mode == Mode::Along || schedule_.mode == Mode::Row)) {
      at(p);
      for (size_t i = 0; i < r.size(); ++i) r[i] = b_.CreateSelect(p.mask, r[i], left[i]);
    }
    return r;
  }
  std::vector<Value*> across_lanes(Place& p, std::vector<Value*> state) {
    for (int half = lanes_ / 2; half >= 1; half /= 2) {
      std::vector<int> upper;
      for (int i = 0; i < lanes_; ++i) upper.push_back((i + half) % lanes_);
      std::vector<Value*> right;
      at(p);
      for (Value* v : state) right.push_back(b_.CreateShuffleVector(v, upper));
      state = combine(p, state, right, true);
    }
    at(p);
    for (Value*& v : state) v = b_.CreateExtractElement(v, uint64_t{0});
    return state;
  }

  // ---- expressions ----
  struct Uses {
    uint64_t axes = 0;
    bool state = false;  // the accumulators of a combination or of the one reduction, which belong to one moment
    bool row = false;    // the results of reductions along the row, which are there for the rest of it
  };
  Uses uses(const Scalar& s) {
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
  bool varies(const Scalar& s) { return vector_axis_ >= 0 && (uses(s).axes >> vector_axis_ & 1); }

  Place& home(const Scalar& s, Place& p) {
    int depth = uses(s).row ? row_depth_ : 0;
    for (uint64_t axes = uses(s).axes, j = 0; axes; axes >>= 1, ++j)
      if (axes & 1) depth = std::max(depth, axis_depth_[j]);
    Place* q = &p;
    while (q->parent && q->depth > depth) q = q->parent;
    return *q;
  }

  // The value for the first lane (or the only one).
  Value* single(const Scalar& s, Place& here) {
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

  // One value a lane. What does not vary is computed once, outside, and repeated.
  Value* vectored(const Scalar& s, Place& here) {
    Place& p = home(s, here);
    Place::Memo& memo = p.lanes[varies(s) ? sub_ : 0];
    if (auto it = memo.find(s.get()); it != memo.end()) return it->second;
    const auto kept = kept_.find(s.get());
    Value* v;
    if (!varies(s)) {
      v = single(s, p);
      v = splat_at(p, v);
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
  Value* kept_address(const Scalar& s, const Kept& kept, Place& p) {
    at(p);
    return b_.CreateGEP(register_type(s->dtype), kept.memory, axis_value(vector_axis_));
  }

  Value* splat_at(Place& p, Value* v) {
    at(p);
    return b_.CreateVectorSplat(lanes_, v);
  }

  // Expressions over accumulators belong to one moment, so they have a memory of their own.
  struct Combination {
    const std::vector<Value*>& left;
    const std::vector<Value*>& right;
    std::unordered_map<const ScalarNode*, Value*> memo;
    bool lanes;
  };
  Value* with_state(const Scalar& s, Place& p, Combination& c) {
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

  static bool leaf(const Scalar& s) { return s->prim <= Prim::Right && s->prim != Prim::Load; }
  Value* leaf_value(const Scalar& s, bool lanes) {
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
  // For the first lane of the vector being worked on.
  Value* axis_value(int axis) {
    Value* v = axis_values_[static_cast<size_t>(axis)];
    return axis == vector_axis_ && sub_ > 0 ? b_.CreateAdd(v, b_.getInt64(static_cast<uint64_t>(sub_ * lanes_))) : v;
  }
  Value* lane_numbers(Type* t) {
    std::vector<llvm::Constant*> c;
    for (int i = 0; i < lanes_; ++i) c.push_back(llvm::ConstantInt::get(t, static_cast<uint64_t>(i)));
    return llvm::ConstantVector::get(c);
  }

  // ---- memory ----
  llvm::Align natural(DType t) { return llvm::Align(size_of(t)); }

  Value* load_single(const Scalar& s, Place& p) {
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

  Value* load_lanes(const Scalar& s, Place& p) {
    const bool contiguous = codegen::step_along(s->in[0], vector_axis_) == 1;
    // A load that only varies through its guard reads one value.
    const bool repeated = !varies(s->in[0]);
    Value* valid = s->guarded ? vectored(s->in[1], p) : nullptr;
    Value* otherwise = s->guarded ? vectored(s->in[2], p) : nullptr;
    Type* t = memory_type(s->dtype);
    Type* vector_type = shaped(t, true);
    Value* base = pointers_[static_cast<size_t>(s->index)];
    Value* v;
    if (contiguous) {
      Value* index = single(s->in[0], p);
      at(p);
      Value* mask = both(p.mask, valid);
      Value* address = b_.CreateGEP(t, base, index);
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
  Value* both(Value* a, Value* b) { return a && b ? b_.CreateAnd(a, b) : a ? a : b; }

  // The place of an element in a row-major result over the first `count` output axes.
  const Scalar& dense_index(int count) {
    Scalar& index = dense_index_[count];
    if (!index) {
      index = ir::constant_int(DType::I64, 0);
      for (int j = 0; j < count; ++j) index = j == 0 ? ir::axis(0) : index * extent_leaf(j) + ir::axis(j);
    }
    return index;
  }
  Scalar extent_leaf(int axis) {
    auto n = std::make_shared<ScalarNode>();
    n->prim = Prim::Extent;
    n->dtype = DType::I64;
    n->index = extent_parameter(axis);
    n->dim = Dim::symbol(cat("p", n->index));
    return Scalar(std::move(n));
  }

  void store_results(Place& p, const std::vector<Value*>& state) {
    Value* index = single(dense_index(outputs_), p);
    Combination c{state, state, {}, p.vector};
    // All are computed before the first is stored: an output may lie where an input is read.
    std::vector<Value*> values;
    const size_t whole = kernel_.loops.results.size() - static_cast<size_t>(kernel_.loops.row_results);
    for (const Scalar& s : std::span(kernel_.loops.results).first(whole)) {
      Value* v = with_state(s, p, c);
      at(p);
      values.push_back(to_memory(v, s.dtype()));
    }
    for (size_t o = 0; o < values.size(); ++o) {
      const Scalar& s = kernel_.loops.results[o];
      Value* v = values[o];
      Type* t = memory_type(s.dtype());
      Value* address = b_.CreateGEP(t, pointers_[kernel_.inputs.size() + o], index);
      if (p.mask)
        b_.CreateMaskedStore(v, address, natural(s.dtype()), p.mask);
      else
        b_.CreateAlignedStore(v, address, natural(s.dtype()));
    }
  }

  const LoopKernel& kernel_;
  const Schedule& schedule_;
  llvm::Function* function_ = nullptr;
  int outputs_ = 0, axes_ = 0, vector_axis_ = -1;
  int sub_ = 0;  // which of several vectors worked on together
  std::vector<Value*> pointers_, params_, axis_values_;
  std::vector<int> axis_depth_;
  Value* nowhere_ = nullptr;
  const ir::Reduction* reduction_ = nullptr;  // the one being emitted
  bool combining_ = false;                    // inside its `combine`, whose Acc means its own state
  int row_depth_ = 0;
  std::vector<Value*> row_state_;  // what the reductions along the row gave so far
  std::unordered_map<const ScalarNode*, Uses> uses_[2];
  std::map<int, Scalar> dense_index_;
  std::unordered_map<const ScalarNode*, Kept> kept_;
  int walk_ = 0;  // over a row: its reductions in order, then its results
};

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& t) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  std::string error;
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) internal_error("LLVM has no target for ", triple, ": ", error);
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, t.cpu, t.features, llvm::TargetOptions(), llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Less, true));
}

// A TargetMachine serves one thread at a time: each compilation borrows one, and they are kept.
class Machine {
 public:
  explicit Machine(const Target& t) : key_(t.cpu + t.features) {
    std::lock_guard lock(mutex());
    auto& idle = machines()[key_];
    machine_ = idle.empty() ? make_machine(t) : std::move(idle.back());
    if (!idle.empty()) idle.pop_back();
  }
  ~Machine() {
    std::lock_guard lock(mutex());
    machines()[key_].push_back(std::move(machine_));
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  llvm::TargetMachine& operator*() const { return *machine_; }

 private:
  using Idle = std::unordered_map<std::string, std::vector<std::unique_ptr<llvm::TargetMachine>>>;
  static std::mutex& mutex() {
    static std::mutex m;
    return m;
  }
  static Idle& machines() {
    static Idle all;
    return all;
  }
  std::string key_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

}  // namespace
}  // namespace tandem::cpu

// Takes the place of __cxa_atexit in this library (see device.cmake): nothing in it is torn down when the process ends, so that a
// thread may still be inside.
extern "C" int __wrap___cxa_atexit(void (*)(void*), void*, void*) { return 0; }  // NOLINT(bugprone-reserved-identifier)

extern "C" __attribute__((visibility("default"))) void tandem_llvm_emit(const tandem::codegen::LoopKernel& kernel,
                                                                        const tandem::cpu::Schedule& schedule,
                                                                        const tandem::cpu::Target& target, std::vector<char>& object) {
  using namespace tandem;
  const cpu::Machine borrowed(target);
  llvm::TargetMachine& machine = *borrowed;
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  cpu::Emitter(kernel, schedule, target, context, module).run();
#ifndef NDEBUG
  std::string why;
  llvm::raw_string_ostream os(why);
  if (llvm::verifyModule(module, &os)) internal_error("LLVM refuses the code of a kernel: ", why, "\n", kernel.key);
#endif
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile))
    internal_error("LLVM cannot write object files for this machine");
  passes.run(module);
  object.assign(bytes.begin(), bytes.end());
}
