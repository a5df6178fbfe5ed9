// cat() and the throwing helpers made of it.
#include <gtest/gtest.h>

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
