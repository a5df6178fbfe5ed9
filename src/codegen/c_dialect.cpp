// What OpenCL C writes how. Version 1.2 is enough, without extensions but for double.
#include "codegen/c_render.hpp"

namespace tandem::codegen {
namespace {

using ir::Prim;

// Overloaded by type, so that both columns have the same name.
constexpr CFunction same(Prim p, std::string_view name) { return {p, name, name}; }
constexpr CFunction kOpenClFunctions[] = {
    // clang-format off: a table
    same(Prim::Rem, "fmod"),     same(Prim::Pow, "pow"),     same(Prim::Atan2, "atan2"), same(Prim::Fma, "fma"),     same(Prim::Abs, "fabs"),
    same(Prim::Floor, "floor"),  same(Prim::Ceil, "ceil"),   same(Prim::Trunc, "trunc"), same(Prim::Round, "rint"),  same(Prim::Sqrt, "sqrt"),
    same(Prim::Cbrt, "cbrt"),    same(Prim::Exp, "exp"),     same(Prim::Exp2, "exp2"),   same(Prim::Expm1, "expm1"), same(Prim::Log, "log"),
    same(Prim::Log2, "log2"),    same(Prim::Log10, "log10"), same(Prim::Log1p, "log1p"), same(Prim::Sin, "sin"),     same(Prim::Cos, "cos"),
    same(Prim::Tan, "tan"),      same(Prim::Asin, "asin"),   same(Prim::Acos, "acos"),   same(Prim::Atan, "atan"),   same(Prim::Sinh, "sinh"),
    same(Prim::Cosh, "cosh"),    same(Prim::Tanh, "tanh"),   same(Prim::Asinh, "asinh"), same(Prim::Acosh, "acosh"), same(Prim::Atanh, "atanh"),
    same(Prim::Erf, "erf"),      same(Prim::Erfc, "erfc"),   same(Prim::LGamma, "lgamma"),
    // clang-format on
};

constexpr CDialect kOpenCl{
    .name = "OpenCL C",
    .preamble = "#pragma OPENCL FP_CONTRACT OFF\n",
    .double_preamble = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n",
    .kernel = "__kernel void",
    .function = "",
    .global = "__global",
    .local = "__local",
    .group = "get_group_id(0)",
    .item = "get_local_id(0)",
    .item_of_all = "get_global_id(0)",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE)",
    .bits_of_float = "as_uint",
    .float_of_bits = "as_float",
    .bits_of_double = "as_ulong",
    .double_of_bits = "as_double",
    .high_of_signed = "mul_hi",
    .high_of_unsigned = "mul_hi",
    .divide = "",
    .square_root = "",
    .types = {"uchar", "uchar", "ushort", "uint", "ulong", "char", "short", "int", "long", "float", "float", "float", "double"},
    .functions = kOpenClFunctions,
};
constexpr CDialect with_double_division() {
  CDialect d = kOpenCl;
  d.divide = "tandem_divide";
  d.square_root = "tandem_square_root";
  return d;
}
constexpr CDialect kOpenClByDouble = with_double_division();

}  // namespace

const CDialect& opencl_dialect(bool exact_division) { return exact_division ? kOpenCl : kOpenClByDouble; }

}  // namespace tandem::codegen
