#include "plan/order.hpp"

#include <algorithm>
#include <queue>
#include <tandem/error.hpp>

#include "base/text.hpp"

namespace tandem::plan {
namespace {

// Bytes that count as nothing. The optimizer's scalars must not come last: every update waits for them, and every gradient for its update.
constexpr size_t kScrap = 64;

class Orderer {
 public:
  explicit Orderer(const Units& units)
      : u_(units),
        waits_(units.units.size()),
        behind_(units.units.size()),
        users_(units.blocks.size()),
        readers_(units.blocks.size()),
        is_overwriting_(units.blocks.size()) {
    std::vector<int32_t> writer(u_.blocks.size(), -1);
    for (size_t n = 0; n < u_.units.size(); ++n) {
      const auto number = static_cast<int32_t>(n);
      for (const Access& r : u_.units[n].reads) {
        if (const int32_t w = writer[at(r)]; w >= 0) add_edge(w, number);
        std::vector<int32_t>& users = users_[at(r)];
        if (users.empty() || users.back() != number) users.push_back(number);
        ++readers_[at(r)];
      }
      for (const Access& w : u_.units[n].writes) writer[at(w)] = number;
    }
    for (size_t k = 0; k < u_.donations.size(); ++k) {
      const int32_t input = u_.donations[k], written = u_.output_blocks[k];
      if (input < 0 || written < 0) continue;
      is_overwriting_[static_cast<size_t>(written)] = true;
      const int32_t by = writer[static_cast<size_t>(written)];
      go_before(users_[static_cast<size_t>(u_.input_blocks[static_cast<size_t>(input)])], by);
      overwriters_.push_back(by);
    }
    std::vector<int32_t> failing;
    for (size_t n = 0; n < u_.units.size(); ++n)
      if (u_.units[n].may_fail) failing.push_back(static_cast<int32_t>(n));
    if (!failing.empty())
      for (const int32_t by : overwriters_) go_before(failing, by);
  }

  std::vector<int32_t> run() {
    std::vector<int32_t> result;
    // Units that only free memory, and all others; the earliest first.
    using Queue = std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>>;
    Queue freeing, others;
    const auto ready = [&](int32_t n) { (frees(n) ? freeing : others).push(n); };
    for (size_t n = 0; n < u_.units.size(); ++n)
      if (waits_[n] == 0) ready(static_cast<int32_t>(n));
    while (!freeing.empty() || !others.empty()) {
      Queue& q = freeing.empty() ? others : freeing;
      const int32_t n = q.top();
      q.pop();
      result.push_back(n);
      for (const Access& r : unit(n).reads) --readers_[at(r)];
      for (int32_t m : behind_[static_cast<size_t>(n)])
        if (--waits_[static_cast<size_t>(m)] == 0) ready(m);
    }
    TANDEM_CHECK(result.size() == u_.units.size(), "only ", result.size(), " of ", u_.units.size(), " units could be ordered");
    return result;
  }

 private:
  static size_t at(const Access& a) { return static_cast<size_t>(a.block); }
  const Unit& unit(int32_t n) const { return u_.units[static_cast<size_t>(n)]; }
  const Block& block(const Access& a) const { return u_.blocks[at(a)]; }

  void add_edge(int32_t from, int32_t to) {
    behind_[static_cast<size_t>(from)].push_back(to);
    ++waits_[static_cast<size_t>(to)];
  }

  // Each of them comes before the writer, unless it waits for the writer itself.
  void go_before(const std::vector<int32_t>& units, int32_t writer) {
    const std::vector<bool> later = reached_from(writer);
    for (const int32_t n : units)
      if (!later[static_cast<size_t>(n)]) add_edge(n, writer);
  }
  std::vector<bool> reached_from(int32_t from) const {
    std::vector<bool> seen(u_.units.size());
    std::vector<int32_t> stack{from};
    seen[static_cast<size_t>(from)] = true;
    while (!stack.empty()) {
      const int32_t n = stack.back();
      stack.pop_back();
      for (const int32_t m : behind_[static_cast<size_t>(n)])
        if (!seen[static_cast<size_t>(m)]) {
          seen[static_cast<size_t>(m)] = true;
          stack.push_back(m);
        }
    }
    return seen;
  }

  bool frees(int32_t n) const {
    const Unit& u = unit(n);
    if (u.reads.empty()) return false;
    size_t taken = 0, given = 0;
    for (const Access& w : u.writes)
      if (!is_overwriting_[at(w)]) taken += w.bytes;
    for (size_t i = 0; i < u.reads.size(); ++i) {
      const Access& r = u.reads[i];
      const auto same = [&](const Access& o) { return o.block == r.block; };
      const bool is_first = std::none_of(u.reads.begin(), u.reads.begin() + static_cast<std::ptrdiff_t>(i), same);
      if (block(r).kind != Block::Kind::Local || !is_first) continue;
      if (readers_[at(r)] == std::ranges::count_if(u.reads, same)) given += block(r).bytes;
    }
    return given + kScrap >= taken;
  }

  const Units& u_;
  std::vector<int32_t> waits_;  // by unit: how many it waits for
  std::vector<std::vector<int32_t>> behind_;
  std::vector<std::vector<int32_t>> users_;  // by block
  std::vector<int64_t> readers_;             // by block: that have not run
  std::vector<bool> is_overwriting_;         // by block: its writer takes no memory for it
  std::vector<int32_t> overwriters_;
};

}  // namespace

std::vector<int32_t> order(const Units& units) { return Orderer(units).run(); }

}  // namespace tandem::plan
