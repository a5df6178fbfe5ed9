// How many elements a second an input pipeline gives: `data WORK PARALLEL [FILE...]`, WORK one of map_batch, shuffle_batch, map_callback,
// tfrecord, jpeg; PARALLEL a number of threads, or -1 for autotuning. Prints one line of JSON. tools/bench/data_peers.py compares it with
// other engines.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tandem/data.hpp>
#include <tandem/data/images.hpp>
#include <tandem/tandem.hpp>
#include <vector>

namespace {

using namespace tandem;
using data::Dataset;
using data::Element;

constexpr int64_t kRows = 200000, kColumns = 100, kBatch = 128;

Tensor rows() {
  std::vector<float> numbers(static_cast<size_t>(kRows * kColumns));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 1000) * 1e-3f;
  return Tensor::from(numbers, {kRows, kColumns});
}

Tensor scaled(const Tensor& row) { return (row - 0.5) * 2.0; }

struct Work {
  Dataset dataset;
  int64_t per_element;  // rows, records or images in one
};

Work make(const std::string& name, int64_t parallel, const std::vector<std::string>& files) {
  if (name == "map_batch")
    return {Dataset::from_slices({rows()}).map(scaled, {.parallel_calls = parallel}).batch(kBatch).prefetch(), kBatch};
  if (name == "map_one_by_one")  // what vectorising brings
    return {Dataset::from_slices({rows()})
                .map(scaled, {.parallel_calls = parallel, .vectorize = data::Vectorize::Never})
                .batch(kBatch)
                .prefetch(),
            kBatch};
  if (name == "shuffle_batch")
    return {Dataset::from_slices({rows()}).shuffle(10000).batch(kBatch, data::BatchOptions{.parallel_calls = parallel}).prefetch(), kBatch};
  if (name == "tfrecord") return {Dataset::tfrecords(files).batch(kBatch).prefetch(), kBatch};
  if (name == "jpeg") {
    const auto decode = [](const Tensor& path) { return data::decode_jpeg(data::read_file(data::to_text(path)), 3); };
    return {Dataset::list_files(files.at(0)).repeat(8).map_callback(decode, {.parallel_calls = parallel}).batch(32).prefetch(), 32};
  }
  std::fprintf(stderr, "data: no work is called %s\n", name.c_str());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: data WORK PARALLEL [FILE...] [--explain]\n");
    return 2;
  }
  std::vector<std::string> files(argv + 3, argv + argc);
  const bool explains = !files.empty() && files.back() == "--explain";
  if (explains) files.pop_back();
  const Work work = make(argv[1], std::atoll(argv[2]), files);
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    data::Iterator it = work.dataset.iterate();
    int64_t count = 0;
    for (Element e; it.next(e);) count += e[0].shape()[0];
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, static_cast<double>(count) / seconds);
    if (explains && round == 2) std::fputs(it.explain().c_str(), stderr);
  }
  std::printf("{\"work\": \"%s\", \"parallel\": %s, \"per_second\": %.0f}\n", argv[1], argv[2], best);
} catch (const std::exception& e) {
  std::fprintf(stderr, "data: %s\n", e.what());
  return 1;
}
