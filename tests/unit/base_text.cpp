// cat() and the throwing helpers made of it.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "base/text.hpp"

#include <tandem/shape.hpp>

namespace tandem {
namespace {

TEST(Text, CatTakesWhatMessagesNeed) {
  EXPECT_EQ(cat(), "");
  EXPECT_EQ(cat("a ", 1, ' ', std::string("b"), std::string_view(" c")), "a 1 b c");
  EXPECT_EQ(cat(true, false), "truefalse");
  EXPECT_EQ(cat(int8_t{-5}, uint8_t{200}), "-5200");  // numbers, not characters
  EXPECT_EQ(cat(DType::BF16, " ", Shape{2, 3}, " ", Location{"m.cpp", 7}), "bfloat16 [2,3] m.cpp:7");
  EXPECT_EQ(cat(1.5), "1.5");
}

TEST(Text, NumbersLookAsAStreamShowsThem) {
  const auto streamed = [](auto x) {
    std::ostringstream os;
    os << x;
    return os.str();
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double x : {0.0, -0.0, 1.0, 0.1, 1.0 / 3, 1234567.0, 1e20, -1e-7, 5e-324, 1.7976931348623157e308, kInfinity, -kInfinity})
    EXPECT_EQ(cat(x), streamed(x));
  EXPECT_EQ(cat(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(cat(0.1f), "0.1");
  EXPECT_EQ(cat(std::numeric_limits<int64_t>::min()), streamed(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(cat(std::numeric_limits<uint64_t>::max()), streamed(std::numeric_limits<uint64_t>::max()));
}

template <class T>
concept Printable = requires(std::string& out, const T& x) { text_detail::put(out, x); };
static_assert(Printable<bool> && Printable<char[3]> && Printable<Shape>);
static_assert(!Printable<int*> && !Printable<decltype(std::hex)>);  // neither is a bool

TEST(Text, HexHasNoPrefix) { EXPECT_EQ(hex(0xE5F98880u), "e5f98880"); }

TEST(Text, HelpersThrowTheirKind) {
  EXPECT_THROW(user_error("a", 1), UserError);
  EXPECT_THROW(resource_error("a", 1), ResourceError);
  EXPECT_THROW(internal_error("a", 1), InternalError);
}

TEST(Text, CheckThrowsOnlyWhenFalse) {
  const int two = 2;
  EXPECT_NO_THROW(TANDEM_CHECK(two == 2, "fine"));
  try {
    TANDEM_CHECK(two == 3, "two is ", two);
    FAIL() << "the check passed";
  } catch (const InternalError& e) {
    EXPECT_STREQ(e.what(), "internal error (this is a bug in tandem): two == 3: two is 2");
  }
}

}  // namespace
}  // namespace tandem
