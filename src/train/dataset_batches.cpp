// A dataset as the batches of a training loop.
#include <tandem/train.hpp>

#include "base/text.hpp"

namespace tandem::train {
namespace {

class DatasetBatches final : public Batches {
 public:
  DatasetBatches(data::Dataset dataset, size_t components) : dataset_(std::move(dataset)) {
    specs_ = dataset_.specs();
    if (specs_.size() < components)
      user_error("training: elements of the dataset have ", specs_.size(), " components, the model needs at least ", components);
    if (components) specs_.resize(components);
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].dims.empty())
        user_error("training: component ", i, " of the dataset is ", specs_[i].str(), " and has no batch axis\n  hint: dataset.batch(32)");
      specs_[i].dims[0] = Dim::symbol("b");
    }
  }
  std::optional<int64_t> steps() const override {
    const int64_t count = dataset_.cardinality();
    return count >= 0 ? std::optional(count) : known_steps_;
  }
  std::optional<int64_t> rows() const override { return {}; }
  void begin() override {
    iterator_.emplace(dataset_.iterate());
    done_ = 0;
  }
  bool next() override {
    if (!iterator_->next(element_)) {
      known_steps_ = done_;
      return false;
    }
    ++done_;
    batch_.clear();
    for (size_t i = 0; i < specs_.size(); ++i) batch_.push_back(&element_[i]);
    return true;
  }
  std::string place(int64_t row) const override { return cat("row ", row, " of batch ", done_ - 1); }
  std::string save() const override { return iterator_ ? iterator_->save() : ""; }
  void restore(const std::string& position) override {
    begin();
    if (!position.empty()) iterator_->restore(position);
  }

 private:
  const data::Dataset dataset_;
  std::optional<data::Iterator> iterator_;
  data::Element element_;
  int64_t done_ = 0;
  std::optional<int64_t> known_steps_;
};

}  // namespace

std::unique_ptr<Batches> batches_of(const data::Dataset& dataset, size_t components) {
  return std::make_unique<DatasetBatches>(dataset, components);
}

}  // namespace tandem::train
