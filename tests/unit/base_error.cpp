// The kinds of errors and the printed form of a location.
#include <gtest/gtest.h>

#include <tandem/error.hpp>
#include <type_traits>

namespace tandem {
namespace {

TEST(Error, KindsAreErrorsAndApart) {
  EXPECT_THROW(throw UserError("x"), Error);
  EXPECT_THROW(throw ResourceError("x"), Error);
  EXPECT_THROW(throw InternalError("x"), Error);
  EXPECT_FALSE((std::is_base_of_v<UserError, ResourceError> || std::is_base_of_v<UserError, InternalError>));
  EXPECT_STREQ(UserError("add: text").what(), "add: text");
  EXPECT_STREQ(InternalError("text").what(), "internal error (this is a bug in tandem): text");
}

TEST(Location, Text) {
  EXPECT_EQ(Location{}.str(), "");
  EXPECT_FALSE(Location{});
  EXPECT_EQ((Location{"model.cpp", 42}.str()), "model.cpp:42");
  EXPECT_EQ((Location{"/home/user/model.cpp", 42}.str()), "model.cpp:42");
  EXPECT_EQ((Location{"model.py", 0}.str()), "model.py");
  EXPECT_TRUE((Location{"model.cpp", 42}));
}

TEST(Location, OfTheSource) {
  const Location here = Location::of(std::source_location::current());
  EXPECT_EQ(here.str(), "base_error.cpp:" + std::to_string(__LINE__ - 1));
}

}  // namespace
}  // namespace tandem
