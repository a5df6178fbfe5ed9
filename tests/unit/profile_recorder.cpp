// The recorder: what is recorded when, within which bounds, from many threads.
#include "profile/recorder.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "unit/error_of.hpp"

namespace tandem::profile {
namespace {

class TheRecorder : public testing::Test {
 protected:
  void TearDown() override { Recorder::get().stop(); }
  Recorder& r = Recorder::get();
};

TEST_F(TheRecorder, RecordsNothingWhenOff) {
  const uint16_t track = r.track("gpu:0", "compute");
  EXPECT_FALSE(Piece::given(track, Kind::Launch));
  {
    const Span waiting(Kind::HostWait, "gpu:0");
  }
  r.add({.begin = 1, .end = 2}, r.generation());
  r.sample("gpu:0", "memory", 5, 0);
  r.epoch(1);
  record_since(Kind::Callback, "x", 0);
  const Recording nothing = r.stop();
  EXPECT_TRUE(nothing.records.empty());
  EXPECT_TRUE(nothing.samples.empty());
  EXPECT_TRUE(nothing.epochs.empty());
}

TEST_F(TheRecorder, TellsWhatAStreamDidAndWhatItWasFor) {
  r.start();
  const uint16_t track = r.track("gpu:0", "upload");
  const uint32_t task = r.task("upload float32[2]", "", {"model.py", 7}), op = r.task("matmul");
  Piece piece;
  {
    const Doing doing({.generation = r.generation(), .task = task, .partner = op, .source = Source::Input, .mark = 9});
    piece = Piece::given(track, Kind::Upload, 8);
  }
  EXPECT_EQ(Doing::current().task, kNoTask);
  const Time begin = now();
  piece.done(begin, begin + 1000);
  const Recording done = r.stop();
  ASSERT_EQ(done.records.size(), 1);
  const Record& record = done.records[0];
  EXPECT_EQ(done.tracks[record.track], (Track{"gpu:0", "upload"}));
  EXPECT_EQ(done.tasks[record.task], (Task{"upload float32[2]", "", "model.py:7"}));
  EXPECT_EQ(done.tasks[record.partner].label, "matmul");
  EXPECT_EQ(record.bytes, 8);
  EXPECT_EQ(record.mark, 9);
  EXPECT_EQ(record.source, Source::Input);
  EXPECT_DOUBLE_EQ(record.seconds(), 1e-6);
  EXPECT_LE(record.given, record.begin);
}

TEST_F(TheRecorder, GivesTasksThatAreAlikeOneNumber) {
  r.start();
  const uint32_t a = r.task("add", "generated", {"a.py", 1}, 10, 20);
  EXPECT_EQ(r.task("add", "generated", {"a.py", 1}, 10, 20), a);
  EXPECT_NE(r.task("add", "generated", {"a.py", 2}, 10, 20), a);
  EXPECT_NE(r.task("add", "generated", {"b.py", 1}, 10, 20), a);
  EXPECT_NE(r.task("add", "gemm", {"a.py", 1}, 10, 20), a);
  EXPECT_NE(r.task("add", "generated", {"a.py", 1}, 11, 20), a);
  EXPECT_EQ(r.stop().tasks.size(), 6);  // and the one without a name
  EXPECT_EQ(r.task("add"), kNoTask);    // off
}

// Work of one recording that ends in the next one is none of that, whose numbers mean other tasks.
TEST_F(TheRecorder, DropsWhatWasGivenBeforeItBegan) {
  r.start();
  const Piece late = Piece::given(r.track("gpu:0", "compute"), Kind::Launch);
  r.stop();
  r.start();
  late.done(1, 2);
  EXPECT_TRUE(r.stop().records.empty());
}

TEST_F(TheRecorder, IsOneAtATime) {
  r.start();
  EXPECT_EQ(error_of([&] { r.start(); }), "profile: one is being recorded already\n  hint: stop that one first");
}

TEST_F(TheRecorder, KeepsTheNewestAndCountsTheOthers) {
  r.start(10);
  const uint16_t track = r.track("cpu", "compute");
  for (int i = 0; i < 25; ++i) r.add({.begin = i, .end = i + 1, .track = track}, r.generation());
  const Recording done = r.stop();
  ASSERT_EQ(done.records.size(), 10);
  EXPECT_EQ(done.lost_records, 15);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(done.records[static_cast<size_t>(i)].begin, 15 + i);
}

TEST_F(TheRecorder, SamplesMemoryWhereItChanges) {
  r.start();
  for (const uint64_t bytes : {5, 5, 7, 7, 5}) r.sample("gpu:0", "memory", bytes, 100);
  r.sample("gpu:0", "pinned", 5, 0);
  const Recording done = r.stop();
  ASSERT_EQ(done.memories.size(), 2);
  EXPECT_EQ(done.memories[0].limit_bytes, 100);
  std::vector<uint64_t> values;
  for (const Sample& s : done.samples)
    if (s.memory == 0) values.push_back(s.bytes);
  EXPECT_EQ(values, (std::vector<uint64_t>{5, 7, 5}));
}

TEST_F(TheRecorder, CountsAWaitInsideOfAWaitOnce) {
  r.start();
  {
    const Span outer(Kind::Pipeline, "outer");
    const Span inner(Kind::Pipeline, "inner");
    const Span other(Kind::HostWait, "other");
  }
  const Recording done = r.stop();
  ASSERT_EQ(done.records.size(), 2);
  EXPECT_EQ(done.tasks[done.records[0].task].label, "outer");
  EXPECT_EQ(done.tasks[done.records[1].task].label, "other");
  EXPECT_EQ(done.tracks[done.records[0].track].device, kHost);
}

// Whoever was told to wait says from when: it did so from when it had nothing else left to do.
TEST_F(TheRecorder, LetsAStreamWaitFromWhenItHadNothingElseToDo) {
  r.start();
  const uint16_t track = r.track("gpu:0", "compute"), other = r.track("gpu:0", "upload");
  const auto add = [&](uint16_t t, Kind kind, Time begin, Time end) {
    r.add({.begin = begin, .end = end, .given = begin, .track = t, .kind = kind}, r.generation());
  };
  add(track, Kind::StreamWait, 0, 30'000);
  add(track, Kind::Launch, 0, 10'000);
  add(track, Kind::StreamWait, 5'000, 40'000);
  add(other, Kind::Upload, 0, 35'000);
  add(track, Kind::StreamWait, 0, 41'000);  // which had happened
  std::vector<std::pair<Time, Time>> waits;
  for (const Record& x : r.stop().records)
    if (x.kind == Kind::StreamWait) waits.emplace_back(x.begin, x.end);
  EXPECT_EQ(waits, (std::vector<std::pair<Time, Time>>{{10'000, 30'000}, {30'000, 40'000}}));
}

// A stream that still has something to do when the profile ends.
class SlowStream : public Reporter {
 public:
  SlowStream() { Recorder::get().join(*this); }
  ~SlowStream() override { Recorder::get().leave(*this); }
  void report() override { piece.done(now(), now() + 10); }
  Piece piece;
};
TEST_F(TheRecorder, AsksForWhatIsOnItsWay) {
  SlowStream stream;
  r.start();
  stream.piece = Piece::given(r.track("gpu:0", "compute"), Kind::Launch);
  const Recording done = r.stop();
  ASSERT_EQ(done.records.size(), 1);
  EXPECT_GE(done.end, done.records[0].end);
}

TEST_F(TheRecorder, TakesWhatManyThreadsSayWhileItBeginsAndEnds) {
  std::atomic<bool> ends = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const uint16_t track = r.track("gpu:0", t % 2 ? "compute" : "upload");
      const std::string label = "op " + std::to_string(t);
      while (!ends) {
        const Span run(Kind::Run, label);
        if (!Recorder::is_on()) continue;
        const Doing doing({.generation = r.generation(), .task = r.task(label)});
        Piece::given(track, Kind::Launch).done(now(), now());
        r.sample("gpu:0", "memory", static_cast<uint64_t>(t), 0);
      }
    });
  for (int i = 0; i < 20; ++i) {
    r.start(1000);
    std::this_thread::yield();
    const Recording done = r.stop();
    for (const Record& record : done.records) {
      ASSERT_LT(record.task, done.tasks.size());
      ASSERT_LT(record.track, done.tracks.size());
    }
  }
  ends = true;
  for (std::thread& t : threads) t.join();
}

TEST(Marks, KnowTheSameBytesAgain) {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{1000}, size_t{1} << 20}) {
    std::string a(n, 'a'), b = a;
    EXPECT_EQ(mark_of(a.data(), n), mark_of(b.data(), n)) << n;
    EXPECT_NE(mark_of(a.data(), n), 0);
    if (n == 0) continue;
    b.back() = 'b';
    EXPECT_NE(mark_of(a.data(), n), mark_of(b.data(), n)) << n;
    b = a;
    b.front() = 'b';
    EXPECT_NE(mark_of(a.data(), n), mark_of(b.data(), n)) << n;
    EXPECT_NE(mark_of(a.data(), n), mark_of(a.data(), n - 1)) << n;
  }
}

}  // namespace
}  // namespace tandem::profile
