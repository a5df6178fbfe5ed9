// Devices by the names that programs give them: scopes, lists, limits and memory.
#include <tandem/device.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "base/cores.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "device/device.hpp"
#include "frontend/device_names.hpp"
#include "frontend/memory.hpp"
#include "frontend/thread_state.hpp"

namespace tandem {
namespace frontend {
namespace {

// "/job:x/device:GPU:1" is {"gpu", 1}; nothing when it is written in no such way.
struct KindAndNumber {
  std::string kind;
  size_t number = 0;
};
std::optional<KindAndNumber> parsed(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view rest = text, last;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    const bool is_place = part.starts_with("job:") || part.starts_with("replica:") || part.starts_with("task:");
    if (!part.empty() && !is_place) {
      if (!last.empty()) return {};
      last = part;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (last.starts_with("device:")) last.remove_prefix(7);
  const size_t colon = std::min(last.find(':'), last.size());
  KindAndNumber found{std::string(last.substr(0, colon))};
  if (found.kind != "cpu" && found.kind != "gpu") return {};
  std::string_view number = last.substr(std::min(colon + 1, last.size()));
  if (number.empty() || number == "*") return colon == last.size() || !number.empty() ? std::optional(found) : std::nullopt;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), found.number);
  if (error != std::errc() || end != number.data() + number.size()) return {};
  return found;
}

int32_t named(const engine::Devices& all, std::string_view name) {
  for (size_t d = 0; d < all.count(); ++d)
    if (all.at(d).info().name == name) return static_cast<int32_t>(d);
  return engine::kAny;
}

[[noreturn]] void unknown(std::string_view name) {
  const engine::Devices& all = engine::engine_with_all_devices().devices();
  std::string there = all.names();
  const size_t cards = all.accelerators().size();
  if (cards > 0) there += cat("; /GPU:0", cards > 1 ? cat(" to /GPU:", cards - 1) : std::string(), " mean the GPUs among them, in order");
  user_error("device: there is no device '", name, "'; there are ", there);
}

}  // namespace

int32_t device_number(std::string_view name) {
  if (name.empty()) return engine::kAny;
  if (const int32_t found = named(engine::default_engine().devices(), name); found >= 0) return found;
  const std::optional<KindAndNumber> wanted = parsed(name);
  const bool is_soft = engine::default_engine().is_soft();
  if (wanted && wanted->kind == "cpu" && wanted->number == 0) return engine::default_engine().devices().host;
  const engine::Devices& all = engine::engine_with_all_devices().devices();
  if (const int32_t found = named(all, name); found >= 0) return found;
  if (!wanted) unknown(name);
  if (wanted->kind == "cpu") {  // one of several that the program has made of it
    const int32_t found = named(all, cat("cpu:", wanted->number));
    if (found < 0 && !is_soft) unknown(name);
    return found < 0 ? all.host : found;
  }
  const std::vector<int32_t> cards = all.accelerators();
  if (wanted->number < cards.size()) return cards[wanted->number];
  if (!is_soft) unknown(name);
  return cards.empty() ? all.host : cards.front();
}

}  // namespace frontend

namespace {

DeviceDescription described(const device::DeviceInfo& info) {
  return {.name = info.name,
          .description = info.description,
          .memory_bytes = info.memory_bytes,
          .computes = info.executes,
          .is_host = info.host_memory};
}

std::string name_of(int32_t device) { return device < 0 ? std::string() : engine::default_engine().devices().at(device).info().name; }

// UserError unless the name means a device.
engine::Memory& memory_of(std::string_view name, bool pinned) {
  const int32_t device = frontend::device_number(name);
  if (device < 0) user_error("device: an empty name means none");
  const engine::Devices& all = engine::default_engine().devices();
  engine::Memory* const own = all.pinned[static_cast<size_t>(device)];
  return pinned && own ? *own : *all.memories[static_cast<size_t>(device)];
}

// What TensorFlow calls GPU:1 is the second of all devices that are not the CPU.
std::string physical_name(std::string_view name) {
  const std::vector<std::string> all = physical_devices();
  if (std::ranges::find(all, name) != all.end()) return std::string(name);
  const std::optional<frontend::KindAndNumber> wanted = frontend::parsed(name);
  size_t cards = 0;
  for (const std::string& known : all) {
    const bool is_cpu = known == "cpu";
    if (wanted && is_cpu && wanted->kind == "cpu" && wanted->number == 0) return known;
    if (wanted && !is_cpu && wanted->kind == "gpu" && wanted->number == cards++) return known;
  }
  const std::vector<std::string> named = device::names();  // tests and oracles among them
  if (std::ranges::find(named, name) != named.end()) return std::string(name);
  user_error("device: there is no device '", name, "'; there are ", joined(all));
}

void require_not_started(std::string_view what) {
  if (has_started())
    user_error(ErrorCode::FailedPrecondition, what,
               " stay as they are once a device is in use\n  hint: say it before the first tensor is made");
}

MemoryInfo info_of(const device::Account& account) { return {account.in_use(), account.peak(), account.limit()}; }

}  // namespace

std::vector<DeviceDescription> devices() {
  const std::vector<std::string> ordinary = device::ordinary_names();
  std::vector<DeviceDescription> all;
  for (const std::string& name : device::names()) {
    try {
      all.push_back(described(device::get(name).info()));
    } catch (const Error& e) {
      all.push_back({.name = name, .problem = e.what()});
    }
    all.back().is_ordinary = std::ranges::find(ordinary, name) != ordinary.end();
  }
  return all;
}

DeviceDescription active_device() {
  const engine::Devices& all = engine::default_engine().devices();
  return described(all.at(all.for_new(engine::kAny)).info());
}

void set_default_device(std::string_view name) { engine::default_engine().prefer(frontend::device_number(name)); }
std::string default_device() { return name_of(engine::default_engine().devices().preferred); }

DeviceScope::DeviceScope(std::string_view name) : outer_(frontend::thread_state.device) {
  frontend::thread_state.device = frontend::device_number(name);
}
DeviceScope::~DeviceScope() { frontend::thread_state.device = outer_; }
std::string current_device() { return name_of(frontend::thread_state.device); }

void set_placement(Placement placement) {
  if (placement == Placement::Cost) return engine::default_engine().prefer(engine::kAny);
  const engine::Devices& all = engine::engine_with_all_devices().devices();
  const std::vector<int32_t> cards = all.accelerators();
  engine::default_engine().prefer(cards.empty() ? all.host : cards.front());
}
void set_soft_placement(bool on) { engine::default_engine().set_soft(on); }
bool soft_placement() { return engine::default_engine().is_soft(); }
void set_placement_log(bool on) { engine::log_placement(on); }

bool has_started() { return engine::has_default_engine(); }

std::vector<std::string> physical_devices() { return device::physical_names(); }

void set_logical_devices(std::string_view name, std::span<const size_t> limits_bytes) {
  const std::string physical = physical_name(name);
  if (std::ranges::equal(device::limits_of_parts(physical), limits_bytes) && !limits_bytes.empty()) return;
  require_not_started("devices: logical ones");
  device::configure(physical, limits_bytes);
}
std::vector<size_t> logical_devices(std::string_view name) { return device::limits_of_parts(physical_name(name)); }

void set_visible_devices(std::span<const std::string> names) {
  std::vector<std::string> physical;
  for (const std::string& name : names) physical.push_back(physical_name(name));
  if (std::ranges::find(physical, "cpu") == physical.end()) physical.push_back("cpu");
  if (engine::shown_devices() == physical) return;
  require_not_started("devices: those that are visible");
  engine::show_devices_only(std::move(physical));
}

void set_threads(int threads) {
  if (threads == device::threads()) return;
  require_not_started("threads: they");
  device::set_threads(threads);
}
void set_pipeline_threads(int threads) {
  if (threads == cores::pipeline_threads()) return;
  if (threads < 0 || threads > device::kMostThreads) user_error("threads: ", threads, " is not from 0 to ", device::kMostThreads);
  require_not_started("threads: those of pipelines");
  cores::set_pipeline_threads(threads);
}

MemoryInfo memory_info(std::string_view name) { return info_of(memory_of(name, false).device().memory()); }
MemoryInfo pinned_memory_info(std::string_view name) { return info_of(memory_of(name, true).device().pinned_memory()); }
void reset_peak(std::string_view name) { memory_of(name, false).device().memory().reset_peak(); }
void set_memory_limit(std::string_view name, size_t bytes) {
  memory_of(name, false).device().memory().set_limit(bytes);
  engine::default_engine().trim();  // plans that were made for another limit
}

void release_memory() { engine::default_engine().trim(); }

}  // namespace tandem
