#include "object_loader.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/text.hpp"

// What generated code calls that no library has in this form: lgamma of the C library writes a global, these do not.
extern "C" {
static float tandem_lgammaf(float x) {
  int sign;
  return lgammaf_r(x, &sign);
}
static double tandem_lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
}

namespace tandem::cpu {
namespace {

constexpr size_t kStubBytes = 16;  // jmp *0(%rip) and the address behind it: reaches functions further than 2 GiB away

void* external(const std::string& name) {
  if (name == "tandem_lgammaf") return reinterpret_cast<void*>(&tandem_lgammaf);
  if (name == "tandem_lgamma") return reinterpret_cast<void*>(&tandem_lgamma);
  static void* vector_math = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
  static void* math = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
  for (void* library : {vector_math, math})
    if (library)
      if (void* p = dlsym(library, name.c_str())) return p;
  if (void* p = dlsym(RTLD_DEFAULT, name.c_str())) return p;
  resource_error("a generated kernel needs the function ", name,
                 ", which this machine's C library does not have (glibc 2.35 or newer is needed)");
}

class Loader {
 public:
  explicit Loader(std::span<const char> object) : object_(object) {}

  std::unique_ptr<Code> run(const char* entry_symbol) {
    read_header();
    lay_out();
    void* memory = mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) resource_error(ErrorCode::ResourceExhausted, "no memory for ", total_, " bytes of machine code");
    auto code = std::make_unique<Code>(memory, total_);  // unmaps if something below throws
    base_ = static_cast<char*>(memory);
    for (size_t i = 0; i < sections_.size(); ++i)
      if (placed_[i] && sections_[i].sh_type != SHT_NOBITS && sections_[i].sh_size)
        std::memcpy(base_ + offsets_[i], bytes_at(sections_[i].sh_offset, sections_[i].sh_size), sections_[i].sh_size);
    for (const Elf64_Shdr& s : sections_)
      if (s.sh_type == SHT_RELA && s.sh_info < sections_.size() && placed_[s.sh_info]) relocate(s);
    char* entry = nullptr;
    for (size_t i = 0; i < symbols_.size(); ++i)
      if (symbols_[i].st_shndx != SHN_UNDEF && symbol_name(i) == entry_symbol) entry = symbol_address(i);
    if (!entry) internal_error("object defines no ", entry_symbol);
    if (mprotect(memory, total_, PROT_READ | PROT_EXEC) != 0) resource_error("the system does not allow executable memory");
    code->set_entry(entry);
    return code;
  }

 private:
  const char* bytes_at(uint64_t offset, uint64_t size) const {
    if (offset > object_.size() || size > object_.size() - offset) internal_error("object is truncated");
    return object_.data() + offset;
  }
  template <class T> std::vector<T> table(uint64_t offset, uint64_t count) const {
    if (count > object_.size() / sizeof(T)) internal_error("object is damaged");
    std::vector<T> t(count);
    if (count) std::memcpy(t.data(), bytes_at(offset, count * sizeof(T)), count * sizeof(T));
    return t;
  }

  void read_header() {
    Elf64_Ehdr h;
    std::memcpy(&h, bytes_at(0, sizeof h), sizeof h);
    if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_machine != EM_X86_64 || h.e_type != ET_REL ||
        h.e_shentsize != sizeof(Elf64_Shdr))
      internal_error("not an x86-64 object");
    sections_ = table<Elf64_Shdr>(h.e_shoff, h.e_shnum);
    for (const Elf64_Shdr& s : sections_)
      if (s.sh_type == SHT_SYMTAB) {
        symbols_ = table<Elf64_Sym>(s.sh_offset, s.sh_size / sizeof(Elf64_Sym));
        if (s.sh_link >= sections_.size()) internal_error("object is damaged");
        const Elf64_Shdr& names = sections_[s.sh_link];
        names_.assign(bytes_at(names.sh_offset, names.sh_size), names.sh_size);
      }
  }

  void lay_out() {
    offsets_.assign(sections_.size(), 0);
    placed_.assign(sections_.size(), false);
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      // Unwind tables are not needed: nothing is thrown through a kernel.
      if (!(s.sh_flags & SHF_ALLOC) || (s.sh_type != SHT_PROGBITS && s.sh_type != SHT_NOBITS)) continue;
      if (s.sh_size > (1u << 28) || s.sh_addralign > 4096) internal_error("object is damaged");
      const size_t align = s.sh_addralign ? s.sh_addralign : 1;
      total_ = (total_ + align - 1) / align * align;
      offsets_[i] = total_;
      placed_[i] = true;
      total_ += s.sh_size;
    }
    total_ = (total_ + kStubBytes - 1) / kStubBytes * kStubBytes;
    for (size_t i = 1; i < symbols_.size(); ++i)
      if (symbols_[i].st_shndx == SHN_UNDEF) {
        stubs_[i] = total_;
        total_ += kStubBytes;
      }
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    total_ = (total_ + page - 1) / page * page;
    if (total_ == 0) internal_error("object is empty");
  }

  std::string symbol_name(size_t i) const {
    if (symbols_[i].st_name >= names_.size()) internal_error("object is damaged");
    return names_.c_str() + symbols_[i].st_name;
  }
  char* symbol_address(size_t i) {
    if (i >= symbols_.size()) internal_error("object is damaged");
    const Elf64_Sym& s = symbols_[i];
    if (s.st_shndx == SHN_UNDEF) return stub(i);
    if (s.st_shndx >= sections_.size() || !placed_[s.st_shndx] || s.st_value > sections_[s.st_shndx].sh_size)
      internal_error("object is damaged");
    return base_ + offsets_[s.st_shndx] + s.st_value;
  }
  char* stub(size_t i) {
    const auto it = stubs_.find(i);
    if (it == stubs_.end()) internal_error("object is damaged");
    char* p = base_ + it->second;
    if (p[0] == 0) {
      static constexpr unsigned char kJump[6] = {0xff, 0x25, 2, 0, 0, 0};  // jmp *2(%rip): the address sits at an 8-byte boundary
      void* target = external(symbol_name(i));
      std::memcpy(p, kJump, sizeof kJump);
      std::memcpy(p + 8, &target, sizeof target);
    }
    return p;
  }

  void relocate(const Elf64_Shdr& s) {
    const Elf64_Shdr& target = sections_[s.sh_info];
    for (const Elf64_Rela& r : table<Elf64_Rela>(s.sh_offset, s.sh_size / sizeof(Elf64_Rela))) {
      const auto type = ELF64_R_TYPE(r.r_info);
      const size_t width = type == R_X86_64_64 ? 8 : 4;
      if (r.r_offset > target.sh_size || target.sh_size - r.r_offset < width) internal_error("object is damaged");
      char* place = base_ + offsets_[s.sh_info] + r.r_offset;
      char* symbol = symbol_address(ELF64_R_SYM(r.r_info));
      if (type == R_X86_64_64) {
        const uint64_t v = reinterpret_cast<uint64_t>(symbol) + static_cast<uint64_t>(r.r_addend);
        std::memcpy(place, &v, sizeof v);
      } else if (type == R_X86_64_PC32 || type == R_X86_64_PLT32) {
        // Unsigned, because a damaged object may name any addend.
        const auto v = static_cast<int64_t>(reinterpret_cast<uint64_t>(symbol) - reinterpret_cast<uint64_t>(place) +
                                            static_cast<uint64_t>(r.r_addend));
        if (v != static_cast<int32_t>(v)) internal_error("relocation out of range");
        const auto v32 = static_cast<int32_t>(v);
        std::memcpy(place, &v32, sizeof v32);
      } else {
        internal_error("unknown relocation ", type);
      }
    }
  }

  std::span<const char> object_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::string names_;
  std::vector<size_t> offsets_;
  std::vector<bool> placed_;
  std::map<size_t, size_t> stubs_;
  size_t total_ = 0;
  char* base_ = nullptr;
};

}  // namespace

Code::~Code() { munmap(base_, bytes_); }

std::unique_ptr<Code> load_object(std::span<const char> object, const char* entry_symbol) { return Loader(object).run(entry_symbol); }

}  // namespace tandem::cpu
