// Builds the allocation from the bottom up. Time is cut into sections; each has a floor, below which nothing can be placed any more.
// A decision takes a section that is lower than all that its blocks reach, and says which block lies on its floor, or that none does.
// A failure is explained by the set of sections that caused it; decisions that touch none of them are undone without trying more
// (conflict-directed backjumping, Prosser 1993). That solutions may be pushed down, that time cuts a problem into independent ones
// and that the room above a section's floor must hold what is left of it is known from MiniMalloc (Moffitt, ASPLOS 2023); failures
// that weigh on later choices are from dom/wdeg (Boussemart et al., ECAI 2004), the lengths of restarts from Luby et al. (1993).
#include "plan/allocate_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tandem::plan {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int32_t kNone = -1;
constexpr int64_t kLooksPerBlock = 2;  // of a restart, times 1, 1, 2, 1, 1, 2, 4, ...

// The sequence 1, 1, 2, 1, 1, 2, 4, 1, ... for i = 1, 2, 3, ...
int64_t luby(int64_t i) {
  int64_t power = 1;
  while (2 * power - 1 < i) power *= 2;
  return i == 2 * power - 1 ? power : luby(i - power + 1);
}

// SplitMix64 (Steele et al. 2014): the same numbers on every machine.
class Random {
 public:
  double between(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t state_ = 0;
};

// A set of sections.
class Sections {
 public:
  explicit Sections(size_t count = 0) : words_((count + 63) / 64) {}
  void clear() { std::fill(words_.begin(), words_.end(), 0); }
  void add(int32_t s) { words_[static_cast<size_t>(s) / 64] |= uint64_t{1} << static_cast<size_t>(s) % 64; }
  bool has(int32_t s) const { return words_[static_cast<size_t>(s) / 64] >> static_cast<size_t>(s) % 64 & 1; }
  bool has_any(int32_t first, int32_t end) const {
    for (int32_t s = first; s < end; ++s)
      if (has(s)) return true;
    return false;
  }
  void add(const Sections& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }

 private:
  std::vector<uint64_t> words_;
};

class Search {
 public:
  Search(std::span<const Lifetime> blocks, size_t capacity, int64_t effort) : capacity_(static_cast<int64_t>(capacity)), effort_(effort) {
    cut_time(blocks);
  }

  SearchResult run() {
    SearchResult result;
    for (int64_t restart = 0; steps_ < effort_; ++restart) {
      reset(restart);
      const Outcome outcome = dive(kLooksPerBlock * static_cast<int64_t>(blocks_.size() + 1) * luby(restart + 1));
      if (outcome == Outcome::Cut) continue;
      result.kind = outcome == Outcome::Solved ? SearchResult::Kind::Found : SearchResult::Kind::Impossible;
      break;
    }
    result.steps = steps_;
    if (result.kind == SearchResult::Kind::Found) {
      result.offsets.resize(blocks_.size());
      for (const Block& b : blocks_) result.offsets[b.index] = static_cast<size_t>(b.offset);
    }
    return result;
  }

 private:
  enum class Outcome : uint8_t { Solved, Failed, Cut };

  struct Block {
    int32_t first, end;  // sections, half open
    int64_t bytes;
    size_t index;            // in the caller's list
    int32_t before, after;   // among those without an offset, in the order of `first`
    int64_t lowest = 0;      // the highest floor of its sections
    int64_t preference = 0;  // the lower, the earlier it is tried
    int64_t offset = 0;
  };
  struct Section {
    int64_t floor = 0;
    int64_t weight = 1;  // 1 + how often it was seen to be too full
    // Of the part that is looked at:
    int64_t level = 0;      // no block can lie lower: the smallest `lowest` of its blocks
    int64_t left = 0;       // bytes of its blocks
    int32_t options = 0;    // blocks that can lie on the level
    bool is_valley = true;  // none of them reaches a section with a lower level
  };
  // A run of blocks without offsets that starts at `head` and has none from `end` on. Parts that wait are a list, so that undoing is easy.
  struct Part {
    int32_t head, end;
    size_t next;
  };
  // A choice of what lies on the level of a section.
  struct Decision {
    Part part;
    int32_t section;
    int64_t level;
    int64_t beyond;  // if none of the options, then nothing of the section lies lower than this
    size_t options_begin, options_end, option;
    size_t floors, parts, waiting;  // how much there was before
    Sections conflict;
  };
  struct Floor {
    int32_t section;
    int64_t value;
  };

  // ---- the problem ----
  // Only sections that are in no other section's shadow matter: right after some block begins and before the next one ends.
  void cut_time(std::span<const Lifetime> lifetimes) {
    std::vector<int64_t> begins, ends, cuts;
    for (const Lifetime& l : lifetimes) begins.push_back(l.first), ends.push_back(l.last);
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    for (size_t b = 0, e = 0; b < begins.size(); ++b) {
      const bool is_last_before_an_end = b + 1 == begins.size() || begins[b + 1] > ends[e];
      if (!is_last_before_an_end) continue;
      cuts.push_back(begins[b]);
      while (e < ends.size() && b + 1 < begins.size() && ends[e] < begins[b + 1]) ++e;
    }
    sections_.resize(cuts.size());
    const auto index = [&](auto cut) { return static_cast<int32_t>(cut - cuts.begin()); };
    for (size_t i = 0; i < lifetimes.size(); ++i) {
      const Lifetime& l = lifetimes[i];
      const int32_t first = index(std::lower_bound(cuts.begin(), cuts.end(), l.first));
      const int32_t end = index(std::upper_bound(cuts.begin(), cuts.end(), l.last));
      blocks_.push_back({first, end, static_cast<int64_t>(l.bytes), i, kNone, kNone});
    }
    std::stable_sort(blocks_.begin(), blocks_.end(), [](const Block& a, const Block& b) { return a.first < b.first; });
    conflict_ = Sections(sections_.size());
  }

  void reset(int64_t restart) {
    const auto n = static_cast<int32_t>(blocks_.size());
    for (int32_t b = 0; b < n; ++b) {
      block(b).before = b - 1;
      block(b).after = b + 1 < n ? b + 1 : kNone;
    }
    for (Section& s : sections_) {
      s.floor = 0;
      s.weight = 1 + (s.weight - 1) / 4;  // what failed long ago was often the fault of another order
    }
    decisions_.clear();
    options_.clear();
    floors_.clear();
    parts_.clear();
    waiting_ = 0;
    if (n > 0) wait_for({0, static_cast<int32_t>(sections_.size()), 0});
    prefer(restart);
  }

  // By length of life, by size, by both; with more chance in it from round to round, and none in every fourth.
  void prefer(int64_t restart) {
    std::vector<double> key(blocks_.size());
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const auto length = static_cast<double>(blocks_[i].end - blocks_[i].first), bytes = static_cast<double>(blocks_[i].bytes);
      const double by[] = {length, bytes, length * bytes};
      key[i] = by[restart % 3] * random_.between(1, 1 + 0.2 * static_cast<double>(restart / 3 % 4));
    }
    std::vector<size_t> order(blocks_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return key[a] != key[b] ? key[a] > key[b] : blocks_[a].bytes > blocks_[b].bytes; });
    for (size_t i = 0; i < order.size(); ++i) blocks_[order[i]].preference = static_cast<int64_t>(i);
  }

  // ---- the search ----
  Outcome dive(int64_t limit) {
    for (int64_t count = 0; count < limit && steps_ < effort_; ++count) {
      if (!take_part()) return Outcome::Solved;
      if (survey()) {
        decide();
      } else if (!backtrack()) {
        return Outcome::Failed;
      }
    }
    return Outcome::Cut;
  }

  // Takes the next part that waits, cut where no block spans a boundary; false when none waits. Small parts come first: if one of them
  // fails, little was done in vain.
  bool take_part() {
    if (waiting_ == 0) return false;
    const Part whole = parts_[waiting_ - 1];
    waiting_ = whole.next;
    pieces_.clear();
    for (int32_t b = whole.head; b != kNone && block(b).first < whole.end; b = block(b).after) {
      if (pieces_.empty() || block(b).first >= pieces_.back().part.end) pieces_.push_back({{b, block(b).end, 0}, 0});
      pieces_.back().part.end = std::max(pieces_.back().part.end, block(b).end);
      ++pieces_.back().count;
    }
    std::stable_sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) { return a.count > b.count; });
    part_ = pieces_.back().part;
    pieces_.pop_back();
    for (const Piece& p : pieces_) wait_for(p.part);
    return true;
  }
  void wait_for(Part part) {
    part.next = waiting_;
    parts_.push_back(part);
    waiting_ = parts_.size();
  }

  // What is known of every section of the part. False, with conflict_ set, when one of them is too full.
  bool survey() {
    const int32_t first = block(part_.head).first;
    steps_ += part_.end - first;
    for (int32_t s = first; s < part_.end; ++s) {
      Section& section = section_at(s);
      section.level = kNever;
      section.left = 0;
      section.options = 0;
      section.is_valley = true;
    }
    for_each_block(part_, [&](Block& b) {
      b.lowest = 0;
      for (int32_t s = b.first; s < b.end; ++s) b.lowest = std::max(b.lowest, section_at(s).floor);
      for (int32_t s = b.first; s < b.end; ++s) {
        section_at(s).level = std::min(section_at(s).level, b.lowest);
        section_at(s).left += b.bytes;
      }
      steps_ += b.end - b.first;
    });
    for (int32_t s = first; s < part_.end; ++s) {
      const int64_t room = capacity_ - section_at(s).left;
      if (section_at(s).level <= room) continue;
      ++section_at(s).weight;
      conflict_.clear();
      conflict_.add(s);
      for_each_block(part_, [&](Block& b) {
        if (contains(b, s)) blame(b, room + 1, conflict_);
      });
      return false;
    }
    for_each_block(part_, [&](Block& b) {
      bool is_flat = true;
      for (int32_t s = b.first; s < b.end && is_flat; ++s) is_flat = section_at(s).level == b.lowest;
      for (int32_t s = b.first; s < b.end; ++s) {
        if (section_at(s).level != b.lowest) continue;
        ++section_at(s).options;
        section_at(s).is_valley &= is_flat;
      }
    });
    return true;
  }

  // Opens a decision at the valley with the fewest options, those that were often too full first.
  void decide() {
    int32_t best = kNone;
    int64_t best_options = 0, best_slack = 0;
    for (int32_t s = block(part_.head).first; s < part_.end; ++s) {
      const Section& section = section_at(s);
      if (!section.is_valley) continue;
      const int64_t slack = capacity_ - section.level - section.left;
      const int64_t options = section.options + (slack > 0 ? 1 : 0);
      const int64_t here = best == kNone ? 0 : options * section_at(best).weight, there = best_options * section.weight;
      if (best == kNone || here < there || (here == there && slack < best_slack)) best = s, best_options = options, best_slack = slack;
    }

    Decision d;
    d.part = part_;
    d.section = best;
    d.level = section_at(best).level;
    d.floors = floors_.size();
    d.parts = parts_.size();
    d.waiting = waiting_;
    d.conflict = Sections(sections_.size());
    d.options_begin = d.option = options_.size();
    int32_t reach_first = best, reach_end = best + 1;  // of all options together
    int64_t beyond = kNever;
    for (int32_t b = part_.head; b != kNone && block(b).first <= best; b = block(b).after) {
      if (!contains(block(b), best)) continue;
      if (block(b).lowest > d.level) {
        beyond = std::min(beyond, block(b).lowest);
        continue;
      }
      reach_first = std::min(reach_first, block(b).first);
      reach_end = std::max(reach_end, block(b).end);
      if (!has_twin(b, d.options_begin)) options_.push_back(b);
    }
    std::sort(options_.begin() + static_cast<int64_t>(d.options_begin), options_.end(),
              [&](int32_t a, int32_t b) { return block(a).preference < block(b).preference; });
    // If none of the options lies on the level, something that has no offset yet holds them up; else they could be pushed down.
    const int64_t room = capacity_ - section_at(best).left;
    if (d.level < room) {
      for_each_block(part_, [&](const Block& b) {
        if (!contains(b, best) && b.first < reach_end && reach_first < b.end) beyond = std::min(beyond, b.lowest + b.bytes);
      });
      if (beyond <= room) options_.push_back(kNone);
    }
    d.beyond = std::min(beyond, room + 1);
    d.options_end = options_.size();
    decisions_.push_back(std::move(d));
    apply();
  }

  // A block of the same size and life as an option: trying both would be trying the same.
  bool has_twin(int32_t b, size_t options_begin) const {
    return std::any_of(options_.begin() + static_cast<int64_t>(options_begin), options_.end(), [&](int32_t o) {
      return block(o).first == block(b).first && block(o).end == block(b).end && block(o).bytes == block(b).bytes;
    });
  }

  void apply() {
    const Decision& d = decisions_.back();
    const int32_t option = options_[d.option];
    Part rest = d.part;
    if (option == kNone) {
      raise(d.section, d.beyond);
    } else {
      Block& b = block(option);
      b.offset = d.level;
      for (int32_t s = b.first; s < b.end; ++s) raise(s, d.level + b.bytes);
      if (b.before != kNone) block(b.before).after = b.after;
      if (b.after != kNone) block(b.after).before = b.before;
      if (rest.head == option) rest.head = b.after;
    }
    if (rest.head != kNone && block(rest.head).first < rest.end) wait_for(rest);
  }
  void raise(int32_t s, int64_t floor) {
    floors_.push_back({s, section_at(s).floor});
    section_at(s).floor = floor;
  }

  void undo() {
    const Decision& d = decisions_.back();
    for (; floors_.size() > d.floors; floors_.pop_back()) section_at(floors_.back().section).floor = floors_.back().value;
    parts_.resize(d.parts);
    waiting_ = d.waiting;
    const int32_t option = options_[d.option];
    if (option == kNone) return;
    const Block& b = block(option);
    if (b.before != kNone) block(b.before).after = option;
    if (b.after != kNone) block(b.after).before = option;
  }

  // Goes back to the last decision that conflict_ depends on and that has another option; false when there is none.
  bool backtrack() {
    while (!decisions_.empty()) {
      undo();
      Decision& d = decisions_.back();
      const int32_t option = options_[d.option];
      const bool is_to_blame = option == kNone ? conflict_.has(d.section) : conflict_.has_any(block(option).first, block(option).end);
      if (is_to_blame) {
        d.conflict.add(conflict_);
        if (++d.option < d.options_end) {
          apply();
          return true;
        }
        explain(d);
        conflict_ = d.conflict;
      }
      options_.resize(d.options_begin);
      decisions_.pop_back();
    }
    return false;
  }

  // Adds to the decision's conflict why there were no more options than those that failed.
  void explain(Decision& d) {
    int32_t reach_first = d.section, reach_end = d.section + 1;
    d.conflict.add(d.section);
    for_each_block(d.part, [&](Block& b) {
      if (!contains(b, d.section)) return;
      int64_t lowest = 0;
      for (int32_t s = b.first; s < b.end; ++s) lowest = std::max(lowest, section_at(s).floor);
      if (lowest > d.level) return blame(b, d.beyond, d.conflict);
      blame(b, d.level, d.conflict);
      reach_first = std::min(reach_first, b.first);
      reach_end = std::max(reach_end, b.end);
    });
    if (d.beyond == d.level + 1) return;
    for_each_block(d.part, [&](Block& b) {
      if (!contains(b, d.section) && b.first < reach_end && reach_first < b.end) blame(b, d.beyond - b.bytes, d.conflict);
    });
  }

  // Adds one section that keeps the block from lying lower than `level`, unless one is there.
  void blame(const Block& b, int64_t level, Sections& conflict) {
    if (level <= 0) return;
    int32_t witness = kNone;
    for (int32_t s = b.first; s < b.end; ++s) {
      if (section_at(s).floor < level) continue;
      if (conflict.has(s)) return;
      if (witness == kNone) witness = s;
    }
    conflict.add(witness);
  }

  // ---- small things ----
  Block& block(int32_t b) { return blocks_[static_cast<size_t>(b)]; }
  const Block& block(int32_t b) const { return blocks_[static_cast<size_t>(b)]; }
  Section& section_at(int32_t s) { return sections_[static_cast<size_t>(s)]; }
  static bool contains(const Block& b, int32_t s) { return b.first <= s && s < b.end; }
  template <class F> void for_each_block(const Part& part, F&& f) {
    for (int32_t b = part.head; b != kNone && block(b).first < part.end; b = block(b).after) f(block(b));
  }

  struct Piece {
    Part part;
    int64_t count;
  };

  const int64_t capacity_, effort_;
  int64_t steps_ = 0;
  Random random_;
  std::vector<Block> blocks_;
  std::vector<Section> sections_;
  std::vector<Decision> decisions_;
  std::vector<int32_t> options_;  // of all decisions, one after the other
  std::vector<Floor> floors_;     // what raised floors were before
  std::vector<Part> parts_;
  size_t waiting_ = 0;  // 1 + the index in parts_ of the next part; 0: none
  std::vector<Piece> pieces_;
  Part part_{};        // that is looked at
  Sections conflict_;  // why the last one failed
};

}  // namespace

SearchResult search(std::span<const Lifetime> blocks, size_t capacity, int64_t effort) { return Search(blocks, capacity, effort).run(); }

}  // namespace tandem::plan
