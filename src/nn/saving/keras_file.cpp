#include "nn/saving/keras_file.hpp"

#include <algorithm>
#include <ctime>

#include "base/text.hpp"
#include "io/zip.hpp"

namespace tandem::nn {
namespace {

constexpr char kMetadata[] = "metadata.json", kConfig[] = "config.json", kWeights[] = "model.weights.h5",
               kNumpyWeights[] = "model.weights.npz";
constexpr char kLayout[] = "3.15.1";  // the version of Keras whose layout this is
constexpr int kMostDepth = 400;       // of a config; what reads it goes down with it
// The largest models of Keras's own applications have 100 000 values in 2 MB. What is packed may be larger than the archive, but not much:
// a config that is all there is in it says little with many words.
constexpr size_t kMostValues = 1'000'000;
constexpr uint64_t kMostConfigBytes = 32 << 20, kAlwaysConfigBytes = 1 << 20, kMostConfigExpansion = 16;

std::string label_of(const std::filesystem::path& path, const char* entry) { return cat(path.string(), ": ", entry); }

uint64_t most_config_bytes(const io::ZipReader& zip) {
  return std::min(kMostConfigBytes, kAlwaysConfigBytes + kMostConfigExpansion * std::min(zip.file_size(), kMostConfigBytes));
}

std::string text_of(const Config& config, const std::filesystem::path& path) {
  try {
    return config.dump();
  } catch (const nlohmann::json::exception& e) {  // a name that is not UTF-8
    user_error("cannot write ", path.string(), ": the config cannot be JSON: ", e.what());
  }
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d@%H:%M:%S", &parts);
  return text;
}

bool ends_with(const std::filesystem::path& path, std::string_view ending) { return path.filename().string().ends_with(ending); }

}  // namespace

Config parse_config(std::string_view text, const std::string& label) {
  size_t values = 0;
  try {
    return Config::parse(text, [&](int depth, Config::parse_event_t, Config&) {
      if (depth > kMostDepth) user_error(label, ": nested more than ", kMostDepth, " deep");
      if (++values > kMostValues) user_error(label, ": more than ", kMostValues, " values");
      return true;
    });
  } catch (const nlohmann::json::exception& e) {
    user_error(label, ": not JSON: ", e.what());
  }
}

KerasFile read_keras_file(const std::filesystem::path& path) {
  const io::ZipReader zip(path);
  if (!zip.has(kConfig)) user_error(path.string(), ": not a model: there is no ", kConfig, " in it");
  if (!zip.has(kWeights))
    user_error(path.string(), ": there is no ", kWeights, " in it",
               zip.has(kNumpyWeights) ? cat("; ", kNumpyWeights, " cannot be read") : "");
  KerasFile file;
  const io::Bytes config = zip.read(kConfig, most_config_bytes(zip));
  file.config = parse_config(io::text_of(config), label_of(path, kConfig));
  file.weights = io::read_hdf5(zip.read(kWeights), label_of(path, kWeights));
  return file;
}

void write_keras_file(const std::filesystem::path& path, const Config& config, const io::Hdf5Group& weights) {
  if (!ends_with(path, ".keras")) user_error("save: the name of a model's file ends in .keras, got ", path.string());
  const Config metadata = {{"keras_version", kLayout}, {"date_saved", now()}};
  const std::string text = text_of(config, path);
  const io::Hdf5Image image(weights);
  AtomicFile file(path);
  io::ZipWriter zip(file);
  zip.add(kMetadata, metadata.dump());
  zip.add(kConfig, text);
  zip.add(kWeights, image.pieces());
  zip.finish();
  file.commit();
}

io::Hdf5Group read_weights_file(const std::filesystem::path& path) {
  if (ends_with(path, ".keras")) return io::read_hdf5(io::ZipReader(path).read(kWeights), label_of(path, kWeights));
  if (!ends_with(path, ".weights.h5")) user_error("load_weights: the name ends in .weights.h5 or .keras, got ", path.string());
  return io::read_hdf5(io::read_file(path), path.string());
}

void write_weights_file(const std::filesystem::path& path, const io::Hdf5Group& weights) {
  if (!ends_with(path, ".weights.h5")) user_error("save_weights: the name of a file of weights ends in .weights.h5, got ", path.string());
  const io::Hdf5Image image(weights);
  AtomicFile file(path);
  for (const io::ByteView piece : image.pieces()) file.write(io::text_of(piece));
  file.commit();
}

}  // namespace tandem::nn
