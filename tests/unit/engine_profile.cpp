// What a profile sees of runs: on the device that is late and on the CPU.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/engine.hpp"
#include "late/late_device.hpp"
#include "ops/table.hpp"
#include "profile/intervals.hpp"
#include "profile/recorder.hpp"

namespace tandem::engine {
namespace {

using device::StreamKind;
using profile::Kind;
using profile::Record;
using profile::Recorder;
using profile::Recording;

constexpr int64_t kRows = 8, kColumns = 16;

// Something for the device, a row that only the host computes in between, and something of its result for the device again.
ir::Graph step() {
  ir::Builder b(ops::table());
  const ir::Value x = b.input({DType::F32, {kRows, kColumns}}), w = b.input({DType::F32, {kColumns, kColumns}});
  const ir::Value sorted = b.op("sort", {b.op("matmul", {x, w})});
  return b.finish({b.op("sum", {sorted}), b.op("subtract", {w, b.op("matmul", {b.op("transpose", {x}), sorted})})});
}

class Profiled : public ::testing::Test {
 protected:
  Profiled() : device_(*late::make_device({.longest_delay_us = 20}).release()), engine_(*new Engine(device_)) {}
  ~Profiled() override { Recorder::get().stop(); }

  TensorRef tensor(const Shape& shape, device::Device& home) {
    const std::vector<float> numbers(static_cast<size_t>(element_count(shape)), 0.5f);
    TensorRef t{home.allocate(numbers.size() * sizeof(float)), codegen::Layout::dense(DType::F32, shape), 0};
    home.stream(StreamKind::Compute).upload(t.data(), numbers.data(), numbers.size() * sizeof(float));
    home.stream(StreamKind::Compute).synchronize();
    return t;
  }
  void run(Executable& x, const TensorRef& batch, TensorRef& w) {
    const TensorRef* inputs[] = {&batch, &w};
    std::vector<TensorRef> out;
    x.run(inputs, out);
    w = out[1];
  }

  static std::string device_of(const Recording& r, const Record& of) { return r.tracks[of.track].device; }
  static std::vector<Record> of(const Recording& r, Kind kind, const std::string& device) {
    std::vector<Record> all;
    std::ranges::copy_if(r.records, std::back_inserter(all), [&](const Record& x) { return x.kind == kind && device_of(r, x) == device; });
    return all;
  }

  late::LateDevice& device_;  // never destroyed, as all devices and engines
  Engine& engine_;
};

TEST_F(Profiled, RunsSayWhatRanWhere) {
  const auto x = engine_.compile(step(), {-1, 1});
  device::Device& host = device::get("cpu");
  const TensorRef batch = tensor({kRows, kColumns}, host);
  TensorRef w = tensor({kColumns, kColumns}, device_);
  run(*x, batch, w);  // compiled
  device_.finish();

  Recorder::get().start();
  const int64_t launches = device_.count(late::Operation::Launch), copies = device_.count(late::Operation::Copy);
  run(*x, batch, w);
  run(*x, batch, w);
  const Recording r = Recorder::get().stop();  // which waits for what was given

  // As many as the device itself has counted, each with a name, in the order of its stream and one after the other.
  const std::vector<Record> launched = of(r, Kind::Launch, "late");
  EXPECT_EQ(static_cast<int64_t>(launched.size()), device_.count(late::Operation::Launch) - launches);
  size_t copied = 0;
  for (const Kind kind : {Kind::Upload, Kind::Download, Kind::Copy}) copied += of(r, kind, "late").size();
  EXPECT_EQ(static_cast<int64_t>(copied), device_.count(late::Operation::Copy) - copies);
  for (size_t i = 0; i < launched.size(); ++i) {
    EXPECT_NE(launched[i].task, profile::kNoTask);
    EXPECT_LE(launched[i].given, launched[i].begin);
    EXPECT_LE(launched[i].begin, launched[i].end);
    if (i > 0) EXPECT_LE(launched[i - 1].end, launched[i].begin);
  }
  // The row that the host computes, with its copies: down for it, and up of what it made.
  const std::vector<Record> on_host = of(r, Kind::Launch, "cpu");
  ASSERT_EQ(on_host.size(), 2);
  EXPECT_NE(r.tasks[on_host[0].task].label.find("sort"), std::string::npos);
  const std::vector<Record> down = of(r, Kind::Download, "late"), up = of(r, Kind::Upload, "late");
  ASSERT_EQ(down.size(), 2);
  EXPECT_EQ(down[0].partner, on_host[0].task);
  EXPECT_EQ(down[0].bytes, kRows * kColumns * sizeof(float));
  EXPECT_LE(down[0].end, on_host[0].begin);
  ASSERT_EQ(up.size(), 4);
  EXPECT_EQ(std::ranges::count(up, on_host[0].task, &Record::partner), 2);
  // The batch came from the program, the same bytes twice.
  std::vector<Record> batches;
  std::ranges::copy_if(up, std::back_inserter(batches), [](const Record& u) { return u.source == profile::Source::Input; });
  ASSERT_EQ(batches.size(), 2);
  EXPECT_NE(batches[0].mark, 0);
  EXPECT_EQ(batches[0].mark, batches[1].mark);
  // What was waited for, and memory of both.
  EXPECT_FALSE(of(r, Kind::HostWait, profile::kHost).empty());
  EXPECT_EQ(of(r, Kind::Run, profile::kHost).size(), 2);
  ASSERT_NE(r.device("late"), nullptr);
  ASSERT_NE(r.device("cpu"), nullptr);
  EXPECT_TRUE(r.device("cpu")->is_host);
  EXPECT_FALSE(r.device("late")->is_host);
  const auto memory = std::ranges::find(r.memories, std::string("late"), &profile::Memory::device);
  ASSERT_NE(memory, r.memories.end());
  EXPECT_EQ(memory->limit_bytes, device_.memory().limit());
  EXPECT_FALSE(r.samples.empty());
}

// Each copy and each fill takes longer than a thread may stay on a core while others want it, so that they overlap on one core too; and on
// a machine where they did not, it is tried again.
TEST_F(Profiled, CopiesThatOverlapWorkAreSeenToDoSo) {
  constexpr size_t kBytes = size_t{1} << 26;
  constexpr int kTries = 20;
  const device::BufferRef target = device_.allocate(kBytes), other = device_.allocate(kBytes), pinned = device_.allocate_pinned(kBytes);
  double overlap = 0;
  for (int tried = 0; tried < kTries && overlap == 0; ++tried) {
    Recorder::get().start();
    for (int i = 0; i < 3; ++i) {
      device_.stream(StreamKind::Upload).upload(target->data(), pinned->data(), kBytes);
      device_.stream(StreamKind::Compute).fill(other->data(), 0, kBytes);
    }
    const Recording r = Recorder::get().stop();
    profile::Intervals uploads, fills;
    for (const Record& u : of(r, Kind::Upload, "late")) uploads.add(u.begin, u.end);
    for (const Record& f : of(r, Kind::Fill, "late")) fills.add(f.begin, f.end);
    EXPECT_EQ(of(r, Kind::Upload, "late").size(), 3);
    EXPECT_EQ(of(r, Kind::Fill, "late").size(), 3);
    overlap = (uploads & fills).seconds();
  }
  EXPECT_GT(overlap, 0);
}

TEST_F(Profiled, NothingIsRecordedWhenItIsOff) {
  const auto x = engine_.compile(step(), {-1, 1});
  const TensorRef batch = tensor({kRows, kColumns}, device_);
  TensorRef w = tensor({kColumns, kColumns}, device_);
  run(*x, batch, w);
  device_.finish();
  EXPECT_TRUE(Recorder::get().stop().records.empty());
}

// Given while it was on and done when it is over: the recording ends with it, and the next one has nothing of it.
TEST_F(Profiled, WhatIsOnItsWayBelongsToTheRecordingInWhichItWasGiven) {
  constexpr size_t kBytes = size_t{1} << 20;
  const device::BufferRef target = device_.allocate(kBytes);
  Recorder::get().start();
  for (int i = 0; i < 20; ++i) device_.stream(StreamKind::Compute).fill(target->data(), 1, kBytes);
  const Recording r = Recorder::get().stop();
  EXPECT_EQ(of(r, Kind::Fill, "late").size(), 20);
  Recorder::get().start();
  EXPECT_TRUE(of(Recorder::get().stop(), Kind::Fill, "late").empty());
}

TEST(ProfiledCpu, StepsAreTimedByTheThreadThatDoesThem) {
  Engine& engine = *new Engine(device::get("cpu"));
  const auto x = engine.compile(step(), {-1, -1});
  const auto tensor = [&](const Shape& shape) {
    TensorRef t{engine.allocate(static_cast<size_t>(element_count(shape)) * sizeof(float)), codegen::Layout::dense(DType::F32, shape), 0};
    std::fill_n(static_cast<float*>(t.data()), element_count(shape), 1.0f);
    return t;
  };
  const TensorRef batch = tensor({kRows, kColumns}), w = tensor({kColumns, kColumns});
  const TensorRef* inputs[] = {&batch, &w};
  std::vector<TensorRef> out;
  x->run(inputs, out);
  Recorder::get().start();
  x->run(inputs, out);
  const Recording r = Recorder::get().stop();
  const auto run = std::ranges::find(r.records, Kind::Run, &Record::kind);
  ASSERT_NE(run, r.records.end());
  size_t launches = 0;
  double flops = 0;
  for (const Record& l : r.records) {
    if (l.kind != Kind::Launch) continue;
    ++launches;
    flops += r.tasks[l.task].flops;
    EXPECT_EQ(r.tracks[l.track].device, "cpu");
    EXPECT_GE(l.begin, run->begin);
    EXPECT_LE(l.end, run->end);
  }
  EXPECT_EQ(launches, x->bind(inputs)->plan().steps.size());
  EXPECT_GE(flops, 2.0 * 2 * kRows * kColumns * kColumns);  // of both products
}

}  // namespace
}  // namespace tandem::engine
