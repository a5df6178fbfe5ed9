// What tests of the CPU's products and convolutions share: calls of a row, with or without an elementwise end, and one entry of the
// kernel list run by itself, for each instruction set and number of threads.
#pragma once
#include "cpu/cpu_program.hpp"
#include "support.hpp"

namespace tandem::testing {

// A kernel of a row of src/ops, its inputs, and what the interpreter gives.
struct ProductCall {
  codegen::Kernel kernel;
  std::vector<HostTensor> in;
  std::vector<HostTensor> expected;
  int64_t terms = 1;  // of each sum
  Allowed allowed() const;
};
ProductCall product_call(std::string_view op, const ir::Attrs& attrs, std::vector<HostTensor> in);

// The same with an end of two outputs over inputs that only it reads:
//   max(product + bias[last axis], 0) * scale, where scale is a single number, and product - other[all axes], with `other` lying anyhow.
ProductCall with_end(ProductCall call, std::mt19937_64& random);

using Make = decltype(cpu::KernelEntry::make);
// The instruction sets that this machine has.
std::vector<std::string> instruction_sets();
// Why an entry does not take a kernel; empty when it does.
std::string refusal_of(Make make, const codegen::Kernel& kernel, const std::string& isa = "native");

// How much scratch memory it asks for.
size_t scratch_of(Make make, const codegen::Kernel& kernel);

// Runs it on so many threads. Scratch memory holds what would be wrong numbers; neither it nor outputs may be written beyond their ends.
std::vector<HostTensor> run_entry(Make make, ProductCall& call, const std::string& isa, int threads);
// For each instruction set: near what is expected, and the same bits on 1, 2 and 3 threads.
void check_entry(Make make, ProductCall call);

}  // namespace tandem::testing
