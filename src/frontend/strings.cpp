#include "frontend/strings.hpp"

#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "frontend/apply.hpp"
#include "frontend/string_ops.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/thread_state.hpp"

namespace tandem {

using namespace frontend;

Tensor from_strings(std::vector<std::string> values, const Shape& shape) {
  if (static_cast<int64_t>(values.size()) != element_count(shape))
    user_error("from_strings: ", values.size(), " strings for the shape ", shape, " of ", element_count(shape));
  return Tensor::of_impl(new StringTensor(shape, std::make_shared<const std::vector<std::string>>(std::move(values)), 0));
}

Tensor from_string(std::string value) {
  std::vector<std::string> one;
  one.push_back(std::move(value));
  return from_strings(std::move(one), {});
}

bool is_string(const Tensor& t) { return strings(t) != nullptr; }

std::span<const std::string> strings_of(const Tensor& t) {
  defined(t);
  const StringTensor* s = strings(t);
  if (!s) user_error("strings are wanted where a tensor ", t.type_str(), " was given");
  return std::span(*s->storage).subspan(s->first, static_cast<size_t>(element_count(s->shape)));
}

namespace frontend {
namespace {

// Their results are elements of their operands.
constexpr std::string_view kMoves[] = {"reshape",
                                       "expand_dims",
                                       "squeeze",
                                       "transpose",
                                       "swapaxes",
                                       "moveaxis",
                                       "broadcast_to",
                                       "flip",
                                       "roll",
                                       "tile",
                                       "repeat",
                                       "rot90",
                                       "concatenate",
                                       "stack",
                                       "split",
                                       "unstack",
                                       "take",
                                       "take_clipped",
                                       "take_along_axis",
                                       "gather_nd",
                                       "slice",
                                       "dynamic_slice",
                                       "dynamic_update_slice",
                                       "where",
                                       "sort",
                                       "identity",
                                       "stop_gradient",
                                       "full",
                                       "pad",
                                       "pad_mode"};
// Their results are numbers that depend on which strings are equal, or come first, alone.
constexpr std::string_view kCompares[] = {"equal",   "not_equal",     "less",    "less_equal",
                                          "greater", "greater_equal", "argsort", "searchsorted"};

bool contains(std::span<const std::string_view> names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

// All strings of one call, and the number that stands for each: its rank, so that an order of numbers is the order of the strings.
class Numbers {
 public:
  explicit Numbers(std::span<const Operand* const> operands) {
    for (const Operand* o : operands)
      if (o->kind() == Operand::Kind::Tensor && is_string(o->tensor()))
        for (const std::string& s : strings_of(o->tensor())) all_.push_back(&s);
  }
  // For rows that compare. Rows that move take positions, which cost nothing.
  void rank() {
    std::vector<size_t> order(all_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, [&](size_t a, size_t b) { return *all_[a] < *all_[b]; });
    std::vector<const std::string*> sorted;
    ranks_.resize(all_.size());
    for (const size_t i : order) {
      if (sorted.empty() || *sorted.back() != *all_[i]) sorted.push_back(all_[i]);
      ranks_[i] = static_cast<int64_t>(sorted.size()) - 1;
    }
    all_ = std::move(sorted);
  }
  Tensor of(const Tensor& t) {
    const auto count = static_cast<size_t>(t.size());
    std::vector<int64_t> numbers(count);
    if (ranks_.empty())
      std::iota(numbers.begin(), numbers.end(), static_cast<int64_t>(used_));
    else
      std::copy_n(ranks_.begin() + static_cast<ptrdiff_t>(used_), count, numbers.begin());
    used_ += count;
    return Tensor::from(numbers, t.shape());
  }
  Tensor strings(const Tensor& numbers) const {
    std::vector<std::string> found;
    for (const int64_t n : numbers.to_vector<int64_t>()) found.push_back(*all_.at(static_cast<size_t>(n)));
    return from_strings(std::move(found), numbers.shape());
  }

 private:
  std::vector<const std::string*> all_;
  std::vector<int64_t> ranks_;
  size_t used_ = 0;
};

}  // namespace

void refuse_strings(std::string_view what, const Tensor& t) {
  user_error(what, ": computes with numbers and was given ", t.type_str(),
             "\n  hint: tf.strings has what can be done with strings; to_number makes numbers of them");
}

bool has_strings(std::span<const Operand* const> operands) {
  return std::ranges::any_of(operands, [](const Operand* o) { return o->kind() == Operand::Kind::Tensor && is_string(o->tensor()); });
}

std::vector<Tensor> call_on_strings(const ir::OpDef& op, std::span<const Operand* const> operands, const ir::Attrs& attrs, Location where) {
  const bool moves = contains(kMoves, op.name) || (op.name == "scatter" && (!attrs.has("mode") || attrs.get<std::string>("mode") == "set"));
  const Operand* first = nullptr;
  for (const Operand* o : operands)
    if (o->kind() == Operand::Kind::Tensor && is_string(o->tensor()) && !first) first = o;
  if (op.name == "add" && operands.size() == 2 &&
      std::ranges::all_of(operands, [](const Operand* o) { return o->kind() == Operand::Kind::Tensor; }))
    return {string_ops::join({operands[0]->tensor(), operands[1]->tensor()}, "")};
  if (!moves && !contains(kCompares, op.name)) refuse_strings(op.name, first->tensor());
  Numbers numbers(operands);
  if (!moves || op.name == "sort") numbers.rank();
  std::vector<Tensor> held;
  std::vector<Operand> given;
  held.reserve(operands.size());
  const EagerScope eager;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& o = *operands[i];
    const bool is_text = o.kind() == Operand::Kind::Tensor && is_string(o.tensor());
    if (o.kind() == Operand::Kind::Tensor && o.tensor().is_traced())
      user_error(op.name, ": a traced tensor ", o.tensor().type_str(), " has no numbers yet, and meets strings, which are not traced",
                 "\n  hint: a Dataset's map runs such a function as a callback; elsewhere, look strings up outside of the function");
    const ir::OperandClass type = op.signature.operands[std::min(i, op.signature.operands.size() - 1)].type;
    if (!is_text && (type == ir::OperandClass::Any || type == ir::OperandClass::Own) && o.kind() != Operand::Kind::None)
      user_error(op.name, ": strings do not meet ", o.kind() == Operand::Kind::Tensor ? o.tensor().type_str() : "a number");
    if (is_text) {
      given.emplace_back(held.emplace_back(numbers.of(o.tensor())), o.where());
    } else {
      given.push_back(o);
    }
  }
  std::vector<const Operand*> pointers;
  for (const Operand& o : given) pointers.push_back(&o);
  std::vector<Tensor> results = call_all(op, pointers, attrs, where);
  if (moves)
    for (Tensor& t : results) t = numbers.strings(t);
  return results;
}

Tensor string_rows(const Tensor& t, int64_t first, int64_t count) {
  const StringTensor& s = *strings(t);
  Shape shape = s.shape;
  const int64_t row = element_count(shape) / std::max<int64_t>(1, shape[0]);
  shape[0] = count;
  return Tensor::of_impl(new StringTensor(shape, s.storage, s.first + static_cast<size_t>(first * row)));
}

Tensor string_row(const Tensor& t, int64_t index) {
  const StringTensor& s = *strings(t);
  const Shape shape(std::span<const int64_t>(s.shape).subspan(1));
  return Tensor::of_impl(new StringTensor(shape, s.storage, s.first + static_cast<size_t>(index * element_count(shape))));
}

std::string printed_strings(const Tensor& t) {
  std::string text = cat(t.type_str(), "(");
  const std::span<const std::string> all = strings_of(t);
  for (size_t i = 0; i < all.size() && i < 20; ++i) text += cat(i ? ", " : "", "'", all[i], "'");
  return text + (all.size() > 20 ? ", ...)" : ")");
}

}  // namespace frontend
}  // namespace tandem
