// What the stages of a Dataset can be told.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tandem/function.hpp>
#include <tandem/tensor.hpp>

namespace tandem::data {

// The components of one element, in order. Text and records of bytes are uint8 tensors of one axis.
using Element = std::vector<Tensor>;

Tensor from_text(std::string_view text);
std::string to_text(const Tensor& bytes);

inline constexpr int64_t kAutotune = -1;  // a degree of parallelism or a buffer's size that is found while running
inline constexpr int64_t kInfinite = -1;  // cardinalities
inline constexpr int64_t kUnknown = -2;

// Whether a map in front of a batch is computed for the whole batch at once.
enum class Vectorize : uint8_t {
  WhereExact,  // where every bit stays the same, which sums of floating-point numbers do not
  Always,      // where it is possible at all
  Never,
};

struct MapOptions {
  int64_t parallel_calls = kAutotune;
  bool deterministic = true;  // false: elements may overtake each other
  Vectorize vectorize = Vectorize::WhereExact;
  std::string name = "map";
};

struct CallbackOptions {
  int64_t parallel_calls = 1;
  bool deterministic = true;
  std::vector<Spec> specs = {};  // of the results; needed by what asks for them, such as a traced map behind
  std::string name = "map_callback";
};

struct BatchOptions {
  bool drop_remainder = false;
  int64_t parallel_calls = 1;  // how many batches are copied together at once
  bool deterministic = true;
  bool open_extent = false;  // the type says nothing of the size unless the remainder is dropped, even where counting would tell it
};

struct PaddedOptions {
  bool drop_remainder = false;
  std::vector<Dims> shapes = {};        // one a component; -1: the longest of the batch. Empty: all axes of unknown extent
  std::vector<Tensor> values = {};      // scalars, one a component; empty: zeros
  bool pad_to_bucket_boundary = false;  // bucket_by_sequence_length only: to boundary - 1 instead of the longest of the batch
};

struct WindowOptions {
  int64_t shift = 0;  // 0: the size
  int64_t stride = 1;
  bool drop_remainder = false;
};

struct InterleaveOptions {
  int64_t cycle_length = kAutotune;  // how many inputs are open at a time; kAutotune: the cores
  int64_t block_length = 1;          // consecutive elements from each
  int64_t parallel_calls = 1;        // inputs that are read ahead at once
  bool deterministic = true;
  std::vector<Spec> specs = {};  // of the results; needed by what asks for them, such as a map that is to be traced only once
};

struct ShuffleOptions {
  std::optional<uint64_t> seed = {};
  bool reshuffle_each_iteration = true;
};

struct SampleOptions {
  std::vector<double> weights = {};  // empty: equal
  std::optional<uint64_t> seed = {};
  bool stop_on_empty = false;
};

struct ListOptions {
  bool shuffle = false;
  std::optional<uint64_t> seed = {};
};

enum class Compression : uint8_t { None, Gzip, Zlib };

struct FileOptions {
  Compression compression = Compression::None;
  size_t buffer_bytes = 1 << 18;
};

struct RecordOptions {
  int64_t header_bytes = 0, footer_bytes = 0;  // of each file, left out
  Compression compression = Compression::None;
};

struct CsvColumn {
  enum class Kind : uint8_t { Number, Text };
  std::string name = {};  // with a header: which column; else columns are taken in order
  Kind kind = Kind::Number;
  DType dtype = DType::F32;                 // of numbers; text is uint8[n]
  std::optional<std::string> missing = {};  // what an empty field stands for; without it, an empty field is an error
};

struct CsvOptions {
  std::vector<CsvColumn> columns;
  bool header = false;
  char delimiter = ',';
  char quote = '"';
  Compression compression = Compression::None;
};

struct ImageOptions {
  int64_t height = 0, width = 0;  // resized to, bilinear; 0: as they are
  int64_t channels = 3;           // 1, 3 or 4
  bool shuffle = false;           // the files, once, before anything else
  std::optional<uint64_t> seed = {};
  int64_t parallel_calls = kAutotune;
};

struct PipelineOptions {
  std::optional<double> cpu_share = {};         // of the cores, for threads that autotuning adds; default 1
  std::optional<size_t> ram_budget_bytes = {};  // for elements kept ahead; default half of what is free
  std::optional<bool> deterministic = {};       // false: every stage may give its elements in the order in which they are ready
  std::optional<bool> autotune = {};            // false: kAutotune stays what it is at the start
};

struct MemoryUse {
  size_t bytes = 0, peak_bytes = 0, budget_bytes = 0;
};

}  // namespace tandem::data
