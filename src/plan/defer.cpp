#include "plan/defer.hpp"

#include <algorithm>

namespace tandem::plan {
namespace {

class Deferrer {
 public:
  Deferrer(Units units, std::span<const DeviceFacts> devices)
      : units_(std::move(units)), devices_(devices), last_reader_(units_.blocks.size(), -1), last_writer_(units_.blocks.size(), -1) {
    same_.resize(units_.blocks.size());
    for (size_t b = 0; b < same_.size(); ++b) same_[b] = static_cast<int32_t>(b);
    for (size_t k = 0; k < units_.donations.size(); ++k)  // written over its input
      if (units_.donations[k] >= 0 && units_.output_blocks[k] >= 0)
        same_[static_cast<size_t>(units_.output_blocks[k])] = units_.input_blocks[static_cast<size_t>(units_.donations[k])];
  }

  Units run() {
    std::vector<Unit> sequence = std::move(units_.units);
    units_.units.clear();
    std::vector<int32_t> writers(units_.blocks.size());
    for (const Unit& u : sequence)
      for (const auto* list : {&u.writes, &u.other_carries})
        for (const Access& w : *list) ++writers[static_cast<size_t>(w.block)];
    const auto is_before_the_run = [&](const Unit& u) {
      return u.kind == Kind::Upload && units_.blocks[static_cast<size_t>(u.writes[0].block)].is_prefetched;
    };
    const auto begin = std::ranges::find_if_not(sequence, is_before_the_run);
    std::stable_partition(begin, sequence.end(), [&](const Unit& u) { return brings_state(u, writers); });
    for (Unit& u : sequence) {
      const bool waits = devices_[static_cast<size_t>(u.device)].host_memory && !u.may_fail;
      if (waits) {
        const auto number = static_cast<int32_t>(waiting_.size());
        for (const Access& r : u.reads) last_reader_[at(r)] = number;
        for (const auto* list : {&u.writes, &u.other_carries})
          for (const Access& w : *list) last_writer_[at(w)] = number;
        waiting_.push_back(std::move(u));
        continue;
      }
      int32_t needed = -1;
      for (const Access& r : u.reads) needed = std::max(needed, last_writer_[at(r)]);
      for (const auto* list : {&u.writes, &u.other_carries})
        for (const Access& w : *list) needed = std::max({needed, last_writer_[at(w)], last_reader_[at(w)]});
      give(needed);
      units_.units.push_back(std::move(u));
    }
    give(static_cast<int32_t>(waiting_.size()) - 1);
    return std::move(units_);
  }

 private:
  // Of what is there before the run, and so can come at once.
  bool brings_state(const Unit& u, const std::vector<int32_t>& writers) const {
    if (u.kind != Kind::Download || u.is_again) return false;
    const auto from = static_cast<size_t>(u.reads[0].block), to = static_cast<size_t>(u.writes[0].block);
    return units_.blocks[from].kind == Block::Kind::Input && writers[from] == 0 && units_.blocks[to].kind == Block::Kind::Local &&
           writers[to] == 1;
  }
  size_t at(const Access& a) const { return static_cast<size_t>(same_[static_cast<size_t>(a.block)]); }
  void give(int32_t last) {
    for (; given_ <= last; ++given_) units_.units.push_back(std::move(waiting_[static_cast<size_t>(given_)]));
  }

  Units units_;
  std::span<const DeviceFacts> devices_;
  std::vector<int32_t> same_;                       // by block: the one whose bytes it has
  std::vector<int32_t> last_reader_, last_writer_;  // by block: of those that wait or waited
  std::vector<Unit> waiting_;
  int32_t given_ = 0;
};

}  // namespace

Units host_last(Units units, std::span<const DeviceFacts> devices) {
  const bool is_mixed = std::ranges::any_of(devices, &DeviceFacts::host_memory) && !std::ranges::all_of(devices, &DeviceFacts::host_memory);
  return is_mixed ? Deferrer(std::move(units), devices).run() : units;
}

}  // namespace tandem::plan
