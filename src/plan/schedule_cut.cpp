// One moment as a minimum cut, by Dinic's algorithm.
#include "plan/schedule_cut.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace tandem::plan::scheduling {
namespace {

constexpr int64_t kEndless = int64_t{1} << 61;
// The price of keeping what a branch says is gone: more than any time. A branch has at most kMostFixed of them, so that no sum overflows.
constexpr int64_t kForbidden = int64_t{1} << 54;
constexpr int32_t kMostFixed = 64;
constexpr int32_t kSource = 0, kSink = 1;
// Times are counted in so many shares where copies take time too, which then weigh some of the shares against the device's.
constexpr int64_t kShares = 1024;

int64_t ceil_divide(Wide a, Wide b) { return static_cast<int64_t>(a >= 0 ? (a + b - 1) / b : -((-a) / b)); }

}  // namespace

Moments::Moments(const Model& model) : model_(model), readers_(static_cast<size_t>(model.value_count())) {
  Wide copies = 0, bytes = 0;
  for (int32_t v = 0; v < model.value_count(); ++v) {
    const auto k = static_cast<size_t>(v);
    bytes_.push_back(model.on_host[k] || model.maker[k] < 0 ? 0 : model.bytes[k]);
    bytes += bytes_.back();
    can_come_from_host_.push_back(model.fetch[k] >= 0);
    if (model.fetch[k] >= 0) copies += model.copy_time[k];
  }
  int64_t lanes[4] = {0, 0, 0, 0};
  for (int32_t u = 0; u < model.unit_count(); ++u) {
    lanes[static_cast<size_t>(model.lane[static_cast<size_t>(u)])] += model.cost[static_cast<size_t>(u)];
    for (int32_t v : model.inputs[u]) readers_[static_cast<size_t>(v)].push_back(u);
  }
  device_sum_ = lanes[static_cast<size_t>(Lane::Device)];
  bound_ = *std::max_element(lanes, lanes + 4);
  const Wide most = std::max<Wide>(1, std::max<Wide>(copies, model.base_sum)) * kShares;
  while (shift_ < 40 && (most << (shift_ + 1)) < (Wide{1} << 52)) ++shift_;
  most_price_ = static_cast<int64_t>((Wide{1} << 60) / std::max<Wide>(1, bytes));
}

int64_t Moments::bound_of(const Line& line, int64_t price, int64_t room) const {
  const Wide base = ((kShares - host_share_) * Wide{device_sum_} + host_share_ * Wide{beside_}) << shift_;
  return ceil_divide(base + line.paid + Wide{price} * (line.kept - room), Wide{kShares} << shift_);
}

bool Moments::enter(int32_t moment) {
  moment_ = moment;
  const auto values = static_cast<size_t>(model_.value_count()), units = static_cast<size_t>(model_.unit_count());
  std::vector<uint8_t> is_before(units, 0);
  std::vector<int32_t> stack{moment};
  int64_t before = 0, after = 0;
  while (!stack.empty()) {
    const int32_t u = stack.back();
    stack.pop_back();
    for (int32_t v : model_.inputs[u]) {
      const int32_t maker = model_.maker[static_cast<size_t>(v)];
      if (is_before[static_cast<size_t>(maker)]) continue;
      is_before[static_cast<size_t>(maker)] = 1;
      if (model_.lane[static_cast<size_t>(maker)] == Lane::Device) before += model_.cost[static_cast<size_t>(maker)];
      stack.push_back(maker);
    }
  }
  // What is there for nothing: what the unit reads counts in its working set.
  std::vector<uint8_t> is_free(values, 0);
  for (int32_t v : model_.inputs[moment]) is_free[static_cast<size_t>(v)] = 1;
  values_.clear();
  units_.clear();
  is_required_.clear();
  value_node_.assign(values, -1);
  unit_node_.assign(units, -1);
  int32_t node = kSink + 1;
  const auto need = [&](int32_t v, bool is_required) {
    const auto k = static_cast<size_t>(v);
    if (is_free[k] || bytes_[k] == 0 || value_node_[k] >= 0) return;
    value_node_[k] = node++;
    values_.push_back(v);
    is_required_.push_back(is_required);
  };
  std::vector<uint8_t> is_after(units, 0);
  stack.assign(1, moment);
  while (!stack.empty()) {
    const int32_t u = stack.back();
    stack.pop_back();
    for (int32_t v : model_.outputs[u])
      for (int32_t reader : readers_[static_cast<size_t>(v)])
        if (!is_after[static_cast<size_t>(reader)]) {
          is_after[static_cast<size_t>(reader)] = 1;
          stack.push_back(reader);
        }
  }
  for (int32_t u = 0; u < model_.unit_count(); ++u)
    if ((u == moment || is_after[static_cast<size_t>(u)]) && model_.lane[static_cast<size_t>(u)] == Lane::Device)
      after += model_.cost[static_cast<size_t>(u)];
  // What is on the host was copied there before the moment, and the device runs the rest after it; or it is copied back after what ran
  // before.
  beside_ = std::max(before, after);
  again_share_ = after >= before ? kShares : kShares - host_share_;
  for (int32_t u = 0; u < model_.unit_count(); ++u)
    if (is_after[static_cast<size_t>(u)])
      for (int32_t v : model_.inputs[u])
        if (is_before[static_cast<size_t>(model_.maker[static_cast<size_t>(v)])]) need(v, true);
  for (int32_t v = 0; v < model_.value_count(); ++v)
    if (const int32_t maker = model_.maker[static_cast<size_t>(v)];
        maker >= 0 && model_.is_result[static_cast<size_t>(v)] && is_before[static_cast<size_t>(maker)])
      need(v, true);
  // What it takes to make these again.
  for (size_t i = 0; i < values_.size(); ++i) {
    const int32_t maker = model_.maker[static_cast<size_t>(values_[i])];
    if (unit_node_[static_cast<size_t>(maker)] >= 0) continue;
    unit_node_[static_cast<size_t>(maker)] = node++;
    units_.push_back(maker);
    if (!model_.once[static_cast<size_t>(maker)])
      for (int32_t v : model_.inputs[maker]) need(v, false);
  }
  head_.assign(static_cast<size_t>(node), -1);
  level_.resize(head_.size());
  current_.resize(head_.size());
  fixed_.assign(values_.size(), Fixed::Free);
  steps_ += static_cast<int64_t>(units + values) + 4 * node;
  return !values_.empty();
}

void Moments::add_arc(int32_t from, int32_t to, int64_t capacity) {
  for (const auto& [a, b, c] : {std::tuple{from, to, capacity}, std::tuple{to, from, int64_t{0}}}) {
    to_.push_back(b);
    capacity_.push_back(c);
    next_.push_back(head_[static_cast<size_t>(a)]);
    head_[static_cast<size_t>(a)] = static_cast<int32_t>(to_.size()) - 1;
  }
}

// Distances from the source, until the sink is met.
bool Moments::find_levels() {
  std::fill(level_.begin(), level_.end(), -1);
  queue_.assign(1, kSource);
  level_[kSource] = 0;
  for (size_t i = 0; i < queue_.size(); ++i) {
    const int32_t n = queue_[i];
    for (int32_t a = head_[static_cast<size_t>(n)]; a >= 0; a = next_[static_cast<size_t>(a)]) {
      const int32_t m = to_[static_cast<size_t>(a)];
      if (capacity_[static_cast<size_t>(a)] == 0 || level_[static_cast<size_t>(m)] >= 0) continue;
      level_[static_cast<size_t>(m)] = level_[static_cast<size_t>(n)] + 1;
      queue_.push_back(m);
    }
  }
  steps_ += static_cast<int64_t>(to_.size()) / 4;
  return level_[kSink] >= 0;
}

int64_t Moments::maximum_flow() {
  int64_t flow = 0;
  while (find_levels()) {
    current_ = head_;
    path_.clear();
    int32_t n = kSource;
    int64_t walked = 0;
    for (;;) {
      ++walked;
      if (n == kSink) {
        int64_t amount = INT64_MAX;
        for (int32_t a : path_) amount = std::min(amount, capacity_[static_cast<size_t>(a)]);
        flow += amount;
        size_t keep = path_.size();
        for (size_t i = path_.size(); i-- > 0;) {
          const auto a = static_cast<size_t>(path_[i]);
          capacity_[a] -= amount;
          capacity_[a ^ 1] += amount;
          if (capacity_[a] == 0) keep = i;
        }
        walked += static_cast<int64_t>(path_.size());
        n = to_[static_cast<size_t>(path_[keep] ^ 1)];
        path_.resize(keep);
        continue;
      }
      int32_t& a = current_[static_cast<size_t>(n)];
      while (a >= 0 && (capacity_[static_cast<size_t>(a)] == 0 ||
                        level_[static_cast<size_t>(to_[static_cast<size_t>(a)])] != level_[static_cast<size_t>(n)] + 1))
        a = next_[static_cast<size_t>(a)];
      if (a >= 0) {
        path_.push_back(a);
        n = to_[static_cast<size_t>(a)];
        continue;
      }
      if (path_.empty()) break;
      level_[static_cast<size_t>(n)] = -1;
      n = to_[static_cast<size_t>(path_.back() ^ 1)];
      path_.pop_back();
    }
    steps_ += walked / 2;
  }
  return flow;
}

Moments::Line Moments::cut(int64_t price) {
  std::fill(head_.begin(), head_.end(), -1);
  to_.clear();
  next_.clear();
  capacity_.clear();
  const auto copy_price = [&](int32_t v) {
    return can_come_from_host_[static_cast<size_t>(v)] ? (host_share_ * model_.copy_time[static_cast<size_t>(v)]) << shift_ : kEndless;
  };
  for (size_t i = 0; i < values_.size(); ++i) {
    const int32_t v = values_[i];
    if (fixed_[i] == Fixed::Kept) continue;  // there for a price that is paid anyhow
    const int32_t node = value_node_[static_cast<size_t>(v)];
    if (is_required_[i]) add_arc(kSource, node, kEndless);
    const int64_t kept = fixed_[i] == Fixed::Gone ? kForbidden : price * bytes_[static_cast<size_t>(v)];
    add_arc(node, unit_node_[static_cast<size_t>(model_.maker[static_cast<size_t>(v)])], std::min(kept, copy_price(v)));
  }
  for (int32_t u : units_) {
    const auto k = static_cast<size_t>(u);
    const int32_t node = unit_node_[k];
    if (model_.once[k]) {
      add_arc(node, kSink, kEndless);
      continue;
    }
    add_arc(node, kSink, model_.lane[k] == Lane::Device ? (again_share_ * model_.cost[k]) << shift_ : 0);
    for (int32_t v : model_.inputs[u])
      if (const int32_t in = value_node_[static_cast<size_t>(v)]; in >= 0) add_arc(node, in, kEndless);
  }
  maximum_flow();
  Line line;
  line.price = price;
  line.fates.assign(values_.size(), Fate::Again);
  for (size_t i = 0; i < values_.size(); ++i) {
    const int32_t v = values_[i];
    const auto k = static_cast<size_t>(v);
    bool is_kept = fixed_[i] == Fixed::Kept;
    if (!is_kept && level_[static_cast<size_t>(value_node_[k])] >= 0 &&
        level_[static_cast<size_t>(unit_node_[static_cast<size_t>(model_.maker[k])])] < 0) {
      const int64_t keeping = fixed_[i] == Fixed::Gone ? kForbidden : price * bytes_[k], copying = copy_price(v);
      if (copying < keeping) {
        line.paid += copying;
        line.fates[i] = Fate::Host;
      } else if (fixed_[i] == Fixed::Gone) {
        line.paid += kForbidden;
      } else {
        is_kept = true;
      }
    }
    if (!is_kept) continue;
    line.fates[i] = Fate::Kept;
    line.kept += bytes_[k];
  }
  for (int32_t u : units_)
    if (const auto k = static_cast<size_t>(u); level_[static_cast<size_t>(unit_node_[k])] >= 0 && model_.lane[k] == Lane::Device)
      line.paid += Wide{again_share_ * model_.cost[k]} << shift_;
  steps_ += static_cast<int64_t>(values_.size() + units_.size());
  return line;
}

int64_t Moments::best_price(int64_t room, int64_t& price, Line& low, Line& high) {
  low = cut(0);
  int64_t best = bound_of(low, 0, room);
  high.fates.clear();
  if (low.kept <= room) {
    high = low;
    return best;
  }
  const auto raise = [&](const Line& line) { best = std::max(best, bound_of(line, line.price, room)); };
  for (int64_t p = std::clamp<int64_t>(price, 1, most_price_);;) {
    Line line = cut(p);
    raise(line);
    if (line.kept <= room) {
      high = std::move(line);
      break;
    }
    low = std::move(line);
    if (p >= most_price_) return best;  // nothing that is known fits
    p = std::min(most_price_, p < most_price_ / 2 ? p * 2 : most_price_);
  }
  for (int round = 0; round < 60; ++round) {
    const Wide p = (high.paid - low.paid) / (low.kept - high.kept);
    if (p <= low.price || p >= high.price) break;
    Line line = cut(static_cast<int64_t>(p));
    raise(line);
    const auto value = [&](const Line& l) { return l.paid + p * (l.kept - room); };
    const bool is_new = value(line) < std::min(value(low), value(high));
    (line.kept <= room ? high : low) = std::move(line);
    if (!is_new) break;
  }
  price = std::max<int64_t>(1, high.price);
  return best;
}

void Moments::look(const std::vector<int64_t>& memory, int64_t most_steps) {
  std::vector<int32_t> order(static_cast<size_t>(model_.unit_count()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return memory[static_cast<size_t>(a)] > memory[static_cast<size_t>(b)]; });
  std::erase_if(order, [&](int32_t w) { return memory[static_cast<size_t>(w)] <= model_.limit; });
  const int64_t until = steps_ + most_steps;
  host_share_ = 0;
  if (order.empty()) return;
  if (std::find(can_come_from_host_.begin(), can_come_from_host_.end(), 1) != can_come_from_host_.end()) weigh_copies(order[0]);
  for (int32_t w : order) {
    if (steps_ > until) break;
    visit(w);
  }
  if (host_share_ > 0) weigh_copies(best_);
}

// Raises the bound by what a moment says. True if it says more than what was known.
bool Moments::visit(int32_t moment) {
  const int64_t room = model_.limit - working_set(model_, moment);
  if (room < 0 || !enter(moment)) return false;
  if (best_ >= 0) {  // can it be better?
    const Line line = cut(best_price_);
    if (line.kept <= room && bound_of(line, 0, room) <= bound_) return false;
  }
  Line low, high;
  int64_t price = best_price_;
  const int64_t bound = best_price(room, price, low, high);
  if (best_ >= 0 && bound <= bound_) return false;
  bound_ = std::max(bound, bound_);
  best_ = moment;
  best_price_ = price;
  return true;
}

// How much copies should weigh against the device's time: what a moment says is concave in it.
void Moments::weigh_copies(int32_t moment) {
  if (best_ < 0) visit(moment);
  int64_t best_share = host_share_;
  const auto try_share = [&](int64_t share) {
    if (share <= 0 || share >= kShares) return false;
    host_share_ = share;
    const bool is_better = visit(moment);
    if (is_better) best_share = share;
    return is_better;
  };
  if (best_share == 0)
    for (int64_t share = 4; share < kShares; share *= 2) try_share(share);
  for (int64_t step = std::max<int64_t>(1, best_share / 2); step > 0; step /= 2) {
    const int64_t from = best_share;
    if (!try_share(from + step)) try_share(from - step);
  }
  host_share_ = best_share;
}

void Moments::branch(int64_t goal, int64_t most_steps) {
  if (best_ < 0 || bound_ >= goal || !enter(best_)) return;
  const int64_t until = steps_ + most_steps, room = model_.limit - working_set(model_, best_);
  std::vector<Node> open;
  const auto is_later = [](const Node& a, const Node& b) { return a.bound > b.bound; };
  int64_t best = INT64_MAX, closed = INT64_MAX;
  const auto visit = [&](std::vector<Fixed> fixed, int64_t price, int64_t least) {
    fixed_ = std::move(fixed);
    int64_t forced = 0;
    int32_t count = 0;
    for (size_t i = 0; i < fixed_.size(); ++i) {
      if (fixed_[i] == Fixed::Kept) forced += bytes_[static_cast<size_t>(values_[i])];
      count += fixed_[i] == Fixed::Gone;
    }
    if (forced > room) return;
    Line low, high;
    const int64_t bound = std::max(least, best_price(room, price, low, high));
    if (high.fates.empty()) {
      closed = std::min(closed, bound);
      return;
    }
    if (const int64_t paid = bound_of(high, 0, room); paid < best) {
      best = paid;
      best_kept_ = fates(high);
    }
    int32_t on = -1;
    for (size_t i = 0; i < fixed_.size(); ++i)
      if (fixed_[i] == Fixed::Free && (low.fates[i] == Fate::Kept) != (high.fates[i] == Fate::Kept) &&
          (on < 0 || bytes_[static_cast<size_t>(values_[i])] > bytes_[static_cast<size_t>(values_[static_cast<size_t>(on)])]))
        on = static_cast<int32_t>(i);
    if (on < 0 || count >= kMostFixed) {
      closed = std::min(closed, bound);
      return;
    }
    open.push_back({bound, price, fixed_, on});
    std::push_heap(open.begin(), open.end(), is_later);
  };
  visit(std::vector<Fixed>(values_.size(), Fixed::Free), best_price_, bound_);
  while (!open.empty()) {
    const int64_t proved = std::min({open.front().bound, best, closed});
    bound_ = std::max(bound_, proved);
    if (proved >= goal || open.front().bound >= std::min(best, closed) || steps_ > until) return;
    std::pop_heap(open.begin(), open.end(), is_later);
    Node node = std::move(open.back());
    open.pop_back();
    for (Fixed choice : {Fixed::Kept, Fixed::Gone}) {
      node.fixed[static_cast<size_t>(node.branch_on)] = choice;
      visit(node.fixed, node.price, node.bound);
    }
  }
  if (std::min(best, closed) < INT64_MAX) bound_ = std::max(bound_, std::min(best, closed));
}

// What takes nothing stays.
std::vector<Fate> Moments::fates(const Line& line) const {
  std::vector<Fate> all;
  for (int64_t bytes : bytes_) all.push_back(bytes == 0 ? Fate::Kept : Fate::Again);
  for (size_t i = 0; i < values_.size(); ++i) all[static_cast<size_t>(values_[i])] = line.fates[i];
  return all;
}

std::vector<Fate> Moments::keep(int32_t moment, int64_t limit) {
  const int64_t room = limit - working_set(model_, moment);
  if (room < 0 || !enter(moment)) return {};
  Line low, high;
  int64_t price = best_price_;
  best_price(room, price, low, high);
  if (high.fates.empty()) return {};
  return fates(high);
}

}  // namespace tandem::plan::scheduling
