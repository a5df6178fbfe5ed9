#include "training.hpp"

#include <limits>
#include <random>
#include <utility>

#include "formula.hpp"

namespace bench {
namespace {

td::Variable zero_state(const td::Shape& shape) { return td::Variable(td::Tensor::zeros(shape), {.trainable = false}); }

td::Tensor loss_of(Loss loss, const td::Tensor& y, const td::Tensor& output) {
  switch (loss) {
    case Loss::Binary: return td::mean(td::binary_crossentropy(y, output));
    case Loss::ClassProbabilities: return td::mean(td::sparse_categorical_crossentropy(y, output));
    case Loss::ClassLogits: return td::mean(td::sparse_categorical_crossentropy(y, output, true));
  }
  throw td::InternalError("a loss without a formula");
}

td::Tensor accuracy_of(Loss loss, const td::Tensor& y, const td::Tensor& output) {
  const td::Tensor right = loss == Loss::Binary ? (output > 0.5f) == (y > 0) : output.argmax(-1) == y;
  return td::mean(right.cast(td::DType::F32));
}

// As the library's Adam does it.
void move_towards(const td::Tensor& x, const td::Variable& average, float beta) {
  const td::Tensor moved = average + (x - average) * (1 - beta);
  average.assign(td::where(td::absolute(moved) < std::numeric_limits<float>::min(), 0.0f, moved));
}

}  // namespace

// --- Adam: Kingma and Ba, "Adam: a method for stochastic optimization", 2015 ----------------------------------------------------------

Adam::Adam(std::vector<td::Variable> variables) : variables_(std::move(variables)), step_(zero_state({})) {
  for (const td::Variable& v : variables_) {
    momentums_.push_back(zero_state(v.shape()));
    velocities_.push_back(zero_state(v.shape()));
  }
}

void Adam::apply(const std::vector<td::Tensor>& gradients) const {
  constexpr float kRate = 1e-3f, kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-7f;
  step_.assign_add(1);
  const td::Tensor rate = kRate * td::sqrt(1 - td::power(kBeta2, step_)) / (1 - td::power(kBeta1, step_));
  for (size_t i = 0; i < variables_.size(); ++i) {
    const td::Tensor& g = gradients[i];
    const td::Variable &m = momentums_[i], &v = velocities_[i];
    move_towards(g, m, kBeta1);
    move_towards(td::square(g), v, kBeta2);
    variables_[i].assign_sub(m * rate / (td::sqrt(v) + kEpsilon));
  }
}

// --- data ------------------------------------------------------------------------------------------------------------------------------

Examples::Examples(const Work& work, int64_t steps, Source source) : batch_(work.batch), x_shape_(work.x), y_shape_(work.y) {
  const auto count = static_cast<size_t>(work.batch * steps);
  const size_t x_count = count * static_cast<size_t>(td::element_count(work.x));
  const size_t y_count = count * static_cast<size_t>(td::element_count(work.y));
  std::mt19937 random(0);
  const auto fill = [&](auto& rows, size_t n, const char* name, auto of_bits) {
    rows.resize(n);
    const Formula formula(name);
    for (size_t i = 0; i < n; ++i) rows[i] = of_bits(source == Source::Formula ? formula.bits(i) : static_cast<uint32_t>(random() >> 8));
  };
  const auto below = [](int64_t limit) { return [limit](uint32_t bits) { return static_cast<int32_t>(bits % limit); }; };
  if (work.words)
    fill(words_, x_count, "x", below(work.words));
  else
    fill(floats_, x_count, "x", [](uint32_t bits) { return static_cast<float>(bits) * 0x1p-24f; });
  fill(classes_, y_count, "y", below(work.classes));
}

template <class T> td::Tensor Examples::batch(const std::vector<T>& rows, const td::Shape& example, int64_t step) const {
  td::Shape shape{batch_};
  for (const int64_t extent : example) shape.push_back(extent);
  return td::Tensor::view(rows.data() + step * td::element_count(shape), td::DTypeOf<T>::value, shape);
}

td::Tensor Examples::x(int64_t step) const { return words_.empty() ? batch(floats_, x_shape_, step) : batch(words_, x_shape_, step); }
td::Tensor Examples::y(int64_t step) const { return batch(classes_, y_shape_, step); }

// --- a step ----------------------------------------------------------------------------------------------------------------------------

Trainer::Trainer(const Work& work, const Weights& weights, TrainerOptions options)
    : work_(work),
      variables_(weights.trainables()),
      options_(options),
      adam_(variables_),
      loss_sum_(zero_state({})),
      accuracy_sum_(zero_state({})),
      step_count_(zero_state({})),
      step_([this](const td::Tensor& x, const td::Tensor& y) { return trace_step(x, y); },
            td::FunctionOptions{.name = "step", .precision = options.precision}) {
  if (options.precision == td::Precision::MixedFloat16) loss_scale_.emplace();
}

td::Tensor Trainer::trace_step(const td::Tensor& x, const td::Tensor& y) {
  Forward forward{.random = random_, .dropout = options_.dropout};
  td::Tape tape;
  const td::Tensor output = work_.model(x, forward);
  const td::Tensor loss = loss_of(work_.loss, y, output);
  if (loss_scale_)
    loss_scale_->apply(tape.gradients(loss_scale_->scale(loss), variables_), [&](const auto& gradients) { adam_.apply(gradients); });
  else
    adam_.apply(tape.gradients(loss, variables_));
  loss_sum_.assign_add(loss);
  accuracy_sum_.assign_add(accuracy_of(work_.loss, y, output));
  step_count_.assign_add(1);
  flops_ = forward.flops;
  return loss;
}

Trainer::Metrics Trainer::take_metrics() const {
  const double count = step_count_.value().item<double>();
  const Metrics metrics{loss_sum_.value().item<double>() / count, accuracy_sum_.value().item<double>() / count};
  for (const td::Variable& v : {loss_sum_, accuracy_sum_, step_count_}) v.assign(0);
  return metrics;
}

}  // namespace bench
