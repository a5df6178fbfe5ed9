// NumPy's arrays, alone and in archives.
#include "data_formats.hpp"

namespace tandem::fuzz {
namespace {

void run(const std::string& input, const std::filesystem::path& folder) {
  const std::string file = write_bytes(folder / "a.npy", input).string();
  const data::Dataset rows = input.starts_with("PK") ? data::Dataset::npz(file) : data::Dataset::npy(file);
  read_elements(rows);
  read_elements(rows.batch(3));
  read_elements(rows.shuffle(4, {.seed = 1}).batch(2));
}

}  // namespace

Format npy_format() {
  const auto stored = data_folder() / "pipelines";
  Format format{.name = "npy", .run = run};
  for (const char* name : {"array.npy", "columns.npy", "stored.npz", "deflated.npz"}) format.seeds.push_back(read_bytes(stored / name));
  return format;
}

}  // namespace tandem::fuzz
