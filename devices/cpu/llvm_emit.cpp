// The door to LLVM: its code generator runs on what emit_kernel() wrote, and nothing else does.
#include "llvm_emit.hpp"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <mutex>
#include <unordered_map>

#include "base/text.hpp"
#include "llvm_emit_kernel.hpp"

namespace tandem::cpu {
namespace {

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& t) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  std::string error;
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) internal_error("LLVM has no target for ", triple, ": ", error);
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(triple, t.cpu, "", llvm::TargetOptions(), llvm::Reloc::PIC_,
                                                                          llvm::CodeModel::Small, llvm::CodeGenOptLevel::Less, true));
}

// A TargetMachine serves one thread at a time: each compilation borrows one, and they are kept.
class Machine {
 public:
  explicit Machine(const Target& t) : key_(t.cpu) {
    std::lock_guard lock(mutex());
    auto& idle = machines()[key_];
    machine_ = idle.empty() ? make_machine(t) : std::move(idle.back());
    if (!idle.empty()) idle.pop_back();
  }
  ~Machine() {
    std::lock_guard lock(mutex());
    machines()[key_].push_back(std::move(machine_));
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  llvm::TargetMachine& operator*() const { return *machine_; }

 private:
  using Idle = std::unordered_map<std::string, std::vector<std::unique_ptr<llvm::TargetMachine>>>;
  static std::mutex& mutex() {
    static std::mutex m;
    return m;
  }
  static Idle& machines() {
    static Idle all;
    return all;
  }
  std::string key_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

}  // namespace
}  // namespace tandem::cpu

// Takes the place of __cxa_atexit in this library (see device.cmake): nothing in it is torn down when the process ends, so that a
// thread may still be inside.
extern "C" int __wrap___cxa_atexit(void (*)(void*), void*, void*) { return 0; }  // NOLINT(bugprone-reserved-identifier)

extern "C" __attribute__((visibility("default"))) void tandem_llvm_emit(const tandem::codegen::LoopKernel& kernel,
                                                                        const tandem::cpu::Schedule& schedule,
                                                                        const tandem::cpu::Target& target, std::vector<char>& object) {
  using namespace tandem;
  const cpu::Machine borrowed(target);
  llvm::TargetMachine& machine = *borrowed;
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  cpu::emit_kernel(kernel, schedule, target, context, module);
#ifndef NDEBUG
  std::string why;
  llvm::raw_string_ostream os(why);
  if (llvm::verifyModule(module, &os)) internal_error("LLVM refuses the code of a kernel: ", why, "\n", kernel.key);
#endif
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile))
    internal_error("LLVM cannot write object files for this machine");
  passes.run(module);
  object.assign(bytes.begin(), bytes.end());
}
