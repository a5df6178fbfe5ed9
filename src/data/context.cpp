#include "data/context.hpp"

#include <algorithm>

#include "base/cores.hpp"
#include "base/text.hpp"
#include "data/node.hpp"
#include "device/account.hpp"

namespace tandem::data {

Settings settings_of(const PipelineOptions& o) {
  Settings s;
  const double share = o.cpu_share.value_or(1.0);
  if (!(share > 0 && share <= 1)) user_error("options: cpu_share is ", share, ", it must be above 0 and at most 1");
  s.cores = cores::of_pipelines();
  s.threads = std::max(1, static_cast<int>(share * static_cast<double>(s.cores.size())));
  if (const int most = cores::pipeline_threads()) s.threads = std::min(s.threads, most);
  s.deterministic = o.deterministic.value_or(true);
  s.autotune = o.autotune.value_or(true);
  s.ram_budget_bytes = o.ram_budget_bytes ? *o.ram_budget_bytes : free_memory_bytes() / 2;
  if (const size_t limit = device::host_account().limit()) s.ram_budget_bytes = std::min(s.ram_budget_bytes, limit);
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

Context::Epoch Context::next_epoch(const std::string& path, IteratorCount& iterators) {
  std::lock_guard lock(mutex_);
  const auto [found, is_new] = walked_.try_emplace(path);
  Walked& w = found->second;
  if (is_new)
    w.next.iterator = iterators.next();
  else
    iterators.saw(w.next.iterator);
  w.iterators = &iterators;
  return {w.next.iterator, w.next.epoch++};
}

void Context::save_epochs(Writer& w) {
  std::lock_guard lock(mutex_);
  w.put(static_cast<int64_t>(walked_.size()));
  for (const auto& [path, walked] : walked_) {
    w.put(path);
    w.put(walked.next.iterator);
    w.put(walked.next.epoch);
  }
}

void Context::restore_epochs(Reader& r) {
  std::lock_guard lock(mutex_);
  const int64_t count = r.integer(0, INT64_MAX);
  for (int64_t i = 0; i < count; ++i) {
    Walked& walked = walked_[std::string(r.text())];
    walked.next.iterator = r.bits();
    walked.next.epoch = r.bits();
    if (walked.iterators) walked.iterators->saw(walked.next.iterator);
  }
}

}  // namespace tandem::data
