// What a graph has to do, with symbols bound, before anybody has decided when and where: units of work and the blocks of memory that they
// read and write. Made by lower(), ordered by order(), placed by make_plan(). Plain data: no device is touched for it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel.hpp"
#include "ir/graph.hpp"

namespace tandem::plan {

// Bytes that one value has, or several that are views of it.
struct Block {
  enum class Kind : uint8_t { Local, Input, Output, Constant };  // Local: lives only inside a run
  Kind kind = Kind::Local;
  int32_t index = -1;  // which input, output or constant
  int32_t device = 0;  // in whose memory; which one that is, the request says
  size_t bytes = 0;
  bool is_prefetched = false;  // an operand that comes from the host while the run before computes
};

struct Access {
  int32_t block = -1;
  size_t bytes = 0;
  size_t shift = 0;  // of the first element that is used: a slice begins behind its block's first byte
};

// What one step does, whatever it is.
enum class Kind : uint8_t { Launch, Copy, Upload, Download, Branch, While, Scan };

struct Units;

struct Unit {
  Kind kind = Kind::Launch;
  int32_t device = 0;
  int32_t kernel = -1;                // Launch: in Tables::kernels
  int32_t node = -1;                  // of the graph, that it is for
  std::vector<Access> reads, writes;  // Copy, Upload, Download: one each. Branch: index first, then operands
  // While, Scan: the second set of carries, which trips alternate with. Scan: reads are carries, sequences, constants; writes are carries,
  // stacked outputs. While: reads and writes are the carries.
  std::vector<Access> other_carries;
  std::vector<std::shared_ptr<const Units>> bodies;  // Branch: one each; While: condition, body; Scan: body
  int64_t carries = 0, sequences = 0, trips = 0;     // While: trips < 0 is no limit
  bool reverse = false;
  bool may_fail = false;  // on what the numbers are: such a unit comes before state is overwritten, where nothing forbids it
  bool is_again = false;  // it ran before, or was there: a limit asks for it
  std::string label;      // "matmul float32[32,10]", for messages and profiles
  Location location;
};

struct Constant {
  ir::Literal literal;
  int32_t device = 0;
};

// What the units of a graph and those of its loops' bodies share.
struct Tables {
  struct Entry {
    codegen::Kernel kernel;
    int32_t device = 0;
  };
  std::vector<Entry> kernels;
  std::vector<Constant> constants;
};

// An output that needs no unit of its own: it is an input's or a constant's bytes.
struct OutputAlias {
  int32_t input = -1, constant = -1;  // both -1: written by steps
  size_t offset = 0;
};

struct Units {
  std::vector<Block> blocks;
  std::vector<Unit> units;              // in an order in which what a unit reads was written before
  std::vector<codegen::Layout> inputs;  // as they must lie
  std::vector<int32_t> input_devices;
  std::vector<codegen::Layout> outputs;  // dense
  std::vector<int32_t> output_devices;
  std::vector<int32_t> output_blocks;  // -1: an alias
  std::vector<OutputAlias> aliases;    // one an output
  std::vector<int32_t> donations;      // one an output: the input that it may overwrite, or -1. Empty: none
  std::vector<int32_t> input_blocks;
  std::vector<bool> fresh_inputs;  // Request
  Bindings bindings;
};

}  // namespace tandem::plan
