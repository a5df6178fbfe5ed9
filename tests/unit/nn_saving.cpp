// Files that Keras 3.15 wrote (tools/keras/files.py) are loaded, used, saved again and trained on; then what is our own.
#include <cmath>

#include <tandem/ops.hpp>

#include "nn/saving/weights_tree.hpp"
#include "nn_saving_support.hpp"

namespace tandem::nn {
namespace {

void expect_close(const Tensor& ours, const Tensor& theirs, const std::string& what, float tolerance) {
  const std::vector<float> a = ours.to_vector<float>(), b = theirs.to_vector<float>();
  ASSERT_EQ(a.size(), b.size()) << what;
  float largest = 1e-6f;
  for (const float x : b) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * largest) << what << " at " << i;
}

void collect_tensors(const Config& argument, Config& into) {
  if (argument.is_array())
    for (const Config& a : argument) collect_tensors(a, into);
  else if (argument.is_object() && argument.at("class_name") == "__keras_tensor__")
    into.push_back(argument["config"]["keras_history"]);
  else if (!argument.is_null())
    into.push_back(argument);  // what an operation is given besides: numbers, constants, indices
}

// A config in one form, without what may differ: ids of objects, how it was built, the compiler, on which engine Keras made its
// optimizer, whether a call's tensors are named, a type's policy or its name, one axis or a list of one. tools/keras/files.py does the
// same.
Config comparable(const Config& config, const std::string& key = "") {
  if (config.is_array()) {
    if (key == "axis" && config.size() == 1) return config[0];
    Config list = Config::array();
    for (const Config& c : config) list.push_back(comparable(c));
    return list;
  }
  if (!config.is_object()) return config;
  if (config.contains("class_name") && config["class_name"] == "DTypePolicy") return config["config"]["name"];
  Config same = Config::object();
  if (config.contains("args") && config.contains("kwargs")) {
    collect_tensors(config["args"], same["tensors"]);
    for (const auto& [name, value] : config["kwargs"].items())
      if (value.is_structured())
        collect_tensors(value, same["tensors"]);
      else if (!value.is_null())
        same["flags"][name] = value;
    return same;
  }
  for (const auto& [name, value] : config.items()) {
    const bool left_out = name == "shared_object_id" || name == "build_config" || name == "jit_compile" ||
                          ((key == "optimizer" || key == "inner_optimizer") && (name == "module" || name == "registered_name")) ||
                          (name == "compile_config" && value.empty());
    if (!left_out) same[name] = comparable(value, name);
  }
  return same;
}

void expect_same(const Config& ours, const Config& theirs, const std::string& path) {
  if (ours.is_object() && theirs.is_object()) {
    std::set<std::string> keys;
    for (const Config* c : {&ours, &theirs})
      for (const auto& [key, value] : c->items()) keys.insert(key);
    for (const std::string& key : keys)
      if (ours.contains(key) && theirs.contains(key))
        expect_same(ours[key], theirs[key], path + "/" + key);
      else
        ADD_FAILURE() << path << "/" << key << " is only in " << (ours.contains(key) ? "ours" : "Keras's");
  } else if (ours.is_array() && theirs.is_array() && ours.size() == theirs.size()) {
    for (size_t i = 0; i < ours.size(); ++i) expect_same(ours[i], theirs[i], path + "/" + std::to_string(i));
  } else if (ours.is_number() && theirs.is_number()) {
    EXPECT_NEAR(ours.get<double>(), theirs.get<double>(), 1e-6 * std::abs(theirs.get<double>())) << path;
  } else {
    EXPECT_EQ(ours, theirs) << path;
  }
}

void expect_same_weights(const io::Hdf5Group& ours, const io::Hdf5Group& theirs, const std::string& path) {
  for (const auto& [name, tensor] : theirs.datasets) {
    const auto found = ours.datasets.find(name);
    ASSERT_NE(found, ours.datasets.end()) << path << "/" << name;
    const Tensor own = is_int(tensor.dtype()) ? found->second.cast(tensor.dtype()) : found->second;  // steps are counted in int32 or int64
    ASSERT_EQ(own.type_str(), tensor.type_str()) << path << "/" << name;
    EXPECT_EQ(std::memcmp(own.raw_data(), tensor.raw_data(), byte_size(tensor.shape(), tensor.dtype())), 0) << path << "/" << name;
  }
  EXPECT_EQ(ours.datasets.size(), theirs.datasets.size()) << path;
  for (const auto& [name, group] : theirs.groups)
    if (const io::Hdf5Group* found = ours.find(name))
      expect_same_weights(*found, group, path + "/" + name);
    else if (group.find("vars") && !group.find("vars")->datasets.empty())  // layers without weights may be ours alone or Keras's
      ADD_FAILURE() << path << "/" << name << " is only in Keras's";
}

class FromKeras : public testing::TestWithParam<const char*> {
 protected:
  std::string name_ = GetParam();
  std::filesystem::path file_ = stored(name_ + ".keras");
  io::Hdf5Group data_ = io::read_hdf5(io::read_file(stored(name_ + ".data.h5")), name_);
  TemporaryFolder folder_;
  // Relative to the largest value; tools/keras/files.py has the same.
  float tolerance_ = name_ == "mixed_bfloat16" ? 1e-2f : name_.starts_with("mixed") ? 2e-3f : 2e-4f;

  void expect_outputs(const Model& model) {
    const std::vector<Tensor> ours = model.predict_on_batch(tensors(data_, "x")), theirs = tensors(data_, "outputs");
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) expect_close(ours[i], theirs[i], "output " + std::to_string(i), tolerance_);
  }
};

TEST_P(FromKeras, GivesTheSameOutputs) { expect_outputs(Model::load(file_)); }

TEST_P(FromKeras, IsSavedAsItWas) {
  const Model model = Model::load(file_);
  const auto again = folder_ / "again.keras";
  model.save(again);
  expect_same(comparable(config_in(again)), comparable(config_in(file_)), "");
  expect_same_weights(read_keras_file(again).weights, read_keras_file(file_).weights, "");
  expect_outputs(Model::load(again));
}

TEST_P(FromKeras, TrainsOnFromTheSameState) {
  const Model model = Model::load(file_);
  const std::vector<float> theirs = tensors(data_, "losses").front().to_vector<float>();
  std::vector<float> ours;
  for (size_t i = 0; i < theirs.size(); ++i)
    ours.push_back(static_cast<float>(model.train_on_batch(tensors(data_, "x"), tensors(data_, "y"))["loss"]));
  expect_close(Tensor::from(ours), Tensor::from(theirs), "losses", tolerance_);
}

TEST_P(FromKeras, WeightsAlone) {
  const Model model = Model::load(file_, {.compile = false});
  const auto weights = folder_ / "a.weights.h5";
  model.save_weights(weights);
  for (const Variable& v : model.weights()) v.assign(Tensor::zeros(v.shape(), v.dtype()));
  model.load_weights(weights);
  expect_outputs(model);
  for (const Variable& v : model.weights()) v.assign(Tensor::zeros(v.shape(), v.dtype()));
  model.load_weights(file_);
  expect_outputs(model);
}

INSTANTIATE_TEST_SUITE_P(Files, FromKeras,
                         testing::Values("mlp", "images", "lines_and_volumes", "recurrent", "reset_before", "transformer",
                                         "cross_attention", "graph", "arithmetic", "operations", "shapes_and_activations", "augmented",
                                         "precisions", "mixed", "mixed_bfloat16", "mixed_layers", "sgd", "rmsprop_centered", "adagrad",
                                         "lion", "adafactor", "averaged"),
                         [](const auto& each) { return std::string(each.param); });

TEST(FromKeras, EveryStoredFileIsTested) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(stored(""))) count += entry.path().extension() == ".keras";
  EXPECT_EQ(count, 22u);
}

// --- our own --------------------------------------------------------------------------------------------------------------------------

Model small(const std::string& name = "small") { return Sequential({Input({3}), Dense(4), Dense(2)}, name); }

TEST(Saving, WeightsThatDoNotFitAreAllListedAndNoneIsTaken) {
  const TemporaryFolder folder;
  const auto file = folder / "a.weights.h5";
  Sequential({Input({3}), Dense(5), Dense(2), Dense(7)}).save_weights(file);
  const Model model = small();
  const std::vector<float> before = model.weights()[0].value().to_vector<float>();
  const std::string first = model.layers()[0].name(), second = model.layers()[1].name();
  EXPECT_EQ(without_name(error_of([&] { model.load_weights(file); }), file),
            "the weights do not fit Sequential 'small'"
            "\n  layers/dense/vars/0 (" +
                first + "/kernel of Dense '" + first +
                "'): [3,4] in the model, [3,5] in the file"
                "\n  layers/dense/vars/1 (" +
                first + "/bias of Dense '" + first +
                "'): [4] in the model, [5] in the file"
                "\n  layers/dense_1/vars/0 (" +
                second + "/kernel of Dense '" + second +
                "'): [4,2] in the model, [5,2] in the file"
                "\n  layers/dense_2/vars: no such layer in the model, 2 weights in the file");
  EXPECT_EQ(model.weights()[0].value().to_vector<float>(), before);
}

TEST(Saving, ALayerThatIsMissingInTheFile) {
  const TemporaryFolder folder;
  const auto file = folder / "a.weights.h5";
  Sequential({Input({3}), Dense(4)}).save_weights(file);
  const Model model = small();
  const std::string name = model.layers()[1].name();
  EXPECT_EQ(without_name(error_of([&] { model.load_weights(file); }), file),
            "the weights do not fit Sequential 'small'"
            "\n  layers/dense_1/vars (Dense '" +
                name + "'): 2 weights in the model, 0 in the file; layers has dense");
}

TEST(Saving, NamesOfFiles) {
  const Model model = small();
  EXPECT_EQ(error_of([&] { model.save("model.h5"); }), "save: the name of a model's file ends in .keras, got model.h5");
  EXPECT_EQ(error_of([&] { model.save_weights("model.h5"); }),
            "save_weights: the name of a file of weights ends in .weights.h5, got model.h5");
  EXPECT_EQ(error_of([&] { model.load_weights("model.h5"); }), "load_weights: the name ends in .weights.h5 or .keras, got model.h5");
  EXPECT_EQ(error_of([&] { Model::load("model.h5"); }), "load: the name of a model's file ends in .keras, got model.h5");
  EXPECT_EQ(error_of([&] { Model::load("none.keras"); }), "cannot open none.keras: No such file or directory");
}

TEST(Saving, AModelWithoutWeightsYet) {
  const Model model = Sequential({Dense(4)}, "later");
  const std::string hint =
      ": model 'later' has no weights yet, since the shape of its input is not known"
      "\n  hint: begin it with Input({…}), or call it once";
  EXPECT_EQ(error_of([&] { model.save("x.keras"); }), "save" + hint);
  EXPECT_EQ(error_of([&] { model.save_weights("x.weights.h5"); }), "save_weights" + hint);
  EXPECT_EQ(error_of([&] { model.load_weights("x.weights.h5"); }), "load_weights" + hint);
}

TEST(Saving, ASaveThatFailsLeavesTheOldFile) {
  const TemporaryFolder folder;
  const auto file = folder / "a.keras";
  small().save(file);
  const io::Bytes before = io::read_file(file);
  const std::string message = error_of([&] { small("\xff").save(file); });  // a name that JSON cannot hold
  EXPECT_TRUE(message.starts_with("cannot write " + file.string() + ": the config cannot be JSON: ")) << message;
  EXPECT_EQ(io::read_file(file), before);
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(Saving, TheSameModelGivesTheSameWeightsFile) {
  const TemporaryFolder folder;
  const Model model = small();
  model.save_weights(folder / "a.weights.h5");
  model.save_weights(folder / "b.weights.h5");
  EXPECT_EQ(io::read_file(folder / "a.weights.h5"), io::read_file(folder / "b.weights.h5"));
}

TEST(Saving, AnOptimizerThatIsOtherKeepsItsOwnState) {
  const TemporaryFolder folder;
  const auto file = folder / "a.keras";
  const Tensor x = Tensor::ones({2, 3}), y = Tensor::ones({2, 2});
  const Model trained = small();
  trained.compile({.optimizer = "adam", .loss = {"mse"}});
  trained.train_on_batch({x}, {y});
  trained.save(file);
  const Model same = small(), other = small();
  same.compile({.optimizer = "adam", .loss = {"mse"}});
  same.train_on_batch({x}, {y});
  same.train_on_batch({x}, {y});
  other.compile({.optimizer = "sgd", .loss = {"mse"}});
  same.load_weights(file);
  other.load_weights(file);
  EXPECT_EQ(same.optimizer().iterations().value().item<int64_t>(), 1);
  EXPECT_EQ(other.optimizer().iterations().value().item<int64_t>(), 0);
  EXPECT_EQ(other.weights()[0].value().to_vector<float>(), trained.weights()[0].value().to_vector<float>());
  EXPECT_FALSE(Model::load(file, {.compile = false}).compiled());
}

TEST(Saving, CompiledButNeverTrained) {
  const TemporaryFolder folder;
  const Model model = small();
  model.compile({.optimizer = Adam(0.25), .loss = {"mse"}});
  model.save(folder / "a.keras");
  const Model loaded = Model::load(folder / "a.keras");
  ASSERT_TRUE(loaded.compiled());
  EXPECT_FLOAT_EQ(static_cast<float>(loaded.optimizer().learning_rate()), 0.25f);
}

// An own kind of layer takes part once it is registered.
class Scaled : public LayerBody {
 public:
  explicit Scaled(double by) : by_(by) {}
  std::string class_name() const override { return "Scaled"; }
  Config config() const override { return {{"by", by_}}; }
  void build(const std::vector<Spec>& inputs) override {
    offset_ = add_weight("offset", {inputs[0].dims.back().value()}, {.initializer = "zeros"});
  }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return {inputs[0] * by_ + offset_.value()}; }

 private:
  double by_;
  Variable offset_;
};

std::string without_line(const std::string& text) {
  const size_t at = text.find("\n  at nn_saving.cpp:");
  return at == std::string::npos ? text : text.substr(0, at) + text.substr(std::min(text.size(), text.find('\n', at + 1)));
}

class Unregistered : public LayerBody {
 public:
  std::string class_name() const override { return "Unregistered"; }
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, const Pass&) override { return inputs; }
};

TEST(Saving, OwnLayers) {
  const TemporaryFolder folder;
  const auto file = folder / "a.keras";
  const Model model = Sequential({Input({3}), make<Scaled>(2.0)});
  model.weights()[0].assign(Tensor::of({1.f, 2.f, 3.f}));
  model.save(file);
  const std::string message = error_of([&] { Model::load(file); });
  EXPECT_TRUE(without_name(message, file).starts_with("config.json: unknown layer 'Scaled'")) << message;
  EXPECT_NE(message.find("register_layer"), std::string::npos) << message;
  register_layer("Scaled", [](const Config& c) { return make<Scaled>(c.at("by").get<double>()); });
  const Tensor x = Tensor::ones({1, 3});
  EXPECT_EQ(Model::load(file).predict(x).to_vector<float>(), (std::vector<float>{3, 4, 5}));

  // As Keras writes its users' classes: never as one of its own, which it would refuse to load.
  const auto written = [](const Layer& layer) {
    const Config c = serialize(layer);
    return c["module"].dump() + " " + c["registered_name"].dump();
  };
  EXPECT_EQ(written(make<Scaled>(2.0)), R"(null "Custom>Scaled")");
  EXPECT_EQ(written(Dense(3)), R"("keras.layers" null)");
  EXPECT_EQ(written(make<Unregistered>()), R"(null "Unregistered")");
  register_layer("own>Scaled", [](const Config& c) { return make<Scaled>(10 * c.at("by").get<double>()); });
  EXPECT_EQ(written(make<Scaled>(2.0)), R"(null "own>Scaled")");
  model.save(file);
  EXPECT_EQ(Model::load(file).layers().back().body().config()["by"], 20.0);  // the package's, not the plain one
}

// --- losses, metrics and schedules of one's own ------------------------------------------------------------------------------------------

Tensor cubed(const Tensor& y, const Tensor& p) { return mean(power(absolute(y - p), 3), -1); }
Loss cubic() { return {"cubic", cubed}; }
Loss powered(double by) {
  return {"Powered", Config{{"by", by}}, [by](const Tensor& y, const Tensor& p) { return mean(power(absolute(y - p), by), -1); }};
}
Schedule warmed(double peak) {
  return {"Warmed", Config{{"peak", peak}}, [peak](const Tensor& step) { return peak * minimum((step + 1) / 4, 1); }};
}
class Largest : public MetricBody {
 public:
  std::string class_name() const override { return "Largest"; }
  void update(const Tensor&, const Tensor& p, const Tensor&) override { largest_.assign(maximum(largest_, max(p))); }
  Tensor result() const override { return largest_.value(); }

 private:
  const Variable largest_ = add_variable("largest", {});
};

// Registered they are in files, as Keras writes those of its users, and train on from there with the same numbers.
TEST(Saving, OwnLossesMetricsAndSchedules) {
  const TemporaryFolder folder;
  const auto file = folder / "a.keras";
  const Tensor x = Tensor::ones({4, 3}), y = Tensor::zeros({4, 2});
  for (const Loss& loss : {cubic(), powered(2.5)}) {
    const Model model = small();
    model.compile(
        {.optimizer = SGD(warmed(0.1)), .loss = {loss}, .metrics = {Metric("cubed", cubed), Metric(std::make_shared<Largest>())}});
    model.train_on_batch({x}, {y});
    if (loss.name() == "cubic") {
      // Before the first step, and it says what to do.
      const auto fit = [&](const Callback& c) { model.fit(x, y, {.callbacks = {c}, .verbose = 0}); };
      const auto steps = [&] { return model.optimizer().iterations().value().item<int64_t>(); };
      const auto hint = [](const std::string& what) { return "\n  hint: register_" + what + "\", …) says how it is made again"; };
      const auto kept = [&] { fit(ModelCheckpoint(file.string())); };
      EXPECT_EQ(without_line(error_of(kept)),
                "loss cubic: is a formula of the program's own, which a file cannot keep" + hint("loss(\"cubic"));
      register_loss("cubic", [](const Config&) { return cubic(); });
      EXPECT_EQ(without_line(error_of(kept)),
                "learning-rate schedule Warmed: is of the program's own, which a file cannot keep" + hint("schedule(\"Warmed"));
      register_schedule("Warmed", [](const Config& c) { return warmed(c.at("peak")); });
      EXPECT_EQ(without_line(error_of(kept)),
                "metric cubed: is a formula of the program's own, which a file cannot keep" + hint("metric(\"cubed"));
      EXPECT_EQ(steps(), 1);
      EXPECT_FALSE(std::filesystem::exists(file));
      fit(ModelCheckpoint((folder / "a.weights.h5").string(), {.save_weights_only = true}));  // these need no config
      fit(BackupAndRestore(folder / "backup"));
      EXPECT_EQ(steps(), 3);
      register_metric("cubed", [](const Config&) { return Metric("cubed", cubed); });
      register_loss("own>Powered", [](const Config& c) { return powered(c.at("by")); });
    }
    model.save(file);
    if (loss.name() == "cubic") {
      EXPECT_NE(error_of([&] { Model::load(file); }).find("unknown metric 'Largest'"), std::string::npos);
      register_metric("Largest", [](const Config&) { return Metric(std::make_shared<Largest>()); });
      model.save(file);
    }
    const Config saved = config_in(file)["compile_config"];
    if (loss.name() == "cubic")
      EXPECT_EQ(saved["loss"].dump(),
                R"({"module":"builtins","class_name":"function","config":"Custom>cubic","registered_name":"function"})");
    else
      EXPECT_EQ(saved["loss"].dump(),
                R"({"module":null,"class_name":"Powered","config":{"name":"powered","reduction":"sum_over_batch_size","by":2.5},)"
                R"("registered_name":"own>Powered"})");
    EXPECT_EQ(saved["optimizer"]["config"]["learning_rate"].dump(),
              R"({"module":null,"class_name":"Warmed","config":{"peak":0.1},"registered_name":"Custom>Warmed"})");
    EXPECT_EQ(saved["metrics"][1]["registered_name"], "Custom>Largest");
    const Model loaded = Model::load(file);
    EXPECT_EQ(loaded.train_on_batch({x}, {y}), model.train_on_batch({x}, {y}));
    EXPECT_EQ(loaded.weights()[0].value().to_vector<float>(), model.weights()[0].value().to_vector<float>());
  }
  // A class with a package is not one of Keras's that has the same name.
  const Config other{{"module", nullptr}, {"class_name", "Huber"}, {"config", Config::object()}, {"registered_name", "theirs>Huber"}};
  EXPECT_EQ(error_of([&] { Loss::deserialize(other); }).substr(0, 27), "unknown loss 'theirs>Huber'");
  EXPECT_NE(error_of([&] { Loss::deserialize(other); }).find("an own one is made known by register_loss"), std::string::npos);
  EXPECT_EQ(Loss("cubic").name(), "cubic");  // by name, like the others
  // Each output has a metric of its own.
  const Symbol input = Input({3});
  const Model two({input}, {Dense(2, {.name = "a"})(input), Dense(2, {.name = "b"})(input)});
  two.compile({.loss = {"mse"}, .metrics = {Metric("plain", cubed), Metric(std::make_shared<Largest>())}});
  EXPECT_EQ(two.test_on_batch({x}, {y, y}).names(), "loss, a_plain, a_largest, b_plain, b_largest, a_loss, b_loss");
}

}  // namespace
}  // namespace tandem::nn
