#include "frontend/apply.hpp"

#include <bit>
#include <limits>

#include "base/border.hpp"
#include "base/half.hpp"
#include "base/thread_kept.hpp"
#include "frontend/memory.hpp"
#include "frontend/strings.hpp"
#include "frontend/tape_impl.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/thread_state.hpp"
#include "frontend/tracer.hpp"
#include "frontend/variable_impl.hpp"
#include "ops/promote.hpp"
#include "ops/table.hpp"

namespace tandem::frontend {
namespace {

using ir::OperandClass;

constexpr size_t kFew = 4;  // operands that the lean way takes

const ir::Signature::Parameter& operand_at(const ir::OpDef& op, size_t i) {
  const auto& all = op.signature.operands;
  return all[std::min(i, all.size() - 1)];
}

PromotionType weak_type(Operand::Kind kind) {
  switch (kind) {
    case Operand::Kind::Bool: return {DType::Bool, true};
    case Operand::Kind::Int: return {DType::I32, true};
    default: return {DType::F32, true};
  }
}

// --- bare numbers ----------------------------------------------------------------------------------------------------------------

bool fits(int64_t n, DType t) {
  switch (t) {
    case DType::U8: return std::in_range<uint8_t>(n);
    case DType::U16: return std::in_range<uint16_t>(n);
    case DType::U32: return std::in_range<uint32_t>(n);
    case DType::U64: return n >= 0;
    case DType::I8: return std::in_range<int8_t>(n);
    case DType::I16: return std::in_range<int16_t>(n);
    case DType::I32: return std::in_range<int32_t>(n);
    default: return true;
  }
}

ir::Literal literal(const Operand& n, DType t, std::string_view what) {
  if (n.kind() == Operand::Kind::Float) return ir::Literal::scalar(t, n.as_float());
  if (is_int(t) && !fits(n.as_int(), t)) user_error(what, ": the number ", n.as_int(), " does not fit into ", name(t));
  return is_int(t) ? ir::Literal::scalar_int(t, n.as_int()) : ir::Literal::scalar(t, n.as_float());
}

Tensor fresh_number(const Operand& n, DType t, std::string_view what, int32_t device) {
  const ir::Literal value = literal(n, t, what);
  const WishScope wish(device);
  return concrete(upload(value.bytes->data(), t, {}));
}

// Numbers that this thread used lately. Many ops use the same few, and each would be an allocation.
class NumberCache {
 public:
  const Tensor& get(const Operand& n, DType t, std::string_view what, int32_t device) {
    const uint64_t bits = n.kind() == Operand::Kind::Float ? std::bit_cast<uint64_t>(n.as_float()) : static_cast<uint64_t>(n.as_int());
    const uint64_t key = bits * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(t) * 2 + (n.kind() == Operand::Kind::Float) +
                         (static_cast<uint64_t>(device + 1) << 40);
    Entry& e = entries_[(key >> 32) % kEntries];
    if (!e.tensor.defined() || e.bits != bits || e.dtype != t || e.kind != n.kind() || e.device != device)
      e = {bits, t, n.kind(), device, fresh_number(n, t, what, device)};
    return e.tensor;
  }

 private:
  static constexpr size_t kEntries = 128;
  struct Entry {
    uint64_t bits = 0;
    DType dtype = DType::F32;
    Operand::Kind kind = Operand::Kind::None;
    int32_t device = -1;  // that was asked for
    Tensor tensor;
  };
  Entry entries_[kEntries];
};

Tensor number_now(const Operand& n, DType t, std::string_view what, int32_t device = thread_state.device) {
  NumberCache* cache = thread_kept<NumberCache>();
  return cache ? cache->get(n, t, what, device) : fresh_number(n, t, what, device);
}

// --- the lean way: nothing is traced or recorded, and nothing has to be converted --------------------------------------------------

struct Few {
  const engine::TensorRef* refs[kFew];
  Tensor held[kFew];  // numbers and variables' values, so that they live through the call
  size_t count = 0;

  // False: the general way must look at it.
  bool gather(const ir::OpDef& op, std::span<const Operand* const> in) {
    if (in.size() > kFew || (op.signature.operands.empty() && !in.empty())) return false;
    int type = -1;  // the type T of the shared classes
    bool has_numbers = false;
    for (size_t i = 0; i < in.size(); ++i) {
      const Operand& o = *in[i];
      const OperandClass c = operand_at(op, i).type;
      switch (o.kind()) {
        case Operand::Kind::Tensor: refs[i] = concrete_ref(o.tensor()); break;
        case Operand::Kind::Variable:
          held[i] = read_variable(o.variable());
          refs[i] = concrete_ref(held[i]);
          break;
        case Operand::Kind::None: return false;
        default:
          if (c > OperandClass::Boolean) return false;
          refs[i] = nullptr;
          has_numbers = true;
          continue;
      }
      if (!refs[i]) return false;
      const DType t = refs[i]->layout.dtype;
      if (!ir::accepts(c, t)) return false;
      if (c > OperandClass::Boolean) continue;
      if (type >= 0 && type != static_cast<int>(t)) return false;
      type = static_cast<int>(t);
    }
    count = in.size();
    if (!has_numbers) return true;
    if (type < 0) return false;
    const auto t = static_cast<DType>(type);
    const int32_t device = beside();
    for (size_t i = 0; i < in.size(); ++i) {
      if (refs[i]) continue;
      // A bare number that is not of a higher kind than T takes it.
      const bool is_lower =
          in[i]->kind() == Operand::Kind::Int ? is_int(t) || is_float(t) : in[i]->kind() == Operand::Kind::Float && is_float(t);
      if (!is_lower) return false;
      held[i] = number_now(*in[i], t, op.name, device);
      refs[i] = concrete_ref(held[i]);
    }
    return true;
  }

 private:
  // Where numbers go: to the tensors beside them, when those are on a card.
  int32_t beside() const {
    const engine::Devices& all = engine::default_engine().devices();
    if (thread_state.device >= 0 || all.count() == 1) return thread_state.device;
    for (size_t i = 0; i < count; ++i)
      if (refs[i] && !refs[i]->buffer->home().info().host_memory) return all.find(refs[i]->buffer->home());
    return thread_state.device;
  }
};

// Runs an op on what was gathered. The engine's results are moved out at once, so the thread keeps the vector for its memory.
Tensor run_few(const ir::OpDef& op, const ir::Attrs& attrs, const Few& few) {
  std::vector<engine::TensorRef> own;
  auto* kept = thread_kept<std::vector<engine::TensorRef>, Few>();
  std::vector<engine::TensorRef>& out = kept ? *kept : own;
  engine::default_engine().eager(op, attrs, {few.refs, few.count}, out, thread_state.device);
  Tensor first = concrete(std::move(out.front()));
  out.clear();
  return first;
}

std::vector<Tensor> run_eager(const ir::OpDef& op, std::span<const Tensor> operands, const ir::Attrs& attrs) {
  std::vector<const engine::TensorRef*> in;
  in.reserve(operands.size());
  for (const Tensor& t : operands) in.push_back(&numbers_of(t, op.name));
  std::vector<engine::TensorRef> out;
  engine::default_engine().eager(op, attrs, in, out, thread_state.device);
  std::vector<Tensor> results;
  results.reserve(out.size());
  for (engine::TensorRef& r : out) results.push_back(concrete(std::move(r)));
  return results;
}

bool shares_type(const ir::OpDef& op, size_t i) { return operand_at(op, i).type <= OperandClass::Boolean; }

// Strict: the first tensor's type is T; another tensor must have it, and a bare number must fit into it.
void check_strict(const ir::OpDef& op, std::span<const PromotionType> types) {
  const PromotionType* first = nullptr;
  size_t first_at = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].weak || !shares_type(op, i)) continue;
    if (first && first->dtype != types[i].dtype)
      user_error(op.name, ": operand '", operand_at(op, i).name, "' is ", name(types[i].dtype), ", but '", operand_at(op, first_at).name,
                 "' is ", name(first->dtype), "\n  hint: cast() one of them");
    if (!first) first = &types[i], first_at = i;
  }
  if (!first) return;
  for (size_t i = 0; i < types.size(); ++i)
    if (types[i].weak && shares_type(op, i) && is_float(types[i].dtype) && !is_float(first->dtype))
      user_error(op.name, ": a floating number for operand '", operand_at(op, i).name, "', but '", operand_at(op, first_at).name, "' is ",
                 name(first->dtype), "\n  hint: cast() the tensor");
}

// Keras: different types meet in 32 bits at most.
void narrow(const ir::OpDef& op, std::span<const PromotionType> types, std::vector<DType>& wanted) {
  const auto differs = [&](size_t i) { return shares_type(op, i) && (types[i].weak || types[i].dtype != wanted[i]); };
  for (size_t i = 0; i < types.size(); ++i) {
    if (!differs(i)) continue;
    for (size_t k = 0; k < types.size(); ++k) {
      if (!shares_type(op, k)) continue;
      if (types[i].weak && !types[k].weak && types[k].dtype == wanted[k]) return;  // a bare number does not narrow a tensor of that type
    }
    for (size_t k = 0; k < types.size(); ++k) {
      if (!shares_type(op, k)) continue;
      DType& t = wanted[k];
      t = t == DType::F64 ? DType::F32 : t == DType::I64 ? DType::I32 : t == DType::U64 ? DType::U32 : t;
    }
    return;
  }
}

// Operands as tensors of their final types: numbers and conversions become tensors too.
std::vector<Tensor> resolved(const ir::OpDef& op, std::span<const Operand* const> in, Location where, Promotion promotion) {
  std::vector<Tensor> tensors;
  std::vector<PromotionType> types;
  for (size_t i = 0; i < in.size(); ++i) {
    const Operand& o = *in[i];
    Tensor& t = tensors.emplace_back();
    if (o.kind() == Operand::Kind::None) {
      tensors.pop_back();
      for (const Operand* rest : in.subspan(i))
        if (rest->kind() != Operand::Kind::None)
          user_error(op.name, ": operand '", operand_at(op, i).name, "' is left out, but one behind it is given");
      break;
    }
    if (o.is_number()) {
      types.push_back(weak_type(o.kind()));
      continue;
    }
    if (o.kind() == Operand::Kind::Tensor && !o.tensor().defined())
      user_error(op.name, ": operand '", operand_at(op, i).name,
                 "' holds nothing\n  hint: a default-made Tensor, or the gradient of something that the target does not depend on");
    t = o.kind() == Operand::Kind::Tensor ? o.tensor() : read_variable(o.variable());
    types.push_back({dtype_of(t), false});
  }
  if (promotion == Promotion::Strict) check_strict(op, types);
  std::vector<DType> wanted = ops::promote_operands(op, types);
  if (promotion == Promotion::Keras) narrow(op, types, wanted);
  for (size_t i = 0; i < tensors.size(); ++i)
    tensors[i] = in[i]->is_number() ? number(*in[i], wanted[i], op.name) : cast_to(tensors[i], wanted[i], where);
  return tensors;
}

template <class E> [[noreturn]] void throw_at(const E& e, const Location& where) {
  std::string text = e.what();
  if (where.line == 0 || text.find("\n  at ") != std::string::npos) throw;
  throw E(text.insert(std::min(text.find("\n  hint:"), text.size()), cat("\n  at ", where)), e.code());
}

}  // namespace

const ir::OpDef& row(std::string_view name) { return ops::table().at(name); }

const ir::Attrs& no_attrs() {
  static const auto& none = *new ir::Attrs;  // never destroyed: ops may be called while the program ends
  return none;
}

void rethrow_at(const Location& where) {
  try {
    rethrow_as_ours("tandem");
  } catch (const UserError& e) {
    throw_at(e, named_line(where));
  } catch (const ResourceError& e) {
    throw_at(e, named_line(where));
  }
}

Location location_of(std::span<const Operand* const> operands) {
  for (const Operand* o : operands)
    if (o->where().line() != 0) return Location::of(o->where());
  return {};
}

Tensor number(const Operand& n, DType dtype, std::string_view what) {
  if (!thread_state.tracer) return number_now(n, dtype, what);
  Tracer& t = *thread_state.tracer;
  return t.wrap(t.builder().constant(literal(n, dtype, what)));
}

Tensor tensor_of(const Operand& o, std::optional<DType> dtype) {
  const Location where = Location::of(o.where());
  switch (o.kind()) {
    case Operand::Kind::None: user_error("an operand is missing");
    case Operand::Kind::Tensor: return dtype ? cast_to(o.tensor(), *dtype, where) : (defined(o.tensor()), o.tensor());
    case Operand::Kind::Variable: {
      const Tensor value = read_variable(o.variable());
      return dtype ? cast_to(value, *dtype, where) : value;
    }
    default: return number(o, dtype.value_or(weak_type(o.kind()).dtype), "tensor");
  }
}

Tensor cast_to(const Tensor& t, DType to, Location where) {
  if (dtype_of(t) == to) return t;
  static const ir::OpDef& cast = row("cast");
  return call_final(cast, {&t, 1}, {{"dtype", to}}, where).front();
}

std::vector<Tensor> call_final(const ir::OpDef& op, std::span<const Tensor> operands, const ir::Attrs& attrs, Location where) {
  where = named_line(where);
  std::vector<Tensor> results =
      thread_state.tracer ? thread_state.tracer->node(op, operands, attrs, where) : run_eager(op, operands, attrs);
  if (thread_state.tape) TapeImpl::record_op(op, operands, results, attrs, where);
  return results;
}

Tensor call(const ir::OpDef& op, std::span<const Operand* const> operands, const ir::Attrs& attrs, Location where, Promotion promotion) {
  try {
    if (!thread_state.tracer && !thread_state.tape) [[likely]] {
      Few few;
      if (few.gather(op, operands)) [[likely]]
        return run_few(op, attrs, few);
    }
    if (!where) where = location_of(operands);
    if (has_strings(operands)) return std::move(call_on_strings(op, operands, attrs, where).front());
    return std::move(call_final(op, resolved(op, operands, where, promotion), attrs, where).front());
  } catch (...) {
    rethrow_at(where ? where : location_of(operands));
  }
}

std::vector<Tensor> call_all(const ir::OpDef& op, std::span<const Operand* const> operands, const ir::Attrs& attrs, Location where,
                             Promotion promotion) {
  if (!where) where = location_of(operands);
  try {
    if (has_strings(operands)) return call_on_strings(op, operands, attrs, where);
    return call_final(op, resolved(op, operands, where, promotion), attrs, where);
  } catch (...) {
    rethrow_at(where);
  }
}

}  // namespace tandem::frontend
