// Bytes on disk by key: compiled kernels, between runs. Several processes and several devices may share the folder; what is found there is
// checked before it is trusted and counts as missing when it is damaged. The entries stay below a limit: those that were not used for
// longest go first. Files of others in the folder are left alone.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

class BlobCache {
 public:
  // `folder` empty: keeps nothing; limit_bytes 0: no limit.
  explicit BlobCache(std::string folder, uint64_t limit_bytes = 0);

  // Keys are complete (kernel, schedule, target, driver) and compared in full.
  bool read(const std::string& key, std::vector<char>& blob) const;
  void write(const std::string& key, const std::vector<char>& blob) const;  // a full disk costs the cache, never the run
  bool is_empty() const;                                                    // nothing on disk: the first kernel will have to be built
  uint64_t damaged() const { return damaged_.load(std::memory_order_relaxed); }
  // To three quarters of the limit, when it is exceeded; one write in 256 does this by itself. Also removes what killed processes left.
  void trim() const;

 private:
  std::string path_of(const std::string& key) const;

  std::string folder_;
  uint64_t limit_bytes_;
  mutable std::atomic<uint64_t> damaged_{0};
};

}  // namespace tandem
