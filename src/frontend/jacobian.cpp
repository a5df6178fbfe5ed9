// Gradients for many gradients of one target at once: the gradient is traced for one of them and vectorised, or, where an op cannot be,
// run for one after the other.
#include <tandem/control.hpp>
#include <tandem/ops.hpp>
#include <tandem/tape.hpp>

#include "frontend/apply.hpp"
#include "frontend/gradient.hpp"
#include "frontend/part.hpp"
#include "frontend/tape_impl.hpp"
#include "frontend/tensor_impl.hpp"
#include "transform/vmap.hpp"

namespace tandem {
namespace frontend {
namespace {

Dim product_of(std::span<const Dim> dims) {
  Dim n = 1;
  for (const Dim& d : dims) n = n * d;
  return n;
}
Dims joined(const Dims& a, std::span<const Dim> b) {
  Dims all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// [n,n], ones where both positions are equal.
Tensor unit_matrix(const Dim& n, DType dtype, Location where) {
  static const ir::OpDef &iota = row("iota"), &equal = row("equal");
  const Dims shape{n, n};
  const Tensor first = call_final(iota, {}, {{"shape", shape}, {"axis", int64_t{0}}}, where).front();
  const Tensor second = call_final(iota, {}, {{"shape", shape}, {"axis", int64_t{1}}}, where).front();
  return cast_to(call_final(equal, std::vector{first, second}, {}, where).front(), dtype, where);
}

void check_stack(const Tensor& target, const Tensor& stack) {
  const ir::TensorType of = type_of(target), given = type_of(stack);
  if (given.dtype != of.dtype || given.rank() != of.rank() + 1 || !std::equal(of.dims.begin(), of.dims.end(), given.dims.begin() + 1))
    user_error("stacked_gradients: the gradients are ", given, ", the target is ", of,
               "\n  hint: one gradient of the target's type behind the other, along a new first axis");
}

}  // namespace

std::vector<Tensor> TapeImpl::stacked_gradients(const Tensor& target, std::span<const Source> sources, const Tensor& stack,
                                                Location where) {
  check_stack(target, stack);
  begin_gradient({&target, 1});
  std::vector<size_t> counts, places;
  const std::vector<Tensor> wanted = flattened(sources, counts);
  Part one = traced_part("gradient", std::vector{type_of(target)}, [&](const std::vector<Tensor>& in) {
    std::vector<Tensor> connected;
    const std::vector<Tensor> made = run_gradient({entries_, {&target, 1}, in, wanted, counts, where});
    for (size_t i = 0; i < made.size(); ++i) {
      if (!made[i].defined()) continue;
      connected.push_back(made[i]);
      places.push_back(i);
    }
    return connected;
  });
  end_gradient();
  std::vector<Tensor> results(sources.size());
  if (places.empty()) return results;

  Part* const parts[] = {&one};
  const Externals externals(parts);
  const Externals::Pointers order = externals.all();
  const ir::GraphRef graph = arranged(one, one.outputs, 1, order, {});
  std::vector<Tensor> operands{stack};
  append(operands, outside(order));
  std::vector<bool> batched(operands.size(), false);
  batched[0] = true;
  std::vector<Tensor> found;
  if (auto all = transform::vmap(*graph, batched, type_of(stack).dims[0], transform::Exactness::Tolerance)) {
    found = run_graph(std::make_shared<const ir::Graph>(std::move(*all)), operands, where);
  } else {
    const flat::ScanBody step = [&](const std::vector<Tensor>&, const std::vector<Tensor>& slices) {
      std::vector<Tensor> in = operands;
      in[0] = slices[0];
      return flat::Step{{}, run_graph(graph, in, where)};
    };
    found = flat::scan(step, {}, {stack}, {}, false, std::source_location()).outputs;
  }
  for (size_t i = 0; i < places.size(); ++i) results[places[i]] = found[i];
  return results;
}

}  // namespace frontend

using namespace frontend;

std::vector<Tensor> Tape::stacked_gradients(const Tensor& target, const Sources& sources, const Tensor& output_gradients, Where where) try {
  return impl_->stacked_gradients(target, sources.list(), output_gradients, named_line(Location::of(where)));
} catch (...) {
  rethrow_at(Location::of(where));
}

Tensor Tape::jacobian(const Tensor& target, const Source& source, Where where) try {
  const Location line = named_line(Location::of(where));
  const Dims of = target.dims();
  const Dim n = product_of(of);
  const Tensor basis = reshape(unit_matrix(n, target.dtype(), line), joined({n}, of));
  const Tensor rows = impl_->stacked_gradients(target, {&source, 1}, basis, line).front();
  if (!rows.defined()) return rows;
  const Dims stacked = rows.dims();
  return reshape(rows, joined(of, std::span(stacked).subspan(1)));
} catch (...) {
  rethrow_at(Location::of(where));
}

Tensor Tape::batch_jacobian(const Tensor& target, const Source& source, Where where) try {
  const Location line = named_line(Location::of(where));
  const Dims of = target.dims(), by = source.is_variable() ? to_dims(source.variable().shape()) : source.tensor().dims();
  if (of.empty() || by.empty() || !(of[0] == by[0]))
    user_error("batch_jacobian: the target ", target.type_str(), " and the source ", str(by), " must have the same first extent");
  const std::span<const Dim> one = std::span(of).subspan(1);
  const Dim n = product_of(one);
  // The elements of a batch do not depend on each other, so that one gradient serves the same place in all of them.
  Tensor basis = reshape(unit_matrix(n, target.dtype(), line), joined({n, 1}, one));
  basis = broadcast_to(basis, joined({n}, of));
  const Tensor rows = impl_->stacked_gradients(target, {&source, 1}, basis, line).front();
  if (!rows.defined()) return rows;
  ir::Ints perm{1, 0};
  for (int64_t axis = 2; axis < rows.rank(); ++axis) perm.push_back(axis);
  return reshape(transpose(rows, perm), joined(of, std::span(by).subspan(1)));
} catch (...) {
  rethrow_at(Location::of(where));
}

}  // namespace tandem
