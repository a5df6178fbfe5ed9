#include "frontend/gradient.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/lru_cache.hpp"
#include "base/thread_kept.hpp"
#include "frontend/apply.hpp"
#include "frontend/memory.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/tracer.hpp"
#include "ops/table.hpp"
#include "transform/grad.hpp"

namespace tandem::frontend {
namespace {

// --- from entries to a graph -------------------------------------------------------------------------------------------------------

using ImplSet = std::unordered_set<const TensorImpl*>;

bool has_any(const std::vector<Tensor>& tensors, const ImplSet& set) {
  return std::ranges::any_of(tensors, [&](const Tensor& t) { return set.contains(t.impl()); });
}

// The entries on the way from a source to a target, in order.
std::vector<const TapeEntry*> entries_between(std::span<const TapeEntry> entries, std::span<const Tensor> sources,
                                              std::span<const Tensor> targets) {
  ImplSet reached;
  for (const Tensor& t : sources) reached.insert(t.impl());
  std::vector<const TapeEntry*> downstream;
  for (const TapeEntry& e : entries) {
    if (!has_any(e.inputs, reached)) continue;
    downstream.push_back(&e);
    for (const Tensor& t : e.outputs)
      if (t.defined() && is_float(dtype_of(t))) reached.insert(t.impl());
  }
  ImplSet wanted;
  for (const Tensor& t : targets) wanted.insert(t.impl());
  std::vector<const TapeEntry*> between;
  for (size_t i = downstream.size(); i-- > 0;) {
    if (!has_any(downstream[i]->outputs, wanted)) continue;
    between.push_back(downstream[i]);
    for (const Tensor& t : downstream[i]->inputs) wanted.insert(t.impl());
  }
  std::ranges::reverse(between);
  return between;
}

class Replay {
 public:
  Replay() : builder_(ops::table()) {}

  ir::Value value(const Tensor& t) {
    const auto [found, is_new] = values_.try_emplace(t.impl());
    if (is_new) {
      found->second = builder_.input(type_of(t));
      known_.emplace(found->second, t);
    }
    return found->second;
  }

  std::vector<ir::Value> values(std::span<const Tensor> tensors) {
    std::vector<ir::Value> v;
    for (const Tensor& t : tensors) v.push_back(t.defined() ? value(t) : ir::Value());
    return v;
  }

  void add(const TapeEntry& e) {
    const std::vector<ir::Value> in = values(e.inputs);
    builder_.location = e.location;
    builder_.device = e.device;
    const std::vector<ir::Value> out = e.op ? builder_.node(*e.op, in, e.attrs) : ir::inline_graph(builder_, *e.graph, in);
    for (size_t i = 0; i < e.outputs.size(); ++i) {
      if (!e.outputs[i].defined()) continue;
      values_.emplace(e.outputs[i].impl(), out[i]);
      known_.emplace(out[i], e.outputs[i]);
    }
  }

  ir::Builder& builder() { return builder_; }
  const std::map<ir::Value, Tensor>& known() const { return known_; }

 private:
  ir::Builder builder_;
  std::unordered_map<const TensorImpl*, ir::Value> values_;
  std::map<ir::Value, Tensor> known_;  // what has a tensor already
};

// The part of `g` that computes `results`, with everything that has a tensor already as an input.
struct Extracted {
  ir::Graph graph;
  std::vector<Tensor> inputs;
};
Extracted extract(const ir::Graph& g, std::span<const ir::Value> results, const std::map<ir::Value, Tensor>& known) {
  std::vector<bool> is_needed(g.nodes.size());
  const auto need = [&](ir::Value v) {
    if (!known.contains(v)) is_needed[static_cast<size_t>(v.node)] = true;
  };
  for (const ir::Value v : results) need(v);
  for (size_t i = g.nodes.size(); i-- > 0;)
    if (is_needed[i])
      for (const ir::Value v : g.nodes[i].inputs) need(v);

  Extracted out;
  ir::Builder b(ops::table());
  std::map<ir::Value, ir::Value> made;
  const auto at = [&](ir::Value v) {
    const auto tensor = known.find(v);
    if (tensor == known.end()) return made.at(v);
    const auto [found, is_new] = made.try_emplace(v);
    if (is_new) {
      found->second = b.input(type_of(tensor->second));
      out.inputs.push_back(tensor->second);
    }
    return found->second;
  };
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    if (!is_needed[i]) continue;
    const ir::Node& n = g.nodes[i];
    std::vector<ir::Value> in;
    for (const ir::Value v : n.inputs) in.push_back(at(v));
    b.follow(n);
    const std::vector<ir::Value> results_of_node = b.node(*n.op, in, n.attrs);
    for (size_t k = 0; k < results_of_node.size(); ++k)
      made.emplace(ir::Value{static_cast<int32_t>(i), static_cast<int32_t>(k)}, results_of_node[k]);
  }
  std::vector<ir::Value> outputs;
  for (const ir::Value v : results) outputs.push_back(at(v));
  out.graph = b.finish(std::move(outputs), "gradient");
  return out;
}

// --- running it ----------------------------------------------------------------------------------------------------------------

std::vector<Tensor> run_compiled(engine::Executable& executable, std::span<const Tensor> inputs) {
  std::vector<const engine::TensorRef*> refs;
  refs.reserve(inputs.size());
  for (const Tensor& t : inputs) refs.push_back(&numbers_of(t, "gradient"));
  std::vector<engine::TensorRef> out;
  executable.run(refs, out);
  std::vector<Tensor> results;
  results.reserve(out.size());
  for (engine::TensorRef& r : out) results.push_back(concrete(std::move(r)));
  return results;
}

// Node by node, so that other tapes see each step.
std::vector<Tensor> run_traced(const ir::Graph& g, std::span<const Tensor> inputs) {
  std::vector<std::vector<Tensor>> made(g.nodes.size());
  for (size_t i = 0; i < inputs.size(); ++i) made[static_cast<size_t>(g.inputs[i].node)] = {inputs[i]};
  const auto at = [&](ir::Value v) { return made[static_cast<size_t>(v.node)][static_cast<size_t>(v.out)]; };
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    const ir::Node& n = g.nodes[i];
    if (!made[i].empty()) continue;  // an input
    std::vector<Tensor> in;
    for (const ir::Value v : n.inputs) in.push_back(at(v));
    const WishScope wish(n.device >= 0 ? n.device : thread_state.device);
    made[i] = call_final(*n.op, in, n.attrs, n.location);
  }
  std::vector<Tensor> results;
  for (const ir::Value v : g.outputs) results.push_back(at(v));
  return results;
}

// --- plans that are kept -----------------------------------------------------------------------------------------------------------

// A gradient made ready: its graph, which of the recorded tensors it takes, and where each group's result is.
struct GradientPlan {
  ir::GraphRef graph;                              // none when nothing is connected
  std::shared_ptr<engine::Executable> executable;  // none for a trace
  std::vector<size_t> inputs;                      // tensors, by number
  std::vector<int> places;                         // one a group: which output, -1: not connected
};

// The request with tensors as numbers in the order of their appearance: equal for the same calls on other tensors of the same types.
class Key {
 public:
  Key(const GradientRequest& r, std::span<const TapeEntry* const> entries) {
    word(static_cast<uint64_t>(static_cast<int64_t>(thread_state.device)));
    for (const TapeEntry* e : entries) {
      word(static_cast<uint64_t>(static_cast<int64_t>(e->device)));
      word(reinterpret_cast<uint64_t>(e->op));
      word(reinterpret_cast<uint64_t>(e->graph.get()));
      attrs_.push_back(e->attrs);
      if (!e->attrs.entries().empty()) word(e->attrs.hash());
      add(e->inputs);
      add(e->outputs);
    }
    add(r.targets);
    add(r.target_gradients);
    add(r.sources);
    for (const size_t n : r.groups) word(n);
  }

  size_t hash() const { return hash_; }
  size_t number(const Tensor& t) const { return numbers_.at(t.impl()); }
  const Tensor& tensor(size_t number) const { return *tensors_[number]; }
  friend bool operator==(const Key& a, const Key& b) { return a.words_ == b.words_ && a.attrs_ == b.attrs_; }
  void forget_tensors() {  // what is kept must not keep them alive, nor point to them
    tensors_.clear();
    numbers_.clear();
  }

 private:
  void word(uint64_t w) {
    words_.push_back(w);
    hash_ = ir::hash_combine(hash_, w);
  }
  void add(std::span<const Tensor> tensors) {
    word(tensors.size());
    for (const Tensor& t : tensors) {
      if (!t.defined()) {
        word(~uint64_t{0});
        continue;
      }
      const auto [found, is_new] = numbers_.try_emplace(t.impl(), tensors_.size());
      word(found->second);
      if (!is_new) continue;
      tensors_.push_back(&t);
      if (const engine::TensorRef* ref = concrete_ref(t)) {
        word(static_cast<uint64_t>(ref->layout.dtype) << 8 | static_cast<uint64_t>(ref->layout.shape.rank()));
        for (const int64_t extent : ref->layout.shape) word(static_cast<uint64_t>(extent));
      }
    }
  }

  std::vector<uint64_t> words_;
  std::vector<ir::Attrs> attrs_;
  size_t hash_ = 0;
  std::unordered_map<const TensorImpl*, size_t> numbers_;
  std::vector<const Tensor*> tensors_;
};

GradientPlan make_plan(const GradientRequest& r, std::span<const TapeEntry* const> entries, const Key& key) {
  Replay replay;
  for (const TapeEntry* e : entries) replay.add(*e);
  const std::vector<ir::Value> targets = replay.values(r.targets), given = replay.values(r.target_gradients), by = replay.values(r.sources);
  ir::Builder& b = replay.builder();
  b.location = r.location;
  b.device = thread_state.device;
  const std::vector<ir::Value> flat = transform::gradients(b, targets, given, by);

  GradientPlan plan;
  std::vector<ir::Value> results;
  size_t at = 0;
  for (const size_t count : r.groups) {
    ir::Value sum;
    for (size_t k = 0; k < count; ++k, ++at)
      if (flat[at]) sum = sum ? b.op("add", {sum, flat[at]}) : flat[at];
    plan.places.push_back(sum ? static_cast<int>(results.size()) : -1);
    if (sum) results.push_back(sum);
  }
  if (results.empty()) return plan;
  Extracted e = extract(b.graph(), results, replay.known());
  for (const Tensor& t : e.inputs) plan.inputs.push_back(key.number(t));
  plan.graph = std::make_shared<const ir::Graph>(std::move(e.graph));
  return plan;
}

// Plans of this thread's eager gradients. A training loop asks for the same one at every step.
class PlanCache {
 public:
  std::shared_ptr<const GradientPlan> find(const Key& key) {
    if (const uint64_t present = engine::Engine::trim_count(); trims_ != present) {
      trims_ = present;
      plans_.clear();
    }
    const Kept* found = plans_.find(key.hash(), [&](const Kept& k) { return k.key == key; });
    return found ? found->plan : nullptr;
  }
  void add(Key key, std::span<const TapeEntry* const> entries, std::shared_ptr<const GradientPlan> plan) {
    const size_t hash = key.hash(), weight = 1 + (plan->graph ? plan->graph->nodes.size() : 0);
    Kept kept{std::move(key), {}, std::move(plan)};
    for (const TapeEntry* e : entries)
      if (e->graph) kept.graphs.push_back(e->graph);
    kept.key.forget_tensors();
    plans_.add(hash, weight, std::move(kept));
  }

 private:
  struct Kept {
    Key key;
    std::vector<ir::GraphRef> graphs;  // alive, so that their addresses in the key stay theirs
    std::shared_ptr<const GradientPlan> plan;
  };
  LruCache<Kept> plans_{{256, size_t{1} << 18}};  // by nodes: a program whose shapes always change must not fill the memory
  uint64_t trims_ = 0;
};

std::vector<Tensor> run_eager(const GradientPlan& plan, const std::vector<Tensor>& inputs, Location where) {
  std::vector<Tensor> results = run_compiled(*plan.executable, inputs);
  if (TapeImpl::any_records()) TapeImpl::record_graph(plan.graph, inputs, results, where);
  return results;
}

// Of entries that are ops and graphs: all of them become one graph.
std::vector<Tensor> graph_gradients(const GradientRequest& r, std::span<const TapeEntry* const> entries) {
  Key key(r, entries);
  std::vector<Tensor> inputs, results;
  const auto bind = [&](const GradientPlan& plan) {
    for (const size_t n : plan.inputs) inputs.push_back(key.tensor(n));
  };
  std::shared_ptr<const GradientPlan> plan;
  if (Tracer* tracer = thread_state.tracer) {
    plan = std::make_shared<const GradientPlan>(make_plan(r, entries, key));
    bind(*plan);
    if (plan->graph)
      results = TapeImpl::any_records() ? run_traced(*plan->graph, inputs) : tracer->inlined(*plan->graph, inputs, r.location);
  } else {
    PlanCache* cache = thread_kept<PlanCache>();
    if (cache) plan = cache->find(key);
    if (plan) {
      bind(*plan);
    } else {
      GradientPlan fresh = make_plan(r, entries, key);
      if (fresh.graph) fresh.executable = engine::default_engine().compile(*fresh.graph);
      plan = std::make_shared<const GradientPlan>(std::move(fresh));
      bind(*plan);
      if (cache && !(plan->graph && ir::calls_host(*plan->graph))) cache->add(std::move(key), entries, plan);
    }
    if (plan->graph) results = run_eager(*plan, inputs, r.location);
  }
  std::vector<Tensor> gradients;
  for (const int place : plan->places) gradients.push_back(place < 0 ? Tensor() : results[static_cast<size_t>(place)]);
  return gradients;
}

// --- entries that say themselves how gradients go back ------------------------------------------------------------------------------

// They cannot be part of a graph. So the way back goes by turns: through the graph of the entries behind the last of them, through it, and
// so on to the front.
class WayBack {
 public:
  explicit WayBack(const GradientRequest& r) : request_(r) {
    for (size_t i = 0; i < r.targets.size(); ++i) {
      const bool is_given = !r.target_gradients.empty() && r.target_gradients[i].defined();
      const Tensor& t = r.targets[i];
      arrive(t, is_given ? r.target_gradients[i] : Tensor::ones(t.dims(), t.dtype()));
    }
    for (const Tensor& t : r.sources) reached_.insert(t.impl());
  }

  std::vector<Tensor> run(std::span<const TapeEntry* const> entries) {
    for (const TapeEntry* e : entries)
      for (const Tensor& t : e->outputs) reached_.insert(t.impl());
    while (!entries.empty()) {
      size_t first = entries.size();
      while (first > 0 && !entries[first - 1]->backward) --first;
      through_graph(entries.subspan(first));
      if (first > 0) through_custom(*entries[--first]);
      entries = entries.first(first);
    }
    std::vector<Tensor> results;
    size_t at = 0;
    for (const size_t count : request_.groups) {
      Tensor& sum = results.emplace_back();
      for (size_t k = 0; k < count; ++k, ++at)
        if (const auto found = arrived_.find(request_.sources[at].impl()); found != arrived_.end()) sum = added(sum, found->second);
    }
    return results;
  }

 private:
  Tensor added(const Tensor& a, const Tensor& b) const {
    static const ir::OpDef& add = row("add");
    return a.defined() ? call_final(add, std::array{a, b}, {}, request_.location).front() : b;
  }
  void arrive(const Tensor& at, const Tensor& gradient) {
    Tensor& sum = arrived_[at.impl()];
    sum = added(sum, gradient);
  }
  bool wants(const Tensor& t) const { return t.defined() && is_float(dtype_of(t)) && reached_.contains(t.impl()); }

  void through_graph(std::span<const TapeEntry* const> entries) {
    ImplSet made, listed;
    std::vector<Tensor> targets, gradients, sources;
    for (const TapeEntry* e : entries)
      for (const Tensor& t : e->outputs) {
        made.insert(t.impl());
        const auto found = arrived_.find(t.impl());
        if (found == arrived_.end()) continue;
        targets.push_back(t);
        gradients.push_back(found->second);
      }
    if (targets.empty()) return;
    for (const TapeEntry* e : entries)
      for (const Tensor& t : e->inputs)
        if (wants(t) && !made.contains(t.impl()) && listed.insert(t.impl()).second) sources.push_back(t);
    const size_t from_before = sources.size();
    for (const Tensor& t : request_.sources)  // a source may lie on the way
      if (made.contains(t.impl()) && listed.insert(t.impl()).second) sources.push_back(t);
    const std::vector<size_t> groups(sources.size(), 1);
    const std::vector<Tensor> found = graph_gradients({{}, targets, gradients, sources, groups, request_.location}, entries);
    for (size_t i = 0; i < sources.size(); ++i) {
      if (!found[i].defined()) continue;
      if (i < from_before)
        arrive(sources[i], found[i]);
      else
        arrived_[sources[i].impl()] = found[i];  // what had arrived there is part of it
    }
  }

  void through_custom(const TapeEntry& e) {
    if (std::ranges::none_of(e.outputs, [&](const Tensor& t) { return arrived_.contains(t.impl()); })) return;
    std::vector<Tensor> gradients;
    for (const Tensor& t : e.outputs) {
      const auto found = arrived_.find(t.impl());
      gradients.push_back(found != arrived_.end() ? found->second : Tensor::zeros(t.dims(), t.dtype()));
    }
    const std::vector<Tensor> found = (*e.backward)(gradients);
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i].defined() && wants(e.inputs[i])) arrive(e.inputs[i], found[i]);
  }

  const GradientRequest& request_;
  ImplSet reached_;                                        // from a source
  std::unordered_map<const TensorImpl*, Tensor> arrived_;  // only looked up, never walked
};

}  // namespace

namespace {

// What was computed from `stops` is computed again from constants of the same values; targets and sources become those copies.
void behind_stops(Tracer& tracer, std::span<const Tensor> stops, std::vector<ir::Value>& targets, std::vector<ir::Value>& sources) {
  if (stops.empty()) return;
  ir::Builder& b = tracer.builder();
  std::map<ir::Value, ir::Value> copies;
  for (const Tensor& t : stops) {
    const ir::Value v = tracer.value_of(t);
    copies.emplace(v, b.op("stop_gradient", {v}));
  }
  const auto copy_of = [&](ir::Value v) {
    const auto found = copies.find(v);
    return found == copies.end() ? v : found->second;
  };
  const size_t count = b.graph().nodes.size() - copies.size();
  for (size_t i = 0; i < count; ++i) {
    const ir::Node n = b.graph().nodes[i];
    if (n.op->name == "host_call" || std::ranges::none_of(n.inputs, [&](ir::Value v) { return copies.contains(v); })) continue;
    std::vector<ir::Value> in;
    for (const ir::Value v : n.inputs) in.push_back(copy_of(v));
    b.device = n.device;
    const std::vector<ir::Value> made = b.node(*n.op, in, n.attrs);
    for (size_t k = 0; k < made.size(); ++k) copies.emplace(ir::Value{static_cast<int32_t>(i), static_cast<int32_t>(k)}, made[k]);
  }
  b.device = thread_state.device;
  for (ir::Value& v : targets) v = copy_of(v);
  for (ir::Value& v : sources) v = copy_of(v);
}

}  // namespace

std::vector<Tensor> traced_gradients(std::span<const Tensor> targets, std::span<const Tensor> target_gradients,
                                     std::span<const Tensor> sources, std::span<const Tensor> stops, Location where) {
  Tracer* tracer = thread_state.tracer;
  if (!tracer) user_error("gradients: nothing is traced\n  hint: outside of a function a tape records what is computed");
  if (TapeImpl::any_records())
    user_error("gradients: a tape records here, and would not see this gradient\n  hint: ask the tape, or leave it out");
  const auto check = [&](const Tensor& t, std::string_view what, size_t i) {
    const TracedTensor* value = traced(t);
    if (value && value->tracer != tracer->id())
      user_error("gradients: ", what, " ", i, ", ", value->type, ", was computed outside of the branch or loop that asks",
                 "\n  hint: ask where it was computed, or use a tape");
  };
  std::vector<ir::Value> of, given, by;
  for (size_t i = 0; i < targets.size(); ++i) check(targets[i], "target", i);
  for (size_t i = 0; i < sources.size(); ++i) check(sources[i], "source", i);
  for (const Tensor& t : targets) of.push_back(tracer->value_of(t));
  for (const Tensor& t : target_gradients) given.push_back(t.defined() ? tracer->value_of(t) : ir::Value());
  for (const Tensor& t : sources) by.push_back(tracer->value_of(t));
  tracer->builder().location = named_line(where);
  tracer->builder().device = thread_state.device;
  behind_stops(*tracer, stops, of, by);
  std::vector<Tensor> found;
  for (const ir::Value v : transform::gradients(tracer->builder(), of, given, by)) found.push_back(v ? tracer->wrap(v) : Tensor());
  return found;
}

std::vector<Tensor> run_graph(const ir::GraphRef& graph, std::span<const Tensor> inputs, Location where) {
  if (Tracer* tracer = thread_state.tracer)
    return TapeImpl::any_records() ? run_traced(*graph, inputs) : tracer->inlined(*graph, inputs, where);
  std::vector<Tensor> results = run_compiled(*engine::default_engine().compile(*graph), inputs);
  if (TapeImpl::any_records()) TapeImpl::record_graph(graph, inputs, results, where);
  return results;
}

std::vector<Tensor> run_gradient(const GradientRequest& r) {
  std::vector<const TapeEntry*> entries = entries_between(r.entries, r.sources, r.targets);
  if (std::ranges::none_of(entries, [](const TapeEntry* e) { return e->backward != nullptr; })) return graph_gradients(r, entries);
  // Copies: what is called on the way may be recorded by the very tape whose entries these are.
  std::vector<TapeEntry> own;
  for (const TapeEntry* e : entries) own.push_back(*e);
  for (size_t i = 0; i < own.size(); ++i) entries[i] = &own[i];
  return WayBack(r).run(entries);
}

}  // namespace tandem::frontend
