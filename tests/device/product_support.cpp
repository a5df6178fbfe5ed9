#include "product_support.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cpu/host_target.hpp"
#include "ops/table.hpp"

namespace tandem::testing {
namespace {

using ir::Scalar;

const ir::OpDef& row(std::string_view name) {
  static ir::OpTable& table = *new ir::OpTable;
  if (!table.find(name))
    for (auto* rows : {ops::matmul_rows, ops::convolution_rows})
      for (ir::OpDef& r : rows()) table.add(std::move(r));
  return table.at(name);
}

cpu::Toolbox toolbox(const std::string& isa, int threads) {
  static cpu::CodeCache& cache = *new cpu::CodeCache("");
  return {cpu::host_target(isa), cache, threads};
}

}  // namespace

Allowed ProductCall::allowed() const { return sum_tolerance(DType::F32, terms + 10); }

ProductCall product_call(std::string_view op, const ir::Attrs& attrs, std::vector<HostTensor> in) {
  const ir::Attrs all = ir::complete_attrs(row(op), attrs);
  std::vector<ir::TensorType> types;
  std::vector<codegen::Layout> layouts;
  for (const HostTensor& x : in) {
    types.push_back({x.layout.dtype, to_dims(x.layout.shape)});
    layouts.push_back(x.layout);
  }
  const auto out = ir::infer(row(op), types, all);
  const ir::Loops loops = ir::loops_of(row(op), types, all, out);
  ProductCall call{codegen::make_kernel(row(op), all, types, out, {}, layouts), std::move(in), {}, 1};
  call.expected = interpreted(loops, call.in);
  for (const Dim& d : loops.reduction->extents) call.terms *= d.value();
  return call;
}

ProductCall with_end(ProductCall call, std::mt19937_64& random) {
  codegen::Kernel& k = call.kernel;
  const codegen::Layout product = k.out[0];
  const int rank = static_cast<int>(product.shape.size());
  const size_t own = call.in.size();
  call.in.push_back(dense(product.dtype, {product.shape[product.shape.size() - 1]}, random));
  call.in.push_back(dense(product.dtype, {}, random));
  call.in.push_back(scattered(product.dtype, product.shape, random));
  for (size_t i = own; i < call.in.size(); ++i) k.in.push_back(call.in[i].layout);

  std::vector<Scalar> all_axes;
  for (int i = 0; i < rank; ++i) all_axes.push_back(ir::axis(i));
  const int first = static_cast<int>(own);
  const auto number = [&](int input, std::vector<Scalar> at) { return ir::load(first + input, product.dtype, std::move(at)); };
  const Scalar value = number(3, all_axes);
  ir::Loops loops;
  loops.extents = to_dims(product.shape);
  loops.results = {max(value + number(0, {ir::axis(rank - 1)}), ir::constant(product.dtype, 0)) * number(1, {}),
                   value - number(2, all_axes)};
  k.epilogue = codegen::Epilogue{loops, own, product};
  k.out.push_back(product);
  // As make_kernel has it: stage 0 gives the product as a partial, stage 1 is the end.
  k.partials = {product};
  std::vector<codegen::Layout> operands = k.in;
  operands.push_back(product);
  k.stages = {k.stages[0], codegen::canonical(loops, {}, operands, std::vector{product.dtype, product.dtype})};

  std::vector<HostTensor> all = call.in;
  all.push_back(std::move(call.expected[0]));
  call.expected = interpreted(loops, all);
  return call;
}

std::vector<std::string> instruction_sets() {
  const cpu::Target here = cpu::host_target("native");
  std::vector<std::string> sets{"avx2"};
  if (here.wide) sets.emplace_back("avx512");
  if (here.pairs) sets.emplace_back("avx512_bf16");
  return sets;
}

std::string refusal_of(Make make, const codegen::Kernel& kernel, const std::string& isa) {
  cpu::Toolbox tools = toolbox(isa, 1);
  std::string refusal;
  return make(kernel, tools, refusal) ? "" : refusal;
}

size_t scratch_of(Make make, const codegen::Kernel& kernel) {
  cpu::Toolbox tools = toolbox("native", 2);
  std::string refusal;
  return make(kernel, tools, refusal)->scratch_bytes();
}

std::vector<HostTensor> run_entry(Make make, ProductCall& call, const std::string& isa, int threads) {
  constexpr size_t kGuard = 256;
  cpu::Toolbox tools = toolbox(isa, threads);
  std::string refusal;
  const auto program = make(call.kernel, tools, refusal);
  EXPECT_NE(program, nullptr) << refusal;
  std::vector<HostTensor> out = outputs_of(call.kernel);
  if (!program) return out;
  std::vector<void*> pointers;
  for (HostTensor& x : call.in) pointers.push_back(x.data());
  for (HostTensor& x : out) {
    x.bytes.resize(x.bytes.size() + kGuard);
    std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0xff});  // a NaN
    pointers.push_back(x.data());
  }
  const size_t scratch_bytes = program->scratch_bytes();
  std::vector<std::byte> scratch(scratch_bytes + kGuard + codegen::kAlignment, std::byte{0xff});
  const size_t shift = codegen::kAlignment - reinterpret_cast<uintptr_t>(scratch.data()) % codegen::kAlignment;
  ThreadPool pool(threads);
  program->run({pointers, scratch.data() + shift}, pool);
  const auto untouched = [](std::byte b) { return b == std::byte{0xff}; };
  EXPECT_TRUE(std::all_of(scratch.begin() + static_cast<std::ptrdiff_t>(shift + scratch_bytes), scratch.end(), untouched))
      << "written behind the scratch memory";
  for (HostTensor& x : out) {
    EXPECT_TRUE(std::all_of(x.bytes.end() - kGuard, x.bytes.end(), untouched)) << "written behind an output";
    x.bytes.resize(x.bytes.size() - kGuard);
  }
  return out;
}

void check_entry(Make make, ProductCall call) {
  for (const std::string& isa : instruction_sets()) {
    SCOPED_TRACE(isa);
    const std::vector<HostTensor> first = run_entry(make, call, isa, 1);
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(near(first[i], call.expected[i], call.allowed())) << "output " << i;
    for (int threads : {2, 3}) {
      const std::vector<HostTensor> again = run_entry(make, call, isa, threads);
      for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].bytes, again[i].bytes) << threads << " threads, output " << i;
    }
  }
}

}  // namespace tandem::testing
