// Code generated from a kernel's loops, stage by stage.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "generated.hpp"
#include "llvm_emit.hpp"

namespace tandem::cpu {
namespace {

constexpr double kParallelWork = 1 << 16;  // below this, waking a thread costs more than it gives
constexpr double kChunkWork = 1 << 15;
constexpr int64_t kMostChunks = 32;  // for each thread: enough for all to end together, and few enough that starting one costs nothing

// The folder of the library or program that this code is part of.
std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &info) || !info.dli_fname) return ".";
  return std::filesystem::absolute(info.dli_fname).parent_path().string();
}

EmitFn load_emitter() {
  const std::string here = own_folder();
  std::string tried;
  // Beside the library; for a program that has the device linked in, in the folder `lib` beside its own.
  for (const std::string& folder : {here, here + "/../lib"}) {
    const std::string path = folder + "/libtandem_llvm.so";
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      if (void* symbol = dlsym(library, kEmitSymbol)) return reinterpret_cast<EmitFn>(symbol);
    const char* why = dlerror();
    tried += cat("\n  tried ", path, ": ", why ? why : "");
  }
  resource_error("cpu: the code generator libtandem_llvm.so cannot be loaded", tried, "\n  hint: it belongs beside the tandem library");
}

EmitFn emitter() {
  static const EmitFn emit = load_emitter();
  return emit;
}

// Chunks only say who computes what, never how: any number of them gives the same bits.
int64_t chunk_count(const Stage& s, const ThreadPool& pool) {
  return std::max<int64_t>(1, std::min(static_cast<int64_t>(s.schedule.work() / kChunkWork), kMostChunks * pool.threads()));
}

void run_strips(const Stage& s, void* const* pointers, ThreadPool& pool) {
  const int64_t rows = s.schedule.rows, columns = s.schedule.columns, tile = s.schedule.column_tile;
  const int64_t strips = (columns + tile - 1) / tile;
  const int64_t wanted = std::max<int64_t>(1, chunk_count(s, pool) / strips);
  const int64_t chunk = (rows + wanted - 1) / wanted, row_chunks = (rows + chunk - 1) / chunk;
  const auto one = [&](int64_t i) {
    const int64_t row = i / strips * chunk, column = i % strips * tile;
    s.function(pointers, s.params.data(), row, std::min(rows, row + chunk), column, std::min(columns, column + tile));
  };
  if (s.schedule.work() >= kParallelWork)
    pool.run(row_chunks * strips, one);
  else
    for (int64_t i = 0; i < row_chunks * strips; ++i) one(i);
}

}  // namespace

Stage compile_stage(const codegen::LoopKernel& loops, Toolbox& tools) {
  const Schedule s = schedule(loops, tools.target.lanes);
  std::string key =
      cat(TANDEM_EMITTER_KEY, " ", tools.target.cpu, " ", tools.target.lanes, " mode", static_cast<int>(s.mode), " x", s.unroll);
  if (s.window)
    for (const int64_t extent : loops.reduce_extents) key += cat(" w", extent);
  if (s.keeps) key += " keeps";
  key += " " + loops.key;
  std::shared_ptr<const Code> code = tools.cache.get(key, [&](std::vector<char>& object) { emitter()(loops, s, tools.target, object); });
  const auto function = reinterpret_cast<KernelFunction>(code->entry());
  return {function, loops.params, s, std::move(code)};
}

void run_stage(const Stage& s, void* const* pointers, ThreadPool& pool) {
  const int64_t rows = s.schedule.rows, columns = s.schedule.columns;
  if (rows == 0 || (columns == 0 && s.schedule.mode != Mode::Row)) return;
  if (s.schedule.column_tile > 0 && columns > s.schedule.column_tile) return run_strips(s, pointers, pool);
  const double work = s.schedule.work();
  if (work < kParallelWork || pool.threads() == 1) return s.function(pointers, s.params.data(), 0, rows, 0, columns);
  const int64_t wanted = chunk_count(s, pool);
  if (rows >= wanted || !s.schedule.columns_divide) {
    const int64_t chunk = std::max<int64_t>(1, rows / wanted), chunks = (rows + chunk - 1) / chunk;
    pool.run(chunks, [&](int64_t i) { s.function(pointers, s.params.data(), i * chunk, std::min(rows, (i + 1) * chunk), 0, columns); });
    return;
  }
  const int64_t per_row = std::max<int64_t>(1, wanted / rows), unit = s.schedule.column_unit;
  const int64_t width = ((columns + per_row - 1) / per_row + unit - 1) / unit * unit, cuts = (columns + width - 1) / width;
  pool.run(rows * cuts, [&](int64_t i) {
    const int64_t row = i / cuts, column = i % cuts * width;
    s.function(pointers, s.params.data(), row, row + 1, column, std::min(columns, column + width));
  });
}

namespace {

class Generated final : public CpuProgram {
 public:
  Generated(const codegen::Kernel& k, Toolbox& tools) : inputs_(k.in.size()), outputs_(k.out.size()) {
    for (const codegen::LoopKernel& loops : k.stages) stages_.push_back(compile_stage(loops, tools));
    for (size_t i = 0; i < k.partials.size(); ++i) partial_offsets_.push_back(k.partial_offset(i));
    scratch_ = k.partial_bytes();
  }
  std::string_view kernel_name() const override { return "generated"; }
  size_t scratch_bytes() const override { return scratch_; }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    if (stages_.size() == 1) return run_stage(stages_[0], args.pointers.data(), pool);
    // The first stage writes partial results; the second has them behind the inputs, and then the outputs.
    constexpr size_t kFew = 48;  // fusion stays far below
    void* few[kFew];
    std::vector<void*> many;
    const size_t partials = partial_offsets_.size(), count = inputs_ + partials + outputs_;
    if (count > kFew) many.resize(count);
    void** pointers = count > kFew ? many.data() : few;
    std::ranges::copy(args.pointers.first(inputs_), pointers);
    for (size_t i = 0; i < partials; ++i) pointers[inputs_ + i] = static_cast<char*>(args.scratch) + partial_offsets_[i];
    run_stage(stages_[0], pointers, pool);
    std::ranges::copy(args.pointers.subspan(inputs_, outputs_), pointers + inputs_ + partials);
    run_stage(stages_[1], pointers, pool);
  }

 private:
  size_t inputs_, outputs_, scratch_ = 0;
  std::vector<Stage> stages_;
  std::vector<size_t> partial_offsets_;
};

}  // namespace

// Compiles a copy, whose code nobody wants: what LLVM does once in a process is done then. At exit the thread may still run: it touches
// nothing that is destroyed.
void prepare_generator(const Target& target) try {
  std::thread([target] {
    try {
      const Working working(Working::Thread::Own);
      const codegen::Layout x = codegen::Layout::dense(DType::F32, {1 << 10});
      const ir::Loops copy{.extents = {x.shape[0]}, .results = {ir::load(0, x.dtype, {ir::axis(0)})}};
      const codegen::LoopKernel loops = codegen::canonical(copy, {}, {&x, 1}, {&x.dtype, 1});
      std::vector<char> object;
      emitter()(loops, schedule(loops, target.lanes), target, object);
    } catch (const Error& e) {  // the first kernel meets it again and tells the caller
      log::line(log::Topic::Compile, "cannot prepare the code generator: ", e.what());
    }
  }).detach();
} catch (const std::system_error& e) {  // no more threads: the first kernel loads it
  log::line(log::Topic::Compile, "cannot prepare the code generator: ", e.what());
}

std::shared_ptr<const CpuProgram> make_generated(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  if (kernel.stages.empty()) {
    refusal = "the op has no loops";
    return nullptr;
  }
  return std::make_shared<Generated>(kernel, tools);
}

}  // namespace tandem::cpu
