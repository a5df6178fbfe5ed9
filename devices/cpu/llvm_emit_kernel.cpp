// The nest of loops that a kernel is: rows, columns, reductions and scans, as the schedule says. The vectors are written out here,
// explicitly: LLVM only selects instructions. That keeps compiling in the low milliseconds and the bits under our control: a tail runs the
// same vector code under a mask, so what an element becomes never depends on where it stands.
#include "llvm_emit_kernel.hpp"

#include <llvm/IR/Intrinsics.h>

#include "llvm_emit_expressions.hpp"

namespace tandem::cpu {
namespace {

using codegen::LoopKernel;
using ir::Scalar;
using llvm::Type;
using llvm::Value;

class Emitter final : Expressions {
 public:
  using Expressions::Expressions;

  void run() {
    Type* pointer = b_.getPtrTy();
    Type* i64 = b_.getInt64Ty();
    function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, i64, i64, i64, i64}, false),
                                       llvm::Function::ExternalLinkage, kKernelSymbol, module_);
    function_->addFnAttr("target-cpu", target_.cpu);
    function_->addFnAttr("prefer-vector-width", target_.wide ? "512" : "256");
    function_->addFnAttr(llvm::Attribute::NoUnwind);

    if (kernel_.loops.reduction) reduction_ = &*kernel_.loops.reduction;

    Place entry;
    entry.block = new_block("entry");
    read_arguments(entry);
    walk_rows(entry);
    finish(entry);
  }

 private:
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

  void columns(Place& row) {
    Value* begin = schedule_.unroll == 1            ? function_->getArg(4)
                   : schedule_.mode == Mode::Across ? across_several(row)
                                                    : shared_by_four(row);
    vector_loop(row, begin, function_->getArg(5), {}, [&](Place& p, Value* column, const std::vector<Value*>&) {
      if (outputs_ > 0) set_axis(outputs_ - 1, column, p);
      if (schedule_.mode == Mode::Map) {
        store_results(p, {});
      } else if (schedule_.mode == Mode::Across) {
        store_results(
            p, reduce(p, outputs_, identities(p, true), [&](Place& q, const std::vector<Value*>& state) { return take_in(q, state); }));
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
    close_loop(l, row, strip, b_.getInt64(static_cast<uint64_t>(lanes_) * static_cast<uint64_t>(count)), {});
    return middle;
  }

  // Four vectors at a time, in which neighbours share what they have in common; none if the row does not begin with such a group. Returns
  // where whole strips end.
  Value* shared_by_four(Place& row) {
    static_assert(kUnroll == 4);
    shared_position_ = codegen::shared_by_four(kernel_.loops.results, outputs_ - 1);
    Value *begin = function_->getArg(4), *end = function_->getArg(5);
    Place start;  // in the same block
    start.parent = &row;
    start.depth = row.depth + 1;
    start.block = row.block;
    set_axis(outputs_ - 1, begin, start);
    Value* position = single(shared_position_, start);
    row.block = start.block;
    at(row);
    Value* is_aligned = b_.CreateICmpEQ(b_.CreateAnd(position, b_.getInt64(3)), b_.getInt64(0));
    Value* middle = b_.CreateSelect(is_aligned, whole_end(begin, end, kUnroll), begin);
    Place strip;
    Loop l = open_loop(row, strip, begin, middle, {});
    strip.vector = true;
    set_axis(outputs_ - 1, l.index, strip);
    shares_ = true;
    for (sub_ = 0; sub_ < kUnroll; ++sub_) store_results(strip, {});
    sub_ = 0;
    shares_ = false;
    close_loop(l, row, strip, b_.getInt64(static_cast<uint64_t>(lanes_) * kUnroll), {});
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
      for (Value* v : take_in(q, part(state, sub_, components))) next.push_back(v);
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

  // A row stays in the L1 cache while its reductions, and then its results, walk over it.
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

  // Combines all elements along one axis into `state`, lanes side by side.
  std::vector<Value*> along_axis(Place& p, int axis, Value* end, std::vector<Value*> state) {
    at(p);
    Value* begin = schedule_.unroll > 1 ? along_several(p, axis, end, state) : b_.getInt64(0);
    return vector_loop(p, begin, end, state, [&](Place& q, Value* i, const std::vector<Value*>& s) {
      set_axis(axis, i, q);
      return take_in(q, s);
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
    several = close_loop(l, p, inner, b_.getInt64(static_cast<uint64_t>(lanes_) * static_cast<uint64_t>(count)), several);
    state = part(several, 0, components);
    for (int i = 1; i < count; ++i) state = combine(p, state, part(several, i, components));
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
    std::vector<Value*> state = take_in(inner, {l.carried.begin(), l.carried.end()});
    store_results(inner, state);
    close_loop(l, p, inner, b_.getInt64(1), state);
  }

  void scan_along(Place& row) {
    at(row);
    Place inner;
    std::vector<Value*> start = identities(row, false);
    Loop l = open_loop(row, inner, function_->getArg(4), function_->getArg(5), start);
    set_axis(outputs_ - 1, l.index, inner);
    std::vector<Value*> state = take_in(inner, {l.carried.begin(), l.carried.end()});
    store_results(inner, state);
    close_loop(l, row, inner, b_.getInt64(1), state);
  }

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

  // States of lanes.
  std::vector<Value*> combine(Place& p, const std::vector<Value*>& left, const std::vector<Value*>& right) {
    Combination c{left, right, {}, true};
    return combined(p, reduction_->combine, c);
  }
  std::vector<Value*> combined(Place& p, const std::vector<Scalar>& how, Combination& c) {
    std::vector<Value*> r;
    combining_ = true;
    for (const Scalar& s : how) r.push_back(with_state(s, p, c));
    combining_ = false;
    return r;
  }

  // The next elements into a state; in a tail along the reduce axis, lanes that do not exist keep theirs.
  std::vector<Value*> take_in(Place& p, const std::vector<Value*>& state) {
    const std::vector<Value*> next = elements(p);
    Combination c{state, next, {}, p.vector};
    std::vector<Value*> r = combined(p, reduction_->in_order(), c);
    if (p.mask && (schedule_.mode == Mode::Along || schedule_.mode == Mode::Row)) {
      at(p);
      for (size_t i = 0; i < r.size(); ++i) r[i] = b_.CreateSelect(p.mask, r[i], state[i]);
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
      state = combine(p, state, right);
    }
    at(p);
    for (Value*& v : state) v = b_.CreateExtractElement(v, uint64_t{0});
    return state;
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

  const ir::Reduction* reduction_ = nullptr;  // the one being emitted
};

}  // namespace

void emit_kernel(const LoopKernel& kernel, const Schedule& schedule, const Target& target, llvm::LLVMContext& context,
                 llvm::Module& module) {
  Emitter(kernel, schedule, target, context, module).run();
}

}  // namespace tandem::cpu
