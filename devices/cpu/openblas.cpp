#include "openblas.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include "base/env.hpp"
#include "base/text.hpp"
#include "host_target.hpp"

namespace tandem::cpu {
namespace {

struct Library {
  void* handle = nullptr;
  std::string why;
};

// A variable for as long as the library is being loaded, which is when it reads its settings. A user's own value stands.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name), ours_(!std::getenv(name)) {
    if (ours_) setenv(name, value, 0);
  }
  ~Setting() {
    if (ours_) unsetenv(name_);  // it must not reach another OpenBLAS in this process, such as NumPy's
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  bool ours_;
};

Library open_library() {
  // It would start threads that never work, and takes processors that it does not know for ones of 2004: a fifth of the speed.
  const Setting threads("OPENBLAS_NUM_THREADS", "1");
  const Setting core("OPENBLAS_CORETYPE", host_levels().avx512 && env::get("TANDEM_CPU_ISA") != "avx2" ? "SkylakeX" : "Haswell");
  Library l;
  l.handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!l.handle) {
    const char* error = dlerror();
    l.why = cat("OpenBLAS cannot be loaded: ", error ? error : "unknown reason");
    return l;
  }
  if (void* f = dlsym(l.handle, "openblas_set_num_threads")) reinterpret_cast<void (*)(int)>(f)(1);
  return l;
}

}  // namespace

void* openblas_symbol(const char* name, std::string& why) {
  static const Library library = open_library();
  if (!library.handle) {
    why = library.why;
    return nullptr;
  }
  void* p = dlsym(library.handle, name);
  if (!p) why = cat("this OpenBLAS has no function ", name);
  return p;
}

}  // namespace tandem::cpu
