#include <tandem/random.hpp>

#include <tandem/ops.hpp>

namespace tandem {
namespace {

// SplitMix64: seeds that differ in one bit give states that differ in half of theirs.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Tensor initial_state(uint64_t seed) {
  const uint64_t bits = mixed(seed);
  return Tensor::of({static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)});
}

}  // namespace

Generator::Generator(uint64_t seed) : state_(initial_state(seed), {.name = "generator", .trainable = false}) {}

// The state is the key itself, and its second word counts.
Tensor Generator::next_key(Where where) {
  const Tensor key = state_.value(where);
  static const auto& step = *new Tensor(Tensor::of({uint32_t{0}, uint32_t{1}}));
  state_.assign(Operand(Operand(key, where) + Operand(step, where), where));
  return key;
}

Tensor Generator::uniform(const DimList& shape, const Operand& low, const Operand& high, DType dtype) {
  return random_uniform(next_key(low.where()), shape, low, high, dtype);
}
Tensor Generator::normal(const DimList& shape, const Operand& mean, const Operand& stddev, DType dtype) {
  return random_normal(next_key(mean.where()), shape, mean, stddev, dtype);
}
Tensor Generator::truncated_normal(const DimList& shape, const Operand& mean, const Operand& stddev, DType dtype) {
  return tandem::truncated_normal(next_key(mean.where()), shape, mean, stddev, dtype);
}
Tensor Generator::integers(const DimList& shape, const Operand& low, const Operand& high, DType dtype) {
  return random_int(next_key(low.where()), low, high, shape, dtype);
}
Tensor Generator::bernoulli(const DimList& shape, const Operand& p) { return tandem::bernoulli(next_key(p.where()), p, shape); }
Tensor Generator::permutation(int64_t count, Where where) {
  const Tensor all = Tensor::arange(count);
  return tandem::shuffle(next_key(where), Operand(all, where));
}
Tensor Generator::shuffle(const Operand& x, int64_t axis) { return tandem::shuffle(next_key(x.where()), x, axis); }
Tensor Generator::dropout(const Operand& x, double rate) { return tandem::dropout(next_key(x.where()), x, rate); }

}  // namespace tandem
