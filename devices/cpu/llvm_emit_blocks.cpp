#include "llvm_emit_blocks.hpp"

namespace tandem::cpu {

using llvm::BasicBlock;
using llvm::Value;

BasicBlock* LoopBlocks::new_block(const char* label) {
  auto* block = BasicBlock::Create(context_, label, function_);
  new llvm::UnreachableInst(context_, block);
  return block;
}

void LoopBlocks::end_block(BasicBlock* block) {
  block->getTerminator()->eraseFromParent();
  b_.SetInsertPoint(block);
}

void LoopBlocks::finish(Place& p) {
  end_block(p.block);
  b_.CreateRetVoid();
}

Loop LoopBlocks::open_loop(Place& outer, Place& inner, Value* begin, Value* end, const std::vector<Value*>& initial) {
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

std::vector<Value*> LoopBlocks::close_loop(Loop& l, Place& outer, Place& inner, Value* step, const std::vector<Value*>& next) {
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

}  // namespace tandem::cpu
