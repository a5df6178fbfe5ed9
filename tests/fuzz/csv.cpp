// CSV files, with and without a header.
#include "data_formats.hpp"

namespace tandem::fuzz {
namespace {

void run(const std::string& input, const std::filesystem::path& folder) {
  using data::CsvColumn;
  const std::string file = write_bytes(folder / "t.csv", input).string();
  const CsvColumn text{.kind = CsvColumn::Kind::Text}, whole{.dtype = DType::I32}, real{.dtype = DType::F32, .missing = "0"};
  read_elements(data::Dataset::csv({file}, {.columns = {text, whole, real}}));
  read_elements(data::Dataset::csv({file}, {.columns = {whole, text}, .header = true}));
  CsvColumn named = real;
  named.name = "b";
  read_elements(data::Dataset::csv({file}, {.columns = {named}, .header = true, .delimiter = ';', .quote = '\''}));
}

}  // namespace

Format csv_format() {
  return {.name = "csv",
          .seeds = {"x,1,2.5\n\"y, \"\"z\"\"\",-3,\n\"two\nlines\",7,nan\n",
                    "\xef\xbb\xbf"
                    "a,b,c\n1,two,3\n4,,6\r\n",
                    "a;b\n1;2e3\n'q;''r';4\n", read_bytes(data_folder() / "pipelines" / "table.csv")},
          .run = run};
}

}  // namespace tandem::fuzz
