// Compiled kernels by key: in memory for this process, on disk between runs (base/loaded_cache.hpp). What is damaged there is built anew.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loaded_cache.hpp"
#include "object_loader.hpp"

namespace tandem::cpu {

class CodeCache {
 public:
  // `folder` empty: memory only; limit_bytes 0: no limit.
  explicit CodeCache(std::string folder, uint64_t limit_bytes = 0);

  using Build = std::function<void(std::vector<char>& object)>;
  // The code for `key` (complete: kernel, schedule, target). Building happens outside the lock.
  std::shared_ptr<const Code> get(const std::string& key, const Build& build);
  bool is_empty() const { return codes_.disk().is_empty(); }

  LoadedCache<Code>::Counters counters() const { return codes_.counters(); }
  void trim() const { codes_.disk().trim(); }

 private:
  LoadedCache<Code> codes_;
};

}  // namespace tandem::cpu
