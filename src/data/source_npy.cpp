// Rows of NumPy arrays in files: mapped where they are stored as they are, unpacked into memory where they are compressed.
#include <algorithm>

#include "base/text.hpp"
#include "data/mapped_file.hpp"
#include "data/sources.hpp"

namespace tandem::data {

Dataset Dataset::npy(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  Rows rows({npy_array(file->bytes(), file, path)}, "npy");
  rows.watch = row_watch(file, rows);
  return Dataset(rows_source("npy", path, std::move(rows)));
}

Dataset Dataset::npz(const std::string& path, std::vector<std::string> names) {
  const auto file = std::make_shared<const MappedFile>(path);
  const std::vector<ZipEntry> entries = zip_entries(*file);
  if (names.empty())
    for (const ZipEntry& e : entries)
      if (e.name.ends_with(".npy")) names.push_back(e.name.substr(0, e.name.size() - 4));
  if (names.empty()) resource_error("npz: ", path, " holds no arrays");
  std::vector<RowTensor> arrays;
  for (const std::string& name : names) {
    const auto entry = std::ranges::find_if(entries, [&](const ZipEntry& e) { return e.name == name + ".npy" || e.name == name; });
    if (entry == entries.end()) {
      std::string there;
      for (const ZipEntry& e : entries) there += (there.empty() ? "" : ", ") + e.name;
      resource_error("npz: ", path, " has no array '", name, "'; it has ", there);
    }
    const std::string what = cat(path, ": ", entry->name);
    if (entry->method == 0) {
      arrays.push_back(npy_array(entry->bytes, file, what));
    } else {
      const auto full = std::make_shared<const std::vector<char>>(inflated(*entry, what));
      arrays.push_back(npy_array({full->data(), full->size()}, full, what));
    }
  }
  Rows rows(std::move(arrays), "npz");
  rows.watch = row_watch(file, rows);
  std::string text = path;
  for (const std::string& name : names) text += cat(", ", name);
  return Dataset(rows_source("npz", std::move(text), std::move(rows)));
}

}  // namespace tandem::data
