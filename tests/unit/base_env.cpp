// Environment variables: defaults, parsing, and that docs/env.md is the table.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <tandem/error.hpp>

#include "base/env.hpp"
#include "support/source_folder.hpp"

namespace tandem::env {
namespace {

// Sets a variable, or removes it, for one scope.
class Scoped {
 public:
  Scoped(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Scoped() { set(old_ ? old_->c_str() : nullptr); }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  void set(const char* value) {
    if (value) {
      setenv(name_, value, 1);
    } else {
      unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> old_;
};

std::string error_text(void (*f)()) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no UserError";
}

TEST(Env, TableIsCompleteAndDocumented) {
  std::set<std::string_view> names;
  for (const Variable& v : variables()) {
    EXPECT_EQ(v.name.substr(0, 7), "TANDEM_");
    EXPECT_FALSE(v.doc.empty()) << v.name;
    EXPECT_EQ(v.doc.find('|'), std::string_view::npos) << v.name << ": would break the table of docs/env.md";
    EXPECT_TRUE(names.insert(v.name).second) << v.name << " twice";
  }
  EXPECT_TRUE(names.contains("TANDEM_THREADS"));
}

TEST(Env, SizesAreNumbersWithUnits) {
  const char* name = "TANDEM_GPU_MEMORY";
  {
    const Scoped none(name, nullptr);
    EXPECT_EQ(get_bytes(name), 0u);
  }
  const std::pair<const char*, size_t> good[] = {
      {"512MiB", size_t{512} << 20}, {"1.5GiB", size_t{3} << 29}, {"2GB", 2000000000}, {"64KiB", 65536}, {"100B", 100}};
  for (const auto& [text, bytes] : good) {
    const Scoped set(name, text);
    EXPECT_EQ(get_bytes(name), bytes) << text;
  }
  for (const char* text : {"512", "MiB", "-1GiB", "0MiB", "1 GiB", "1GiBx", "nanMiB", "1e9GiB"}) {
    const Scoped set(name, text);
    EXPECT_EQ(error_text([] { get_bytes("TANDEM_GPU_MEMORY"); }),
              std::string("TANDEM_GPU_MEMORY: \"") + text +
                  "\" is not a size\n  hint: a number with KiB, MiB, GiB (or KB, MB, GB) behind it, such as 512MiB or 1.5GiB")
        << text;
  }
}

TEST(Env, DocumentIsTheTable) {
  std::ifstream file(test::source_file("docs/env.md"));
  ASSERT_TRUE(file) << "docs/env.md is missing";
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), markdown()) << "docs/env.md is not what env::markdown() gives";
}

TEST(Env, DefaultsAndFreshReads) {
  Scoped device("TANDEM_DEVICE", nullptr);
  EXPECT_EQ(get("TANDEM_DEVICE"), "");
  Scoped placement("TANDEM_PLACEMENT", nullptr);
  EXPECT_EQ(get("TANDEM_PLACEMENT"), "cost");
  setenv("TANDEM_DEVICE", "opencl:0", 1);
  EXPECT_EQ(get("TANDEM_DEVICE"), "opencl:0");
  setenv("TANDEM_DEVICE", "", 1);
  EXPECT_EQ(get("TANDEM_DEVICE"), "");
}

TEST(Env, UnknownNameIsOurBug) { EXPECT_THROW(get("TANDEM_NO_SUCH"), InternalError); }

TEST(Env, WholeNumbers) {
  Scoped threads("TANDEM_THREADS", nullptr);
  EXPECT_EQ(get_count("TANDEM_THREADS", 64), 0);
  setenv("TANDEM_THREADS", "12", 1);
  EXPECT_EQ(get_count("TANDEM_THREADS", 64), 12);
  const auto ask = +[] { get_count("TANDEM_THREADS", 64); };
  setenv("TANDEM_THREADS", "2x", 1);
  EXPECT_EQ(error_text(ask), "TANDEM_THREADS: \"2x\" is not a whole number");
  setenv("TANDEM_THREADS", "", 1);
  EXPECT_EQ(error_text(ask), "TANDEM_THREADS: \"\" is not a whole number");
  setenv("TANDEM_THREADS", "99999999999999999999", 1);
  EXPECT_EQ(error_text(ask), "TANDEM_THREADS: \"99999999999999999999\" does not fit in 64 bits");
  setenv("TANDEM_THREADS", "-1", 1);
  EXPECT_EQ(error_text(ask), "TANDEM_THREADS: \"-1\" is not from 0 to 64");
  setenv("TANDEM_THREADS", "65", 1);
  EXPECT_EQ(error_text(ask), "TANDEM_THREADS: \"65\" is not from 0 to 64");
}

TEST(Env, NamesOfAList) {
  static constexpr std::string_view known[] = {"cse", "fold", "fuse"};
  Scoped passes("TANDEM_DISABLE_PASS", nullptr);
  EXPECT_TRUE(get_names("TANDEM_DISABLE_PASS", known).empty());
  setenv("TANDEM_DISABLE_PASS", ",fuse,,cse,", 1);
  EXPECT_EQ(get_names("TANDEM_DISABLE_PASS", known), (std::vector<std::string>{"fuse", "cse"}));
  setenv("TANDEM_DISABLE_PASS", "fuse,csee", 1);
  EXPECT_EQ(error_text([] { get_names("TANDEM_DISABLE_PASS", known); }),
            "TANDEM_DISABLE_PASS: there is no \"csee\"; there are cse, fold, fuse");
}

TEST(Env, Flags) {
  Scoped verify("TANDEM_VERIFY", nullptr);
  EXPECT_FALSE(get_flag("TANDEM_VERIFY"));
  for (const char* text : {"", "0", "false", "off"}) {
    setenv("TANDEM_VERIFY", text, 1);
    EXPECT_FALSE(get_flag("TANDEM_VERIFY")) << text;
  }
  for (const char* text : {"1", "true", "on"}) {
    setenv("TANDEM_VERIFY", text, 1);
    EXPECT_TRUE(get_flag("TANDEM_VERIFY")) << text;
  }
}

TEST(Env, CacheDir) {
  Scoped cache("TANDEM_CACHE_DIR", nullptr);
  Scoped xdg("XDG_CACHE_HOME", "/xdg");
  Scoped home("HOME", "/home/user");
  EXPECT_EQ(cache_dir(), "/xdg/tandem/kernels");
  EXPECT_EQ(get("TANDEM_CACHE_DIR"), "/xdg/tandem/kernels");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache_dir(), "/home/user/.cache/tandem/kernels");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cache_dir(), "/home/user/.cache/tandem/kernels");
  unsetenv("HOME");
  EXPECT_EQ(cache_dir(), "");
  setenv("TANDEM_CACHE_DIR", "/fast/disk", 1);
  EXPECT_EQ(cache_dir(), "/fast/disk");
  for (const char* text : {"", "off"}) {
    setenv("TANDEM_CACHE_DIR", text, 1);
    EXPECT_EQ(cache_dir(), "") << text;
  }
}

}  // namespace
}  // namespace tandem::env
