// A format that is fuzzed: where its first inputs come from, how one is changed, and what reads it. One file a format.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mutate.hpp"

namespace tandem::fuzz {

struct Format {
  std::string name;
  std::vector<std::string> seeds;  // inputs that are sound; those of tests/data/fuzz/<name> come on top
  // Changes an input by its structure. Empty: its bytes are changed as they are.
  std::function<std::string(const std::string& input, Random& random)> mutate = {};
  // Reads an input. What it throws is one of our errors, or it throws nothing; `folder` is its own and may hold what earlier inputs left.
  std::function<void(const std::string& input, const std::filesystem::path& folder)> run;
};

Format model_format();
Format hdf5_format();
Format records_format();
Format csv_format();
Format image_format();
Format npy_format();
Format state_format();
Format cache_format();
Format kernel_format();

// --- what they share -------------------------------------------------------------------------------------------------------------------

std::filesystem::path data_folder();  // tests/data
std::string read_bytes(const std::filesystem::path& path);
std::filesystem::path write_bytes(const std::filesystem::path& path, std::string_view bytes);

}  // namespace tandem::fuzz
