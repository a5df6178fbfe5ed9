// Files of records, plain and compressed, and lines of text.
#include <cstring>

#include "data/crc32c.hpp"
#include "data/record_format.hpp"
#include "data_formats.hpp"

namespace tandem::fuzz {
namespace {

std::string framed(const std::string& record) {
  const data::RecordFrame frame = data::frame_of(record);
  return std::string(frame.head, sizeof frame.head) + record + std::string(frame.tail, sizeof frame.tail);
}

// A length with a sound checksum and little behind it.
std::string claim(Random& random) {
  const uint64_t length = wild_number(random);
  const uint32_t sum = data::masked(data::crc32c(&length, sizeof length));
  std::string head(12, '\0');
  std::memcpy(head.data(), &length, 8);
  std::memcpy(head.data() + 8, &sum, 4);
  return head + std::string(random.below(30), 'x');
}

std::string mutate(const std::string& input, Random& random) {
  switch (random.below(4)) {
    case 0: return input + framed(mutated(input.substr(0, 64), random));
    case 1: return input.substr(0, input.size() / 2) + claim(random);
    case 2: return claim(random) + input;
    default: return mutated(input, random);
  }
}

void run(const std::string& input, const std::filesystem::path& folder) {
  using data::Dataset;
  const std::string file = write_bytes(folder / "records", input).string();
  for (const data::Compression c : {data::Compression::None, data::Compression::Gzip, data::Compression::Zlib}) {
    read_elements(Dataset::tfrecords({file}, {.compression = c}));
    read_elements(Dataset::text_lines({file}, {.compression = c}));
    read_elements(Dataset::fixed_length_records({file}, 7, {.header_bytes = 3, .footer_bytes = 2, .compression = c}));
  }
}

}  // namespace

Format records_format() {
  const auto stored = data_folder() / "pipelines";
  return {.name = "records",
          .seeds = {framed("one") + framed("") + framed("three\nlines\n"), read_bytes(stored / "records.tfrecord"),
                    read_bytes(stored / "records.gzip.tfrecord"), read_bytes(stored / "records.zlib.tfrecord")},
          .mutate = mutate,
          .run = run};
}

}  // namespace tandem::fuzz
