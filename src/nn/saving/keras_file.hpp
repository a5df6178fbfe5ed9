// A .keras file: a zip archive of metadata.json, config.json and model.weights.h5.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <tandem/nn/config.hpp>

#include "io/hdf5.hpp"

namespace tandem::nn {

struct KerasFile {
  Config config;  // of the model, with its compile_config
  io::Hdf5Group weights;
};

// JSON from outside. Parsed, a value takes some ten times the memory of its text, so their number and depth are limited: UserError.
Config parse_config(std::string_view text, const std::string& label);

KerasFile read_keras_file(const std::filesystem::path& path);
void write_keras_file(const std::filesystem::path& path, const Config& config, const io::Hdf5Group& weights);

// The weights alone, out of a .weights.h5 or a .keras file.
io::Hdf5Group read_weights_file(const std::filesystem::path& path);
void write_weights_file(const std::filesystem::path& path, const io::Hdf5Group& weights);

}  // namespace tandem::nn
