// Hashes of bytes that are the same on every machine and in every version: numbers of buckets are kept in models.
#pragma once
#include <cstdint>
#include <string_view>

namespace tandem {

uint64_t fingerprint64(std::string_view bytes);  // FarmHash's fingerprint (Pike, 2014)
uint64_t hash64(std::string_view bytes);         // MurmurHash64A (Appleby, 2008), with the seed that TensorFlow's string ops have
uint64_t keyed_hash64(std::string_view bytes, uint64_t key0, uint64_t key1);  // SipHash-2-4 (Aumasson and Bernstein, 2012)

}  // namespace tandem
