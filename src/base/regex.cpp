#include "base/regex.hpp"

#include <algorithm>

#include "base/regex_parse.hpp"
#include "base/text.hpp"

namespace tandem {
namespace {
constexpr size_t kNowhere = static_cast<size_t>(-1);
bool is_word(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
}  // namespace

bool Regex::Set::has(char32_t c) const {
  if (c < 128) return ascii[c];
  const auto after = std::ranges::upper_bound(ranges, c, {}, &Range::low);
  return after != ranges.begin() && c <= std::prev(after)->high;
}

// The threads of one run: each is a step and the places that it has saved. All are at the same character, in the order of preference.
struct Regex::Machine {
  const Regex& regex;
  std::string_view text;
  size_t slots;  // places that a thread keeps
  std::vector<int32_t> order[2];
  std::vector<size_t> places[2];  // of the thread at `order`'s i: slots numbers from i * slots on
  std::vector<uint32_t> seen;     // the round in which a step was added
  uint32_t round = 0;
  std::vector<size_t> found;  // the best match, or empty

  struct Work {
    int32_t step;  // or -1 - slot: the slot gets its place back
    size_t place;
  };
  std::vector<Work> work;

  Machine(const Regex& r, std::string_view t, size_t s) : regex(r), text(t), slots(s), seen(r.steps_.size(), 0) {}

  bool holds(Kind kind, size_t at) const {
    switch (kind) {
      case Kind::TextBegin: return at == 0;
      case Kind::TextEnd: return at == text.size();
      case Kind::LineBegin: return at == 0 || text[at - 1] == '\n';
      case Kind::LineEnd: return at == text.size() || text[at] == '\n';
      default: break;
    }
    const bool before = at > 0 && is_word(text[at - 1]), after = at < text.size() && is_word(text[at]);
    return (before != after) == (kind == Kind::Word);
  }

  // All steps that wait for a character, or match, from `start` on.
  void add(int side, int32_t start, size_t at, std::vector<size_t>& kept) {
    work.push_back({start, 0});
    while (!work.empty()) {
      const Work now = work.back();
      work.pop_back();
      if (now.step < 0) {
        kept[static_cast<size_t>(-1 - now.step)] = now.place;
        continue;
      }
      const auto number = static_cast<size_t>(now.step);
      if (seen[number] == round) continue;
      seen[number] = round;
      const Instruction& s = regex.steps_[number];
      switch (s.kind) {
        case Kind::Jump: work.push_back({s.first, 0}); break;
        case Kind::Split:
          work.push_back({s.second, 0});
          work.push_back({s.first, 0});
          break;
        case Kind::Save:
          if (const auto slot = static_cast<size_t>(s.first); slot < slots) {
            work.push_back({-1 - s.first, kept[slot]});
            kept[slot] = at;
          }
          work.push_back({now.step + 1, 0});
          break;
        case Kind::Match:
        case Kind::Set:
          order[side].push_back(now.step);
          places[side].insert(places[side].end(), kept.begin(), kept.end());
          break;
        default:
          if (holds(s.kind, at)) work.push_back({now.step + 1, 0});
      }
    }
  }

  // The leftmost match that begins at `from` or later, as Perl prefers; `is_whole` asks for one of all of the text.
  bool run(size_t from, bool is_whole) {
    found.clear();
    int side = 0;
    order[0].clear();
    places[0].clear();
    std::vector<size_t> kept(slots, kNowhere);
    for (size_t at = from;;) {
      const bool may_begin = found.empty() && (!is_whole || at == from);
      if (order[side].empty() && !may_begin) break;
      if (order[side].empty() && !regex.may_be_empty_ && !is_whole) {
        while (at < text.size() && !regex.begins_[static_cast<unsigned char>(text[at])]) ++at;
        if (at == text.size()) break;
      }
      if (may_begin) {
        if (order[side].empty()) ++round;  // else the threads that are here were added in this round
        std::ranges::fill(kept, kNowhere);
        add(side, 0, at, kept);
      }
      const Utf8Character c = at < text.size() ? utf8_character(text, at) : Utf8Character{kLastCharacter + 1, 0};
      ++round;
      order[1 - side].clear();
      places[1 - side].clear();
      for (size_t i = 0; i < order[side].size(); ++i) {
        const Instruction& s = regex.steps_[static_cast<size_t>(order[side][i])];
        const auto mine = places[side].begin() + static_cast<std::ptrdiff_t>(i * slots);
        if (s.kind == Kind::Match) {
          if (is_whole && at < text.size()) continue;
          found.assign(mine, mine + static_cast<std::ptrdiff_t>(slots));
          break;  // those behind it are worse
        }
        if (c.size && regex.sets_[static_cast<size_t>(s.first)].has(c.code)) {
          kept.assign(mine, mine + static_cast<std::ptrdiff_t>(slots));
          add(1 - side, order[side][i] + 1, at + c.size, kept);
        }
      }
      if (at == text.size()) break;
      at += c.size;
      side = 1 - side;
    }
    return !found.empty();
  }
};

Regex::Regex(std::string_view pattern) {
  ParsedRegex parsed = parse_regex(pattern);
  steps_ = std::move(parsed.steps);
  sets_ = std::move(parsed.sets);
  groups_ = parsed.groups;
  find_beginnings();
}

// What can stand first: the steps that are reached without a character, whatever assertions say.
void Regex::find_beginnings() {
  std::vector<bool> seen(steps_.size());
  std::vector<int32_t> work{0};
  while (!work.empty()) {
    const int32_t at = work.back();
    work.pop_back();
    if (seen[static_cast<size_t>(at)]) continue;
    seen[static_cast<size_t>(at)] = true;
    const Instruction& s = steps_[static_cast<size_t>(at)];
    if (s.kind == Kind::Match) {
      may_be_empty_ = true;
    } else if (s.kind == Kind::Set) {
      const Set& set = sets_[static_cast<size_t>(s.first)];
      for (size_t c = 0; c < 128; ++c) begins_[c] = begins_[c] || set.ascii[c];
      const bool has_more = !set.ranges.empty() && set.ranges.back().high >= 128;
      for (size_t c = 128; c < 256; ++c) begins_[c] = begins_[c] || has_more;
    } else if (s.kind == Kind::Jump) {
      work.push_back(s.first);
    } else {
      work.push_back(s.kind == Kind::Split ? s.first : at + 1);
      if (s.kind == Kind::Split) work.push_back(s.second);
    }
  }
}

bool Regex::full_match(std::string_view text) const { return Machine(*this, text, 2).run(0, true); }

std::string Regex::replace(std::string_view text, std::string_view rewrite, bool all) const {
  // What is written for each match: text, and numbers of groups.
  std::vector<std::pair<std::string, int>> pieces(1, {"", -1});
  for (size_t i = 0; i < rewrite.size(); ++i) {
    if (rewrite[i] != '\\') {
      pieces.back().first += rewrite[i];
      continue;
    }
    const char c = ++i < rewrite.size() ? rewrite[i] : '\0';
    if (c == '\\') {
      pieces.back().first += c;
    } else if (c >= '0' && c <= '9') {
      if (c - '0' > groups_) user_error("regex_replace: the rewrite ", rewrite, " names group ", c - '0', ", the pattern has ", groups_);
      pieces.back().second = c - '0';
      pieces.emplace_back("", -1);
    } else {
      user_error("regex_replace: the rewrite ", rewrite, " has a backslash before what is neither a digit nor a backslash");
    }
  }
  // One character of a set, such as all punctuation, by a text: no machine is needed.
  if (all && steps_.size() == 4 && steps_[1].kind == Kind::Set && pieces.size() == 1) {
    const Set& set = sets_[static_cast<size_t>(steps_[1].first)];
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      const Utf8Character c = utf8_character(text, at);
      out += set.has(c.code) ? std::string_view(pieces[0].first) : text.substr(at, c.size);
      at += c.size;
    }
    return out;
  }
  Machine machine(*this, text, 2 * (static_cast<size_t>(groups_) + 1));
  std::string out;
  size_t at = 0, last_end = kNowhere;
  while (at <= text.size() && machine.run(at, false)) {
    const size_t begin = machine.found[0], end = machine.found[1];
    out += text.substr(at, begin - at);
    if (begin == end && begin == last_end) {  // nothing, right behind the last match: goes on one character later
      if (begin == text.size()) return out;
      const size_t size = utf8_character(text, begin).size;
      out += text.substr(begin, size);
      at = begin + size;
      last_end = kNowhere;
      continue;
    }
    for (const auto& [words, group] : pieces) {
      out += words;
      if (group < 0) continue;
      const size_t from = machine.found[2 * static_cast<size_t>(group)], to = machine.found[2 * static_cast<size_t>(group) + 1];
      if (from != kNowhere && to != kNowhere) out += text.substr(from, to - from);
    }
    at = last_end = end;
    if (!all) break;
  }
  if (at < text.size()) out += text.substr(at);
  return out;
}

}  // namespace tandem
