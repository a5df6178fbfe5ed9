// Generator: a stream of random numbers. Its state is a variable, so a compiled function draws new numbers at each call.
#pragma once
#include <cstdint>
#include <source_location>

#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

namespace tandem {

// The same seed gives the same numbers, on any machine and at any number of threads.
class Generator {
 public:
  using Where = std::source_location;
  explicit Generator(uint64_t seed);

  Tensor next_key(Where where = Where::current());  // a key for the functions in <tandem/ops.hpp> that want one; never the same twice

  Tensor uniform(const DimList& shape, const Operand& low = 0.0, const Operand& high = 1.0, DType dtype = DType::F32);
  Tensor normal(const DimList& shape, const Operand& mean = 0.0, const Operand& stddev = 1.0, DType dtype = DType::F32);
  Tensor truncated_normal(const DimList& shape, const Operand& mean = 0.0, const Operand& stddev = 1.0, DType dtype = DType::F32);
  Tensor integers(const DimList& shape, const Operand& low, const Operand& high, DType dtype = DType::I32);  // in [low, high)
  Tensor bernoulli(const DimList& shape, const Operand& p);
  Tensor permutation(int64_t count, Where where = Where::current());  // of 0 … count-1, int32
  Tensor shuffle(const Operand& x, int64_t axis = 0);
  Tensor dropout(const Operand& x, double rate);

  const Variable& state() const { return state_; }  // uint32[2]; assign it to go back to a place in the stream

 private:
  Variable state_;
};

}  // namespace tandem
