// Code from the kernel's own loops: always there, for everything that loops can say.
#include "generated.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace tandem::opencl {

GeneratedStage::GeneratedStage(const codegen::LoopKernel& k, const Core& core, std::string_view what)
    : schedule_(codegen::gpu_schedule(k, core.target)), params_(k.params) {
  const codegen::CSource source = codegen::render_c(k, schedule_, *core.dialect);
  const size_t operands = k.inputs.size() + k.outputs.size();
  const size_t argument_bytes = operands * (sizeof(cl_mem) + 8) + 8 + (source.params_in_memory ? sizeof(cl_mem) : 8 * k.params.size());
  if (argument_bytes > core.most_argument_bytes)
    resource_error(ErrorCode::ResourceExhausted, what, ": ", operands, " operands take ", argument_bytes, " bytes of arguments, ",
                   core.name, " allows ", core.most_argument_bytes, "\n  hint: join fewer tensors in one call");
  code_ = core.codes->get(core, source.text, what);
  if (source.params_in_memory) {
    const size_t bytes = 8 * params_.size();
    device::Account& account = core.memory->account();  // beside what plans know of, as long as the program lives
    account.take(bytes);
    cl_int status = CL_SUCCESS;
    cl_mem m = functions().CreateBuffer(core.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes, params_.data(), &status);
    if (!m) account.give_back(bytes);
    check(status, "making memory for parameters");
    params_memory_ = {m, [&account, bytes](cl_mem x) {
                        functions().ReleaseMemObject(x);
                        account.give_back(bytes);
                      }};
  }
}

void GeneratedStage::enqueue(const Core& core, cl_command_queue queue, std::span<const void* const> operands) const {
  if (schedule_.units == 0) return;
  Launch launch(core, *code_);
  for (const void* p : operands) launch.memory(p);
  launch.number(schedule_.units);
  if (params_memory_)
    launch.buffer(params_memory_.get());
  else
    for (const int64_t p : params_) launch.number(p);
  const auto groups = static_cast<size_t>(schedule_.groups()), items = static_cast<size_t>(schedule_.group_items);
  launch.run(queue, {&groups, 1}, {&items, 1});
}

namespace {

class GeneratedProgram final : public OpenClProgram {
 public:
  GeneratedProgram(const codegen::Kernel& kernel, const Core& core) : inputs_(kernel.in.size()), scratch_bytes_(kernel.partial_bytes()) {
    for (size_t i = 0; i < kernel.partials.size(); ++i) partial_offsets_.push_back(kernel.partial_offset(i));
    for (const codegen::LoopKernel& k : kernel.stages) stages_.emplace_back(k, core, kernel.op->name);
  }
  std::string_view kernel_name() const override { return "generated"; }
  size_t scratch_bytes() const override { return scratch_bytes_; }

  void enqueue(const Core& core, cl_command_queue queue, const device::LaunchArgs& args) const override {
    for (size_t s = 0; s < stages_.size(); ++s) {
      std::vector<const void*> operands(args.pointers.begin(), args.pointers.begin() + static_cast<std::ptrdiff_t>(inputs_));
      // Partials are outputs of the first stage and inputs of the last.
      for (const size_t offset : partial_offsets_) operands.push_back(static_cast<const char*>(args.scratch) + offset);
      if (s + 1 == stages_.size())
        for (const void* p : args.pointers.subspan(inputs_)) operands.push_back(p);
      stages_[s].enqueue(core, queue, operands);
    }
  }

 private:
  size_t inputs_, scratch_bytes_;
  std::vector<size_t> partial_offsets_;
  std::vector<GeneratedStage> stages_;
};

}  // namespace

std::shared_ptr<const OpenClProgram> make_generated(const codegen::Kernel& kernel, Core& core, std::string& refusal) {
  if (kernel.stages.empty()) {
    refusal = kernel.op->evaluate ? "the row has only a routine on host memory" : "the row has no loops";
    return nullptr;
  }
  if (!core.has_double && std::ranges::any_of(kernel.stages, codegen::uses_double)) {
    refusal = "the device has no double (cl_khr_fp64)";
    return nullptr;
  }
  return std::make_shared<GeneratedProgram>(kernel, core);
}

}  // namespace tandem::opencl
