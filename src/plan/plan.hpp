// Plan: what running a graph once means, as plain data. Steps in order, and for every value where its bytes lie. Made once for each
// binding of symbols; the executor follows it without deciding anything.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/cost.hpp"
#include "device/device.hpp"
#include "ir/graph.hpp"

namespace tandem::plan {

// A place in memory: a base (arena, an input, an output, a constant) and a byte offset.
struct Slot {
  enum class Base : uint8_t { Arena, Input, Output, Constant };
  Base base = Base::Arena;
  int32_t index = 0;  // which input, output or constant
  size_t offset = 0;
  size_t bytes = 0;
  size_t shift = 0;    // of the first element that is used: a slice begins behind its storage's first byte
  int32_t value = -1;  // whose bytes these are: lets verify() tell two values in one place apart
  std::string str() const;
  bool overlaps(const Slot& o) const {
    return base == o.base && index == o.index && offset < o.offset + o.bytes && o.offset < offset + bytes;
  }
};

struct Plan;

// One step; what it reads and writes is all that verify() needs to know about it.
struct Step {
  enum class Kind : uint8_t { Launch, Copy, Branch, While, Scan };
  Kind kind = Kind::Launch;
  std::shared_ptr<const device::Program> program;   // Launch
  std::vector<Slot> reads, writes;                  // Copy: one each. Branch: index first, then operands
  Slot scratch;                                     // the program's scratch, or the arena of the sub-plans
  std::vector<std::shared_ptr<const Plan>> bodies;  // Branch: one each; While: condition, body; Scan: body
  // Scan: reads are carries, sequences, constants; writes are carries, stacked outputs. While: reads and writes are the carries.
  int64_t carries = 0, sequences = 0, trips = 0;  // While: trips < 0 is no limit
  bool reverse = false;
  std::vector<Slot> other_carries;  // While, Scan: the second set that trips alternate with
  std::vector<bool> in_place;       // one a read: a write may take exactly its place. Empty: none
  std::string label;                // "matmul float32[32,10]", for messages and profiles
  codegen::Cost cost;               // counted only where somebody looks (TANDEM_LOG=step)
  Location location;
};

// An output that needs no step of its own: it is an input's or a constant's bytes.
struct OutputAlias {
  int32_t input = -1, constant = -1;  // both -1: written by steps
  size_t offset = 0;
};

struct Plan {
  std::vector<Step> steps;
  size_t arena_bytes = 0;                    // planned peak of everything that lives only inside a run
  std::vector<codegen::Operand> inputs;      // as they must lie
  std::vector<codegen::Operand> outputs;     // dense
  std::vector<OutputAlias> aliases;          // one an output
  std::vector<int32_t> donated;              // one an output: the input whose place it takes, or -1
  std::vector<device::BufferRef> constants;  // shared by all runs
  Bindings bindings;
  std::string str() const;  // a table that people can read
};

struct Request {
  const ir::Graph& graph;  // expanded: no decompositions left but those that the device keeps
  device::Device& device;
  Bindings bindings;
  std::vector<codegen::Operand> inputs;  // bound layouts; empty: all dense
  std::vector<int32_t> donations = {};   // one an output: the input it may overwrite, or -1. Empty: none
  bool outputs_own_memory = false;       // sub-plans: every output is written to its own slot, none is an alias
};
Plan make_plan(const Request& request);

// Checks a plan by replaying it, knowing nothing of how it was made. InternalError names the step and the invariant of ARCHITECTURE.md.
void verify(const Plan& plan);

}  // namespace tandem::plan
