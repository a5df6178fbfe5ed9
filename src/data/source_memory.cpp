// Sources in memory: slices, one element, ranges, a generator.
#include "base/text.hpp"
#include "data/sources.hpp"

namespace tandem::data {
namespace {

// --- rows in order -------------------------------------------------------------------------------------------------------------

class CountFlow final : public IndexFlow {
 public:
  CountFlow(Stage& stage, int64_t count) : IndexFlow(stage), count_(count) {}

 protected:
  bool next(int64_t& item) override {
    if (at_ == count_) return false;
    item = at_++;
    return true;
  }
  void save(Writer& w) override { w.put(at_); }
  void restore(Reader& r) override { at_ = r.integer(0, count_); }

 private:
  const int64_t count_;
  int64_t at_ = 0;
};

class RowsSource final : public RowNode {
 public:
  RowsSource(std::string name, std::string from, Rows rows)
      : RowNode(std::move(name), {}), from_(std::move(from)), rows_(std::move(rows)) {}
  std::string arguments() const override { return cat(from_, from_.empty() ? "" : ", ", rows_.count(), " x ", str(rows_.specs())); }
  std::optional<Specs> specs() const override { return rows_.specs(); }
  int64_t cardinality() const override { return rows_.count(); }
  const Rows* rows() const override { return &rows_; }
  std::unique_ptr<IndexFlow> index_walk(const Scope& scope) const override {
    if (rows_.watch) scope.context->files.add(rows_.watch->health);
    return std::make_unique<CountFlow>(scope.stage(*this), rows_.count());
  }

 protected:
  std::unique_ptr<Walk> element_walk(const Scope&) const override { internal_error("rows are always there"); }

 private:
  const std::string from_;
  const Rows rows_;
};

// --- range, one element --------------------------------------------------------------------------------------------------------

// Elements that can be computed from their number.
class NumberedNode final : public Node {
 public:
  NumberedNode(std::string name, std::string arguments, Specs specs, int64_t count, std::function<void(int64_t, Element&)> at)
      : Node(std::move(name), {}), at(std::move(at)), count(count), arguments_(std::move(arguments)), specs_(std::move(specs)) {}
  std::string arguments() const override { return arguments_; }
  std::optional<Specs> specs() const override { return specs_; }
  int64_t cardinality() const override { return count; }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  const std::function<void(int64_t, Element&)> at;
  const int64_t count;

 private:
  const std::string arguments_;
  const Specs specs_;
};

class NumberedWalk final : public Walk {
 public:
  NumberedWalk(const NumberedNode& node, const Scope& scope) : Walk(scope.stage(node)), node_(node) {}

 protected:
  bool next(Element& element) override {
    if (number_ == node_.count) return false;
    node_.at(number_++, element);
    return true;
  }
  void save(Writer& w) override { w.put(number_); }
  void restore(Reader& r) override { number_ = r.integer(0, node_.count); }

 private:
  const NumberedNode& node_;
  int64_t number_ = 0;
};

std::unique_ptr<Walk> NumberedNode::walk(const Scope& scope) const { return std::make_unique<NumberedWalk>(*this, scope); }

// --- generator ---------------------------------------------------------------------------------------------------------------------

class GeneratorNode final : public Node {
 public:
  GeneratorNode(std::function<Dataset::Generate()> start, std::optional<Specs> specs, int64_t cardinality)
      : Node("generator", {}), start(std::move(start)), specs_(std::move(specs)), cardinality_(cardinality) {}
  std::string arguments() const override { return specs_ ? str(*specs_) : ""; }
  std::optional<Specs> specs() const override { return specs_; }
  int64_t cardinality() const override { return cardinality_; }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  const std::function<Dataset::Generate()> start;

 private:
  const std::optional<Specs> specs_;
  const int64_t cardinality_;
};

class GeneratorWalk final : public Walk {
 public:
  GeneratorWalk(const GeneratorNode& node, const Scope& scope) : Walk(scope.stage(node)), node_(node), specs_(node.specs()) {}

 protected:
  bool next(Element& element) override {
    if (ended_) return false;
    if (!generate_ && !(generate_ = node_.start())) user_error("the generator's start gave no function");
    ++calls_;
    element.clear();
    if (!generate_(element)) {
      ended_ = true;
      return false;
    }
    if (specs_) check_element(*specs_, element);
    return true;
  }
  void save(Writer& w) override {
    w.put(calls_);
    w.put(ended_);
  }
  // Its position is known to nobody but itself: it is asked as often as before.
  void restore(Reader& r) override {
    const int64_t known = node_.cardinality();  // it may be asked once more, for its end
    const int64_t calls = known >= 0 && known < INT64_MAX / 2 ? r.integer(0, known + 1) : r.count();
    ended_ = r.boolean();
    if (ended_ || calls == 0) return;
    generate_ = node_.start();
    for (Element passed; calls_ < calls; ++calls_) {
      bool has_more = true;
      try {
        has_more = generate_(passed);
      } catch (...) {  // as it did the first time
      }
      if (!has_more) user_error("restore: the generator ended after ", calls_, " of ", calls, " elements");
    }
  }

 private:
  const GeneratorNode& node_;
  const std::optional<Specs> specs_;
  Dataset::Generate generate_;
  int64_t calls_ = 0;
  bool ended_ = false;
};

std::unique_ptr<Walk> GeneratorNode::walk(const Scope& scope) const { return std::make_unique<GeneratorWalk>(*this, scope); }

}  // namespace

NodeRef rows_source(std::string name, std::string from, Rows rows) {
  return std::make_shared<RowsSource>(std::move(name), std::move(from), std::move(rows));
}

NodeRef numbered_source(std::string name, std::string arguments, Specs specs, int64_t count, std::function<void(int64_t, Element&)> at) {
  return std::make_shared<NumberedNode>(std::move(name), std::move(arguments), std::move(specs), count, std::move(at));
}

Dataset Dataset::from_slices(std::vector<Tensor> tensors) {
  return Dataset(rows_source("from_slices", "", Rows(std::move(tensors), "from_slices")));
}

Dataset Dataset::from_tensors(Element element) {
  Specs specs;
  for (const Tensor& t : element) specs.push_back({t.dtype(), t.dims()});
  std::string arguments = data::str(specs);
  return Dataset(numbered_source("from_tensors", std::move(arguments), std::move(specs), 1,
                                 [element = std::move(element)](int64_t, Element& e) { e = element; }));
}

Dataset Dataset::range(int64_t start, int64_t stop, int64_t step) {
  if (step == 0) user_error("range: the step is 0");
  const bool is_empty = step > 0 ? start >= stop : start <= stop;
  const uint64_t span =
      step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start) : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t magnitude = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const uint64_t count = is_empty ? 0 : (span - 1) / magnitude + 1;
  if (count > INT64_MAX) user_error("range: ", count, " elements are more than can be counted");
  return Dataset(
      std::make_shared<NumberedNode>("range", cat(start, ", ", stop, ", ", step), Specs{{DType::I64, {}}}, static_cast<int64_t>(count),
                                     [start, step](int64_t i, Element& e) { e.assign(1, Tensor::scalar<int64_t>(start + i * step)); }));
}

Dataset Dataset::generator(std::function<Generate()> start, std::vector<Spec> specs, int64_t cardinality) {
  if (!start) user_error("generator: no function");
  return Dataset(std::make_shared<GeneratorNode>(std::move(start), renamed(specs), cardinality));
}

Dataset Dataset::generator_untyped(std::function<Generate()> start, int64_t cardinality) {
  if (!start) user_error("generator: no function");
  return Dataset(std::make_shared<GeneratorNode>(std::move(start), std::nullopt, cardinality));
}

}  // namespace tandem::data
