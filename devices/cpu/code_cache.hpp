// Compiled kernels by key: in memory for this process, on disk between runs. Two processes may share the folder; what is found there
// is checked before it is trusted and built anew when it is damaged. The entries stay below a limit: those that were not used for longest
// go first. Files of others in the folder are left alone.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/lru_cache.hpp"
#include "object_loader.hpp"

namespace tandem::cpu {

class CodeCache {
 public:
  // `folder` empty: memory only; limit_bytes 0: no limit.
  explicit CodeCache(std::string folder, uint64_t limit_bytes = 0);

  using Build = std::function<void(std::vector<char>& object)>;
  // The code for `key` (complete: kernel, schedule, target). Building happens outside the lock.
  std::shared_ptr<const Code> get(const std::string& key, const Build& build);
  bool is_empty() const;  // nothing on disk: the first kernel will have to be built

  struct Counters {
    uint64_t memory_hits = 0, disk_hits = 0, built = 0, damaged = 0;
  };
  Counters counters() const;
  // To three quarters of the limit, when it is exceeded; one write in 256 does this by itself. Also removes what killed processes left.
  void trim() const;

 private:
  std::string path_of(const std::string& key) const;
  bool read(const std::string& key, std::vector<char>& object);
  void write(const std::string& key, const std::vector<char>& object);

  std::string folder_;
  uint64_t limit_bytes_;
  mutable std::mutex mutex_;
  struct Loaded {
    std::string key;
    std::shared_ptr<const Code> code;
  };
  LruCache<Loaded> loaded_;
  Counters counters_;
};

}  // namespace tandem::cpu
