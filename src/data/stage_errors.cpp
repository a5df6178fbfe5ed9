// ignore_errors and options: stages that let elements through.
#include <cstdio>

#include "base/text.hpp"
#include "data/node.hpp"

namespace tandem::data {
namespace {

class IgnoreNode final : public Node {
 public:
  IgnoreNode(NodeRef input, bool log_warning) : Node("ignore_errors", {std::move(input)}), log_warning(log_warning) {}
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    return n > 0 ? kUnknown : n;
  }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
  const bool log_warning;
};

class IgnoreWalk final : public InputWalk {
 public:
  IgnoreWalk(const IgnoreNode& node, const Scope& scope) : InputWalk(node, scope), log_warning_(node.log_warning), stop_(scope.stop) {}

 protected:
  bool next(Element& element) override {
    for (;;) {
      if (stop_.stop_requested()) throw Cancelled{};  // an input that fails for ever
      try {
        return input().pull(element);
      } catch (const InternalError&) {
        throw;
      } catch (const std::exception& e) {
        stage().errors.fetch_add(1, std::memory_order_relaxed);
        if (log_warning_) std::fprintf(stderr, "tandem: ignored: %s\n", e.what());
      }
    }
  }

 private:
  const bool log_warning_;
  const std::stop_token stop_;
};

std::unique_ptr<Walk> IgnoreNode::walk(const Scope& scope) const { return std::make_unique<IgnoreWalk>(*this, scope); }

// Has no flow of its own.
class OptionsNode final : public Node {
 public:
  OptionsNode(NodeRef input, PipelineOptions options) : Node("options", {std::move(input)}), options_(options) {}
  std::unique_ptr<Walk> walk(const Scope& scope) const override { return input().walk(scope); }
  const Rows* rows() const override { return input().rows(); }
  std::unique_ptr<IndexFlow> index_walk(const Scope& scope) const override { return input().index_walk(scope); }
  const PipelineOptions* pipeline_options() const override { return &options_; }

 private:
  const PipelineOptions options_;
};

}  // namespace

Dataset Dataset::ignore_errors(bool log_warning) const { return Dataset(std::make_shared<IgnoreNode>(node_of(*this), log_warning)); }

Dataset Dataset::options(PipelineOptions options) const {
  settings_of(options);  // refuses wrong ones here and not in a walk
  return Dataset(std::make_shared<OptionsNode>(node_of(*this), options));
}

}  // namespace tandem::data
