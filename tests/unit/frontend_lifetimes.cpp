// Who owns which memory for how long: variables and the caller's memory, tapes and threads, ops at the end of a thread or of the program,
// and what is kept when shapes always change.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#include "frontend_support.hpp"

namespace tandem {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // with memory of their own, which no limit may cut and no count leaves out
#else
constexpr bool kSanitized = false;
#endif

// --- the caller's memory ---------------------------------------------------------------------------------------------------------

TEST(Lifetimes, ACompiledAssignTakesNoneOfTheCallersMemory) {
  float memory[2] = {1, 2};
  const Variable v(Tensor::of({0.f, 0.f}));
  Function set([&](Tensor x) {
    v.assign(x);
    return x;
  });
  Function add_one([&] {
    v.assign(v + 1);
    return v.value();
  });
  set(Tensor::view(memory, DType::F32, {2}));
  memory[0] = 10;
  EXPECT_EQ(floats(v.value()), (F{1, 2}));
  add_one();
  add_one();
  EXPECT_EQ(memory[0], 10);
  EXPECT_EQ(memory[1], 2);
  EXPECT_EQ(floats(v.value()), (F{3, 4}));
}

TEST(Lifetimes, ACompiledAssignOfACapturedTensorTakesACopyToo) {
  float memory[2] = {1, 2};
  const Variable v(Tensor::of({0.f, 0.f}));
  {
    const Tensor outside = Tensor::view(memory, DType::F32, {2});
    Function([&] {
      v.assign(outside);
      return v + 0;
    })();
  }
  memory[1] = 7;
  EXPECT_EQ(floats(v.value()), (F{1, 2}));
}

// --- tapes -----------------------------------------------------------------------------------------------------------------------

TEST(Lifetimes, ATapeMayEndOnAnotherThread) {
  const Tensor x = Tensor::of({2.f});
  auto outer = std::make_optional<Tape>();
  outer->watch(x);
  auto inner = std::make_optional<Tape>(TapeOptions{.persistent = true});
  inner->watch(x);
  const Tensor y = x * x;
  std::thread([&] {
    Tape own;  // that thread's list is its own
    const Variable w(3.f);
    const Tensor z = w * w;
    inner.reset();
    EXPECT_EQ(own.gradient(z, w).item<float>(), 6);
  }).join();
  const Tensor z = y * x;  // the outer one still records, the inner one is gone
  EXPECT_EQ(outer->gradient(z, x).item<float>(), 12);
}

TEST(Lifetimes, ATapeMayOutliveItsThread) {
  std::optional<Tape> tape;
  const Variable w(3.f);
  Tensor y;
  std::thread([&] {
    tape.emplace(TapeOptions{.persistent = true});
    y = w * w;
  }).join();
  const Tensor z = w * w;  // not recorded: another thread
  EXPECT_EQ(tape->gradient(y, w).item<float>(), 6);
  EXPECT_FALSE(tape->gradient(z, w).defined());
  std::thread([&] { tape.reset(); }).join();
  EXPECT_EQ((w * w).item<float>(), 9);
}

TEST(Lifetimes, AnAssignedTapeEndsTheOldOne) {
  const Tensor x = Tensor::of({2.f});
  Tape tape;
  tape = Tape();
  tape.watch(x);
  EXPECT_EQ(tape.gradient(x * x, x).item<float>(), 4);
}

// --- the ends of threads and programs ----------------------------------------------------------------------------------------------

// An op with a number, a compiled function with more tensors than a call keeps on the stack, and a gradient.
bool everything_works() {
  std::vector<Variable> many;
  for (int i = 0; i < 40; ++i) many.emplace_back(static_cast<float>(i));
  Function sum([&](Tensor x) {
    for (const Variable& v : many) x = x + v;
    return x;
  });
  const Tensor x = Tensor::of({1.f, 2.f}) * 3.f + 0.25f;
  Tape tape;
  tape.watch(x);
  const Tensor y = square(x) * 2.f;
  const F gradient = floats(tape.gradient(y, x));
  return floats(sum(x)) == F{783.25f, 786.25f} && gradient == F{13, 25};
}

struct AtThreadEnd {
  bool* result;
  ~AtThreadEnd() { *result = everything_works(); }
};

TEST(Lifetimes, OpsWorkAfterTheThreadsLocalsAreGone) {
  bool before = false, after = false;
  std::thread([&] {
    static thread_local std::optional<AtThreadEnd> end;  // made before the engine's own, so destroyed after them
    end.emplace(&after);
    before = everything_works();
  }).join();
  EXPECT_TRUE(before);
  EXPECT_TRUE(after);
}

void end_with_work() {
  std::atexit([] { _exit(everything_works() ? 7 : 1); });  // runs after all that is registered later
  std::exit(everything_works() ? 3 : 2);
}

TEST(LifetimesDeathTest, OpsWorkWhileTheProgramEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_with_work(), testing::ExitedWithCode(7), "");
}

// --- the border --------------------------------------------------------------------------------------------------------------------

TEST(Lifetimes, WhatTheStandardLibraryThrowsIsAResourceErrorWithALine) {
  const Function no_memory([](Tensor x) -> Tensor { throw std::bad_alloc(); });
  const std::string text = error_of<ResourceError>([&] { no_memory(Tensor::of({1.f})); });
  EXPECT_TRUE(text.starts_with("tandem: the host has no memory left\n  at frontend_lifetimes.cpp:")) << text;
  const Function own([](Tensor x) -> Tensor { throw std::out_of_range("mine"); });
  EXPECT_THROW(own(Tensor::of({1.f})), std::out_of_range);
}

// --- shapes that always change ---------------------------------------------------------------------------------------------------

size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}
size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(Lifetimes, AThousandShapesTakeNoMoreThanAFewHundred) {
  if (kSanitized) GTEST_SKIP() << "counts memory";
  const Variable w1(Tensor::full({64, 128}, 0.01f)), w2(Tensor::full({128, 8}, 0.01f));
  const auto loss_of = [&](const Tensor& x) { return mean(square(matmul(relu(matmul(x, w1)), w2))); };
  const auto step = [&](const Tensor& x) {
    Tape tape;
    const Tensor loss = loss_of(x);
    const std::vector<Tensor> g = tape.gradients(loss, {w1, w2});
    w1.assign_sub(g[0] * 0.01f);
    w2.assign_sub(g[1] * 0.01f);
    return loss;
  };
  const Function symbolic(step, std::vector{Spec{DType::F32, {Dim::symbol("b"), 64}}});  // a plan for each size
  const Function retraced(step);                                                         // a trace for each size
  size_t heap = 0, resident = 0;
  for (int64_t n = 1; n <= 1000; ++n) {
    const Tensor x = Tensor::ones({1 + n * 7 % 1009, 64});
    symbolic(x);
    if (n % 2) retraced(x);
    loss_of(x);  // eager ops
    if (n == 600) heap = heap_bytes(), resident = resident_bytes();
  }
  // 400 sizes more than when all caches were full.
  EXPECT_LT(heap_bytes(), heap + (size_t{4} << 20));
  EXPECT_LT(resident_bytes(), resident + (size_t{16} << 20));
}

void run_within_a_limit() {
  // A thread that allocates for the first time would reserve 64 MiB of addresses, which count, at a moment that nobody knows.
  mallopt(M_ARENA_MAX, 1);
  const auto mebibytes = [](int64_t n) { return n << 18; };  // in floats
  const Function twice([](Tensor x) { return sum(transpose(x) * 2.f) + sum(matmul(transpose(x), sort(x, 0))); });
  twice(Tensor::ones({2, 64}));
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  statm >> pages;
  const size_t limit = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + (size_t{140} << 20);
  const rlimit as{limit, limit};
  setrlimit(RLIMIT_AS, &as);
  // Each round leaves an arena behind that the next, of another size, has no room beside.
  for (int64_t n = 12; n <= 28; n += 4) twice(Tensor::ones({mebibytes(n) / 64, 64}));
  const Tensor large = Tensor::ones({mebibytes(80)});
  bool refused = false;
  try {
    const Tensor too_large = Tensor::ones({mebibytes(120)});
  } catch (const ResourceError&) {
    refused = true;
  }
  _exit(refused && large[0].item<float>() == 1 && everything_works() ? 7 : 1);
}

TEST(LifetimesDeathTest, ALimitOfTheSystemMakesTheEngineGiveMemoryBack) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes more address space than any limit";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_within_a_limit(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace tandem
