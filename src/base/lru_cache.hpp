// A cache in memory that forgets what was not used for longest. Entries have a weight, such as how many nodes they hold, and are found by a
// hash and a test, so that a key need not be copied. Not thread-safe: its owner locks.
#pragma once
#include <cstddef>
#include <list>
#include <unordered_map>
#include <utility>

namespace tandem {

struct LruLimits {
  size_t most_entries;
  size_t most_weight;  // the last entry stays, however heavy it is
};

template <class T> class LruCache {
 public:
  explicit LruCache(LruLimits limits) : limits_(limits) {}

  // The entry with this hash that `matches`, which is now the last one used; null when there is none.
  template <class Matches> T* find(size_t hash, Matches&& matches) {
    for (auto [at, end] = index_.equal_range(hash); at != end; ++at) {
      if (!matches(std::as_const(at->second->value))) continue;
      entries_.splice(entries_.begin(), entries_, at->second);
      return &entries_.front().value;
    }
    return nullptr;
  }

  T& add(size_t hash, size_t weight, T value) {
    entries_.push_front({hash, weight, std::move(value)});
    index_.emplace(hash, entries_.begin());
    weight_ += weight;
    while (entries_.size() > 1 && (entries_.size() > limits_.most_entries || weight_ > limits_.most_weight)) drop_oldest();
    return entries_.front().value;
  }

  T* newest() { return entries_.empty() ? nullptr : &entries_.front().value; }
  const T* newest() const { return entries_.empty() ? nullptr : &entries_.front().value; }
  size_t size() const { return entries_.size(); }
  template <class F> void for_each(F&& f) const {  // the last one used first
    for (const Entry& e : entries_) f(e.value);
  }
  void clear() {
    index_.clear();
    entries_.clear();
    weight_ = 0;
  }

 private:
  struct Entry {
    size_t hash, weight;
    T value;
  };

  void drop_oldest() {
    const auto oldest = std::prev(entries_.end());
    for (auto [at, end] = index_.equal_range(oldest->hash); at != end; ++at)
      if (at->second == oldest) {
        index_.erase(at);
        break;
      }
    weight_ -= oldest->weight;
    entries_.pop_back();
  }

  const LruLimits limits_;
  size_t weight_ = 0;
  std::list<Entry> entries_;  // the last one used first
  std::unordered_multimap<size_t, typename std::list<Entry>::iterator> index_;
};

}  // namespace tandem
