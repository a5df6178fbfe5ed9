// prefetch: elements are made by a thread of its own before they are asked for.
#include <tandem/strings.hpp>

#include "base/text.hpp"
#include "data/ahead.hpp"
#include "data/node.hpp"
#include "frontend/memory.hpp"
#include "frontend/tensor_impl.hpp"

namespace tandem::data {
namespace {

enum class Where : uint8_t { Host, Device };

// Dense memory that the device itself gave: mapped files are read here, and not when the step first looks at them.
void move_to_device(Element& element, int32_t device) {
  const engine::Engine& engine = engine::default_engine();
  for (Tensor& t : element) {
    if (is_string(t)) continue;  // on the host wherever they are
    const engine::TensorRef& r = frontend::numbers_of(t, "prefetch_to_device");
    if (!engine.devices().has_host_memory(device)) {  // goes up while the step before still runs
      t = frontend::concrete(engine.at(r, device));
      continue;
    }
    if (!frontend::is_borrowed(r) && r.layout.is_dense() && reinterpret_cast<uintptr_t>(r.data()) % codegen::kAlignment == 0) continue;
    t = frontend::concrete(frontend::dense_copy(r));
  }
}

class PrefetchNode final : public Node {
 public:
  PrefetchNode(NodeRef input, int64_t elements, Where where)
      : Node(where == Where::Host ? "prefetch" : "prefetch_to_device", {std::move(input)}),
        elements(elements),
        where(where),
        device(engine::default_engine().devices().for_new(frontend::thread_state.device)) {}
  std::string arguments() const override { return elements == kAutotune ? "autotune" : std::to_string(elements); }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  const int64_t elements;
  const Where where;
  const int32_t device;  // of the scope that it is made in, or the default one
};

class PrefetchWalk final : public Walk {
 public:
  PrefetchWalk(const PrefetchNode& node, const Scope& scope)
      : Walk(scope.stage(node)), node_(node), ahead_(stage(), *scope.context, scope.stop) {
    set_capacity(stage(), *scope.context, node.elements);
    input_ = node.input().walk(scope.with(ahead_.token()).input(0));
    Ahead::Work work{.pull = [this](Element& e) { return input_->pull(e); }};
    if (node.where == Where::Device) work.compute = [device = node.device](Element& e) { move_to_device(e, device); };
    ahead_.start(std::move(work));
  }

 protected:
  bool next(Element& element) override { return ahead_.next(element); }
  void save(Writer& w) override {
    ahead_.save(w, [&] { input_->save_to(w); });
  }
  void restore(Reader& r) override {
    ahead_.restore(r, node_.specs(), [&] { input_->restore_from(r); });
  }

 private:
  const PrefetchNode& node_;
  std::unique_ptr<Walk> input_;  // outlives the thread that reads it
  Ahead ahead_;
};

std::unique_ptr<Walk> PrefetchNode::walk(const Scope& scope) const { return std::make_unique<PrefetchWalk>(*this, scope); }

Dataset prefetched(const Dataset& dataset, int64_t elements, Where where) {
  if (elements != kAutotune && elements < 0) user_error("prefetch: the number of elements is ", elements, ", it must not be negative");
  if (elements == 0) return dataset;
  return Dataset(std::make_shared<PrefetchNode>(node_of(dataset), elements, where));
}

}  // namespace

Dataset Dataset::prefetch(int64_t elements) const { return prefetched(*this, elements, Where::Host); }
Dataset Dataset::prefetch_to_device(int64_t elements) const { return prefetched(*this, elements, Where::Device); }

}  // namespace tandem::data
