#include "nn/saving/loading.hpp"

#include "base/text.hpp"

namespace tandem::nn {
namespace {

thread_local LoadingScope* current = nullptr;
// 4096 x 4096 at once, as a picture of that height has when it is resized to the same; sixteen of these in all, since networks inside
// networks are looked at more than once.
constexpr int64_t kMostOfAConstant = int64_t{1} << 24, kMostOfConstants = kMostOfAConstant * 16;
// A layer is called once for each level of networks around it. A network that calls a network twice, which calls one twice, … is small
// in a file and never ends.
constexpr int64_t kMostCalls = 200'000;
// Weights that the file has not: as long as they are few, the list of all that does not fit says more than the first that is too large.
constexpr uint64_t kMostMissing = uint64_t{1} << 22;

}  // namespace

LoadingScope::LoadingScope(uint64_t file_numbers)
    : outer_(current),
      file_numbers_(file_numbers),
      weights_left_(file_numbers + kMostMissing),
      constants_left_(kMostOfConstants),
      calls_left_(kMostCalls) {
  current = this;
}
LoadingScope::~LoadingScope() { current = outer_; }

bool LoadingScope::active() { return current != nullptr; }

void LoadingScope::take_weight(const std::string& weight, const Shape& shape) {
  if (!current) return;
  const auto needed = static_cast<uint64_t>(element_count(shape));
  if (needed > current->weights_left_)
    user_error("weight '", weight, "' of shape ", shape, " has ", needed, " numbers, more than the file's ", current->file_numbers_,
               " can fill");
  current->weights_left_ -= needed;
}

void LoadingScope::take_constant(const std::string& what, int64_t numbers) {
  if (!current) return;
  if (numbers > kMostOfAConstant)
    user_error(what, " needs ", numbers, " numbers, a model from a file may have ", kMostOfAConstant,
               " at once\n  hint: a program that makes the model itself may have more, and load its weights");
  if (numbers > current->constants_left_)
    user_error(what, " needs ", numbers, " numbers, ", current->constants_left_, " of ", kMostOfConstants,
               " are left of what a model from a file may have");
  current->constants_left_ -= numbers;
}

void LoadingScope::count_call() {
  if (current && --current->calls_left_ < 0)
    user_error("layers are called more than ", kMostCalls, " times\n  hint: networks inside networks, each called several times");
}

}  // namespace tandem::nn
