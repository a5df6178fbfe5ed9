// Loops: the usual reductions and their text; the text of types.
#include "ir/loops.hpp"

#include <gtest/gtest.h>

#include <tandem/error.hpp>

#include "ir/type.hpp"

namespace tandem::ir {
namespace {

using enum DType;

TEST(Loops, Identities) {
  EXPECT_EQ(str(identity_of(Fold::Sum, F32)), "0:f32");
  EXPECT_EQ(str(identity_of(Fold::Product, I32)), "1:i32");
  EXPECT_EQ(str(identity_of(Fold::Max, F32)), "-inf:f32");
  EXPECT_EQ(str(identity_of(Fold::Min, F16)), "inf:f16");
  EXPECT_EQ(str(identity_of(Fold::Max, I8)), "-128:i8");
  EXPECT_EQ(str(identity_of(Fold::Max, U32)), "0:u32");
  EXPECT_EQ(str(identity_of(Fold::Min, I64)), "9223372036854775807");
  EXPECT_EQ(str(identity_of(Fold::Min, U64)), "18446744073709551615:u64");
  EXPECT_EQ(str(identity_of(Fold::Max, Bool)), "false");
  EXPECT_EQ(str(identity_of(Fold::Min, Bool)), "true");
  EXPECT_EQ(str(identity_of(Fold::And, Bool)), "true");
  EXPECT_EQ(str(identity_of(Fold::And, U8)), "255:u8");
  EXPECT_EQ(str(identity_of(Fold::Or, Bool)), "false");
  EXPECT_EQ(str(identity_of(Fold::Or, I32)), "0:i32");
}

TEST(Loops, IdentityIsNeutral) {
  for (Fold how : {Fold::Sum, Fold::Product, Fold::Min, Fold::Max, Fold::And, Fold::Or})
    for (DType t : {U8, I16, I32, U64, I64}) {
      const Scalar identity = identity_of(how, t), x = constant_int(t, 5);
      const Reduction r = fold(how, {3}, x);
      const Scalar combined = rewrite(r.combine[0], [&](const Scalar& s) {
        return s->prim == Prim::Acc ? identity : s->prim == Prim::Right ? x : Scalar();
      });
      EXPECT_EQ(str(combined), str(x)) << static_cast<int>(how) << " " << name(t);
    }
}

TEST(Loops, Fold) {
  const Reduction r = fold(Fold::Sum, {Dim::symbol("n")}, load(0, F32, {axis(0)}));
  EXPECT_EQ(r.extents, (Dims{Dim::symbol("n")}));
  EXPECT_EQ(str(r.element.at(0)), "load0(axis0):f32");
  EXPECT_EQ(str(r.identity.at(0)), "0:f32");
  EXPECT_EQ(str(r.combine.at(0)), "add(acc0:f32, right0:f32)");
  EXPECT_EQ(str(fold(Fold::And, {2}, load(0, Bool, {axis(0)})).combine[0]), "and(acc0:bool, right0:bool)");
  EXPECT_THROW(fold(Fold::Sum, {2}, load(0, F16, {axis(0)})), InternalError);
  EXPECT_THROW(fold(Fold::Sum, {2}, load(0, Bool, {axis(0)})), InternalError);
  EXPECT_NO_THROW(fold(Fold::Max, {2}, load(0, F16, {axis(0)})));
}

TEST(Loops, Text) {
  Loops l;
  l.extents = {Dim::symbol("b"), 3};
  l.results = {load(0, F32, {axis(0), axis(1)}) * 2};
  EXPECT_EQ(str(l), "loops [b,3] results {mul(load0(axis0, axis1):f32, 2:f32)}");
  l.reduction = fold(Fold::Sum, {8}, load(0, F32, {axis(0), axis(1), axis(2)}));
  l.results = {acc(0, F32), axis(0)};
  EXPECT_EQ(str(l),
            "loops [b,3] reduce [8] element {load0(axis0, axis1, axis2):f32} identity {0:f32} combine {add(acc0:f32, right0:f32)} "
            "results {acc0:f32 | axis0}");
  l.reduction->limit = axis(0) + 1;
  EXPECT_NE(str(l).find("add(axis0, 1)"), std::string::npos) << "a kernel that stops early is another kernel";
  l.scan_axis = 1;
  EXPECT_NE(str(l).find(" scan 1 "), std::string::npos);
}

TEST(TensorType, Text) {
  EXPECT_EQ((TensorType{F32, {Dim::symbol("b"), 3}}).str(), "float32[b,3]");
  EXPECT_EQ((TensorType{Bool, {}}).str(), "bool[]");
  EXPECT_TRUE((TensorType{F32, {3}}) == (TensorType{F32, {3}}));
  EXPECT_FALSE((TensorType{F32, {3}}) == (TensorType{F64, {3}}));
}

}  // namespace
}  // namespace tandem::ir
