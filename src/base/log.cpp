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
  unsigned topics = 0;
  for (const std::string& topic : env::get_names("TANDEM_LOG", kTopicNames))
    topics |= 1u << (std::ranges::find(kTopicNames, topic) - kTopicNames.begin());
  enabled_topics.store(topics, std::memory_order_relaxed);
}

void write(Topic t, std::string_view text) {
  // One call, because stderr is unbuffered: lines of different threads do not mix.
  const std::string line = cat("[tandem ", kTopicNames[static_cast<size_t>(t)], "] ", text, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace tandem::log
