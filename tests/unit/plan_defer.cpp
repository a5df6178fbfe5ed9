// What the host computes comes behind all that the other devices can be given before.
#include "plan/defer.hpp"

#include <gtest/gtest.h>

namespace tandem::plan {
namespace {

constexpr int32_t kCard = 0, kHost = 1;

class HostLast : public ::testing::Test {
 protected:
  int32_t block(int32_t device, Block::Kind kind = Block::Kind::Local) {
    units_.blocks.push_back({kind, -1, device, 256});
    return static_cast<int32_t>(units_.blocks.size()) - 1;
  }
  Unit& unit(const char* name, Kind kind, int32_t device, std::vector<int32_t> reads, std::vector<int32_t> writes) {
    Unit u;
    u.kind = kind;
    u.device = device;
    u.label = name;
    for (const int32_t b : reads) u.reads.push_back({b, 256});
    for (const int32_t b : writes) u.writes.push_back({b, 256});
    units_.units.push_back(std::move(u));
    return units_.units.back();
  }
  std::string order() {
    const DeviceFacts devices[] = {{.host_memory = false}, {.host_memory = true}};
    std::string text;
    for (const Unit& u : host_last(units_, devices).units) text += u.label;
    return text;
  }
  Units units_;
};

TEST_F(HostLast, UpdatesStandBehindTheBackwardPass) {
  const int32_t x = block(kCard), g = block(kCard), there = block(kHost), next = block(kHost), more = block(kCard);
  unit("g", Kind::Launch, kCard, {x}, {g});
  unit("d", Kind::Download, kCard, {g}, {there});
  unit("H", Kind::Launch, kHost, {there}, {next});
  unit("b", Kind::Launch, kCard, {x}, {more});
  EXPECT_EQ(order(), "gdbH");
}

TEST_F(HostLast, ButBeforeWhoeverNeedsThem) {
  const int32_t a = block(kHost), b = block(kHost), c = block(kHost), here = block(kCard), y = block(kCard), z = block(kCard);
  unit("H", Kind::Launch, kHost, {a}, {b});
  unit("I", Kind::Launch, kHost, {a}, {c});
  unit("k", Kind::Launch, kCard, {y}, {z});
  unit("u", Kind::Upload, kCard, {b}, {here});
  unit("l", Kind::Launch, kCard, {here}, {z});
  EXPECT_EQ(order(), "kHulI");
}

TEST_F(HostLast, NotBehindAnUploadOfWhatItOverwritesAndNotWhenItMayFail) {
  const int32_t w = block(kHost, Block::Kind::Input), here = block(kCard), next = block(kHost, Block::Kind::Output), e = block(kHost);
  units_.input_blocks = {w};
  units_.output_blocks = {next};
  units_.donations = {0};
  unit("u", Kind::Upload, kCard, {w}, {here});
  unit("H", Kind::Launch, kHost, {w}, {next});
  unit("k", Kind::Launch, kCard, {here}, {block(kCard)});
  unit("f", Kind::Launch, kHost, {e}, {block(kHost)}).may_fail = true;
  unit("d", Kind::Download, kCard, {here}, {w});  // writes what it reads: it has to come first
  EXPECT_EQ(order(), "ukfHd");
}

TEST_F(HostLast, StateComesDownBeforeResultsInTheSameStream) {
  const int32_t w = block(kCard, Block::Kind::Input), v = block(kCard, Block::Kind::Input), x = block(kCard), y = block(kCard);
  const int32_t result = block(kHost), state = block(kHost), changed = block(kHost);
  unit("k", Kind::Launch, kCard, {x}, {y});
  unit("r", Kind::Download, kCard, {y}, {result});
  unit("s", Kind::Download, kCard, {w}, {state});
  unit("H", Kind::Launch, kHost, {state, result}, {block(kHost)});
  unit("o", Kind::Launch, kCard, {y}, {v});  // overwrites it: what is read then is no state that was there
  unit("c", Kind::Download, kCard, {v}, {changed});
  EXPECT_EQ(order(), "skrocH");
}

}  // namespace
}  // namespace tandem::plan
