// The blocks of a loop nest: loops, conditions and the places between them where instructions go.
#pragma once
#include <unordered_map>

#include "llvm_emit_values.hpp"

namespace tandem::cpu {

// A place in the loop nest. Expressions are emitted at the outermost place that knows all their axes, so nothing invariant is
// computed in an inner loop.
struct Place {
  Place* parent = nullptr;
  int depth = 0;
  bool vector = false;                // lanes are spread here
  llvm::Value* mask = nullptr;        // lanes that exist, in a tail; null: all
  llvm::BasicBlock* block = nullptr;  // ends in a placeholder until the place is left
  using Memo = std::unordered_map<const ir::ScalarNode*, llvm::Value*>;
  Memo single[kMostUnroll], lanes[kMostUnroll];  // one for each vector that is worked on together
};

struct Loop {
  llvm::BasicBlock* before;
  llvm::BasicBlock* exit;
  llvm::PHINode* index;
  llvm::Value* end;
  std::vector<llvm::PHINode*> carried;
};

class LoopBlocks : protected LaneValues {
 protected:
  using LaneValues::LaneValues;
  llvm::BasicBlock* new_block(const char* label);
  void at(const Place& p) { b_.SetInsertPoint(p.block->getTerminator()); }
  void end_block(llvm::BasicBlock* block);  // drops the placeholder; the caller writes the real end
  void finish(Place& p);

  // for (index = begin; index < end; index += step) with values carried around; leaves `outer` in the block behind the loop.
  Loop open_loop(Place& outer, Place& inner, llvm::Value* begin, llvm::Value* end, const std::vector<llvm::Value*>& initial);
  std::vector<llvm::Value*> close_loop(Loop& l, Place& outer, Place& inner, llvm::Value* step, const std::vector<llvm::Value*>& next);

  // if (condition) then-part; values flow out through both ways.
  template <class F>
  std::vector<llvm::Value*> emit_if(Place& outer, llvm::Value* condition, const std::vector<llvm::Value*>& otherwise, F body) {
    Place inner;
    inner.parent = &outer;
    inner.depth = outer.depth + 1;
    inner.block = new_block("then");
    llvm::BasicBlock* before = outer.block;
    llvm::BasicBlock* exit = new_block("join");
    end_block(before);
    b_.CreateCondBr(condition, inner.block, exit);
    std::vector<llvm::Value*> then = body(inner);
    end_block(inner.block);
    b_.CreateBr(exit);
    b_.SetInsertPoint(exit->getTerminator());
    std::vector<llvm::Value*> results;
    for (size_t i = 0; i < then.size(); ++i) {
      auto* phi = b_.CreatePHI(then[i]->getType(), 2);
      phi->addIncoming(otherwise[i], before);
      phi->addIncoming(then[i], inner.block);
      results.push_back(phi);
    }
    outer.block = exit;
    return results;
  }

  llvm::Function* function_ = nullptr;
};

}  // namespace tandem::cpu
