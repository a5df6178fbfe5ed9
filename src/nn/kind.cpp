#include "nn/kind.hpp"

#include <algorithm>

#include <tandem/ops.hpp>

#include "base/names.hpp"
#include "nn/names.hpp"

namespace tandem::nn {

void expect_rank(const Spec& input, int rank, const char* axes) {
  if (static_cast<int>(input.dims.size()) != rank)
    user_error("takes an input with ", rank, " axes, ", axes, ", got ", input.str(), " with ", input.dims.size());
}

void expect_rank_at_least(const Spec& input, int rank, const char* axes) {
  if (static_cast<int>(input.dims.size()) < rank)
    user_error("takes an input with at least ", rank, " axes, ", axes, ", got ", input.str(), " with ", input.dims.size());
}

int64_t known_extent(const Spec& input, int64_t axis, const char* needed_for) {
  const auto at = static_cast<size_t>(normalize_axis(axis, static_cast<int>(input.dims.size()), "axis"));
  if (!input.dims[at].is_const())
    user_error("the extent of axis ", axis, " of ", input.str(), " must be known for ", needed_for, "\n  hint: give it a number in Input");
  return input.dims[at].value();
}

void expect_positive(const char* kind, const char* setting, int64_t value) {
  if (value < 1) user_error(kind, ": ", setting, " is ", value, ", expected at least 1");
}

void expect_rate(const char* kind, const char* setting, double value) {
  if (!(value >= 0 && value <= 1)) user_error(kind, ": ", setting, " is ", value, ", expected 0 to 1");
}

void expect_one_of(const char* kind, const char* setting, const std::string& value, const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) unknown_name(cat(setting, " of ", kind), value, allowed);
}

std::vector<int64_t> for_each_axis(const char* kind, const char* setting, const IntList& list, size_t axes, int64_t least) {
  std::vector<int64_t> values = list.values();
  if (values.size() == 1) values.resize(axes, values.front());
  if (values.size() != axes) user_error(kind, ": ", setting, " has ", values.size(), " numbers, expected 1 or ", axes);
  for (const int64_t v : values)
    if (v < least) user_error(kind, ": ", setting, " has ", v, ", expected at least ", least);
  return values;
}

std::vector<int64_t> axes_without(const std::vector<int64_t>& axes, int rank) {
  std::vector<int64_t> rest;
  for (int64_t i = 0; i < rank; ++i)
    if (std::none_of(axes.begin(), axes.end(), [&](int64_t a) { return normalize_axis(a, rank, "axis") == i; })) rest.push_back(i);
  return rest;
}

void expect_data_format(const char* kind, const std::string& data_format) {
  expect_one_of(kind, "data_format", data_format, {"channels_last", "channels_first"});
}

const char* spatial_axes(int count, bool channels_first) {
  static constexpr const char* kLast[] = {"[batch, steps, channels]", "[batch, height, width, channels]",
                                          "[batch, depth, height, width, channels]"};
  static constexpr const char* kFirst[] = {"[batch, channels, steps]", "[batch, channels, height, width]",
                                           "[batch, channels, depth, height, width]"};
  return (channels_first ? kFirst : kLast)[count - 1];
}

void expect_window(const Spec& input, const std::vector<int64_t>& window, bool channels_first) {
  const auto misfit = [&](size_t first_axis) -> std::optional<size_t> {
    for (size_t i = 0; i < window.size(); ++i) {
      const Dim& extent = input.dims[first_axis + i];
      if (extent.is_const() && extent.value() < window[i]) return i;
    }
    return {};
  };
  const size_t first_axis = channels_first ? 2 : 1, other_axis = channels_first ? 1 : 2;
  const std::optional<size_t> axis = misfit(first_axis);
  if (!axis) return;
  const std::string got = cat("a window of [", joined(window), "] does not fit into ", input.str(), ", whose axes are ",
                              spatial_axes(static_cast<int>(window.size()), channels_first), " (", window[*axis], " > ",
                              input.dims[first_axis + *axis].str(), ")");
  if (misfit(other_axis)) user_error(got, "\n  hint: padding = \"same\" pads the input");
  user_error(got, "\n  hint: data_format = \"", channels_first ? "channels_last" : "channels_first", "\" takes ",
             spatial_axes(static_cast<int>(window.size()), !channels_first), ", as the input seems to be");
}

Tensor channels_last(const Tensor& x, bool channels_first) { return channels_first ? moveaxis(x, 1, -1) : x; }
Tensor as_given(const Tensor& y, bool channels_first) { return channels_first ? moveaxis(y, -1, 1) : y; }

}  // namespace tandem::nn
