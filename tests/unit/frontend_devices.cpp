// Scopes, placement and moving state, as a program sees them: two devices that do everything late beside the CPU.
#include <tandem/device.hpp>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "base/text.hpp"
#include "frontend/memory.hpp"
#include "frontend_support.hpp"
#include "late/late_device.hpp"

namespace tandem {
namespace {

// Beside whatever the process computes on. They stay: engines and devices are never destroyed.
class DeviceScopes : public ::testing::Test {
 protected:
  DeviceScopes() : preferred_(engine::default_engine().devices().preferred) {
    static const bool once = [] {
      engine::Engine& e = engine::default_engine();
      frontend::host_device().set_rates({.flops_per_second = 1e9, .bytes_per_second = 1e9, .launch_seconds = 1e-6});
      for (const char* name : {"late:1", "late:2"}) {
        late::LateDevice& d = *late::make_device({.longest_delay_us = 20, .name = name}).release();
        d.set_rates({.flops_per_second = 1e11, .bytes_per_second = 1e11, .link_bytes_per_second = 1e10, .launch_seconds = 1e-5});
        e.add({&d});
      }
      return true;
    }();
    (void)once;
    const engine::Devices& all = engine::default_engine().devices();
    cpu_ = all.at(all.host).info().name;
    engine::default_engine().prefer(engine::kAny);
  }
  ~DeviceScopes() override {
    // By cost, what follows in the same process would plan each graph for three devices.
    engine::default_engine().prefer(preferred_ >= 0 ? preferred_ : engine::default_engine().devices().host);
    set_soft_placement(true);
  }
  std::string cpu_;

 private:
  const int32_t preferred_;
};

TEST_F(DeviceScopes, OpsRunWhereTheScopeSays) {
  const Tensor a = Tensor::of({1.f, 2.f, 3.f});
  EXPECT_EQ(a.device(), cpu_);
  EXPECT_EQ(current_device(), "");
  {
    const DeviceScope first("late:1");
    EXPECT_EQ(current_device(), "late:1");
    const Tensor b = a + 1.0f;
    EXPECT_EQ(b.device(), "late:1");
    {
      const DeviceScope none("");
      EXPECT_EQ((a + 1.0f).device(), cpu_);
    }
    const DeviceScope second("late:2");
    const Tensor c = b * b;
    EXPECT_EQ(c.device(), "late:2");
    EXPECT_EQ(floats(c), F({4, 9, 16}));
  }
  EXPECT_EQ(current_device(), "");
}

TEST_F(DeviceScopes, AnOperandPulls) {
  const Tensor a = Tensor::of({1.f, 2.f}), there = a.to("late:2");
  EXPECT_EQ(there.device(), "late:2");
  EXPECT_EQ((there * 2.0f + a).device(), "late:2");
  EXPECT_EQ(there.to(cpu_).device(), cpu_);
  EXPECT_EQ(floats(there * 2.0f + a), F({3, 6}));
}

TEST_F(DeviceScopes, ATapeFollowsATensorThatMoves) {
  const Tensor x = Tensor::of({1.f, 2.f});
  Tape tape;
  tape.watch(x);
  const Tensor there = x.to("late:1");
  EXPECT_EQ(there.device(), "late:1");
  EXPECT_EQ(floats(tape.gradient(there * there, x)), F({2, 4}));
}

TEST_F(DeviceScopes, AFunctionRunsInThePartsThatItAskedFor) {
  const Function<std::vector<Tensor>(Tensor)> f([](const Tensor& x) {
    Tensor y, z;
    {
      const DeviceScope first("late:1");
      y = matmul(x, x);
    }
    {
      const DeviceScope second("late:2");
      z = exp(y * 0.1f);
    }
    return std::vector{y, z};
  });
  const Tensor x = Tensor::of({{1.f, 2.f}, {0.5f, 1.f}});
  const std::vector<Tensor> found = f(x);
  EXPECT_EQ(found[0].device(), "late:1");
  EXPECT_EQ(found[1].device(), "late:2");
  expect_near(found[1], {std::exp(0.2f), std::exp(0.4f), std::exp(0.1f), std::exp(0.2f)});
  std::set<std::string> devices;
  for (const PlacementRow& r : explain(f.flat()))
    if (r.why == "asked for") devices.insert(r.device);
  EXPECT_EQ(devices, (std::set<std::string>{"late:1", "late:2"}));
}

TEST_F(DeviceScopes, AFunctionIsTracedForEachScopeThatItIsCalledIn) {
  const Function<Tensor(Tensor)> f([](const Tensor& x) { return x * 3.0f; });
  const Tensor x = Tensor::of({1.f});
  EXPECT_EQ(f(x).device(), cpu_);
  {
    const DeviceScope there("late:1");
    EXPECT_EQ(f(x).device(), "late:1");
  }
  EXPECT_EQ(f(x).device(), cpu_);
  EXPECT_EQ(f.trace_count(), 2u);
}

TEST_F(DeviceScopes, TheGradientOfAnOpRunsWhereTheOpRan) {
  const Tensor x = Tensor::of({{1.f, 2.f}, {0.5f, 1.f}});
  Tape tape;
  tape.watch(x);
  Tensor y;
  {
    const DeviceScope there("late:2");
    y = exp(x);
  }
  const Tensor g = tape.gradient(y, x);
  EXPECT_EQ(g.device(), "late:2");
  expect_near(g, {std::exp(1.f), std::exp(2.f), std::exp(0.5f), std::exp(1.f)});
}

TEST_F(DeviceScopes, AVariableStaysWhereItWasAskedFor) {
  const DeviceScope* scope = new DeviceScope("late:1");
  const Variable v(Tensor::of({1.f, 2.f}));
  delete scope;
  EXPECT_EQ(v.value().device(), "late:1");
  v.assign(Tensor::of({3.f, 4.f}));
  EXPECT_EQ(v.value().device(), "late:1");
  const Function<void()> f([&] {
    const DeviceScope there("late:2");
    v.assign(v * 2.0f);
  });
  f();
  EXPECT_EQ(v.value().device(), "late:1");
  EXPECT_EQ(floats(v.value()), F({6, 8}));
}

// A step that is worth it takes its state along, and the batch alone crosses from then on.
TEST_F(DeviceScopes, StateFollowsItsStep) {
  const Tensor first = Tensor::full({192, 192}, 0.001f);
  const Variable w(first), unused(Tensor::of({1.f}));
  EXPECT_EQ(w.value().device(), cpu_);
  const Function<Tensor(Tensor)> step([&](const Tensor& x) {
    const Tensor y = matmul(matmul(x, w), w);
    w.assign_sub(0.1f * y);
    return y.sum();
  });
  const Tensor x = Tensor::full({192, 192}, 0.01f);
  const float one = step(x).item<float>();
  EXPECT_EQ(w.value().device(), "late:1");
  EXPECT_EQ(unused.value().device(), cpu_);
  step(x);
  size_t up = 0;
  for (const PlacementRow& r : explain(step.flat())) up += r.moved_bytes;
  EXPECT_EQ(up, size_t{192 * 192 * 4});  // x
  EXPECT_NEAR(one, 192 * 192 * (192 * 192 * 0.001f * 0.001f * 0.01f), 0.01f);
  // Who reads it elsewhere moves it there only if that costs less.
  const Function<Tensor()> look([&] { return w.value().sum(); });
  look();
  EXPECT_EQ(w.value().device(), "late:1");
}

TEST_F(DeviceScopes, NamesAreTensorflowsToo) {
  const engine::Devices& all = engine::default_engine().devices();
  const std::vector<int32_t> cards = all.accelerators();
  const std::string first = all.at(cards[0]).info().name, second = all.at(cards[1]).info().name;
  for (const char* name : {"/GPU:1", "gpu:1", "/device:GPU:1", "/job:localhost/replica:0/task:0/device:GPU:1"}) {
    const DeviceScope scope(name);
    EXPECT_EQ(current_device(), second) << name;
  }
  for (const char* name : {"/CPU:0", "cpu", "/device:cpu:0"}) {
    const DeviceScope scope(name);
    EXPECT_EQ(current_device(), cpu_) << name;
  }
  {
    const DeviceScope scope("/GPU:99");
    EXPECT_EQ(current_device(), first);
  }
  set_soft_placement(false);
  EXPECT_NE(error_of([] { const DeviceScope scope("/GPU:99"); }).find("device: there is no device '/GPU:99'; there are " + all.names()),
            std::string::npos);
  EXPECT_NE(error_of([] { const DeviceScope scope("toaster"); }).find("there is no device 'toaster'"), std::string::npos);
  EXPECT_EQ(error_of([] {
              const DeviceScope scope("late:1");
              sort(Tensor::of({2.f, 1.f}));
            }).substr(0, 28),
            "sort: late:1 cannot do it: o");
  set_soft_placement(true);
  const DeviceScope scope("late:1");
  EXPECT_EQ(floats(sort(Tensor::of({2.f, 1.f}))), F({1, 2}));
}

TEST_F(DeviceScopes, TheDefaultDeviceHasWhatIsNotAskedFor) {
  set_default_device("late:2");
  EXPECT_EQ(default_device(), "late:2");
  const Tensor a = Tensor::of({1.f, 2.f});
  EXPECT_EQ(a.device(), "late:2");
  EXPECT_EQ((a + a).device(), "late:2");
  const Function<Tensor(Tensor)> f([](const Tensor& x) { return x * 2.0f; });
  EXPECT_EQ(f(a).device(), "late:2");
  set_default_device("");
  EXPECT_EQ(default_device(), "");
  EXPECT_EQ(Tensor::of({1.f}).device(), cpu_);
}

TEST_F(DeviceScopes, MemoryIsCountedByDevice) {
  const Tensor a = Tensor::zeros({1000}).to("late:2");
  EXPECT_EQ(floats(a)[0], 0);
  EXPECT_GE(memory_info("late:2").current, 4000u);
  EXPECT_GE(memory_info("late:2").peak, memory_info("late:2").current);
  reset_peak("late:2");
  EXPECT_EQ(memory_info("late:2").peak, memory_info("late:2").current);
  const size_t limit = memory_info("late:2").limit;
  set_memory_limit("late:2", 123 << 20);
  EXPECT_EQ(memory_info("late:2").limit, size_t{123 << 20});
  set_memory_limit("late:2", limit);
}

// What a program says of its devices before the first tensor: in a process of its own, where nothing has begun.
[[noreturn]] void share_out() {
  const auto require = [](bool is, const char* what) {
    if (!is) throw std::runtime_error(what);
  };
  const auto fails = [](auto f, std::string_view text) {
    try {
      f();
    } catch (const UserError& e) {
      if (e.code() != ErrorCode::FailedPrecondition || std::string_view(e.what()).find(text) == std::string_view::npos) throw;
      return;
    }
    throw std::runtime_error(cat("no error: ", text));
  };
  unsetenv("TANDEM_DEVICE");
  setenv("TANDEM_EMULATE_GPU", "2x256MiB", 1);
  constexpr size_t kLimit = size_t{64} << 20;
  require(!has_started(), "not started");
  require(physical_devices() == std::vector<std::string>{"cpu", "gpu:0", "gpu:1"}, "physical devices");
  set_visible_devices(std::vector<std::string>{"/GPU:1"});
  set_logical_devices("/device:GPU:1", std::vector<size_t>{kLimit, kLimit});
  set_logical_devices("cpu", std::vector<size_t>{0, 0});
  set_threads(2);
  set_pipeline_threads(3);
  require(logical_devices("gpu:1") == std::vector<size_t>{kLimit, kLimit} && logical_devices("gpu:0").empty(), "limits");
  require(!has_started(), "still not started");
  for (const char* name : {"cpu:0", "cpu:1", "gpu:1:0", "gpu:1:1"}) {
    const DeviceScope scope(name);
    require((Tensor::of({1.f}) + 1.0f).device() == name, name);
  }
  const DeviceScope second("/GPU:1");
  require(current_device() == "gpu:1:1", "GPU:1");
  require(memory_info("gpu:1:1").limit == kLimit, "limit");
  require(has_started(), "started");
  set_threads(2);  // no change
  set_logical_devices("cpu", std::vector<size_t>{0, 0});
  set_visible_devices(std::vector<std::string>{"gpu:1"});
  fails([] { set_threads(1); }, "threads: they stay as they are once a device is in use");
  fails([] { set_pipeline_threads(1); }, "threads: those of pipelines stay as they are");
  fails([] { set_logical_devices("gpu:0", std::vector<size_t>{kLimit}); }, "devices: logical ones stay as they are");
  fails([] { set_visible_devices(std::vector<std::string>{"gpu:0"}); }, "devices: those that are visible stay as they are");
  std::fprintf(stderr, "shared out\n");
  std::exit(0);
}

TEST(DevicesBeforeTheStart, AreSharedOutAndThenStayAsTheyAre) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        try {
          share_out();
        } catch (const std::exception& e) {
          std::fprintf(stderr, "%s\n", e.what());
        }
        std::exit(1);
      },
      ::testing::ExitedWithCode(0), "shared out");
  EXPECT_THROW(set_logical_devices("/GPU:40", std::vector<size_t>{0}), UserError);
}

}  // namespace
}  // namespace tandem
