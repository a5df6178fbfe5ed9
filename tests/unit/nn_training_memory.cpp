// A step of a warm loop allocates nothing. Counts what this program asks of operator new and of the device.
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include <tandem/nn/layers/core.hpp>
#include <tandem/nn/training.hpp>

namespace {
std::atomic<int64_t> allocations = 0;
}  // namespace

// All forms of it, since all end in the same delete. Where only one of a pair is inlined, GCC takes it for the wrong partner of the other.
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size ? size : 1);
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const auto a = static_cast<size_t>(alignment);
  return std::aligned_alloc(a, (size + a - 1) / a * a);
}
[[gnu::noinline]] void* operator new(size_t size) {
  if (void* p = operator new(size, std::nothrow)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  if (void* p = operator new(size, alignment, std::nothrow)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }

namespace tandem::nn {
namespace {

TEST(TrainingMemory, AStepAllocatesNothing) {
  const Tensor x = Tensor::ones({512, 20});
  for (const bool shuffle : {false, true}) {
    // Targets that are classes are looked at before each step.
    const bool has_classes = shuffle;
    const Tensor y = Tensor::zeros({512, 1}, has_classes ? DType::I32 : DType::F32);
    const Model model =
        Sequential({InputLayer(Dims{20}), Dense(32, {.activation = "relu"}), Dense(has_classes ? 3 : 1, {.activation = "sigmoid"})});
    model.compile({.optimizer = "adam", .loss = {"crossentropy"}, .metrics = {"accuracy"}});
    TrainingLoop loop(model, nn::Run::Kind::Train, {x}, {y}, {.batch_size = 8, .shuffle = shuffle});
    loop.begin_epoch();
    loop.run(10);
    const int64_t before = allocations;
    EXPECT_EQ(loop.run(50), 50);
    EXPECT_EQ(allocations - before, 0) << (shuffle ? "shuffled" : "in order");
  }
}

}  // namespace
}  // namespace tandem::nn
