// Which cores of the machine compute for whom: the cpu device, and the GPUs that are emulated. Numbers are the system's.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::cores {

std::vector<int> allowed();  // of this process, ascending; never empty
// One for each GPU that TANDEM_EMULATE_GPU asks for, from the last allowed one down; the first stays the cpu device's as long as there
// are two. With more GPUs than that, some share one.
std::vector<int> of_emulated_gpus();
// What the cpu device computes on: TANDEM_CORES, else all that are left. UserError when TANDEM_CORES is not a list of allowed cores.
std::vector<int> of_cpu();
bool are_pinned();  // TANDEM_CORES names some: threads stay on them

std::vector<int> parse(std::string_view text);  // "0-3,6"
std::string text(std::span<const int> cores);   // the same way back
// Part i of n nearly equal ones, in order; each has at least one core, so with too few some share.
std::vector<int> part(std::span<const int> cores, int i, int n);

}  // namespace tandem::cores
