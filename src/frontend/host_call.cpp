#include <tandem/host_call.hpp>

#include <memory>

#include "frontend/apply.hpp"
#include "frontend/host_token.hpp"
#include "frontend/memory.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/tracer.hpp"
#include "frontend/variable_impl.hpp"
#include "profile/recorder.hpp"

namespace tandem {
namespace frontend {

const Variable& host_token() {
  // Never destroyed: a function may be traced while the program ends.
  static const Variable& token = []() -> const Variable& {
    const EagerScope eager;
    return *new Variable(Tensor::zeros({}, DType::U8), {.name = "the token of host calls", .trainable = false});
  }();
  return token;
}

namespace {

// While it lives, this thread runs the program's own code again, outside of traces and tapes.
class CallScope {
 public:
  CallScope() { ++thread_state.host_calls; }
  ~CallScope() { --thread_state.host_calls; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  const EagerScope eager_;
  const UserScope user_;
};

void check_count(const std::string& name, size_t given, size_t declared) {
  if (given != declared) user_error(name, ": the function gives ", given, " tensors, ", declared, " are declared");
}

// The operands are copied: their memory belongs to the step, and the function may keep them.
void call_with_numbers(const std::string& name, const FlatFunction& f, std::span<const ir::HostTensor> in,
                       std::span<const ir::HostTensor> out) {
  const profile::Span called(profile::Kind::Callback, name);
  const CallScope scope;
  std::vector<Tensor> operands;
  for (const ir::HostTensor& t : in) operands.push_back(concrete(upload(t.data, t.dtype, t.shape)));
  const std::vector<Tensor> results = f(operands);
  check_count(name, results.size(), out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const engine::TensorRef& r = numbers_of(results[i], name);
    if (r.layout.dtype != out[i].dtype || !(r.layout.shape == out[i].shape))
      user_error(name, ": result ", i, " is ", results[i].type_str(), ", declared is ",
                 ir::TensorType{out[i].dtype, to_dims(out[i].shape)});
    read(r, out[i].dtype, out[i].data);
  }
}

// Symbols of declared types stand for what comes first at their place.
void check_declared(const std::string& name, const std::vector<Tensor>& found, const std::vector<Spec>& declared) {
  check_count(name, found.size(), declared.size());
  Bindings bindings;
  for (size_t i = 0; i < found.size(); ++i) {
    const engine::TensorRef& r = numbers_of(found[i], name);
    if (r.layout.dtype != declared[i].dtype || r.layout.shape.size() != declared[i].dims.size())
      user_error(name, ": result ", i, " is ", found[i].type_str(), ", declared is ", declared[i].str());
    unify(declared[i].dims, r.layout.shape, bindings, cat(name, ": result ", i));
  }
}

ir::Attrs attributes(ir::HostFunctionRef function, const std::vector<Spec>& results) {
  ir::Ints dtypes, ranks;
  Dims dims;
  for (const Spec& s : results) {
    dtypes.push_back(static_cast<int64_t>(s.dtype));
    ranks.push_back(static_cast<int64_t>(s.dims.size()));
    dims.insert(dims.end(), s.dims.begin(), s.dims.end());
  }
  return {{"function", std::move(function)}, {"dtypes", std::move(dtypes)}, {"ranks", std::move(ranks)}, {"dims", std::move(dims)}};
}

}  // namespace
}  // namespace frontend

using namespace frontend;

std::vector<Tensor> host_call(FlatFunction f, const std::vector<Tensor>& inputs, const std::vector<Spec>& results, const std::string& name,
                              std::source_location where) try {
  if (!thread_state.tracer) {
    const profile::Span called(profile::Kind::Callback, name);
    const CallScope scope;
    std::vector<Tensor> found = f(inputs);
    check_declared(name, found, results);
    return found;
  }
  auto function = std::make_shared<const ir::HostFunction>(
      name, [name, f = std::move(f)](std::span<const ir::HostTensor> in, std::span<const ir::HostTensor> out) {
        call_with_numbers(name, f, in, out);
      });
  static const ir::OpDef& op = row("host_call");
  std::vector<Tensor> operands{thread_state.tracer->read(host_token())};
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  std::vector<Tensor> found = call_final(op, operands, attributes(std::move(function), results), Location::of(where));
  thread_state.tracer->assign(host_token(), found.front());
  found.erase(found.begin());
  return found;
} catch (...) {
  rethrow_at(Location::of(where));
}

}  // namespace tandem
