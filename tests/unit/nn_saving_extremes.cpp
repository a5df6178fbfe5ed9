// Numbers, sizes and structures in a model's file that no model has: one of our errors, or a model; never a crash, gigabytes or for ever.
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <thread>

#include <tandem/nn/layers.hpp>

#include "base/text.hpp"
#include "nn/network.hpp"
#include "nn/saving/loading.hpp"
#include "nn_saving_support.hpp"
#include "peak_memory.hpp"

namespace tandem::nn {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMiB = size_t{1} << 20;

void expect_part(const std::string& message, const std::string& part) { EXPECT_NE(message.find(part), std::string::npos) << message; }

std::string error_of_load(const fs::path& path) {
  return without_name(error_of([&] { Model::load(path); }), path);
}

// --- numbers in the configs of layers ------------------------------------------------------------------------------------------------

const std::vector<Config>& wild_numbers() {
  static const std::vector<Config> all = {INT64_MIN,           -1,        0,          7,     50000000, int64_t{1} << 31, int64_t{1} << 62,
                                          6148914691236517206, INT64_MAX, UINT64_MAX, 1e300, -0.5};
  return all;
}

// The layer with each number of its config replaced, on the same inputs.
void expect_survives(const Layer& layer, const std::vector<Spec>& inputs) {
  const Config good = serialize(layer);
  const Config flat = good["config"].flatten();
  for (const auto& [place, value] : flat.items()) {
    if (!value.is_number()) continue;
    for (const Config& wild : wild_numbers()) {
      Config bad = good;
      bad["config"][Config::json_pointer(place)] = wild;
      SCOPED_TRACE(layer.class_name() + place + " = " + wild.dump());
      const LoadingScope loading(100000);
      const size_t peak = peak_growth_bytes([&] {
        try {
          std::vector<Symbol> symbols;
          for (const Spec& s : inputs) symbols.push_back(Input(Dims(s.dims.begin() + 1, s.dims.end()), s.dtype));
          deserialize(bad)(symbols);
        } catch (const Error&) {
        } catch (const nlohmann::json::exception&) {  // named by Model::load
        }
      });
      EXPECT_LT(peak, 500 * kMiB);
    }
  }
}

TEST(Extremes, NumbersOfEveryKindOfLayer) {
  std::set<std::string> done;
  const auto once = [&](const Layer& layer, const std::vector<Spec>& inputs) {
    if (inputs.empty() || !done.insert(serialize(layer)["config"].dump() + layer.class_name()).second) return;
    expect_survives(layer, inputs);
  };
  for (const auto& file : fs::directory_iterator(stored(""))) {
    if (file.path().extension() != ".keras") continue;
    const Model model = Model::load(file.path(), {.compile = false});
    for (const auto& step : model.as<NetworkBody>()->steps()) {
      std::vector<Spec> inputs;
      for (const Symbol& s : step.origin->inputs) inputs.push_back(s.spec());
      once(step.origin->layer, inputs);
    }
  }
  const Spec picture{DType::F32, {Dim::symbol("b"), 3, 5, 2}};
  once(Resizing(7, 9, {.crop_to_aspect_ratio = true}), {picture});
  once(Resizing(7, 9, {.pad_to_aspect_ratio = true}), {picture});
  once(Resizing(7, 9, {.interpolation = "nearest"}), {picture});
  once(CenterCrop(7, 9), {picture});
  once(RandomCrop(7, 9), {picture});
  once(RandomCrop(2, 2), {picture});
  once(UpSampling2D(IntList({2, 3}), {.interpolation = "bilinear"}), {picture});
  EXPECT_GT(done.size(), 80u);
}

TEST(Extremes, ANewSizeThatWrapsAround) {
  const TemporaryFolder folder;
  Model(Network::sequential({Input({3, 3, 1}), Resizing(4, 4)})).save(folder / "m.keras");
  KerasFile file = read_keras_file(folder / "m.keras");
  const auto with_height = [&](int64_t height) {
    file.config["config"]["layers"][1]["config"]["height"] = height;
    write_parts(folder / "x.keras", file.config.dump(), file.weights);
    std::string message;
    const size_t peak = peak_growth_bytes([&] { message = error_of_load(folder / "x.keras"); });
    EXPECT_LT(peak, 400 * kMiB) << height;
    return message;
  };
  EXPECT_EQ(with_height(5), "not named: no error");
  expect_part(with_height(6148914691236517206), "a new size: 3 x 6148914691236517206 does not fit in 64 bits");
  expect_part(with_height(50000000), "resizing 3 to 50000000 needs 150000000 numbers, a model from a file may have 16777216 at once");
}

TEST(Extremes, MetricsThatKeepMuch) {
  const TemporaryFolder folder;
  const Model model(Network::sequential({Input({2}), Dense(1)}));
  model.compile({.loss = {"mse"}, .metrics = {"mse"}});
  model.save(folder / "m.keras");
  KerasFile file = read_keras_file(folder / "m.keras");
  const auto with = [&](const std::string& kind, const Config& config) {
    file.config["compile_config"]["metrics"] =
        Config::array({{{"module", "keras.metrics"}, {"class_name", kind}, {"config", config}, {"registered_name", nullptr}}});
    write_parts(folder / "x.keras", file.config.dump(), file.weights);
    std::string message;
    const size_t peak = peak_growth_bytes([&] { message = error_of_load(folder / "x.keras"); });
    EXPECT_LT(peak, 400 * kMiB);
    return message;
  };
  EXPECT_EQ(with("AUC", {{"name", "auc"}, {"num_thresholds", 300}}), "not named: no error");
  expect_part(with("AUC", {{"name", "auc"}, {"num_thresholds", int64_t{1} << 50}}), "AUC: num_thresholds needs 1125899906842624 numbers");
  expect_part(with("MeanIoU", {{"name", "iou"}, {"num_classes", 100000}}), "needs 10000000000 numbers");
  EXPECT_NE(with("MeanIoU", {{"name", "iou"}, {"num_classes", int64_t{1} << 62}}), "not named: no error");
}

// --- structures ------------------------------------------------------------------------------------------------------------------------

// A network that calls a network twice, which calls one twice, …: short in a file.
TEST(Extremes, NetworksThatCallNetworks) {
  const TemporaryFolder folder;
  const Symbol x = Input({2}), y = Input({2});
  const Network inner({x}, {Activation("relu")(x)}, "inner");
  Model(Network({y}, {inner(inner(y))}, "outer")).save(folder / "m.keras");
  const KerasFile file = read_keras_file(folder / "m.keras");
  const auto inner_of = [](Config& network) -> Config& {
    for (Config& layer : network["config"]["layers"])
      if (layer["class_name"] == "Functional") return layer;
    throw std::logic_error("no network inside");
  };
  Config nested = file.config;
  for (int depth = 0; depth < 40; ++depth) {
    Config outer = file.config;
    Config& place = inner_of(outer);
    const Config name = place["config"]["name"];
    place["config"] = nested["config"];
    place["config"]["name"] = name;
    nested = std::move(outer);
  }
  write_parts(folder / "x.keras", nested.dump(), file.weights);
  expect_part(error_of_load(folder / "x.keras"), "layers are called more than 200000 times");
}

// Layers in the wrong order, and lists that are long: time grows like the file.
TEST(Extremes, ManyLayersBackwards) {
  const TemporaryFolder folder;
  constexpr size_t kLayers = 3000;
  const Symbol x = Input({2});
  Model(Network({x}, {Activation("relu")(x)}, "m")).save(folder / "m.keras");
  KerasFile file = read_keras_file(folder / "m.keras");
  Config& layers = file.config["config"]["layers"];
  const Config input = layers[0], pattern = layers[1];
  const std::string input_name = input["config"]["name"];
  const auto name = [](size_t i) { return cat("a", i); };
  layers = Config::array();
  for (size_t i = kLayers; i-- > 0;) {
    Config layer = pattern;
    layer["name"] = layer["config"]["name"] = name(i);
    layer["inbound_nodes"][0]["args"][0]["config"]["keras_history"][0] = i == 0 ? input_name : name(i - 1);
    layers.push_back(std::move(layer));
  }
  layers.push_back(input);
  for (Config* places : {&file.config["config"]["output_layers"]})
    (places->at(0).is_string() ? *places : places->at(0))[0] = name(kLayers - 1);
  write_parts(folder / "x.keras", file.config.dump(), file.weights);
  EXPECT_EQ(Model::load(folder / "x.keras").layers().size(), kLayers + 1);
}

TEST(Extremes, LongLists) {
  const TemporaryFolder folder;
  const auto error_with = [&](const std::vector<Layer>& layers, size_t at, const char* key, const Config& list) {
    Model(Network::sequential(layers)).save(folder / "m.keras");
    KerasFile file = read_keras_file(folder / "m.keras");
    file.config["config"]["layers"][at]["config"][key] = list;
    write_parts(folder / "x.keras", file.config.dump(), file.weights);
    return error_of_load(folder / "x.keras");
  };
  const Config ones(std::vector<int64_t>(200000, 1)), unknown(std::vector<Config>(200000, nullptr));
  EXPECT_NE(error_with({Input({2}), Reshape({2})}, 1, "target_shape", ones), "not named: no error");
  EXPECT_NE(error_with({Input({2}), Reshape({2})}, 0, "batch_shape", ones), "not named: no error");
  EXPECT_NE(error_with({Input({2}), Reshape({2})}, 0, "batch_shape", unknown), "not named: no error");
  EXPECT_NE(error_with({Input({2, 3}), Permute({2, 1})}, 1, "dims", ones), "not named: no error");
  EXPECT_NE(error_with({Input({2}), LayerNormalization()}, 1, "axis", ones), "not named: no error");
  EXPECT_NE(error_with({Input({2}), EinsumDense("ab,bc->ac", {3})}, 1, "equation", std::string(200000, 'a') + ",a->a"),
            "not named: no error");
  EXPECT_NE(error_with({Input({2}), EinsumDense("ab,bc->ac", {3})}, 1, "equation", "ab," + std::string(200000, 'b') + "->a"),
            "not named: no error");
}

std::string raw_deflated(const std::string& text) {
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

// An archive whose entries are deflated.
void write_deflated(const fs::path& path, const std::vector<std::pair<std::string, std::string>>& entries) {
  const auto number = [](uint64_t x, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(i < 8 ? x >> (8 * i) : 0);
    return text;
  };
  std::string all, directory;
  for (const auto& [name, content] : entries) {
    const std::string packed = raw_deflated(content);
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const std::string common = number(20, 2) + number(0, 2) + number(8, 2) + number(0, 4) + number(crc, 4) + number(packed.size(), 4) +
                               number(content.size(), 4) + number(name.size(), 2) + number(0, 2);
    directory += number(0x02014b50, 4) + number(20, 2) + common + number(0, 10) + number(all.size(), 4) + name;
    all += number(0x04034b50, 4) + common + name + packed;
  }
  const std::string end = number(0x06054b50, 4) + number(0, 4) + number(entries.size(), 2) + number(entries.size(), 2) +
                          number(directory.size(), 4) + number(all.size(), 4) + number(0, 2);
  write_file(path, io::bytes_of(all + directory + end));
}

std::string weights_text(const io::Hdf5Group& weights) {
  std::string text;
  const io::Hdf5Image image(weights);
  for (const io::ByteView piece : image.pieces()) text += io::text_of(piece);
  return text;
}

TEST(Extremes, ConfigsOfManyWords) {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.keras";
  const KerasFile good = read_keras_file(stored("mlp.keras"));
  const auto error_with = [&](const std::string& config) {
    write_deflated(path, {{"config.json", config}, {"model.weights.h5", weights_text(good.weights)}});
    EXPECT_LT(fs::file_size(path), 200000u);
    std::string message;
    const size_t peak = peak_growth_bytes([&] { message = error_of_load(path); });
    EXPECT_LT(peak, 300 * kMiB);
    return message;
  };
  EXPECT_EQ(error_with(good.config.dump()), "not named: no error");
  std::string lists = "[0";  // 100 KB packed, 1.8 GB parsed
  for (size_t i = 0; i < 30 * kMiB; i += 3) lists += ",[]";
  expect_part(error_with(lists + "]"), "entry 'config.json' has 31457283 bytes, at most ");
  // Not packed it is long enough, and has too many values.
  write_parts(path, lists + "]", good.weights);
  std::string message;
  const size_t peak = peak_growth_bytes([&] { message = error_of_load(path); });
  EXPECT_EQ(message, "config.json: more than 1000000 values");
  EXPECT_LT(peak, 400 * kMiB);
}

TEST(Extremes, WeightsThatAreAllZeros) {
  const TemporaryFolder folder;
  const KerasFile good = read_keras_file(stored("mlp.keras"));
  io::Hdf5Group weights;
  weights.at("layers").datasets["0"] = Tensor::zeros({int64_t{200} << 20}, DType::U8);
  write_deflated(folder / "x.keras", {{"config.json", good.config.dump()}, {"model.weights.h5", weights_text(weights)}});
  weights = {};
  std::string message;
  const size_t peak = peak_growth_bytes([&] { message = error_of_load(folder / "x.keras"); });
  expect_part(message, "entry 'model.weights.h5' is unpacked to ");
  EXPECT_LT(peak, 100 * kMiB);
}

// --- files that are left behind --------------------------------------------------------------------------------------------------------

Model some_model() { return Model(Network::sequential({Input({64}), Dense(256), Dense(256), Dense(10)})); }

TEST(Extremes, SavingThroughALinkKeepsIt) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "versions");
  fs::create_symlink("versions/1.keras", folder / "m.keras");
  const Model model = some_model();
  model.save(folder / "m.keras");
  EXPECT_TRUE(fs::is_symlink(folder / "m.keras"));
  EXPECT_TRUE(fs::is_regular_file(folder / "versions/1.keras"));
  EXPECT_NO_THROW(Model::load(folder / "m.keras"));
}

// Run by the next test as a process of its own.
TEST(Extremes, DISABLED_SavesForEver) {
  const char* path = std::getenv("TEST_FILE");
  ASSERT_NE(path, nullptr);
  for (const Model model = some_model();;) model.save(path);
}

TEST(Extremes, AProcessThatIsKilledWhileItSaves) {
  const TemporaryFolder folder;
  const fs::path path = folder / "m.keras";
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("TEST_FILE", path.c_str(), 1);
    ::execl("/proc/self/exe", "test_nn", "--gtest_filter=Extremes.DISABLED_SavesForEver", "--gtest_also_run_disabled_tests",
            "--gtest_brief=1", nullptr);
    ::_exit(127);
  }
  while (!fs::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // Stopped at some moment until that is in the middle of saving.
  int status = 0;
  do {
    ::kill(child, SIGCONT);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    ::kill(child, SIGSTOP);
    ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
    ASSERT_TRUE(WIFSTOPPED(status)) << "it ended by itself";
  } while (folder.file_count() == 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(Model::load(path));
  EXPECT_EQ(folder.file_count(), 2u) << "what it left behind";
  some_model().save(folder / "another.keras");
  EXPECT_EQ(folder.file_count(), 2u);
}

}  // namespace
}  // namespace tandem::nn
