// Training on data that is large beside the model: from a file in a quarter of its size, and from arrays and a pipeline in little more
// memory than the data itself.
// An argument scales the size: 1 is 1,000,000 rows of 1000 numbers (4 GB), the default is 0.02.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "support.hpp"

namespace td = tandem;
namespace nn = tandem::nn;
using namespace examples;

namespace {

constexpr int64_t kColumns = 1000;

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

nn::Model yes_or_no() {
  const nn::Model model =
      nn::Sequential({nn::InputLayer(td::Dims{kColumns}), nn::Dense(128, {.activation = "relu"}), nn::Dense(1, {.activation = "sigmoid"})});
  model.compile({.optimizer = "adam", .loss = {"binary_crossentropy"}, .metrics = {"accuracy"}});
  return model;
}

void check_loss(const nn::History& history) {
  const double loss = history["loss"][0];
  expect(loss > 0.6 && loss < 0.8, "a loss near log 2: there is nothing to learn");
}

class Numbers {  // uniform in [0, 1), and labels
 public:
  float number() { return static_cast<float>(next()) * 0x1p-24f; }
  int32_t label() { return static_cast<int32_t>(next() & 1); }

 private:
  uint32_t next() { return static_cast<uint32_t>((state_ = state_ * 6364136223846793005u + 1442695040888963407u) >> 40); }
  uint64_t state_ = 1;
};

// A .npy file of float32[rows, 1001]: the label is the last column. It is written row by row, so it never is in memory.
class RowsFile {
 public:
  explicit RowsFile(int64_t rows) : path_(std::filesystem::temp_directory_path() / ("tandem_rows_" + std::to_string(rows) + ".npy")) {
    std::ofstream out(path_, std::ios::binary);
    std::string header =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " + std::to_string(kColumns + 1) + ")}";
    header.resize(117, ' ');
    out << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << '\n';
    Numbers random;
    std::vector<float> row(kColumns + 1);
    for (int64_t i = 0; i < rows; ++i) {
      for (float& x : row) x = random.number();
      row.back() = static_cast<float>(random.label());
      out.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size() * sizeof(float)));
    }
    expect(bool(out.flush()), "room for the file");
  }
  ~RowsFile() { std::filesystem::remove(path_); }
  RowsFile(const RowsFile&) = delete;
  RowsFile& operator=(const RowsFile&) = delete;
  std::string path() const { return path_.string(); }
  size_t bytes() const { return std::filesystem::file_size(path_); }

 private:
  const std::filesystem::path path_;
};

// Comes first, since a process's peak never falls.
void train_from_file(int64_t rows) {
  const RowsFile file(rows);
  const double before = peak_mib(), budget = static_cast<double>(file.bytes()) / 4;
  const td::data::Dataset batches =
      td::data::Dataset::npy(file.path())
          .map([](const td::Tensor& row) { return std::pair(row[td::Slice(0, kColumns)], row[td::Slice(kColumns, td::_)]); })
          .batch(32)
          .prefetch()
          .options({.ram_budget_bytes = static_cast<size_t>(budget)});
  check_loss(yes_or_no().fit(batches));
  std::printf("file %.0f MiB, budget %.0f MiB, peak %.0f MiB\n", static_cast<double>(file.bytes()) / (1 << 20), budget / (1 << 20),
              peak_mib());
  expect(peak_mib() - before < budget / (1 << 20) + 150, "a peak below the budget and what the engine itself needs");
}

void train_on(int64_t rows) {
  std::vector<float> numbers(static_cast<size_t>(rows * kColumns));
  std::vector<int32_t> labels(static_cast<size_t>(rows));
  Numbers random;
  for (float& x : numbers) x = random.number();
  for (int32_t& y : labels) y = random.label();
  // The arrays are read where they lie.
  const td::Tensor x = td::Tensor::view(numbers.data(), td::DType::F32, {rows, kColumns});
  const td::Tensor y = td::Tensor::view(labels.data(), td::DType::I32, {rows});

  check_loss(yes_or_no().fit(x, y, {.batch_size = 32}));
  check_loss(yes_or_no().fit(td::data::Dataset::from_slices({x, y}).batch(32).prefetch()));

  const double data_mib = static_cast<double>(numbers.size() * sizeof(float) + labels.size() * sizeof(int32_t)) / (1 << 20);
  std::printf("data %.0f MiB, peak %.0f MiB\n", data_mib, peak_mib());
  expect(peak_mib() < data_mib + 200, "a peak below the data and 200 MiB");
}

// One op at a time, each result replacing the one before: two of them are in memory, not a hundred.
void eager_chain(int64_t rows) {
  td::Generator random(1);
  td::Tensor x = random.normal({rows, kColumns});
  for (int i = 0; i < 20; ++i) x = td::matmul(x, random.normal({kColumns, kColumns}, 0.0, 0.03));
  std::printf("twenty products of %s, peak %.0f MiB\n", x.type_str().c_str(), peak_mib());
  expect(x.shape()[0] == rows && td::all(td::is_finite(x)).item<bool>(), "finite numbers");
}

}  // namespace

int main(int argc, char** argv) {
  return run([&] {
    const double scale = argc > 1 ? std::atof(argv[1]) : 0.02;
    const auto scaled = [&](double n) { return std::max<int64_t>(64, static_cast<int64_t>(n * scale)); };
    train_from_file(scaled(1'000'000));
    train_on(scaled(1'000'000));
    eager_chain(scaled(50'000));
  });
}
