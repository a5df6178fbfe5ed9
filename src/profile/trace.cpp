// The format: "Trace Event Format", the Chromium project, 2016. Times are microseconds.
#include "profile/trace.hpp"

#include <algorithm>
#include <cstdio>

#include "base/text.hpp"

namespace tandem::profile {
namespace {

// How many bytes a letter at the front has; 0: it is none.
size_t letter_bytes(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char c = byte(0);
  const size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (n == 0 || s.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if ((c == 0xe0 && byte(1) < 0xa0) || (c == 0xed && byte(1) > 0x9f) || (c == 0xf0 && byte(1) < 0x90) || (c == 0xf4 && byte(1) > 0x8f))
    return 0;
  return n;
}

class Writer {
 public:
  explicit Writer(const Recording& r) : r_(r) {}

  std::string text() {
    out_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    process(kHost);
    for (const Track& l : r_.tracks) process(l.device);
    for (const Memory& m : r_.memories) process(m.device);
    std::vector<bool> used(r_.tracks.size());
    for (const Record& r : r_.records) used[r.track] = true;
    for (size_t i = 0; i < r_.tracks.size(); ++i)
      if (used[i]) thread(number(r_.tracks[i].device), static_cast<int>(i) + 1, r_.tracks[i].name);
    thread(1, kSteps, "steps");
    for (const Record& r : r_.records) record(r);
    for (const Epoch& e : r_.epochs)
      event(cat("{\"ph\":\"i\",\"s\":\"g\",\"name\":\"epoch ", e.number, "\",\"pid\":1,\"tid\":", kSteps, ",\"ts\":", us(e.at - r_.begin),
                "}"));
    for (const Sample& s : r_.samples) {
      const Memory& m = r_.memories[s.memory];
      event(cat("{\"ph\":\"C\",\"name\":", json_quoted(cat(m.device, " ", m.name)), ",\"pid\":", number(m.device),
                ",\"ts\":", us(s.at - r_.begin), ",\"args\":{\"bytes\":", s.bytes, "}}"));
    }
    out_ += "\n]";
    if (r_.lost_records > 0) out_ += cat(",\"otherData\":{\"older events that were left out\":\"", r_.lost_records, "\"}");
    return out_ + "}\n";
  }

 private:
  static constexpr int kSteps = 0;

  static std::string us(Time ns) {
    char text[40];
    std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000), static_cast<long long>(ns % 1000));
    return text;
  }
  void event(const std::string& text) {
    if (any_) out_ += ",\n";
    any_ = true;
    out_ += text;
  }
  int number(const std::string& device) const { return static_cast<int>(std::ranges::find(processes_, device) - processes_.begin()) + 1; }
  void process(const std::string& device) {
    if (std::ranges::find(processes_, device) != processes_.end()) return;
    processes_.push_back(device);
    const DeviceNote* note = r_.device(device);
    const std::string name = note && !note->description.empty() ? cat(device, " (", note->description, ")") : device;
    event(cat("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":", processes_.size(), ",\"args\":{\"name\":", json_quoted(name), "}}"));
    event(cat("{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":", processes_.size(), ",\"args\":{\"sort_index\":", processes_.size(),
              "}}"));
  }
  void thread(int pid, int tid, const std::string& name) {
    event(cat("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":", pid, ",\"tid\":", tid, ",\"args\":{\"name\":", json_quoted(name), "}}"));
  }

  void record(const Record& r) {
    const Task& t = r_.tasks[r.task];
    const bool is_step = r.kind == Kind::Step;
    const std::string label = label_of(r, t);
    std::string args;
    const auto arg = [&](const char* key, const std::string& value) { args += cat(args.empty() ? "" : ",", "\"", key, "\":", value); };
    if (!t.kernel.empty()) arg("kernel", json_quoted(t.kernel));
    if (!t.where.empty()) arg("line", json_quoted(t.where));
    if (r.kind == Kind::Launch && t.flops > 0) arg("flops", cat(t.flops));
    if (r.kind == Kind::Launch && t.bytes > 0) arg("bytes", cat(t.bytes));
    if (r.bytes > 0) arg("bytes", cat(r.bytes));
    if (r.bytes > 0 && r.end > r.begin) arg("GB/s", cat(static_cast<double>(r.bytes) / static_cast<double>(r.end - r.begin)));
    if (r.partner != kNoTask) arg("for", json_quoted(r_.tasks[r.partner].label));
    if (r.given < r.begin) arg("given_us_before", us(r.begin - r.given));
    event(cat("{\"ph\":\"X\",\"cat\":", json_quoted(name(r.kind)), ",\"name\":", json_quoted(label),
              ",\"pid\":", is_step ? 1 : number(r_.tracks[r.track].device), ",\"tid\":", is_step ? kSteps : static_cast<int>(r.track) + 1,
              ",\"ts\":", us(std::max<Time>(0, r.begin - r_.begin)), ",\"dur\":", us(r.end - r.begin), ",\"args\":{", args, "}}"));
  }

  const Recording& r_;
  std::string out_;
  bool any_ = false;
  std::vector<std::string> processes_;
};

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t n = letter_bytes(text);
    const char c = text[0];
    if (n == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (n == 1 && static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(std::max<size_t>(n, 1));
  }
  return out + "\"";
}

std::string trace_json(const Recording& recording) { return Writer(recording).text(); }

}  // namespace tandem::profile
