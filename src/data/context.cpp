#include "data/context.hpp"

#include <sched.h>

#include <algorithm>

#include "base/text.hpp"
#include "data/node.hpp"

namespace tandem::data {
namespace {

int available_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

}  // namespace

Settings settings_of(const PipelineOptions& o) {
  Settings s;
  const double share = o.cpu_share.value_or(1.0);
  if (!(share > 0 && share <= 1)) user_error("options: cpu_share is ", share, ", it must be above 0 and at most 1");
  s.cores = available_cores();
  s.threads = std::max(1, static_cast<int>(share * s.cores));
  s.deterministic = o.deterministic.value_or(true);
  s.autotune = o.autotune.value_or(true);
  s.ram_budget_bytes = o.ram_budget_bytes ? *o.ram_budget_bytes : free_memory_bytes() / 2;
  return s;
}

Stage& Context::stage(const std::string& path, const Node& node) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Stage>& stage = stages_[path];
  if (!stage) {
    stage = std::make_unique<Stage>();
    stage->name = node.name();
    stage->text = node.text();
    stage->depth = static_cast<int>(std::ranges::count(path, '.'));
  }
  return *stage;
}

Context::Epoch Context::next_epoch(const std::string& path, const std::function<uint64_t()>& iterator_number) {
  std::lock_guard lock(mutex_);
  const auto found = epochs_.find(path);
  Epoch& next = found != epochs_.end() ? found->second : epochs_.emplace(path, Epoch{iterator_number(), 0}).first->second;
  return {next.iterator, next.epoch++};
}

void Context::set_epoch(const std::string& path, Epoch epoch) {
  std::lock_guard lock(mutex_);
  epochs_[path] = {epoch.iterator, epoch.epoch + 1};
}

}  // namespace tandem::data
