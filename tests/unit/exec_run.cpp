// exec by itself: plans written by hand, on a device that does everything later and on one that does everything at once.
#include "exec/run.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "error_of.hpp"
#include "ir/builder.hpp"
#include "late/late_device.hpp"
#include "ops/table.hpp"

namespace tandem::exec {
namespace {

using device::StreamKind;
using plan::Effect;
using plan::Kind;
using plan::Plan;
using plan::Slot;
using plan::Step;
using Floats = std::vector<float>;

Slot slot(Slot::Base base, int32_t index, size_t bytes, size_t offset = 0) {
  Slot s;
  s.base = base;
  s.index = index;
  s.bytes = bytes;
  s.offset = offset;
  return s;
}

Step step(Kind kind, const std::vector<Slot>& reads, const std::vector<Slot>& writes, StreamKind stream = StreamKind::Compute) {
  Step s;
  s.kind = kind;
  s.on_host = false;
  s.stream = stream;
  for (const Slot& r : reads) s.effects.push_back({Effect::Kind::Read, r});
  for (const Slot& w : writes) s.effects.push_back({Effect::Kind::Write, w});
  return s;
}

// Plans over values of `count` floats, each at a place of its own in the arena.
class Run : public ::testing::Test {
 protected:
  explicit Run(int64_t count = 4)
      : device_(late::make_device({.longest_delay_us = 200})), bytes_(static_cast<size_t>(count) * 4), count_(count) {}

  Slot in(int32_t i) const { return slot(Slot::Base::Input, i, bytes_); }
  Slot out(int32_t i) const { return slot(Slot::Base::Output, i, bytes_); }
  Slot at(size_t place, size_t bytes) const { return slot(Slot::Base::Arena, 0, bytes, place * codegen::kAlignment); }
  Slot at(size_t place) const { return at(place, bytes_); }

  // One op over `operands` values.
  Step launch(std::string_view op, const std::vector<Slot>& reads, const Slot& write, device::Device* device = nullptr) {
    ir::Builder b(ops::table());
    std::vector<ir::Value> operands;
    const Dims dims = count_ == 0 ? Dims{} : Dims{count_};
    for (size_t i = 0; i < reads.size(); ++i) operands.push_back(b.input({DType::F32, dims}));
    const ir::Graph g = b.finish(b.nodes(op, operands));
    plan::Tables tables;
    plan::lower(plan::Request{g}, tables);
    Step s = step(Kind::Launch, reads, {write});
    s.kernel = static_cast<int32_t>(programs_.size());
    programs_.push_back((device ? *device : *device_).load(tables.kernels.at(0).kernel));
    return s;
  }
  // A body whose inputs and outputs are those of its steps.
  static std::shared_ptr<const Plan> body(std::vector<Step> steps) {
    Plan p;
    p.steps = std::move(steps);
    p.arenas.resize(1);
    return std::make_shared<const Plan>(std::move(p));
  }

  // Runs a plan on the late device: inputs are in its memory; returns the outputs, as many as `outputs` says how many floats each has.
  std::vector<Floats> run(const Plan& plan, const std::vector<Floats>& inputs, const std::vector<size_t>& outputs) {
    device::Stream& compute = device_->stream(StreamKind::Compute);
    std::vector<device::BufferRef> in_buffers, out_buffers;
    std::vector<void*> in_places, out_places;
    for (const Floats& f : inputs) {
      in_buffers.push_back(device_->allocate(f.size() * 4));
      in_places.push_back(in_buffers.back()->data());
      compute.upload(in_places.back(), f.data(), f.size() * 4);
    }
    for (const size_t count : outputs) {
      out_buffers.push_back(device_->allocate(count * 4));
      out_places.push_back(out_buffers.back()->data());
    }
    const device::BufferRef arena = device_->allocate(64 * codegen::kAlignment);
    void* arena_place = arena->data();
    device::Device* devices[] = {device_.get()};
    Events events(plan, devices);
    reached_ = 0;
    exec::run(plan, {devices, programs_, {}}, {in_places.data(), out_places.data(), &arena_place}, events, reached_);
    std::vector<Floats> results;
    for (size_t i = 0; i < outputs.size(); ++i) {
      results.emplace_back(outputs[i]);
      compute.download(results.back().data(), out_places[i], outputs[i] * 4);
    }
    device_->finish();
    return results;
  }

  std::unique_ptr<late::LateDevice> device_;
  std::vector<std::shared_ptr<const device::Program>> programs_;
  size_t bytes_;
  int64_t count_;
  size_t reached_ = 0;
};

// ---- order and waits: I22 ----

TEST_F(Run, StepsRunInThePlansOrder) {
  Plan p;
  p.steps = {launch("negative", {in(0)}, at(0)), launch("square", {at(0)}, out(0))};
  EXPECT_EQ(run(p, {{1, 2, 3, 4}}, {4}), (std::vector<Floats>{{1, 4, 9, 16}}));
  p.steps = {launch("square", {in(0)}, at(0)), launch("negative", {at(0)}, out(0))};
  EXPECT_EQ(run(p, {{1, 2, 3, 4}}, {4}), (std::vector<Floats>{{-1, -4, -9, -16}}));
}

// Three streams, each behind the other: what the plan says is waited for is there, however late the device is.
TEST_F(Run, StreamsWaitForWhatThePlanSays) {
  const device::BufferRef pinned = device_->allocate_pinned(2 * codegen::kAlignment);
  auto* host = static_cast<float*>(pinned->data());
  float* back = host + codegen::kAlignment / sizeof(float);
  Plan p;
  p.arenas = {{.device = 0}, {.device = 0, .pinned_by = 0}};
  const Slot from = slot(Slot::Base::Arena, 1, bytes_), to = slot(Slot::Base::Arena, 1, bytes_, codegen::kAlignment);
  p.steps = {step(Kind::Upload, {from}, {at(0)}, StreamKind::Upload), launch("negative", {at(0)}, at(1)),
             step(Kind::Download, {at(1)}, {to}, StreamKind::Download)};
  p.steps[1].waits = {0};
  p.steps[2].waits = {1};
  p.steps[0].is_awaited = p.steps[1].is_awaited = p.steps[2].is_awaited = true;
  p.waits_at_end = {2};
  const device::BufferRef arena = device_->allocate(4 * codegen::kAlignment);
  void* arenas[] = {arena->data(), pinned->data()};
  device::Device* devices[] = {device_.get()};
  Events events(p, devices);
  for (int round = 1; round <= 50; ++round) {
    for (int i = 0; i < 4; ++i) host[i] = static_cast<float>(round * 10 + i);
    size_t reached = 0;
    exec::run(p, {devices, programs_, {}}, {nullptr, nullptr, arenas}, events, reached);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(back[i], -host[i]) << "round " << round;
  }
  device_->finish();
}

// ---- errors: I23 ----

TEST_F(Run, WhatFailsLaterEndsTheRunAndTheNextOneIsWhole) {
  Plan p;
  p.steps = {launch("negative", {in(0)}, at(0)), launch("square", {at(0)}, out(0)), launch("square", {out(0)}, out(1))};
  p.steps[2].is_awaited = true;
  p.waits_at_end = {2};
  for (int64_t n = 1; n <= 3; ++n) {
    device_->fail(late::Operation::Launch, n);
    EXPECT_THROW(run(p, {{1, 2, 3, 4}}, {4, 4}), Error) << "launch " << n;
    EXPECT_EQ(run(p, {{1, 2, 3, 4}}, {4, 4}), (std::vector<Floats>{{1, 4, 9, 16}, {1, 16, 81, 256}})) << "after launch " << n;
  }
}

TEST_F(Run, TheFirstErrorEndsTheRunAndNamesTheLine) {
  device::Device& ref = device::get("ref");
  ir::Builder b(ops::table());
  const ir::Value indices = b.input({DType::I32, {4}});
  const ir::Graph g = b.finish({b.op("check_range", {indices}, {{"limit", Dims{4}}, {"op", std::string("take")}})});
  plan::Tables tables;
  plan::lower(plan::Request{g}, tables);
  programs_.push_back(ref.load(tables.kernels.at(0).kernel));
  Plan p;
  p.steps = {step(Kind::Launch, {in(0)}, {out(0)}), step(Kind::Copy, {out(0)}, {out(1)})};
  p.steps[0].kernel = 0;
  p.steps[0].location = {"model.cpp", 7};
  for (Step& s : p.steps) s.on_host = true;
  device::Device* devices[] = {&ref};
  Events events(p, devices);
  std::vector<int32_t> checked(4), copied(4, 7);
  const auto run_with = [&](std::vector<int32_t> given) {
    void *inputs[] = {given.data()}, *outputs[] = {checked.data(), copied.data()}, *arenas[] = {nullptr};
    reached_ = 0;
    exec::run(p, {devices, programs_, {}}, {inputs, outputs, arenas}, events, reached_);
  };
  const std::string text = error_of<UserError>([&] { run_with({0, 9, 0, 0}); });
  EXPECT_NE(text.find("\n  at model.cpp:7"), std::string::npos) << text;
  EXPECT_EQ(reached_, 1u);
  EXPECT_EQ(copied, std::vector<int32_t>(4, 7)) << "no later step started";
  run_with({3, 2, 1, -4});
  EXPECT_EQ(copied, (std::vector<int32_t>{3, 2, 1, 0}));
}

// ---- control flow ----

TEST_F(Run, ABranchTakesTheBodyOfItsIndexAndClampsIt) {
  Plan p;
  p.steps = {step(Kind::Branch, {slot(Slot::Base::Input, 0, 4), in(1)}, {out(0)})};
  p.steps[0].bodies = {body({launch("negative", {in(0)}, out(0))}), body({launch("square", {in(0)}, out(0))})};
  p.steps[0].effects.push_back({Effect::Kind::Scratch, at(0, codegen::kAlignment)});
  for (const auto& [index, wanted] :
       {std::pair{0, Floats{-1, -2, -3, -4}}, {1, {1, 4, 9, 16}}, {7, {1, 4, 9, 16}}, {-3, {-1, -2, -3, -4}}}) {
    float bits = 0;
    std::memcpy(&bits, &index, 4);
    EXPECT_EQ(run(p, {{bits}, {1, 2, 3, 4}}, {4}), std::vector<Floats>{wanted}) << "index " << index;
  }
}

class RunScalars : public Run {
 protected:
  RunScalars() : Run(0) { bytes_ = 4; }
};

// Squares 2 while it is finite; the carries lie in two places by turns, and the result is in the first whatever the number of trips.
TEST_F(RunScalars, AWhileRunsUntilItsConditionOrItsTripsEnd) {
  Plan p;
  p.steps = {step(Kind::While, {in(0)}, {out(0)})};
  Step& loop = p.steps[0];
  loop.bodies = {body({launch("is_finite", {in(0)}, slot(Slot::Base::Output, 0, 1))}), body({launch("square", {in(0)}, out(0))})};
  loop.effects.push_back({Effect::Kind::Carry, at(0)});
  loop.effects.push_back({Effect::Kind::Scratch, at(1, 2 * codegen::kAlignment)});
  for (const auto& [trips, wanted] : {std::pair{0, 2.0f}, {1, 4.0f}, {2, 16.0f}, {3, 256.0f}, {-1, INFINITY}}) {
    loop.trips = trips;
    EXPECT_EQ(run(p, {{2}}, {1}), (std::vector<Floats>{{wanted}})) << trips << " trips";
  }
  loop.trips = -1;
  EXPECT_EQ(run(p, {{INFINITY}}, {1}), (std::vector<Floats>{{INFINITY}}));
}

// A running sum: the carry, and its value after each step, in either direction.
TEST_F(RunScalars, AScanWalksItsSequences) {
  Plan p;
  p.steps = {step(Kind::Scan, {in(0), slot(Slot::Base::Input, 1, 20)}, {out(0), slot(Slot::Base::Output, 1, 20)})};
  Step& scan = p.steps[0];
  scan.bodies = {body({launch("add", {in(0), in(1)}, out(0)), step(Kind::Copy, {out(0)}, {out(1)})})};
  scan.effects.push_back({Effect::Kind::Carry, at(0)});
  scan.effects.push_back({Effect::Kind::Scratch, at(1, codegen::kAlignment)});
  scan.carries = scan.sequences = 1;
  scan.trips = 5;
  EXPECT_EQ(run(p, {{100}, {1, 2, 3, 4, 5}}, {1, 5}), (std::vector<Floats>{{115}, {101, 103, 106, 110, 115}}));
  scan.reverse = true;
  EXPECT_EQ(run(p, {{100}, {1, 2, 3, 4, 5}}, {1, 5}), (std::vector<Floats>{{115}, {115, 114, 112, 109, 105}}));
}

}  // namespace
}  // namespace tandem::exec
