// The parser of regular expressions: text to steps of the machine in regex.cpp.
#pragma once
#include "base/regex.hpp"

namespace tandem {

struct ParsedRegex {
  std::vector<Regex::Instruction> steps;
  std::vector<Regex::Set> sets;
  int groups = 0;
};
ParsedRegex parse_regex(std::string_view pattern);

// The character at text[at], and how many bytes it has. A byte that is no UTF-8 is 0x110000 and itself.
struct Utf8Character {
  char32_t code;
  size_t size;
};
Utf8Character utf8_character(std::string_view text, size_t at);
constexpr char32_t kLastCharacter = 0x10ffff;

}  // namespace tandem
