// `tandem plan MODEL.keras`: whether training it fits into a card's memory, how fast it will be, and what more memory would buy.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include <tandem/nn/model.hpp>

#include "base/text.hpp"
#include "command.hpp"
#include "forecast/forecast.hpp"
#include "size_text.hpp"

namespace tandem::cli {
namespace {

std::optional<size_t> size_of(const Arguments& arguments, std::string_view name) {
  const std::optional<std::string> text = arguments.text(name);
  if (!text) return std::nullopt;
  const std::optional<size_t> bytes = parse_size(*text);
  if (!bytes) throw UsageError(cat("--", name, " is \"", *text, "\", not a size such as 4GiB or 512MiB"));
  return bytes;
}

// The card or device to plan for. Tensors of this process are on a device that keeps none: a model's weights and its optimizer's state take
// no memory here.
std::unique_ptr<device::Device> card_device(const std::string& card) {
  return device::make(card.empty() ? "null" : cat("null:", device::card(card).name));
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << text << std::flush)) resource_error("cannot write ", path);
}

Exit run(const Arguments& arguments) {
  arguments.allow({"batch", "gpu-memory", "card", "device", "optimizer", "loss", "length", "json", "html", "curve", "quick"});
  const std::optional<size_t> memory = size_of(arguments, "gpu-memory");
  const std::string card = arguments.text("card").value_or("");
  const std::optional<std::string> device_name = arguments.text("device");
  if (device_name && !card.empty()) throw UsageError("--card and --device cannot both be given");
  if (!memory && card.empty() && !device_name)
    throw UsageError("how much memory there is, is missing: --gpu-memory 4GiB, or --card \"RTX 3060\"");
  const std::optional<std::string> html = arguments.text("html");

  forecast::Question question;
  question.batch = arguments.number("batch", 1).value_or(question.batch);
  question.limit_bytes = memory.value_or(0);
  if (arguments.has("curve") || html) question.curve_points = 9;
  if (arguments.has("quick")) question.effort /= 16, question.curve_points = std::min(question.curve_points, 4);
  if (!card.empty()) question.card = device::card(card).name;
  if (isatty(STDERR_FILENO)) question.progress = [](const std::string& what) { std::fprintf(stderr, "\r\033[Kplanning %s", what.c_str()); };

  setenv("TANDEM_DEVICE", "null", 1);
  device::get("null").memory().set_limit(0);
  const nn::Model model = nn::Model::load(arguments.files()[0]);
  forecast::TrainingStep step = forecast::step_of(
      model, {.optimizer = arguments.text("optimizer"), .loss = arguments.text("loss"), .length = arguments.number("length", 1)});
  std::unique_ptr<device::Device> made;
  if (!device_name) made = card_device(card);
  device::Device& device = device_name ? device::get(*device_name) : *made;
  if (memory && made && card.empty()) step.notes.emplace_back("no card was named: times are those of a card with the rates above");
  forecast::Planner planner(std::move(step), device);
  const forecast::Forecast f = forecast::ask(planner, question);
  if (question.progress) std::fputs("\r\033[K", stderr);
  std::fputs((arguments.has("json") ? forecast::json_of(f) : forecast::text_of(f)).c_str(), stdout);
  if (html) write_file(*html, forecast::html_of(f));
  return f.planned ? Exit::Done : Exit::Failure;
}

}  // namespace

const PlanMode kPlanModel = {"", "whether training fits into a card's memory, how fast it is, and what more memory buys",
                             R"(usage: tandem plan MODEL.keras --batch N (--card NAME | --gpu-memory SIZE | --device NAME) [OPTIONS]

Plans one training step of a model for a card that need not be there, and prints whether it fits, how long a step takes by
the cost model, what the memory is for, the smallest limit that works, the largest batch, what more memory would buy, and
what is computed again or kept on the host, and why. Nothing is trained, and no memory is taken for weights.

  --batch N         examples in a step; 32 if not given
  --card NAME       a card of the catalogue, such as "RTX 3060"; tandem plan --cards lists them
  --gpu-memory SIZE the memory, such as 4GiB, instead of what the card has
  --device NAME     a device of this machine instead of a card
  --optimizer NAME  instead of the one that the model was compiled with: adam, sgd, …
  --loss NAME       likewise
  --length N        of axes that the model leaves open besides the batch, such as the length of a sequence
  --curve           more points of the curve of limits and times
  --json            the same as JSON, with every value in bytes and seconds
  --html FILE       also a page with the memory over the time of a step, the curve and the tables; it needs no network
  --quick           searches less: seconds instead of a minute, and plans that may be slower

  tandem plan model.keras --batch 64 --card "RTX 3060"
  tandem plan model.keras --batch 64 --gpu-memory 4GiB --html plan.html

Exit code: 0 when the step fits, 1 when it does not or something went wrong, 2 for a wrong command line.
)",
                             run};

namespace {

Exit list(const Arguments& arguments) {
  arguments.allow({"cards"});
  std::printf("  %-18s %8s %11s %13s %-13s %s\n", "card", "memory", "bandwidth", "float32", "link", "source");
  for (const device::Card& c : device::cards())
    std::printf("  %-18s %5g GB %6g GB/s %6g TFLOP/s %-13s %s\n", std::string(c.name).c_str(), c.memory_gib, c.gigabytes_per_second,
                c.teraflops, std::string(c.link).c_str(), std::string(c.source).c_str());
  return Exit::Done;
}

}  // namespace

const PlanMode kPlanCards = {"cards", "lists the cards that can be planned for",
                             R"(usage: tandem plan --cards

Lists the catalogue: memory, its bandwidth, the arithmetic rate in float32 and the link to the host, each as the maker gives it.
)",
                             list};

}  // namespace tandem::cli
