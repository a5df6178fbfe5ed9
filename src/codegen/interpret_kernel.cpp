#include "codegen/interpret_kernel.hpp"

#include <cstddef>
#include <functional>

#include "base/text.hpp"
#include "codegen/dense_copy.hpp"
#include "codegen/interpret.hpp"

namespace tandem::codegen {
namespace {

void evaluate(const Kernel& kernel, std::span<void* const> in, std::span<void* const> out) {
  std::vector<ir::HostTensor> operands, results;
  std::vector<std::vector<std::byte>> copies;
  for (size_t i = 0; i < in.size(); ++i) {
    const Layout& o = kernel.in[i];
    void* data = in[i];
    if (!o.is_dense()) {
      copies.emplace_back(byte_size(o.shape, o.dtype));
      dense_copy(o, data, copies.back().data());
      data = copies.back().data();
    }
    operands.push_back({o.dtype, o.shape, data});
  }
  for (size_t i = 0; i < out.size(); ++i) results.push_back({kernel.out[i].dtype, kernel.out[i].shape, out[i]});
  kernel.op->evaluate({*kernel.op, kernel.attrs, operands, results, [](int64_t chunks, const std::function<void(int64_t)>& f) {
                         for (int64_t i = 0; i < chunks; ++i) f(i);
                       }});
}

}  // namespace

void interpret(const Kernel& kernel, std::span<void* const> pointers, void* scratch) {
  const auto in = pointers.first(kernel.in.size()), out = pointers.subspan(kernel.in.size(), kernel.out.size());
  if (kernel.stages.empty()) return evaluate(kernel, in, out);
  if (kernel.stages.size() == 1) return interpret(kernel.stages[0], in, out);
  std::vector<void*> all(in.begin(), in.end()), partials;
  for (size_t i = 0; i < kernel.partials.size(); ++i) partials.push_back(static_cast<char*>(scratch) + kernel.partial_offset(i));
  interpret(kernel.stages[0], in, partials);
  all.insert(all.end(), partials.begin(), partials.end());
  interpret(kernel.stages[1], all, out);
}

void check_interpretable(const Kernel& kernel) {
  if (kernel.stages.empty() && !kernel.op->evaluate) user_error(kernel.op->name, ": the op has neither loops nor a host routine");
}

}  // namespace tandem::codegen
