// An engine's memory: arenas that all plans share, and what happens when there is none left.
#include "engine/memory.hpp"

#include <thread>

#include <gtest/gtest.h>

#include <tandem/error.hpp>

#include "base/text.hpp"
#include "device/host_buffer.hpp"
#include "engine/engine.hpp"
#include "ops/table.hpp"

namespace tandem::engine {
namespace {

// A device that has so much memory and can only allocate.
class SmallDevice final : public device::Device {
 public:
  explicit SmallDevice(size_t limit) : memory_("small", limit) {}
  const device::DeviceInfo& info() const override { return info_; }
  device::BufferRef allocate(size_t bytes) override { return device::BufferRef(new device::HostBuffer(*this, memory_, bytes)); }
  device::BufferRef allocate_pinned(size_t bytes) override { return allocate(bytes); }
  device::Account& memory() override { return memory_; }
  device::Account& pinned_memory() override { return memory_; }
  device::Stream& stream(device::StreamKind) override { internal_error("there is none"); }
  std::unique_ptr<device::Event> make_event() override { return nullptr; }
  std::shared_ptr<const device::Program> load(const codegen::Kernel&) override { return nullptr; }

 private:
  device::DeviceInfo info_;
  device::Account memory_;
};

void use(Memory& m, size_t bytes) { const Memory::Arena arena(m, bytes); }

TEST(Memory, OneSpareArenaServesAllPlansOfOneThread) {
  SmallDevice device(1 << 20);
  Memory m(device, [] {});
  use(m, 1024);
  use(m, 5120);  // the small one goes before the larger one comes
  EXPECT_EQ(device.memory().in_use(), 5120u);
  use(m, 320);
  use(m, 4032);
  EXPECT_EQ(device.memory().in_use(), 5120u);
  {
    const Memory::Arena a(m, 4032), b(m, 4032);  // at the same time
    EXPECT_NE(a.data(), b.data());
  }
  EXPECT_EQ(device.memory().in_use(), 9152u);
  m.drop_spares();
  EXPECT_EQ(device.memory().in_use(), 0u);
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
  const device::BufferRef tensor = m->allocate(6016);
  EXPECT_EQ(asked, 0) << "the spare arena was enough";
  EXPECT_EQ(device.memory().in_use(), 6016u);
  EXPECT_THROW(m->allocate(6016), ResourceError);
  EXPECT_EQ(asked, 1);
  EXPECT_THROW(use(*m, 6016), ResourceError);
  use(*m, 3968);
}

// --- through a real engine -------------------------------------------------------------------------------------------------------

ir::Graph two_transposes() {  // has a value that lives in the arena
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {Dim::symbol("n"), 64}});
  return b.finish({b.op("matmul", {b.op("matmul", {x, b.op("transpose", {x})}), x})});
}

TensorRef ones(Engine& e, const Shape& shape) {
  TensorRef t{e.allocate(byte_size(shape, DType::F32)), codegen::Layout::dense(DType::F32, shape), 0};
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
  const size_t before = e.device().memory().in_use();
  for (int64_t n = 1; n <= 24; ++n) {
    const TensorRef in = ones(e, {n, 64});
    EXPECT_EQ(first_result(*x, in), 64.0f * static_cast<float>(n));
  }
  const size_t kept = e.device().memory().in_use() - before;
  const TensorRef largest = ones(e, {24, 64});
  const TensorRef* inputs[] = {&largest};
  EXPECT_EQ(kept, x->bind(inputs)->plan().arena_bytes());
}

TEST(Engine, TrimDropsPlansAndArenasAndEverythingStillRuns) {
  Engine e(device::get("ref"));
  auto x = e.compile(two_transposes());
  const TensorRef in = ones(e, {5, 64});
  const size_t before = e.device().memory().in_use();
  EXPECT_EQ(first_result(*x, in), 320.0f);
  EXPECT_GT(e.device().memory().in_use(), before);
  e.trim();
  EXPECT_EQ(x->plan_count(), 0u);
  EXPECT_EQ(e.device().memory().in_use(), before);
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
