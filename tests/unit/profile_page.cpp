// A page shows what it was given and nothing of it becomes markup; drawings are well-formed.
#include <gtest/gtest.h>

#include <algorithm>

#include "profile/chart.hpp"
#include "profile/page.hpp"

namespace tandem::profile {
namespace {

size_t count(const std::string& text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

// The names of elements that were opened and not closed, and what closes nothing: empty for well-formed XML.
std::string unbalanced(std::string_view xml) {
  std::vector<std::string> open;
  for (size_t at = 0; (at = xml.find('<', at)) != std::string_view::npos;) {
    const size_t end = xml.find('>', at);
    if (end == std::string_view::npos) return "a tag has no end";
    const std::string_view tag = xml.substr(at + 1, end - at - 1);
    at = end;
    if (std::ranges::count(tag, '"') % 2) return "quotes in <" + std::string(tag) + ">";
    if (tag.ends_with('/')) continue;
    const std::string name(tag.substr(tag.starts_with('/'), tag.find(' ') - tag.starts_with('/')));
    if (!tag.starts_with('/')) {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name) return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

TEST(Page, EscapesWhateverItIsGiven) {
  const std::string evil = "<script>alert(\"x\")</script> & 'more'";
  Page page(evil, evil);
  page.heading(evil);
  page.paragraph(evil);
  page.preformatted(evil);
  page.figures({{evil, evil, evil}});
  page.card(Tone::Warning, evil, evil);
  page.table({.columns = {{evil, Align::Left, evil}}, .rows = {{evil}}});
  page.svg(svg(Timeline{.lanes = {{evil, evil, {{0, 1, evil, evil}}}}, .markers = {{0.5, evil}}, .legend = {{evil, 0}}, .end = 1}));
  page.svg(svg(Chart{.x = {evil}, .y = {evil}, .series = {{evil, {{0, 1}, {1, 2}}}}, .across = {{1, evil}}, .upright = {{1, evil}}}));
  const std::string html = page.html();
  EXPECT_EQ(count(html, "alert(\"x\")"), 0);
  EXPECT_EQ(count(html, "<script>alert"), 0);
  EXPECT_GE(count(html, "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;more&#39;"), 10);
}

TEST(Page, IsWholeAndNeedsNothingFromElsewhere) {
  Page page("a title");
  page.heading("a section");
  page.svg(svg(Timeline{.lanes = {{"gpu:0", "compute", {{0, 1, "a", ""}}}}, .end = 1}));
  const std::string html = page.html();
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
  for (const char* outside : {"src=", "href=", "@import", "url("}) EXPECT_EQ(count(html, outside), 0) << outside;
  EXPECT_EQ(count(html, "http"), count(html, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(count(html, "<script>"), 1);  // for the timeline; a page without one has none
  EXPECT_EQ(count(Page("a title").html(), "<script>"), 0);
}

TEST(Page, FoldsWhatIsLong) {
  Table table{.columns = {{"n", Align::Right}, {"share", Align::Bar}}};
  for (int i = 0; i < 50; ++i) table.rows.push_back({std::to_string(i), "0.5"});
  Page page("a title");
  page.table(table, 20);
  EXPECT_EQ(count(page.html(), "<summary>30 more</summary>"), 1);
  EXPECT_EQ(count(page.html(), "<td class=n>"), 50);
  EXPECT_EQ(count(page.html(), "</i>50 %</td>"), 50);
  Page empty("a title");
  empty.table({.columns = {{"n"}}, .when_empty = "no copies"});
  EXPECT_EQ(count(empty.html(), "no copies"), 1);
}

TEST(Page, ClosesItsFolds) {
  Page page("a title");
  page.heading("one");
  page.fold("details");
  page.paragraph("text");
  page.heading("two");
  page.paragraph("text");
  EXPECT_EQ(count(page.html(), "<details>"), count(page.html(), "</details>"));
}

TEST(Amount, HasThreeFigures) {
  EXPECT_EQ(amount(0, Unit::Seconds), "0 s");
  EXPECT_EQ(amount(0.00125, Unit::Seconds), "1.25 ms");
  EXPECT_EQ(amount(0.9999, Unit::Seconds), "1 s");
  EXPECT_EQ(amount(3.4e-6, Unit::Seconds), "3.4 µs");
  EXPECT_EQ(amount(3.5 * 0x1p30, Unit::Bytes), "3.5 GiB");
  EXPECT_EQ(amount(17, Unit::Bytes), "17 bytes");
  EXPECT_EQ(amount(12e9, Unit::BytesPerSecond), "12 GB/s");
  EXPECT_EQ(amount(183.4e9, Unit::FlopsPerSecond), "183 GFLOP/s");
  EXPECT_EQ(amount(0.4142, Unit::Share), "41.4 %");
  EXPECT_EQ(amount(12345, Unit::Number), "12345");
  EXPECT_EQ(amount(std::numeric_limits<double>::infinity(), Unit::Seconds), "-");
}

TEST(Chart, IsWellFormed) {
  Chart chart{.x = {"time", Unit::Seconds}, .y = {"memory", Unit::Bytes}};
  chart.series = {{"a", {{0, 0}, {1, 3 * 0x1p20}, {2, 0x1p20}}, Style::Area, 0}, {"b", {{0, 1e6}, {2, 2e6}}, Style::Line, 1}};
  chart.across = {{4 * 0x1p20, "limit"}};
  const std::string drawing = svg(chart);
  EXPECT_EQ(unbalanced(drawing), "");
  EXPECT_EQ(count(drawing, "<path"), 2);
  EXPECT_EQ(count(drawing, ">limit<"), 1);
  for (const char* tick : {">1 MiB<", ">2 MiB<", ">3 MiB<", ">4 MiB<", ">0.5 s<"}) EXPECT_EQ(count(drawing, tick), 1) << tick;
}

TEST(Chart, StandsDegenerateNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const bool log : {false, true})
    for (const std::vector<std::pair<double, double>>& points : {std::vector<std::pair<double, double>>{},
                                                                 {{1, 5}},
                                                                 {{0, 0}, {0, 0}},
                                                                 {{1, -3}, {2, -3}},
                                                                 {{1, nan}, {2, 3}, {inf, 4}},
                                                                 {{1, 1e-9}, {2, 1e12}}}) {
      Chart chart{.x = {"x"}, .y = {.name = "y", .log = log}, .series = {{"s", points}}};
      const std::string drawing = svg(chart);
      EXPECT_EQ(unbalanced(drawing), "");
      EXPECT_EQ(count(drawing, "nan"), 0);
      EXPECT_EQ(count(drawing, "inf"), 0);
      EXPECT_LT(drawing.size(), size_t{20000});
    }
}

TEST(Timeline, GivesBlocksThatOverlapRowsOfTheirOwn) {
  Timeline t{
      .lanes = {{"gpu:0", "compute", {{0, 0.5, "a", ""}, {0.5, 1, "b", ""}}}, {"gpu:0", "host", {{0, 1, "c", ""}, {0.2, 0.4, "d", ""}}}},
      .markers = {{0.5, "step 1"}},
      .legend = {{"launch", 0}},
      .end = 1};
  const std::string drawing = svg(t);
  EXPECT_EQ(unbalanced(drawing), "");
  const auto y_of = [&](const std::string& label) {
    const size_t title = drawing.find("<title>" + label + "</title>"), rect = drawing.rfind("<rect", title), y = drawing.find("y=\"", rect);
    return std::stod(drawing.substr(y + 3));
  };
  EXPECT_EQ(y_of("a"), y_of("b"));
  EXPECT_LT(y_of("b"), y_of("c"));
  EXPECT_LT(y_of("c"), y_of("d"));
  EXPECT_EQ(count(drawing, ">gpu:0<"), 1);  // named once
  EXPECT_EQ(count(drawing, "step 1"), 2);   // shown, and as a title
}

TEST(Timeline, LeavesOutWhatIsOutside) {
  Timeline t{.lanes = {{"cpu", "host", {{0, 1, "before", ""}, {2, 3, "inside", ""}, {9, 10, "behind", ""}}}}, .begin = 1.5, .end = 4};
  const std::string drawing = svg(t);
  EXPECT_EQ(count(drawing, "before"), 0);
  EXPECT_GE(count(drawing, "inside"), 1);
  EXPECT_EQ(count(drawing, "behind"), 0);
}

}  // namespace
}  // namespace tandem::profile
