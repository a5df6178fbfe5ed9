// Ops as nodes of a graph of layers: one kind of layer for all rows of the table, and one for indexing.
#pragma once
#include <source_location>
#include <string_view>
#include <variant>
#include <vector>

#include <tandem/nn/operand.hpp>

#include "ir/op.hpp"

namespace tandem::nn {

// What an op is given, in order: an input of its layer, or something that stays as it is.
struct OpInput {
  size_t index;
};
using OpArgument = std::variant<OpInput, Tensor, bool, int64_t, double>;

// What layers that are ops say of themselves in Keras's files, where they are no layers: they have no weights, and their calls have
// arguments that are not tensors.
class OpNode {
 public:
  virtual ~OpNode() = default;
  virtual Config module() const = 0;           // Keras's; null for what Keras has not
  virtual Config registered_name() const = 0;  // what Keras or we find it by
  // The arguments of the call, with these in place of its inputs.
  virtual Config arguments(const std::vector<Config>& tensors) const = 0;
};

// The op on these operands, of which at least one is a symbol; `where` is used when no operand has a line.
std::vector<Symbol> call_op(std::string_view row, const std::vector<const SymbolOperand*>& operands, const ir::Attrs& attrs,
                            const std::source_location& where = {});

bool is_op(const Config& object);  // a serialized op, and not a layer
// The layer that one call of a serialized op makes. `tensors` gets the places of its inputs, as the call's arguments have them.
Layer op_from_config(const Config& object, const Config& args, const Config& kwargs, std::vector<Config>& tensors);

}  // namespace tandem::nn
