// Files of a pipeline's cache, which snapshots are too, and entries of the kernel cache.
#include <cstring>

#include "base/blob_cache.hpp"
#include "code_cache.hpp"
#include "data/record_format.hpp"
#include "data/state.hpp"
#include "data_formats.hpp"

namespace tandem::fuzz {
namespace {

namespace fs = std::filesystem;
using data::Dataset;

Dataset cached(const std::string& file) { return Dataset::range(12).batch(5).cache(file); }

std::string framed(const std::string& record) {
  const data::RecordFrame frame = data::frame_of(record);
  return std::string(frame.head, sizeof frame.head) + record + std::string(frame.tail, sizeof frame.tail);
}

std::string some_element() {
  data::Writer w;
  w.put(data::Element{Tensor::arange(5)});
  return w.bytes();
}

void run_cache(const std::string& input, const fs::path& folder) { read_elements(cached(write_bytes(folder / "cache", input).string())); }

// The record inside a frame whose checksums are sound.
std::string mutate_cache(const std::string& input, Random& random) {
  if (random.one_in(3)) return mutated(input, random);
  return framed(mutated(some_element(), random)) + (random.one_in(2) ? input : framed("end"));
}

constexpr char kKey[] = "fuzz";
constexpr size_t kHeaderBytes = 32;  // magic, bytes of the key, bytes of the object, checksum

// FNV-1a, as the cache has it: without it every change would only be found to be one.
uint64_t checksum(std::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325ULL;
  for (const unsigned char c : bytes) h = (h ^ c) * 0x100000001b3ULL;
  return h;
}

std::string entry_of(const std::string& object) {
  const std::string body = kKey + object;
  const uint64_t numbers[] = {sizeof kKey - 1, object.size(), checksum(body)};
  return "tandemk1" + std::string(reinterpret_cast<const char*>(numbers), sizeof numbers) + body;
}

std::string mutate_entry(const std::string& input, Random& random) {
  if (random.one_in(4) || input.size() <= kHeaderBytes + sizeof kKey) return mutated(input, random);
  return entry_of(mutated(input.substr(kHeaderBytes + sizeof kKey - 1), random));
}

void run_entry(const std::string& input, const fs::path& folder) {
  const fs::path kernels = folder / "kernels";
  fs::remove_all(kernels);
  BlobCache(kernels.string()).write(kKey, {'-'});  // so that the entry's name is known
  write_bytes(fs::directory_iterator(kernels)->path(), input);
  try {
    cpu::CodeCache(kernels.string()).get(kKey, [](std::vector<char>& object) { object.clear(); });
  } catch (const InternalError&) {  // the entry was a miss, and what is built instead cannot be loaded
  }
}

}  // namespace

Format cache_format() {
  const std::string element = some_element();
  return {.name = "cache",
          .seeds = {framed(element) + framed("end"), framed(element) + framed(element) + framed("end")},
          .mutate = mutate_cache,
          .run = run_cache};
}

// tests/data/fuzz/kernel has an entry with an object of the code generator.
Format kernel_format() { return {.name = "kernel", .seeds = {entry_of("no object")}, .mutate = mutate_entry, .run = run_entry}; }

}  // namespace tandem::fuzz
