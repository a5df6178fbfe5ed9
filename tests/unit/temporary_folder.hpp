// A folder of a test's own.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <string>

namespace tandem {

// A new folder, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / ("tandem_test_" + std::to_string(::getpid()) + "_" + counter())) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  size_t file_count() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  static std::string counter() {
    static int count = 0;
    return std::to_string(count++);
  }
  std::filesystem::path path_;
};

}  // namespace tandem
