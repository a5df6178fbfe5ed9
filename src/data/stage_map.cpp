// map: a traced function over the components, compiled; called for one element or for a batch of them.
#include "base/text.hpp"
#include "data/ahead.hpp"
#include "data/map.hpp"
#include "data/parallel.hpp"
#include "frontend/memory.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/tracer.hpp"
#include "transform/vmap.hpp"

namespace tandem::data {

// The function as a graph: parameters, then what comes from outside.
struct MapNode::Traced {
  ir::GraphRef graph;
  std::vector<frontend::Tracer::External> externals;
  size_t parameter_count = 0;
  bool writes = false;
  Specs specs;  // of the results
};

namespace {

std::vector<Tensor> with_outside(const std::vector<Tensor>& parameters, const std::vector<frontend::Tracer::External>& externals) {
  std::vector<Tensor> all = parameters;
  for (const frontend::Tracer::External& e : externals) all.push_back(e.variable.defined() ? e.variable.value() : e.outer);
  return all;
}

class MapWalk final : public ParallelWalk {
 public:
  MapWalk(const MapNode& node, const Scope& scope, int64_t parallel_calls)
      : ParallelWalk(node, scope, {parallel_calls, node.options().deterministic}), callable_(node.callable()) {}
  ~MapWalk() override { stop(); }

 protected:
  bool pull(Element& element) override { return input().pull(element); }
  void compute(Element& element) override {
    std::vector<const Tensor*> arguments;
    arguments.reserve(element.size());
    for (const Tensor& t : element) arguments.push_back(&t);
    Element results;
    callable_.call(arguments, results, std::source_location{});
    element = std::move(results);
  }

 private:
  const FlatCallable& callable_;
};

}  // namespace

MapNode::MapNode(NodeRef input, FlatFunction f, MapOptions options)
    : Node(options.name, {std::move(input)}), body_(std::move(f)), options_(std::move(options)) {
  if (options_.parallel_calls != kAutotune) positive(options_.parallel_calls, cat(options_.name, ": parallel_calls"));
  if (const std::optional<Specs> in = this->input().specs()) {
    const frontend::HostScope on_host;
    frontend::Tracer tracer(options_.name);
    std::vector<Tensor> parameters;
    for (const Spec& s : *in) parameters.push_back(tracer.parameter({s.dtype, s.dims}));
    auto traced = std::make_shared<Traced>();
    std::vector<Tensor> results;
    {
      const frontend::TraceScope scope(tracer);
      results = body_(parameters);
    }
    for (const Tensor& t : results) {
      tracer.value_of(t);  // one from outside may be a result
      traced->specs.push_back({t.dtype(), t.dims()});
    }
    traced->specs = renamed(traced->specs);
    traced->externals = tracer.externals();
    traced->parameter_count = tracer.parameter_count();
    for (frontend::Tracer::External& e : traced->externals) {
      traced->writes |= e.written;
      e.current = Tensor();
    }
    traced->graph = std::make_shared<const ir::Graph>(tracer.finish(results));
    traced_ = std::move(traced);
  }
  callable_ = compiled();
}

MapNode::MapNode(NodeRef input, const MapNode& like)
    : Node(like.name(), {std::move(input)}), body_(like.body_), options_(like.options_), traced_(like.traced_), callable_(compiled()) {}

// A graph that is there already is taken as it is: the user's function runs once. One that writes variables has them as state only in a
// trace of its own.
FlatCallable MapNode::compiled() const {
  FunctionOptions function{.name = options_.name};
  if (traced_) function.specs = *input().specs();
  if (!traced_ || traced_->writes) return {body_, std::move(function)};
  return {[traced = traced_](const std::vector<Tensor>& in) {
            return frontend::thread_state.tracer->inlined(*traced->graph, with_outside(in, traced->externals), {});
          },
          std::move(function)};
}

MapNode::~MapNode() = default;

std::string MapNode::arguments() const {
  return cat("parallel_calls=", options_.parallel_calls == kAutotune ? "autotune" : std::to_string(options_.parallel_calls));
}

std::optional<Specs> MapNode::specs() const { return traced_ ? std::optional(traced_->specs) : std::nullopt; }

bool MapNode::is_pure() const { return traced_ && !traced_->writes; }

std::unique_ptr<Walk> MapNode::walk(const Scope& scope) const {
  // State that is written is written in the order of the elements, by one thread.
  return std::make_unique<MapWalk>(*this, scope, traced_ && traced_->writes ? 1 : options_.parallel_calls);
}

NodeRef MapNode::over(NodeRef input) const { return std::make_shared<MapNode>(std::move(input), *this); }

NodeRef MapNode::over_batches(const NodeRef& batches, std::string* why) const {
  std::string reason;
  std::string& refusal = why ? *why : reason;
  if (options_.vectorize == Vectorize::Never) refusal = "it was asked not to";
  if (!traced_) refusal = "the types of its input are known only when it runs";
  if (traced_ && traced_->writes) refusal = "it writes variables";
  const std::optional<Specs> in = input().specs();
  for (const Spec& s : in.value_or(Specs{}))
    for (const Dim& d : s.dims)
      if (!d.is_const()) refusal = cat("the extents of its input vary: ", str(*in));
  if (in && in->empty()) refusal = "its input has no components";
  if (!refusal.empty()) return nullptr;

  std::vector<bool> batched(traced_->parameter_count, true);
  batched.resize(batched.size() + traced_->externals.size(), false);
  auto graph =
      transform::vmap(*traced_->graph, batched, batches->specs()->front().dims[0],
                      options_.vectorize == Vectorize::Always ? transform::Exactness::Tolerance : transform::Exactness::Bits, &refusal);
  if (!graph) return nullptr;
  MapOptions options = options_;
  options.name += "_batched";
  FlatFunction body = [traced = traced_,
                       graph = std::make_shared<const ir::Graph>(std::move(*graph))](const std::vector<Tensor>& in_batch) {
    return frontend::thread_state.tracer->inlined(*graph, with_outside(in_batch, traced->externals), {});
  };
  return std::make_shared<MapNode>(batches, std::move(body), std::move(options));
}

void Dataset::expect_parameters(const char* stage, size_t takes, bool open, size_t given) {
  if (given == takes || (open && given > takes)) return;
  const bool has_key = stage == std::string_view("map_random");
  const size_t components = given - (has_key ? 1 : 0), parameters = takes - (has_key && takes > 0 ? 1 : 0);
  user_error(stage, ": the function takes ", open ? "at least " : "", parameters, " components", has_key ? " behind the key" : "",
             ", an element has ", components, "\n  hint: a parameter for each, or one std::vector<Tensor> for all");
}

Dataset Dataset::map_flat(FlatFunction f, MapOptions options) const {
  return Dataset(std::make_shared<MapNode>(node_of(*this), std::move(f), std::move(options)));
}

}  // namespace tandem::data
