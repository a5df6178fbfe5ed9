#include "base/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "base/text.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{1} << 30;  // write takes at most 2^31 - 4096 bytes at once
constexpr size_t kPendingBytes = size_t{1} << 16;
constexpr std::string_view kEnding = ".tandem-part";
constexpr size_t kMarkLetters = 12, kMostNameBytes = 200;  // names have at most 255 bytes
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";

std::string reason(int error) { return std::strerror(error); }

// An error number, or 0 with the file.
int try_regular(const fs::path& path, int flags, RegularFile& file) {
  file.descriptor = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));  // a pipe without a writer would block
  if (!file.descriptor) return errno;
  struct stat status{};
  if (::fstat(file.descriptor.get(), &status) != 0) return errno;
  file.bytes = static_cast<uint64_t>(status.st_size);
  return S_ISREG(status.st_mode) ? 0 : EINVAL;
}

// What a chain of links leads to, whether it is there or not.
fs::path behind_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as the kernel's
  std::error_code error;
  for (int i = 0; fs::is_symlink(fs::symlink_status(path, error)); ++i) {
    if (i == kMostLinks) resource_error(code_of_errno(ELOOP), "cannot write ", path.string(), ": ", reason(ELOOP));
    const fs::path target = fs::read_symlink(path, error);
    if (error) resource_error(code_of_errno(error.value()), "cannot write ", path.string(), ": ", error.message());
    path = path.parent_path() / target;  // an absolute one replaces all
  }
  return path;
}

std::string mark() {
  thread_local std::mt19937_64 random{std::random_device{}() ^ static_cast<uint64_t>(::getpid()) << 32};
  std::string text(kMarkLetters, ' ');
  for (char& c : text) c = kLetters[random() % kLetters.size()];
  return text;
}

bool is_linked(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && status.st_nlink > 0;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

RegularFile open_regular(const fs::path& path) {
  RegularFile file;
  const int error = try_regular(path, 0, file);
  if (error == EINVAL && file.descriptor) resource_error(code_of_errno(error), "cannot read ", path.string(), ": not a regular file");
  if (error) resource_error(code_of_errno(error), "cannot open ", path.string(), ": ", reason(error));
  return file;
}

RegularFile find_regular(const fs::path& path, Links links) {
  RegularFile file;
  if (try_regular(path, links == Links::Refused ? O_NOFOLLOW : 0, file) != 0) return {};
  return file;
}

bool is_temporary(std::string_view file_name) {
  if (!file_name.ends_with(kEnding) || file_name.size() < kEnding.size() + kMarkLetters + 2) return false;
  file_name.remove_suffix(kEnding.size());
  const std::string_view marked = file_name.substr(file_name.size() - kMarkLetters);
  return file_name[file_name.size() - kMarkLetters - 1] == '.' && marked.find_first_not_of(kLetters) == std::string_view::npos;
}

// Who holds the lock has the file: its writer as long as it lives, or the one that removes it. Where a file system has no locks, nothing
// is removed.
void remove_left_behind(const fs::path& folder) noexcept try {
  std::error_code error;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, error), end; !error && it != end; it.increment(error)) {
    if (!is_temporary(it->path().filename().native())) continue;
    const RegularFile file = find_regular(it->path(), Links::Refused);
    if (file.descriptor && ::flock(file.descriptor.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(it->path().c_str());
  }
} catch (const std::exception&) {  // what cannot be tidied up stays
}

AtomicFile::AtomicFile(fs::path path, Sweep sweep) : given_(std::move(path)) {
  if (!given_.has_filename()) user_error("cannot write '", given_.string(), "': not the name of a file");
  path_ = behind_links(given_);
  struct stat old{};
  const bool exists = ::stat(path_.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) user_error("cannot write ", given_.string(), ": it is a folder");
  if (exists && !S_ISREG(old.st_mode)) user_error("cannot write ", given_.string(), ": it is not a regular file");
  if (sweep == Sweep::Folder) remove_left_behind(path_.parent_path());
  create();
  // Before anything is in it, so that nobody reads what he might not read before.
  if (exists && ::fchmod(descriptor_.get(), old.st_mode & 0777) != 0) fail(errno);
}

void AtomicFile::create() {
  const std::string start = (path_.parent_path() / path_.filename().native().substr(0, kMostNameBytes)).string();
  for (;;) {
    std::string name = cat(start, ".", mark(), kEnding);
    Descriptor made(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!made && errno == EEXIST) continue;
    if (!made) fail(errno);
    // Another process may have taken it for one that was left behind before it was locked: then it is gone, or about to be.
    const bool is_taken = ::flock(made.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (is_taken || !is_linked(made.get())) continue;
    descriptor_ = std::move(made);
    temporary_ = std::move(name);
    return;
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(int error) const { resource_error(code_of_errno(error), "cannot write ", given_.string(), ": ", reason(error)); }

void AtomicFile::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_.get(), bytes.data(), std::min(bytes.size(), kPieceBytes));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(errno);
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

void AtomicFile::put_pending() {
  put(pending_);
  pending_.clear();
}

void AtomicFile::write(std::string_view bytes) {
  size_ += bytes.size();
  if (pending_.size() + bytes.size() > kPendingBytes) put_pending();
  if (bytes.size() > kPendingBytes)
    put(bytes);
  else
    pending_ += bytes;
}

void AtomicFile::commit(Flush flush) {
  put_pending();
  // On disk before it takes the name: a crash leaves the old file or the new one, whole.
  if (flush == Flush::ToDisk && ::fsync(descriptor_.get()) != 0) fail(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
  descriptor_.close();
}

}  // namespace tandem
