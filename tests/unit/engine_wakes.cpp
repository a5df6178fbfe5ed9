// Small work stays on the calling thread: seen from outside, by how often the operating system put another thread to sleep again.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <thread>

#include "engine/engine.hpp"
#include "ops/table.hpp"

namespace tandem::engine {
namespace {

std::set<std::string> threads() {
  std::set<std::string> all;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) all.insert(thread.path().filename());
  return all;
}
std::set<std::string> strangers;  // that were there before the engine: this one, and a sanitizer's own, which wakes when it likes

// How often each of the engine's threads went to sleep so far, and whether it sleeps now. A thread that is not woken does not go to sleep.
struct Sleep {
  long count = 0;
  bool asleep = false;
  bool operator==(const Sleep&) const = default;
  friend std::ostream& operator<<(std::ostream& os, const Sleep& s) { return os << s.count << (s.asleep ? " asleep" : " awake"); }
};
std::map<std::string, Sleep> sleeps() {
  std::map<std::string, Sleep> all;
  for (const std::string& thread : threads()) {
    if (strangers.contains(thread)) continue;
    std::ifstream status("/proc/self/task/" + thread + "/status");
    Sleep& sleep = all[thread];
    const std::string state = "State:\tS", count = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(state)) sleep.asleep = true;
      if (line.starts_with(count)) sleep.count = std::stol(line.substr(count.size()));
    }
  }
  return all;
}

// When all of them have come to rest. On a busy machine a thread may be awake for long without getting a core.
std::map<std::string, Sleep> settled_sleeps() {
  auto before = sleeps();
  for (int i = 0; i < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    auto now = sleeps();
    if (now == before && std::all_of(now.begin(), now.end(), [](const auto& thread) { return thread.second.asleep; })) return now;
    before = std::move(now);
  }
  ADD_FAILURE() << "the threads never rest";
  return before;
}

// One on three threads whatever the machine has. Never destroyed, as all devices: this thread's cache of eager ops may outlive it.
Engine& engine_of_three_threads() {
  static Engine* const engine = [] {
    strangers = threads();
    setenv("TANDEM_THREADS", "3", 1);
    device::Device* device = nullptr;
    for (const device::Factory& f : device::factories())
      if (f.folder == "cpu") device = f.enumerate().at(0).make().release();
    unsetenv("TANDEM_THREADS");
    return new Engine(*device);
  }();
  return *engine;
}

class Wakes : public ::testing::Test {
 protected:
  TensorRef zeros(int64_t count) {
    TensorRef t;
    t.layout = codegen::Layout::dense(DType::F32, {count});
    t.buffer = engine_.device().allocate(static_cast<size_t>(count) * sizeof(float));
    std::fill_n(static_cast<float*>(t.data()), count, 0.0f);
    return t;
  }
  void eager(const char* op, std::vector<const TensorRef*> in, const ir::Attrs& attrs = {}) {
    const ir::OpDef& row = ops::table().at(op);
    std::vector<TensorRef> out;
    engine_.eager(row, ir::complete_attrs(row, attrs), in, out);
  }
  void eager_ops(const TensorRef& x) {
    eager("add", {&x, &x});
    eager("tanh", {&x});
    eager("sum", {&x});
    eager("matmul", {&x, &x});
    eager("sort", {&x});
  }
  void compiled(const TensorRef& x) {
    ir::Builder b(ops::table());
    const ir::Value v = b.input({DType::F32, {Dim::symbol("n")}});
    const ir::Value y = b.op("tanh", {b.op("multiply", {v, v})});
    auto f = engine_.compile(b.finish({b.op("add", {y, b.op("sum", {y})})}));
    std::vector<TensorRef> out;
    const TensorRef* in[] = {&x};
    f->run(in, out);
  }

  Engine& engine_ = engine_of_three_threads();
};

TEST_F(Wakes, ThirtyTwoElementsWakeNobodyAndAMillionDo) {
  const TensorRef small = zeros(32), large = zeros(1 << 20);
  for (const TensorRef* x : {&small, &large}) {
    eager_ops(*x);  // whatever happens the first time only
    compiled(*x);
  }
  const auto before = settled_sleeps();
  for (int i = 0; i < 200; ++i) eager_ops(small);
  for (int i = 0; i < 200; ++i) compiled(small);
  EXPECT_EQ(settled_sleeps(), before);

  compiled(large);
  const auto after = settled_sleeps();
  EXPECT_NE(after, before);
  eager("add", {&large, &large});
  EXPECT_NE(settled_sleeps(), after);
}

}  // namespace
}  // namespace tandem::engine
