// fuzz: gives changed inputs to what reads files, under a limit of time and memory each.
//
// A child process reads them, so that one that crashes, hangs or takes too much ends the child only: the parent saves the input, says how
// to repeat it, and goes on with the next. The same seed gives the same inputs.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <thread>

#include <tandem/error.hpp>

#include "format.hpp"
#include "support/source_folder.hpp"

// What was freed does not stay for long: how much memory an input takes is measured.
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=8:malloc_context_size=12"; }  // NOLINT

namespace tandem::fuzz {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

fs::path data_folder() { return test::source_file("tests/data"); }

std::string read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ResourceError("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

fs::path write_bytes(const fs::path& path, std::string_view bytes) {
  fs::remove(path);  // some file systems wait for the disk when one is cut to nothing and written again
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

namespace {

constexpr const char* kUsage = R"(usage: fuzz [FORMAT...] [OPTIONS]

Gives changed inputs to what reads files and looks for crashes, exceptions that are not ours, hangs, and memory that an input has no
bytes for. FORMAT is model, hdf5, records, csv, image, npy, state, cache or kernel; default: all, one after the other.

  --seconds N     for each format (default 60)
  --seed N        where to begin (default: from the clock)
  --corpus N      instead: every stored input and N changes of each, the same ones every time
  --input FILE    instead: this one input, in this process, for a debugger
  --out FOLDER    where inputs that fail are saved (default build/fuzz_failures)
)";

struct Options {
  std::vector<std::string> formats;
  int seconds = 60;
  std::optional<uint64_t> seed;
  std::optional<int> corpus;
  fs::path input, out = test::source_file("build/fuzz_failures");
};

constexpr size_t kMostInputBytes = size_t{1} << 20;
#ifdef __SANITIZE_ADDRESS__
constexpr double kMostSeconds = 20;
constexpr size_t kMostMemory = size_t{1} << 30;
#else
constexpr double kMostSeconds = 5;
constexpr size_t kMostMemory = size_t{512} << 20;
#endif

// What the child tells its parent.
struct Shared {
  std::atomic<uint64_t> done{0};       // inputs
  std::atomic<int64_t> started_ns{0};  // the one under way; 0: none
  std::atomic<bool> finished{false};
  std::atomic<size_t> base_bytes{0};  // of memory, before the first input; 0: it has not begun
  size_t bytes = 0;                   // of the input under way
  char text[1000] = {};               // what is wrong with it
  char input[kMostInputBytes] = {};
};

// Of one process; what it left when it was ended is removed by its parent.
fs::path folder_of(pid_t process) { return fs::temp_directory_path() / ("tandem_fuzz_" + std::to_string(process)); }

int64_t now_ns() { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count(); }

size_t resident_bytes(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/statm");
  size_t pages = 0, resident = 0;
  in >> pages >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// Empty: it was read, or refused by one of our errors.
std::string problem_with(const Format& format, const std::string& input, const fs::path& folder) {
  try {
    format.run(input, folder);
  } catch (const InternalError& e) {
    return std::string("an internal error: ") + e.what();
  } catch (const Error&) {
  } catch (const std::exception& e) {
    return std::string("an exception that is not ours: ") + e.what();
  }
  return "";
}

std::vector<std::string> stored_inputs(const Format& format) {
  std::vector<fs::path> files;
  if (const fs::path folder = data_folder() / "fuzz" / format.name; fs::exists(folder))
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs = format.seeds;
  for (const fs::path& file : files) inputs.push_back(read_bytes(file));
  return inputs;
}

std::string changed(const Format& format, const std::vector<std::string>& inputs, size_t which, Random& random) {
  std::string input = format.mutate ? format.mutate(inputs[which], random) : mutated(inputs[which], random);
  if (input.size() > kMostInputBytes) input.resize(kMostInputBytes);
  return input;
}

struct KnownFormat {
  const char* name;
  Format (*make)();  // starts the engine: only in a process that does not fork afterwards
};
constexpr KnownFormat kFormats[] = {{"model", model_format}, {"hdf5", hdf5_format},   {"records", records_format},
                                    {"csv", csv_format},     {"image", image_format}, {"npy", npy_format},
                                    {"state", state_format}, {"cache", cache_format}, {"kernel", kernel_format}};

// The inputs of one run by their number: of the corpus each one and its changes, else changes for ever.
struct Plan {
  Format format;
  uint64_t seed = 0;
  std::optional<int> changes;  // of each
  std::vector<std::string> inputs = stored_inputs(format);

  bool has(uint64_t number) const { return !changes || number < inputs.size() * static_cast<uint64_t>(*changes + 1); }
  std::string input(uint64_t number) const {
    const size_t which = number % inputs.size();
    if (changes && number < inputs.size()) return inputs[which];
    Random random(seed + number * 0x9e3779b97f4a7c15u);
    return changed(format, inputs, which, random);
  }
};

[[noreturn]] void read_inputs(const Plan& plan, Shared& shared, uint64_t from) {
  shared.base_bytes = resident_bytes(::getpid());
  const fs::path folder = folder_of(::getpid());
  fs::create_directories(folder);
  for (uint64_t number = from; plan.has(number); ++number) {
    const std::string input = plan.input(number);
    shared.bytes = input.size();
    std::memcpy(shared.input, input.data(), input.size());
    shared.started_ns = now_ns();
    const std::string problem = problem_with(plan.format, input, folder);
    shared.started_ns = 0;
    if (!problem.empty()) {
      std::snprintf(shared.text, sizeof shared.text, "%s", problem.c_str());
      ::_exit(1);
    }
    shared.done = number + 1;
  }
  shared.finished = true;
  ::_exit(0);
}

class Session {
 public:
  Session(const KnownFormat& format, uint64_t seed, const Options& options)
      : format_(format), seed_(seed), options_(options), shows_progress_(::isatty(1)) {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw ResourceError("no memory to share with a child");
    shared_ = new (memory) Shared;
  }
  ~Session() { ::munmap(shared_, sizeof(Shared)); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int run() {  // how many failed
    constexpr int kMostFailures = 10;
    start_ = Clock::now();
    for (uint64_t from = 0; !is_over() && failures_ < kMostFailures;) {
      start_child(from);
      watch();
      fs::remove_all(folder_of(child_));
      from = shared_->done + 1;
    }
    progress('\n');
    return failures_;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool is_over() const { return shared_->finished || (!options_.corpus && seconds() >= options_.seconds); }

  void start_child(uint64_t from) {
    std::fflush(nullptr);
    shared_->done = from;
    shared_->started_ns = 0;
    shared_->base_bytes = 0;
    shared_->text[0] = '\0';
    child_ = ::fork();
    if (child_ == 0) read_inputs({format_.make(), seed_, options_.corpus}, *shared_, from);
    if (child_ < 0) throw ResourceError("cannot start a child");
  }

  // Until the child ends, or has to.
  void watch() {
    for (int round = 0;; ++round) {
      int status = 0;
      if (::waitpid(child_, &status, WNOHANG) == child_) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
        if (shared_->text[0] != '\0') return fail(shared_->text);
        return fail(WIFSIGNALED(status) ? std::string("it crashed: ") + ::strsignal(WTERMSIG(status)) : "a sanitizer ended it, see above");
      }
      const int64_t started = shared_->started_ns;
      const size_t bytes = resident_bytes(child_), base = shared_->base_bytes;
      if (started != 0 && 1e-9 * static_cast<double>(now_ns() - started) > kMostSeconds)
        return end_child("it takes more than " + std::to_string(static_cast<int>(kMostSeconds)) + " seconds");
      if (base != 0 && bytes > base + kMostMemory)
        return end_child("it takes " + std::to_string((bytes - base) >> 20) + " MiB for " + std::to_string(shared_->bytes) + " bytes");
      if (is_over()) {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        return;
      }
      if (round % 64 == 0) progress('\r');
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  void end_child(const std::string& why) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    fail(why);
  }

  void fail(const std::string& why) {
    ++failures_;
    fs::create_directories(options_.out);
    const std::string input(shared_->input, shared_->bytes);
    const std::string name = std::string(format_.name) + "-" + std::to_string(seed_) + "-" + std::to_string(shared_->done);
    const fs::path file = write_bytes(options_.out / name, input);
    std::printf("\n%s: %s\n  input:  %s (%zu bytes)\n  repeat: ./dev fuzz %s --input %s\n  keep:   cp %s tests/data/fuzz/%s/\n",
                format_.name, why.c_str(), file.c_str(), input.size(), format_.name, file.c_str(), file.c_str(), format_.name);
  }

  void progress(char end) const {
    if (end == '\r' && !shows_progress_) return;
    std::printf("%-8s seed %llu  %8llu inputs  %5.0f s  %d failed %c", format_.name, static_cast<unsigned long long>(seed_),
                static_cast<unsigned long long>(shared_->done.load()), seconds(), failures_, end);
    std::fflush(stdout);
  }

  const KnownFormat& format_;
  const uint64_t seed_;
  const Options& options_;
  const bool shows_progress_;
  Shared* shared_;
  Clock::time_point start_;
  pid_t child_ = 0;
  int failures_ = 0;
};

Options options_of(int count, char** arguments) {
  Options o;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == count) throw UserError("fuzz: " + argument + " needs a value");
      return arguments[++i];
    };
    const auto number = [&] {
      const std::string text = value();
      if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
        throw UserError("fuzz: " + argument + " is '" + text + "', expected a number");
      return std::stoull(text);
    };
    if (argument == "--help" || argument == "-h") {
      std::cout << kUsage;
      std::exit(0);
    } else if (argument == "--seconds") {
      o.seconds = static_cast<int>(std::min<uint64_t>(number(), 1'000'000));
    } else if (argument == "--seed") {
      o.seed = number();
    } else if (argument == "--corpus") {
      o.corpus = static_cast<int>(std::min<uint64_t>(number(), 1'000'000));
    } else if (argument == "--input") {
      o.input = value();
    } else if (argument == "--out") {
      o.out = value();
    } else if (argument.starts_with("-")) {
      throw UserError("fuzz: unknown option " + argument + "\n  hint: --help");
    } else {
      o.formats.push_back(argument);
    }
  }
  return o;
}

int run_one(const Format& format, const fs::path& file) {
  const fs::path folder = folder_of(::getpid());
  fs::create_directories(folder);
  const std::string problem = problem_with(format, read_bytes(file), folder);
  fs::remove_all(folder);
  std::printf("%s: %s\n", format.name.c_str(), problem.empty() ? "nothing is wrong" : problem.c_str());
  return problem.empty() ? 0 : 1;
}

int main_of(const Options& options) {
  std::vector<KnownFormat> chosen;
  for (const KnownFormat& format : kFormats)
    if (options.formats.empty() || std::count(options.formats.begin(), options.formats.end(), format.name)) chosen.push_back(format);
  for (const std::string& name : options.formats)
    if (std::none_of(chosen.begin(), chosen.end(), [&](const KnownFormat& f) { return f.name == name; }))
      throw UserError("fuzz: there is no format '" + name + "'\n  hint: --help");
  if (!options.input.empty()) {
    if (chosen.size() != 1) throw UserError("fuzz: --input goes with one format");
    return run_one(chosen[0].make(), options.input);
  }
  const uint64_t seed = options.corpus ? 1 : options.seed.value_or(static_cast<uint64_t>(now_ns() / 1000 % 1'000'000'000));
  int failures = 0;
  for (const KnownFormat& format : chosen) failures += Session(format, seed, options).run();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tandem::fuzz

int main(int count, char** arguments) {
  try {
    return tandem::fuzz::main_of(tandem::fuzz::options_of(count, arguments));
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 2;
  }
}
