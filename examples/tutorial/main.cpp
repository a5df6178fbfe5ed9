#include <tandem/nn/layers.hpp>
#include <tandem/nn/model.hpp>
#include <tandem/tandem.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

namespace td = tandem;
namespace nn = tandem::nn;

// What the text says is checked: the program ends with 1 when it is not so.
void check(bool holds, const char* what) {
  std::printf("%s %s\n", holds ? "yes:" : "NO: ", what);
  if (!holds) std::exit(1);
}

void tensors() {
  const td::Tensor x = td::Tensor::of({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});  // float32[2,3]
  const td::Tensor row = x[0], last = x(td::Slice(), -1);                   // as in NumPy
  const td::Tensor y = (x * 2 + row).sum(1);                                // broadcasting; the number takes the tensor's type
  check(y.to_vector<float>() == std::vector<float>{18, 36}, "y is [18, 36]");
  check(last.to_vector<float>() == std::vector<float>{3, 6}, "the last column is [3, 6]");
  check(td::mean(x).item<float>() == 3.5f, "ops are functions, the most used ones members too");
}

void gradients() {
  td::Variable w(td::Tensor::of({1.f, 2.f}));
  const td::Tensor x = td::Tensor::of({3.f, 4.f});
  td::Tape tape;  // records from here on
  tape.watch(x);  // variables are watched without being told
  const td::Tensor loss = td::sum(td::square(w * x));
  const std::vector<td::Tensor> g = tape.gradients(loss, {w, x});
  check(g[0].to_vector<float>() == std::vector<float>{18, 64}, "d loss / d w = 2 w x^2");
  check(g[1].to_vector<float>() == std::vector<float>{6, 32}, "d loss / d x = 2 w^2 x");
}

void functions() {
  int calls = 0;
  double factor = 2;
  td::Variable bias(1.f);
  const td::Function scaled([&](td::Tensor x) {
    ++calls;  // C++ code runs while the function is traced, and only then
    return x * factor + bias;
  });
  const td::Tensor x = td::Tensor::of({1.f, 2.f});
  check(scaled(x).to_vector<float>() == std::vector<float>{3, 5}, "the first call traces and compiles");
  factor = 10;       // a C++ number: it was frozen
  bias.assign(2.f);  // a variable: it is read at each call
  check(scaled(x).to_vector<float>() == std::vector<float>{4, 6}, "numbers are frozen, variables are not");
  check(calls == 1, "the second call traced nothing");
  scaled(td::Tensor::of({1.f, 2.f, 3.f}));
  check(calls == 2, "another shape is another trace");

  // With a symbol in the spec one trace serves every extent.
  const td::Function any([&](td::Tensor t) { return td::mean(t); }, {td::Spec{td::DType::F32, {td::Dim::symbol("n")}}});
  any(x);
  any(td::Tensor::ones({100}));
  check(any.trace_count() == 1, "one trace for every length");
}

void control_flow() {
  // An `if` of C++ asks while tracing, so it cannot ask for a tensor's numbers; cond becomes a branch of the graph.
  const td::Function halved_if_large([](td::Tensor x) { return td::cond(td::max(x) > 1, [&] { return x / 2; }, [&] { return x; }); });
  check(halved_if_large(td::Tensor::of({4.f})).item<float>() == 2, "4 is halved");
  check(halved_if_large(td::Tensor::of({1.f})).item<float>() == 1, "1 is not, by the same compiled function");

  const td::Function steps_to_one([](td::Tensor n) {
    const auto [last, count] =
        td::while_loop([](td::Tensor x, td::Tensor) { return x > 1; }, [](td::Tensor x, td::Tensor k) { return std::tuple(x / 2, k + 1); },
                       std::tuple(n, td::Tensor::scalar(0)));
    return count;
  });
  check(steps_to_one(td::Tensor::scalar(1000.f)).item<int>() == 10, "a loop of the graph runs as often as the numbers say");

  const auto [total, sums] = td::scan([](td::Tensor carry, td::Tensor x) { return std::pair(carry + x, carry + x); },
                                      td::Tensor::scalar(0.f), td::Tensor::of({1.f, 2.f, 3.f}));
  check(sums.to_vector<float>() == std::vector<float>{1, 3, 6}, "scan walks along the first axis");
}

void threads() {
  td::Variable count(0.f);
  const td::Function add([&](td::Tensor x) { count.assign_add(x); });
  const td::Tensor one = td::Tensor::scalar(1.f);
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i)
    workers.emplace_back([&] {
      for (int k = 0; k < 100; ++k) add(one);
    });
  for (std::thread& t : workers) t.join();
  check(count.value().item<float>() == 400, "no update of a compiled function is lost");
}

// y = x + dense(x), with a penalty on how large dense(x) is.
class Residual : public nn::LayerBody {
 public:
  explicit Residual(int64_t units) : units_(units), dense_(units, {.activation = "tanh"}) {
    add_child("dense", dense_);  // trained and saved with this layer
  }
  std::string class_name() const override { return "Residual"; }
  nn::Config config() const override { return {{"units", units_}}; }  // what the constructor needs
  void build(const std::vector<td::Spec>&) override { gate_ = add_weight("gate", {}, {.initializer = "ones"}); }
  std::vector<td::Tensor> call(const std::vector<td::Tensor>& inputs, const nn::Pass& pass) override {
    const td::Tensor y = dense_(inputs[0], pass);
    add_loss(pass, 0.01 * td::mean(td::square(y)));  // joins the loss that fit minimises
    return {inputs[0] + gate_ * y};
  }

 private:
  int64_t units_;
  nn::Dense dense_;
  td::Variable gate_;
};

void own_layers() {
  // So that files may hold it.
  nn::register_layer("Residual", [](const nn::Config& c) { return nn::make<Residual>(c.at("units").get<int64_t>()); });
  const nn::Model model = nn::Sequential({nn::Input({4}), nn::make<Residual>(4), nn::Dense(1)});
  check(model.trainable_weights().size() == 5, "gate, kernel and bias of the child, kernel and bias of the last");
  model.compile({.optimizer = nn::Adam(0.01), .loss = {"mse"}});
  const td::Tensor x = td::Tensor::arange(0.f, 32.f).reshape({8, 4}) / 32, y = td::mean(x, 1, true);
  const nn::History history = model.fit(x, y, {.epochs = 20, .verbose = 0});
  check(history.values.at("loss").back() < history.values.at("loss").front(), "it learns");

  const std::filesystem::path file = std::filesystem::temp_directory_path() / "tandem_tutorial.keras";
  model.save(file);
  check(nn::Model::load(file).predict(x).to_vector<float>() == model.predict(x).to_vector<float>(), "and comes back from a file");
  std::filesystem::remove(file);
}

void graphs_of_layers() {
  const nn::Symbol a = nn::Input({6}), b = nn::Input({6});
  const nn::Symbol mixed = tanh(a + 2.0f * b)(td::Slice(), td::Slice(0, 3));        // ops on symbols are layers without weights
  const nn::Symbol joined = nn::ops::concatenate({mixed, nn::Dense(3)(a)}, 1);      // from a list of symbols: with its namespace
  const nn::Lambda centred([](td::Tensor x) { return x - td::mean(x, 1, true); });  // any callable on tensors
  const nn::Model model({a, b}, {mean(centred(joined), 1)});
  check(std::abs(model({td::Tensor::ones({2, 6}), td::Tensor::ones({2, 6})})[0].to_vector<float>()[0]) < 1e-6f,
        "the mean of what is centred is 0");
}

int main() {
  tensors();
  gradients();
  functions();
  control_flow();
  threads();
  own_layers();
  graphs_of_layers();
  std::printf("the tutorial holds\n");
}
