#include "profile/profile.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include "base/env.hpp"
#include "base/file.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "profile/recorder.hpp"
#include "profile/report.hpp"

namespace tandem::profile {
namespace {

struct Begun {
  std::filesystem::path file;
  std::string title;
};
std::mutex mutex;
std::optional<Begun>& begun() {  // with the lock; never destroyed: the process writes one while it ends
  static auto& b = *new std::optional<Begun>;
  return b;
}
std::optional<Begun> take() {
  std::lock_guard lock(mutex);
  return std::exchange(begun(), {});
}

// The file's temporary one can be made, and goes again.
void check_writable(const std::filesystem::path& file) {
  for (const std::filesystem::path& f : files_for(file)) {
    std::error_code ignored;
    if (f.has_parent_path()) std::filesystem::create_directories(f.parent_path(), ignored);
    AtomicFile(f).write("profile");
  }
}

pid_t process = 0;  // whose environment asked for it: a child that was forked off has no profile of its own

void write_at_exit() {
  if (getpid() != process) return;
  try {
    std::string names;
    for (const std::filesystem::path& f : end()) names += cat(names.empty() ? "" : ", ", f.string());
    if (!names.empty()) std::fprintf(stderr, "tandem: TANDEM_PROFILE: wrote %s\n", names.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tandem: TANDEM_PROFILE: %s\n", e.what());
  }
}

}  // namespace

void begin(const std::filesystem::path& file, std::string title) {
  if (file.filename().empty())
    user_error("profile: '", file.string(),
               "' names no file\n  hint: a name that ends in .html or .json, or one without an ending for both");
  check_writable(file);
  std::lock_guard lock(mutex);
  Recorder::get().start();
  begun() = {file, std::move(title)};
}

std::vector<std::filesystem::path> end() {
  const std::optional<Begun> done = take();
  if (!done) return {};
  return write(Recorder::get().stop(), done->file, done->title);
}

void abandon() {
  if (take()) Recorder::get().stop();
}

void begin_as_environment_says() {
  const std::string file = env::get("TANDEM_PROFILE");
  if (file.empty()) return;
  begin(file, "Profile");
  process = getpid();
  std::atexit(write_at_exit);
}

}  // namespace tandem::profile
