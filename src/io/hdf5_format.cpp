#include "io/hdf5_format.hpp"

#include "io/binary.hpp"

namespace tandem::io::hdf5 {
namespace {

enum Class : uint8_t { kFixed = 0, kFloating = 1, kString = 3, kOpaque = 5, kEnumeration = 8, kVariableLength = 9 };
constexpr uint8_t kVersion = 1 << 4;

BinaryWriter start(Class kind, uint32_t flags, uint32_t bytes) {
  BinaryWriter message;
  message.put(static_cast<uint8_t>(kVersion | kind)).put(static_cast<uint8_t>(flags)).put(static_cast<uint16_t>(flags >> 8)).put(bytes);
  return message;
}

std::string integer(uint32_t bytes, bool is_signed) {
  return start(kFixed, is_signed ? 8 : 0, bytes).put(uint16_t{0}).put(static_cast<uint16_t>(8 * bytes)).text();
}

std::string floating(uint32_t bytes, uint8_t exponent_bits, uint8_t mantissa_bits) {
  constexpr uint32_t kImpliedOne = 2 << 4;
  const auto bits = static_cast<uint16_t>(8 * bytes);
  BinaryWriter message = start(kFloating, kImpliedOne | (bits - 1u) << 8, bytes);
  message.put(uint16_t{0}).put(bits).put(mantissa_bits).put(exponent_bits).put(uint8_t{0}).put(mantissa_bits);
  return message.put((uint32_t{1} << (exponent_bits - 1)) - 1).text();
}

std::string boolean() {
  BinaryWriter message = start(kEnumeration, 2, 1);
  message.put_text(integer(1, true)).put_text("FALSE").align(8).put_text("TRUE").align(8);
  return message.put(uint8_t{0}).put(uint8_t{1}).text();
}

}  // namespace

std::string datatype(DType dtype) {
  switch (dtype) {
    case DType::Bool: return boolean();
    case DType::BF16: return start(kOpaque, 0, 2).text();
    case DType::F16: return floating(2, 5, 10);
    case DType::F32: return floating(4, 8, 23);
    case DType::F64: return floating(8, 11, 52);
    default: return integer(static_cast<uint32_t>(size_of(dtype)), is_signed(dtype));
  }
}

std::string text_datatype() {
  constexpr uint32_t kText = 1, kUtf8 = 1 << 8;
  return start(kVariableLength, kText | kUtf8, 16).put_text(integer(1, false)).text();
}

}  // namespace tandem::io::hdf5
