// Values in registers and the primitives on them, for one lane or for a vector of lanes: what an expression becomes, wherever it stands.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "ir/scalar.hpp"
#include "schedule.hpp"
#include "target.hpp"

namespace tandem::cpu {

class LaneValues {
 public:
  LaneValues(const Target& target, llvm::LLVMContext& context, llvm::Module& module)
      : target_(target), context_(context), module_(module), b_(context), lanes_(target.lanes) {}

 protected:
  // float16 and bfloat16 live in registers as float32 values that they can hold exactly.
  llvm::Type* register_type(DType t);
  llvm::Type* memory_type(DType t);
  llvm::Type* shaped(llvm::Type* t, bool lanes);
  llvm::Value* constant(const ir::ScalarNode& n);
  llvm::Value* like(llvm::Value* v, uint64_t x);
  llvm::Value* from_memory(llvm::Value* v, DType t);
  llvm::Value* to_memory(llvm::Value* v, DType t);
  llvm::Value* rounded(llvm::Value* v, DType t);
  // Everything that is no leaf and no load, on operands already emitted.
  llvm::Value* primitive(const ir::ScalarNode& n, const std::vector<llvm::Value*>& in, bool lanes);

  const Target& target_;
  llvm::LLVMContext& context_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  int lanes_;

 private:
  llvm::Value* compare(ir::Prim p, llvm::Value* a, llvm::Value* b, DType t);
  llvm::Value* cast(llvm::Value* v, DType from, DType to, bool lanes);
  llvm::Value* int_primitive(ir::Prim p, const std::vector<llvm::Value*>& in, DType t, bool lanes);
  llvm::Value* divide(ir::Prim p, llvm::Value* a, llvm::Value* b, DType t);
  static bool is_safe_divisor(llvm::Constant* c);
  llvm::Value* shift(ir::Prim p, llvm::Value* a, llvm::Value* b, DType t);
  llvm::Value* float_primitive(ir::Prim p, const std::vector<llvm::Value*>& in, DType t);
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* exp(llvm::Value* x);
  llvm::Value* erfc(llvm::Value* x);
  llvm::Value* times_power_of_two(llvm::Value* v, llvm::Value* n);
  llvm::Value* vector_math(ir::Prim p, const std::vector<llvm::Value*>& in, DType t);
  llvm::Value* lane_by_lane(const char* symbol, llvm::Value* v, DType t);
};

}  // namespace tandem::cpu
