// What is computed from strings, element by element, on the host: the work behind tf.strings.
#pragma once
#include <string>
#include <vector>

#include <tandem/strings.hpp>

namespace tandem::string_ops {

enum class Unit : uint8_t { Byte, Utf8 };  // what lengths and positions count

Tensor lower(const Tensor& x);  // of ASCII letters
Tensor upper(const Tensor& x);
Tensor strip(const Tensor& x);                                                           // white space at both ends
Tensor length(const Tensor& x, Unit unit);                                               // int32
Tensor substr(const Tensor& x, const Tensor& position, const Tensor& count, Unit unit);  // int64 positions, scalars or of x's shape
Tensor join(const std::vector<Tensor>& xs, const std::string& separator);                // scalars stand beside every element
Tensor to_number(const Tensor& x, DType dtype);                                          // UserError names the string that is none
Tensor to_hash_bucket(const Tensor& x, int64_t buckets);                                 // int64, by fingerprint64
Tensor to_plain_hash_bucket(const Tensor& x, int64_t buckets);                           // by hash64
Tensor to_keyed_hash_bucket(const Tensor& x, int64_t buckets, uint64_t key0, uint64_t key1);

// Parts of all strings, one behind the other, and how many each has. Without a separator: at white space, no empty parts.
struct Parts {
  Tensor values, counts;  // string[n], int64 of x's shape
};
Parts split(const Tensor& x, const std::string& separator, int64_t most_splits);
Parts split_bytes(const Tensor& x);
Parts split_characters(const Tensor& x);  // UTF-8

}  // namespace tandem::string_ops
