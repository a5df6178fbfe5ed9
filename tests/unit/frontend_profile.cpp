// Profile: what a program that asks for one gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <tandem/function.hpp>
#include <tandem/ops.hpp>
#include <tandem/profile.hpp>
#include <tandem/tensor.hpp>

#include "unit/error_of.hpp"

namespace tandem {
namespace {

using testing::HasSubstr;

class Profiles : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("tandem_frontend_profile_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string name(const char* file) const { return (folder / file).string(); }
  static std::string read(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path folder;
};

TEST_F(Profiles, HaveStepsKernelsAndLines) {
  const Tensor x = Tensor::ones({8, 8});
  Profile profile(name("both"), "a small loop");
  for (int64_t i = 0; i < 3; ++i) {
    const ProfiledStep step(i);
    matmul(x, x).to_vector<float>();
  }
  EXPECT_EQ(profile.stop(), (std::vector<std::string>{name("both.html"), name("both.json")}));
  EXPECT_TRUE(profile.stop().empty());
  const std::string html = read(name("both.html")), json = read(name("both.json"));
  EXPECT_THAT(html, HasSubstr("a small loop"));
  EXPECT_THAT(html, HasSubstr("median of 3 steps"));
  for (const char* part : {"matmul float32[8,8]", "step 2", "\"launch\""}) EXPECT_THAT(json, HasSubstr(part));
}

TEST_F(Profiles, AreOneAtATime) {
  const Profile profile(name("first.html"));
  EXPECT_EQ(error_of<UserError>([&] { Profile second(name("second.html")); }),
            "profile: one is being recorded already\n  hint: stop that one first");
}

TEST_F(Profiles, EndWithTheirScopeAndCanBeAbandoned) {
  {
    const Profile profile(name("scope.html"));
  }
  EXPECT_TRUE(std::filesystem::exists(name("scope.html")));
  Profile profile(name("abandoned.html"));
  profile.abandon();
  EXPECT_TRUE(profile.stop().empty());
  EXPECT_FALSE(std::filesystem::exists(name("abandoned.html")));
  const ProfiledStep nobody_looks(1);
}

}  // namespace
}  // namespace tandem
