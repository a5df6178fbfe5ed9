// The null device's clock and memory: what it would take on a machine that is not there.
#include <gmock/gmock.h>

#include "null/null_device.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

using ir::axis;

const null::Model kModel{.memory_bytes = 1 << 20,
                         .rates = {.flops_per_second = 1e9, .bytes_per_second = 1e8, .link_bytes_per_second = 1e6, .launch_seconds = 1e-3}};

double seconds(device::Device& d, const ir::Loops& loops, const std::vector<HostTensor>& in) {
  const auto program = d.load(kernel_of(loops, in));
  device::Stream& stream = d.stream(device::StreamKind::Compute);
  const double before = stream.elapsed_seconds();
  const std::vector<void*> pointers(in.size() + loops.results.size(), nullptr);
  stream.launch(program, {pointers});
  return stream.elapsed_seconds() - before;
}

TEST(Null, ALaunchCostsTrafficOrArithmeticWhicheverIsMore) {
  const auto d = null::make_device(kModel);
  std::mt19937_64 random(1);
  const std::vector<HostTensor> in{dense(DType::F32, {1000}, random)};
  const ir::Scalar x = ir::load(0, DType::F32, {axis(0)});
  // 4000 bytes in, 4000 out, one addition an element.
  EXPECT_DOUBLE_EQ(seconds(*d, {.extents = {1000}, .results = {x + 1.0}}, in), 8000 / 1e8 + 1e-3);
  ir::Scalar much = x;
  for (int i = 0; i < 500; ++i) much = much * 1.5;
  EXPECT_DOUBLE_EQ(seconds(*d, {.extents = {1000}, .results = {much}}, in), 500 * 1000 / 1e9 + 1e-3);
}

TEST(Null, RepeatedOperandsAreReadOnceAndReductionsCountTheirElements) {
  const auto d = null::make_device(kModel);
  std::mt19937_64 random(1);
  const std::vector<HostTensor> in{dense(DType::F32, {100}, random)};
  const ir::Scalar x = ir::load(0, DType::F32, {axis(1)});
  EXPECT_DOUBLE_EQ(seconds(*d, {.extents = {50, 100}, .results = {x * x}}, in), (400 + 20000) / 1e8 + 1e-3);
  const ir::Scalar y = ir::load(0, DType::F32, {axis(1)});
  // 100 outputs of 100 elements: a multiplication and an addition each.
  const ir::Loops sum{.extents = {100}, .reduction = ir::fold(ir::Fold::Sum, {100}, y * y), .results = {ir::acc(0, DType::F32)}};
  EXPECT_DOUBLE_EQ(seconds(*d, sum, in), 2 * 100 * 100 / 1e9 + 1e-3);
}

TEST(Null, StreamsHaveTheirOwnClocksAndEventsJoinThem) {
  const auto d = null::make_device(kModel);
  device::Stream& a = d->stream(device::StreamKind::Upload);
  device::Stream& b = d->stream(device::StreamKind::Compute);
  std::vector<char> host(1000, 1);
  const device::BufferRef buffer = d->allocate(1000);
  a.upload(buffer->data(), host.data(), 1000);
  EXPECT_DOUBLE_EQ(a.elapsed_seconds(), 1000 / 1e6 + 1e-3);
  EXPECT_EQ(b.elapsed_seconds(), 0);
  b.fill(buffer->data(), 0, 1000);
  EXPECT_LT(b.elapsed_seconds(), a.elapsed_seconds());
  const auto event = d->make_event();
  a.record(*event);
  b.wait(*event);
  EXPECT_EQ(b.elapsed_seconds(), a.elapsed_seconds());
  b.download(host.data(), buffer->data(), 1000);
  EXPECT_EQ(host, std::vector<char>(1000, 0));
}

TEST(Null, StreamsShareTheLinkEachWayAndTheMemory) {
  const auto d = null::make_device(kModel);
  device::Stream &up = d->stream(device::StreamKind::Upload), &down = d->stream(device::StreamKind::Download),
                 &compute = d->stream(device::StreamKind::Compute);
  std::vector<char> host(1000, 1);
  const device::BufferRef buffer = d->allocate(1000);
  const double copy = 1000 / 1e6 + 1e-3, fill = 1000 / 1e8 + 1e-3;
  up.upload(buffer->data(), host.data(), 1000);
  down.download(host.data(), buffer->data(), 1000);  // the other way, at the same time
  EXPECT_DOUBLE_EQ(down.elapsed_seconds(), copy);
  compute.upload(buffer->data(), host.data(), 1000);  // behind the first one
  EXPECT_DOUBLE_EQ(compute.elapsed_seconds(), 2 * copy);
  up.fill(buffer->data(), 0, 1000);
  down.fill(buffer->data(), 0, 1000);
  EXPECT_DOUBLE_EQ(up.elapsed_seconds(), copy + fill);
  EXPECT_DOUBLE_EQ(down.elapsed_seconds(), copy + 2 * fill);
}

TEST(Null, RowReductionsAreCounted) {
  const auto d = null::make_device(kModel);
  std::mt19937_64 random(1);
  const std::vector<HostTensor> in{dense(DType::F32, {10, 100}, random)};
  const ir::Scalar x = ir::load(0, DType::F32, {axis(0), axis(1)});
  ir::Loops loops{.extents = {10, 100}};
  ir::Scalar much = x;
  for (int i = 0; i < 499; ++i) much = much * 1.5;
  loops.row_reductions = {ir::fold(ir::Fold::Sum, {}, much)};  // 499 multiplications and an addition an element
  loops.results = {x / ir::acc(0, DType::F32)};
  EXPECT_DOUBLE_EQ(seconds(*d, loops, in), 501 * 1000 / 1e9 + 1e-3);
}

TEST(Null, MemoryIsALimitWithNumbers) {
  const auto d = null::make_device(kModel);
  const device::BufferRef a = d->allocate(1 << 19);
  EXPECT_EQ(d->memory().in_use(), size_t{1} << 19);
  const device::BufferRef b = d->allocate(1 << 19);
  try {
    d->allocate(1);
    ADD_FAILURE();
  } catch (const ResourceError& e) {
    EXPECT_THAT(e.what(), ::testing::StartsWith("null: cannot allocate 1 bytes (0 MiB): 1048576 of 1048576 bytes are in use"));
  }
  EXPECT_EQ(d->memory().peak(), size_t{1} << 20);
  EXPECT_FALSE(d->info().executes);
  EXPECT_EQ(d->info().memory_bytes, size_t{1} << 20);
}

TEST(Null, HoldsMoreThanThisMachineHas) {
  const auto d = null::make_device({.memory_bytes = size_t{1} << 50});
  const device::BufferRef a = d->allocate(size_t{1} << 49), b = d->allocate(size_t{1} << 48);
  EXPECT_EQ(static_cast<char*>(b->data()) - static_cast<char*>(a->data()), std::ptrdiff_t{1} << 49);
}

}  // namespace
}  // namespace tandem::testing
