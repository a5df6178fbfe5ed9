#include "base/blob_cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/file.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// An entry: this header, the key, the bytes. The key is compared in full, so equal hashes cannot mix kernels up.
struct Header {
  char magic[8] = {'t', 'a', 'n', 'd', 'e', 'm', 'k', '1'};
  uint64_t key_bytes = 0, blob_bytes = 0, checksum = 0;
};

uint64_t fnv(std::string_view s, uint64_t h = 0xcbf29ce484222325ULL) {
  for (unsigned char c : s) h = (h ^ c) * 0x100000001b3ULL;
  return h;
}

constexpr size_t kNameDigits = 32;
constexpr std::string_view kEnding = ".k";

// As path_of names them. The folder may be one that others use too.
bool is_entry(std::string_view name) {
  return name.size() == kNameDigits + kEnding.size() && name.ends_with(kEnding) &&
         name.find_first_not_of("0123456789abcdef") == kNameDigits;
}

// All of a file that can be an entry; false for a link, a pipe, a folder, and what is larger than code ever gets.
bool read_whole(const std::string& path, std::string& bytes) {
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  const RegularFile file = find_regular(path, Links::Refused);
  if (!file.descriptor || file.bytes > kMostBytes) return false;
  bytes.resize(file.bytes);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::read(file.descriptor.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

BlobCache::BlobCache(std::string folder, uint64_t limit_bytes) : folder_(std::move(folder)), limit_bytes_(limit_bytes) {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    log::line(log::Topic::Cache, "cannot use ", folder_, ": ", error.message(), "; kernels are kept in memory only");
    folder_.clear();
  }
}

std::string BlobCache::path_of(const std::string& key) const {
  char name[40];
  std::snprintf(name, sizeof name, "%016llx%016llx.k", static_cast<unsigned long long>(fnv(key)),
                static_cast<unsigned long long>(fnv(key, 0x9ae16a3b2f90404fULL)));
  return cat(folder_, "/", name);
}

bool BlobCache::read(const std::string& key, std::vector<char>& blob) const {
  if (folder_.empty()) return false;
  std::string bytes;
  if (!read_whole(path_of(key), bytes)) return false;
  Header expected, h;
  const bool sound = bytes.size() >= sizeof h && (std::memcpy(&h, bytes.data(), sizeof h), true) &&
                     std::memcmp(h.magic, expected.magic, sizeof h.magic) == 0 && h.key_bytes <= bytes.size() - sizeof h &&
                     h.blob_bytes == bytes.size() - sizeof h - h.key_bytes && fnv(std::string_view(bytes).substr(sizeof h)) == h.checksum;
  if (!sound) {
    damaged_.fetch_add(1, std::memory_order_relaxed);
    log::line(log::Topic::Cache, "damaged entry ", path_of(key), " is built anew");
    return false;
  }
  if (std::string_view(bytes).substr(sizeof h, h.key_bytes) != key) return false;  // another kernel with the same hash
  std::error_code unimportant;
  fs::last_write_time(path_of(key), fs::file_time_type::clock::now(), unimportant);  // used: `trim` leaves it
  blob.assign(bytes.begin() + static_cast<std::ptrdiff_t>(sizeof h + h.key_bytes), bytes.end());
  return true;
}

// Written beside its place and moved there, so a reader sees a whole entry or none. A full disk costs the cache, never the run.
void BlobCache::write(const std::string& key, const std::vector<char>& blob) const {
  if (folder_.empty()) return;
  std::string body = key;
  body.append(blob.begin(), blob.end());
  Header h;
  h.key_bytes = key.size();
  h.blob_bytes = blob.size();
  h.checksum = fnv(body);
  const std::string path = path_of(key);
  try {
    if (fs::is_symlink(path)) fs::remove(path);  // somebody else's: what it leads to is not ours to write
    AtomicFile file(path, AtomicFile::Sweep::Nothing);
    file.write({reinterpret_cast<const char*>(&h), sizeof h});
    file.write(body);
    file.commit(AtomicFile::Flush::Later);  // a checksum tells what a crash left
  } catch (const std::exception& e) {
    log::line(log::Topic::Cache, e.what());
  }
  // Looking through the folder takes longer than compiling a kernel, so few writes do: picked by the key, and so as often in many short
  // processes as in one long one.
  if (fnv(key) % 256 == 0) trim();
}

// Other processes may add, use and remove entries meanwhile: a file that is gone is no error, and whoever loses an entry builds it anew.
void BlobCache::trim() const {
  if (folder_.empty()) return;
  remove_left_behind(folder_);
  if (limit_bytes_ == 0) return;
  struct Entry {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (!is_entry(it->path().filename().native()) || !fs::is_regular_file(it->symlink_status(gone))) continue;
    const Entry e{it->last_write_time(gone), it->file_size(gone), it->path()};
    if (gone) continue;
    total += e.bytes;
    entries.push_back(e);
  }
  if (total <= limit_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  const uint64_t before = total;
  for (const Entry& e : entries) {
    if (total <= limit_bytes_ / 4 * 3) break;
    fs::remove(e.path, error);
    total -= e.bytes;
  }
  log::line(log::Topic::Cache, folder_, ": ", before >> 20, " MiB exceed the limit of ", limit_bytes_ >> 20, ", ", total >> 20,
            " are left");
}

bool BlobCache::is_empty() const {
  std::error_code error;
  return folder_.empty() || fs::directory_iterator(folder_, error) == fs::directory_iterator();
}

}  // namespace tandem
