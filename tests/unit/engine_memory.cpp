// An engine's memory: arenas that all plans share, and what happens when there is none left.
#include "engine/memory.hpp"

#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include <tandem/error.hpp>

#include "engine/engine.hpp"
#include "ops/table.hpp"

namespace tandem::engine {
namespace {

// A device that has so much memory and can only allocate.
class SmallDevice final : public device::Device {
 public:
  explicit SmallDevice(size_t limit) : limit_(limit) {}
  const device::DeviceInfo& info() const override { return info_; }
  device::BufferRef allocate(size_t bytes) override {
    if (in_use_ + bytes > limit_) throw ResourceError("small: no memory");
    in_use_ += bytes;
    return device::BufferRef(new Block(*this, bytes));
  }
  std::unique_ptr<device::Stream> make_stream() override { return nullptr; }
  std::shared_ptr<const device::Program> load(const codegen::Kernel&) override { return nullptr; }
  size_t bytes_in_use() const override { return in_use_; }
  size_t peak_bytes() const override { return in_use_; }

 private:
  struct Block final : device::Buffer {
    Block(SmallDevice& owner, size_t bytes) : Buffer(owner, std::malloc(bytes), bytes), small(owner) {}
    ~Block() override {
      std::free(data());
      small.in_use_ -= bytes();
    }
    SmallDevice& small;
  };
  device::DeviceInfo info_;
  size_t limit_, in_use_ = 0;
};

void use(Memory& m, size_t bytes) { const Memory::Arena arena(m, bytes); }

TEST(Memory, OneSpareArenaServesAllPlansOfOneThread) {
  SmallDevice device(1 << 20);
  Memory m(device, [] {});
  use(m, 1000);
  use(m, 5000);  // the small one goes before the larger one comes
  EXPECT_EQ(device.bytes_in_use(), 5000u);
  use(m, 300);
  use(m, 4000);
  EXPECT_EQ(device.bytes_in_use(), 5000u);
  {
    const Memory::Arena a(m, 4000), b(m, 4000);  // at the same time
    EXPECT_NE(a.data(), b.data());
  }
  EXPECT_EQ(device.bytes_in_use(), 9000u);
  m.drop_spares();
  EXPECT_EQ(device.bytes_in_use(), 0u);
}

TEST(Memory, WhatIsKeptIsGivenBackBeforeItIsAnError) {
  SmallDevice device(10'000);
  int asked = 0;
  std::unique_ptr<Memory> m;
  m = std::make_unique<Memory>(device, [&] {
    ++asked;
    m->drop_spares();
  });
  use(*m, 8000);
  const device::BufferRef tensor = m->allocate(6000);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(device.bytes_in_use(), 6000u);
  EXPECT_THROW(m->allocate(6000), ResourceError);
  EXPECT_THROW(use(*m, 6000), ResourceError);
  use(*m, 4000);
}

// --- through a real engine -------------------------------------------------------------------------------------------------------

ir::Graph two_transposes() {  // has a value that lives in the arena
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {Dim::symbol("n"), 64}});
  return b.finish({b.op("matmul", {b.op("matmul", {x, b.op("transpose", {x})}), x})});
}

TensorRef ones(Engine& e, const Shape& shape) {
  TensorRef t{e.allocate(byte_size(shape, DType::F32)), codegen::Operand::dense(DType::F32, shape), 0};
  std::fill_n(static_cast<float*>(t.data()), element_count(shape), 1.0f);
  return t;
}

float first_result(Executable& x, const TensorRef& in) {
  const TensorRef* inputs[] = {&in};
  std::vector<TensorRef> out;
  x.run(inputs, out);
  return *static_cast<const float*>(out[0].data());
}

TEST(Engine, ArenasOfManySizesTakeNoMoreThanTheLargest) {
  Engine e(device::get("ref"));
  auto x = e.compile(two_transposes());
  const size_t before = e.device().bytes_in_use();
  for (int64_t n = 1; n <= 24; ++n) {
    const TensorRef in = ones(e, {n, 64});
    EXPECT_EQ(first_result(*x, in), 64.0f * static_cast<float>(n));
  }
  const size_t kept = e.device().bytes_in_use() - before;
  const TensorRef largest = ones(e, {24, 64});
  const TensorRef* inputs[] = {&largest};
  EXPECT_EQ(kept, x->bind(inputs)->plan().arena_bytes);
}

TEST(Engine, TrimDropsPlansAndArenasAndEverythingStillRuns) {
  Engine e(device::get("ref"));
  auto x = e.compile(two_transposes());
  const TensorRef in = ones(e, {5, 64});
  const size_t before = e.device().bytes_in_use();
  EXPECT_EQ(first_result(*x, in), 320.0f);
  EXPECT_GT(e.device().bytes_in_use(), before);
  e.trim();
  EXPECT_EQ(x->plan_count(), 0u);
  EXPECT_EQ(e.device().bytes_in_use(), before);
  EXPECT_EQ(first_result(*x, in), 320.0f);
  EXPECT_NE(e.compile(two_transposes()), x) << "forgotten, so compiled anew";
}

TEST(Engine, PlansOfAnExecutableAreLimited) {
  Engine e(device::get("ref"));
  ir::Builder b(ops::table());
  const ir::Value v = b.input({DType::F32, {Dim::symbol("n")}});
  auto x = e.compile(b.finish({b.op("add", {v, v})}));
  for (int64_t n = 1; n <= 600; ++n) EXPECT_EQ(first_result(*x, ones(e, {n})), 2.0f);
  EXPECT_EQ(x->plan_count(), 256u);
}

TEST(Engine, APlanThatIsDroppedWhileItRunsLivesOn) {
  Engine e(device::get("cpu"));
  auto x = e.compile(two_transposes());
  const TensorRef in = ones(e, {16, 64});
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread runner([&] {
    while (!stop)
      if (first_result(*x, in) != 1024.0f) ++wrong;
  });
  for (int i = 0; i < 200; ++i) e.trim();
  stop = true;
  runner.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tandem::engine
