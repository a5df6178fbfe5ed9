// Regularisers and constraints.
#include <cmath>

#include <tandem/ops.hpp>

#include "nn/named.hpp"

namespace tandem::nn {
namespace {

constexpr double kEpsilon = 1e-7;  // Keras's backend.epsilon()

Tensor norms_of(const Tensor& w, const std::vector<int64_t>& axis) { return sqrt(sum(square(w), axis, true)); }

void expect_not_negative(const char* kind, const char* setting, double value) {
  if (!(value >= 0) || std::isinf(value)) user_error(kind, ": ", setting, " is ", value, ", expected a number that is not negative");
}

Config axis_config(const std::vector<int64_t>& axis) { return axis.size() == 1 ? Config(axis[0]) : Config(axis); }

std::vector<int64_t> axis_of(FieldReader& r) {
  IntList axis = 0;
  r("axis", axis);
  return axis.values();
}

double number(FieldReader& r, const char* key, double value) {
  r(key, value);
  return value;
}

}  // namespace

namespace regularizers {

Regularizer L1(double l1) {
  expect_not_negative("L1", "l1", l1);
  return Regularizer("L1", {{"l1", l1}}, [=](const Tensor& w) { return l1 * sum(absolute(w)); });
}

Regularizer L2(double l2) {
  expect_not_negative("L2", "l2", l2);
  return Regularizer("L2", {{"l2", l2}}, [=](const Tensor& w) { return l2 * sum(square(w)); });
}

Regularizer L1L2(double l1, double l2) {
  expect_not_negative("L1L2", "l1", l1);
  expect_not_negative("L1L2", "l2", l2);
  return Regularizer("L1L2", {{"l1", l1}, {"l2", l2}}, [=](const Tensor& w) { return l1 * sum(absolute(w)) + l2 * sum(square(w)); });
}

Regularizer OrthogonalRegularizer(double factor, const std::string& mode) {
  expect_not_negative("OrthogonalRegularizer", "factor", factor);
  if (mode != "rows" && mode != "columns") unknown_name("mode of OrthogonalRegularizer", mode, {"rows", "columns"});
  return Regularizer("OrthogonalRegularizer", {{"factor", factor}, {"mode", mode}}, [=](const Tensor& w) {
    if (w.rank() != 2) user_error("OrthogonalRegularizer: takes a weight with 2 axes, got ", w.type_str());
    const Tensor rows = normalize(mode == "rows" ? w : transpose(w), -1);
    const int64_t size = rows.shape()[0];
    const Tensor others = matmul(rows, rows, false, true) * (1.0 - eye(size));
    const double pairs = static_cast<double>(size) * static_cast<double>(size - 1) / 2;
    return factor * 0.5 * sum(absolute(others)) / pairs;
  });
}

}  // namespace regularizers

namespace constraints {

Constraint MaxNorm(double max_value, std::vector<int64_t> axis) {
  return Constraint("MaxNorm", {{"max_value", max_value}, {"axis", axis_config(axis)}}, [=](const Tensor& w) {
    const Tensor norms = norms_of(w, axis);
    return w * (clip(norms, 0, max_value) / (kEpsilon + norms));
  });
}

Constraint NonNeg() {
  return Constraint::custom("NonNeg", [](const Tensor& w) { return maximum(w, 0); });
}

Constraint UnitNorm(std::vector<int64_t> axis) {
  return Constraint("UnitNorm", {{"axis", axis_config(axis)}}, [=](const Tensor& w) { return w / (kEpsilon + norms_of(w, axis)); });
}

Constraint MinMaxNorm(double min_value, double max_value, double rate, std::vector<int64_t> axis) {
  return Constraint("MinMaxNorm", {{"min_value", min_value}, {"max_value", max_value}, {"rate", rate}, {"axis", axis_config(axis)}},
                    [=](const Tensor& w) {
                      const Tensor norms = norms_of(w, axis);
                      const Tensor desired = rate * clip(norms, min_value, max_value) + (1 - rate) * norms;
                      return w * (desired / (kEpsilon + norms));
                    });
}

}  // namespace constraints

template <> const char* NamedTable<RegularizerKind>::what() { return "regularizer"; }
template <> const char* NamedTable<RegularizerKind>::module() { return "keras.regularizers"; }
template <> bool NamedTable<RegularizerKind>::by_name_only() { return false; }
template <> const std::vector<NamedEntry<RegularizerKind>>& NamedTable<RegularizerKind>::entries() {
  using namespace regularizers;
  static const auto& all = *new std::vector<NamedEntry<RegularizerKind>>{
      {"L1",
       {},
       [](const Config& c) {
         FieldReader r("L1", c);
         return L1(number(r, "l1", 0.01));
       }},
      {"L2",
       {},
       [](const Config& c) {
         FieldReader r("L2", c);
         return L2(number(r, "l2", 0.01));
       }},
      // By its bare name Keras gives both a hundredth; as a class it begins with nothing.
      {"L1L2",
       {"l1_l2"},
       [](const Config& c) {
         FieldReader r("L1L2", c);
         return L1L2(number(r, "l1", 0.0), number(r, "l2", 0.0));
       }},
      {"OrthogonalRegularizer",
       {"orthogonal"},
       [](const Config& c) {
         FieldReader r("OrthogonalRegularizer", c);
         std::string mode = "rows";
         r("mode", mode);
         return OrthogonalRegularizer(number(r, "factor", 0.01), mode);
       }},
  };
  return all;
}

template <> const char* NamedTable<ConstraintKind>::what() { return "constraint"; }
template <> const char* NamedTable<ConstraintKind>::module() { return "keras.constraints"; }
template <> bool NamedTable<ConstraintKind>::by_name_only() { return false; }
template <> const std::vector<NamedEntry<ConstraintKind>>& NamedTable<ConstraintKind>::entries() {
  using namespace constraints;
  static const auto& all = *new std::vector<NamedEntry<ConstraintKind>>{
      {"MaxNorm",
       {},
       [](const Config& c) {
         FieldReader r("MaxNorm", c);
         return MaxNorm(number(r, "max_value", 2), axis_of(r));
       }},
      {"NonNeg", {}, [](const Config&) { return NonNeg(); }},
      {"UnitNorm",
       {},
       [](const Config& c) {
         FieldReader r("UnitNorm", c);
         return UnitNorm(axis_of(r));
       }},
      {"MinMaxNorm",
       {},
       [](const Config& c) {
         FieldReader r("MinMaxNorm", c);
         const double low = number(r, "min_value", 0), high = number(r, "max_value", 1), rate = number(r, "rate", 1);
         return MinMaxNorm(low, high, rate, axis_of(r));
       }},
  };
  return all;
}

template class Named<RegularizerKind>;
template class Named<ConstraintKind>;

}  // namespace tandem::nn
