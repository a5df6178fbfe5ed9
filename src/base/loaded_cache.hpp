// What is made of bytes, such as compiled code: by key, in memory for this process and as the bytes on disk between runs.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/blob_cache.hpp"
#include "base/lru_cache.hpp"

namespace tandem {

template <class T> class LoadedCache {
 public:
  using Ref = std::shared_ptr<const T>;
  // most_loaded: in memory; those in use stay anyway. `folder` empty: memory only; limit_bytes 0: no limit.
  LoadedCache(size_t most_loaded, std::string folder, uint64_t limit_bytes)
      : disk_(std::move(folder), limit_bytes), loaded_({most_loaded, most_loaded}) {}

  // What belongs to the key, which is complete. load(bytes): null where these bytes are of no use, although they are sound. build(bytes):
  // makes it anew and gives its bytes; none are not kept. Both run outside the lock.
  template <class Load, class Build> Ref get(const std::string& key, Load&& load, Build&& build) {
    const size_t hash = std::hash<std::string>()(key);
    const auto is_it = [&](const Entry& e) { return e.key == key; };
    {
      std::lock_guard lock(mutex_);
      if (const Entry* found = loaded_.find(hash, is_it)) {
        ++counters_.memory_hits;
        return found->made;
      }
    }
    std::vector<char> bytes;
    Ref made = disk_.read(key, bytes) ? load(std::as_const(bytes)) : nullptr;
    const bool from_disk = made != nullptr;
    if (!from_disk) {
      bytes.clear();
      made = build(bytes);
      if (!bytes.empty()) disk_.write(key, bytes);
    }
    std::lock_guard lock(mutex_);
    ++(from_disk ? counters_.disk_hits : counters_.built);
    if (const Entry* found = loaded_.find(hash, is_it)) return found->made;  // when two threads built it, the first one stays
    loaded_.add(hash, 1, {key, made});
    return made;
  }

  struct Counters {
    uint64_t memory_hits = 0, disk_hits = 0, built = 0, damaged = 0;
  };
  Counters counters() const {
    std::lock_guard lock(mutex_);
    Counters c = counters_;
    c.damaged = disk_.damaged();
    return c;
  }
  const BlobCache& disk() const { return disk_; }

 private:
  struct Entry {
    std::string key;
    Ref made;
  };
  BlobCache disk_;
  mutable std::mutex mutex_;
  LruCache<Entry> loaded_;
  Counters counters_;
};

}  // namespace tandem
