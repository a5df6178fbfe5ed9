// Element types: names, sizes, and promotion against a stored table of Keras.
#include <gtest/gtest.h>

#include <array>
#include <sstream>
#include <string>
#include <tandem/dtype.hpp>
#include <vector>

namespace tandem {
namespace {

const std::vector<DType>& all_types() {
  static const std::vector<DType> types = [] {
    std::vector<DType> v;
    for (int i = 0; i < kDTypeCount; ++i) v.push_back(static_cast<DType>(i));
    return v;
  }();
  return types;
}

DType meet(PromotionType a, PromotionType b) { return result_type(std::array{a, b}); }

// `keras.backend.result_type(row, column)` of Keras 3.15.1, without its narrowing of 64-bit types; the columns are in the order of the
// rows. `int` and `float` are Python's types, that is bare numbers.
constexpr const char* kKerasTable = R"(
bool     bool     uint8    uint16   uint32   uint64   int8     int16    int32    int64    float16 bfloat16 float32 float64 int32    float32
uint8    uint8    uint8    uint16   uint32   uint64   int16    int16    int32    int64    float16 bfloat16 float32 float64 uint8    float32
uint16   uint16   uint16   uint16   uint32   uint64   int32    int32    int32    int64    float16 bfloat16 float32 float64 uint16   float32
uint32   uint32   uint32   uint32   uint32   uint64   int64    int64    int64    int64    float16 bfloat16 float32 float64 uint32   float32
uint64   uint64   uint64   uint64   uint64   uint64   float32  float32  float32  float32  float16 bfloat16 float32 float64 uint64   float32
int8     int8     int16    int32    int64    float32  int8     int16    int32    int64    float16 bfloat16 float32 float64 int8     float32
int16    int16    int16    int32    int64    float32  int16    int16    int32    int64    float16 bfloat16 float32 float64 int16    float32
int32    int32    int32    int32    int64    float32  int32    int32    int32    int64    float16 bfloat16 float32 float64 int32    float32
int64    int64    int64    int64    int64    float32  int64    int64    int64    int64    float16 bfloat16 float32 float64 int64    float32
float16  float16  float16  float16  float16  float16  float16  float16  float16  float16  float16 float32  float32 float64 float16  float16
bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32 bfloat16 float32 float64 bfloat16 bfloat16
float32  float32  float32  float32  float32  float32  float32  float32  float32  float32  float32 float32  float32 float64 float32  float32
float64  float64  float64  float64  float64  float64  float64  float64  float64  float64  float64 float64  float64 float64 float64  float64
int      int32    uint8    uint16   uint32   uint64   int8     int16    int32    int64    float16 bfloat16 float32 float64 int32    float32
float    float32  float32  float32  float32  float32  float32  float32  float32  float32  float16 bfloat16 float32 float64 float32  float32
)";

struct Row {
  PromotionType type;
  std::string label;
  std::vector<std::string> results;
};

std::vector<Row> keras_rows() {
  std::vector<Row> rows;
  std::istringstream lines(kKerasTable);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Row row;
    if (!(words >> row.label)) continue;
    if (row.label == "int") {
      row.type = {DType::I32, true};
    } else if (row.label == "float") {
      row.type = {DType::F32, true};
    } else {
      row.type = {parse_dtype(row.label).value()};
    }
    for (std::string word; words >> word;) row.results.push_back(word);
    rows.push_back(row);
  }
  return rows;
}

TEST(DType, NamesRoundTrip) {
  for (DType t : all_types()) EXPECT_EQ(parse_dtype(name(t)), t) << name(t);
  EXPECT_EQ(name(DType::Bool), "bool");
  EXPECT_EQ(name(DType::BF16), "bfloat16");
  EXPECT_EQ(name(DType::F64), "float64");
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
  EXPECT_EQ(parse_dtype("Float32"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(DType, SizesFollowTheNames) {
  for (DType t : all_types()) {
    const std::string text(name(t));
    const size_t digits = text.find_first_of("0123456789");
    const size_t bits = digits == std::string::npos ? 8 : std::stoul(text.substr(digits));
    EXPECT_EQ(size_of(t), bits / 8) << text;
  }
}

TEST(DType, KindsFollowTheNames) {
  for (DType t : all_types()) {
    const std::string text(name(t));
    const bool floating = text.find("float") != std::string::npos;
    const bool integer = text.find("int") != std::string::npos;
    EXPECT_EQ(is_float(t), floating) << text;
    EXPECT_EQ(is_int(t), integer) << text;
    EXPECT_EQ(is_signed(t), floating || (integer && text[0] != 'u')) << text;
    EXPECT_EQ(info(t).is_float, is_float(t)) << text;
    EXPECT_EQ(info(t).is_int, is_int(t)) << text;
    EXPECT_EQ(info(t).is_signed, is_signed(t)) << text;
  }
}

TEST(DType, PromotionIsThatOfKeras) {
  const std::vector<Row> rows = keras_rows();
  ASSERT_EQ(rows.size(), static_cast<size_t>(kDTypeCount + 2));
  for (const Row& a : rows) {
    ASSERT_EQ(a.results.size(), rows.size()) << a.label;
    for (size_t column = 0; column < rows.size(); ++column)
      EXPECT_EQ(name(meet(a.type, rows[column].type)), a.results[column]) << a.label << " with " << rows[column].label;
  }
}

TEST(DType, PromotionIsAJoin) {
  std::vector<PromotionType> types;
  for (const Row& row : keras_rows()) types.push_back(row.type);
  const auto same = [](PromotionType a, PromotionType b) { return a.dtype == b.dtype && a.weak == b.weak; };
  for (PromotionType a : types) {
    EXPECT_TRUE(same(promote(a, a), a));
    for (PromotionType b : types) {
      EXPECT_TRUE(same(promote(a, b), promote(b, a)));
      for (PromotionType c : types) EXPECT_TRUE(same(promote(promote(a, b), c), promote(a, promote(b, c))));
    }
  }
}

TEST(DType, ResultOfSeveralTypesKeepsWeaknessBetween) {
  // uint64 and int64 meet in a float without a width, so the third decides: pairwise float32 would be wrong.
  EXPECT_EQ(result_type(std::array<PromotionType, 3>{{{DType::U64}, {DType::I64}, {DType::F16}}}), DType::F16);
  EXPECT_TRUE(promote({DType::U64}, {DType::I8}).weak);
  EXPECT_FALSE(promote({DType::F32}, {DType::F32, true}).weak);
}

TEST(DType, ResultOfOneTypeOrNone) {
  EXPECT_EQ(result_type({}), DType::F32);
  for (DType t : all_types()) EXPECT_EQ(result_type(std::array<PromotionType, 1>{{{t}}}), t) << name(t);
  EXPECT_EQ(result_type(std::array<PromotionType, 1>{{{DType::I32, true}}}), DType::I32);
  EXPECT_EQ(result_type(std::array<PromotionType, 1>{{{DType::F32, true}}}), DType::F32);
}

TEST(DType, BoolIsNeverWeak) {
  EXPECT_FALSE(promote({DType::Bool, true}, {DType::Bool, true}).weak);
  EXPECT_EQ(meet({DType::Bool, true}, {DType::U8}), DType::U8);
}

TEST(DType, FloatingType) {
  for (DType t : all_types()) EXPECT_EQ(floating_type(t), is_float(t) ? t : DType::F32) << name(t);
}

TEST(DType, OfCppTypes) {
  EXPECT_EQ(DTypeOf<bool>::value, DType::Bool);
  EXPECT_EQ(DTypeOf<uint64_t>::value, DType::U64);
  EXPECT_EQ(DTypeOf<int8_t>::value, DType::I8);
  EXPECT_EQ(DTypeOf<double>::value, DType::F64);
}

}  // namespace
}  // namespace tandem
