// Advice from recordings that nobody recorded: each check speaks where its measure is over its threshold, and is silent below it.
#include "profile/advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/profile_support.hpp"

namespace tandem::profile {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

enum Which { kPipeline, kCpu, kLaunch, kAgain, kPlaced };
Check checked(MadeUp& m, Which which) { return check(Summary(m.recording()))[which]; }

TEST(Advice, OfAnEmptyRecordingIsNone) {
  const Recording nothing{.tasks = {{}}};
  for (const Check& c : check(Summary(nothing))) EXPECT_THAT(c.advice, IsEmpty()) << c.name;
}

// Steps of 10 ms, of which so many wait for a batch.
MadeUp with_pipeline(double waits_ms) {
  MadeUp m;
  for (int i = 0; i < 10; ++i) {
    m.add(MadeUp::kThread, Kind::Step, 10 * i, 10 * i + 10);
    m.add(MadeUp::kThread, Kind::Pipeline, 10 * i, 10 * i + waits_ms, m.task("the next batch"));
    m.add(MadeUp::kCpu, Kind::Launch, 10 * i + waits_ms, 10 * i + 10, m.task("matmul"));
  }
  return m;
}
TEST(Advice, SaysThatThePipelineIsTooSlow) {
  MadeUp slow = with_pipeline(3);
  const Check c = checked(slow, kPipeline);
  EXPECT_EQ(c.measured, "waiting for batches takes 30 % of the time");
  ASSERT_THAT(c.advice, SizeIs(1));
  EXPECT_THAT(c.advice[0].text, HasSubstr("30 % of the time: 30 ms of 100 ms, about 3 ms for each of 10 steps"));
  MadeUp fast = with_pipeline(0.9);
  EXPECT_THAT(checked(fast, kPipeline).advice, IsEmpty());
  EXPECT_EQ(checked(fast, kPipeline).measured, "waiting for batches takes 9 % of the time");
}

// The program waits, and the device has work for as long.
TEST(Advice, DoesNotMindAPipelineThatADeviceHides) {
  MadeUp m = with_pipeline(3);
  for (int i = 0; i < 10; ++i) m.add(MadeUp::kCompute, Kind::Launch, 10 * i, 10 * i + 9.5, m.task("matmul"));
  EXPECT_THAT(checked(m, kPipeline).advice, IsEmpty());
}

// What the first step waits for while it is compiled is no step's usual time.
TEST(Advice, LeavesOutStepsThatCompile) {
  MadeUp m = with_pipeline(0.5);
  for (Record& r : m.r.records) r.begin += 5'000'000'000, r.given += 5'000'000'000, r.end += 5'000'000'000;
  m.add(MadeUp::kThread, Kind::Step, 0, 5000);
  m.add(MadeUp::kThread, Kind::Pipeline, 0, 2000, m.task("the next batch"));
  m.add(MadeUp::kThread, Kind::Compile, 2000, 5000, m.task("kernels and plan"));
  m.r.end = 5'100'000'000;
  EXPECT_EQ(checked(m, kPipeline).measured, "waiting for batches takes 5 % of the time");
}

// A step of 10 ms: 2 ms on the device, so many on the CPU while that has nothing to do, and then the device again.
MadeUp with_cpu_op(double cpu_ms) {
  MadeUp m;
  for (int i = 0; i < 10; ++i) {
    m.add(MadeUp::kThread, Kind::Step, 10 * i, 10 * i + 10);
    m.add(MadeUp::kCompute, Kind::Launch, 10 * i, 10 * i + 2, m.task("matmul"));
    m.add(MadeUp::kCpu, Kind::Launch, 10 * i + 1.9, 10 * i + 2 + cpu_ms, m.task("unique int32[9]", "model.py:12"));
    m.add(MadeUp::kCompute, Kind::Launch, 10 * i + 2 + cpu_ms, 10 * i + 10, m.task("add"));
  }
  return m;
}
TEST(Advice, SaysThatAnOpOnTheCpuHoldsUpTheDevice) {
  MadeUp m = with_cpu_op(4);
  const Check c = checked(m, kCpu);
  ASSERT_THAT(c.advice, SizeIs(1));
  EXPECT_EQ(c.advice[0].title, "unique int32[9] on the CPU holds up gpu:0");
  EXPECT_THAT(c.advice[0].text,
              HasSubstr("unique int32[9] (model.py:12) ran 10 times on the CPU while gpu:0 had nothing to do, together 40 ms, 40 %"));
  MadeUp little = with_cpu_op(0.4);
  EXPECT_THAT(checked(little, kCpu).advice, IsEmpty());
  EXPECT_THAT(checked(little, kCpu).measured, HasSubstr("4 % of the time"));
  MadeUp alone;  // nobody is held up where there is no device
  alone.add(MadeUp::kCpu, Kind::Launch, 0, 10, alone.task("matmul"));
  EXPECT_THAT(checked(alone, kCpu).advice, IsEmpty());
}

// Launches of so many ms, one each ms, which the host gives one after the other.
MadeUp with_launches(double each_ms) {
  MadeUp m;
  for (int i = 0; i < 100; ++i) m.add(MadeUp::kCompute, Kind::Launch, i, i + each_ms, m.task("add"));
  m.add(MadeUp::kThread, Kind::Step, 0, 100);
  return m;
}
TEST(Advice, SaysThatTheBatchIsTooSmall) {
  MadeUp m = with_launches(0.1);
  const Check c = checked(m, kLaunch);
  ASSERT_THAT(c.advice, SizeIs(1));
  EXPECT_EQ(c.advice[0].title, "The batch is too small for gpu:0");
  // 99 times 0.9 ms of nothing, and 100 times the overhead of 10 us
  EXPECT_THAT(c.advice[0].text, HasSubstr("90.1 % of the time (90.1 ms of 100 ms)"));
  EXPECT_THAT(c.advice[0].text, HasSubstr("100 µs on average and the host gives 100 a step, each with an overhead of 10 µs"));
  MadeUp large = with_launches(0.8);
  EXPECT_THAT(checked(large, kLaunch).advice, IsEmpty());
}
// The machine was busy with something else.
TEST(Advice, DoesNotBlameTheBatchForGapsBetweenLaunchesThatWereThere) {
  MadeUp m = with_launches(0.1);
  for (Record& r : m.r.records) r.given = 0;
  EXPECT_THAT(checked(m, kLaunch).advice, IsEmpty());
  EXPECT_THAT(checked(m, kLaunch).measured, HasSubstr("2.98 % of the time"));  // 99 times 20 us, and the overheads
}
TEST(Advice, DoesNotBlameTheBatchForWhatIsExplained) {
  MadeUp m = with_launches(0.1);
  for (int i = 0; i < 100; ++i) m.add(MadeUp::kThread, Kind::Pipeline, i + 0.1, i + 0.95, m.task("the next batch"));
  EXPECT_THAT(checked(m, kLaunch).advice, IsEmpty());
}

// An upload each 10 ms that takes 2.
MadeUp with_uploads(Source source, bool changes) {
  MadeUp m;
  for (int i = 0; i < 10; ++i) {
    m.add(MadeUp::kCompute, Kind::Launch, 10 * i, 10 * i + 10, m.task("matmul"));
    Record& r = m.add(MadeUp::kUpload, Kind::Upload, 10 * i, 10 * i + 2, m.task("upload float32[512,512]", "model.py:3"));
    r.bytes = 1 << 20;
    r.partner = m.task("matmul");
    r.source = source;
    r.mark = source == Source::State ? 0 : changes ? 100 + static_cast<uint64_t>(i) : 100;
  }
  return m;
}
TEST(Advice, SaysWhatCrossesAgainAndAgain) {
  MadeUp same = with_uploads(Source::Input, false);
  const Check c = checked(same, kAgain);
  ASSERT_THAT(c.advice, SizeIs(1));
  EXPECT_THAT(c.advice[0].text,
              HasSubstr("The same bytes crossed 10 times to gpu:0 for matmul, 9 times more than needed: 9 MiB in 18 ms, 18 %"));
  MadeUp batches = with_uploads(Source::Input, true);  // other bytes each time: that is what a link is for
  EXPECT_THAT(checked(batches, kAgain).advice, IsEmpty());
  EXPECT_EQ(checked(batches, kAgain).measured, "no bytes crossed again");
  MadeUp state = with_uploads(Source::State, true);
  ASSERT_THAT(checked(state, kAgain).advice, SizeIs(1));
  EXPECT_THAT(checked(state, kAgain).advice[0].text, HasSubstr("State that lives in the host's memory crossed 10 times"));
}

// An op on the CPU between two of the device: so many ms down, `op_ms`, and up again.
MadeUp with_sandwich(double copy_ms, double op_ms) {
  MadeUp m;
  const uint32_t op = m.task("softmax float32[64,10]", "model.py:20", 1e6, 1e6), matmul = m.task("matmul", "", 1e9, 1e8);
  for (int i = 0; i < 10; ++i) {
    m.add(MadeUp::kCompute, Kind::Launch, 20 * i, 20 * i + 10, matmul);
    m.add(MadeUp::kDownload, Kind::Download, 20 * i + 10, 20 * i + 10 + copy_ms, m.task("download")).partner = op;
    m.add(MadeUp::kCpu, Kind::Launch, 20 * i + 10 + copy_ms, 20 * i + 10 + copy_ms + op_ms, op);
    m.add(MadeUp::kUpload, Kind::Upload, 20 * i + 15, 20 * i + 15 + copy_ms, m.task("upload")).partner = op;
  }
  for (Record& r : m.r.records)
    if (is_transfer(r.kind)) r.bytes = 1 << 20;
  return m;
}
TEST(Advice, SaysWhatIsPlacedBadly) {
  MadeUp m = with_sandwich(2, 0.1);
  const Check c = checked(m, kPlaced);
  ASSERT_THAT(c.advice, SizeIs(1));
  EXPECT_EQ(c.advice[0].title, "softmax float32[64,10] is placed badly");
  // On the device: 1e6 bytes at 1e8 bytes in 10 ms, which is the best that it did, and the overhead
  EXPECT_THAT(c.advice[0].text, HasSubstr("ran 10 times on cpu in 1 ms, and 20 copies of its values (20 MiB) took 40 ms. On gpu:0"));
}
TEST(Advice, LeavesAnOpWhereItIsFaster) {
  MadeUp m = with_sandwich(2, 0.1);
  for (Task& t : m.r.tasks)
    if (t.label.starts_with("softmax")) t.flops = 1e10;  // on the device it would take 100 ms
  EXPECT_THAT(checked(m, kPlaced).advice, IsEmpty());
  MadeUp quick = with_sandwich(0.05, 0.1);  // copies of a two-hundredth of the time are not worth a word
  EXPECT_THAT(checked(quick, kPlaced).advice, IsEmpty());
}

}  // namespace
}  // namespace tandem::profile
