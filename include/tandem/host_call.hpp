// Calls of the program itself from inside compiled functions: to print, to check, to compute what no op does.
#pragma once
#include <source_location>
#include <string>
#include <vector>

#include <tandem/function.hpp>
#include <tandem/structure.hpp>
#include <tandem/tensor.hpp>

namespace tandem {

// Calls f(inputs) each time this point of a compiled function is reached, with numbers, on the thread that called the function; outside of
// one, at once. f gives tensors of the types in `results`, whose dims may be the symbols of the inputs. Calls happen in the order in which
// they were asked for, also inside branches and loops, and no gradient flows through them. What f throws ends the function and reaches its
// caller as it is. f may compute, read variables and call functions, but not a variable that the calling function assigns: a UserError.
std::vector<Tensor> host_call(FlatFunction f, const std::vector<Tensor>& inputs, const std::vector<Spec>& results = {},
                              const std::string& name = "host_call", std::source_location where = std::source_location::current());

}  // namespace tandem
