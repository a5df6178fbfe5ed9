// One HTML page that holds everything it shows: sections of text, tables and drawings, light or dark as the reader's system is.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::profile {

std::string escaped(std::string_view text);  // for HTML and SVG, inside of attributes too

enum class Align : uint8_t { Left, Right, Code, Bar };  // Code: names of ops and lines; Bar: a share from 0 to 1, drawn with its percentage

struct Table {
  struct Column {
    std::string heading;
    Align align = Align::Left;
    std::string explained = {};  // shown when the pointer rests on the heading
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as columns
  std::string when_empty = "nothing was recorded";
};

// A figure that the eye finds first: "12.4 ms", "a step", "of 80 steps".
struct Figure {
  std::string value, name, note;
};

enum class Tone : uint8_t { Good, Neutral, Warning };

class Page {
 public:
  explicit Page(std::string title, std::string subtitle = {});

  void heading(std::string_view text);    // begins a section
  void paragraph(std::string_view text);  // blank lines part it
  void preformatted(std::string_view text);
  void figures(const std::vector<Figure>& figures);
  void card(Tone tone, std::string_view title, std::string_view text);  // advice, a verdict
  // A table longer than `shown` rows is folded: the first ones, and the rest behind a click.
  void table(const Table& table, size_t shown = 20);
  void svg(std::string_view drawing);  // of chart.hpp, or any other: taken as it is
  void fold(std::string_view title);   // what follows is behind a click on the title, until the section ends

  std::string html() const;

 private:
  struct Section {
    std::string heading, body;
    int open_folds = 0;
  };
  std::string& body() { return sections_.back().body; }
  std::string title_, subtitle_;
  std::vector<Section> sections_;  // the first has no heading
};

}  // namespace tandem::profile
