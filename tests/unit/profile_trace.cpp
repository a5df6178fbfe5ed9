// Files: the trace is JSON with what Perfetto asks for, the page has what was recorded, sums fit.
#include "profile/trace.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "profile/profile.hpp"
#include "profile/recorder.hpp"
#include "profile/report.hpp"
#include "profile/summary.hpp"
#include "unit/error_of.hpp"
#include "unit/profile_support.hpp"

namespace tandem::profile {
namespace {

using nlohmann::json;

MadeUp some_steps() {
  MadeUp m;
  for (int i = 0; i < 3; ++i) {
    m.add(MadeUp::kThread, Kind::Step, 10 * i, 10 * i + 10, m.task("fit")).mark = static_cast<uint64_t>(i);
    m.add(MadeUp::kCompute, Kind::Launch, 10 * i + 1, 10 * i + 9, m.task("matmul \"quoted\" <b>", "mod\xff.py:7", 8e6, 8e6));
    Record& up = m.add(MadeUp::kUpload, Kind::Upload, 10 * i, 10 * i + 2, m.task("upload"));
    up.bytes = 4'000'000;
    up.partner = m.task("matmul \"quoted\" <b>", "mod\xff.py:7", 8e6, 8e6);
    m.add(MadeUp::kThread, Kind::HostWait, 10 * i + 5, 10 * i + 9, m.task("gpu:0 compute"));
    m.add(MadeUp::kCompute, Kind::StreamWait, 10 * i + 0.5, 10 * i + 1, m.task("matmul"));
  }
  m.r.memories = {{"gpu:0", "memory", 1 << 20}, {"gpu:0", "pinned"}};
  m.r.samples = {{0, 0, 1000}, {5'000'000, 0, 900'000}, {6'000'000, 1, 77}};
  m.r.epochs = {{0, 0}};
  return m;
}

TEST(Trace, IsWhatPerfettoReads) {
  MadeUp m = some_steps();
  const json trace = json::parse(trace_json(m.recording()));  // throws where it is no JSON, or no UTF-8
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> threads;
  size_t blocks = 0, counters = 0, instants = 0;
  for (const json& e : trace.at("traceEvents")) {
    const std::string ph = e.at("ph"), name = e.at("name");
    const int pid = e.at("pid");
    if (ph == "M" && name == "process_name") processes[pid] = e.at("args").at("name");
    if (ph == "M" && name == "thread_name") threads[{pid, e.at("tid")}] = e.at("args").at("name");
    if (ph == "M") continue;
    EXPECT_GE(e.at("ts").get<double>(), 0);
    EXPECT_TRUE(processes.contains(pid)) << name;
    if (ph == "X") {
      ++blocks;
      EXPECT_GE(e.at("dur").get<double>(), 0);
      EXPECT_TRUE(threads.contains({pid, e.at("tid")})) << name;
      if (e.at("cat") == "upload") {
        EXPECT_DOUBLE_EQ(e.at("dur").get<double>(), 2000);
        EXPECT_DOUBLE_EQ(e.at("args").at("GB/s").get<double>(), 2);
        EXPECT_EQ(e.at("args").at("for"), "matmul \"quoted\" <b>");
      }
    }
    counters += ph == "C";
    instants += ph == "i";
  }
  EXPECT_EQ(blocks, m.r.records.size());
  EXPECT_EQ(counters, 3);
  EXPECT_EQ(instants, 1);
  std::set<std::string> names;
  for (const auto& [id, name] : threads) names.insert(processes[id.first] + "/" + name);
  EXPECT_TRUE(names.contains("gpu:0/compute"));
  EXPECT_TRUE(names.contains("gpu:0/upload"));
  EXPECT_FALSE(names.contains("gpu:0/download"));  // which did nothing
  EXPECT_TRUE(names.contains("host/steps"));
}

TEST(Trace, QuotesWhatEver) {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  bytes += "\u00b5\u20ac\U0001F600";
  const json read = json::parse(json_quoted(bytes));
  EXPECT_TRUE(read.get<std::string>().ends_with("\u00b5\u20ac\U0001F600"));
  EXPECT_TRUE(read.get<std::string>().starts_with(std::string(bytes.substr(0, 128))));
}

TEST(Report, HasWhatWasRecorded) {
  MadeUp m = some_steps();
  const std::string html = report_html(m.recording(), "Profile of a <test>");
  for (const char* part : {"Profile of a &lt;test&gt;", "Timeline", "Kernels by time", "Transfers", "Waiting", "Memory", "Advice",
                           "matmul &quot;quoted&quot; &lt;b&gt;", "11.4 MiB", "limit of gpu:0", "2 GB/s"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  EXPECT_EQ(html.find("matmul \"quoted\" <b>"), std::string::npos);
  const Recording nothing{.tasks = {{}}};
  EXPECT_NE(report_html(nothing, "nothing").find("</html>"), std::string::npos);
}

TEST(Report, SaysWhatWasLeftOut) {
  MadeUp m = some_steps();
  m.r.lost_records = 123456;
  EXPECT_NE(report_html(m.recording(), "t").find("123456 older ones were left out"), std::string::npos);
  EXPECT_NE(trace_json(m.recording()).find("123456"), std::string::npos);
}

TEST(Summary, AddsUp) {
  MadeUp m = some_steps();
  const Summary s(m.recording());
  ASSERT_EQ(s.launches().size(), 1);
  EXPECT_EQ(s.launches()[0].count, 3);
  EXPECT_DOUBLE_EQ(s.launches()[0].seconds, 0.024);
  EXPECT_DOUBLE_EQ(s.launches()[0].flops_per_second(), 1e9);
  ASSERT_EQ(s.transfers().size(), 1);
  EXPECT_DOUBLE_EQ(s.transfers()[0].bytes_per_second(), 2e9);
  EXPECT_EQ(s.waits().size(), 2);
  EXPECT_DOUBLE_EQ(s.median_step_seconds(), 0.01);
  EXPECT_DOUBLE_EQ(s.steady().seconds(), 0.03);
}

TEST(Intervals, AreASetOfMoments) {
  Intervals a, b;
  a.add(10, 20);
  a.add(0, 5);
  a.add(4, 8);
  a.add(3, 3);
  b.add(6, 12);
  b.add(18, 30);
  using Pairs = std::vector<std::pair<Time, Time>>;
  EXPECT_EQ(a.all(), (Pairs{{0, 8}, {10, 20}}));
  EXPECT_EQ((a & b).all(), (Pairs{{6, 8}, {10, 12}, {18, 20}}));
  EXPECT_EQ((a - b).all(), (Pairs{{0, 6}, {12, 18}}));
  EXPECT_EQ((b - a).all(), (Pairs{{8, 10}, {20, 30}}));
  EXPECT_EQ((a | b).all(), (Pairs{{0, 30}}));
  EXPECT_TRUE(a.overlaps(7, 9));
  EXPECT_FALSE(a.overlaps(8, 10));
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("tandem_profile_test_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  static std::string read(const std::filesystem::path& p) {
    std::ifstream in(p);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path folder;
};

TEST_F(Files, AreNamedByTheirEnding) {
  using Paths = std::vector<std::filesystem::path>;
  EXPECT_EQ(files_for("a/x.html"), Paths{"a/x.html"});
  EXPECT_EQ(files_for("x.json"), Paths{"x.json"});
  EXPECT_EQ(files_for("x.y"), (Paths{"x.y.html", "x.y.json"}));
}

TEST_F(Files, AreWrittenWhenTheProfileEnds) {
  begin(folder / "deep" / "profile", "a title");
  {
    const Span run(Kind::Run, "some run");
  }
  const std::vector<std::filesystem::path> files = end();
  ASSERT_EQ(files.size(), 2);
  EXPECT_NE(read(files[0]).find("a title"), std::string::npos);
  EXPECT_NE(json::parse(read(files[1])).dump().find("some run"), std::string::npos);
  EXPECT_TRUE(end().empty());
}

TEST_F(Files, ThatCannotBeWrittenAreAnErrorBeforeTheWork) {
  EXPECT_EQ(error_of([&] { begin(folder / "", "t"); }),
            "profile: '" + (folder / "").string() +
                "' names no file\n  hint: a name that ends in .html or .json, or one without an ending for both");
  std::ofstream(folder / "file") << "x";
  EXPECT_NE(error_of([&] { begin(folder / "file" / "profile.html", "t"); }).find("profile.html"), std::string::npos);
  EXPECT_FALSE(Recorder::is_on());
}

TEST_F(Files, AreNotWrittenWhenItIsAbandoned) {
  begin(folder / "profile.html", "t");
  abandon();
  EXPECT_FALSE(Recorder::is_on());
  EXPECT_FALSE(std::filesystem::exists(folder / "profile.html"));
}

}  // namespace
}  // namespace tandem::profile
