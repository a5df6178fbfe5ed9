// Random kernels on every device, compared with the interpreter. FUZZ_COUNT and FUZZ_SEED in the environment ask for more or others.
#include <cstdlib>

#include "base/text.hpp"
#include "random_loops.hpp"

namespace tandem::testing {
namespace {

int fuzz_count() {
  const char* text = std::getenv("FUZZ_COUNT");
  return text ? std::atoi(text) : 300;
}

class Fuzz : public ::testing::TestWithParam<std::string> {};

TEST_P(Fuzz, RandomKernelsAgreeWithTheInterpreter) {
  if (const std::string why = missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
  device::Device& d = device::get(GetParam());
  if (!d.info().executes) GTEST_SKIP() << "computes nothing";
  const char* text = std::getenv("FUZZ_SEED");
  const int first = text ? std::atoi(text) : 1;
  int failures = 0;
  for (int seed = first; seed < first + fuzz_count() && failures < 5; ++seed) {
    RandomKernel r = random_kernel(static_cast<uint64_t>(seed));
    const auto expected = interpreted(r.loops, r.in);
    const codegen::Kernel k = kernel_of(r.loops, r.in);
    const auto got = launched(d, k, r.in);
    for (size_t i = 0; i < got.size(); ++i) {
      const auto same = near(got[i], expected[i], r.allowed[i]);
      failures += !same;
      EXPECT_TRUE(same) << "seed " << seed << ", output " << i << "\n" << ir::str(r.loops) << "\n" << k.stages[0].key;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Fuzz, ::testing::ValuesIn(device::names()), [](const auto& p) { return test_name(p.param); });

}  // namespace
}  // namespace tandem::testing
