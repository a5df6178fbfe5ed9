// What the reader and the writer of HDF5 files both know: "HDF5 File Format Specification Version 1.1", whose names these are.
#pragma once
#include <cstdint>
#include <string>

#include <tandem/dtype.hpp>

namespace tandem::io::hdf5 {

inline constexpr char kSignature[] = "\x89HDF\r\n\x1a\n";
inline constexpr uint64_t kUndefined = ~uint64_t{0};  // no address
inline constexpr uint64_t kSuperblockBytes = 96, kEntryBytes = 40, kMessageBytes = 8, kHeaderBytes = 16, kObjectBytes = 16;

enum Message : uint16_t {
  kNil = 0x0,
  kDataspace = 0x1,
  kLinkInfo = 0x2,
  kDatatype = 0x3,
  kFillValue = 0x5,
  kExternalFiles = 0x7,
  kLayout = 0x8,
  kFilters = 0xb,
  kAttribute = 0xc,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
};

// The datatype message of an element type. bfloat16 has none of its own: Keras stores two opaque bytes and an attribute dtype = "bfloat16".
std::string datatype(DType dtype);
std::string text_datatype();  // of variable length, UTF-8: the one that Python reads as str

}  // namespace tandem::io::hdf5
