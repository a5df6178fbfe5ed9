// OpenBLAS, loaded when the first kernel wants it: a machine without it still runs everything, only slower.
#pragma once
#include <string>

namespace tandem::cpu {

// The address of one of its functions. Null, with a reason, when the library or the function is not there. OpenBLAS itself runs on the
// calling thread only; the engine's threads call it side by side.
void* openblas_symbol(const char* name, std::string& why);

// Sets `function` to the symbol; false with a reason when it is missing.
template <class F> bool openblas_function(const char* name, F& function, std::string& why) {
  function = reinterpret_cast<F>(openblas_symbol(name, why));
  return function != nullptr;
}

}  // namespace tandem::cpu
