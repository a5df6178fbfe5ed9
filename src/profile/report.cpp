#include "profile/report.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/file.hpp"
#include "base/text.hpp"
#include "profile/advice.hpp"
#include "profile/chart.hpp"
#include "profile/page.hpp"
#include "profile/summary.hpp"
#include "profile/trace.hpp"

namespace tandem::profile {
namespace {

constexpr size_t kMostBlocks = 5000;  // of the timeline: more is slow to look at, and all of it is in the trace
constexpr size_t kSteps = 4;          // that the timeline shows
constexpr int kBins = 160;            // of the curves over the whole time

std::string time(double seconds) { return amount(seconds, Unit::Seconds); }
std::string count(int64_t n) { return amount(static_cast<double>(n), Unit::Number); }
std::string number(double share) { return cat(share); }

struct Colour {
  Kind kind;
  const char* name;
  int colour;
};
constexpr Colour kColoursOfKinds[] = {
    {Kind::Launch, "kernel", 0},     {Kind::Upload, "upload", 1},      {Kind::Download, "download", 2}, {Kind::Copy, "copy, fill", 5},
    {Kind::Pipeline, "pipeline", 4}, {Kind::Callback, "callback", 3},  {Kind::Compile, "compile", 7},   {Kind::Run, "gives work", 6},
    {Kind::Annotation, "named", 7},  {Kind::HostWait, "waits", kGrey},
};
int colour_of(Kind k) {
  if (k == Kind::Fill) k = Kind::Copy;
  for (const Colour& c : kColoursOfKinds)
    if (c.kind == k) return c.colour;
  return kGrey;
}

class Report {
 public:
  Report(const Recording& r, std::string_view title) : r_(r), s_(r), page_(std::string(title), subtitle(r)) {}

  std::string html() {
    figures();
    advice();
    timeline();
    over_time();
    memory();
    launches();
    transfers();
    waits();
    about();
    return page_.html();
  }

 private:
  static std::string subtitle(const Recording& r) {
    std::string text;
    for (const DeviceNote& d : r.devices)
      text += cat(text.empty() ? "" : "\n", d.name, d.description.empty() ? "" : cat(": ", d.description));
    return text;
  }
  double seconds(Time at) const { return 1e-9 * static_cast<double>(at - r_.begin); }

  void figures() {
    std::vector<Figure> all;
    const double steady = s_.steady().seconds();
    all.push_back({time(r_.seconds()), "recorded", steady < 0.95 * r_.seconds() ? cat(time(steady), " looked at") : ""});
    if (!s_.steps().empty()) {
      const double median = s_.median_step_seconds();
      all.push_back(
          {median > 0 ? time(median) : "-", "a step", cat("median of ", count(static_cast<int64_t>(s_.steps().size())), " steps")});
    }
    for (const std::string& device : s_.devices()) {
      Intervals busy;
      for (const Track& t : r_.tracks)
        if (t.device == device && t.name != "upload" && t.name != "download") busy = busy | s_.busy(t);
      if (steady > 0)
        all.push_back({amount((busy & s_.steady()).seconds() / steady, Unit::Share), cat(device, " computes"), "of the time"});
    }
    double up = 0, down = 0;
    for (const Sum& t : s_.transfers()) (t.kind == Kind::Upload ? up : down) += t.bytes;
    if (up + down > 0)
      all.push_back(
          {amount(up + down, Unit::Bytes), "crossed the link", cat(amount(up, Unit::Bytes), " up, ", amount(down, Unit::Bytes), " down")});
    for (size_t m = 0; m < r_.memories.size(); ++m) {
      uint64_t most = 0;
      for (const Sample& s : r_.samples)
        if (s.memory == m) most = std::max(most, s.bytes);
      const Memory& memory = r_.memories[m];
      if (memory.name == "memory" && most > 0)
        all.push_back({amount(static_cast<double>(most), Unit::Bytes), cat("most on ", memory.device),
                       memory.limit_bytes ? cat("of ", amount(static_cast<double>(memory.limit_bytes), Unit::Bytes)) : ""});
    }
    page_.figures(all);
    if (r_.lost_records > 0)
      page_.card(Tone::Warning, "Not all of it is here",
                 cat("There was room for the newest ", r_.records.size(), " events; ", r_.lost_records,
                     " older ones were left out, and no figure below has them. Profile a shorter part, with tf.profiler.experimental or "
                     "profile_batch."));
  }

  void advice() {
    page_.heading("Advice");
    const std::vector<Check> checks = check(s_);
    Table table{.columns = {{"looked at"}, {"measured"}, {"advice from", Align::Left, "the threshold of the check"}, {"", Align::Code}},
                .rows = {}};
    bool any = false;
    for (const Check& c : checks) {
      for (const Advice& a : c.advice) page_.card(Tone::Warning, a.title, a.text);
      any |= !c.advice.empty();
      table.rows.push_back({c.name, c.measured, c.threshold, c.advice.empty() ? "fine" : "see above"});
    }
    if (!any) page_.card(Tone::Good, "Nothing stands out", "None of the checks below found something that costs more than its threshold.");
    page_.table(table);
  }

  // A few steps in the middle, or as much of it as can be drawn.
  std::pair<Time, Time> window() const {
    std::vector<const Summary::StepTime*> steady;
    for (const Summary::StepTime& s : s_.steps())
      if (s.is_steady) steady.push_back(&s);
    Time from = r_.begin, to = r_.end;
    if (!steady.empty()) {
      const size_t n = std::min(kSteps, steady.size()), first = (steady.size() - n) / 2;
      from = steady[first]->begin, to = steady[first + n - 1]->done;
      const Time margin = (to - from) / 40;
      from -= margin, to += margin;
    } else if (!s_.steady().all().empty()) {
      from = s_.steady().all().front().first, to = s_.steady().all().back().second;
    }
    size_t blocks = 0;
    for (const Record& r : r_.records) {
      if (r.end < from || r.begin > to || !is_drawn(r)) continue;
      if (++blocks > kMostBlocks) return {from, r.begin};
    }
    return {from, to};
  }
  static bool is_drawn(const Record& r) { return r.kind != Kind::Step; }

  std::string title_of(const Record& r) const {
    const Task& t = s_.task(r.task);
    std::string text = cat(name(r.kind), ", ", time(r.seconds()), " from ", time(seconds(r.begin)));
    if (!t.kernel.empty()) text += cat("\nkernel ", t.kernel);
    if (!t.where.empty()) text += cat("\n", t.where);
    if (r.kind == Kind::Launch && r.end > r.begin) {
      if (t.flops > 0) text += cat("\n", amount(t.flops / r.seconds(), Unit::FlopsPerSecond));
      if (t.bytes > 0) text += cat("\n", amount(t.bytes / r.seconds(), Unit::BytesPerSecond));
    }
    if (r.bytes > 0) {
      text += cat("\n", amount(static_cast<double>(r.bytes), Unit::Bytes));
      if (r.end > r.begin) text += cat(", ", amount(static_cast<double>(r.bytes) / r.seconds(), Unit::BytesPerSecond));
    }
    if (r.partner != kNoTask) text += cat("\nfor ", s_.task(r.partner).label);
    if (r.given < r.begin) text += cat("\ngiven ", time(1e-9 * static_cast<double>(r.begin - r.given)), " before");
    return text;
  }

  void timeline() {
    page_.heading("Timeline");
    const auto [from, to] = window();
    Timeline drawing{.lanes = {}, .begin = seconds(from), .end = seconds(to), .width = 1000};
    std::vector<bool> used(r_.tracks.size());
    std::vector<Lane> lanes(r_.tracks.size());
    std::map<Kind, bool> kinds;
    for (const Record& r : r_.records) {
      if (r.end < from || r.begin > to) continue;
      if (!is_drawn(r)) continue;
      kinds[r.kind == Kind::Fill ? Kind::Copy : r.kind == Kind::StreamWait ? Kind::HostWait : r.kind] = true;
      used[r.track] = true;
      lanes[r.track].blocks.push_back({seconds(r.begin), seconds(r.end), label_of(r, s_.task(r.task)), title_of(r), colour_of(r.kind)});
    }
    for (const Summary::StepTime& s : s_.steps())
      if (s.begin >= from && s.begin <= to) drawing.markers.push_back({seconds(s.begin), cat("step ", s.record->mark), kGrey});
    // Devices with streams first, the host last.
    std::vector<std::string> order = s_.devices();
    order.emplace_back(kHost);
    for (const std::string& device : order)
      for (size_t i = 0; i < lanes.size(); ++i) {
        if (!used[i] || r_.tracks[i].device != device) continue;
        lanes[i].group = device;
        lanes[i].name = r_.tracks[i].name;
        drawing.lanes.push_back(std::move(lanes[i]));
      }
    for (const Colour& c : kColoursOfKinds)
      if (kinds.contains(c.kind)) drawing.legend.emplace_back(c.name, c.colour);
    page_.paragraph(
        cat(s_.steps().empty() ? "From " : "Some steps, from ", time(seconds(from)), " to ", time(seconds(to)),
            " of the profile. The wheel goes nearer, dragging goes along, a double click shows all of it; a block says more when the "
            "pointer rests on it."));
    page_.svg(svg(drawing));
  }

  void over_time() {
    if (r_.end <= r_.begin) return;
    page_.heading("Over the whole time");
    const double bin = static_cast<double>(r_.end - r_.begin) / kBins;
    Chart busy{.x = {.name = "time", .unit = Unit::Seconds, .from = 0.0, .to = seconds(r_.end)},
               .y = {.name = "busy", .unit = Unit::Share, .from = 0.0, .to = 1.0},
               .series = {}};
    int colour = 0;
    const auto add = [&](const std::string& name, const Intervals& times) {
      if (times.all().empty()) return;
      std::vector<double> shares(kBins + 1);
      for (const auto& [b, e] : times.all())
        for (int i = std::max(0, static_cast<int>(static_cast<double>(b - r_.begin) / bin)); i < kBins; ++i) {
          const double from = static_cast<double>(r_.begin) + i * bin;
          const double in = std::min(static_cast<double>(e), from + bin) - std::max(static_cast<double>(b), from);
          if (in <= 0) break;
          shares[static_cast<size_t>(i)] += in / bin;
        }
      Series s{.name = name, .points = {}, .style = Style::Step, .colour = colour++};
      for (int i = 0; i <= kBins; ++i) s.points.emplace_back(1e-9 * i * bin, shares[static_cast<size_t>(i == kBins ? kBins - 1 : i)]);
      busy.series.push_back(std::move(s));
    };
    for (const Track& t : s_.streams()) add(cat(t.device, " ", t.name), s_.busy(t));
    for (const std::string& device : s_.devices())
      if (std::ranges::none_of(s_.streams(), [&](const Track& t) { return t.device == device; }))
        add(device, s_.times([&](const Record& r) { return is_work(r.kind) && s_.track(r).device == device; }));
    for (const Epoch& e : r_.epochs) busy.upright.push_back({seconds(e.at), cat("epoch ", e.number), kGrey});
    page_.svg(svg(busy));
    if (s_.steps().size() < 2) return;
    Chart steps{.x = {.name = "step"},
                .y = {.name = "a step", .unit = Unit::Seconds},
                .series = {{.name = "", .points = {}, .style = Style::Line}},
                .height = 180};
    double longest = 0;
    for (const Summary::StepTime& s : s_.steps())
      if (s.is_steady) longest = std::max(longest, s.seconds());
    double at = 0;
    for (const Summary::StepTime& s : s_.steps()) steps.series[0].points.emplace_back(at++, s.seconds());
    if (longest > 0) steps.y.log = s_.steps().front().seconds() > 20 * longest;
    page_.svg(svg(steps));
  }

  void memory() {
    page_.heading("Memory");
    Chart chart{.x = {.name = "time", .unit = Unit::Seconds, .from = 0.0, .to = std::max(seconds(r_.end), 1e-9)},
                .y = {.name = "in use", .unit = Unit::Bytes},
                .series = {}};
    for (size_t m = 0; m < r_.memories.size(); ++m) {
      const Memory& memory = r_.memories[m];
      Series s{.name = memory.name == "memory" ? memory.device : cat(memory.device, " ", memory.name),
               .points = {},
               .style = Style::Step,
               .colour = static_cast<int>(m)};
      double most = 0;
      for (const Sample& sample : r_.samples)
        if (sample.memory == m) {
          s.points.emplace_back(seconds(sample.at), static_cast<double>(sample.bytes));
          most = std::max(most, static_cast<double>(sample.bytes));
        }
      if (s.points.empty() || most == 0) continue;
      s.style = memory.name == "memory" ? Style::Area : Style::Step;
      s.points.emplace_back(seconds(r_.end), s.points.back().second);
      // A limit that is far away would press the curve flat.
      const auto limit = static_cast<double>(memory.limit_bytes);
      if (limit > 0 && most > limit / 8) chart.across.push_back({limit, cat("limit of ", memory.device)});
      chart.series.push_back(std::move(s));
    }
    if (chart.series.empty()) return page_.paragraph("No memory was used while it was recorded.");
    page_.paragraph("What each device's account counts, at the beginning and at the end of each run of a plan.");
    page_.svg(svg(chart));
  }

  void launches() {
    page_.heading("Kernels by time");
    double all = 0;
    for (const Sum& s : s_.launches()) all += s.seconds;
    Table table{.columns = {{"share", Align::Bar, "of the time in all kernels"},
                            {"time", Align::Right},
                            {"times", Align::Right},
                            {"each", Align::Right, "on average"},
                            {"GFLOP/s", Align::Right, "arithmetic by the cost model, over the measured time"},
                            {"GB/s", Align::Right, "operands that are read and written once, over the measured time"},
                            {"device"},
                            {"op", Align::Code},
                            {"kernel", Align::Code},
                            {"line", Align::Code}},
                .rows = {}};
    for (const Sum& s : s_.launches()) {
      const Task& t = s_.task(s.task);
      const std::string label = s.task == kNoTask ? name(s.kind) : t.label;
      table.rows.push_back({number(all > 0 ? s.seconds / all : 0), time(s.seconds), count(s.count),
                            time(s.seconds / static_cast<double>(s.count)),
                            s.flops > 0 ? amount(s.flops_per_second() / 1e9, Unit::Number) : "-",
                            s.bytes > 0 ? amount(s.bytes_per_second() / 1e9, Unit::Number) : "-", s.device, label, t.kernel, t.where});
    }
    page_.table(table);
  }

  static const char* source_text(Source s) {
    switch (s) {
      case Source::Input: return "given by the program";
      case Source::State: return "state";
      case Source::Constant: return "constant";
      case Source::Unknown: break;
    }
    return "";
  }

  void transfers() {
    page_.heading("Transfers");
    if (!s_.transfers().empty()) {
      Table sums{.columns = {{"device"},
                             {"direction"},
                             {"bytes", Align::Right},
                             {"times", Align::Right},
                             {"time", Align::Right},
                             {"rate", Align::Right},
                             {"hidden", Align::Right, "how much of it passed while the device computed"}},
                 .rows = {}};
      for (const Track& t : s_.streams())
        for (const Kind kind : {Kind::Upload, Kind::Download}) {
          double bytes = 0, seconds = 0;
          int64_t n = 0;
          Intervals when;
          for (const Record& r : r_.records) {
            if (r.kind != kind || !(s_.track(r) == t)) continue;
            bytes += static_cast<double>(r.bytes), seconds += r.seconds(), ++n;
            when.add(r.begin, r.end);
          }
          if (n == 0) continue;
          const double hidden = (when & s_.times([&](const Record& r) {
                                  return is_work(r.kind) && !is_transfer(r.kind) && s_.track(r).device == t.device;
                                })).seconds();
          sums.rows.push_back({t.device, cat(name(kind), t.name == name(kind) ? "" : cat(" on the ", t.name, " stream")),
                               amount(bytes, Unit::Bytes), count(n), time(seconds), amount(bytes / seconds, Unit::BytesPerSecond),
                               when.seconds() > 0 ? amount(hidden / when.seconds(), Unit::Share) : "-"});
        }
      page_.table(sums);
    }
    Table table{.columns = {{"time", Align::Right},
                            {"times", Align::Right},
                            {"again", Align::Right, "the same bytes had crossed before, or it is state that lives on the host"},
                            {"bytes", Align::Right, "of one"},
                            {"rate", Align::Right},
                            {"device"},
                            {"what", Align::Code},
                            {"from"},
                            {"for", Align::Code},
                            {"line", Align::Code}},
                .rows = {},
                .when_empty = "nothing crossed a link"};
    for (const Sum& t : s_.transfers()) {
      const Task& what = s_.task(t.task);
      table.rows.push_back({time(t.seconds), count(t.count), t.again ? count(t.again) : "",
                            amount(t.bytes / static_cast<double>(t.count), Unit::Bytes), amount(t.bytes_per_second(), Unit::BytesPerSecond),
                            t.device, t.task == kNoTask ? name(t.kind) : what.label, source_text(t.source),
                            t.partner == kNoTask ? "" : s_.task(t.partner).label, what.where});
    }
    page_.table(table, 12);
  }

  void waits() {
    page_.heading("Waiting");
    const double all = s_.steady().seconds();
    Table table{.columns = {{"share", Align::Bar, "of the time that was looked at"},
                            {"time", Align::Right},
                            {"times", Align::Right},
                            {"who"},
                            {"what"},
                            {"for", Align::Code}},
                .rows = {},
                .when_empty = "nobody waited"};
    for (const Sum& w : s_.waits()) {
      const bool is_stream = w.kind == Kind::StreamWait;
      table.rows.push_back({number(all > 0 ? std::min(1.0, w.seconds / all) : 0), time(w.seconds), count(w.count),
                            is_stream ? cat("stream ", w.device) : "thread", is_stream ? "waits for an event" : name(w.kind),
                            w.task == kNoTask ? "" : cat(is_stream ? "before " : "", s_.task(w.task).label)});
    }
    page_.table(table);
  }

  void about() {
    page_.heading("How to read it");
    page_.paragraph(
        "Times of streams are those at which the device did the work, on the clock of the host; times of the CPU are those of the thread "
        "that did it. "
        "A thread that gives work to a stream goes on at once: how long before it began, a block's note says. GFLOP/s and GB/s divide what "
        "an op has "
        "to compute and move by the time that it took.\n\nSteps in which something was compiled are left out of shares and advice, and "
        "shown in the "
        "curves. The same profile as a trace for ui.perfetto.dev or chrome://tracing is written for a file that ends in .json.");
  }

  const Recording& r_;
  const Summary s_;
  Page page_;
};

void put(const std::filesystem::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit(AtomicFile::Flush::Later);
}

}  // namespace

std::string report_html(const Recording& recording, std::string_view title) { return Report(recording, title).html(); }

std::vector<std::filesystem::path> files_for(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".html" || ending == ".json") return {file};
  return {std::filesystem::path(file.string() + ".html"), std::filesystem::path(file.string() + ".json")};
}

std::vector<std::filesystem::path> write(const Recording& recording, const std::filesystem::path& file, std::string_view title) {
  const std::vector<std::filesystem::path> files = files_for(file);
  for (const std::filesystem::path& f : files) {
    if (f.has_parent_path()) {
      std::error_code ignored;  // the file's own error says more
      std::filesystem::create_directories(f.parent_path(), ignored);
    }
    put(f, f.extension() == ".json" ? trace_json(recording) : report_html(recording, title));
  }
  return files;
}

}  // namespace tandem::profile
