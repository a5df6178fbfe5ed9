// Losses that look at more than one prediction at a time: CTC at the steps of a sequence, Circle at the examples of a batch.
#include <tandem/control.hpp>
#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "nn/labels.hpp"
#include "nn/losses_table.hpp"

namespace tandem::nn {
namespace {
constexpr double kImpossible = -1e30;  // as a logarithm: exp gives 0, and sums of two of them are still numbers
}

// Graves et al., "Connectionist temporal classification", 2006, section 4.1, in logarithms. Class 0 is the blank and fills up labels.
Tensor ctc_loss(const Tensor& labels, const Tensor& logits, const Config&) {
  if (labels.rank() != 2 || logits.rank() != 3)
    user_error("loss ctc: targets are ", labels.type_str(), ", predictions are ", logits.type_str(),
               ", expected [batch, labels] and [batch, steps, classes]");
  const Dim count = labels.dims()[1];
  if (!count.is_const() || count.is(0)) user_error("loss ctc: targets are ", labels.type_str(), ", the number of labels must be known");
  const Tensor y = checked_classes(labels, logits.dims().back(), "loss ctc").cast(DType::I32);
  const Dim batch = y.dims()[0];
  const int64_t places = 2 * count.value() + 1;  // a blank before each label and behind the last
  const Tensor blank = Tensor::zeros({batch, 1}, DType::I32);
  const Tensor with_blanks =
      concatenate({stack({Tensor::zeros(y.dims(), DType::I32), y}, -1).reshape({batch, 2 * count.value()}), blank}, -1);

  // A label may follow the one before it without a blank between them when the two differ. Labels have the odd places: by its class alone
  // a label 0 within the others would be taken for a blank.
  const Tensor two_before = concatenate({blank, blank, with_blanks(Slice(_, _), Slice(_, -2))}, -1);
  const Tensor may_skip = logical_and(iota({1, places}, 1) % 2 == 1, with_blanks != two_before);
  const auto shifted = [&](const Tensor& paths, int64_t by) {
    const Tensor none = Tensor::full({batch, by}, kImpossible, DType::F32);
    return by < places ? concatenate({none, paths(Slice(_, _), Slice(_, -by))}, -1) : none(Slice(_, _), Slice(0, places));
  };
  const Tensor steps = take_along_axis(log_softmax(logits), with_blanks.expand_dims(1), -1).transpose({1, 0, 2});  // [step, batch, place]
  const Tensor is_start = iota({1, places}, 1) == 0;
  // Before the first step every path is in front of the first blank: from there it goes to that blank or to the first label.
  const Tensor begin = where(is_start, Tensor::zeros({batch, places}), kImpossible);
  const auto next = [&](const Tensor& paths, const Tensor& step) {
    const Tensor skipped = where(may_skip, shifted(paths, 2), kImpossible);
    return logaddexp(logaddexp(paths, shifted(paths, 1)), skipped) + step;
  };
  const Tensor end = scan([&](Tensor paths, Tensor step) { return std::pair(next(paths, step), Tensor::scalar(0.f)); }, begin, steps).first;

  // A path ends at the last label or at the blank behind it.
  const Tensor last = 2 * sum((y != 0).cast(DType::I32), -1, true);
  const Tensor at_blank = take_along_axis(end, last, -1);
  const Tensor at_label = where(last > 0, take_along_axis(end, maximum(last - 1, 0), -1), kImpossible);
  return -logaddexp(at_blank, at_label).squeeze(-1);
}

// Sun et al., "Circle loss: a unified perspective of pair similarity optimization", 2020, on cosine distances as Keras has it.
Tensor circle_loss(const Tensor& labels, const Tensor& embeddings, const Config& c) {
  if (embeddings.rank() != 2)
    user_error("loss circle: predictions are ", embeddings.type_str(), ", expected [batch, embedding] rows of length 1");
  const double gamma = c["gamma"], margin = c["margin"];
  const Tensor y = labels.flatten().cast(DType::I32), p = embeddings;
  const Tensor distances = maximum(1 - matmul(p, p.transpose()), 0);
  Tensor is_same = y.expand_dims(1) == y.expand_dims(0);
  const Tensor differs = !is_same;
  if (c["remove_diagonal"].get<bool>()) {
    const Dim n = p.dims()[0];
    is_same = logical_and(is_same, iota({n, 1}, 0) != iota({1, n}, 1));
  }
  const Tensor near = -gamma * maximum(margin + distances, 0) * (margin - distances);
  const Tensor far = gamma * maximum(1 + margin - distances, 0) * (1 - margin - distances);
  return softplus(logsumexp(where(is_same, near, kImpossible), 1) + logsumexp(where(differs, far, kImpossible), 1));
}

}  // namespace tandem::nn
