// Rows of NumPy arrays in files: mapped where they are stored as they are, unpacked into memory where they are compressed.
#include <map>

#include "base/border.hpp"
#include "base/checked.hpp"
#include "data/budget.hpp"
#include "data/mapped_file.hpp"
#include "data/sources.hpp"

namespace tandem::data {
namespace {

uint64_t saturating_sum(uint64_t a, uint64_t b) { return checked_add(a, b).value_or(UINT64_MAX); }

NodeRef npy_source(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  Rows rows({npy_array(file->bytes(), file, path)}, "npy");
  rows.watch = row_watch(file, rows);
  return rows_source("npy", path, std::move(rows));
}

NodeRef npz_source(const std::string& path, std::vector<std::string> names) {
  const auto file = std::make_shared<const MappedFile>(path);
  const std::vector<ZipEntry> entries = zip_entries(*file);
  if (names.empty())
    for (const ZipEntry& e : entries)
      if (e.name.ends_with(".npy")) names.push_back(e.name.substr(0, e.name.size() - 4));
  if (names.empty()) resource_error("npz: ", path, " holds no arrays");
  std::map<std::string_view, const ZipEntry*> by_name;
  for (const ZipEntry& e : entries) by_name.emplace(e.name, &e);
  std::vector<RowTensor> arrays;
  uint64_t unpacked = 0;
  const uint64_t most = free_memory_bytes() / 2;  // as for a pipeline that is given no budget
  for (const std::string& name : names) {
    auto found = by_name.find(name + ".npy");
    if (found == by_name.end()) found = by_name.find(name);
    if (found == by_name.end()) {
      std::string there;
      for (const ZipEntry& e : entries) there += (there.empty() ? "" : ", ") + e.name;
      resource_error("npz: ", path, " has no array '", name, "'; it has ", there);
    }
    const ZipEntry* entry = found->second;
    const std::string what = cat(path, ": ", entry->name);
    if (entry->method == 0) {
      arrays.push_back(npy_array(entry->bytes, file, what));
    } else {
      unpacked = saturating_sum(unpacked, entry->full_size);
      if (unpacked > most)
        resource_error(what, ": unpacked, the arrays up to this one have ", unpacked, " bytes; half of the free memory is ", most,
                       "\n  hint: np.savez does not compress, and such arrays are mapped");
      const auto full = std::make_shared<const std::vector<char>>(inflated(*entry, what));
      arrays.push_back(npy_array({full->data(), full->size()}, full, what));
    }
  }
  Rows rows(std::move(arrays), "npz");
  rows.watch = row_watch(file, rows);
  std::string text = path;
  for (const std::string& name : names) text += cat(", ", name);
  return rows_source("npz", std::move(text), std::move(rows));
}

}  // namespace

Dataset Dataset::npy(const std::string& path) {
  return at_border("npy", [&] { return Dataset(npy_source(path)); });
}

Dataset Dataset::npz(const std::string& path, std::vector<std::string> names) {
  return at_border("npz", [&] { return Dataset(npz_source(path, std::move(names))); });
}

}  // namespace tandem::data
