#include "data/parallel.hpp"

#include "base/text.hpp"

namespace tandem::data {

ParallelWalk::ParallelWalk(const Node& node, const Scope& scope, ParallelOptions options, std::nullptr_t)
    : Walk(scope.stage(node)), description_(node) {
  if (options.calls == 1) return;
  Stage& stage = this->stage();
  set_parallel(stage, *scope.context, options.calls);
  set_capacity(stage, *scope.context, 0);  // each thread works on one while another of its results waits to be taken
  ahead_.emplace(stage, *scope.context, scope.stop);
  ahead_->start({.pull = [this](Element& e) { return pull(e); },
                 .compute = [this](Element& e) { compute(e); },
                 .deterministic = options.deterministic && scope.context->settings.deterministic});
}

ParallelWalk::ParallelWalk(const Node& node, const Scope& scope, ParallelOptions options) : ParallelWalk(node, scope, options, nullptr) {
  input_ = node.input().walk(input_scope(scope).input(0));
}

Scope ParallelWalk::input_scope(const Scope& scope) const { return ahead_ ? scope.with(ahead_->token()) : scope; }

bool ParallelWalk::next(Element& element) {
  if (ahead_) return ahead_->next(element);
  if (!pull(element)) return false;
  compute(element);
  return true;
}

void ParallelWalk::save_input(Writer& w) { input_->save_to(w); }
void ParallelWalk::restore_input(Reader& r) { input_->restore_from(r); }

void ParallelWalk::save(Writer& w) {
  w.put(ahead_.has_value());
  if (ahead_)
    ahead_->save(w, [&] { save_input(w); });
  else
    save_input(w);
}

void ParallelWalk::restore(Reader& r) {
  if (r.boolean() != ahead_.has_value()) user_error("restore: the state was saved with threads in ", stage().name, ", or without");
  if (ahead_)
    ahead_->restore(r, description_.specs(), [&] { restore_input(r); });
  else
    restore_input(r);
}

}  // namespace tandem::data
