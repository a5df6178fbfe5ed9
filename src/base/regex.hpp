// Regular expressions in RE2's syntax, matched in time linear in the text: Pike's machine (Thompson, 1968; Cox, "Regular expression
// matching: the virtual machine approach", 2009). Text is UTF-8; a byte that is none of it matches nothing but itself.
#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

class Regex {
 public:
  explicit Regex(std::string_view pattern);  // UserError: what is wrong with it, and where

  bool full_match(std::string_view text) const;
  // Each match, or the first alone, by `rewrite`, in which \0 to \9 stand for what was matched; UserError when there is no such group.
  std::string replace(std::string_view text, std::string_view rewrite, bool all) const;
  int groups() const { return groups_; }

  struct Range {
    char32_t low, high;
  };
  struct Set {
    std::vector<Range> ranges;  // sorted, apart from each other
    std::bitset<128> ascii;     // the same for the most common ones
    bool has(char32_t c) const;
  };
  enum class Kind : uint8_t { Match, Set, Split, Jump, Save, TextBegin, TextEnd, LineBegin, LineEnd, Word, NoWord };
  struct Instruction {
    Kind kind;
    int32_t first = 0, second = 0;  // of Split: where to, the better one first; of Jump: where to; of Set and Save: the number
  };

 private:
  std::vector<Instruction> steps_;
  std::vector<Set> sets_;
  int groups_ = 0;
  std::array<bool, 256> begins_{};  // bytes that a match can begin with
  bool may_be_empty_ = false;

  struct Machine;
  void find_beginnings();
};

}  // namespace tandem
