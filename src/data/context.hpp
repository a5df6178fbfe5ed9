// Context: what all stages of one iterator share: settings, the account of memory, statistics. Scope: one stage's place in it.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "data/budget.hpp"
#include "data/page_guard.hpp"
#include "data/random.hpp"
#include "data/stage.hpp"
#include "data/state.hpp"

namespace tandem::data {

class Node;

struct Settings {
  std::vector<int> cores;  // that the threads stay on
  int threads = 1;         // that autotuning may give to parallel stages together
  bool deterministic = true;
  bool autotune = true;
  size_t ram_budget_bytes = 0;
};
Settings settings_of(const PipelineOptions& options);

class Context {
 public:
  explicit Context(const Settings& s) : settings(s), budget(s.ram_budget_bytes) {}
  Stage& stage(const std::string& path, const Node& node);
  template <class F> void for_each_stage(F f) {  // in order of their paths: a stage before its inputs
    std::lock_guard lock(mutex_);
    for (auto& [path, stage] : stages_) f(*stage);
  }

  // Which walk over a stage this is: the number of the iterator among those of its Dataset, and how often the stage was walked in it. So
  // each has its own order and random numbers.
  struct Epoch {
    uint64_t iterator = 0, epoch = 0;
  };
  Epoch next_epoch(const std::string& path, IteratorCount& iterators);
  void save_epochs(Writer& w);
  void restore_epochs(Reader& r);  // after the flows, which counted while they were made

  const Settings settings;
  Budget budget;
  WatchedFiles files;
  std::atomic<uint32_t> reader{0};  // the thread that waits for an element inside of a host call, if one does
  bool has_threads = false;         // some stage has started one

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Stage>> stages_;
  struct Walked {
    Epoch next;
    IteratorCount* iterators = nullptr;
  };
  std::map<std::string, Walked> walked_;
};

struct Scope {
  Context* context;
  std::stop_token stop;
  std::string path = {};

  Scope input(size_t i) const { return {context, stop, path + '.' + std::to_string(i)}; }
  Scope inner() const { return {context, stop, path + ".*"}; }  // what a function of the user gave
  Scope with(std::stop_token other) const { return {context, std::move(other), path}; }
  Stage& stage(const Node& node) const { return context->stage(path, node); }
};

}  // namespace tandem::data
