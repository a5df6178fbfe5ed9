// Regular expressions: what they match, which of several matches they take, and what they refuse.
#include <gtest/gtest.h>

#include "base/regex.hpp"
#include "error_of.hpp"

namespace tandem {
namespace {

std::string replaced(const char* pattern, const char* text, const char* rewrite) { return Regex(pattern).replace(text, rewrite, true); }

TEST(Regex, MatchesAllOfATextOrNothing) {
  EXPECT_TRUE(Regex("a.c").full_match("abc"));
  EXPECT_FALSE(Regex("a.c").full_match("abcd"));
  EXPECT_FALSE(Regex("a.c").full_match("a\nc"));
  EXPECT_TRUE(Regex("(?s)a.c").full_match("a\nc"));
  EXPECT_TRUE(Regex("a|ab").full_match("ab"));  // also what the first choice would not take
  EXPECT_TRUE(Regex("(?i)straSSe").full_match("STRAsse"));
  EXPECT_TRUE(Regex("x{2,3}").full_match("xxx"));
  EXPECT_FALSE(Regex("x{2,3}").full_match("xxxx"));
  EXPECT_TRUE(Regex("a{b}").full_match("a{b}"));
  EXPECT_TRUE(Regex("[[:alpha:]_]+[^[:digit:]-]").full_match("ab_c!"));
  EXPECT_TRUE(Regex("[]a-c^-]+").full_match("]b^-"));
  EXPECT_TRUE(Regex(R"(\Qa.b\E\x41\x{00e9}\t\.)").full_match("a.bA\xc3\xa9\t."));
  EXPECT_TRUE(Regex("").full_match(""));
}

TEST(Regex, CountsCharactersAndNotBytes) {
  EXPECT_TRUE(Regex("...").full_match("a\xc3\xa9\xe2\x82\xac"));
  EXPECT_EQ(replaced("[^a]",
                     "a\xc3\xa9"
                     "a",
                     "_"),
            "a_a");
  EXPECT_EQ(replaced(".", "\xff!", "_"), "\xff_");  // a byte that is no character is left alone
}

TEST(Regex, TakesTheLeftmostMatchAndTheBetterChoice) {
  EXPECT_EQ(replaced("a+", "baaac a", "<\\0>"), "b<aaa>c <a>");
  EXPECT_EQ(replaced("a+?", "aa", "<\\0>"), "<a><a>");
  EXPECT_EQ(replaced("(a|ab)(c|bcd)", "abcd", "[\\1,\\2]"), "[a,bcd]");
  EXPECT_EQ(replaced("(\\w+) (\\w+)", "hello world, my friend", "\\2 \\1"), "world hello, friend my");
  EXPECT_EQ(replaced("\\bcat\\b", "cat concat cat", "dog"), "dog concat dog");
  EXPECT_EQ(replaced("(?m)^", "a\nb", "> "), "> a\n> b");
  EXPECT_EQ(replaced("b$", "b\nb", "x"), "b\nx");
  EXPECT_EQ(Regex("o").replace("foo", "0", false), "f0o");
  EXPECT_EQ(replaced("(a)|(b)", "ab", "<\\1\\2>"), "<a><b>");
}

TEST(Regex, EmptyMatchesStandBetweenCharacters) {
  EXPECT_EQ(replaced("x*", "abc", "-"), "-a-b-c-");
  EXPECT_EQ(replaced("b*", "abc", "-"), "-a-c-");
}

TEST(Regex, TakesTimeThatGrowsLikeTheText) {  // a matcher that tries one way after the other would not end
  EXPECT_FALSE(Regex("(a*)*b").full_match(std::string(5000, 'a')));
  EXPECT_TRUE(Regex("(a?){300}a{300}").full_match(std::string(300, 'a')));
}

TEST(Regex, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] { Regex("a(b"); }), "Invalid pattern: a(b, error: missing closing ) at byte 3");
  EXPECT_EQ(error_of([] { Regex("*a"); }), "Invalid pattern: *a, error: no argument for repetition operator at byte 0");
  EXPECT_EQ(error_of([] { Regex("[b-a]"); }), "Invalid pattern: [b-a], error: invalid character class range at byte 4");
  EXPECT_EQ(error_of([] { Regex("a)"); }), "Invalid pattern: a), error: unexpected ) at byte 1");
  EXPECT_EQ(error_of([] { Regex("\\y"); }), "Invalid pattern: \\y, error: invalid escape sequence at byte 2");
  EXPECT_EQ(error_of([] { Regex("a").replace("a", "\\1", true); }), "regex_replace: the rewrite \\1 names group 1, the pattern has 0");
}

}  // namespace
}  // namespace tandem
