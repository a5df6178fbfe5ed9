// Trains one piece of work of the benchmark and prints a line of JSON: what a step costs, or the losses of the first steps.
#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "models/training.hpp"

namespace {

using namespace bench;

constexpr const char* kUsage =
    "usage: train WORK [--steps N] [--passes N]   time passes of N steps over the data\n"
    "                  --wait                     before each pass print 'ready' and wait for a line; there is one for each line\n"
    "       train WORK --losses N [--tiny]        print the losses of the first N steps, from the weights and data of formula.hpp\n"
    "       --precision NAME                      float32, mixed_float16 (with a loss scale) or mixed_bfloat16\n";

struct Arguments {
  std::string work;
  int64_t steps = 0, passes = 3, losses = 0;
  Scale scale = Scale::Full;
  bool wait = false;
  td::Precision precision = td::Precision::Float32;
};

int64_t positive(std::string_view option, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    throw td::UserError(std::string(option) + " needs a positive number, not '" + std::string(text) + "'");
  return value;
}

Arguments parse(const std::vector<std::string_view>& words) {
  Arguments a;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const auto number = [&] { return positive(word, i + 1 < words.size() ? words[++i] : ""); };
    if (word == "--steps")
      a.steps = number();
    else if (word == "--passes")
      a.passes = number();
    else if (word == "--losses")
      a.losses = number();
    else if (word == "--precision")
      a.precision = td::parse_precision(i + 1 < words.size() ? words[++i] : "");
    else if (word == "--tiny")
      a.scale = Scale::Tiny;
    else if (word == "--wait")
      a.wait = true;
    else if (a.work.empty() && !word.starts_with("-"))
      a.work = word;
    else
      throw td::UserError("train does not know '" + std::string(word) + "'\n" + kUsage);
  }
  if (a.work.empty()) throw td::UserError(std::string("train needs the name of a work\n") + kUsage);
  return a;
}

template <class F> double seconds(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Whether whoever started this wants another pass: so those of several programs take turns.
bool next_turn() {
  std::puts("ready");
  std::fflush(stdout);
  int c = std::getchar();
  while (c != '\n' && c != EOF) c = std::getchar();
  return c != EOF;
}

std::string list(const std::vector<double>& values) {
  std::string text;
  for (const double v : values) {
    char number[32];
    std::snprintf(number, sizeof number, "%s%.9g", text.empty() ? "" : ", ", v);
    text += number;
  }
  return "[" + text + "]";
}

void print_losses(const Arguments& a) {
  Weights weights(0);
  const Work work = make_work(a.work, a.scale, weights);
  weights.set_by_formula();
  const Examples examples(work, a.losses, Examples::Source::Formula);
  const Trainer trainer(work, weights, {.dropout = false, .precision = a.precision});
  std::vector<double> losses;
  for (int64_t i = 0; i < a.losses; ++i) losses.push_back(trainer.step(examples.x(i), examples.y(i)).item<double>());
  std::printf("{\"work\": \"%s\", \"engine\": \"tandem\", \"losses\": %s}\n", a.work.c_str(), list(losses).c_str());
}

void print_times(const Arguments& a) {
  Weights weights(0);
  const Work work = make_work(a.work, a.scale, weights);
  const int64_t steps = a.steps ? a.steps : work.steps;
  const Examples examples(work, steps, Examples::Source::Random);
  const Trainer trainer(work, weights, {.precision = a.precision});
  const auto step = [&](int64_t i) { return trainer.step(examples.x(i), examples.y(i)); };

  const double first = seconds([&] { step(0).item<float>(); });
  trainer.take_metrics();
  std::vector<double> passes;  // ms a step
  Trainer::Metrics metrics{};
  while (a.wait ? next_turn() : std::ssize(passes) < a.passes) {
    const double time = seconds([&] {
      for (int64_t i = 0; i < steps; ++i) step(i);
      metrics = trainer.take_metrics();
    });
    passes.push_back(time * 1e3 / static_cast<double>(steps));
  }
  std::printf(
      "{\"work\": \"%s\", \"engine\": \"tandem\", \"passes_ms\": %s, \"first_step_s\": %.6g, \"peak_mib\": %.1f, "
      "\"loss\": %.6g, \"accuracy\": %.4g, \"steps\": %lld, \"flops\": %.6g, \"weights\": %lld}\n",
      a.work.c_str(), list(passes).c_str(), first, peak_mib(), metrics.loss, metrics.accuracy, static_cast<long long>(steps),
      trainer.flops(), static_cast<long long>(weights.trainable_count()));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments = parse({argv + 1, argv + argc});
    if (arguments.losses)
      print_losses(arguments);
    else
      print_times(arguments);
    return 0;
  } catch (const td::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
