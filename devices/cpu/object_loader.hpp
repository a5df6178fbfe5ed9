// Places a relocatable ELF object (x86-64, as llvm_emit writes them) into executable memory. Small on purpose: with it, a kernel from
// the disk cache runs without LLVM being loaded at all.
#pragma once
#include <memory>
#include <span>

namespace tandem::cpu {

// Executable memory; unmapped with the last reference.
class Code {
 public:
  Code(void* base, size_t bytes) : base_(base), bytes_(bytes) {}
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  void* entry() const { return entry_; }
  void set_entry(void* entry) { entry_ = entry; }

 private:
  void* base_;
  size_t bytes_;
  void* entry_ = nullptr;
};

// InternalError when the object is damaged or uses something unknown: every offset in it is checked before it is used.
std::unique_ptr<Code> load_object(std::span<const char> object, const char* entry_symbol);

}  // namespace tandem::cpu
