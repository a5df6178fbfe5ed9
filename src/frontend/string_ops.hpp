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
Tensor fingerprint(const Tensor& x);                                                     // int64, the bits of fingerprint64
Tensor to_hash_bucket(const Tensor& x, int64_t buckets);                                 // int64, by fingerprint64
Tensor to_plain_hash_bucket(const Tensor& x, int64_t buckets);                           // by hash64
Tensor to_keyed_hash_bucket(const Tensor& x, int64_t buckets, uint64_t key0, uint64_t key1);
Tensor regex_replace(const Tensor& x, const std::string& pattern, const std::string& rewrite, bool all);  // by base/regex.hpp
Tensor regex_full_match(const Tensor& x, const std::string& pattern);                                     // bool
Tensor join_rows(const Tensor& x, const std::string& separator);                                          // the last axis as one string

// Parts of all strings, one behind the other, and how many each has. Without a separator: at white space, no empty parts.
struct Parts {
  Tensor values, counts;  // string[n], int64 of x's shape
};
Parts split(const Tensor& x, const std::string& separator, int64_t most_splits);
Parts split_bytes(const Tensor& x);
Parts split_characters(const Tensor& x);  // UTF-8
bool is_utf8(const Tensor& x);            // all of it
Parts code_points(const Tensor& x);       // int32, of UTF-8

// Words that follow each other, joined: of each row of `values`, which has as many as `counts` says, those of every width in turn.
struct Ngrams {
  std::vector<int64_t> widths;
  std::string separator, left, right;  // the paddings stand before and behind a row
  int64_t padding = 0;                 // so many at most; for each width one less than it is enough
  bool keeps_short = false;            // a row too short for all widths is one piece
};
Parts ngrams(const Tensor& values, const Tensor& counts, const Ngrams& wanted);

}  // namespace tandem::string_ops
