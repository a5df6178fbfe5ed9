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
// How many placed blocks the heuristics may look at: what keeps them well under a second.
constexpr int64_t kLooks = 60'000'000;

size_t round_up(size_t n, size_t alignment) { return (n + alignment - 1) / alignment * alignment; }

template <class Less> std::vector<size_t> sorted(size_t count, Less less) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), less);
  return order;
}

size_t peak_of(std::span<const Lifetime> blocks, std::span<const size_t> offsets) {
  size_t peak = 0;
  for (size_t i = 0; i < blocks.size(); ++i) peak = std::max(peak, offsets[i] + blocks[i].bytes);
  return peak;
}

// ---- in the order of time: what a heap would do that knows no future ----
// Free ranges; a block takes the smallest one that holds it, or makes the heap grow. A heap with a ceiling hands out its highest range
// from above: in a chain, where each block is made from the one before, they then take turns at both ends and leave no holes.
class Heap {
 public:
  explicit Heap(size_t ceiling) : ceiling_(ceiling), top_(ceiling) {
    if (ceiling > 0) insert(0, ceiling);
  }

  size_t take(size_t bytes) {
    if (const auto fit = by_size_.lower_bound({bytes, 0}); fit != by_size_.end()) {
      const auto [range, offset] = *fit;
      erase(offset, range);
      const size_t rest = range - bytes;
      const bool from_above = offset > 0 && offset + range == ceiling_;
      if (rest > 0) insert(from_above ? offset : offset + bytes, rest);
      return from_above ? offset + rest : offset;
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
  size_t ceiling_, top_;
};

enum class Direction : uint8_t { Forwards, Backwards };

std::vector<size_t> in_time(std::span<const Lifetime> blocks, Direction direction, size_t ceiling) {
  // ~ reverses the order, without overflow.
  const auto begin = [&](size_t i) { return direction == Direction::Forwards ? blocks[i].first : ~blocks[i].last; };
  const auto end = [&](size_t i) { return direction == Direction::Forwards ? blocks[i].last : ~blocks[i].first; };
  // Of those that begin together the large ones first: they are the hardest to fit.
  const std::vector<size_t> begins = sorted(
      blocks.size(), [&](size_t a, size_t b) { return begin(a) != begin(b) ? begin(a) < begin(b) : blocks[a].bytes > blocks[b].bytes; });
  const std::vector<size_t> ends = sorted(blocks.size(), [&](size_t a, size_t b) { return end(a) < end(b); });
  Heap heap(ceiling);
  std::vector<size_t> offsets(blocks.size());
  auto ended = ends.begin();
  for (size_t i : begins) {
    for (; end(*ended) < begin(i); ++ended) heap.give(offsets[*ended], blocks[*ended].bytes);
    offsets[i] = heap.take(blocks[i].bytes);
  }
  return offsets;
}

// ---- in another order: each block in the lowest gap among those before it ----
class Placed {
 public:
  explicit Placed(std::span<const Lifetime> blocks) : blocks_(blocks), offsets_(blocks.size()), rank_(blocks.size()) {
    by_first_ = sorted(blocks.size(), [&](size_t a, size_t b) { return blocks[a].first < blocks[b].first; });
    for (size_t i = 0; i < by_first_.size(); ++i) rank_[by_first_[i]] = i;
    while (leaves_ < blocks.size()) leaves_ *= 2;
    latest_.assign(2 * leaves_, kNothing);
  }

  // The lowest offset at which the block meets none that is alive with it. If those are few, they are found by time and sorted; if many,
  // they are met on the way through all, which are kept sorted.
  size_t lowest_gap(size_t block) {
    const Lifetime& b = blocks_[block];
    const auto begun = std::partition_point(by_first_.begin(), by_first_.end(), [&](size_t i) { return blocks_[i].first <= b.last; });
    found_.clear();
    const bool are_few = find(1, 0, leaves_, static_cast<size_t>(begun - by_first_.begin()), b.first);
    if (are_few) std::sort(found_.begin(), found_.end(), [&](size_t x, size_t y) { return offsets_[x] < offsets_[y]; });
    size_t gap = 0;
    for (size_t i : are_few ? found_ : by_offset_) {
      ++looks_;
      const Lifetime& other = blocks_[i];
      if (other.last < b.first || b.last < other.first) continue;
      if (gap + b.bytes <= offsets_[i]) break;
      gap = std::max(gap, offsets_[i] + other.bytes);
    }
    return gap;
  }

  void add(size_t block, size_t offset) {
    offsets_[block] = offset;
    by_offset_.insert(std::upper_bound(by_offset_.begin(), by_offset_.end(), offset, [&](size_t o, size_t i) { return o < offsets_[i]; }),
                      block);
    for (size_t node = leaves_ + rank_[block]; node > 0; node /= 2) latest_[node] = std::max(latest_[node], blocks_[block].last);
  }

  std::vector<size_t> offsets() && { return std::move(offsets_); }
  int64_t looks() const { return looks_; }  // how much work it was so far

 private:
  static constexpr int64_t kNothing = INT64_MIN;

  // Those among the first `count` by time that end at `first` or later; false when there are too many to be worth it.
  bool find(size_t node, size_t begin, size_t size, size_t count, int64_t first) {
    if (begin >= count || latest_[node] < first) return true;
    ++looks_;
    if (size == 1) {
      found_.push_back(by_first_[begin]);
      return found_.size() <= 64 + by_offset_.size() / 16;
    }
    return find(2 * node, begin, size / 2, count, first) && find(2 * node + 1, begin + size / 2, size / 2, count, first);
  }

  std::span<const Lifetime> blocks_;
  std::vector<size_t> offsets_, rank_, by_first_;
  std::vector<size_t> by_offset_;  // the placed ones only
  size_t leaves_ = 1;
  std::vector<int64_t> latest_;  // a tree over by_first_: the last step at which a placed block of the subtree is alive
  std::vector<size_t> found_;
  int64_t looks_ = 0;
};

// Empty when there was more to look at than allowed.
std::vector<size_t> in_order(std::span<const Lifetime> blocks, std::span<const size_t> order, int64_t& looks_left) {
  Placed placed(blocks);
  for (size_t i : order) {
    placed.add(i, placed.lowest_gap(i));
    if (placed.looks() > looks_left) break;
  }
  looks_left -= placed.looks();
  return looks_left < 0 ? std::vector<size_t>{} : std::move(placed).offsets();
}

// ---- the driver ----
class Allocator {
 public:
  Allocator(std::span<const Lifetime> blocks, size_t bound) : blocks_(blocks), bound_(bound) {}

  // The heuristics, until one is within the goal.
  void guess(size_t goal) {
    for (size_t ceiling : {size_t{0}, bound_})
      for (Direction direction : {Direction::Forwards, Direction::Backwards})
        if (!is_within(goal)) keep(in_time(blocks_, direction, ceiling));
    const auto length = [](const Lifetime& b) { return static_cast<double>(b.last) - static_cast<double>(b.first) + 1; };
    const auto bytes = [](const Lifetime& b) { return static_cast<double>(b.bytes); };
    int64_t looks_left = kLooks;
    if (!is_within(goal)) keep_in_order(looks_left, bytes);
    if (!is_within(goal)) keep_in_order(looks_left, [&](const Lifetime& b) { return bytes(b) * length(b); });
    if (!is_within(goal)) keep_in_order(looks_left, length);
  }

  // Searches for an allocation within the goal, in each stretch of time that stands alone and is not within it yet. What was found for
  // one stretch stays when another one fails.
  SearchResult::Kind fit(size_t goal, int64_t effort) {
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
      for (size_t i = 0; i < stretch.size(); ++i) offsets_[stretch[i]] = result.offsets[i];
      peak_ = peak_of(blocks_, offsets_);
    }
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

  bool is_within(size_t goal) const { return offsets_.size() == blocks_.size() && peak_ <= goal; }
  Allocation result() && { return {std::move(offsets_), peak_, bound_, steps_}; }

 private:
  void keep(std::vector<size_t> offsets) {
    const size_t peak = peak_of(blocks_, offsets);
    if (!offsets_.empty() && peak >= peak_) return;
    offsets_ = std::move(offsets);
    peak_ = peak;
  }

  template <class Key> void keep_in_order(int64_t& looks_left, Key key) {
    const std::vector<size_t> order = sorted(blocks_.size(), [&](size_t a, size_t b) { return key(blocks_[a]) > key(blocks_[b]); });
    if (std::vector<size_t> offsets = in_order(blocks_, order, looks_left); !offsets.empty()) keep(std::move(offsets));
  }

  // The blocks, cut where none is alive from one step to the next.
  std::vector<std::vector<size_t>> stretches() const {
    std::vector<std::vector<size_t>> all;
    int64_t last = 0;
    for (size_t i : sorted(blocks_.size(), [&](size_t a, size_t b) { return blocks_[a].first < blocks_[b].first; })) {
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
  TANDEM_CHECK(options.alignment > 0 && options.alignment <= kLargestTotal, "allocate: alignment ", options.alignment);
  std::vector<Lifetime> sized;  // without those of no bytes; their bytes as they take place
  std::vector<size_t> index;
  size_t total = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Lifetime& b = blocks[i];
    TANDEM_CHECK(b.first <= b.last, "allocate: block ", i, " lives from ", b.first, " to ", b.last);
    if (b.bytes == 0) continue;
    const size_t bytes = b.bytes < kLargestTotal ? round_up(b.bytes, options.alignment) : kLargestTotal;
    total += bytes;
    if (total >= kLargestTotal) user_error("allocate: the blocks have 2^62 bytes or more together");
    sized.push_back({b.first, b.last, bytes});
    index.push_back(i);
  }
  const size_t bound = lower_bound(sized, options.alignment);
  Allocator allocator(sized, bound);
  allocator.guess(std::max(options.capacity, bound));
  if (options.capacity == 0)
    allocator.shrink(options.alignment, options.effort);
  else if (bound <= options.capacity && !allocator.is_within(options.capacity))
    allocator.reach(options.capacity, options.alignment, options.effort);
  Allocation result = std::move(allocator).result();
  std::vector<size_t> offsets(blocks.size(), 0);
  for (size_t i = 0; i < index.size(); ++i) offsets[index[i]] = result.offsets[i];
  result.offsets = std::move(offsets);
  return result;
}

}  // namespace tandem::plan
