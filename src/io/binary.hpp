// Little-endian numbers in and out of bytes: what zip and HDF5 files are made of.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/file.hpp"

namespace tandem::io {

// Thrown by BinaryReader; the formats catch it and say what was being read.
struct EndOfBytes {};

class BinaryReader {
 public:
  explicit BinaryReader(ByteView bytes) : bytes_(bytes) {}
  template <std::unsigned_integral T> T get() {
    const ByteView from = take(sizeof(T));
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<uint64_t>(from[i]) << (8 * i);
    return static_cast<T>(value);
  }
  ByteView take(uint64_t count) {
    if (count > bytes_.size()) throw EndOfBytes{};
    const ByteView front = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return front;
  }
  std::string_view take_text(uint64_t count) { return text_of(take(count)); }
  void skip(uint64_t count) { take(count); }
  uint64_t left() const { return bytes_.size(); }
  ByteView rest() const { return bytes_; }

 private:
  ByteView bytes_;
};

class BinaryWriter {
 public:
  template <std::unsigned_integral T> BinaryWriter& put(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) text_.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
    return *this;
  }
  BinaryWriter& put_text(std::string_view text) {
    text_ += text;
    return *this;
  }
  BinaryWriter& fill(uint64_t count) {
    text_.append(count, '\0');
    return *this;
  }
  BinaryWriter& align(uint64_t to) { return fill((to - text_.size() % to) % to); }
  uint64_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace tandem::io
