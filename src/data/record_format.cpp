#include "data/record_format.hpp"

#include <cstring>

#include "base/checked.hpp"
#include "data/crc32c.hpp"

namespace tandem::data {
namespace {

template <class T> T number_in(const char* bytes) {
  T x;
  std::memcpy(&x, bytes, sizeof x);
  return x;
}

}  // namespace

RecordFrame frame_of(std::string_view record) {
  RecordFrame frame;
  const uint64_t length = record.size();
  std::memcpy(frame.head, &length, 8);
  const uint32_t head_sum = masked(crc32c(frame.head, 8)), data_sum = masked(crc32c(record.data(), record.size()));
  std::memcpy(frame.head + 8, &head_sum, 4);
  std::memcpy(frame.tail, &data_sum, 4);
  return frame;
}

PeekedRecord peek_record(FileReader& file) {
  using State = PeekedRecord::State;
  constexpr size_t kHead = sizeof RecordFrame::head, kTail = sizeof RecordFrame::tail;
  const int64_t start = file.offset();
  const std::string_view head = file.peek(kHead);
  if (head.empty()) return {State::EndOfFile};
  if (head.size() < kHead)
    return {
        State::WrongFrame, {}, cat("truncated: the record at byte ", start, " has ", head.size(), " of the ", kHead, " bytes of its head")};
  const auto length = number_in<uint64_t>(head.data());
  const auto stored = number_in<uint32_t>(head.data() + 8);
  if (const uint32_t actual = masked(crc32c(head.data(), 8)); actual != stored)
    return {State::WrongFrame,
            {},
            cat("corrupted: the record at byte ", start, " has a length whose checksum is ", actual, ", stored is ", stored,
                "; the rest of the file is left out")};
  const auto whole = checked_add<uint64_t>(length, kHead + kTail);
  if (!whole) return {State::WrongFrame, {}, cat("corrupted: the record at byte ", start, " should have ", length, " bytes and a frame")};
  const std::string_view record = file.peek(*whole);
  if (record.size() < *whole)
    return {State::WrongFrame,
            {},
            cat("truncated: the record at byte ", start, " should have ", *whole, " bytes, ", record.size(), " are there")};
  const std::string_view bytes = record.substr(kHead, length);
  const auto stored_sum = number_in<uint32_t>(record.data() + kHead + length);
  if (const uint32_t actual = masked(crc32c(bytes.data(), bytes.size())); actual != stored_sum)
    return {State::WrongBytes,
            {},
            cat("corrupted: the data of the record at byte ", start, " have the checksum ", actual, ", stored is ", stored_sum),
            *whole};
  return {State::Whole, bytes, {}, *whole};
}

}  // namespace tandem::data
