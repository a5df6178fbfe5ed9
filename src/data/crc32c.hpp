// CRC-32C (Castagnoli), by the processor's own instruction where it has one, and the masked form that TFRecord files store.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tandem::data {

uint32_t crc32c(const void* bytes, size_t count, uint32_t before = 0);
uint32_t crc32c_by_table(const void* bytes, size_t count, uint32_t before = 0);
inline uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace tandem::data
