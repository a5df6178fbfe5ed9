// Which cores of the machine compute for whom: the cpu device, GPUs that are emulated, input pipelines. Numbers are the system's.
#pragma once
#include <pthread.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::cores {

std::vector<int> allowed();  // of this process, ascending, as they were when somebody asked first; never empty
// One for each GPU that TANDEM_EMULATE_GPU asks for, from the last allowed one down; the first stays the cpu device's as long as there
// are two. With more GPUs than that, some share one.
std::vector<int> of_emulated_gpus();
// What the cpu device computes on: TANDEM_CORES, else all that are left. UserError when TANDEM_CORES is not a list of allowed cores.
std::vector<int> of_cpu();
bool are_pinned();  // TANDEM_CORES names some: threads stay on them
// Where the threads of input pipelines stay: TANDEM_DATA_CORES, which the cpu device then leaves to them as long as it has others, else all
// that are no emulated GPU's. UserError as above.
std::vector<int> of_pipelines();
bool pipelines_have_their_own();  // TANDEM_DATA_CORES names some: what pipelines compute stays on them too
// The most threads that the autotuned stages of a pipeline have together; 0: as many as the pipelines' cores.
void set_pipeline_threads(int threads);
int pipeline_threads();

// The thread, and those that it starts, may run there and nowhere else. ResourceError when the system refuses.
void keep(pthread_t thread, std::span<const int> cores);
// The calling thread is one of ours that has been given its cores: visit() leaves it there.
void claim_this_thread();
// A thread of the program's computes on a device that has cores of its own: it goes there, and stays until it visits another such device.
void visit(std::span<const int> cores);
// While it lives, what the calling thread starts may run on all cores: a driver's own threads.
class Everywhere {
 public:
  Everywhere();
  ~Everywhere();
  Everywhere(const Everywhere&) = delete;
  Everywhere& operator=(const Everywhere&) = delete;

 private:
  std::vector<int> before_;
};

std::vector<int> parse(std::string_view text, std::string_view variable = "TANDEM_CORES");  // "0-3,6"
std::string text(std::span<const int> cores);                                               // the same way back
// Part i of n nearly equal ones, in order; each has at least one core, so with too few some share.
std::vector<int> part(std::span<const int> cores, int i, int n);

}  // namespace tandem::cores
