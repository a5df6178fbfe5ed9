// Promotion by operand classes: the types that come out, and the texts of the refusals.
#include "ops/promote.hpp"

#include <gtest/gtest.h>

namespace tandem::ops {
namespace {

using enum DType;
using Types = std::vector<DType>;

// One row for each way in which classes meet; what they compute does not matter here.
const ir::OpTable& rows() {
  static const ir::OpTable& table = *[] {
    auto* t = new ir::OpTable;
    const auto add = [&](std::string_view name, std::string_view sig) {
      t->add({.name = name, .sig = sig, .doc = "For these tests.", .traits = ir::kStructural, .infer = [](const ir::OpCall&) {
                return std::vector<ir::TensorType>{{}};
              }});
    };
    add("any", "(x: any, y: any) -> custom");
    add("number", "(x: number, y: number) -> custom");
    add("float", "(x: float, y: float) -> custom");
    add("int", "(x: int, y: int) -> custom");
    add("boolean", "(x: boolean, y: boolean) -> custom");
    add("logic", "(x: bool, y: bool) -> custom");
    add("where", "(condition: bool, x: any, y: any) -> custom");
    add("take", "(x: own, indices: index) -> custom");
    add("draw", "(key: key, mean: float?) -> custom");
    add("stack", "(xs: any...) -> custom");
    add("branch", "(index: index, operands: own...) -> custom");
    add("nothing", "() -> custom");
    return t;
  }();
  return table;
}

Types promoted(std::string_view op, std::vector<PromotionType> given) { return promote_operands(rows().at(op), given); }

std::string refused(std::string_view op, std::vector<PromotionType> given) {
  try {
    promoted(op, std::move(given));
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

constexpr PromotionType kWeakInt{I32, true}, kWeakFloat{F32, true};

TEST(Promote, AnySharesTheResultType) {
  EXPECT_EQ(promoted("any", {{F32}, {F32}}), (Types{F32, F32}));
  EXPECT_EQ(promoted("any", {{I32}, {F16}}), (Types{F16, F16}));
  EXPECT_EQ(promoted("any", {{F16}, {BF16}}), (Types{F32, F32}));
  EXPECT_EQ(promoted("any", {{U8}, {I8}}), (Types{I16, I16}));
  EXPECT_EQ(promoted("any", {{Bool}, {Bool}}), (Types{Bool, Bool}));
  EXPECT_EQ(promoted("any", {{Bool}, {U8}}), (Types{U8, U8}));
}

TEST(Promote, BareNumbersDoNotWiden) {
  EXPECT_EQ(promoted("any", {{BF16}, kWeakFloat}), (Types{BF16, BF16}));
  EXPECT_EQ(promoted("any", {kWeakInt, {I8}}), (Types{I8, I8}));
  EXPECT_EQ(promoted("any", {{I64}, kWeakFloat}), (Types{F32, F32}));
  EXPECT_EQ(promoted("any", {kWeakInt, kWeakInt}), (Types{I32, I32}));
  EXPECT_EQ(promoted("float", {kWeakInt, {F16}}), (Types{F16, F16}));
  EXPECT_EQ(promoted("number", {{Bool}, kWeakInt}), (Types{I32, I32}));
}

TEST(Promote, ClassesFitTheSharedType) {
  EXPECT_EQ(promoted("number", {{Bool}, {Bool}}), (Types{I32, I32}));
  EXPECT_EQ(promoted("number", {{U16}, {Bool}}), (Types{U16, U16}));
  EXPECT_EQ(promoted("float", {{I64}, {Bool}}), (Types{F32, F32}));
  EXPECT_EQ(promoted("float", {{F64}, {I32}}), (Types{F64, F64}));
  EXPECT_EQ(promoted("int", {{Bool}, {Bool}}), (Types{I32, I32}));
  EXPECT_EQ(promoted("int", {{I8}, {I64}}), (Types{I64, I64}));
  EXPECT_EQ(promoted("boolean", {{Bool}, {Bool}}), (Types{Bool, Bool}));
  EXPECT_EQ(promoted("boolean", {{Bool}, {I16}}), (Types{I16, I16}));
}

TEST(Promote, BoolTakesAnything) {
  EXPECT_EQ(promoted("logic", {{F32}, {I8}}), (Types{Bool, Bool}));
  EXPECT_EQ(promoted("where", {{I32}, {F16}, kWeakFloat}), (Types{Bool, F16, F16}));
}

TEST(Promote, OperandsOfTheirOwn) {
  EXPECT_EQ(promoted("take", {{F16}, {I32}}), (Types{F16, I32}));
  EXPECT_EQ(promoted("take", {{Bool}, {I64}}), (Types{Bool, I64}));
  EXPECT_EQ(promoted("take", {{F64, true}, {I64, true}}), (Types{F32, I32})) << "a number without a width gets the default one";
  EXPECT_EQ(promoted("take", {{F32}, {U8}})[1], I32);
  EXPECT_EQ(promoted("take", {{F32}, {I16}})[1], I32);
  EXPECT_EQ(promoted("take", {{F32}, {U32}})[1], I64);
  EXPECT_EQ(promoted("take", {{F32}, {U64}})[1], I64);
  EXPECT_EQ(promoted("draw", {{U32}, {F16}}), (Types{U32, F16}));
}

TEST(Promote, RepeatedAndOptionalOperands) {
  EXPECT_EQ(promoted("stack", {{I8}, {F32}, {Bool}}), (Types{F32, F32, F32}));
  EXPECT_EQ(promoted("stack", {}), Types{});
  EXPECT_EQ(promoted("branch", {{I32}, {Bool}, {F64}}), (Types{I32, Bool, F64}));
  EXPECT_EQ(promoted("draw", {{U32}}), Types{U32});
  EXPECT_EQ(promoted("nothing", {}), Types{});
}

TEST(Promote, RefusalsNameOpOperandTypeAndWhatIsAccepted) {
  EXPECT_EQ(refused("int", {{I32}, {F32}}),
            "int: operand 'y' must be an integer type, got float32\n  hint: cast it first: floats are never made integers silently");
  EXPECT_EQ(refused("boolean", {kWeakFloat, {Bool}}),
            "boolean: operand 'x' must be bool or an integer type, got float32\n  hint: cast it first: floats are never made integers "
            "silently");
  EXPECT_EQ(refused("int", {{U64}, {I8}}),
            "int: operand 'x' must be of a type that has a common integer type with the other operands, got uint64\n  hint: cast uint64 or "
            "the signed operand");
  EXPECT_EQ(refused("take", {{F32}, {F32}}), "take: operand 'indices' must be an integer type (int32 or int64), got float32");
  EXPECT_EQ(refused("take", {{F32}, {Bool}}), "take: operand 'indices' must be an integer type (int32 or int64), got bool");
  EXPECT_EQ(refused("draw", {{I32}}), "draw: operand 'key' must be a key (uint32), got int32");
}

TEST(Promote, RefusalsOfCounts) {
  EXPECT_EQ(refused("where", {{Bool}, {F32}}), "where: takes 3 operands (condition, x, y), got 2");
  EXPECT_EQ(refused("draw", {}), "draw: takes at least 1 operand (key, mean?), got 0");
  EXPECT_EQ(refused("draw", {{U32}, {F32}, {F32}}), "draw: takes at most 2 operands (key, mean?), got 3");
  EXPECT_EQ(refused("branch", {}), "branch: takes at least 1 operand (index, operands...), got 0");
  EXPECT_EQ(refused("nothing", {{F32}}), "nothing: takes 0 operands, got 1");
}

// Whatever comes out must be what nodes accept, for every pair of types that is not refused.
TEST(Promote, ResultsAreAcceptedByNodes) {
  for (std::string_view op : {"any", "number", "float", "int", "boolean", "logic", "take"})
    for (int a = 0; a < kDTypeCount; ++a)
      for (int b = 0; b < kDTypeCount; ++b)
        for (bool weak : {false, true}) {
          const std::vector<PromotionType> given{{static_cast<DType>(a)}, {static_cast<DType>(b), weak}};
          if (refused(op, given) != "accepted") continue;
          const Types types = promoted(op, given);
          for (size_t i = 0; i < 2; ++i)
            EXPECT_TRUE(ir::accepts(rows().at(op).signature.operands[i].type, types[i])) << op << ' ' << name(types[i]);
        }
}

}  // namespace
}  // namespace tandem::ops
