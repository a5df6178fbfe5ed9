// Saved positions of iterators. The first byte of an input says of which pipeline.
#include <cstring>

#include "data_formats.hpp"

namespace tandem::fuzz {
namespace {

using data::Dataset;
using data::Element;

Dataset slices() { return Dataset::from_slices({Tensor::arange(46.f).reshape({23, 2}), Tensor::arange(23)}); }
Dataset few(const Element& e) { return Dataset::range(e[0].item<int64_t>() % 3 + 1); }

const std::vector<Dataset>& pipelines() {
  static const std::vector<Dataset> all = {
      slices().shuffle(7, {.seed = 1}).batch(3),
      slices().shuffle(7, {.seed = 1}).repeat(3).skip(4).shard(2, 1).take(9).batch(2, {.parallel_calls = 1}),
      Dataset::range(40).batch(4, {.parallel_calls = 1}).prefetch(2),
      Dataset::range(40).window(4, {.shift = 2}).unbatch().enumerate(),
      Dataset::range(20).padded_batch(3).cache(),
      Dataset::range(9).interleave(few, {.cycle_length = 2, .parallel_calls = 1}).unique(),
      Dataset::range(20).repeat().shuffle(4, {.seed = 3}).skip(5).take(9),
      Dataset::zip({Dataset::range(9), Dataset::range(9).concatenate(Dataset::range(3))}).batch(2),
      Dataset::sample_from({Dataset::range(9), Dataset::range(5)}, {.seed = 1}),
      Dataset::range(9).flat_map(few),
  };
  return all;
}

// Most words of a state are numbers of 8 bytes; the description at its beginning has to stay for the rest to be read.
std::string mutate(const std::string& input, Random& random) {
  if (input.size() < 17 || random.one_in(8)) return mutated(input, random);
  std::string bytes = input;
  size_t start = 1;
  for (int text = 0; text < 2; ++text) {
    uint64_t length = 0;
    if (start + 8 <= bytes.size()) std::memcpy(&length, bytes.data() + start, 8);
    if (length > bytes.size() || start + 8 + length + 8 > bytes.size()) return mutated(input, random);
    start += 8 + length;
  }
  for (size_t i = 0, count = 1 + random.below(3); i < count; ++i) {
    if (random.one_in(4)) return bytes.substr(0, start) + mutated(bytes.substr(start), random);
    const uint64_t number = wild_number(random);
    std::memcpy(bytes.data() + start + random.below(bytes.size() - start - 7), &number, 8);
  }
  return bytes;
}

void run(const std::string& input, const std::filesystem::path&) {
  if (input.empty()) return;
  data::Iterator it = pipelines()[static_cast<uint8_t>(input[0]) % pipelines().size()].options(small_budget()).iterate();
  it.restore(std::string_view(input).substr(1));
  try {
    Element element;
    for (int i = 0; i < 60 && it.next(element); ++i) {
    }
  } catch (const InternalError& e) {  // errors are part of a state too: one that it has comes out again
    const std::string text = e.what();
    if (input.find(text.substr(text.rfind(": ") + 2)) == std::string::npos) throw;
  }
}

}  // namespace

Format state_format() {
  Format format{.name = "state", .mutate = mutate, .run = run};
  for (size_t i = 0; i < pipelines().size(); ++i) {
    data::Iterator it = pipelines()[i].options(small_budget()).iterate();
    Element element;
    for (int n = 0; n < 3; ++n) it.next(element);
    format.seeds.push_back(static_cast<char>(i) + it.save());
  }
  return format;
}

}  // namespace tandem::fuzz
