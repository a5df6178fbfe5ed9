// Ops whose row carries a host routine (sort, unique, factorisations): it runs as it is, on dense operands; others are copied first.
#include "codegen/dense_copy.hpp"
#include "cpu_program.hpp"

namespace tandem::cpu {
namespace {

class HostRoutine final : public CpuProgram {
 public:
  explicit HostRoutine(const codegen::Kernel& k) : op_(k.op), attrs_(k.attrs), in_(k.in), out_(k.out) {
    for (const codegen::Layout& o : in_)
      if (!o.is_dense()) scratch_ += codegen::align_up(byte_size(o.shape, o.dtype));
  }
  std::string_view kernel_name() const override { return "host"; }
  size_t scratch_bytes() const override { return scratch_; }
  bool is_replaceable(size_t operand) const override { return op_->has(ir::kOverwrites) && operand == 0 && in_[0].is_dense(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    std::vector<ir::HostTensor> in, out;
    auto* scratch = static_cast<char*>(args.scratch);
    for (size_t i = 0; i < in_.size(); ++i) {
      void* data = args.pointers[i];
      if (!in_[i].is_dense()) {
        codegen::dense_copy(in_[i], data, scratch);
        data = scratch;
        scratch += codegen::align_up(byte_size(in_[i].shape, in_[i].dtype));
      }
      in.push_back({in_[i].dtype, in_[i].shape, data});
    }
    for (size_t i = 0; i < out_.size(); ++i) out.push_back({out_[i].dtype, out_[i].shape, args.pointers[in_.size() + i]});
    op_->evaluate({*op_, attrs_, in, out, [&pool](int64_t chunks, const std::function<void(int64_t)>& f) { pool.run(chunks, f); }});
  }

 private:
  const ir::OpDef* op_;
  ir::Attrs attrs_;
  std::vector<codegen::Layout> in_, out_;
  size_t scratch_ = 0;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_host_routine(const codegen::Kernel& kernel, Toolbox&, std::string& refusal) {
  if (!kernel.op->evaluate) {
    refusal = "the op has no host routine";
    return nullptr;
  }
  return std::make_shared<HostRoutine>(kernel);
}

}  // namespace tandem::cpu
