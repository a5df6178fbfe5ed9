// What the tests of model files share: the files that Keras made, and their parts changed.
#pragma once
#include <nlohmann/json.hpp>

#include <tandem/nn/layers/core.hpp>
#include <tandem/nn/model.hpp>

#include "io/zip.hpp"
#include "io_support.hpp"
#include "nn/saving/keras_file.hpp"
#include "support/source_folder.hpp"

namespace tandem::nn {

inline std::filesystem::path stored(const std::string& name) {
  return std::filesystem::path(test::source_file("tests/data/keras_files")) / name;
}

inline std::vector<Tensor> tensors(const io::Hdf5Group& file, const std::string& group) {
  std::vector<Tensor> list;
  if (const io::Hdf5Group* found = file.find(group))
    for (size_t i = 0; i < found->datasets.size(); ++i) list.push_back(found->datasets.at(std::to_string(i)));
  return list;
}

inline Config config_in(const std::filesystem::path& file) {
  const io::Bytes text = io::ZipReader(file).read("config.json");
  return Config::parse(io::text_of(text));
}

// A .keras file from parts, which need not make sense.
inline void write_parts(const std::filesystem::path& path, std::string_view config, const io::Hdf5Group& weights) {
  std::filesystem::remove(path);
  const io::Hdf5Image image(weights);
  AtomicFile file(path);
  io::ZipWriter zip(file);
  zip.add("metadata.json", "{}");
  zip.add("config.json", config);
  zip.add("model.weights.h5", image.pieces());
  zip.finish();
  file.commit();
}

// The message without the file's name at its beginning, which has to be there.
inline std::string without_name(const std::string& message, const std::filesystem::path& path) {
  const std::string start = path.string() + ": ";
  return message.starts_with(start) ? message.substr(start.size()) : "not named: " + message;
}

}  // namespace tandem::nn
