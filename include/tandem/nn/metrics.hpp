// Metric: a number that says how good predictions are, gathered batch by batch. Its state are variables, so that a compiled step gathers
// it.
//   Metric accuracy = "accuracy";   Metric precision = metrics::Precision({.thresholds = {0.7}});
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tandem/nn/config.hpp>
#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

namespace tandem::nn {

// What a kind of metric does. Own kinds derive from this.
class MetricBody {
 public:
  virtual ~MetricBody() = default;
  virtual std::string class_name() const = 0;
  virtual Config config() const;                               // what the constructor needs, without the name
  virtual void build(const Dims& y_true, const Dims& y_pred);  // makes the state whose shape depends on the data's; runs once
  virtual void update(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) = 0;  // the weight may be undefined
  virtual Tensor result() const = 0;
  enum class Better : uint8_t { Unknown, Higher, Lower };
  virtual Better better() const { return Better::Unknown; }
  virtual bool takes_mask() const { return false; }  // whether a mask of the predictions becomes weights
  const std::vector<Variable>& variables() const { return variables_; }

 protected:
  Variable add_variable(const std::string& name, const Shape& shape, DType dtype = DType::F32);

 private:
  std::vector<Variable> variables_;
};

// A handle: copies gather into the same state.
class Metric {
 public:
  using Formula =
      std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;  // one value an example, or more; their mean is gathered

  Metric(const char* identifier);   // NOLINT: "accuracy", "AUC", "mse", …; UserError with near names
  Metric(const std::string& name);  // NOLINT
  Metric(std::shared_ptr<MetricBody> body, std::string name = "");
  Metric(std::string name, Formula formula);
  static Metric from_config(const std::string& class_name, const Config& config);
  static Metric deserialize(const Config& saved);  // what serialize() gave

  const std::string& name() const { return name_; }
  std::string class_name() const;
  Config config() const;
  Config serialize() const;  // as Keras keeps it in a file

  Metric again() const;                        // the same with a state of its own; UserError for an own kind that is not registered
  Metric on(const std::string& output) const;  // only of this output of the model, by its layer's name; default: of each
  const std::string& output() const { return output_; }

  // "accuracy" and "crossentropy" become what fits the shapes (binary, sparse or categorical); the state is made.
  Metric resolved(const Dims& y_true, const Dims& y_pred) const;
  using Where = std::source_location;
  void update(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}, Where where = Where::current()) const;
  Tensor result() const;
  double value() const;  // of the result; the mean of one that has several numbers
  void reset() const;
  std::vector<Variable> variables() const;
  MetricBody::Better better() const;
  bool takes_mask() const;

 private:
  const std::shared_ptr<MetricBody>& body() const;
  std::string name_, output_, identifier_;  // identifier: what it was asked for by, if by a name
  Formula formula_;                         // of an own one that is a function
  std::shared_ptr<MetricBody> body_;
};

// Own metrics by name or class, so that files can keep them. A second registration of a name replaces the first.
using MetricMaker = Metric (*)(const Config& config);
void register_metric(const std::string& name, MetricMaker maker);

namespace metrics {

struct ConfusionOptions {
  std::vector<double> thresholds = {};  // default: 0.5, or none with top_k
  std::optional<int64_t> top_k = {}, class_id = {};
  std::string name = {};
};
struct AucOptions {
  int64_t num_thresholds = 200;
  std::string curve = "ROC";  // or "PR"
  std::string summation_method = "interpolation";
  std::vector<double> thresholds = {};     // instead of num_thresholds
  bool multi_label = false;                // one area a column of the predictions, and their mean
  std::optional<int64_t> num_labels = {};  // columns with multi_label; default: what comes
  std::vector<double> label_weights = {};  // of the columns
  bool from_logits = false;
  std::string name = {};
};
struct FBetaOptions {
  std::string average = {};  // "micro", "macro", "weighted"; default: one number a class
  double beta = 1;
  std::optional<double> threshold = {};
  std::string name = {};
};
struct IoUOptions {
  std::optional<int64_t> ignore_class = {};
  bool sparse_y_true = true, sparse_y_pred = true;
  std::string name = {};
};

Metric Mean(const std::string& name = "mean");  // of the predictions; targets are not looked at
Metric Sum(const std::string& name = "sum");
Metric Accuracy(const std::string& name = "accuracy");
Metric BinaryAccuracy(double threshold = 0.5, const std::string& name = "binary_accuracy");
Metric CategoricalAccuracy(const std::string& name = "categorical_accuracy");
Metric SparseCategoricalAccuracy(const std::string& name = "sparse_categorical_accuracy");
Metric TopKCategoricalAccuracy(int64_t k = 5, const std::string& name = "top_k_categorical_accuracy");
Metric SparseTopKCategoricalAccuracy(int64_t k = 5, const std::string& name = "sparse_top_k_categorical_accuracy");
Metric Precision(const ConfusionOptions& options = {});
Metric Recall(const ConfusionOptions& options = {});
Metric TruePositives(const ConfusionOptions& options = {});
Metric TrueNegatives(const ConfusionOptions& options = {});
Metric FalsePositives(const ConfusionOptions& options = {});
Metric FalseNegatives(const ConfusionOptions& options = {});
Metric AUC(const AucOptions& options = {});
Metric FBetaScore(const FBetaOptions& options = {});
Metric F1Score(const FBetaOptions& options = {});
Metric IoU(int64_t num_classes, const std::vector<int64_t>& target_class_ids, const IoUOptions& options = {});
Metric MeanIoU(int64_t num_classes, const IoUOptions& options = {});
Metric R2Score(const std::string& class_aggregation = "uniform_average", const std::string& name = "r2_score");
Metric RootMeanSquaredError(const std::string& name = "root_mean_squared_error");

}  // namespace metrics
}  // namespace tandem::nn
