#include "base/regex_parse.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"

namespace tandem {
namespace {

using Kind = Regex::Kind;
using Range = Regex::Range;

constexpr int kMostRepeats = 1000;  // as RE2
constexpr size_t kMostSteps = 200'000;
constexpr int kDeepest = 500;  // groups in groups
constexpr int32_t kUnlimited = -1;

struct Node {
  enum class What : uint8_t { Empty, Set, Join, Either, Repeat, Group, Assertion } what;
  Kind kind = Kind::Match;  // of assertions
  int32_t number = 0;       // of sets and groups; 0 is no group
  int32_t least = 0, most = 0;
  bool is_greedy = true;
  std::vector<int32_t> parts;
};

struct Flags {
  bool ignores_case = false, dot_takes_newline = false, many_lines = false, is_lazy = false;
};

const std::vector<Range> kDigits{{'0', '9'}};
const std::vector<Range> kSpaces{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
const std::vector<Range> kWords{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

std::vector<Range> sorted(std::vector<Range> ranges) {
  std::ranges::sort(ranges, {}, &Range::low);
  std::vector<Range> out;
  for (const Range& r : ranges) {
    if (!out.empty() && r.low <= out.back().high + 1)
      out.back().high = std::max(out.back().high, r.high);
    else
      out.push_back(r);
  }
  return out;
}

std::vector<Range> others(const std::vector<Range>& ranges) {
  std::vector<Range> out;
  char32_t next = 0;
  for (const Range& r : sorted(ranges)) {
    if (r.low > next) out.push_back({next, r.low - 1});
    next = r.high + 1;
  }
  if (next <= kLastCharacter) out.push_back({next, kLastCharacter});
  return out;
}

// Letters of the other case beside the ones that are there: of ASCII alone.
void add_other_case(std::vector<Range>& ranges) {
  const size_t count = ranges.size();
  for (size_t i = 0; i < count; ++i)
    for (const auto& [low, high, move] : {std::tuple{U'a', U'z', -32}, std::tuple{U'A', U'Z', 32}}) {
      const char32_t from = std::max(ranges[i].low, low), to = std::min(ranges[i].high, high);
      if (from <= to)
        ranges.push_back({static_cast<char32_t>(static_cast<int>(from) + move), static_cast<char32_t>(static_cast<int>(to) + move)});
    }
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : text_(pattern) {}

  ParsedRegex run() {
    const int32_t whole = either();
    if (at_ < text_.size()) fail("unexpected )");
    save(0);
    emit(whole);
    save(1);
    step({Kind::Match});
    out_.groups = groups_;
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    user_error("Invalid pattern: ", text_, ", error: ", why, " at byte ", static_cast<int64_t>(at_));
  }

  bool more() const { return at_ < text_.size(); }
  bool next_is(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    if (!next_is(s)) return false;
    at_ += s.size();
    return true;
  }
  char32_t character() {
    if (!more()) fail("the pattern ends too early");
    const Utf8Character c = utf8_character(text_, at_);
    at_ += c.size;
    return c.code;
  }

  int32_t node(Node n) {
    nodes_.push_back(std::move(n));
    return static_cast<int32_t>(nodes_.size()) - 1;
  }
  int32_t set(std::vector<Range> ranges) {
    if (flags_.ignores_case) add_other_case(ranges);
    Regex::Set made;
    made.ranges = sorted(std::move(ranges));
    for (char32_t c = 0; c < 128; ++c)
      made.ascii[c] = std::ranges::any_of(made.ranges, [&](const Range& r) { return r.low <= c && c <= r.high; });
    out_.sets.push_back(std::move(made));
    return node({.what = Node::What::Set, .number = static_cast<int32_t>(out_.sets.size()) - 1});
  }
  int32_t assertion(Kind kind) { return node({.what = Node::What::Assertion, .kind = kind}); }

  int32_t either() {
    if (++depth_ > kDeepest) fail("groups are nested too deep");
    const Flags outside = flags_;
    std::vector<int32_t> parts{joined()};
    while (take("|")) parts.push_back(joined());
    flags_ = outside;
    --depth_;
    return parts.size() == 1 ? parts[0] : node({.what = Node::What::Either, .parts = std::move(parts)});
  }

  int32_t joined() {
    std::vector<int32_t> parts;
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      if (take("\\Q")) {
        while (more() && !take("\\E")) parts.push_back(set({literal(character())}));
        continue;
      }
      if (const auto part = repeated()) parts.push_back(*part);
    }
    return parts.size() == 1 ? parts[0] : node({.what = parts.empty() ? Node::What::Empty : Node::What::Join, .parts = std::move(parts)});
  }

  static Range literal(char32_t c) { return {c, c}; }

  std::optional<int32_t> repeated() {
    std::optional<int32_t> part = single();
    for (bool is_repeated = false;; is_repeated = true) {
      int32_t least = 0, most = kUnlimited;
      const size_t before = at_;
      if (take("*")) {
      } else if (take("+")) {
        least = 1;
      } else if (take("?")) {
        most = 1;
      } else if (!counted(least, most)) {
        return part;
      }
      if (!part || is_repeated) {
        at_ = before;
        fail(part ? "bad repetition operator" : "no argument for repetition operator");
      }
      const bool is_lazy = take("?") != flags_.is_lazy;
      part = node({.what = Node::What::Repeat, .least = least, .most = most, .is_greedy = !is_lazy, .parts = {*part}});
    }
  }

  // {n}, {n,} and {n,m}; anything else in braces is text.
  bool counted(int32_t& least, int32_t& most) {
    if (!next_is("{")) return false;
    const size_t before = at_++;
    const auto number = [&]() -> std::optional<int32_t> {
      const size_t from = at_;
      int32_t n = 0;
      while (more() && text_[at_] >= '0' && text_[at_] <= '9') n = std::min(n * 10 + (text_[at_++] - '0'), kMostRepeats + 1);
      return at_ > from ? std::optional(n) : std::nullopt;
    };
    const auto low = number();
    std::optional<int32_t> high = low;
    if (low && take(",")) {
      high = number();
      if (!high) high = kUnlimited;
    }
    if (!low || !take("}")) {
      at_ = before;
      return false;
    }
    if (*low > kMostRepeats || *high > kMostRepeats || (*high != kUnlimited && *high < *low)) fail("invalid repetition size");
    least = *low;
    most = *high;
    return true;
  }

  std::optional<int32_t> single() {
    if (next_is("*") || next_is("+") || next_is("?")) return std::nullopt;
    if (take("(")) return group();
    if (take("[")) return set(bracketed());
    if (take(".")) return set(flags_.dot_takes_newline ? std::vector<Range>{{0, kLastCharacter}} : others({literal('\n')}));
    if (take("^")) return assertion(flags_.many_lines ? Kind::LineBegin : Kind::TextBegin);
    if (take("$")) return assertion(flags_.many_lines ? Kind::LineEnd : Kind::TextEnd);
    if (take("\\A")) return assertion(Kind::TextBegin);
    if (take("\\z")) return assertion(Kind::TextEnd);
    if (take("\\b")) return assertion(Kind::Word);
    if (take("\\B")) return assertion(Kind::NoWord);
    if (next_is("\\")) return set(escaped());
    return set({literal(character())});
  }

  std::optional<int32_t> group() {
    int32_t number = 0;
    const Flags outside = flags_;
    if (take("?P<") || take("?<")) {
      const size_t end = text_.find('>', at_);
      if (end == std::string_view::npos || end == at_) fail("invalid named capture group");
      at_ = end + 1;
      number = ++groups_;
    } else if (take("?")) {
      bool is_on = true;
      for (;;) {
        if (take(")")) return node({.what = Node::What::Empty});  // the flags hold up to the end of the group around it
        if (take(":")) break;
        const char32_t c = character();
        if (c == '-' && is_on)
          is_on = false;
        else if (c == 'i')
          flags_.ignores_case = is_on;
        else if (c == 's')
          flags_.dot_takes_newline = is_on;
        else if (c == 'm')
          flags_.many_lines = is_on;
        else if (c == 'U')
          flags_.is_lazy = is_on;
        else
          fail("invalid perl operator");
      }
    } else {
      number = ++groups_;
    }
    const int32_t inside = either();
    if (!take(")")) fail("missing closing )");
    flags_ = outside;
    return number ? node({.what = Node::What::Group, .number = number, .parts = {inside}}) : inside;
  }

  std::vector<Range> bracketed() {
    const bool is_negated = take("^");
    std::vector<Range> ranges;
    for (bool is_first = true;; is_first = false) {
      if (!more()) fail("missing closing ]");
      if (!is_first && take("]")) break;
      if (next_is("[:")) {
        named(ranges);
        continue;
      }
      if (next_is("\\")) {
        const std::vector<Range> found = escaped();
        if (found.size() != 1 || found[0].low != found[0].high || !reaches(ranges, found[0].low))
          ranges.insert(ranges.end(), found.begin(), found.end());
        continue;
      }
      const char32_t c = character();
      if (!reaches(ranges, c)) ranges.push_back(literal(c));
    }
    if (flags_.ignores_case) add_other_case(ranges);
    return is_negated ? others(ranges) : ranges;
  }

  // low-high, when what follows is a dash and no end.
  bool reaches(std::vector<Range>& ranges, char32_t low) {
    if (!next_is("-") || at_ + 1 >= text_.size() || text_[at_ + 1] == ']') return false;
    ++at_;
    char32_t high;
    if (next_is("\\")) {
      const std::vector<Range> found = escaped();
      if (found.size() != 1 || found[0].low != found[0].high) fail("invalid character class range");
      high = found[0].low;
    } else {
      high = character();
    }
    if (high < low) fail("invalid character class range");
    ranges.push_back({low, high});
    return true;
  }

  void named(std::vector<Range>& ranges) {
    static const std::vector<std::pair<std::string_view, std::vector<Range>>> all{
        {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
        {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
        {"ascii", {{0, 127}}},
        {"blank", {{'\t', '\t'}, {' ', ' '}}},
        {"cntrl", {{0, 31}, {127, 127}}},
        {"digit", kDigits},
        {"graph", {{'!', '~'}}},
        {"lower", {{'a', 'z'}}},
        {"print", {{' ', '~'}}},
        {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
        {"space", {{'\t', '\r'}, {' ', ' '}}},
        {"upper", {{'A', 'Z'}}},
        {"word", kWords},
        {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
    const size_t end = text_.find(":]", at_);
    if (end == std::string_view::npos) fail("missing closing :]");
    std::string_view name = text_.substr(at_ + 2, end - at_ - 2);
    const bool is_negated = name.starts_with('^');
    if (is_negated) name.remove_prefix(1);
    const auto found = std::ranges::find(all, name, &std::pair<std::string_view, std::vector<Range>>::first);
    if (found == all.end()) fail("invalid character class");
    at_ = end + 2;
    const std::vector<Range> wanted = is_negated ? others(found->second) : found->second;
    ranges.insert(ranges.end(), wanted.begin(), wanted.end());
  }

  std::vector<Range> escaped() {
    ++at_;  // the backslash
    const char32_t c = character();
    switch (c) {
      case 'd': return kDigits;
      case 'D': return others(kDigits);
      case 's': return kSpaces;
      case 'S': return others(kSpaces);
      case 'w': return kWords;
      case 'W': return others(kWords);
      case 'a': return {literal('\a')};
      case 'f': return {literal('\f')};
      case 'n': return {literal('\n')};
      case 'r': return {literal('\r')};
      case 't': return {literal('\t')};
      case 'v': return {literal('\v')};
      case 'x': return {literal(hexadecimal())};
      default: break;
    }
    if (c >= '0' && c <= '7') {
      char32_t code = c - '0';
      for (int i = 0; i < 2 && more() && text_[at_] >= '0' && text_[at_] <= '7'; ++i)
        code = code * 8 + static_cast<char32_t>(text_[at_++] - '0');
      return {literal(code)};
    }
    if (c < 128 && (std::isalnum(static_cast<int>(c)) != 0)) fail("invalid escape sequence");
    return {literal(c)};
  }

  char32_t hexadecimal() {
    const bool is_braced = take("{");
    char32_t code = 0;
    int digits = 0;
    for (; more() && std::isxdigit(static_cast<unsigned char>(text_[at_])) && digits < (is_braced ? 8 : 2); ++digits) {
      const char d = text_[at_++];
      code = code * 16 + static_cast<char32_t>(d <= '9' ? d - '0' : (d | 32) - 'a' + 10);
    }
    if (!digits || (is_braced && !take("}")) || code > kLastCharacter) fail("invalid escape sequence");
    return code;
  }

  // --- steps

  int32_t step(Regex::Instruction s) {
    if (out_.steps.size() >= kMostSteps) fail("the pattern is too large");
    out_.steps.push_back(s);
    return static_cast<int32_t>(out_.steps.size()) - 1;
  }
  void save(int32_t number) { step({Kind::Save, number}); }
  int32_t here() const { return static_cast<int32_t>(out_.steps.size()); }
  // A split that goes on behind itself or elsewhere; where to is told later.
  int32_t split() { return step({Kind::Split, here() + 1}); }
  void tell(int32_t split, int32_t elsewhere, bool is_greedy) {
    Regex::Instruction& s = out_.steps[static_cast<size_t>(split)];
    s.second = elsewhere;
    if (!is_greedy) std::swap(s.first, s.second);
  }

  void emit(int32_t number) {
    const Node n = nodes_[static_cast<size_t>(number)];
    switch (n.what) {
      case Node::What::Empty: return;
      case Node::What::Set: step({Kind::Set, n.number}); return;
      case Node::What::Assertion: step({n.kind}); return;
      case Node::What::Join:
        for (const int32_t part : n.parts) emit(part);
        return;
      case Node::What::Group:
        save(2 * n.number);
        emit(n.parts[0]);
        save(2 * n.number + 1);
        return;
      case Node::What::Either: {
        std::vector<int32_t> ends;
        for (size_t i = 0; i + 1 < n.parts.size(); ++i) {
          const int32_t choice = split();
          emit(n.parts[i]);
          ends.push_back(step({Kind::Jump}));
          tell(choice, here(), true);
        }
        emit(n.parts.back());
        for (const int32_t end : ends) out_.steps[static_cast<size_t>(end)].first = here();
        return;
      }
      case Node::What::Repeat: repeat(n); return;
    }
  }

  void repeat(const Node& n) {
    for (int32_t i = 0; i < n.least; ++i) emit(n.parts[0]);
    if (n.most == kUnlimited) {
      const int32_t choice = split();
      emit(n.parts[0]);
      step({Kind::Jump, choice});
      tell(choice, here(), n.is_greedy);
      return;
    }
    std::vector<int32_t> choices;
    for (int32_t i = n.least; i < n.most; ++i) {
      choices.push_back(split());
      emit(n.parts[0]);
    }
    for (const int32_t choice : choices) tell(choice, here(), n.is_greedy);
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0, groups_ = 0;
  Flags flags_;
  std::vector<Node> nodes_;
  ParsedRegex out_;
};

}  // namespace

ParsedRegex parse_regex(std::string_view pattern) { return Parser(pattern).run(); }

Utf8Character utf8_character(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  const Utf8Character none{kLastCharacter + 1 + first, 1};
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (size == 0 || first > 0xf4 || at + size > text.size()) return none;
  char32_t code = first & (0xffU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return none;
    code = code << 6 | (byte(at + i) & 0x3fU);
  }
  const bool is_long = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  if (is_long || code > kLastCharacter || (code >= 0xd800 && code < 0xe000)) return none;
  return {code, size};
}

}  // namespace tandem
