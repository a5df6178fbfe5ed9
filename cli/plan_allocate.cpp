// `tandem plan --allocate`: addresses for the blocks of a file.
#include <chrono>
#include <cstdio>

#include "base/text.hpp"
#include "block_file.hpp"
#include "command.hpp"

namespace tandem::cli {
namespace {

Exit run(const Arguments& arguments) {
  arguments.allow({"allocate", "capacity", "alignment", "effort", "out"});
  const std::string path = arguments.required("allocate");
  const auto capacity = static_cast<size_t>(arguments.number("capacity", 1).value_or(0));
  const auto alignment = static_cast<size_t>(arguments.number("alignment", 1).value_or(1));
  const std::optional<int64_t> given_effort = arguments.number("effort", 0);
  if (alignment > size_t{1} << 30) throw UsageError(cat("--alignment is ", alignment, ", more than ", size_t{1} << 30));
  const std::optional<std::string> out = arguments.text("out");

  const BlockFile file = read_blocks(path);
  const int64_t effort = given_effort.value_or(plan::thorough_effort(file.blocks.size()));
  const auto start = std::chrono::steady_clock::now();
  const plan::Allocation a = plan::allocate(file.blocks, {.alignment = alignment, .capacity = capacity, .effort = effort});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%zu buffers, lower bound %zu, peak %zu, %.3f s, %lld steps\n", file.blocks.size(), a.bound, a.peak, seconds,
              static_cast<long long>(a.steps));
  if (capacity > 0 && a.bound > capacity)
    resource_error("no allocation is within the capacity ", capacity, ", the least possible is ", a.bound, " or more");
  if (capacity > 0 && a.peak > capacity)
    resource_error("nothing within the capacity ", capacity, " was found in ", a.steps, " steps, the best peak is ", a.peak,
                   "; a larger --effort searches longer");
  if (out) write_blocks(*out, file, a.offsets);
  return Exit::Done;
}

}  // namespace

const PlanMode kPlanAllocate = {"allocate", "addresses for blocks of memory whose lives are known, within a capacity",
                                R"(usage: tandem plan --allocate FILE [--capacity N] [--out FILE] [--alignment N] [--effort N]

Gives each block of a file an address, so that no two that are alive at once overlap, and prints how many there are, the
lower bound (the most bytes alive at once, or more where the search proved it), the peak, and what the search took.

  --allocate FILE  comma-separated, the first line names the columns id, lower, upper and size. A block of `size` bytes is
                   alive from `lower` until before `upper`.
  --capacity N     bytes that must be enough; without it, the peak is made as small as is found
  --out FILE       receives the same columns and the offset of each block; not written when the blocks do not fit
  --alignment N    every offset is a multiple of it, and blocks are rounded up to it; 1 if not given
  --effort N       steps to search at most, 0 for quick rules alone. Steps are counted and not timed, so the result is the
                   same on every machine. 200 million take about a second. If not given: 400 million, and 20
                   thousand more for each block

Exit code: 0 when the blocks fit, 1 when they do not or a file is wrong, 2 for a wrong command line.
)",
                                run};

}  // namespace tandem::cli
