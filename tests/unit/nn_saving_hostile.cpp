// Files that are damaged or mean harm: a clear error each, nothing else.
#include "nn_saving_support.hpp"

namespace tandem::nn {
namespace {

class Hostile : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.keras";
  const KerasFile good_ = read_keras_file(stored("mlp.keras"));

  std::string load(std::string_view config, const io::Hdf5Group& weights) {
    write_parts(path_, config, weights);
    const std::string message = error_of([&] { Model::load(path_); });
    EXPECT_EQ(folder_.file_count(), 1u);
    return message == "no error" ? message : without_name(message, path_);
  }
  std::string with_config(std::string_view config) { return load(config, good_.weights); }
  // Changes the place that a JSON pointer names.
  std::string with(const std::string& pointer, const Config& value) {
    Config config = good_.config;
    config[Config::json_pointer(pointer)] = value;
    return with_config(config.dump());
  }
  std::string without(const std::string& pointer, const std::string& key) {
    Config config = good_.config;
    config[Config::json_pointer(pointer)].erase(key);
    return with_config(config.dump());
  }
  template <class Change> std::string with_weights(Change change) {
    io::Hdf5Group weights = good_.weights;
    change(weights);
    return load(good_.config.dump(), weights);
  }
  static void expect_part(const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
};

TEST_F(Hostile, TheGoodOneLoads) { EXPECT_EQ(load(good_.config.dump(), good_.weights), "no error"); }

TEST_F(Hostile, TruncatedAnywhere) {
  const io::Bytes whole = io::read_file(stored("mlp.keras"));
  for (size_t size = 0; size < whole.size(); size += 997) {
    write_file(path_, io::ByteView(whole).first(size));
    EXPECT_EQ(without_name(error_of([&] { Model::load(path_); }), path_),
              "not a zip archive, or truncated: no end record in " + std::to_string(size) + " bytes");
  }
}

TEST_F(Hostile, PartsThatAreMissing) {
  const auto write = [&](std::initializer_list<const char*> names) {
    std::filesystem::remove(path_);
    AtomicFile file(path_);
    io::ZipWriter zip(file);
    for (const char* name : names) zip.add(name, "{}");
    zip.finish();
    file.commit();
    return without_name(error_of([&] { Model::load(path_); }), path_);
  };
  EXPECT_EQ(write({}), "not a model: there is no config.json in it");
  EXPECT_EQ(write({"config.json"}), "there is no model.weights.h5 in it");
  EXPECT_EQ(write({"config.json", "model.weights.npz"}), "there is no model.weights.h5 in it; model.weights.npz cannot be read");
  EXPECT_EQ(write({"config.json", "model.weights.h5"}), "model.weights.h5: not an HDF5 file: its 2 bytes do not begin with the signature");
  EXPECT_EQ(write({"../config.json", "model.weights.h5"}), "entry '../config.json' has a path that leads out of the archive");
  EXPECT_EQ(write({"config.json", "config.json"}), "entry 'config.json' is there twice");
}

TEST_F(Hostile, ConfigsOfTheWrongForm) {
  EXPECT_TRUE(with_config("{").starts_with("config.json: not JSON: ")) << with_config("{");
  EXPECT_TRUE(with_config("").starts_with("config.json: not JSON: "));
  EXPECT_TRUE(with_config("{\"a\": \"\xff\"}").starts_with("config.json: not JSON: "));
  EXPECT_EQ(with_config(std::string(100000, '[')), "config.json: nested more than 400 deep");
  for (const char* text :
       {"[]", "1", "null", "\"Sequential\"", "{}", "{\"class_name\": 1, \"config\": {}}", "{\"class_name\": \"Sequential\"}"})
    expect_part(with_config(text), "config.json: a layer's config needs a class_name and a config");
  EXPECT_EQ(with_config(R"({"class_name": "Dense", "config": {"units": 3}})"), "config.json: it is a Dense, not a model");
  for (const char* value : {"[]", "1", "null", "\"a\""}) {
    expect_part(with("/config", Config::parse(value)), "config.json: ");
    expect_part(with("/config/layers", value[0] == '[' ? Config(7) : Config::parse(value)), "config.json: ");
  }
  expect_part(without("/config", "layers"), "config.json: Sequential: the config has no 'layers'");
}

TEST_F(Hostile, LayersThatCannotBe) {
  const std::string message = with("/config/layers/1/class_name", "Dens");
  expect_part(message, "config.json: unknown layer 'Dens'");
  expect_part(message, "Dense");
  expect_part(message, "register_layer");
  const std::string units = "/config/layers/1/config/units";
  for (const Config& value :
       {Config("many"), Config(), Config(1.5), Config(-1), Config(0), Config(true), Config::array(), Config::object()})
    EXPECT_NE(with(units, value), "no error") << value;
  expect_part(with(units, int64_t{1} << 40), "more than the file's");
  EXPECT_NE(with(units, std::numeric_limits<int64_t>::max()), "no error");
  EXPECT_NE(with(units, std::numeric_limits<uint64_t>::max()), "no error");
  EXPECT_NE(with("/config/layers/1/config/activation", "no_such"), "no error");
  EXPECT_NE(with("/config/layers/1/config/activation", 5), "no error");
  EXPECT_NE(with("/config/layers/1/config/dtype", "float99"), "no error");
  EXPECT_NE(with("/config/layers/1/config/kernel_regularizer", 3), "no error");
  EXPECT_NE(with("/config/layers/0/config/batch_shape", "wide"), "no error");
  EXPECT_NE(with("/config/layers/0/config/batch_shape", Config::array({nullptr, -3})), "no error");
  EXPECT_NE(with("/config/layers/0/config/batch_shape", Config::array({nullptr, int64_t{1} << 60})), "no error");
}

TEST_F(Hostile, WeightsThatDoNotFit) {
  expect_part(with_weights([](auto& w) { w.at("layers").groups.erase("dense"); }),
              "layers/dense/vars (Dense 'dense'): 2 weights in the model, 0 in the file; layers has batch_normalization");
  expect_part(with_weights([](auto& w) { w.at("layers/dense/vars").datasets["0"] = Tensor::zeros({8, 7}); }),
              "layers/dense/vars/0 (dense/kernel of Dense 'dense'): [8,6] in the model, [8,7] in the file");
  expect_part(with_weights([](auto& w) { w.at("layers/dense/vars").datasets.erase("1"); }),
              "layers/dense/vars (Dense 'dense'): 2 weights in the model, 1 in the file");
  expect_part(with_weights([](auto& w) {
                w.at("layers/dense/vars").datasets["x"] = w.at("layers/dense/vars").datasets["1"];
                w.at("layers/dense/vars").datasets.erase("1");
              }),
              "layers/dense/vars/1 (Dense 'dense'): dense/bias is not in the file");
  expect_part(with_weights([](auto& w) { w.at("layers/other/vars").datasets["0"] = Tensor::zeros({2}); }),
              "layers/other/vars: no such layer in the model, 1 weights in the file");
  expect_part(with_weights([](auto& w) { w.at("optimizer/vars").datasets["3"] = Tensor::zeros({2, 2, 2}); }),
              "the weights do not fit the optimizer\n  optimizer/vars/3 (");
  expect_part(with_weights([](auto& w) { w.at("optimizer/vars").datasets.erase("3"); }), "the weights do not fit the optimizer");
  expect_part(load(good_.config.dump(), {}), "layers/dense/vars (Dense 'dense'): 2 weights in the model, 0 in the file");
  // Other versions keep the state of random numbers in the file.
  EXPECT_EQ(with_weights([](auto& w) { w.at("layers/dropout/seed_generator/vars").datasets["0"] = Tensor::zeros({2}, DType::U32); }),
            "no error");
}

TEST_F(Hostile, CompileConfigsThatCannotBe) {
  const std::string hint = "\n  hint: load with {.compile = false} leaves it out";
  const auto expect_refused = [&](const std::string& key, const Config& value) {
    const std::string message = with("/compile_config/" + key, value);
    EXPECT_TRUE(message.starts_with("compile_config: ") && message.ends_with(hint)) << key << " " << value << ": " << message;
    EXPECT_NO_THROW(Model::load(path_, {.compile = false}));
  };
  for (const Config& value :
       {Config("no_such"), Config(3), Config::object(), Config::array(), Config{{"class_name", "NoSuch"}, {"config", {}}},
        Config{{"class_name", "Adam"}, {"config", 3}}, Config{{"class_name", "Adam"}, {"config", {{"beta_1", "x"}}}}})
    expect_refused("optimizer", value);
  for (const Config& value : {Config("no_such"), Config(3), Config::array({"mse", "mse"}), Config{{"elsewhere", "mse"}}})
    expect_refused("loss", value);
  for (const Config& value : {Config::array({"no_such"}), Config(3), Config{{"elsewhere", "mae"}}}) expect_refused("metrics", value);
  for (const Config& value : {Config("x"), Config::array({1, 2}), Config{{"elsewhere", 1}}}) expect_refused("loss_weights", value);
  EXPECT_EQ(with("/compile_config", nullptr), "no error");
  EXPECT_EQ(with("/compile_config", 3), "compile_config: compile_config is number, expected an object" + hint);
}

TEST_F(Hostile, GraphsThatCannotBe) {
  const KerasFile graph = read_keras_file(stored("graph.keras"));
  const auto change = [&](auto edit) {
    Config config = graph.config;
    edit(config["config"]);
    return load(config.dump(), graph.weights);
  };
  const auto layer = [](Config& config, const std::string& name) -> Config& {
    for (Config& l : config["layers"])
      if (l["name"] == name) return l;
    throw std::logic_error(name);
  };
  EXPECT_EQ(change([](Config&) {}), "no error");
  const auto history = [&](const Config& value) {
    return change([&](Config& c) { layer(c, "shared")["inbound_nodes"][0]["args"][0]["config"]["keras_history"] = value; });
  };
  expect_part(history({"shared", 2, 0}), "depend on each other");  // needs its own later result
  expect_part(history({"first", 0, 0}), "depend on each other");
  expect_part(history({"nobody", 0, 0}), "nobody");
  EXPECT_NE(history({"a", 0, 7}), "no error");
  EXPECT_NE(history({"a", 7, 0}), "no error");
  EXPECT_NE(history({"a", -1, 0}), "no error");
  EXPECT_NE(history({"a", 0}), "no error");
  EXPECT_NE(history("a"), "no error");
  EXPECT_NE(history(Config()), "no error");
  expect_part(change([&](Config& c) { layer(c, "shared")["config"]["name"] = "a"; }), "config.json: ");
  EXPECT_NE(change([](Config& c) { c["output_layers"] = "first"; }), "no error");
  EXPECT_NE(change([](Config& c) { c["output_layers"] = Config::array(); }), "no error");
  EXPECT_NE(change([](Config& c) { c["input_layers"] = Config::array({Config::array({"shared", 0, 0})}); }), "no error");
  EXPECT_NE(change([](Config& c) { c.erase("input_layers"); }), "no error");
  EXPECT_NE(change([&](Config& c) { layer(c, "shared").erase("inbound_nodes"); }), "no error");
  EXPECT_NE(change([&](Config& c) { layer(c, "shared")["inbound_nodes"] = 3; }), "no error");
  EXPECT_NE(change([&](Config& c) { layer(c, "shared")["inbound_nodes"][0] = Config::array(); }), "no error");
  EXPECT_NE(change([&](Config& c) { layer(c, "shared")["inbound_nodes"][0]["kwargs"] = {{"unknown", 3}}; }), "no error");
}

// One value after the other, and then some, becomes something else. Whatever comes of it, it is a model or one of our errors.
TEST_F(Hostile, DamagedConfigs) {
  std::mt19937_64 random(7);
  const Config flat = good_.config.flatten();
  std::vector<std::string> places;
  for (const auto& [place, value] : flat.items()) places.push_back(place);
  const std::vector<Config> values = {
      nullptr, true, -1, 0, 1e300, int64_t{1} << 62, "", "relu", Config::array(), Config::object(), Config::array({1, "x", nullptr})};
  for (size_t i = 0; i < 600; ++i) {
    Config config = good_.config;
    config[Config::json_pointer(places[i < places.size() ? i : random() % places.size()])] = values[random() % values.size()];
    load(config.dump(), good_.weights);
  }
  const std::string text = good_.config.dump();
  for (uint64_t seed = 0; seed < 600; ++seed) load(io::text_of(damaged(io::bytes_of(text), seed)), good_.weights);
}

TEST_F(Hostile, DamagedArchives) {
  const io::Bytes whole = io::read_file(stored("sgd.keras"));
  for (uint64_t seed = 0; seed < 600; ++seed) {
    write_file(path_, damaged(whole, seed));
    error_of([&] { Model::load(path_); });
  }
  EXPECT_EQ(folder_.file_count(), 1u);
}

}  // namespace
}  // namespace tandem::nn
