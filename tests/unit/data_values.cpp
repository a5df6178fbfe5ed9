// Elements against what tf.data gives for the same pipelines, stored by tools/tfdata_values.py.
#include <cmath>
#include <map>
#include <sstream>

#include <tandem/data/images.hpp>

#include "data_support.hpp"
#include "support/source_folder.hpp"

namespace tandem::data {
namespace {

const std::string kFolder = test::source_file("tests/data/pipelines/");

struct Stored {
  struct Component {
    std::string extents;
    std::vector<double> numbers;
  };
  int64_t cardinality;
  std::vector<std::vector<Component>> elements;
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

const std::map<std::string, Stored>& stored() {
  static const std::map<std::string, Stored> all = [] {
    std::map<std::string, Stored> table;
    std::ifstream file(kFolder + "values.txt");
    for (std::string line; std::getline(file, line);) {
      std::stringstream words(line);
      std::string name, elements;
      Stored s;
      words >> name >> s.cardinality >> elements;
      for (const std::string& element : split(elements, '|')) {
        auto& components = s.elements.emplace_back();
        for (const std::string& component : split(element, ';')) {
          const size_t colon = component.find(':');
          auto& c = components.emplace_back(Stored::Component{component.substr(0, colon), {}});
          for (const std::string& number : split(component.substr(colon + 1), ',')) c.numbers.push_back(std::stod(number));
        }
      }
      table.emplace(std::move(name), std::move(s));
    }
    return table;
  }();
  return all;
}

std::string extents(const Shape& s) {
  std::string text;
  for (const int64_t extent : s) text.append(text.empty() ? "" : ",").append(std::to_string(extent));
  return text;
}

void expect_like(const std::string& name, const Dataset& dataset, double tolerance = 0) {
  SCOPED_TRACE(name);
  ASSERT_TRUE(stored().contains(name));
  const Stored& s = stored().at(name);
  if (s.cardinality >= 0) {
    EXPECT_EQ(dataset.cardinality(), s.cardinality);
  }
  const std::vector<Element> elements = all_of(dataset);
  ASSERT_EQ(elements.size(), s.elements.size());
  for (size_t e = 0; e < elements.size(); ++e) {
    ASSERT_EQ(elements[e].size(), s.elements[e].size());
    for (size_t c = 0; c < elements[e].size(); ++c) {
      EXPECT_EQ(extents(elements[e][c].shape()), s.elements[e][c].extents) << "element " << e << " component " << c;
      const std::vector<double> numbers = elements[e][c].to_vector<double>();
      ASSERT_EQ(numbers.size(), s.elements[e][c].numbers.size());
      for (size_t i = 0; i < numbers.size(); ++i)
        ASSERT_NEAR(numbers[i], s.elements[e][c].numbers[i], tolerance) << "element " << e << " component " << c << " number " << i;
    }
  }
  // What is declared must hold for what comes.
  const int64_t declared = dataset.cardinality();
  if (declared >= 0) {
    EXPECT_EQ(declared, static_cast<int64_t>(elements.size()));
  }
}

Dataset range(int64_t n) { return Dataset::range(n); }

Dataset ragged(std::vector<int64_t> lengths) {
  return Dataset::generator(
      [lengths] {
        return [lengths, at = size_t{0}](Element& e) mutable {
          if (at == lengths.size()) return false;
          std::vector<int64_t> numbers;
          for (int64_t i = 0; i < lengths[at]; ++i) numbers.push_back(10 * lengths[at] + i);
          e = {Tensor::from(numbers)};
          ++at;
          return true;
        };
      },
      {{DType::I64, {Dim::symbol("n")}}});
}

int64_t length_of(const Element& e) { return e[0].size(); }

Dataset many(const Element& e) { return Dataset::from_tensors(e).repeat(e[0].item<int64_t>() + 1); }

TEST(DataValues, Counting) {
  expect_like("range_step", Dataset::range(10, 2, -3));
  expect_like("batch", range(10).batch(4));
  expect_like("batch_drop", range(10).batch(4, true));
  expect_like("unbatch", range(10).batch(4).unbatch());
  expect_like("rebatch", range(10).batch(3).rebatch(4));
  expect_like("rebatch_drop", range(10).batch(3).rebatch(4, true));
  expect_like("repeat_batch", range(3).repeat(3).batch(4));
  expect_like("skip_take_shard", range(20).skip(3).take(12).shard(4, 2));
  expect_like("concatenate", range(3).concatenate(Dataset::range(10, 12)));
  expect_like("zip", Dataset::zip({range(5), Dataset::range(10, 13)}));
  expect_like("enumerate", Dataset::range(10, 13).enumerate(5));
  expect_like("unique", Dataset::from_slices({Tensor::from(std::vector<int64_t>{1, 3, 1, 2, 3, 4})}).unique());
  expect_like("scan", range(6).scan({Tensor::scalar<int64_t>(0)},
                                    [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[1], in[0] * 10 + in[1]}; }));
  expect_like("filter", range(10).filter([](Tensor x) { return x % 3 == 1; }));
  expect_like("filter", range(10).filter_callback([](const Element& e) { return e[0].item<int64_t>() % 3 == 1; }));
}

TEST(DataValues, Windows) {
  expect_like("window", range(10).window(3));
  expect_like("window_shift", range(10).window(3, {.shift = 1}));
  expect_like("window_stride", range(10).window(3, {.shift = 2, .stride = 2}));
  expect_like("window_drop", range(10).window(3, {.shift = 2, .stride = 2, .drop_remainder = true}));
  expect_like("window_gap", range(10).window(2, {.shift = 4}));
}

TEST(DataValues, Interleaving) {
  expect_like("flat_map", range(4).flat_map(many));
  for (const int64_t calls : {1, 2, 4}) {  // threads change nothing
    expect_like("interleave", range(6).interleave(many, {.cycle_length = 2, .parallel_calls = calls}));
    expect_like("interleave_block", range(6).interleave(many, {.cycle_length = 3, .block_length = 2, .parallel_calls = calls}));
    expect_like("interleave_wide", range(3).interleave(many, {.cycle_length = 8, .parallel_calls = calls}));
  }
}

TEST(DataValues, Padding) {
  expect_like("padded_batch", ragged({2, 4, 1, 3, 0}).padded_batch(2));
  expect_like("padded_batch_value", ragged({2, 4, 1}).padded_batch(2, {.shapes = {{5}}, .values = {Tensor::scalar<int64_t>(-1)}}));
  expect_like("bucket", ragged({2, 7, 1, 3, 9, 4, 6, 5, 2}).bucket_by_sequence_length(length_of, {3, 6}, {2, 2, 2}));
  expect_like("bucket_boundary",
              ragged({2, 1, 3, 4, 5, 2}).bucket_by_sequence_length(length_of, {3, 6}, {2, 2, 2}, {.pad_to_bucket_boundary = true}));
}

TEST(DataValues, Choosing) {
  const Dataset choice = Dataset::from_slices({Tensor::from(std::vector<int64_t>{0, 1, 1, 0, 1, 0})});
  expect_like("choose", Dataset::choose_from({range(3), Dataset::range(10, 12)}, choice, false));
  expect_like("choose_stop", Dataset::choose_from({range(3), Dataset::range(10, 12)}, choice, true));
}

TEST(DataValues, Csv) {
  expect_like(
      "csv",
      Dataset::csv({kFolder + "table.csv"},
                   {.columns = {{.name = "a"}, {.name = "b", .dtype = DType::I32, .missing = "7"}, {.name = "c", .dtype = DType::F64}},
                    .header = true}));
}

TEST(DataValues, TfRecords) {
  for (const auto& [name, compression] : {std::pair{"records.tfrecord", Compression::None},
                                          {"records.gzip.tfrecord", Compression::Gzip},
                                          {"records.zlib.tfrecord", Compression::Zlib}}) {
    SCOPED_TRACE(name);
    const std::vector<std::string> records = texts(Dataset::tfrecords({kFolder + name}, {.compression = compression}));
    ASSERT_EQ(records.size(), 4u);
    const size_t lengths[] = {0, 1, 5, 300};
    for (size_t r = 0; r < 4; ++r) {
      ASSERT_EQ(records[r].size(), lengths[r]);
      for (size_t i = 0; i < lengths[r]; ++i) EXPECT_EQ(static_cast<uint8_t>(records[r][i]), (7 * i + lengths[r]) % 256);
    }
  }
}

TEST(DataValues, Images) {
  for (const char* name : {"colour.jpg", "grey.jpg", "colour.png", "alpha.png", "grey.png"}) {
    const Tensor image = decode_image(read_file(kFolder + name));
    // TensorFlow brings its own libjpeg, whose inverse transform rounds in other places.
    const double tolerance = std::string(name).ends_with("jpg") ? 3 : 0;
    expect_like(std::string("image_") + name, Dataset::from_tensors({image}), tolerance);
    expect_like(std::string("resized_") + name, Dataset::from_tensors({resize_image(image.cast(DType::F32), 8, 20)}), tolerance + 1e-3);
    expect_like(std::string("resized_") + name, Dataset::from_tensors({resize_image(image, 8, 20)}), tolerance + 0.51);
  }
}

TEST(DataValues, NumPy) {
  const Dataset array = Dataset::npy(kFolder + "array.npy");
  EXPECT_EQ(array.cardinality(), 6);
  EXPECT_EQ(array.specs()[0].str(), "float32[4]");
  std::vector<float> counted(24);
  for (size_t i = 0; i < 24; ++i) counted[i] = static_cast<float>(i);
  EXPECT_EQ(values<float>(array.batch(4)), counted);
  EXPECT_EQ(values<float>(Dataset::npy(kFolder + "columns.npy").batch(4)), counted);
  EXPECT_EQ(values<float>(Dataset::npy(kFolder + "columns.npy").shuffle(1).skip(5)), (std::vector<float>{20, 21, 22, 23}));
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const Dataset both = Dataset::npz(kFolder + name);
    EXPECT_EQ(both.specs().size(), 2u);
    EXPECT_EQ(both.specs()[0].str(), "float64[2]");
    EXPECT_EQ(values<double>(both.batch(4), 0), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
    EXPECT_EQ(values<int>(both.skip(1).shard(2, 0).batch(3), 1), (std::vector<int>{1, 3, 5}));
    EXPECT_EQ(values<int>(Dataset::npz(kFolder + name, {"y"})), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  }
}

}  // namespace
}  // namespace tandem::data
