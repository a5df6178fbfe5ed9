// Indices made non-negative, with a record of the first one that is out of range.
#pragma once
#include "pieces.hpp"

namespace tandem::opencl {

class IndexCheck {
 public:
  enum class Gives : uint8_t {
    Indices,  // each one, of its own type; 0 for one that is out of range, so that who reads with it stays in bounds
    Places,   // each one as a long; -1 for one that is out of range
    Rows,     // for each tuple along the last axis the number of the slice that it means, as a long; -1 likewise
  };
  // indices: dense, `tuples` of sizes.size() each. `complaint` is told the position among all indices.
  IndexCheck(DType indices, int64_t tuples, std::vector<int64_t> sizes, Gives gives, const Core& core, std::string_view what,
             Complaint complaint);
  void enqueue(const Core& core, cl_command_queue queue, const void* indices, const void* out) const;

 private:
  std::vector<int64_t> sizes_;
  int64_t tuples_;
  size_t group_items_;
  std::shared_ptr<const Code> code_;
  std::shared_ptr<const Complaint> complaint_;
};

// How many items look through numbers together, as one group: so that the first wrong one is known without atomics.
size_t checking_items(const Core& core);
// Text that makes each item's `bad`, `count` for none, the group's least, and records it. $ELEMENT is the wrong element as a long.
std::string recording(size_t items, std::string_view element);

}  // namespace tandem::opencl
