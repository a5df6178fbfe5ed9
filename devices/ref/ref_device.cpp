// The reference: interprets every kernel on the calling thread. Slow, plain, and what other devices are compared with.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/text.hpp"
#include "codegen/dense_copy.hpp"
#include "codegen/interpret.hpp"
#include "device/device.hpp"

namespace tandem::ref {
namespace {

using codegen::Operand;

// Counts what is in use and keeps the limit; the memory itself is malloc's.
class Memory {
 public:
  explicit Memory(size_t limit) : limit_(limit) {}
  void* take(size_t bytes) {
    const size_t rounded = codegen::align_up(bytes ? bytes : 1);
    if (rounded < bytes || rounded > limit_ || in_use_.load() > limit_ - rounded) fail(bytes);
    void* p = std::aligned_alloc(codegen::kAlignment, rounded);
    if (!p) fail(bytes);
    const size_t now = in_use_.fetch_add(rounded) + rounded;
    for (size_t peak = peak_.load(); now > peak && !peak_.compare_exchange_weak(peak, now);) {
    }
    return p;
  }
  void give_back(void* p, size_t bytes) {
    std::free(p);
    in_use_.fetch_sub(codegen::align_up(bytes ? bytes : 1));
  }
  size_t in_use() const { return in_use_.load(); }
  size_t peak() const { return peak_.load(); }

 private:
  [[noreturn]] void fail(size_t bytes) const {
    resource_error(ErrorCode::ResourceExhausted, "ref: cannot allocate ", bytes, " bytes (", bytes >> 20, " MiB): ", in_use() >> 20, " of ",
                   limit_ >> 20, " MiB are in use\n  hint: a smaller batch, or fewer tensors kept alive");
  }
  size_t limit_;
  std::atomic<size_t> in_use_{0}, peak_{0};
};

class RefBuffer final : public device::Buffer {
 public:
  RefBuffer(device::Device& owner, Memory& memory, size_t bytes) : Buffer(owner, memory.take(bytes), bytes), memory_(memory) {}
  ~RefBuffer() override { memory_.give_back(data(), bytes()); }

 private:
  Memory& memory_;
};

class RefProgram final : public device::Program {
 public:
  explicit RefProgram(const codegen::Kernel& k) : kernel_(k) {}
  std::string_view kernel_name() const override { return kernel_.stages.empty() ? "host" : "interpreted"; }
  size_t scratch_bytes() const override { return kernel_.partial_bytes(); }

  void run(const device::LaunchArgs& args) const {
    const std::span<void* const> in(args.pointers, kernel_.in.size()), out(args.pointers + kernel_.in.size(), kernel_.out.size());
    if (kernel_.stages.empty()) return evaluate(in, out);
    if (kernel_.stages.size() == 1) return codegen::interpret(kernel_.stages[0], in, out);
    std::vector<void*> all(in.begin(), in.end()), partials;
    for (size_t i = 0; i < kernel_.partials.size(); ++i) partials.push_back(static_cast<char*>(args.scratch) + kernel_.partial_offset(i));
    codegen::interpret(kernel_.stages[0], in, partials);
    all.insert(all.end(), partials.begin(), partials.end());
    codegen::interpret(kernel_.stages[1], all, out);
  }

 private:
  void evaluate(std::span<void* const> in, std::span<void* const> out) const {
    std::vector<ir::HostTensor> operands, results;
    std::vector<std::vector<std::byte>> copies;
    for (size_t i = 0; i < in.size(); ++i) {
      const Operand& o = kernel_.in[i];
      void* data = in[i];
      if (!o.is_dense()) {
        copies.emplace_back(byte_size(o.shape, o.dtype));
        codegen::dense_copy(o, data, copies.back().data());
        data = copies.back().data();
      }
      operands.push_back({o.dtype, o.shape, data});
    }
    for (size_t i = 0; i < out.size(); ++i) results.push_back({kernel_.out[i].dtype, kernel_.out[i].shape, out[i]});
    kernel_.op->evaluate({*kernel_.op, kernel_.attrs, operands, results, [](int64_t chunks, const std::function<void(int64_t)>& f) {
                            for (int64_t i = 0; i < chunks; ++i) f(i);
                          }});
  }
  codegen::Kernel kernel_;
};

class RefStream final : public device::Stream {
 public:
  void launch(const device::Program& program, const device::LaunchArgs& args) override {
    static_cast<const RefProgram&>(program).run(args);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes) std::memmove(to, from, bytes);
  }
  void upload(void* to, const void* host, size_t bytes) override { copy(to, host, bytes); }
  void download(void* host, const void* from, size_t bytes) override { copy(host, from, bytes); }
  void fill(void* to, uint8_t value, size_t bytes) override {
    if (bytes) std::memset(to, value, bytes);
  }
  // Everything before has already happened.
  device::Event record() override { return {}; }
  void wait(device::Event) override {}
  void synchronize() override {}
};

class RefDevice final : public device::Device {
 public:
  explicit RefDevice(size_t limit) : memory_(limit) {
    info_.name = "ref";
    info_.description = "interpreter, 1 thread";
    info_.memory_bytes = limit;
    info_.host_memory = true;
  }
  const device::DeviceInfo& info() const override { return info_; }
  device::BufferRef allocate(size_t bytes) override { return device::BufferRef(new RefBuffer(*this, memory_, bytes)); }
  std::unique_ptr<device::Stream> make_stream() override { return std::make_unique<RefStream>(); }
  std::shared_ptr<const device::Program> load(const codegen::Kernel& kernel) override {
    if (kernel.stages.empty() && !kernel.op->evaluate) user_error(kernel.op->name, ": the op has neither loops nor a host routine");
    return std::make_shared<RefProgram>(kernel);
  }
  size_t bytes_in_use() const override { return memory_.in_use(); }
  size_t peak_bytes() const override { return memory_.peak(); }

 private:
  device::DeviceInfo info_;
  Memory memory_;
};

constexpr size_t kMemoryBytes = size_t{16} << 30;

}  // namespace

std::unique_ptr<device::Device> make_device() { return std::make_unique<RefDevice>(kMemoryBytes); }

}  // namespace tandem::ref
