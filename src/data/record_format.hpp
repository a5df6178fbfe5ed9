// The framing of TFRecords, which the files of caches and snapshots have too: length (8 bytes), its masked checksum (4), the bytes, their
// masked checksum (4).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "data/file_reader.hpp"

namespace tandem::data {

struct RecordFrame {
  char head[12], tail[4];
};
RecordFrame frame_of(std::string_view record);

struct PeekedRecord {
  enum class State : uint8_t { Whole, EndOfFile, WrongBytes, WrongFrame };  // WrongFrame: where the next one begins is not known
  State state = State::Whole;
  std::string_view bytes = {};  // of a whole one; valid until the file is read again
  std::string problem = {};     // of a wrong one: the byte where it begins and both numbers
  uint64_t consumed_bytes = 0;  // with its frame, unless that is wrong
};
PeekedRecord peek_record(FileReader& file);

}  // namespace tandem::data
