// Expressions at their places in a loop nest: each is emitted once, at the outermost place that knows all its axes.
#pragma once
#include <map>

#include "llvm_emit_blocks.hpp"

namespace tandem::cpu {

class Expressions : protected LoopBlocks {
 public:
  Expressions(const codegen::LoopKernel& k, const Schedule& s, const Target& t, llvm::LLVMContext& context, llvm::Module& module);

 protected:
  void read_arguments(Place& entry);
  llvm::Value* extent_value(int axis) { return params_[static_cast<size_t>(extent_parameter(axis))]; }
  void set_axis(int axis, llvm::Value* v, const Place& p);
  // For the first lane of the vector being worked on.
  llvm::Value* axis_value(int axis);
  llvm::Value* lane_numbers(llvm::Type* t);

  // The value for the first lane (or the only one).
  llvm::Value* single(const ir::Scalar& s, Place& here);
  // One value a lane. What does not vary is computed once, outside, and repeated.
  llvm::Value* vectored(const ir::Scalar& s, Place& here);
  llvm::Value* splat_at(Place& p, llvm::Value* v);

  // Expressions over accumulators belong to one moment, so they have a memory of their own.
  struct Combination {
    const std::vector<llvm::Value*>& left;
    const std::vector<llvm::Value*>& right;
    Place::Memo memo;
    bool lanes;
  };
  llvm::Value* with_state(const ir::Scalar& s, Place& p, Combination& c);

  // Functions of an element that a later walk over the row asks for again (softmax: exp) are put down beside the row when they are first
  // computed. There is room for them on the stack, because only rows of kMostKeptColumns are scheduled so.
  void find_kept();

  // Where four vectors are worked on together from a multiple of four of `shared_position_` on, what four neighbours share is computed once
  // for all of them, one group a lane.
  ir::Scalar shared_position_;
  bool shares_ = false;

  // The place of an element in a row-major result over the first `count` output axes.
  const ir::Scalar& dense_index(int count);
  llvm::Align natural(DType t) { return llvm::Align(size_of(t)); }

  const codegen::LoopKernel& kernel_;
  const Schedule& schedule_;
  int outputs_ = 0, axes_ = 0, vector_axis_ = -1;
  int sub_ = 0;  // which of several vectors worked on together
  std::vector<llvm::Value*> pointers_, params_;
  bool combining_ = false;  // inside a reduction's `combine`, whose Acc means its own state
  int row_depth_ = 0;
  std::vector<llvm::Value*> row_state_;  // what the reductions along the row gave so far
  int walk_ = 0;                         // over a row: its reductions in order, then its results

 private:
  struct Uses {
    uint64_t axes = 0;
    bool state = false;  // the accumulators of a combination or of the one reduction, which belong to one moment
    bool row = false;    // the results of reductions along the row, which are there for the rest of it
  };
  struct Kept {
    llvm::Value* memory;
    int walk;  // the first that computes it
  };
  Uses uses(const ir::Scalar& s);
  bool varies(const ir::Scalar& s) { return vector_axis_ >= 0 && (uses(s).axes >> vector_axis_ & 1); }
  Place& home(const ir::Scalar& s, Place& p);
  bool is_group(const ir::Scalar& s) const;  // the number of the four that an element belongs to
  bool is_shared(const ir::Scalar& s);
  llvm::Value* shared(const ir::Scalar& s, Place& p);
  llvm::Value* kept_address(const ir::Scalar& s, const Kept& kept, Place& p);
  static bool leaf(const ir::Scalar& s) { return s->prim <= ir::Prim::Right && s->prim != ir::Prim::Load; }
  llvm::Value* leaf_value(const ir::Scalar& s, bool lanes);
  llvm::Value* load_single(const ir::Scalar& s, Place& p);
  llvm::Value* load_lanes(const ir::Scalar& s, Place& p);
  llvm::Value* both(llvm::Value* a, llvm::Value* b) { return a && b ? b_.CreateAnd(a, b) : a ? a : b; }
  int extent_parameter(int axis);
  ir::Scalar extent_leaf(int axis);

  std::vector<llvm::Value*> axis_values_;
  std::vector<int> axis_depth_;
  llvm::Value* nowhere_ = nullptr;  // zeros, as many as a vector: where a guarded load reads when it must not read its operand
  std::unordered_map<const ir::ScalarNode*, Uses> uses_[2];
  std::unordered_map<const ir::ScalarNode*, Kept> kept_;
  std::unordered_map<const ir::ScalarNode*, bool> is_shared_;
  Place::Memo shared_;
  std::map<int, ir::Scalar> dense_index_;
};

}  // namespace tandem::cpu
