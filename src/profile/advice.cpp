#include "profile/advice.hpp"

#include <cmath>
#include <map>

#include "base/text.hpp"
#include "profile/chart.hpp"

namespace tandem::profile {
namespace {

std::string time(double seconds) { return amount(seconds, Unit::Seconds); }
std::string share(double s) { return amount(s, Unit::Share); }
std::string size(double bytes) { return amount(bytes, Unit::Bytes); }

// "matmul float32[32,10] (model.py:7)"
std::string named(const Task& t) { return t.where.empty() ? t.label : cat(t.label, " (", t.where, ")"); }
std::string times_text(int64_t n) { return n == 1 ? "once" : cat(n, " times"); }

class Checker {
 public:
  Checker(const Summary& s, const Thresholds& t) : s_(s), limits_(t), all_(s.steady().seconds()) {}

  std::vector<Check> all() {
    std::vector<Check> checks{pipeline(), cpu_holds_up(), launch_bound(), transferred_again(), placed_badly()};
    for (Check& c : checks) std::ranges::stable_sort(c.advice, std::greater{}, &Advice::seconds);
    return checks;
  }

 private:
  double part(double seconds) const { return all_ > 0 ? seconds / all_ : 0; }
  bool on_host(const std::string& device) const {
    const DeviceNote* d = s_.recording().device(device);
    return d ? d->is_host : std::ranges::none_of(s_.streams(), [&](const Track& l) { return l.device == device; });
  }
  bool launched_by_host(const Record& r) const { return r.kind == Kind::Launch && on_host(s_.track(r).device); }
  std::vector<Track> compute_streams() const {
    std::vector<Track> tracks;
    for (const Track& l : s_.streams())
      if (l.name == "compute") tracks.push_back(l);
    return tracks;
  }
  // The longest piece of what is meant, for the check's row.
  static void note(Check& c, double& most, double value, std::string text) {
    if (value < most) return;
    most = value;
    c.measured = std::move(text);
  }

  Check pipeline() {
    Check c{.name = "the input pipeline keeps up",
            .measured = "no batch was asked for",
            .threshold = cat(share(limits_.pipeline), " of the time")};
    // A device that still has work does not wait for the batch that the program waits for.
    Intervals waiting = s_.times([](const Record& r) { return r.kind == Kind::Pipeline; }) & s_.steady();
    for (const Track& track : compute_streams()) waiting = waiting - s_.busy(track);
    const double seconds = waiting.seconds();
    int64_t batches = 0;
    for (const Sum& w : s_.waits())
      if (w.kind == Kind::Pipeline) batches += w.count;
    if (batches == 0) return c;
    c.measured = cat("waiting for batches takes ", share(part(seconds)), " of the time");
    if (part(seconds) < limits_.pipeline) return c;
    const auto n = static_cast<int64_t>(s_.steps().size());
    c.advice.push_back(
        {"The input pipeline is too slow",
         cat("Steps wait for the next batch, and no device has anything else to do, ", share(part(seconds)),
             " of the time: ", time(seconds), " of ", time(all_),
             n > 0 ? cat(", about ", time(seconds / static_cast<double>(n)), " for each of ", n, " steps") : "",
             ". More of it could happen while a step computes: prefetch(tf.data.AUTOTUNE) at its end, map(…, num_parallel_calls="
             "tf.data.AUTOTUNE), cache() behind what is the same in each epoch. What takes longest in it, the iterator's "
             "explain() says."),
         seconds});
    return c;
  }

  Check cpu_holds_up() {
    Check c{.name = "ops on the CPU do not hold up a device",
            .measured = "no device waits for the CPU",
            .threshold = cat(share(limits_.cpu_holds_up), " of the time for one op")};
    double most = 0;
    for (const Track& track : compute_streams()) {
      const Intervals idle = s_.steady() - s_.busy(track);
      std::map<uint32_t, std::pair<Intervals, int64_t>> by_task;
      for (const Record& r : s_.recording().records)
        if (launched_by_host(r) && idle.overlaps(r.begin, r.end)) {
          by_task[r.task].first.add(r.begin, r.end);
          ++by_task[r.task].second;
        }
      for (const auto& [number, found] : by_task) {
        const double seconds = (found.first & idle).seconds();
        const Task& t = s_.task(number);
        note(c, most, seconds,
             cat(track.device, " has nothing to do while ", named(t), " runs on the CPU: ", share(part(seconds)), " of the time"));
        if (part(seconds) < limits_.cpu_holds_up) continue;
        c.advice.push_back(
            {cat(t.label, " on the CPU holds up ", track.device),
             cat(named(t), " ran ", times_text(found.second), " on the CPU while ", track.device, " had nothing to do, together ",
                 time(seconds), ", ", share(part(seconds)), " of the time. Where ", track.device,
                 " can do it, tf.device puts it there; where it cannot, do it in the input pipeline or less often."),
             seconds});
      }
    }
    return c;
  }

  // Time in which a stream had nothing to do since nobody had given it work yet, although nothing that was recorded held up who gives it;
  // and what launches cost that are no longer than their overhead.
  Check launch_bound() {
    constexpr Time kMostOverhead = 20'000;  // between two launches that were both there
    Check c{.name = "launches are large enough for the device",
            .measured = "no device has streams",
            .threshold = cat(share(limits_.launch_bound), " of the time")};
    double most = -1;
    const Intervals held_up = s_.times([&](const Record& r) {
      return r.kind == Kind::Pipeline || r.kind == Kind::Callback || r.kind == Kind::Compile || launched_by_host(r);
    });
    for (const Track& track : compute_streams()) {
      const DeviceNote* note_of = s_.recording().device(track.device);
      const double overhead = note_of ? note_of->launch_seconds : 0;
      const Intervals waits = s_.times([&](const Record& r) { return r.kind == Kind::StreamWait && s_.track(r) == track; });
      double launch_seconds = 0, short_seconds = 0;
      int64_t count = 0;
      Time before = 0;
      Intervals gaps;
      for (const Record& r : s_.recording().records) {
        if (!is_work(r.kind) || !(s_.track(r) == track)) continue;
        if (before != 0) gaps.add(before, r.given > before ? r.begin : std::min(r.begin, before + kMostOverhead));
        before = std::max(before, r.end);
        if (r.kind != Kind::Launch || !s_.steady().overlaps(r.begin, r.end)) continue;
        ++count;
        launch_seconds += r.seconds();
        short_seconds += std::min(r.seconds(), overhead);
      }
      if (count < 2) continue;
      const double idle = ((gaps & s_.steady()) - s_.busy(track) - waits - held_up).seconds(), seconds = idle + short_seconds;
      const double mean = launch_seconds / static_cast<double>(count);
      note(c, most, seconds,
           cat(track.device, ": ", share(part(seconds)), " of the time; ", count, " launches of ", time(mean), " on average"));
      if (part(seconds) < limits_.launch_bound) continue;
      const auto steps = static_cast<double>(std::max<size_t>(1, s_.steps().size()));
      c.advice.push_back(
          {cat("The batch is too small for ", track.device),
           cat(share(part(seconds)), " of the time (", time(seconds), " of ", time(all_), ") goes into launching: ", track.device,
               " waits for its next launch, since one takes only ", time(mean), " on average and the host gives ",
               amount(std::round(10 * static_cast<double>(count) / steps) / 10, Unit::Number), " a step",
               overhead > 0 ? cat(", each with an overhead of ", time(overhead)) : "",
               ". A larger batch gives each launch more to do; a compiled function (tf.function, jit_compile) has fewer of them."),
           seconds});
    }
    return c;
  }

  Check transferred_again() {
    Check c{.name = "each value crosses once",
            .measured = "no bytes crossed again",
            .threshold = cat(limits_.transferred_times, " times again, and ", share(limits_.transferred), " of the time")};
    double most = 0;
    for (const Sum& t : s_.transfers()) {
      if (t.again == 0) continue;
      const Task& what = s_.task(t.task);
      note(c, most, t.again_seconds, cat(named(what), " ", times_text(t.again), " again: ", share(part(t.again_seconds)), " of the time"));
      if (t.again < limits_.transferred_times || part(t.again_seconds) < limits_.transferred) continue;
      const std::string for_whom = t.partner == kNoTask ? "" : cat(" for ", named(s_.task(t.partner)));
      const bool is_state = t.source == Source::State;
      c.advice.push_back(
          {cat(what.label, " crosses again and again"),
           cat(is_state ? "State that lives in the host's memory" : "The same bytes", " crossed ", times_text(t.count), " to ", t.device,
               for_whom, ", ", times_text(t.again), " more than needed: ", size(t.again_bytes), " in ", time(t.again_seconds), ", ",
               share(part(t.again_seconds)), " of the time on the link.",
               is_state ? " It stays there because the device's memory is too small for it, or because it was made on the CPU: a higher "
                          "limit, or "
                          "tf.device where the variable is made."
                        : " Make it a variable on the device, or put it there once before the loop (tf.device, prefetch_to_device)."),
           t.again_seconds});
    }
    return c;
  }

  // What a task would take on a device: by its cost and the device's speed, which is what its driver says or the best that it did here.
  std::optional<double> would_take(const Task& t, const std::string& device) const {
    for (const Sum& l : s_.launches())
      if (l.device == device && l.kind == Kind::Launch && s_.task(l.task).label == t.label) return l.seconds / static_cast<double>(l.count);
    if (t.flops <= 0 && t.bytes <= 0) return {};
    double flops = 0, bytes = 0, overhead = 0;
    if (const DeviceNote* d = s_.recording().device(device))
      flops = d->flops_per_second, bytes = d->bytes_per_second, overhead = d->launch_seconds;
    const bool flops_known = flops > 0, bytes_known = bytes > 0;
    for (const Sum& l : s_.launches()) {
      if (l.device != device) continue;
      if (!flops_known) flops = std::max(flops, l.flops_per_second());
      if (!bytes_known) bytes = std::max(bytes, l.bytes_per_second());
    }
    if (t.bytes > 0 && bytes <= 0) return {};
    if (t.flops > 0 && flops <= 0) return {};
    return std::max(t.flops > 0 ? t.flops / flops : 0, t.bytes > 0 ? t.bytes / bytes : 0) + overhead;
  }

  Check placed_badly() {
    Check c{.name = "ops are where their values are",
            .measured = "no op has copies of its own each way",
            .threshold = cat("copies take ", share(limits_.misplaced), " of the time, and op and copies ", limits_.misplaced_gain,
                             " times what the op takes elsewhere")};
    struct Copies {
      double seconds = 0, bytes = 0;
      int64_t count = 0;
      bool up = false, down = false;
      std::string device;
    };
    std::map<uint32_t, Copies> copies;
    for (const Sum& t : s_.transfers()) {
      if (t.partner == kNoTask) continue;
      Copies& sum = copies[t.partner];
      sum.seconds += t.seconds;
      sum.bytes += t.bytes;
      sum.count += t.count;
      sum.device = t.device;
      (t.kind == Kind::Upload ? sum.up : sum.down) = true;
    }
    double most = 0;
    for (const Sum& op : s_.launches()) {
      const auto found = copies.find(op.task);
      if (op.kind != Kind::Launch || found == copies.end() || !found->second.up || !found->second.down) continue;
      const Copies& its = found->second;
      const bool is_on_host = on_host(op.device);
      const std::string elsewhere = is_on_host ? its.device : host_device();
      if (elsewhere.empty()) continue;
      const Task& t = s_.task(op.task);
      note(c, most, its.seconds, cat("copies of ", named(t), " take ", share(part(its.seconds)), " of the time"));
      if (part(its.seconds) < limits_.misplaced) continue;
      const std::optional<double> once = would_take(t, elsewhere);
      if (!once) continue;
      const double there = *once * static_cast<double>(op.count), here = op.seconds + its.seconds;
      if (here < limits_.misplaced_gain * there) continue;
      c.advice.push_back({cat(t.label, " is placed badly"),
                          cat(named(t), " ran ", times_text(op.count), " on ", op.device, " in ", time(op.seconds), ", and ", its.count,
                              " copies of its values (", size(its.bytes), ") took ", time(its.seconds), ". On ", elsewhere,
                              ", where its neighbours are, it would take about ", time(there), " without a copy",
                              is_on_host ? cat(", if ", elsewhere, " can do it") : "", ": with tf.device('", elsewhere, "')."),
                          here - there});
    }
    return c;
  }

  std::string host_device() const {
    for (const DeviceNote& d : s_.recording().devices)
      if (d.is_host) return d.name;
    return "";
  }

  const Summary& s_;
  const Thresholds limits_;
  const double all_;
};

}  // namespace

std::vector<Check> check(const Summary& summary, const Thresholds& thresholds) { return Checker(summary, thresholds).all(); }

}  // namespace tandem::profile
