// What the tests of files share: a folder of their own, patched bytes, and the text of the error that a call gives.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include <tandem/error.hpp>

#include "error_of.hpp"
#include "io/file.hpp"
#include "temporary_folder.hpp"

namespace tandem {

inline void write_file(const std::filesystem::path& path, io::ByteView bytes) {
  std::filesystem::remove(path);  // some file systems wait for the disk when one is cut to nothing and written again
  std::ofstream(path, std::ios::binary) << io::text_of(bytes);
}

// A few damaged copies of a file: flipped bits, wild bytes and numbers, cut ends. The same ones each time.
inline io::Bytes damaged(io::ByteView whole, uint64_t seed) {
  std::mt19937_64 random(seed);
  io::Bytes bytes(whole.begin(), whole.end());
  for (uint64_t i = 0, count = 1 + random() % 4; i < count; ++i) {
    const size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0: bytes[at] ^= std::byte{1} << (random() % 8); break;
      case 1: bytes[at] = static_cast<std::byte>(random()); break;
      case 2: bytes[at] = std::byte{0xff}; break;
      default:  // a number of 8 bytes
        for (size_t k = at & ~size_t{7}; k < std::min((at & ~size_t{7}) + 8, bytes.size()); ++k)
          bytes[k] = static_cast<std::byte>(random() % 3 == 0 ? 0xff : random());
    }
  }
  if (random() % 16 == 0) bytes.resize(random() % bytes.size());
  return bytes;
}

}  // namespace tandem
