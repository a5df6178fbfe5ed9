// The set of switched-on log topics and the one writer of log lines.
#include "base/log.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <string>

#include "base/env.hpp"

namespace tandem::log {
namespace {

constexpr std::array<std::string_view, 6> kTopicNames = {"dispatch", "plan", "pass", "cache", "compile", "step"};

// One bit a topic. The extra bit says that TANDEM_LOG was not read yet: no static constructor, and still one load when off.
constexpr unsigned kUnread = 1u << kTopicNames.size();
std::atomic<unsigned> enabled_topics = kUnread;

// One call, because stderr is unbuffered: lines of different threads do not mix.
void write_line(std::string_view label, std::string_view text) {
  const std::string line = cat("[tandem ", label, "] ", text, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

unsigned bit_of(std::string_view topic) {
  for (size_t i = 0; i < kTopicNames.size(); ++i)
    if (kTopicNames[i] == topic) return 1u << i;
  // Not an error: a typing mistake in a debugging aid must not stop the program.
  write_line("log", cat("TANDEM_LOG: unknown topic \"", topic, "\" (known: dispatch, plan, pass, cache, compile, step)"));
  return 0;
}

}  // namespace

bool enabled(Topic t) {
  unsigned topics = enabled_topics.load(std::memory_order_relaxed);
  if (topics == kUnread) {
    refresh();
    topics = enabled_topics.load(std::memory_order_relaxed);
  }
  return topics >> static_cast<unsigned>(t) & 1u;
}

void refresh() {
  const std::string text = env::get("TANDEM_LOG");
  unsigned topics = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view topic = rest.substr(0, rest.find(','));
    if (!topic.empty()) topics |= bit_of(topic);
    rest.remove_prefix(std::min(topic.size() + 1, rest.size()));
  }
  enabled_topics.store(topics, std::memory_order_relaxed);
}

void write(Topic t, std::string_view line) { write_line(kTopicNames[static_cast<size_t>(t)], line); }

}  // namespace tandem::log
