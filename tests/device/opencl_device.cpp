// What is special to OpenCL devices: GPU schedules (on PoCL, which runs them too), the emulated GPU, compiled programs, errors.
#include <gmock/gmock.h>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/text.hpp"
#include "opencl/code.hpp"
#include "opencl/core.hpp"
#include "opencl/opencl_device.hpp"
#include "product_support.hpp"
#include "random_loops.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

using ir::axis;
using ir::Fold;
using ir::Loops;
using ir::Scalar;
using ::testing::HasSubstr;
using ::testing::Not;

// ---- what TANDEM_EMULATE_GPU may say ----

TEST(EmulateGpu, ReadsCountSizeAndRate) {
  const opencl::Emulation e = opencl::parse_emulation("2x512MiB@12GB/s");
  EXPECT_EQ(e.count, 2);
  EXPECT_EQ(e.memory_bytes, size_t{512} << 20);
  EXPECT_EQ(e.bytes_per_second, 12e9);
  const opencl::Emulation plain = opencl::parse_emulation("1x1.5GiB");
  EXPECT_EQ(plain.memory_bytes, size_t{3} << 29);
  EXPECT_EQ(plain.bytes_per_second, 0);
  EXPECT_EQ(plain.speed, 1);
  const opencl::Emulation slow = opencl::parse_emulation("1x1GiB@2GB/s*0.25");
  EXPECT_EQ(slow.bytes_per_second, 2e9);
  EXPECT_EQ(slow.speed, 0.25);
  EXPECT_EQ(opencl::parse_emulation("1x1GiB*0.5").speed, 0.5);
}

TEST(EmulateGpu, WhatIsWrongIsNamedWithTheForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"x1GiB", "it does not begin with a whole number"},
      {"1.5x1GiB", "it does not begin with a whole number"},
      {"0x1GiB", "0 devices are not from 1 to 16"},
      {"17x1GiB", "17 devices are not from 1 to 16"},
      {"2*1GiB", "there is no x behind the number of devices"},
      {"2x1", "there is no size in KiB"},
      {"2xGiB", "there is no size in KiB"},
      {"2x-1GiB", "a memory of"},
      {"2x1GiB,12GB/s", "\",12GB/s\" at the end is neither a rate"},
      {"2x1GiB*2", "the speed is not from 0.001 to 1"},
      {"2x1GiB*0.5@1GB/s", "\"@1GB/s\" at the end is neither a rate"},
      {"2x1GiB@12GB", "the rate is not such as 12GB/s"},
      {"2x1GiB@0GB/s", "the rate is not such as 12GB/s"},
  };
  for (const auto& [text, why] : cases) {
    try {
      opencl::parse_emulation(text);
      ADD_FAILURE() << text;
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), HasSubstr(cat("TANDEM_EMULATE_GPU: \"", text, "\": ", why)));
      EXPECT_THAT(e.what(), HasSubstr("NxSIZE@RATE*SPEED, such as 1x2GiB, 2x512MiB@12GB/s or 1x2GiB*0.5"));
    }
  }
}

// ---- on the first GPU, else on PoCL ----

class OpenCl : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (opencl::find_functions(why)) {
      cpu_ = opencl::find_cpu(0, why);
      const auto gpus = opencl::find_gpus();
      device_id_ = gpus.empty() ? cpu_ : gpus[0];
    }
    if (!device_id_) GTEST_SKIP() << why;
  }
  std::unique_ptr<device::Device> make(opencl::Options o) {
    o.device = o.emulated ? cpu_ : device_id_;
    if (o.name.empty()) o.name = "opencl:test";
    return opencl::make_device(o);
  }
  cl_device_id cpu_ = nullptr, device_id_ = nullptr;
  std::mt19937_64 random_{11};
};

TEST_F(OpenCl, ACopyTakesItsTimeOnTheLink) {
  if (!cpu_) GTEST_SKIP() << "there is no OpenCL for the CPU";
  const auto d = make({.emulated = true, .link_bytes_per_second = 50e6, .group_schedules = false});
  constexpr size_t kBytes = 5'000'000;  // a tenth of a second
  const device::BufferRef there = d->allocate(kBytes), host = d->allocate_pinned(kBytes);
  device::Stream &up = d->stream(device::StreamKind::Upload), &down = d->stream(device::StreamKind::Download);
  const auto seconds = [](auto f) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto is_up = d->make_event();
  double given = 0;
  const double all = seconds([&] {
    given = seconds([&] {
      up.upload(there->data(), host->data(), kBytes);
      up.record(*is_up);
      down.wait(*is_up);
      down.download(host->data(), there->data(), kBytes);
    });
    down.synchronize();
  });
  EXPECT_LT(given, 0.1) << "the host waited for copies";
  EXPECT_GE(all, 0.2);
}

TEST_F(OpenCl, ASlowerDeviceTakesItsTimeAndLeavesTheHostAlone) {
  if (!cpu_) GTEST_SKIP() << "there is no OpenCL for the CPU";
  const auto d = make({.emulated = true, .speed = 0.02, .group_schedules = false});
  std::vector<HostTensor> in{dense(DType::F32, {1 << 20}, random_)};
  const ir::Scalar x = ir::load(0, DType::F32, {axis(0)});
  const codegen::Kernel k = kernel_of({.extents = {1 << 20}, .results = {ir::exp(ir::sin(x))}}, in);
  const auto got = launched(*d, k, in);  // compiled, and right
  const auto program = d->load(k);
  const device::BufferRef from = d->allocate(4 << 20), to = d->allocate(4 << 20);
  void* pointers[] = {from->data(), to->data()};
  device::Stream& stream = d->stream(device::StreamKind::Compute);
  const auto begin = std::chrono::steady_clock::now();
  stream.launch(program, {pointers});
  const auto given = std::chrono::steady_clock::now();
  stream.synchronize();
  const std::chrono::duration<double> host = given - begin, all = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(host.count() * 4, all.count()) << "the host waited for the launch";
  EXPECT_TRUE(near(got[0], interpreted({.extents = {1 << 20}, .results = {ir::exp(ir::sin(x))}}, in)[0], {1e-5, 1e-6}));
}

TEST_F(OpenCl, TheEmulatedMemoryIsNeverExceeded) {
  if (!cpu_) GTEST_SKIP() << "there is no OpenCL for the CPU";
  const auto d = make({.name = "gpu:7", .emulated = true, .memory_bytes = size_t{1} << 20, .group_schedules = false});
  const device::BufferRef half = d->allocate(size_t{1} << 19);
  try {
    d->allocate((size_t{1} << 19) + 1);
    ADD_FAILURE() << "allocated";
  } catch (const ResourceError& e) {
    EXPECT_THAT(e.what(), HasSubstr("gpu:7: cannot allocate 524289 bytes"));
    EXPECT_THAT(e.what(), HasSubstr("1048576"));
  }
  EXPECT_EQ(d->allocate(size_t{1} << 19)->bytes(), size_t{1} << 19);
}

TEST_F(OpenCl, OverlappingCopiesMoveWhatWasThere) {
  const auto d = make({});
  device::Stream& stream = d->stream(device::StreamKind::Compute);
  const device::BufferRef a = d->allocate(1000);
  std::vector<uint8_t> host(1000), back(1000);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<uint8_t>(i * 7);
  stream.upload(a->data(), host.data(), host.size());
  auto* first = static_cast<uint8_t*>(a->data());
  stream.copy(first + 10, first, 900);
  stream.download(back.data(), first, back.size());
  stream.synchronize();
  for (size_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], i >= 10 && i < 910 ? host[i - 10] : host[i]) << i;
}

// Up and down, over a distance smaller and larger than the memory that is on the way, which the device's account has counted.
TEST_F(OpenCl, OverlappingCopiesTakeLittleMemoryAndCountIt) {
  constexpr size_t kBytes = 1'000'000, kWay = size_t{64} << 10;
  const auto d = make({.memory_bytes = size_t{2} << 20});
  device::Stream& stream = d->stream(device::StreamKind::Compute);
  const device::BufferRef a = d->allocate(kBytes);
  auto* first = static_cast<uint8_t*>(a->data());
  std::vector<uint8_t> host(kBytes), back(kBytes);
  for (size_t i = 0; i < kBytes; ++i) host[i] = static_cast<uint8_t>(i * 7 + i / 251);
  for (const size_t distance : {size_t{1}, size_t{1000}, size_t{70'000}})
    for (const bool goes_up : {true, false}) {
      SCOPED_TRACE(cat(distance, goes_up ? " up" : " down"));
      const size_t from = goes_up ? 0 : distance, to = goes_up ? distance : 0, count = kBytes - distance;
      stream.upload(a->data(), host.data(), kBytes);
      d->memory().reset_peak();
      const size_t before = d->memory().in_use();
      stream.copy(first + to, first + from, count);
      EXPECT_EQ(d->memory().peak() - before, distance < kWay ? kWay : 0);
      EXPECT_EQ(d->memory().in_use(), before);
      stream.download(back.data(), first, kBytes);
      stream.synchronize();
      std::vector<uint8_t> expected = host;
      std::memmove(expected.data() + to, expected.data() + from, count);
      EXPECT_TRUE(back == expected);
    }
  d->memory().set_limit(d->memory().in_use());
  EXPECT_THROW(stream.copy(first + 1, first, kBytes - 1), ResourceError);
}

TEST_F(OpenCl, PinnedMemoryThatNobodyHasGoesBackToTheSystem) {
  const auto d = make({});
  opencl::PinnedMemory& pinned = *opencl::context_of(device_id_)->pinned;
  d->trim();
  const size_t before = pinned.held_bytes();
  device::BufferRef small = d->allocate_pinned(1000), large = d->allocate_pinned(size_t{20} << 20);
  const size_t held = pinned.held_bytes();
  EXPECT_GE(held, before + (size_t{20} << 20));
  const void* const address = large->data();
  EXPECT_TRUE(pinned.contains(address));
  large = {};
  EXPECT_EQ(pinned.held_bytes(), held) << "kept for the next one";
  d->trim();
  EXPECT_EQ(pinned.held_bytes(), held - (size_t{20} << 20));
  EXPECT_FALSE(pinned.contains(address));
  EXPECT_TRUE(pinned.contains(small->data()));
  small = {};
  d->trim();
  EXPECT_EQ(pinned.held_bytes(), before);
}

// Two cores of the CPU as two GPUs: the second waits for what the first is at, and the caller does not.
TEST_F(OpenCl, ADeviceWaitsForAnotherOneAndTheHostDoesNot) {
  std::string why;
  cl_device_id other = opencl::find_cpu(1, why);
  if (!cpu_ || other == cpu_) GTEST_SKIP() << "there are no two cores that OpenCL keeps apart";
  const auto first = make({.name = "gpu:0", .emulated = true, .link_bytes_per_second = 5e6, .group_schedules = false});
  const auto second = opencl::make_device({.name = "gpu:1", .device = other, .emulated = true, .group_schedules = false});
  constexpr size_t kBytes = 5'000'000;  // a second
  const device::BufferRef there = first->allocate(kBytes), host = first->allocate_pinned(kBytes), here = second->allocate(kBytes);
  std::memset(host->data(), 3, kBytes);
  std::vector<uint8_t> back(kBytes);
  const auto is_up = first->make_event(), is_down = first->make_event(), is_through = second->make_event();
  device::Stream& compute = second->stream(device::StreamKind::Compute);
  first->stream(device::StreamKind::Upload).upload(there->data(), host->data(), kBytes);
  first->stream(device::StreamKind::Upload).record(*is_up);
  compute.wait(*is_up);
  compute.fill(here->data(), 9, kBytes);
  compute.record(*is_through);
  device::Stream& down = second->stream(device::StreamKind::Download);
  down.wait(*is_through);
  down.download(back.data(), here->data(), kBytes);
  EXPECT_FALSE(is_up->has_happened()) << "the caller waited for the copy to the other device";
  EXPECT_FALSE(is_through->has_happened());
  down.synchronize();
  EXPECT_TRUE(is_up->has_happened()) << "the second device did not wait for the first";
  EXPECT_TRUE(back == std::vector<uint8_t>(kBytes, 9));
}

TEST_F(OpenCl, AProgramThatDoesNotCompileShowsTheLine) {
  const auto d = make({});
  opencl::Core core;
  core.name = "opencl:test";
  core.device = device_id_;
  core.shared = opencl::context_of(device_id_);
  core.context = core.shared->handle;
  opencl::Codes codes("", 0);
  try {
    codes.get(core, "__kernel void tandem_kernel() {\n  int a = nowhere;\n}\n", "softmax");
    ADD_FAILURE() << "compiled";
  } catch (const InternalError& e) {
    EXPECT_THAT(e.what(), HasSubstr("softmax: the compiler of opencl:test refused the kernel (CL_BUILD_PROGRAM_FAILURE)"));
    EXPECT_THAT(e.what(), HasSubstr("line 2:   int a = nowhere;"));
    EXPECT_THAT(e.what(), HasSubstr("undeclared identifier"));
  }
}

TEST_F(OpenCl, CompiledProgramsAreKeptOnDisk) {
  const std::string folder = ::testing::TempDir() + cat("opencl_codes_", random_(), "_", ::getpid());
  opencl::Core core;
  core.name = core.identity = "opencl:test";
  core.device = device_id_;
  core.shared = opencl::context_of(device_id_);
  core.context = core.shared->handle;
  const std::string source = "__kernel void tandem_kernel(__global int* x) { x[0] = 7; }\n";
  opencl::Codes first(folder, 0), second(folder, 0);
  first.get(core, source, "seven");
  first.get(core, source, "seven");
  EXPECT_EQ(first.counters().built, 1u);
  EXPECT_EQ(first.counters().memory_hits, 1u);
  second.get(core, source, "seven");
  EXPECT_EQ(second.counters().disk_hits, 1u);
  EXPECT_EQ(second.counters().built, 0u);
  core.identity = "another driver";
  opencl::Codes third(folder, 0);
  third.get(core, source, "seven");
  EXPECT_EQ(third.counters().built, 1u);
  std::filesystem::remove_all(folder);
}

// ---- groups that share a row: what GPUs run ----

class OpenClGroups : public OpenCl {
 protected:
  void SetUp() override {
    OpenCl::SetUp();
    if (device_id_) device_ = make({});
  }
  void check(const Loops& loops, std::vector<HostTensor> in, Allowed allowed = {}) {
    const auto expected = interpreted(loops, in);
    const codegen::Kernel k = kernel_of(loops, in);
    const codegen::GpuTarget gpu;
    EXPECT_TRUE(std::ranges::any_of(
        k.stages, [&](const codegen::LoopKernel& stage) { return codegen::gpu_schedule(stage, gpu).form == codegen::GpuForm::Group; }))
        << "no group shares anything in " << ir::str(loops);
    const auto got = launched(*device_, k, in), again = launched(*device_, k, in);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(near(got[i], expected[i], allowed)) << "output " << i << " of " << ir::str(loops);
      EXPECT_EQ(got[i].bytes, again[i].bytes) << "other bits in a second run";
    }
  }
  std::unique_ptr<device::Device> device_;
};

TEST_F(OpenClGroups, Reductions) {
  for (const DType t : {DType::F32, DType::I64, DType::F16})
    for (const auto& [outputs, reduced] : {std::pair<int64_t, int64_t>{3, 70}, {5, 2000}, {2, 100000}}) {
      Scalar x = ir::load(0, t, {axis(0), axis(1)});
      if (t == DType::F16) x = ir::cast(x, DType::F32);
      check({.extents = {outputs}, .reduction = ir::fold(Fold::Sum, {reduced}, x), .results = {ir::cast(ir::acc(0, x.dtype()), t)}},
            {dense(t, {outputs, reduced}, random_)}, sum_tolerance(t, reduced));
    }
}

TEST_F(OpenClGroups, PlacesOfTheLargest) {
  for (const auto& [outputs, reduced] : {std::pair<int64_t, int64_t>{3, 70}, {4, 3000}}) {
    const Scalar x = ir::cast(ir::load(0, DType::I8, {axis(0), axis(1)}), DType::I32);  // few values, so that many are equal
    check({.extents = {outputs},
           .reduction = ir::fold_position(Fold::Max, {reduced}, x, ir::cast(axis(1), DType::I32)),
           .results = {ir::acc(1, DType::I32), ir::acc(0, DType::I32)}},
          {dense(DType::I8, {outputs, reduced}, random_)});
  }
}

// Softmax, with the logarithm of the sum as a result of one element a row.
TEST_F(OpenClGroups, Rows) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{7, 100}, {3, 5000}}) {
    const Scalar x = ir::load(0, DType::F32, {axis(0), axis(1)}), largest = ir::acc(0, DType::F32), sum = ir::acc(1, DType::F32);
    Loops loops{.extents = {rows, columns}};
    ir::Reduction second = ir::fold(Fold::Sum, {}, ir::exp(x - largest));
    loops.row_reductions = {ir::fold(Fold::Max, {}, x), second};
    loops.results = {ir::exp(x - largest) / sum, ir::log(sum) + largest};
    loops.row_results = 1;
    std::vector<HostTensor> in;
    in.push_back(dense(DType::F32, {rows, columns}, random_));
    const auto kernel = codegen::canonical(loops, {}, std::vector{in[0].layout}, std::vector{DType::F32, DType::F32});
    static const ir::OpDef row{.name = "rows", .sig = "(x: own) -> custom", .doc = ""};
    codegen::Kernel k;
    k.op = &row;
    k.in = {in[0].layout};
    k.out = {codegen::Layout::dense(DType::F32, {rows, columns}), codegen::Layout::dense(DType::F32, {rows})};
    k.stages = {kernel};
    ASSERT_EQ(codegen::gpu_schedule(kernel, {}).form, codegen::GpuForm::Group);
    const auto got = launched(*device_, k, in);
    for (int64_t r = 0; r < rows; ++r) {
      double m = -INFINITY, s = 0;
      for (int64_t c = 0; c < columns; ++c) m = std::max(m, number(in[0], r * columns + c));
      for (int64_t c = 0; c < columns; ++c) s += std::exp(number(in[0], r * columns + c) - m);
      EXPECT_NEAR(number(got[1], r), std::log(s) + m, 1e-4);
      for (int64_t c = 0; c < columns; ++c)
        ASSERT_NEAR(number(got[0], r * columns + c), std::exp(number(in[0], r * columns + c) - m) / s, 1e-5) << r << ", " << c;
    }
  }
}

TEST_F(OpenClGroups, Scans) {
  for (const Shape& shape : {Shape{5, 3000}, Shape{1500, 4}, Shape{1025}}) {
    const bool first = shape.rank() == 2 && shape[0] > shape[1];
    std::vector<Scalar> at;
    for (int i = 0; i < shape.rank(); ++i) at.push_back(axis(i));
    const Scalar x = ir::load(0, DType::I32, at);
    check({.extents = to_dims(shape),
           .reduction = ir::fold(Fold::Sum, {}, x),
           .scan_axis = first || shape.rank() == 1 ? 0 : 1,
           .results = {ir::acc(0, DType::I32), ir::acc(0, DType::I32) - x}},
          {dense(DType::I32, shape, random_)});
  }
}

// As the suite's Fuzz, with other schedules.
TEST_F(OpenClGroups, RandomKernels) {
  for (uint64_t seed = 1000; seed < 1030; ++seed) {
    RandomKernel r = random_kernel(seed);
    const auto expected = interpreted(r.loops, r.in);
    const auto got = launched(*device_, kernel_of(r.loops, r.in), r.in);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(near(got[i], expected[i], r.allowed[i])) << "seed " << seed << ", output " << i << "\n" << ir::str(r.loops);
  }
}

// ---- products ----

// Both kernels, in memory that lies in all ways, with and without an end; the same bits from both.
TEST_F(OpenCl, Products) {
  const auto groups = make({}), vectors = make({.name = "opencl:cpu", .group_schedules = false});
  struct Case {
    Shape x, y;
    bool transpose_x = false, transpose_y = false;
    DType dtype = DType::F32;
    bool gives_float32 = false;
  };
  for (const Case& c : {Case{{64, 64}, {64, 64}},
                        {{70, 33}, {33, 150}},
                        {{33, 70}, {33, 150}, true},
                        {{70, 33}, {150, 33}, false, true},
                        {{40, 130}, {20, 40}, true, true},
                        {{3, 2, 20, 30}, {2, 30, 40}},
                        {{5, 20, 30}, {30, 40}},
                        {{2, 600}, {600, 17}},
                        {{37, 50}, {50, 41}, false, false, DType::F64},
                        {{37, 50}, {50, 41}, false, false, DType::F16},
                        {{37, 50}, {41, 50}, false, true, DType::BF16},
                        {{37, 50}, {50, 41}, false, false, DType::F16, true},
                        {{64, 70}, {70, 64}, false, false, DType::BF16, true}})
    for (const bool has_epilogue : {false, true}) {
      SCOPED_TRACE(cat(c.x, " x ", c.y, " ", c.transpose_x, c.transpose_y, has_epilogue ? " with an end" : ""));
      ir::Attrs attrs{{"transpose_x", c.transpose_x}, {"transpose_y", c.transpose_y}};
      if (c.gives_float32) attrs.set("dtype", DType::F32);
      ProductCall call = product_call("matmul", attrs, {dense(c.dtype, c.x, random_), dense(c.dtype, c.y, random_)});
      const Allowed allowed = sum_tolerance(c.gives_float32 ? DType::F32 : c.dtype, call.terms + 10);
      if (has_epilogue) call = with_end(std::move(call), random_);
      std::vector<std::vector<HostTensor>> results;
      for (device::Device* d : {groups.get(), vectors.get()}) {
        EXPECT_THAT(std::string(d->load(call.kernel)->kernel_name()), HasSubstr("gemm/"));
        results.push_back(launched(*d, call.kernel, call.in));
        for (size_t i = 0; i < call.expected.size(); ++i) EXPECT_TRUE(near(results.back()[i], call.expected[i], allowed)) << i;
      }
      for (size_t i = 0; i < call.expected.size(); ++i) EXPECT_EQ(results[0][i].bytes, results[1][i].bytes) << i;
    }
}

TEST_F(OpenCl, ProductsThatTheGemmDoesNotTakeComeFromLoops) {
  const auto d = make({});
  for (const auto& [x, y, t] :
       {std::tuple<Shape, Shape, DType>{{3, 4}, {4, 5}, DType::F32}, {{100, 80}, {80, 1}, DType::F32}, {{64, 64}, {64, 64}, DType::I32}}) {
    ProductCall call = product_call("matmul", {}, {dense(t, x, random_), dense(t, y, random_)});
    EXPECT_EQ(d->load(call.kernel)->kernel_name(), "generated");
    const auto got = launched(*d, call.kernel, call.in);
    EXPECT_TRUE(near(got[0], call.expected[0], is_float(t) ? call.allowed() : Allowed{}));
  }
}

}  // namespace
}  // namespace tandem::testing
