#include "code_cache.hpp"

#include "schedule.hpp"

namespace tandem::cpu {
namespace {

constexpr size_t kMostLoaded = 8192;  // pieces of code in memory, a page or two each

}  // namespace

CodeCache::CodeCache(std::string folder, uint64_t limit_bytes) : codes_(kMostLoaded, std::move(folder), limit_bytes) {}

std::shared_ptr<const Code> CodeCache::get(const std::string& key, const Build& build) {
  const auto load = [](const std::vector<char>& object) -> std::shared_ptr<const Code> {
    try {
      return load_object(object, kKernelSymbol);
    } catch (const InternalError&) {  // sound by its checksum and still not loadable: written by something else
      return nullptr;
    }
  };
  return codes_.get(key, load, [&](std::vector<char>& object) {
    build(object);
    return load_object(object, kKernelSymbol);
  });
}

}  // namespace tandem::cpu
