// Ops on tensors of strings.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include <tandem/operand.hpp>
#include <tandem/strings.hpp>

#include "ir/attr.hpp"
#include "ir/op.hpp"

namespace tandem::frontend {

[[noreturn]] void refuse_strings(std::string_view what, const Tensor& t);  // UserError: `what` computes with numbers
bool has_strings(std::span<const Operand* const> operands);
// Rows that only move or compare elements need no strings: they run on numbers that stand for them. UserError for other rows.
std::vector<Tensor> call_on_strings(const ir::OpDef& op, std::span<const Operand* const> operands, const ir::Attrs& attrs, Location where);
// A part of the elements as a tensor of its own, without a copy: `count` rows of the first axis from `first` on.
Tensor string_rows(const Tensor& t, int64_t first, int64_t count);
Tensor string_row(const Tensor& t, int64_t index);
std::string printed_strings(const Tensor& t);

}  // namespace tandem::frontend
