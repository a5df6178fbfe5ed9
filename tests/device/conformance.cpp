// What every device promises: memory, copies, events, many launches. Devices that compute nothing are held to what they do promise.
#include <gmock/gmock.h>

#include <cstring>
#include <thread>

#include "base/text.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

class Conformance : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  device::Device& device() { return device::get(GetParam()); }
  bool executes() { return device().info().executes; }
};

TEST_P(Conformance, SaysWhatItIs) {
  EXPECT_EQ(device().info().name, GetParam());
  EXPECT_FALSE(device().info().description.empty());
  EXPECT_EQ(&device::get(GetParam()), &device::get(GetParam()));
}

TEST_P(Conformance, MemoryIsAlignedAndCounted) {
  const size_t before = device().bytes_in_use();
  {
    std::vector<device::BufferRef> held;
    size_t asked = 0;
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{1000}, size_t{1} << 16, (size_t{1} << 20) + 1}) {
      held.push_back(device().allocate(bytes));
      asked += bytes;
      EXPECT_EQ(held.back()->bytes(), bytes);
      ASSERT_NE(held.back()->data(), nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(held.back()->data()) % codegen::kAlignment, 0u) << bytes;
      EXPECT_EQ(&held.back()->device(), &device());
      EXPECT_GE(device().bytes_in_use(), before + asked);
    }
    for (size_t i = 0; i < held.size(); ++i)
      for (size_t j = i + 1; j < held.size(); ++j) EXPECT_NE(held[i]->data(), held[j]->data());
    EXPECT_GE(device().peak_bytes(), device().bytes_in_use());
  }
  EXPECT_EQ(device().bytes_in_use(), before);
}

TEST_P(Conformance, ReferencesKeepABufferAlive) {
  const size_t before = device().bytes_in_use();
  device::BufferRef a = device().allocate(256);
  EXPECT_TRUE(a->unique());
  {
    const device::BufferRef b = a;
    EXPECT_FALSE(a->unique());
  }
  EXPECT_TRUE(a->unique());
  const device::BufferRef c = std::move(a);
  EXPECT_FALSE(a);  // NOLINT: what a moved-from reference is, is promised
  EXPECT_TRUE(c->unique());
  EXPECT_GT(device().bytes_in_use(), before);
}

TEST_P(Conformance, BuffersMayDieOnAnotherThread) {
  const size_t before = device().bytes_in_use();
  for (size_t bytes : {size_t{100}, size_t{1} << 20}) {
    device::BufferRef a = device().allocate(bytes);
    std::thread([b = std::move(a)]() mutable { b = device::BufferRef(); }).join();
  }
  EXPECT_EQ(device().bytes_in_use(), before);
}

TEST_P(Conformance, TooMuchMemoryIsAResourceErrorAndTheDeviceGoesOn) {
  for (size_t bytes : {size_t{1} << 60, SIZE_MAX, SIZE_MAX - 63, SIZE_MAX - 64, SIZE_MAX - 200}) {
    try {
      device().allocate(bytes);
      ADD_FAILURE() << "allocated " << bytes;
    } catch (const ResourceError& e) {
      EXPECT_THAT(e.what(), HasSubstr(std::to_string(bytes)));
      EXPECT_THAT(e.what(), HasSubstr("MiB"));
      EXPECT_THAT(e.what(), HasSubstr("hint"));
    }
  }
  const device::BufferRef a = device().allocate(1 << 12);
  const auto stream = device().make_stream();
  stream->fill(a->data(), 7, 1 << 12);
  std::vector<uint8_t> host(1 << 12, 1);
  stream->download(host.data(), a->data(), host.size());
  stream->synchronize();
  EXPECT_EQ(host.back(), executes() ? 7 : 0);
}

TEST_P(Conformance, MovesBytes) {
  constexpr size_t kBytes = 5000;
  const device::BufferRef a = device().allocate(kBytes), b = device().allocate(kBytes);
  const auto stream = device().make_stream();
  std::vector<uint8_t> host(kBytes), back(kBytes, 1);
  for (size_t i = 0; i < kBytes; ++i) host[i] = static_cast<uint8_t>(i * 31);
  stream->upload(a->data(), host.data(), kBytes);
  stream->fill(b->data(), 0x5a, kBytes);
  auto* to = static_cast<uint8_t*>(b->data());
  const auto* from = static_cast<const uint8_t*>(a->data());
  stream->copy(to + 64, from + 17, 1000);  // any offset, any length
  stream->copy(to, from, 0);
  stream->download(back.data(), b->data(), kBytes);
  stream->synchronize();
  if (!executes()) {
    EXPECT_EQ(back, std::vector<uint8_t>(kBytes, 0));
    return;
  }
  for (size_t i = 0; i < kBytes; ++i) ASSERT_EQ(back[i], i >= 64 && i < 1064 ? host[i - 64 + 17] : 0x5a) << i;
}

TEST_P(Conformance, UploadsRows) {
  struct Case {
    size_t row_bytes, count;
    int64_t step;
  };
  const auto stream = device().make_stream();
  // Few bytes, long rows, many short ones, from the last to the first, and none.
  for (const Case c : {Case{7, 50, 9}, {4001, 40, 4001}, {100, 2000, 103}, {1 << 20, 3, 1 << 20}, {4000, 40, -4000}, {16, 0, 16}}) {
    SCOPED_TRACE(cat(c.count, " rows of ", c.row_bytes));
    constexpr size_t kRows = 60;
    const auto step = static_cast<size_t>(std::abs(c.step));
    std::vector<uint8_t> host(kRows * step);
    for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<uint8_t>(i * 31 + i / 251);
    const uint8_t* first = c.step < 0 ? host.data() + (kRows - 1) * step : host.data();
    std::vector<int64_t> numbers(c.count);
    for (size_t i = 0; i < c.count; ++i) numbers[i] = static_cast<int64_t>(i * 37 % kRows);
    const device::BufferRef a = device().allocate(c.row_bytes * c.count);
    stream->upload_rows(a->data(), {first, c.step, c.row_bytes, numbers});
    std::vector<uint8_t> back(c.row_bytes * c.count);
    stream->download(back.data(), a->data(), back.size());
    stream->synchronize();
    if (!executes()) continue;
    for (size_t i = 0; i < c.count; ++i)
      ASSERT_EQ(std::memcmp(back.data() + i * c.row_bytes, first + numbers[i] * c.step, c.row_bytes), 0) << i;
  }
}

TEST_P(Conformance, NothingIsMovedByEmptyCopies) {
  const auto stream = device().make_stream();
  const device::BufferRef a = device().allocate(0);
  stream->upload(a->data(), nullptr, 0);
  stream->download(nullptr, a->data(), 0);
  stream->copy(a->data(), a->data(), 0);
  stream->fill(a->data(), 1, 0);
  stream->synchronize();
}

ir::Loops add_one(int64_t n) { return {.extents = {n}, .results = {ir::load(0, DType::F32, {ir::axis(0)}) + 1.0}}; }

TEST_P(Conformance, EventsOrderStreams) {
  constexpr int64_t kCount = 1000;
  const auto first = device().make_stream(), second = device().make_stream();
  const device::BufferRef a = device().allocate(kCount * 4), b = device().allocate(kCount * 4), c = device().allocate(kCount * 4);
  std::vector<HostTensor> in;
  in.push_back(dense(DType::F32, {kCount}));
  const auto program = device().load(kernel_of(add_one(kCount), in));
  first->upload(a->data(), in[0].data(), kCount * 4);
  void* one[] = {a->data(), b->data()};
  void* two[] = {b->data(), c->data()};
  first->launch(*program, {one, nullptr});
  second->wait(first->record());
  second->launch(*program, {two, nullptr});
  first->wait(second->record());
  std::vector<float> host(kCount, 5);
  first->download(host.data(), c->data(), kCount * 4);
  first->synchronize();
  second->synchronize();
  EXPECT_EQ(host, std::vector<float>(kCount, executes() ? 2.f : 0.f));
}

TEST_P(Conformance, TenThousandTinyLaunches) {
  const auto stream = device().make_stream();
  std::vector<HostTensor> in;
  in.push_back(dense(DType::F32, {3}));
  const auto program = device().load(kernel_of(add_one(3), in));
  EXPECT_EQ(program->scratch_bytes(), 0u);
  const device::BufferRef a = device().allocate(12), b = device().allocate(12);
  stream->fill(a->data(), 0, 12);
  for (int i = 0; i < 5000; ++i) {
    void* there[] = {a->data(), b->data()};
    void* back[] = {b->data(), a->data()};
    stream->launch(*program, {there, nullptr});
    stream->launch(*program, {back, nullptr});
  }
  std::vector<float> host(3, 5);
  stream->download(host.data(), a->data(), 12);
  stream->synchronize();
  EXPECT_EQ(host, std::vector<float>(3, executes() ? 10000.f : 0.f));
}

TEST_P(Conformance, AProgramRunsOnSeveralThreadsAtOnce) {
  constexpr int64_t kCount = 100000;
  std::vector<HostTensor> in;
  in.push_back(dense(DType::F32, {kCount}));
  const ir::Loops sum{.extents = {},
                      .reduction = ir::fold(ir::Fold::Sum, {kCount}, ir::load(0, DType::F32, {ir::axis(0)})),
                      .results = {ir::acc(0, DType::F32)}};
  const auto program = device().load(kernel_of(sum, in));
  const device::BufferRef a = device().allocate(kCount * 4);
  std::vector<float> ones(kCount, 1);
  {
    const auto stream = device().make_stream();
    stream->upload(a->data(), ones.data(), kCount * 4);
    stream->synchronize();
  }
  std::vector<float> results(4, -1);
  std::vector<std::thread> threads;
  for (float& r : results)
    threads.emplace_back([&] {
      const auto stream = device().make_stream();
      const device::BufferRef out = device().allocate(4), scratch = device().allocate(program->scratch_bytes());
      void* pointers[] = {a->data(), out->data()};
      for (int i = 0; i < 20; ++i) stream->launch(*program, {pointers, scratch->data()});
      stream->download(&r, out->data(), 4);
      stream->synchronize();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(results, std::vector<float>(4, executes() ? static_cast<float>(kCount) : 0.f));
}

// An op that only has a host routine.
const ir::OpDef& host_row() {
  static const ir::OpDef row{.name = "twice", .sig = "(x: own) -> custom", .doc = "", .evaluate = [](const ir::HostCall& c) {
                               const auto n = static_cast<size_t>(element_count(c.in[0].shape));
                               for (size_t i = 0; i < n; ++i) c.out[0].as<float>()[i] = c.in[0].as<float>()[i] * 2;
                             }};
  return row;
}

TEST_P(Conformance, HostRoutinesRunOnOperandsThatLieAnyhow) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 10; ++round) {
    std::vector<HostTensor> in;
    in.push_back(round == 0 ? dense(DType::F32, {4, 5}, random) : scattered(DType::F32, {4, 5}, random));
    codegen::Kernel k;
    k.op = &host_row();
    k.in = {in[0].layout};
    k.out = {codegen::Operand::dense(DType::F32, {4, 5})};
    const auto got = launched(device(), k, in);
    for (int64_t i = 0; i < 20; ++i) {
      const int64_t at = in[0].first + i / 5 * in[0].layout.strides[0] + i % 5 * in[0].layout.strides[1];
      EXPECT_EQ(number(got[0], i), executes() ? 2 * number(in[0], at) : 0);
    }
  }
}

TEST_P(Conformance, AnOpWithoutAKernelIsAUserError) {
  static const ir::OpDef row{.name = "branchy", .sig = "(x: own) -> custom", .doc = "", .traits = ir::kStructural};
  codegen::Kernel k;
  k.op = &row;
  try {
    device().load(k);
    ADD_FAILURE() << "loaded";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("branchy: "));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Conformance, ::testing::ValuesIn(device::names()), [](const auto& p) { return p.param; });

TEST(Registry, NamesWhatThereIsWhenAskedForMore) {
  EXPECT_THAT(device::names(), ::testing::IsSupersetOf({"cpu", "null", "ref"}));
  try {
    device::get("abacus");
    ADD_FAILURE();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), cat("device: there is no device 'abacus'; there are ",
                               [] {
                                 std::string all;
                                 for (const std::string& n : device::names()) all += (all.empty() ? "" : ", ") + n;
                                 return all;
                               }())
                               .c_str());
  }
}

}  // namespace
}  // namespace tandem::testing
