// Small files and states that would take much memory, never end, or lead outside of memory: one of our errors each.
#include <sys/stat.h>
#include <zlib.h>

#include <cstring>
#include <random>

#include <tandem/data/images.hpp>
#include <tandem/data/records.hpp>

#include "data/crc32c.hpp"
#include "data_support.hpp"
#include "peak_memory.hpp"

namespace tandem::data {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

std::string first_error(const Dataset& d) {
  return error_of([&] { all_of(d); });
}
void expect_part(const std::string& text, const std::string& part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

template <class T> std::string raw(T x) { return {reinterpret_cast<const char*>(&x), sizeof x}; }
std::string head_of(uint64_t length) { return raw(length) + raw(masked(crc32c(&length, 8))); }

std::string gzipped(const std::string& piece, size_t times) {
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out;
  std::vector<char> some(1 << 16);
  for (size_t i = 0; i <= times; ++i) {
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    z.avail_in = i < times ? static_cast<uInt>(piece.size()) : 0;
    do {
      z.next_out = reinterpret_cast<Bytef*>(some.data());
      z.avail_out = static_cast<uInt>(some.size());
      deflate(&z, i < times ? Z_NO_FLUSH : Z_FINISH);
      out.append(some.data(), some.size() - z.avail_out);
    } while (z.avail_out == 0);
  }
  deflateEnd(&z);
  return out;
}

// --- caches ------------------------------------------------------------------------------------------------------------------------

TEST(DataHostile, CacheFilesWithLengthsThatWrapAround) {
  const Folder folder;
  const std::string file = folder / "c";
  const Dataset d = Dataset::range(5).cache(file);
  for (const uint64_t length : {~uint64_t{0}, ~uint64_t{0} - 11, ~uint64_t{0} - 15, ~uint64_t{0} - 16, uint64_t{1} << 62, uint64_t{1000}}) {
    folder.write("c", head_of(length));  // 12 bytes, with a sound checksum
    expect_part(first_error(d), file + ": damaged at byte 0: ");
    folder.write("c", raw(length) + "1234");
    expect_part(first_error(d), "has a length whose checksum is");
    expect_part(first_error(d), "remove the file, and it is written again");
  }
  for (const size_t bytes : {0, 1, 11}) {
    folder.write("c", std::string(bytes, '\0'));
    expect_part(first_error(d), "damaged at byte 0");
  }
}

TEST(DataHostile, CacheFilesWhoseRecordsAreNoElements) {
  const Folder folder;
  const Dataset d = Dataset::range(5).cache(folder / "c");
  for (const std::string& record :
       {std::string(), std::string("en"), raw(int64_t{-1}), raw(INT64_MAX),
        raw(int64_t{1}) + raw(int64_t{3}) + raw(int64_t{2}) + raw(INT64_MAX) + raw(INT64_MAX), raw(int64_t{0}) + "more"}) {
    RecordWriter(folder / "c").write(record);
    expect_part(first_error(d), "its record is no element of this pipeline");
  }
}

TEST(DataHostile, CachesThatAreNoFiles) {
  const Folder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder / "folder");
  std::filesystem::create_symlink("/dev/zero", folder / "device");
  for (const char* name : {"pipe", "folder", "device"})
    EXPECT_EQ(first_error(Dataset::range(5).cache(folder / name)), "cache: element 0: " + (folder / name) + ": is no file");
  EXPECT_EQ(error_of([&] { read_file(folder / "pipe"); }), (folder / "pipe") + ": is no file");
  EXPECT_EQ(error_of([&] { Dataset::npy(folder / "pipe"); }), (folder / "pipe") + ": is no file");
}

TEST(DataHostile, WhatAKilledProcessLeftOfACacheIsRemoved) {
  const Folder folder;
  folder.write("c.abcdefghijkl.tandem-part", "half");
  folder.write("c.part", "another program's");
  all_of(Dataset::range(5).cache(folder / "c"));
  EXPECT_EQ(folder.file_count(), 2u);
  {
    Iterator given_up = Dataset::range(5).cache(folder / "d").iterate();
    Element e;
    given_up.next(e);
    EXPECT_EQ(folder.file_count(), 3u);
  }
  EXPECT_EQ(folder.file_count(), 2u);
}

// --- memory that a file has no bytes for ---------------------------------------------------------------------------------------------

TEST(DataHostile, CompressedTextWithoutAnEndStaysInsideTheBudget) {
  const Folder folder;
  const std::string file = folder.write("bomb.gz", gzipped(std::string(kMiB, 'x'), 600));
  const PipelineOptions options{.ram_budget_bytes = 64 * kMiB};
  const FileOptions gzip{.compression = Compression::Gzip};
  const std::string wanted =
      file +
      ": what begins at byte 0 has more than 8388608 bytes, all that one record may have of a RAM budget of 67108864; "
      "the rest of the file is left out\n  hint: options({.ram_budget_bytes = ...})";
  size_t peak = peak_growth_bytes(
      [&] { EXPECT_EQ(first_error(Dataset::text_lines({file}, gzip).options(options)), "text_lines: element 0: " + wanted); });
  EXPECT_LT(peak, 64 * kMiB);
  const CsvOptions csv{.columns = {{.kind = CsvColumn::Kind::Text}}, .compression = Compression::Gzip};
  peak = peak_growth_bytes([&] { EXPECT_EQ(first_error(Dataset::csv({file}, csv).options(options)), "csv: element 0: " + wanted); });
  EXPECT_LT(peak, 64 * kMiB);
  peak = peak_growth_bytes([&] {
    const Dataset fixed = Dataset::fixed_length_records({file}, int64_t{1} << 40, {.compression = Compression::Gzip});
    EXPECT_EQ(first_error(fixed.options(options)), "fixed_length_records: element 0: " + wanted);
  });
  EXPECT_LT(peak, 64 * kMiB);
  const std::string records = folder.write("r.gz", gzipped(head_of(uint64_t{1} << 40) + std::string(kMiB - 12, 'x'), 300));
  peak =
      peak_growth_bytes([&] { expect_part(first_error(Dataset::tfrecords({records}, gzip).options(options)), "more than 8388608 bytes"); });
  EXPECT_LT(peak, 64 * kMiB);
  // The next file is read, and an iterator that passes over errors ends.
  const std::string good = folder.write("good.gz", gzipped("a\nb\n", 1));
  EXPECT_EQ(texts(Dataset::text_lines({file, good}, gzip).options(options).ignore_errors()), (std::vector<std::string>{"a", "b"}));
}

TEST(DataHostile, ABudgetSmallerThanALineStopsNothing) {
  const Folder folder;
  const std::string file = folder.write("t", std::string(600000, 'x') + "\n" + std::string(700000, 'y') + "\n");
  EXPECT_EQ(texts(Dataset::text_lines({file}).options({.ram_budget_bytes = 1})).size(), 2u);
}

TEST(DataHostile, ImagesThatClaimToBeLarge) {
  const std::string png_start = "\x89PNG\r\n\x1a\n";
  const auto big_endian = [](uint32_t x) { return std::string{char(x >> 24), char(x >> 16), char(x >> 8), char(x)}; };
  const auto chunk = [&](const std::string& name, const std::string& data) {
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>((name + data).data()), static_cast<uInt>(name.size() + data.size()));
    return big_endian(static_cast<uint32_t>(data.size())) + name + data + big_endian(static_cast<uint32_t>(sum));
  };
  const auto png = [&](uint32_t width, uint32_t height) {
    return png_start + chunk("IHDR", big_endian(width) + big_endian(height) + std::string("\x08\x06\0\0\0", 5)) +
           chunk("IDAT", std::string("\x78\x9c\x03\0\0\0\0\1", 8)) + chunk("IEND", "");
  };
  for (const auto& [width, height] : {std::pair<uint32_t, uint32_t>{30000, 30000}, {1000000, 1000000}, {1000000, 17}, {5000, 5000}}) {
    const Tensor bytes = from_text(png(width, height));
    const size_t peak = peak_growth_bytes([&] { EXPECT_NE(error_of([&] { decode_image(bytes); }), "no error"); });
    EXPECT_LT(peak, 100 * kMiB) << width << " x " << height;
  }
  const std::string refused = png(5000, 5000);
  EXPECT_EQ(error_of([&] { decode_image(from_text(refused)); }), "decode_png: an image of 5000 x 5000 pixels in " +
                                                                     std::to_string(refused.size()) +
                                                                     " bytes, of which at most 16777216 pixels are read");
}

TEST(DataHostile, ArraysWithoutBytes) {
  const Folder folder;
  const auto npy = [&](const std::string& shape) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
    header += std::string(117 - header.size(), ' ') + "\n";
    return folder.write("a.npy", "\x93NUMPY\x01" + std::string(1, '\0') + raw(static_cast<uint16_t>(header.size())) + header);
  };
  const std::string file = npy("(16000000000, 0)");
  EXPECT_EQ(error_of([&] { Dataset::npy(file); }), file + ": has 16000000000 rows without a byte, at most 1048576 of these are read");
  EXPECT_EQ(all_of(Dataset::npy(npy("(1000, 0)")).batch(10)).size(), 100u);
  EXPECT_EQ(all_of(Dataset::npy(npy("(0, 16000000000)")).batch(10)).size(), 0u);
  expect_part(error_of([&] { Dataset::npy(npy("(4611686018427387904, 4611686018427387904)")); }), file + ": shape [");
  expect_part(error_of([&] { Dataset::npy(npy("(4611686018427387904, 3)")); }), file + ": shape [");
  expect_part(error_of([&] { Dataset::npy(npy("(3, 5)")); }), "truncated: [3,5] of float32 needs 60 bytes, 0 are there");
}

// --- time --------------------------------------------------------------------------------------------------------------------------------

TEST(DataHostile, AQuoteWithoutAnEndIsReadOnce) {
  const Folder folder;
  std::string text = "\"";
  for (int i = 0; i < 200000; ++i) text += "123456789\n";
  const std::string file = folder.write("t.csv", text);
  const Dataset d = Dataset::csv({file}, {.columns = {{.dtype = DType::I32}}});
  EXPECT_EQ(first_error(d), "csv: element 0: " + file + ": the quoted field that begins in or behind line 1 has no end");
  EXPECT_EQ(all_of(d.ignore_errors()).size(), 0u);
}

// --- states ----------------------------------------------------------------------------------------------------------------------------

Dataset slices() { return Dataset::from_slices({counting(23, 2), Tensor::arange(23)}); }

// Each word of a state becomes something else: an error, or an iterator that gives something.
TEST(DataHostile, StatesWithWildNumbers) {
  const Folder folder;
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += std::to_string(i) + "\n";
  const std::string csv = folder.write("t.csv", lines);
  const auto few = [](const Element& e) { return Dataset::range(e[0].item<int64_t>() % 3 + 1); };
  const std::vector<std::function<Dataset()>> pipelines = {
      [] { return slices().shuffle(7, {.seed = 1}).batch(3); },
      [] { return slices().shuffle(7, {.seed = 1}); },
      [] { return slices().shuffle(7, {.seed = 1}).repeat(3).skip(4).shard(2, 1).take(9).batch(2, {.parallel_calls = 1}); },
      [] { return Dataset::range(40).map([](Tensor x) { return x + 1; }).batch(4, {.parallel_calls = 1}).prefetch(2); },
      [] { return Dataset::range(40).window(4, {.shift = 2}).unbatch().enumerate(); },
      [] { return Dataset::range(20).padded_batch(3).cache(); },
      [=] { return Dataset::range(9).interleave(few, {.cycle_length = 2, .parallel_calls = 1}).unique(); },
      [] { return Dataset::range(20).repeat().shuffle(4, {.seed = 3}).skip(5).take(9); },
      [] { return Dataset::zip({Dataset::range(9), Dataset::range(9).concatenate(Dataset::range(3))}).batch(2); },
      [=] {
        return Dataset::csv({csv}, {.columns = {{.dtype = DType::I64}}}).filter_callback([](const Element& e) {
          return e[0].item<int64_t>() % 2 == 0;
        });
      },
  };
  const int64_t wild[] = {INT64_MIN, -1, 0, 1, 2, 3, 1000, int64_t{1} << 32, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX};
  for (size_t p = 0; p < pipelines.size(); ++p) {
    Iterator it = pipelines[p]().iterate();
    Element e;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(it.next(e)) << p;
    const std::string state = it.save();
    for (size_t at = 0; at + 8 <= state.size(); ++at)
      for (const int64_t word : wild) {
        std::string bad = state;
        std::memcpy(bad.data() + at, &word, 8);
        Iterator other = pipelines[p]().iterate();
        try {
          other.restore(bad);
          for (int i = 0; i < 60 && other.next(e); ++i) {
          }
        } catch (const Error&) {
        }
      }
  }
}

TEST(Hostile, APipelineIsOnlySoLong) {
  Dataset d = Dataset::range(3);
  std::string text = "no error";
  for (int i = 0; i < 100'000 && text == "no error"; ++i) text = error_of([&] { d = d.skip(0); });
  expect_part(text, "skip: the pipeline would be 1001 stages long, the most is 1000");
  EXPECT_EQ(all_of(d).size(), 3u);
}

}  // namespace
}  // namespace tandem::data
