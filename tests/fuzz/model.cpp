// .keras files: the config changed by its structure, the weights and the archive by their bytes.
#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>

#include <tandem/nn/layers.hpp>
#include <tandem/nn/model.hpp>

#include "format.hpp"
#include "io/zip.hpp"

namespace tandem::fuzz {
namespace {

namespace fs = std::filesystem;
using nn::Config;
using Entries = std::vector<std::pair<std::string, std::string>>;

void put_number(std::string& to, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(i < 8 ? number >> (8 * i) : 0);
}

// An archive of stored entries, in memory.
std::string archive_of(const Entries& entries) {
  std::string all, directory;
  for (const auto& [name, content] : entries) {
    std::string common;
    put_number(common, 20, 2);
    put_number(common, 0, 8);
    put_number(common, crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()), 4);
    put_number(common, content.size(), 4);
    put_number(common, content.size(), 4);
    put_number(common, name.size(), 2);
    put_number(common, 0, 2);
    put_number(directory, 0x02014b50, 4);
    put_number(directory, 20, 2);
    directory += common;
    put_number(directory, 0, 10);
    put_number(directory, all.size(), 4);
    directory += name;
    put_number(all, 0x04034b50, 4);
    all += common + name + content;
  }
  const size_t start = all.size();
  all += directory;
  put_number(all, 0x06054b50, 4);
  put_number(all, 0, 4);
  put_number(all, entries.size(), 2);
  put_number(all, entries.size(), 2);
  put_number(all, directory.size(), 4);
  put_number(all, start, 4);
  put_number(all, 0, 2);
  return all;
}

// What is in an archive; nothing when it is none.
Entries entries_of(const std::string& archive) {
  const fs::path scratch = fs::temp_directory_path() / ("tandem_fuzz_" + std::to_string(::getpid())) / "scratch.zip";
  fs::create_directories(scratch.parent_path());
  Entries entries;
  try {
    const io::ZipReader zip(write_bytes(scratch, archive));
    for (const auto& entry : zip.entries()) entries.emplace_back(entry.name, io::text_of(zip.read(entry.name)));
  } catch (const Error&) {
    entries.clear();
  }
  fs::remove(scratch);
  return entries;
}

Config wild_value(Random& random) {
  switch (random.below(10)) {
    case 0: return nullptr;
    case 1: return random.one_in(2);
    case 2: return wild_number(random);
    case 3:
    case 4: return static_cast<int64_t>(wild_number(random));
    case 5: return 1e300;
    case 6: return "";
    case 7: return Config::array();
    case 8: return Config::object();
    default: return Config::array({wild_number(random), nullptr});
  }
}

// Every value that has a place, inner ones too.
void collect(const Config& value, const Config::json_pointer& at, std::vector<Config::json_pointer>& places) {
  if (value.is_object())
    for (const auto& [key, inner] : value.items()) collect(inner, at / key, places);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i) collect(value[i], at / i, places);
  if (!at.empty()) places.push_back(at);
}

void change_config(Config& config, Random& random) {
  std::vector<Config::json_pointer> places;
  collect(config, Config::json_pointer(), places);
  if (places.empty()) return;
  const auto& place = places[random.below(places.size())];
  const auto& other = places[random.below(places.size())];
  Config& value = config[place];
  Config& around = config[place.parent_pointer()];
  switch (random.below(8)) {
    case 0:  // one value in the place of another
      value = Config(config[other]);
      break;
    case 1:
      if (around.is_object()) around.erase(place.back());
      break;
    case 2:
      if (around.is_array()) around.push_back(Config(value));
      break;
    case 3:
      if (value.is_string()) value = mutated(value.get<std::string>(), random);
      break;
    default:
      if (value.is_structured() && !random.one_in(6)) break;  // mostly what is small
      value = wild_value(random);
  }
}

std::string changed_config(const std::string& text, Random& random) {
  Config config = Config::parse(text, nullptr, false);
  if (config.is_discarded() || random.one_in(10)) return mutated(text, random);
  for (size_t i = 0, count = 1 + random.below(3); i < count; ++i) change_config(config, random);
  return config.dump(-1, ' ', false, Config::error_handler_t::replace);
}

std::string mutate(const std::string& input, Random& random) {
  Entries entries = entries_of(input);
  if (entries.empty() || random.one_in(10)) return mutated(input, random);
  if (random.one_in(20)) {
    auto& [name, content] = entries[random.below(entries.size())];
    if (random.one_in(2))
      name = mutated(name, random);
    else
      content = mutated(content, random);
  } else {
    for (auto& [name, content] : entries) {
      if (name == "config.json" && !random.one_in(5)) content = changed_config(content, random);
      if (name == "model.weights.h5" && random.one_in(5)) content = mutated(content, random);
    }
  }
  std::string archive = archive_of(entries);
  return random.one_in(20) ? mutated(archive, random) : archive;
}

void run(const std::string& input, const fs::path& folder) {
  const fs::path path = write_bytes(folder / "m.keras", input);
  const nn::Model model = nn::Model::load(path);
  model.save(folder / "again.keras");
}

}  // namespace

Format model_format() {
  Format format{.name = "model", .mutate = mutate, .run = run};
  for (const char* name : {"sgd", "adafactor", "augmented", "cross_attention", "shapes_and_activations", "images", "lines_and_volumes",
                           "recurrent", "mixed_layers"})
    format.seeds.push_back(archive_of(entries_of(read_bytes(data_folder() / "keras_files" / (std::string(name) + ".keras")))));
  return format;
}

}  // namespace tandem::fuzz
