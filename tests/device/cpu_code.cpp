// The CPU device's machine code: emitted, loaded, kept on disk, and never trusted blindly.
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/text.hpp"
#include "cpu/code_cache.hpp"
#include "cpu/cpu_program.hpp"
#include "cpu/host_target.hpp"
#include "cpu/llvm_emit.hpp"
#include "random_loops.hpp"
#include "support.hpp"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;
using cpu::CodeCache;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "tandem_test_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& e : fs::directory_iterator(path_)) all.push_back(e.path());
    return all;
  }

 private:
  std::string path_;
};

// log(x + 1) + x: has constants, a call to a vector function and a tail.
ir::Loops sample_loops() {
  const ir::Scalar x = ir::load(0, DType::F32, {ir::axis(0)});
  return {.extents = {37}, .results = {ir::log(x + 1) + x * 3.25}};
}

std::vector<char> sample_object() {
  static const std::vector<char> object = [] {
    void* library = dlopen(TANDEM_PLUGIN_FOLDER "/libtandem_llvm.so", RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    const auto emit = reinterpret_cast<cpu::EmitFn>(dlsym(library, cpu::kEmitSymbol));
    std::vector<HostTensor> in{dense(DType::F32, {37})};
    const codegen::Kernel k = kernel_of(sample_loops(), in);
    const cpu::Target target = cpu::host_target("native");
    std::vector<char> bytes;
    emit(k.stages[0], cpu::schedule(k.stages[0], target.lanes), target, bytes);
    return bytes;
  }();
  return object;
}

void expect_works(const std::shared_ptr<const cpu::Code>& held) {
  const cpu::Code& code = *held;
  std::vector<float> x(37), y(37, -1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(i);
  std::vector<HostTensor> in{dense(DType::F32, {37})};
  std::memcpy(in[0].bytes.data(), x.data(), 37 * 4);
  const codegen::Kernel k = kernel_of(sample_loops(), in);
  void* pointers[] = {x.data(), y.data()};
  reinterpret_cast<cpu::KernelFunction>(code.entry())(pointers, k.stages[0].params.data(), 0, 1, 0, 37);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], std::log(x[i] + 1) + x[i] * 3.25f, 1e-3f * y[i]);
}

void build_sample(std::vector<char>& object) { object = sample_object(); }

TEST(ObjectLoader, LoadsWhatTheEmitterWrites) { expect_works(cpu::load_object(sample_object(), cpu::kKernelSymbol)); }

TEST(ObjectLoader, RefusesWhatIsNotAnObject) {
  EXPECT_THROW(cpu::load_object({}, cpu::kKernelSymbol), InternalError);
  EXPECT_THROW(cpu::load_object(std::string_view("hello"), cpu::kKernelSymbol), InternalError);
  EXPECT_THROW(cpu::load_object(std::vector<char>(1000, 'x'), cpu::kKernelSymbol), InternalError);
  EXPECT_THROW(cpu::load_object(sample_object(), "another_symbol"), InternalError);
}

TEST(ObjectLoader, ATruncatedObjectIsRefused) {
  const std::vector<char> object = sample_object();
  for (size_t n = 0; n < object.size(); n += 3)
    EXPECT_THROW(cpu::load_object(std::span(object).first(n), cpu::kKernelSymbol), InternalError) << n << " of " << object.size();
}

TEST(ObjectLoader, MutatedObjectsNeverCrashTheLoader) {
  const std::vector<char> object = sample_object();
  std::mt19937_64 random(3);
  const auto try_to_load = [](const std::vector<char>& bytes) {
    try {
      cpu::load_object(bytes, cpu::kKernelSymbol);
    } catch (const InternalError&) {
    } catch (const ResourceError&) {
    }
  };
  for (size_t i = 0; i < object.size(); ++i)
    for (char value : {'\0', '\xff', '\x7f', static_cast<char>(object[i] ^ 1)}) {
      std::vector<char> bytes = object;
      bytes[i] = value;
      try_to_load(bytes);
    }
  for (int round = 0; round < 3000; ++round) {
    std::vector<char> bytes = object;
    for (uint64_t n = 1 + random() % 20; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 3 == 0) {  // whole words, where tables hold offsets and sizes
      const uint64_t word = random() % 2 ? random() : random() % 5000;
      std::memcpy(bytes.data() + random() % (bytes.size() - 8), &word, 8);
    }
    try_to_load(bytes);
  }
}

TEST(CodeCache, TheSecondUseIsInMemoryAndTheNextProcessReadsTheDisk) {
  const TemporaryFolder folder;
  CodeCache first(folder.path());
  expect_works(first.get("key", build_sample));
  EXPECT_EQ(first.get("key", build_sample), first.get("key", build_sample));
  EXPECT_EQ(first.counters().built, 1u);
  EXPECT_EQ(first.counters().memory_hits, 2u);
  CodeCache second(folder.path());
  expect_works(second.get("key", [](std::vector<char>&) { FAIL() << "built again"; }));
  EXPECT_EQ(second.counters().disk_hits, 1u);
  EXPECT_EQ(second.counters().built, 0u);
  second.get("another key", build_sample);
  EXPECT_EQ(second.counters().built, 1u);
}

TEST(CodeCache, WithoutAFolderNothingIsWritten) {
  CodeCache cache("");
  expect_works(cache.get("key", build_sample));
  EXPECT_EQ(cache.counters().built, 1u);
}

TEST(CodeCache, AFolderThatCannotBeMadeCostsTheCacheOnly) {
  CodeCache cache("/proc/no/such/folder");
  expect_works(cache.get("key", build_sample));
  EXPECT_EQ(cache.counters().built, 1u);
}

TEST(CodeCache, DamagedEntriesAreBuiltAnew) {
  const TemporaryFolder folder;
  CodeCache(folder.path()).get("key", build_sample);
  ASSERT_EQ(folder.files().size(), 1u);
  const fs::path file = folder.files()[0];
  std::ifstream in(file, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::string> bad = {
      "", "garbage", good.substr(0, good.size() / 2), good.substr(0, 20), good + "x", std::string(good.size(), '\0')};
  for (size_t i = 0; i < good.size(); i += 97) {
    bad.push_back(good);
    bad.back()[i] = static_cast<char>(bad.back()[i] ^ 0x40);
  }
  for (const std::string& content : bad) {
    std::ofstream(file, std::ios::binary) << content;
    CodeCache cache(folder.path());
    expect_works(cache.get("key", build_sample));
    EXPECT_EQ(cache.counters().built, 1u);
    EXPECT_EQ(cache.counters().damaged, 1u);
    CodeCache after(folder.path());  // and it has been repaired
    after.get("key", build_sample);
    EXPECT_EQ(after.counters().disk_hits, 1u);
  }
}

TEST(CodeCache, AnEntryThatIsSoundButNoObjectIsBuiltAnew) {
  const TemporaryFolder folder;
  CodeCache writer(folder.path());
  EXPECT_THROW(writer.get("key", [](std::vector<char>& object) { object.assign(500, 'x'); }), InternalError);
  CodeCache cache(folder.path());
  expect_works(cache.get("key", build_sample));
  EXPECT_EQ(cache.counters().built, 1u);
}

TEST(CodeCache, ThreadsAndCachesShareAFolder) {
  const TemporaryFolder folder;
  std::vector<std::unique_ptr<CodeCache>> caches;
  for (int i = 0; i < 3; ++i) caches.push_back(std::make_unique<CodeCache>(folder.path()));
  std::vector<std::thread> threads;
  for (auto& cache : caches)
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 40; ++i) expect_works(cache->get(cat("key", i % 10), build_sample));
      });
  for (std::thread& t : threads) t.join();
  for (auto& cache : caches) EXPECT_EQ(cache->counters().damaged, 0u);
  EXPECT_EQ(folder.files().size(), 10u);  // no temporary file is left
}

// Run by the next test as processes of their own.
TEST(CodeCache, DISABLED_Child) {
  const char* folder = std::getenv("TEST_FOLDER");
  ASSERT_NE(folder, nullptr);
  CodeCache cache(folder);
  for (int i = 0; i < 200; ++i) expect_works(cache.get(cat("key", i % 20), build_sample));
  EXPECT_EQ(cache.counters().damaged, 0u);
}

TEST(CodeCache, ProcessesShareAFolder) {
  const TemporaryFolder folder;
  sample_object();
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("TEST_FOLDER", folder.path().c_str(), 1);
      execl("/proc/self/exe", "test_devices", "--gtest_filter=CodeCache.DISABLED_Child", "--gtest_also_run_disabled_tests",
            "--gtest_brief=1", nullptr);
      _exit(127);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(folder.files().size(), 20u);
}

TEST(Generated, TheSecondDeviceFindsItsKernelsOnDisk) {
  const TemporaryFolder folder;
  std::vector<HostTensor> in{dense(DType::F32, {37})};
  const codegen::Kernel k = kernel_of(sample_loops(), in);
  std::string refusal;
  for (int round = 0; round < 2; ++round) {
    CodeCache cache(folder.path());
    cpu::Toolbox tools{cpu::host_target("native"), cache};
    EXPECT_NE(cpu::make_generated(k, tools, refusal), nullptr);
    EXPECT_EQ(cache.counters().built, round == 0 ? 1u : 0u);
    // Another extent is another parameter of the same code.
    ir::Loops longer = sample_loops();
    longer.extents = {40};
    std::vector<HostTensor> more{dense(DType::F32, {40})};
    EXPECT_NE(cpu::make_generated(kernel_of(longer, more), tools, refusal), nullptr);
    EXPECT_EQ(cache.counters().memory_hits, 1u);
  }
}

TEST(Generated, TargetsAreNamedAndChecked) {
  EXPECT_THROW(cpu::host_target("mmx"), UserError);
  EXPECT_EQ(cpu::host_target("avx2").lanes, 8);
  EXPECT_FALSE(cpu::host_target("avx2").wide);
}

// Narrower code than the processor's own.
TEST(Generated, RunsWithAvx2) {
  CodeCache cache("");
  cpu::Toolbox tools{cpu::host_target("avx2"), cache};
  ThreadPool pool(2);
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RandomKernel r = random_kernel(seed + 5000);
    const auto expected = interpreted(r.loops, r.in);
    const codegen::Kernel k = kernel_of(r.loops, r.in);
    std::string refusal;
    const auto program = cpu::make_generated(k, tools, refusal);
    ASSERT_NE(program, nullptr) << refusal;
    std::vector<HostTensor> out = outputs_of(k);
    std::vector<void*> pointers;
    for (HostTensor& x : r.in) pointers.push_back(x.data());
    for (HostTensor& x : out) pointers.push_back(x.data());
    std::vector<std::byte> scratch(program->scratch_bytes() + codegen::kAlignment);
    program->run({pointers, scratch.data() + codegen::kAlignment - reinterpret_cast<uintptr_t>(scratch.data()) % codegen::kAlignment},
                 pool);
    for (size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(near(out[i], expected[i], r.allowed[i])) << "seed " << seed;
  }
}

// Near the true value everywhere, and the same bits in vectors of either width.
TEST(Generated, ExpOfEveryMagnitude) {
  std::vector<float> values{0,    -0.0f,   88.72f,  88.73f, 89,     200,   1e30f,  INFINITY,  -87.3f, -87.4f,
                            -100, -103.9f, -104.1f, -200,   -1e30f, 1e-9f, -1e-9f, -INFINITY, NAN};
  for (float x = -105; x < 90; x += 0.00917f) values.push_back(x);
  const auto count = static_cast<int64_t>(values.size());
  std::vector<HostTensor> in{dense(DType::F32, {count})};
  std::memcpy(in[0].bytes.data(), values.data(), values.size() * sizeof(float));
  const auto run = [&](const std::string& isa, const ir::Loops& loops) {
    CodeCache cache("");
    cpu::Toolbox tools{cpu::host_target(isa), cache};
    ThreadPool pool(1);
    const codegen::Kernel k = kernel_of(loops, in);
    std::string refusal;
    const auto program = cpu::make_generated(k, tools, refusal);
    std::vector<HostTensor> out = outputs_of(k);
    void* pointers[] = {in[0].data(), out[0].data()};
    std::vector<std::byte> scratch(program->scratch_bytes() + 1);
    program->run({pointers, scratch.data()}, pool);
    std::vector<float> results(out[0].bytes.size() / sizeof(float));
    std::memcpy(results.data(), out[0].bytes.data(), out[0].bytes.size());
    return results;
  };
  const auto each = [](const std::vector<ir::Scalar>& at) { return ir::exp(ir::load(0, DType::F32, at)); };
  const std::vector<float> y = run("native", {.extents = {count}, .results = {each({ir::axis(0)})}});
  const std::vector<float> narrow = run("avx2", {.extents = {count}, .results = {each({ir::axis(0)})}});
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(y[i]) && std::isnan(narrow[i]));
      continue;
    }
    const auto exact = static_cast<float>(std::exp(static_cast<double>(values[i])));
    EXPECT_TRUE(y[i] == exact || y[i] == std::nextafter(exact, 0.0f) || y[i] == std::nextafter(exact, INFINITY))
        << "exp(" << values[i] << ") gave " << y[i] << ", not " << exact;
    EXPECT_EQ(y[i], narrow[i]) << "exp(" << values[i] << ")";
  }
}

// The same bits whatever the number of threads.
TEST(Generated, ThreadsDoNotChangeBits) {
  CodeCache cache("");
  cpu::Toolbox tools{cpu::host_target("native"), cache};
  std::mt19937_64 random(5);
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1, 200000}, {1000, 300}, {5, 40000}, {40000, 5}})
    for (bool along : {true, false}) {
      const ir::Scalar x =
          along ? ir::load(0, DType::F32, {ir::axis(0), ir::axis(1)}) : ir::load(0, DType::F32, {ir::axis(1), ir::axis(0)});
      const ir::Loops loops{.extents = {along ? rows : columns},
                            .reduction = ir::fold(ir::Fold::Sum, {along ? columns : rows}, ir::exp(x)),
                            .results = {ir::acc(0, DType::F32)}};
      std::vector<HostTensor> in{dense(DType::F32, {rows, columns}, random)};
      const codegen::Kernel k = kernel_of(loops, in);
      std::string refusal;
      const auto program = cpu::make_generated(k, tools, refusal);
      std::vector<std::byte> first;
      for (int threads : {1, 2, 3, 5}) {
        ThreadPool pool(threads);
        std::vector<HostTensor> out = outputs_of(k);
        void* pointers[] = {in[0].data(), out[0].data()};
        std::vector<std::byte> scratch(program->scratch_bytes());
        program->run({pointers, scratch.data()}, pool);
        if (first.empty()) first = out[0].bytes;
        EXPECT_EQ(first, out[0].bytes) << threads << " threads";
      }
    }
}

// The code generator is loaded in the background when nothing is cached; the process may end at any moment of that.
TEST(Generated, AProcessMayEndWhileTheGeneratorIsLoaded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int delay_us : {0, 200, 500, 1000, 1500, 2000, 3000, 5000, 8000, 20000})
    EXPECT_EXIT(
        {
          setenv("TANDEM_CACHE_DIR", "off", 1);
          device::get("cpu");
          std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
          std::exit(0);
        },
        ::testing::ExitedWithCode(0), "");
}

TEST(CodeCache, TrimsWhatWasNotUsedForLongest) {
  const TemporaryFolder folder;
  CodeCache(folder.path()).get("probe", build_sample);
  const uint64_t entry = fs::file_size(folder.files().front());
  CodeCache cache(folder.path(), 8 * entry);
  for (int i = 0; i < 8; ++i) cache.get("key " + std::to_string(i), build_sample);  // with the probe one more than the limit allows
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const fs::path& file : folder.files()) fs::last_write_time(file, old);
  CodeCache(folder.path()).get("key 3", [](std::vector<char>&) { FAIL() << "built again"; });  // used now
  cache.trim();
  const auto bytes = [&] {
    uint64_t sum = 0;
    for (const fs::path& file : folder.files()) sum += fs::file_size(file);
    return sum;
  };
  const uint64_t left = bytes();
  EXPECT_LE(left, 6 * entry);
  EXPECT_GE(left, 5 * entry);
  CodeCache(folder.path()).get("key 3", [](std::vector<char>&) { FAIL() << "removed, though it was used last"; });
  cache.trim();  // below the limit: nothing happens
  EXPECT_EQ(bytes(), left);
}

TEST(CodeCache, TrimLeavesFilesOfOthersAlone) {
  const TemporaryFolder folder;
  CodeCache cache(folder.path(), 1);
  cache.get("key", build_sample);
  const std::string digits(32, 'a');
  const std::vector<std::string> others = {
      "notes.txt", "thesis.k", digits + ".ko", digits, digits.substr(1) + ".k", "A" + digits.substr(1) + ".k"};
  for (const std::string& name : others) std::ofstream(fs::path(folder.path()) / name) << "precious";
  fs::create_directories(fs::path(folder.path()) / (digits + ".k"));
  fs::create_symlink("notes.txt", fs::path(folder.path()) / ("b" + digits.substr(1) + ".k"));
  cache.trim();
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(fs::path(folder.path()) / name)) << name;
  EXPECT_EQ(folder.files().size(), others.size() + 2);  // its own entry is gone
}

TEST(CodeCache, AnEntryThatIsNoFileIsAMiss) {
  for (const char* kind : {"pipe", "folder", "link to a device", "link to a file", "too large"}) {
    const TemporaryFolder folder;
    CodeCache(folder.path()).get("key", build_sample);
    const fs::path entry = folder.files().front(), elsewhere = folder.path() + "/elsewhere";
    if (kind == std::string("too large")) {
      fs::resize_file(entry, uint64_t{1} << 40);  // it has no blocks of its own
    } else {
      fs::rename(entry, elsewhere);
      if (kind == std::string("pipe")) mkfifo(entry.c_str(), 0600);
      if (kind == std::string("folder")) fs::create_directory(entry);
      if (kind == std::string("link to a device")) fs::create_symlink("/dev/zero", entry);
      if (kind == std::string("link to a file")) fs::create_symlink(elsewhere, entry);
    }
    ASSERT_TRUE(fs::exists(fs::symlink_status(entry)));
    CodeCache cache(folder.path());
    expect_works(cache.get("key", build_sample));
    EXPECT_EQ(cache.counters().built, 1u) << kind;
    EXPECT_TRUE(fs::exists("/dev/zero") && !fs::is_regular_file("/dev/zero"));
  }
}

TEST(CodeCache, TrimRemovesWhatAKilledProcessLeft) {
  const TemporaryFolder folder;
  CodeCache cache(folder.path());
  cache.get("key", build_sample);
  const std::string name = folder.files().front().string();
  const std::string left = name + ".abcdefghijkl.tandem-part", other = folder.path() + "/abcdefghijkl.part";
  std::ofstream(left) << "half";
  std::ofstream(other) << "another program's";
  cache.trim();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other) && fs::exists(name));
}

TEST(CodeCache, IsEmptyUntilSomethingIsWritten) {
  EXPECT_TRUE(CodeCache("").is_empty());
  TemporaryFolder folder;
  CodeCache cache(folder.path());
  EXPECT_TRUE(cache.is_empty());
  cache.get("some key", [](std::vector<char>& object) { object = sample_object(); });
  EXPECT_FALSE(cache.is_empty());
}

}  // namespace
}  // namespace tandem::testing
