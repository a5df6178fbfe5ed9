// The lower bound, the heuristics, and the driver that asks the search for what they leave open.
#include "plan/allocate.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "base/text.hpp"
#include "plan/allocate_search.hpp"

namespace tandem::plan {
namespace {

constexpr size_t kLargestTotal = size_t{1} << 62;
// Placed blocks that the orders of greedy() may look at, all together: what keeps the heuristics well under a second.
constexpr int64_t kGreedyLooks = 50'000'000;

size_t round_up(size_t n, size_t alignment) { return (n + alignment - 1) / alignment * alignment; }

size_t peak_of(std::span<const Lifetime> blocks, std::span<const size_t> offsets) {
  size_t peak = 0;
  for (size_t i = 0; i < blocks.size(); ++i) peak = std::max(peak, offsets[i] + blocks[i].bytes);
  return peak;
}

// ---- in the order of time: what a heap would do that knows no future ----
// Free ranges below a top that grows when nothing fits; a block takes the smallest range that holds it.
class Heap {
 public:
  size_t take(size_t bytes) {
    if (const auto fit = by_size_.lower_bound({bytes, 0}); fit != by_size_.end()) {
      const auto [range, offset] = *fit;
      erase(offset, range);
      if (range > bytes) insert(offset + bytes, range - bytes);
      return offset;
    }
    size_t offset = top_;
    if (!by_offset_.empty()) {
      const auto [last, range] = *by_offset_.rbegin();
      if (last + range == top_) {
        offset = last;
        erase(last, range);
      }
    }
    top_ = offset + bytes;
    return offset;
  }

  void give(size_t offset, size_t bytes) {
    const auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto [before, range] = *std::prev(after);
      if (before + range == offset) {
        erase(before, range);
        offset = before;
        bytes += range;
      }
    }
    if (const auto next = by_offset_.find(offset + bytes); next != by_offset_.end()) {
      const size_t range = next->second;
      erase(offset + bytes, range);
      bytes += range;
    }
    insert(offset, bytes);
  }

 private:
  void insert(size_t offset, size_t bytes) {
    by_offset_[offset] = bytes;
    by_size_.insert({bytes, offset});
  }
  void erase(size_t offset, size_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }
  std::map<size_t, size_t> by_offset_;
  std::set<std::pair<size_t, size_t>> by_size_;
  size_t top_ = 0;
};

enum class Direction : uint8_t { Forwards, Backwards };

std::vector<size_t> best_fit_in_time(std::span<const Lifetime> blocks, Direction direction) {
  const auto begin = [&](size_t i) { return direction == Direction::Forwards ? blocks[i].first : -blocks[i].last; };
  const auto end = [&](size_t i) { return direction == Direction::Forwards ? blocks[i].last : -blocks[i].first; };
  std::vector<size_t> begins(blocks.size());
  std::iota(begins.begin(), begins.end(), size_t{0});
  std::vector<size_t> ends = begins;
  // Of those that begin together the large ones first: they are the hardest to fit.
  std::stable_sort(begins.begin(), begins.end(),
                   [&](size_t a, size_t b) { return begin(a) != begin(b) ? begin(a) < begin(b) : blocks[a].bytes > blocks[b].bytes; });
  std::stable_sort(ends.begin(), ends.end(), [&](size_t a, size_t b) { return end(a) < end(b); });
  Heap heap;
  std::vector<size_t> offsets(blocks.size());
  auto ended = ends.begin();
  for (size_t i : begins) {
    for (; end(*ended) < begin(i); ++ended) heap.give(offsets[*ended], blocks[*ended].bytes);
    offsets[i] = heap.take(blocks[i].bytes);
  }
  return offsets;
}

// ---- in another order: each block in the lowest gap among those before it ----
// Which placed blocks are alive together with a given one, lowest first.
class Placed {
 public:
  struct Range {
    size_t offset, end;
    auto operator<=>(const Range&) const = default;
  };

  explicit Placed(std::span<const Lifetime> blocks) : blocks_(blocks), offsets_(blocks.size()), rank_(blocks.size()) {
    by_first_.resize(blocks.size());
    std::iota(by_first_.begin(), by_first_.end(), size_t{0});
    std::stable_sort(by_first_.begin(), by_first_.end(), [&](size_t a, size_t b) { return blocks[a].first < blocks[b].first; });
    for (size_t i = 0; i < by_first_.size(); ++i) rank_[by_first_[i]] = i;
    while (leaves_ < blocks.size()) leaves_ *= 2;
    latest_.assign(2 * leaves_, kNothing);
  }

  // Few of them are found by time and sorted; many are filtered from all, which are kept sorted.
  const std::vector<Range>& alive_with(size_t block, int64_t& looks) {
    found_.clear();
    const Lifetime& b = blocks_[block];
    const auto begun = std::partition_point(by_first_.begin(), by_first_.end(), [&](size_t i) { return blocks_[i].first <= b.last; });
    if (find(1, 0, leaves_, static_cast<size_t>(begun - by_first_.begin()), b.first, looks)) {
      std::sort(found_.begin(), found_.end());
      return found_;
    }
    found_.clear();
    looks += static_cast<int64_t>(by_offset_.size());
    for (size_t i : by_offset_)
      if (blocks_[i].first <= b.last && b.first <= blocks_[i].last) found_.push_back(range(i));
    return found_;
  }

  void add(size_t block, size_t offset) {
    offsets_[block] = offset;
    by_offset_.insert(std::upper_bound(by_offset_.begin(), by_offset_.end(), offset, [&](size_t o, size_t i) { return o < offsets_[i]; }),
                      block);
    for (size_t node = leaves_ + rank_[block]; node > 0; node /= 2) latest_[node] = std::max(latest_[node], blocks_[block].last);
  }
  const std::vector<size_t>& offsets() const { return offsets_; }

 private:
  static constexpr int64_t kNothing = INT64_MIN;
  Range range(size_t i) const { return {offsets_[i], offsets_[i] + blocks_[i].bytes}; }

  // Visits those among the first `count` by time that end at `first` or later; false when there are too many to be worth it.
  bool find(size_t node, size_t begin, size_t size, size_t count, int64_t first, int64_t& looks) {
    if (begin >= count || latest_[node] < first) return true;
    ++looks;
    if (size == 1) {
      found_.push_back(range(by_first_[begin]));
      return found_.size() <= 64 + by_offset_.size() / 16;
    }
    return find(2 * node, begin, size / 2, count, first, looks) && find(2 * node + 1, begin + size / 2, size / 2, count, first, looks);
  }

  std::span<const Lifetime> blocks_;
  std::vector<size_t> offsets_, rank_, by_first_;
  std::vector<size_t> by_offset_;  // the placed ones only
  size_t leaves_ = 1;
  std::vector<int64_t> latest_;  // a tree over by_first_: the last step at which a placed block of the subtree is alive
  std::vector<Range> found_;
};

// Empty when there was more to look at than `looks` allows.
std::vector<size_t> greedy(std::span<const Lifetime> blocks, std::span<const size_t> order, int64_t& looks_left) {
  Placed placed(blocks);
  for (size_t i : order) {
    int64_t looks = 0;
    size_t offset = 0;
    for (const Placed::Range& r : placed.alive_with(i, looks)) {
      if (offset + blocks[i].bytes <= r.offset) break;
      offset = std::max(offset, r.end);
    }
    placed.add(i, offset);
    if ((looks_left -= looks) < 0) return {};
  }
  return placed.offsets();
}

// ---- the driver ----
class Allocator {
 public:
  Allocator(std::span<const Lifetime> blocks, size_t bound) : blocks_(blocks), bound_(bound) {}

  // The heuristics, until one is within the goal.
  void guess(size_t goal) {
    keep(best_fit_in_time(blocks_, Direction::Forwards));
    if (peak_ > goal) keep(best_fit_in_time(blocks_, Direction::Backwards));
    const auto length = [](const Lifetime& b) { return static_cast<double>(b.last - b.first + 1); };
    const auto bytes = [](const Lifetime& b) { return static_cast<double>(b.bytes); };
    int64_t looks_left = kGreedyLooks;
    if (peak_ > goal) keep_greedy(looks_left, bytes);
    if (peak_ > goal) keep_greedy(looks_left, [&](const Lifetime& b) { return bytes(b) * length(b); });
    if (peak_ > goal) keep_greedy(looks_left, length);
  }

  // Searches for an allocation within the goal, in each stretch of time that stands alone and is not within it yet.
  SearchResult::Kind fit(size_t goal, int64_t effort) {
    std::vector<size_t> offsets = offsets_;
    for (const std::vector<size_t>& stretch : stretches()) {
      std::vector<Lifetime> part;
      size_t peak = 0;
      for (size_t i : stretch) {
        part.push_back(blocks_[i]);
        peak = std::max(peak, offsets_[i] + blocks_[i].bytes);
      }
      if (peak <= goal) continue;
      const SearchResult result = search(part, goal, effort);
      effort -= result.steps;
      steps_ += result.steps;
      if (result.kind != SearchResult::Kind::Found) return result.kind;
      for (size_t i = 0; i < stretch.size(); ++i) offsets[stretch[i]] = result.offsets[i];
    }
    keep(std::move(offsets));
    return SearchResult::Kind::Found;
  }

  // Halves the distance between what is found and what is known or suspected to be impossible, the first try at the bound itself.
  void shrink(size_t alignment, int64_t effort) {
    size_t hopeless_below = bound_;
    size_t goal = bound_;
    while (hopeless_below < peak_ && steps_ < effort) {
      const SearchResult::Kind kind = fit(goal, (effort - steps_ + 1) / 2);
      if (kind != SearchResult::Kind::Found) hopeless_below = goal + alignment;
      if (kind == SearchResult::Kind::Impossible) bound_ = goal + alignment;
      goal = hopeless_below + (peak_ - hopeless_below) / 2 / alignment * alignment;
    }
  }

  void reach(size_t capacity, size_t alignment, int64_t effort) {
    const size_t goal = capacity / alignment * alignment;
    if (fit(goal, effort) == SearchResult::Kind::Impossible) bound_ = goal + alignment;
  }

  size_t peak() const { return peak_; }
  Allocation result() && { return {std::move(offsets_), peak_, bound_, steps_}; }

 private:
  void keep(std::vector<size_t> offsets) {
    const size_t peak = peak_of(blocks_, offsets);
    if (!offsets_.empty() && peak >= peak_) return;
    offsets_ = std::move(offsets);
    peak_ = peak;
  }

  template <class Key> void keep_greedy(int64_t& looks_left, Key key) {
    std::vector<size_t> order(blocks_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(blocks_[a]) > key(blocks_[b]); });
    if (std::vector<size_t> offsets = greedy(blocks_, order, looks_left); !offsets.empty()) keep(std::move(offsets));
  }

  // The blocks, cut where none is alive from one step to the next.
  std::vector<std::vector<size_t>> stretches() const {
    std::vector<size_t> order(blocks_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks_[a].first < blocks_[b].first; });
    std::vector<std::vector<size_t>> all;
    int64_t last = 0;
    for (size_t i : order) {
      if (all.empty() || blocks_[i].first > last) all.emplace_back();
      last = all.back().empty() ? blocks_[i].last : std::max(last, blocks_[i].last);
      all.back().push_back(i);
    }
    return all;
  }

  std::span<const Lifetime> blocks_;
  std::vector<size_t> offsets_;
  size_t peak_ = 0, bound_;
  int64_t steps_ = 0;
};

}  // namespace

size_t lower_bound(std::span<const Lifetime> blocks, size_t alignment) {
  std::vector<const Lifetime*> by_first, by_last;
  for (const Lifetime& b : blocks) by_first.push_back(&b), by_last.push_back(&b);
  std::sort(by_first.begin(), by_first.end(), [](const Lifetime* a, const Lifetime* b) { return a->first < b->first; });
  std::sort(by_last.begin(), by_last.end(), [](const Lifetime* a, const Lifetime* b) { return a->last < b->last; });
  size_t alive = 0, most = 0;
  auto ended = by_last.begin();
  for (const Lifetime* b : by_first) {
    for (; (*ended)->last < b->first; ++ended) alive -= round_up((*ended)->bytes, alignment);
    alive += round_up(b->bytes, alignment);
    most = std::max(most, alive);
  }
  return most;
}

Allocation allocate(std::span<const Lifetime> blocks, const AllocateOptions& options) {
  TANDEM_CHECK(options.alignment > 0, "allocate: alignment 0");
  std::vector<Lifetime> sized;  // without those of no bytes; their bytes as they take place
  std::vector<size_t> index;
  size_t total = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Lifetime& b = blocks[i];
    TANDEM_CHECK(b.first <= b.last, "allocate: block ", i, " lives from ", b.first, " to ", b.last);
    if (b.bytes == 0) continue;
    if (b.bytes >= kLargestTotal || (total += round_up(b.bytes, options.alignment)) >= kLargestTotal)
      user_error("allocate: the blocks have 2^62 bytes or more together");
    sized.push_back({b.first, b.last, round_up(b.bytes, options.alignment)});
    index.push_back(i);
  }
  Allocator allocator(sized, lower_bound(sized, options.alignment));
  const size_t bound = lower_bound(sized, options.alignment);
  allocator.guess(std::max(options.capacity, bound));
  if (options.capacity == 0)
    allocator.shrink(options.alignment, options.effort);
  else if (allocator.peak() > options.capacity && bound <= options.capacity && options.effort > 0)
    allocator.reach(options.capacity, options.alignment, options.effort);
  Allocation result = std::move(allocator).result();
  std::vector<size_t> offsets(blocks.size(), 0);
  for (size_t i = 0; i < index.size(); ++i) offsets[index[i]] = result.offsets[i];
  result.offsets = std::move(offsets);
  return result;
}

}  // namespace tandem::plan
