// The registry with folders of the test's own: which are asked, when, and how often.
#include <gtest/gtest.h>

#include <tandem/error.hpp>

#include "device/device.hpp"

namespace tandem::device {
namespace {

int first_asked = 0, second_asked = 0;
std::vector<Candidate> first() {
  ++first_asked;
  return {{"near", {}, "it is switched off"}};
}
std::vector<Candidate> second() {
  if (++second_asked == 1) throw UserError("the variable makes no sense");
  return {{"far:0", {}, "its driver is too old"}, {"far:1", {}, "its driver is too old"}};
}

std::string error_of(std::string_view name) {
  try {
    get(name);
    return "no error";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

std::span<const Factory> factories() {
  static constexpr Factory kList[] = {{"first", first}, {"second", second}};
  return kList;
}

TEST(Registry, AsksAFolderOnlyWhenThoseBeforeItHaveNotWhatIsWanted) {
  EXPECT_EQ(error_of("near"), "near: it is switched off");
  EXPECT_EQ(first_asked, 1);
  EXPECT_EQ(second_asked, 0);
  EXPECT_EQ(error_of("far:1"), "the variable makes no sense");
  EXPECT_EQ(error_of("near"), "near: it is switched off");
  EXPECT_EQ(error_of("far:1"), "far:1: its driver is too old");
  EXPECT_EQ(error_of("abacus"), "device: there is no device 'abacus'; there are near, far:0, far:1");
  EXPECT_EQ(names(), (std::vector<std::string>{"near", "far:0", "far:1"}));
  EXPECT_EQ(first_asked, 1);
  EXPECT_EQ(second_asked, 2);
}

}  // namespace tandem::device
