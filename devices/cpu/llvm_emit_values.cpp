#include "llvm_emit_values.hpp"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <unordered_map>

#include "base/half.hpp"
#include "base/text.hpp"

namespace tandem::cpu {

using ir::Prim;
using ir::ScalarNode;
using llvm::Type;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

static bool is_small_float(DType t) { return t == DType::F16 || t == DType::BF16; }

// float16 and bfloat16 live in registers as float32 values that they can hold exactly.
Type* LaneValues::register_type(DType t) {
  switch (t) {
    case DType::Bool: return b_.getInt1Ty();
    case DType::F16:
    case DType::BF16:
    case DType::F32: return b_.getFloatTy();
    case DType::F64: return b_.getDoubleTy();
    default: return b_.getIntNTy(static_cast<unsigned>(size_of(t) * 8));
  }
}
Type* LaneValues::memory_type(DType t) {
  if (t == DType::Bool) return b_.getInt8Ty();
  if (is_small_float(t)) return b_.getInt16Ty();
  return register_type(t);
}
Type* LaneValues::shaped(Type* t, bool lanes) { return lanes ? llvm::FixedVectorType::get(t, static_cast<unsigned>(lanes_)) : t; }
Value* LaneValues::constant(const ScalarNode& n) {
  switch (n.dtype) {
    case DType::Bool: return b_.getInt1(n.bits != 0);
    case DType::F16: return llvm::ConstantFP::get(b_.getFloatTy(), half_bits_to_float(static_cast<uint16_t>(n.bits)));
    case DType::BF16: return llvm::ConstantFP::get(b_.getFloatTy(), bfloat16_bits_to_float(static_cast<uint16_t>(n.bits)));
    case DType::F32: return llvm::ConstantFP::get(context_, llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, n.bits)));
    case DType::F64: return llvm::ConstantFP::get(context_, llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, n.bits)));
    default: return llvm::ConstantInt::get(register_type(n.dtype), n.bits);
  }
}
Value* LaneValues::like(Value* v, uint64_t x) { return llvm::ConstantInt::get(v->getType(), x); }

Value* LaneValues::from_memory(Value* v, DType t) {
  const bool lanes = v->getType()->isVectorTy();
  if (t == DType::Bool) return b_.CreateICmpNE(v, like(v, 0));
  if (t == DType::F16) return b_.CreateFPExt(b_.CreateBitCast(v, shaped(b_.getHalfTy(), lanes)), shaped(b_.getFloatTy(), lanes));
  if (t == DType::BF16) {
    Value* wide = b_.CreateShl(b_.CreateZExt(v, shaped(b_.getInt32Ty(), lanes)), uint64_t{16});
    return b_.CreateBitCast(wide, shaped(b_.getFloatTy(), lanes));
  }
  return v;
}
Value* LaneValues::to_memory(Value* v, DType t) {
  const bool lanes = v->getType()->isVectorTy();
  if (t == DType::Bool) return b_.CreateZExt(v, shaped(b_.getInt8Ty(), lanes));
  if (t == DType::F16) return b_.CreateBitCast(b_.CreateFPTrunc(v, shaped(b_.getHalfTy(), lanes)), shaped(b_.getInt16Ty(), lanes));
  if (t == DType::BF16) {
    // To nearest even by hand: the processor's own conversion flushes small numbers to zero.
    Value* bits = b_.CreateBitCast(v, shaped(b_.getInt32Ty(), lanes));
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, uint64_t{16}), like(bits, 1));
    Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(odd, like(bits, 0x7fff)));
    Value* quiet = b_.CreateOr(bits, like(bits, 0x400000));
    Value* r = b_.CreateSelect(b_.CreateFCmpUNO(v, v), quiet, rounded);
    return b_.CreateTrunc(b_.CreateLShr(r, uint64_t{16}), shaped(b_.getInt16Ty(), lanes));
  }
  return v;
}
Value* LaneValues::rounded(Value* v, DType t) { return is_small_float(t) ? from_memory(to_memory(v, t), t) : v; }

Value* LaneValues::primitive(const ScalarNode& n, const std::vector<Value*>& in, bool lanes) {
  const DType t = n.in[0].dtype();
  switch (n.prim) {
    case Prim::Cast: return cast(in[0], t, n.dtype, lanes);
    case Prim::Bitcast: return from_memory(b_.CreateBitCast(to_memory(in[0], t), shaped(memory_type(n.dtype), lanes)), n.dtype);
    case Prim::Select: return b_.CreateSelect(in[0], in[1], in[2]);
    default: break;
  }
  if (n.prim >= Prim::Eq && n.prim <= Prim::Ge) return compare(n.prim, in[0], in[1], t);
  return is_float(t) ? rounded(float_primitive(n.prim, in, t), n.dtype) : int_primitive(n.prim, in, t, lanes);
}

Value* LaneValues::compare(Prim p, Value* a, Value* b, DType t) {
  using P = llvm::CmpInst::Predicate;
  static constexpr P kFloat[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT, P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
  static constexpr P kSigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  static constexpr P kUnsigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  const int i = static_cast<int>(p) - static_cast<int>(Prim::Eq);
  return is_float(t) ? b_.CreateFCmp(kFloat[i], a, b) : b_.CreateICmp((is_signed(t) ? kSigned : kUnsigned)[i], a, b);
}

Value* LaneValues::cast(Value* v, DType from, DType to, bool lanes) {
  if (to == DType::Bool)
    return is_float(from) ? b_.CreateFCmpUNE(v, llvm::ConstantFP::get(v->getType(), 0.0)) : b_.CreateICmpNE(v, like(v, 0));
  Type* target = shaped(register_type(to), lanes);
  if (is_float(to)) {
    if (!is_float(from))
      v = is_signed(from) ? b_.CreateSIToFP(v, target) : b_.CreateUIToFP(v, target);
    else
      v = b_.CreateFPCast(v, target);
    return rounded(v, to);
  }
  if (is_float(from)) return b_.CreateIntrinsic(is_signed(to) ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat, {target, v->getType()}, {v});
  return b_.CreateIntCast(v, target, is_signed(from));
}

Value* LaneValues::int_primitive(Prim p, const std::vector<Value*>& in, DType t, bool lanes) {
  const bool sign = is_signed(t);
  Value* a = in[0];
  Value* b = in.size() > 1 ? in[1] : nullptr;
  switch (p) {
    case Prim::Add: return t == DType::Bool ? b_.CreateOr(a, b) : b_.CreateAdd(a, b);
    case Prim::Sub: return t == DType::Bool ? b_.CreateXor(a, b) : b_.CreateSub(a, b);
    case Prim::Mul: return t == DType::Bool ? b_.CreateAnd(a, b) : b_.CreateMul(a, b);
    case Prim::Div:
    case Prim::Rem: return divide(p, a, b, t);
    case Prim::Min: return t == DType::Bool ? b_.CreateAnd(a, b) : b_.CreateBinaryIntrinsic(sign ? Intrinsic::smin : Intrinsic::umin, a, b);
    case Prim::Max: return t == DType::Bool ? b_.CreateOr(a, b) : b_.CreateBinaryIntrinsic(sign ? Intrinsic::smax : Intrinsic::umax, a, b);
    case Prim::And: return b_.CreateAnd(a, b);
    case Prim::Or: return b_.CreateOr(a, b);
    case Prim::Xor: return b_.CreateXor(a, b);
    case Prim::Shl:
    case Prim::Shr: return shift(p, a, b, t);
    case Prim::MulHi: {
      const auto bits = static_cast<unsigned>(size_of(t) * 8);
      Type* wide = shaped(b_.getIntNTy(2 * bits), lanes);
      auto widen = [&](Value* v) { return sign ? b_.CreateSExt(v, wide) : b_.CreateZExt(v, wide); };
      return b_.CreateTrunc(b_.CreateLShr(b_.CreateMul(widen(a), widen(b)), uint64_t{bits}), a->getType());
    }
    case Prim::Fma: return b_.CreateAdd(b_.CreateMul(a, b), in[2]);
    case Prim::Neg: return b_.CreateNeg(a);
    case Prim::Abs: return sign ? b_.CreateSelect(b_.CreateICmpSLT(a, like(a, 0)), b_.CreateNeg(a), a) : a;
    case Prim::Not: return b_.CreateNot(a);
    case Prim::Floor:
    case Prim::Ceil:
    case Prim::Trunc:
    case Prim::Round: return a;
    default: internal_error("primitive ", ir::name(p), " on ", name(t));
  }
}
// The processor traps on x/0 and on lowest/-1; we do not.
Value* LaneValues::divide(Prim p, Value* a, Value* b, DType t) {
  const bool quotient = p == Prim::Div;
  if (auto* c = llvm::dyn_cast<llvm::Constant>(b); c && !c->containsPoisonElement() && is_safe_divisor(c))
    return is_signed(t) ? (quotient ? b_.CreateSDiv(a, b) : b_.CreateSRem(a, b)) : (quotient ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b));
  Value* zero = b_.CreateICmpEQ(b, like(b, 0));
  if (!is_signed(t)) {
    Value* safe = b_.CreateSelect(zero, like(b, 1), b);
    return b_.CreateSelect(zero, like(a, 0), quotient ? b_.CreateUDiv(a, safe) : b_.CreateURem(a, safe));
  }
  Value* minus = b_.CreateICmpEQ(b, llvm::ConstantInt::getAllOnesValue(b->getType()));
  Value* safe = b_.CreateSelect(b_.CreateOr(zero, minus), like(b, 1), b);
  Value* r = quotient ? b_.CreateSelect(minus, b_.CreateNeg(a), b_.CreateSDiv(a, safe)) : b_.CreateSRem(a, safe);
  return b_.CreateSelect(zero, like(a, 0), r);
}
bool LaneValues::is_safe_divisor(llvm::Constant* c) {
  if (c->getType()->isVectorTy()) c = c->getSplatValue();
  auto* i = llvm::dyn_cast_or_null<llvm::ConstantInt>(c);
  return i && !i->isZero() && !i->isMinusOne();
}
Value* LaneValues::shift(Prim p, Value* a, Value* b, DType t) {
  const uint64_t width = size_of(t) * 8;
  Value* fits = b_.CreateICmpULT(b, like(b, width));
  Value* amount = b_.CreateSelect(fits, b, like(b, p == Prim::Shr && is_signed(t) ? width - 1 : 0));
  if (p == Prim::Shr && is_signed(t)) return b_.CreateAShr(a, amount);
  Value* r = p == Prim::Shl ? b_.CreateShl(a, amount) : b_.CreateLShr(a, amount);
  return b_.CreateSelect(fits, r, like(a, 0));
}

Value* LaneValues::float_primitive(Prim p, const std::vector<Value*>& in, DType t) {
  Value* a = in[0];
  Value* b = in.size() > 1 ? in[1] : nullptr;
  switch (p) {
    case Prim::Add: return b_.CreateFAdd(a, b);
    case Prim::Sub: return b_.CreateFSub(a, b);
    case Prim::Mul: return b_.CreateFMul(a, b);
    case Prim::Div: return b_.CreateFDiv(a, b);
    case Prim::Rem: return b_.CreateFRem(a, b);
    case Prim::Min: return b_.CreateBinaryIntrinsic(Intrinsic::minimum, a, b);
    case Prim::Max: return b_.CreateBinaryIntrinsic(Intrinsic::maximum, a, b);
    case Prim::Fma: return fma(a, b, in[2]);
    case Prim::Neg: return b_.CreateFNeg(a);
    case Prim::Abs: return b_.CreateUnaryIntrinsic(Intrinsic::fabs, a);
    case Prim::Floor: return b_.CreateUnaryIntrinsic(Intrinsic::floor, a);
    case Prim::Ceil: return b_.CreateUnaryIntrinsic(Intrinsic::ceil, a);
    case Prim::Trunc: return b_.CreateUnaryIntrinsic(Intrinsic::trunc, a);
    case Prim::Round: return b_.CreateUnaryIntrinsic(Intrinsic::roundeven, a);
    case Prim::Sqrt: return b_.CreateUnaryIntrinsic(Intrinsic::sqrt, a);
    case Prim::Exp: return t == DType::F64 ? vector_math(p, in, t) : exp(a);
    case Prim::Erfc: return t == DType::F64 ? vector_math(p, in, t) : erfc(a);
    case Prim::LGamma: return lane_by_lane("tandem_lgamma", a, t);
    default: return vector_math(p, in, t);
  }
}

Value* LaneValues::fma(Value* a, Value* b, Value* c) { return b_.CreateIntrinsic(Intrinsic::fma, {a->getType()}, {a, b, c}); }

// float32, as in kernels/vector_math.hpp and with the same bits. A call of libmvec would take twice as long and save all registers.
Value* LaneValues::exp(Value* x) {
  const auto number = [&](double c) { return llvm::ConstantFP::get(x->getType(), c); };
  // Beyond these bounds the results are 0 and infinity. A NaN is not less than anything, and stays.
  x = b_.CreateSelect(b_.CreateFCmpOLT(x, number(-104)), number(-104), x);
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, number(89)), number(89), x);
  Value* n = b_.CreateUnaryIntrinsic(Intrinsic::roundeven, b_.CreateFMul(x, number(1.44269504f)));
  Value* r = fma(n, number(2.12194440e-4f), fma(n, number(-0.693359375f), x));
  Value* square = b_.CreateFMul(r, r);
  Value* high = fma(r, number(0.000198910304f), number(0.00139336858f));
  Value* middle = fma(r, number(0.00833331048f), number(0.041666463f));
  Value* low = fma(r, number(0.166666672f), number(0.5f));
  Value* p = fma(fma(high, square, middle), square, low);
  return times_power_of_two(b_.CreateFAdd(fma(p, square, r), number(1)), n);
}

// float32, at most 6 units in the last place off: erfc(x) = e^(-x^2) t q(t) with t = 1 / (1 + x/2) for x >= 0, and q the polynomial with
// the least relative error up to 10.1, behind which erfc is 0. What x^2 loses by rounding is made good, for e^ would multiply it.
Value* LaneValues::erfc(Value* x) {
  const auto number = [&](double c) { return llvm::ConstantFP::get(x->getType(), c); };
  Value* square = b_.CreateFMul(x, x);
  Value* minus_square = b_.CreateFNeg(square);
  Value* lost = fma(x, x, minus_square);
  // Of an infinite square it is none, and e^ is 0 whatever it is.
  lost = b_.CreateSelect(b_.CreateFCmpOLT(lost, number(1e-5)), lost, number(1e-5));
  lost = b_.CreateSelect(b_.CreateFCmpOGT(lost, number(-1e-5)), lost, number(-1e-5));
  Value* t = b_.CreateFDiv(number(1), fma(b_.CreateUnaryIntrinsic(Intrinsic::fabs, x), number(0.5), number(1)));
  Value* q = number(-0.0590978596f);
  for (const float c : {0.284716321f, -0.487493397f, 0.278403936f, -0.0268584194f, 0.2027857f, 0.243078687f, 0.28237877f, 0.28208622f})
    q = fma(q, t, number(c));
  Value* scaled = b_.CreateFMul(t, q);
  Value* right = b_.CreateFMul(fma(b_.CreateFNeg(lost), scaled, scaled), exp(minus_square));
  return b_.CreateSelect(b_.CreateFCmpOLT(x, number(0)), b_.CreateFSub(number(2), right), right);
}

// v 2^n, rounded once, for v near 1 and whole numbers n from -150 to 128.
Value* LaneValues::times_power_of_two(Value* v, Value* n) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  if (target_.wide && vector && vector->getNumElements() == 16) {
    Value* all = llvm::ConstantInt::get(b_.getInt16Ty(), 0xffff);
    return b_.CreateIntrinsic(Intrinsic::x86_avx512_mask_scalef_ps_512, {}, {v, n, v, all, b_.getInt32(4)});  // 4: the rounding of others
  }
  // By two powers, because one would not be a normal number. A sum with 1.5 2^23 has n in its lowest bits; of a NaN it has anything.
  Type* bits = v->getType()->getWithNewType(b_.getInt32Ty());
  constexpr double kMagic = 12582912;
  constexpr uint64_t kMagicBits = 0x4b400000;
  Value* whole = b_.CreateBitCast(b_.CreateFAdd(n, llvm::ConstantFP::get(n->getType(), kMagic)), bits);
  whole = b_.CreateSub(whole, like(whole, kMagicBits));
  Value* half = b_.CreateAShr(whole, like(whole, 1));
  const auto power = [&](Value* e) { return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(e, like(e, 127)), like(e, 23)), v->getType()); };
  return b_.CreateFMul(b_.CreateFMul(v, power(half)), power(b_.CreateSub(whole, half)));
}

// glibc's libmvec, in whole registers; a single value goes through the same function, so that it gets the same bits.
Value* LaneValues::vector_math(Prim p, const std::vector<Value*>& in, DType t) {
  static const std::unordered_map<Prim, const char*> kNames = {
      {Prim::Pow, "pow"},     {Prim::Atan2, "atan2"}, {Prim::Cbrt, "cbrt"}, {Prim::Exp, "exp"},     {Prim::Exp2, "exp2"},
      {Prim::Expm1, "expm1"}, {Prim::Log, "log"},     {Prim::Log2, "log2"}, {Prim::Log10, "log10"}, {Prim::Log1p, "log1p"},
      {Prim::Sin, "sin"},     {Prim::Cos, "cos"},     {Prim::Tan, "tan"},   {Prim::Asin, "asin"},   {Prim::Acos, "acos"},
      {Prim::Atan, "atan"},   {Prim::Sinh, "sinh"},   {Prim::Cosh, "cosh"}, {Prim::Tanh, "tanh"},   {Prim::Asinh, "asinh"},
      {Prim::Acosh, "acosh"}, {Prim::Atanh, "atanh"}, {Prim::Erf, "erf"},   {Prim::Erfc, "erfc"}};
  const auto it = kNames.find(p);
  if (it == kNames.end()) internal_error("primitive ", ir::name(p), " on ", name(t));
  const bool is_double = t == DType::F64;
  const int width = (target_.wide ? 16 : 8) / (is_double ? 2 : 1);
  Type* vector_type = llvm::FixedVectorType::get(is_double ? b_.getDoubleTy() : b_.getFloatTy(), static_cast<unsigned>(width));
  const std::string symbol =
      cat("_ZGV", target_.wide ? "e" : "d", "N", width, in.size() == 2 ? "vv_" : "v_", it->second, is_double ? "" : "f");
  std::vector<Type*> parameters(in.size(), vector_type);
  auto function = module_.getOrInsertFunction(symbol, llvm::FunctionType::get(vector_type, parameters, false));

  if (!in[0]->getType()->isVectorTy()) {
    std::vector<Value*> wide;
    for (Value* v : in) wide.push_back(b_.CreateVectorSplat(static_cast<unsigned>(width), v));
    return b_.CreateExtractElement(b_.CreateCall(function, wide), uint64_t{0});
  }
  if (width == lanes_) return b_.CreateCall(function, in);
  std::vector<Value*> parts;
  for (int begin = 0; begin < lanes_; begin += width) {
    std::vector<int> pick;
    for (int i = 0; i < width; ++i) pick.push_back(begin + i);
    std::vector<Value*> args;
    for (Value* v : in) args.push_back(b_.CreateShuffleVector(v, pick));
    parts.push_back(b_.CreateCall(function, args));
  }
  while (parts.size() > 1) {  // lanes and widths are powers of two
    std::vector<Value*> joined;
    for (size_t i = 0; i < parts.size(); i += 2) {
      std::vector<int> all;
      const auto n = llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements();
      for (unsigned j = 0; j < 2 * n; ++j) all.push_back(static_cast<int>(j));
      joined.push_back(b_.CreateShuffleVector(parts[i], parts[i + 1], all));
    }
    parts = joined;
  }
  return parts[0];
}

Value* LaneValues::lane_by_lane(const char* symbol, Value* v, DType t) {
  Type* element = t == DType::F64 ? b_.getDoubleTy() : b_.getFloatTy();
  auto function = module_.getOrInsertFunction(cat(symbol, t == DType::F64 ? "" : "f"), llvm::FunctionType::get(element, {element}, false));
  if (!v->getType()->isVectorTy()) return b_.CreateCall(function, {v});
  Value* r = llvm::PoisonValue::get(v->getType());
  for (int i = 0; i < lanes_; ++i)
    r = b_.CreateInsertElement(r, b_.CreateCall(function, {b_.CreateExtractElement(v, static_cast<uint64_t>(i))}),
                               static_cast<uint64_t>(i));
  return r;
}

}  // namespace tandem::cpu
