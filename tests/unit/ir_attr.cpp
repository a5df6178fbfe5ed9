// Attributes and literals: values, text and equality.
#include "ir/attr.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/half.hpp"
#include "ir/cursor.hpp"
#include "ir_rows.hpp"

namespace tandem::ir {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Literal, ScalarOfEveryType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    const Literal l = Literal::scalar(t, 1);
    EXPECT_EQ(l.bytes->size(), size_of(t));
    EXPECT_EQ(l.type(), (TensorType{t, {}}));
    EXPECT_EQ(load_number(t, l.bytes->data()), 1) << name(t);
    EXPECT_TRUE(equal(l, Literal::scalar_int(t, 1))) << name(t);
  }
}

TEST(Literal, IntegersSaturateAndNaNIsZero) {
  EXPECT_EQ(Literal::scalar(DType::U8, -3).values<uint8_t>()[0], 0);
  EXPECT_EQ(Literal::scalar(DType::U8, 1e9).values<uint8_t>()[0], 255);
  EXPECT_EQ(Literal::scalar(DType::I64, 1e30).values<int64_t>()[0], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Literal::scalar(DType::U64, 1e30).values<uint64_t>()[0], std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Literal::scalar(DType::I64, -kInf).values<int64_t>()[0], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Literal::scalar(DType::I32, kNaN).values<int32_t>()[0], 0);
  EXPECT_EQ(Literal::scalar(DType::I32, -2.9).values<int32_t>()[0], -2);
  EXPECT_EQ(Literal::scalar(DType::Bool, 0.25).values<bool>()[0], true);
  EXPECT_EQ(Literal::scalar_int(DType::I64, (int64_t{1} << 60) + 1).values<int64_t>()[0], (int64_t{1} << 60) + 1);
  EXPECT_EQ(static_cast<float>(Literal::scalar(DType::F16, 1e6).values<Half>()[0]), kInf);
}

TEST(Literal, TextIsExact) {
  const float values[] = {1, 0.1f, -0.0f, std::numeric_limits<float>::infinity()};
  EXPECT_EQ(str(Literal::of(DType::F32, {2, 2}, values)), "float32[2,2]{1,0.1,-0,inf}");
  EXPECT_EQ(str(Literal::scalar(DType::Bool, 1)), "bool[]{true}");
  EXPECT_EQ(str(Literal::scalar_int(DType::U64, -1)), "uint64[]{18446744073709551615}");
  EXPECT_EQ(str(Literal::of(DType::I8, {0}, nullptr)), "int8[0]{}");
  const std::vector<uint8_t> many(17, 0xa5);
  EXPECT_EQ(str(Literal::of(DType::U8, {17}, many.data())).substr(0, 15), "uint8[17]x'a5a5");
}

TEST(Literal, TextComesBack) {
  const uint32_t payload = 0x7fc12345;  // a NaN that is not the usual one
  const uint16_t halves[] = {0x0001, 0x3555, 0x7bff, 0x8000, 0x7e00};
  const std::vector<double> many(33, 0.1);
  const Literal all[] = {
      Literal::of(DType::F32, {1}, &payload),     Literal::of(DType::F16, {5}, halves), Literal::of(DType::BF16, {5}, halves),
      Literal::of(DType::F64, {33}, many.data()), Literal::scalar_int(DType::U64, -1),  Literal::scalar_int(DType::I64, INT64_MIN),
      Literal::scalar(DType::F32, kNaN),          Literal::scalar(DType::F64, 5e-324),  Literal::scalar(DType::F64, -kInf),
      Literal::of(DType::Bool, {0, 3}, nullptr),  Literal::scalar_int(DType::I8, -128), Literal::scalar(DType::Bool, 0),
  };
  for (const Literal& l : all) {
    const std::string text = str(l);
    Cursor c(text);
    EXPECT_TRUE(equal(c.literal(), l)) << text;
    EXPECT_TRUE(c.at_end());
  }
}

TEST(Literal, BadTextIsRefused) {
  for (const char* text :
       {"float32[2]{1}", "float32[2]{1,2,3}", "uint8[]{256}", "int8[]{-129}", "uint8[]{-1}", "float32[9999999999,9999999999,9999999999]{}",
        "float32[1]x'00'", "float32[1]x'0000000'", "bool[]x'02'", "bool[]{1}", "float32[-1]{}", "float9[]{1}", "int32[]{1.5}", ""}) {
    Cursor c(text);
    EXPECT_THROW(c.literal(), SyntaxError) << text;
  }
}

TEST(Attr, Text) {
  EXPECT_EQ(str(Attr{}), "none");
  EXPECT_EQ(str(Attr{true}), "true");
  EXPECT_EQ(str(Attr{3}), "3");
  EXPECT_EQ(str(Attr{0.1}), "0.1");
  EXPECT_EQ(str(Attr{"it's\n\\"}), "'it\\'s\\x0a\\\\'");
  EXPECT_EQ(str(Attr{DType::BF16}), "bfloat16");
  EXPECT_EQ(str(Attr{Ints{1, -2}}), "[1,-2]");
  EXPECT_EQ(str(Attr{Floats{0.5, -kInf}}), "[0.5,-inf]");
  EXPECT_EQ(str(Attr{Dims{Dim::symbol("b"), 3}}), "[b,3]");
  EXPECT_EQ(str(Attr{Graphs{}}), "[]");
}

TEST(Attr, EqualityIsByBits) {
  EXPECT_TRUE(equal(Attr{kNaN}, Attr{kNaN}));
  EXPECT_FALSE(equal(Attr{0.0}, Attr{-0.0}));
  EXPECT_FALSE(equal(Attr{1}, Attr{1.0}));
  EXPECT_FALSE(equal(Attr{Ints{1}}, Attr{Ints{1, 2}}));
  EXPECT_TRUE(equal(Attr{Floats{kNaN}}, Attr{Floats{kNaN}}));
  EXPECT_FALSE(equal(Literal::scalar(DType::F32, 0), Literal::scalar(DType::I32, 0)));
  EXPECT_FALSE(equal(Attr{Literal{}}, Attr{Literal::scalar(DType::F32, 0)}));
  const auto g = std::make_shared<const Graph>(test::rich_graph());
  const auto h = std::make_shared<const Graph>(test::rich_graph());
  EXPECT_TRUE(equal(Attr{Graphs{g}}, Attr{Graphs{h}}));
  EXPECT_EQ(hash(Attr{Graphs{g}}), hash(Attr{Graphs{h}}));
  EXPECT_FALSE(equal(Attr{Graphs{g}}, Attr{Graphs{nullptr}}));
}

TEST(Attr, HashesDiffer) {
  EXPECT_NE(hash(Attr{1}), hash(Attr{2}));
  EXPECT_NE(hash(Attr{Ints{1, 2}}), hash(Attr{Ints{2, 1}}));
  EXPECT_NE(hash(Attr{Ints{1}}), hash(Attr{Floats{1}}));
  EXPECT_NE(hash(Attr{Literal::scalar(DType::F32, 1)}), hash(Attr{Literal::scalar(DType::F32, 2)}));
}

TEST(Attrs, SetFindGet) {
  Attrs a{{"axis", 1}};
  a.set("axis", 2);
  a.set("keepdims", Attr{});
  EXPECT_EQ(a.get<int64_t>("axis"), 2);
  EXPECT_EQ(a.entries().size(), 2u);
  EXPECT_NE(a.find("keepdims"), nullptr);
  EXPECT_FALSE(a.has("keepdims"));
  EXPECT_TRUE(a.has("axis"));
  EXPECT_EQ(a.find("other"), nullptr);
  EXPECT_THROW(a.get<double>("axis"), InternalError);
  EXPECT_THROW(a.get<double>("other"), InternalError);
  EXPECT_EQ(a, (Attrs{{"axis", 2}, {"keepdims", Attr{}}}));
  EXPECT_FALSE(a == (Attrs{{"axis", 2}}));
  EXPECT_EQ(a.hash(), (Attrs{{"axis", 2}, {"keepdims", Attr{}}}).hash());
}

}  // namespace
}  // namespace tandem::ir
