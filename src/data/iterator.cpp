// Iterator: the root of the flows, their context, and what is asked of a whole pipeline.
#include "base/border.hpp"
#include "base/fork.hpp"
#include "base/text.hpp"
#include "data/explain.hpp"
#include "data/node.hpp"
#include "data/tuner.hpp"
#include "frontend/memory.hpp"
#include "frontend/thread_state.hpp"
#include "profile/recorder.hpp"

namespace tandem::data {
namespace {

constexpr std::string_view kMagic = "tandem.data 1";

void collect(const Node& node, PipelineOptions& all) {
  for (const NodeRef& input : node.inputs()) collect(*input, all);
  const PipelineOptions* own = node.pipeline_options();
  if (!own) return;
  if (own->cpu_share) all.cpu_share = own->cpu_share;
  if (own->ram_budget_bytes) all.ram_budget_bytes = own->ram_budget_bytes;
  if (own->deterministic) all.deterministic = own->deterministic;
  if (own->autotune) all.autotune = own->autotune;
}

Settings settings_for(const Node& node) {
  PipelineOptions options;
  collect(node, options);
  return settings_of(options);
}

// What a base class of Root needs before Root is there.
struct RootStage {
  RootStage() { stage.name = "iterator"; }
  Stage stage;
};

// While it lives, threads that make elements know that a step of a compiled function waits for them: the variables that it holds stay held.
class Reading {
 public:
  explicit Reading(Context& c) : context_(frontend::thread_state.host_calls > 0 ? &c : nullptr) {
    if (context_) context_->reader.store(frontend::thread_number(), std::memory_order_relaxed);
  }
  ~Reading() {
    if (context_) context_->reader.store(0, std::memory_order_relaxed);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  Context* context_;
};

class Root final : private RootStage, public Walk {
 public:
  explicit Root(NodeRef node) : Walk(RootStage::stage), node_(std::move(node)), settings_(settings_for(*node_)) { begin(); }
  ~Root() override {
    stop_.request_stop();
    walk_.reset();
  }

  bool next(Element& element) override {
    const profile::Span waiting(profile::Kind::Pipeline, "the next element");
    const int64_t from = now_ns();
    const Reading reading(*context_);
    const frontend::HostScope on_host;
    const bool has_element = walk_->pull(element);
    tuner_->tick(from, now_ns());
    // Elements may have been made of what a view of a broken file showed: none of them is given out any more, and the end tells it once.
    if (has_element || !std::exchange(told_end_, true)) context_->files.require_whole_views();
    return has_element;
  }
  void save(Writer& w) override {
    w.put(kMagic);
    w.put(node_->pipeline());
    walk_->save_to(w);
    context_->save_epochs(w);
    context_->files.require_whole_views();
  }
  void restore(Reader& r) override {
    if (const std::string_view magic = r.text(); magic != kMagic)
      user_error("restore: this is no state of an iterator, or of another version: it begins with '", magic.substr(0, 32), "', not '",
                 kMagic, "'");
    const std::string pipeline = node_->pipeline();
    if (const std::string_view other = r.text(); other != pipeline)
      user_error("restore: the state is of another pipeline\n  saved:    ", other, "\n  restored: ", pipeline);
    stop_.request_stop();
    walk_.reset();
    begin();
    try {
      walk_->restore_from(r);
      context_->restore_epochs(r);
      if (!r.at_end()) user_error("restore: the state is damaged: there is more behind its end");
    } catch (...) {  // half a state is none
      walk_.reset();
      begin();
      throw;
    }
  }
  // In a child of fork() nobody makes elements ahead, and who waits for that or for its end would wait forever.
  bool has_lost_threads() const { return context_->has_threads && fork_count() != forks_; }
  std::string explain() { return explain_stages(*context_); }
  MemoryUse memory_use() const { return context_->budget.use(); }

 private:
  void begin() {
    const frontend::HostScope on_host;
    stop_ = std::stop_source();
    context_ = std::make_unique<Context>(settings_);
    walk_ = node_->walk({context_.get(), stop_.get_token()});
    tuner_ = std::make_unique<Tuner>(*context_);
    told_end_ = false;
  }

  const NodeRef node_;
  const Settings settings_;
  std::stop_source stop_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Walk> walk_;
  std::unique_ptr<Tuner> tuner_;
  bool told_end_ = false;
  const uint32_t forks_ = fork_count();
};

Root& root_of(const std::unique_ptr<Walk>& walk) {
  if (!walk) user_error("this Iterator was moved from");
  auto& root = static_cast<Root&>(*walk);
  if (root.has_lost_threads())
    user_error(ErrorCode::FailedPrecondition,
               "this iterator was made before fork(), and its threads stayed in the parent\n  hint: make another one in the child");
  return root;
}

// What its threads had locked or waited for can be neither used nor destroyed: it is left alone.
void forget_after_fork(std::unique_ptr<Walk>& walk) {
  if (walk && static_cast<Root&>(*walk).has_lost_threads()) static_cast<void>(walk.release());
}

}  // namespace

Iterator::Iterator(std::unique_ptr<Walk> walk) : walk_(std::move(walk)) {}
Iterator::Iterator(Iterator&&) noexcept = default;
Iterator& Iterator::operator=(Iterator&& other) noexcept {
  forget_after_fork(walk_);
  walk_ = std::move(other.walk_);
  return *this;
}
Iterator::~Iterator() { forget_after_fork(walk_); }
bool Iterator::next(Element& element) {
  return at_border("next", [&] { return root_of(walk_).next(element); });
}

std::string Iterator::save() const {
  return at_border("save", [&] {
    Writer w;
    root_of(walk_).save(w);
    return w.bytes();
  });
}

void Iterator::restore(std::string_view state) {
  at_border("restore", [&] {
    Reader r(state);
    root_of(walk_).restore(r);
  });
}

std::string Iterator::explain() const { return root_of(walk_).explain(); }
MemoryUse Iterator::memory_use() const { return root_of(walk_).memory_use(); }

Dataset::Dataset(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

std::vector<Spec> Dataset::specs() const {
  if (auto specs = node_of(*this)->specs()) return *std::move(specs);
  user_error("specs: ", node_->name(),
             " gives elements whose types are known only when it runs\n  hint: declare them, as in "
             "map_callback(f, {.specs = ...})");
}
std::optional<std::vector<Spec>> Dataset::known_specs() const { return node_of(*this)->specs(); }
int64_t Dataset::cardinality() const { return node_of(*this)->cardinality(); }
std::string Dataset::str() const { return node_of(*this)->pipeline(); }
Iterator Dataset::iterate() const {
  return at_border("iterate", [&] { return Iterator(std::make_unique<Root>(node_of(*this))); });
}

}  // namespace tandem::data
