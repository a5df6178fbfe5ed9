// What every device promises: memory, copies, events, many launches. Devices that compute nothing are held to what they do promise.
#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <thread>

#include "base/text.hpp"
#include "profile/recorder.hpp"
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
  const size_t before = device().memory().in_use();
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
      EXPECT_GE(device().memory().in_use(), before + asked);
    }
    for (size_t i = 0; i < held.size(); ++i)
      for (size_t j = i + 1; j < held.size(); ++j) EXPECT_NE(held[i]->data(), held[j]->data());
    EXPECT_GE(device().memory().peak(), device().memory().in_use());
  }
  EXPECT_EQ(device().memory().in_use(), before);
}

TEST_P(Conformance, ReferencesKeepABufferAlive) {
  const size_t before = device().memory().in_use();
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
  EXPECT_GT(device().memory().in_use(), before);
}

TEST_P(Conformance, BuffersMayDieOnAnotherThread) {
  const size_t before = device().memory().in_use();
  for (size_t bytes : {size_t{100}, size_t{1} << 20}) {
    device::BufferRef a = device().allocate(bytes);
    std::thread([b = std::move(a)]() mutable { b = device::BufferRef(); }).join();
  }
  EXPECT_EQ(device().memory().in_use(), before);
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
  device::Stream& stream = device().stream(device::StreamKind::Compute);
  stream.fill(a->data(), 7, 1 << 12);
  std::vector<uint8_t> host(1 << 12, 1);
  stream.download(host.data(), a->data(), host.size());
  stream.synchronize();
  EXPECT_EQ(host.back(), executes() ? 7 : 0);
}

TEST_P(Conformance, MovesBytes) {
  constexpr size_t kBytes = 5000;
  const device::BufferRef a = device().allocate(kBytes), b = device().allocate(kBytes);
  device::Stream& stream = device().stream(device::StreamKind::Compute);
  std::vector<uint8_t> host(kBytes), back(kBytes, 1);
  for (size_t i = 0; i < kBytes; ++i) host[i] = static_cast<uint8_t>(i * 31);
  stream.upload(a->data(), host.data(), kBytes);
  stream.fill(b->data(), 0x5a, kBytes);
  auto* to = static_cast<uint8_t*>(b->data());
  const auto* from = static_cast<const uint8_t*>(a->data());
  stream.copy(to + 64, from + 17, 1000);  // any offset, any length
  stream.copy(to, from, 0);
  stream.download(back.data(), b->data(), kBytes);
  stream.synchronize();
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
  device::Stream& stream = device().stream(device::StreamKind::Compute);
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
    stream.upload_rows(a->data(), {first, c.step, c.row_bytes, numbers});
    std::vector<uint8_t> back(c.row_bytes * c.count);
    stream.download(back.data(), a->data(), back.size());
    stream.synchronize();
    if (!executes()) continue;
    for (size_t i = 0; i < c.count; ++i)
      ASSERT_EQ(std::memcmp(back.data() + i * c.row_bytes, first + numbers[i] * c.step, c.row_bytes), 0) << i;
  }
}

// What copies are staged in is the host's, and where its limit leaves no room they are done at once.
TEST_P(Conformance, UploadsStayWithinTheHostsLimit) {
  device::Stream& stream = device().stream(device::StreamKind::Compute);
  stream.synchronize();
  device::Account& host = device::host_account();
  constexpr size_t kRowBytes = 4000, kRows = 40;
  std::vector<uint8_t> rows(kRowBytes * kRows), back(rows.size());
  std::vector<int64_t> numbers(kRows);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint8_t>(i * 31 + i / 251);
  for (size_t i = 0; i < kRows; ++i) numbers[i] = static_cast<int64_t>(kRows - 1 - i);
  const device::BufferRef a = device().allocate(rows.size()), b = device().allocate(rows.size());
  const size_t before = host.in_use(), limit = before + 10'000;  // for two rows
  host.set_limit(limit);
  host.reset_peak();
  for (size_t i = 0; i < kRows; ++i)
    stream.upload(static_cast<uint8_t*>(a->data()) + i * kRowBytes, rows.data() + i * kRowBytes, kRowBytes);
  stream.upload_rows(b->data(), {rows.data(), kRowBytes, kRowBytes, numbers});
  const size_t peak = host.peak();
  EXPECT_LE(peak, limit);
  if (device().info().name.starts_with("gpu")) EXPECT_GT(peak, before) << "staging is counted";
  for (const bool is_reversed : {false, true}) {
    stream.download(back.data(), (is_reversed ? b : a)->data(), back.size());
    stream.synchronize();
    for (size_t i = 0; executes() && i < kRows; ++i)
      ASSERT_EQ(std::memcmp(back.data() + i * kRowBytes, rows.data() + (is_reversed ? kRows - 1 - i : i) * kRowBytes, kRowBytes), 0) << i;
  }
  host.set_limit(0);
}

TEST_P(Conformance, NothingIsMovedByEmptyCopies) {
  device::Stream& stream = device().stream(device::StreamKind::Compute);
  const device::BufferRef a = device().allocate(0);
  stream.upload(a->data(), nullptr, 0);
  stream.download(nullptr, a->data(), 0);
  stream.copy(a->data(), a->data(), 0);
  stream.fill(a->data(), 1, 0);
  stream.synchronize();
}

ir::Loops add_one(int64_t n) { return {.extents = {n}, .results = {ir::load(0, DType::F32, {ir::axis(0)}) + 1.0}}; }

using device::StreamKind;

// Batches that go up, are computed on and come down, each on its stream, in two sets of buffers: every wait is needed.
TEST_P(Conformance, EventsOrderStreams) {
  constexpr int64_t kCount = 1000;
  constexpr size_t kBytes = kCount * 4, kSets = 2;
  constexpr int kBatches = 50;
  device::Stream& up = device().stream(StreamKind::Upload);
  device::Stream& compute = device().stream(StreamKind::Compute);
  device::Stream& down = device().stream(StreamKind::Download);
  std::vector<HostTensor> in;
  in.push_back(dense(DType::F32, {kCount}));
  const auto program = device().load(kernel_of(add_one(kCount), in));
  struct Set {
    device::BufferRef given, made, host_in, host_out;
    std::unique_ptr<device::Event> is_up, is_made, is_down;
  };
  std::vector<Set> sets;
  for (size_t i = 0; i < kSets; ++i)
    sets.push_back({device().allocate(kBytes), device().allocate(kBytes), device().allocate_pinned(kBytes),
                    device().allocate_pinned(kBytes), device().make_event(), device().make_event(), device().make_event()});
  compute.record(*sets[0].is_made);
  up.wait(*sets[0].is_made);  // new memory belongs to the compute stream
  const auto check = [&](Set& s, int batch) {
    s.is_down->synchronize();
    EXPECT_TRUE(s.is_down->has_happened());
    const auto* got = static_cast<const float*>(s.host_out->data());
    for (const int64_t i : {int64_t{0}, kCount - 1}) EXPECT_EQ(got[i], executes() ? static_cast<float>(batch + 1) : 0.0f);
  };
  for (int batch = 0; batch < kBatches + static_cast<int>(kSets); ++batch) {
    Set& s = sets[static_cast<size_t>(batch) % kSets];
    if (batch >= static_cast<int>(kSets)) check(s, batch - static_cast<int>(kSets));
    if (batch >= kBatches) continue;
    std::fill_n(static_cast<float*>(s.host_in->data()), kCount, static_cast<float>(batch));
    up.upload(s.given->data(), s.host_in->data(), kBytes);
    up.record(*s.is_up);
    compute.wait(*s.is_up);
    void* pointers[] = {s.given->data(), s.made->data()};
    compute.launch(program, {pointers});
    compute.record(*s.is_made);
    down.wait(*s.is_made);
    down.download(s.host_out->data(), s.made->data(), kBytes);
    down.record(*s.is_down);
  }
}

TEST_P(Conformance, AnEventThatWasNeverRecordedHasHappened) {
  const auto event = device().make_event();
  EXPECT_TRUE(event->has_happened());
  event->synchronize();
  device().stream(StreamKind::Compute).wait(*event);
  device().stream(StreamKind::Compute).synchronize();
}

TEST_P(Conformance, EventsOfAnotherDeviceAreWaitedFor) {
  device::Device& other = device::get("late");
  constexpr size_t kBytes = 4096;
  const device::BufferRef theirs = other.allocate(kBytes), between = other.allocate_pinned(kBytes), ours = device().allocate(kBytes);
  const auto event = other.make_event(), made = device().make_event();
  device().stream(StreamKind::Compute).record(*made);
  for (int round = 0; round < 20; ++round) {
    other.stream(StreamKind::Compute).fill(theirs->data(), static_cast<uint8_t>(round), kBytes);
    other.stream(StreamKind::Compute).download(between->data(), theirs->data(), kBytes);
    other.stream(StreamKind::Compute).record(*event);
    device().stream(StreamKind::Compute).wait(*event);
    device().stream(StreamKind::Compute).upload(ours->data(), between->data(), kBytes);
    std::vector<uint8_t> host(kBytes, 1);
    device().stream(StreamKind::Compute).download(host.data(), ours->data(), kBytes);
    device().stream(StreamKind::Compute).synchronize();
    EXPECT_EQ(host.back(), executes() ? round : 0);
  }
}

TEST_P(Conformance, HostMemoryMayChangeOnceUploadHasReturned) {
  constexpr size_t kBytes = 100'000;
  const device::BufferRef a = device().allocate(kBytes);
  std::vector<uint8_t> host(kBytes, 3), back(kBytes, 1);
  device::Stream& stream = device().stream(StreamKind::Compute);
  stream.upload(a->data(), host.data(), kBytes);
  std::ranges::fill(host, 9);
  stream.download(back.data(), a->data(), kBytes);
  stream.synchronize();
  EXPECT_EQ(back, std::vector<uint8_t>(kBytes, executes() ? 3 : 0));
}

// I24: memory that is given back and taken again, while work on what it held has not been done yet.
TEST_P(Conformance, MemoryGoesBackInTheOrderOfTheComputeStream) {
  constexpr size_t kBytes = 1 << 14;
  device::Stream& stream = device().stream(StreamKind::Compute);
  std::vector<uint8_t> back(kBytes, 1);
  const device::BufferRef sum = device().allocate(kBytes);
  for (int round = 0; round < 100; ++round) {
    const device::BufferRef a = device().allocate(kBytes);
    stream.fill(a->data(), static_cast<uint8_t>(round), kBytes);
    stream.copy(sum->data(), a->data(), kBytes);
  }
  stream.download(back.data(), sum->data(), kBytes);
  stream.synchronize();
  EXPECT_EQ(back, std::vector<uint8_t>(kBytes, executes() ? 99 : 0));
}

TEST_P(Conformance, LimitsAndPeaksAreCountedToTheByte) {
  device::Account& account = device().memory();
  const size_t before = account.in_use(), limit = account.limit();
  account.reset_peak();
  EXPECT_EQ(account.peak(), before);
  device().allocate(1000);
  EXPECT_EQ(account.peak(), before + device::Account::counted(1000));
  account.set_limit(before + 4096);
  const device::BufferRef held = device().allocate(4096);
  EXPECT_THROW(device().allocate(1), ResourceError);
  account.set_limit(limit);
  EXPECT_EQ(account.in_use(), before + 4096);
  EXPECT_EQ(account.peak(), before + 4096);
  const size_t pinned = device().pinned_memory().in_use();
  {
    const device::BufferRef p = device().allocate_pinned(100);
    EXPECT_EQ(device().pinned_memory().in_use(), pinned + device::Account::counted(100));
    static_cast<char*>(p->data())[99] = 1;  // the host's
  }
  EXPECT_EQ(device().pinned_memory().in_use(), pinned);
}

TEST_P(Conformance, TenThousandTinyLaunches) {
  device::Stream& stream = device().stream(device::StreamKind::Compute);
  std::vector<HostTensor> in;
  in.push_back(dense(DType::F32, {3}));
  const auto program = device().load(kernel_of(add_one(3), in));
  EXPECT_EQ(program->scratch_bytes(), 0u);
  const device::BufferRef a = device().allocate(12), b = device().allocate(12);
  stream.fill(a->data(), 0, 12);
  for (int i = 0; i < 5000; ++i) {
    void* there[] = {a->data(), b->data()};
    void* back[] = {b->data(), a->data()};
    stream.launch(program, {there});
    stream.launch(program, {back});
  }
  std::vector<float> host(3, 5);
  stream.download(host.data(), a->data(), 12);
  stream.synchronize();
  EXPECT_EQ(host, std::vector<float>(3, executes() ? 10000.f : 0.f));
}

// While a profile is on, streams that work later say when they did each thing; before and behind it they do the same, and say nothing.
TEST_P(Conformance, SaysInProfilesWhenItDidWhat) {
  if (device().info().host_memory || !executes()) GTEST_SKIP() << "the thread that asks does it itself, or nobody does";
  constexpr size_t kBytes = 1 << 16;
  std::vector<HostTensor> in;
  in.push_back(dense(DType::F32, {3}));
  const auto program = device().load(kernel_of(add_one(3), in));
  const device::BufferRef a = device().allocate(12), b = device().allocate(12), large = device().allocate(kBytes);
  const device::BufferRef pinned = device().allocate_pinned(kBytes);
  const auto event = device().make_event();
  device::Stream &compute = device().stream(device::StreamKind::Compute), &upload = device().stream(device::StreamKind::Upload);
  std::vector<char> host(kBytes);
  const auto work = [&] {
    std::vector<float> result(3, 5);
    compute.fill(a->data(), 0, 12);
    upload.upload(large->data(), pinned->data(), kBytes);
    upload.upload(large->data(), host.data(), kBytes);
    upload.record(*event);
    for (int i = 0; i < 10; ++i) {
      void* there[] = {a->data(), b->data()};
      void* back[] = {b->data(), a->data()};
      compute.launch(program, {there});
      compute.launch(program, {back});
    }
    compute.wait(*event);
    compute.copy(static_cast<char*>(large->data()) + 8, large->data(), kBytes / 2);  // over itself
    compute.download(host.data(), large->data(), kBytes);
    compute.download(result.data(), a->data(), 12);
    device().finish();
    EXPECT_EQ(result, std::vector<float>(3, 20));
  };
  work();
  profile::Recorder& recorder = profile::Recorder::get();
  recorder.start();
  const profile::Time begin = profile::now();
  work();
  const profile::Time end = profile::now();
  const profile::Recording r = recorder.stop();
  work();
  EXPECT_TRUE(recorder.stop().records.empty());

  std::map<profile::Kind, int> counts;
  std::map<uint16_t, profile::Time> last;
  // Clocks of drivers are set to the host's to within a moment.
  constexpr profile::Time kMoment = 2'000'000;
  // An emulated GPU's compute stream has two: the driver's for kernels, the host's for copies, which are paced.
  const profile::Time clocks_differ = GetParam().starts_with("gpu:") ? 20'000 : 0;
  for (const profile::Record& x : r.records) {
    ++counts[x.kind];
    EXPECT_GE(x.begin, begin - kMoment);
    EXPECT_LE(x.end, end + kMoment);
    EXPECT_LE(x.begin, x.end);
    if (!profile::is_work(x.kind)) continue;
    EXPECT_EQ(r.tracks[x.track].device, GetParam());
    EXPECT_GE(x.begin, last[x.track] - clocks_differ) << profile::name(x.kind);  // a stream does one thing after the other
    last[x.track] = x.end;
    if (profile::is_transfer(x.kind)) EXPECT_TRUE(x.bytes == kBytes || x.bytes == 12) << x.bytes;
  }
  EXPECT_EQ(counts[profile::Kind::Launch], 20);
  EXPECT_EQ(counts[profile::Kind::Upload], 2);
  EXPECT_EQ(counts[profile::Kind::Download], 2);
  EXPECT_EQ(counts[profile::Kind::Copy], 1);
  EXPECT_EQ(counts[profile::Kind::Fill], 1);
  EXPECT_GE(counts[profile::Kind::HostWait], 1);
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
    device::Stream& stream = device().stream(device::StreamKind::Compute);
    stream.upload(a->data(), ones.data(), kCount * 4);
    stream.synchronize();
  }
  std::vector<float> results(4, -1);
  std::vector<std::thread> threads;
  for (float& r : results)
    threads.emplace_back([&] {
      device::Stream& stream = device().stream(device::StreamKind::Compute);
      const device::BufferRef out = device().allocate(4), scratch = device().allocate(program->scratch_bytes());
      void* pointers[] = {a->data(), out->data()};
      for (int i = 0; i < 20; ++i) stream.launch(program, {pointers, scratch->data()});
      stream.download(&r, out->data(), 4);
      stream.synchronize();
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
  const ir::TensorType type{DType::F32, to_dims(Shape{4, 5})};
  const ir::Attrs none;
  if (!device().can({host_row(), {&type, 1}, none})) GTEST_SKIP() << GetParam() << " has no host routines";
  std::mt19937_64 random(1);
  for (int round = 0; round < 10; ++round) {
    std::vector<HostTensor> in;
    in.push_back(round == 0 ? dense(DType::F32, {4, 5}, random) : scattered(DType::F32, {4, 5}, random));
    codegen::Kernel k;
    k.op = &host_row();
    k.in = {in[0].layout};
    k.out = {codegen::Layout::dense(DType::F32, {4, 5})};
    const auto got = launched(device(), k, in);
    for (int64_t i = 0; i < 20; ++i) {
      const int64_t at = in[0].first + i / 5 * in[0].layout.strides[0] + i % 5 * in[0].layout.strides[1];
      EXPECT_EQ(number(got[0], i), executes() ? 2 * number(in[0], at) : 0);
    }
  }
}

// What a device says it cannot do is refused with the reason, and not done somewhere else.
TEST_P(Conformance, WhatItCannotDoIsNotLoaded) {
  const ir::TensorType type{DType::F32, to_dims(Shape{4, 5})};
  const ir::Attrs none;
  codegen::Kernel k;
  k.op = &host_row();
  k.in = {codegen::Layout::dense(DType::F32, {4, 5})};
  k.out = k.in;
  if (device().can({host_row(), {&type, 1}, none})) {
    device().load(k);
    return;
  }
  try {
    device().load(k);
    ADD_FAILURE() << "loaded";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("twice: "));
    EXPECT_THAT(e.what(), HasSubstr(GetParam()));
    EXPECT_THAT(e.what(), HasSubstr("the row has only a routine on host memory"));
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

INSTANTIATE_TEST_SUITE_P(Devices, Conformance, ::testing::ValuesIn(device::names()), [](const auto& p) { return test_name(p.param); });

TEST(Registry, NamesWhatThereIsWhenAskedForMore) {
  EXPECT_THAT(device::names(), ::testing::IsSupersetOf({"cpu", "late", "null", "ref"}));
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
