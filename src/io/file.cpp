#include "io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/text.hpp"

namespace tandem::io {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 30;  // read and write take at most 2^31 - 4096 bytes at once

std::string reason(int error) { return std::strerror(error); }

// mkstemp makes a file that only its owner may read; the result should be as any new file is.
mode_t permissions_of(const std::filesystem::path& path) {
  struct stat old{};
  if (::stat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode)) return old.st_mode & 0777;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

Bytes allocate_bytes(uint64_t count, const std::string& what) {
  try {
    return Bytes(count);
  } catch (const std::exception&) {  // bad_alloc or length_error
    resource_error(what, ": no memory for ", count, " bytes");
  }
}

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer would block otherwise
  if (descriptor_ < 0) resource_error("cannot open ", path_.string(), ": ", reason(errno));
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    resource_error("cannot read ", path_.string(), ": not a regular file");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

Bytes InputFile::read(uint64_t offset, uint64_t count) const {
  if (offset > size_ || count > size_ - offset)
    user_error(path_.string(), ": ", count, " bytes at ", offset, " are wanted, but the file has ", size_);
  Bytes bytes = allocate_bytes(count, path_.string());
  for (uint64_t done = 0; done < count;) {
    const ssize_t got =
        ::pread(descriptor_, bytes.data() + done, std::min<uint64_t>(count - done, kPieceBytes), static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) resource_error("cannot read ", path_.string(), ": ", reason(errno));
    if (got == 0)
      resource_error("cannot read ", path_.string(), ": it became shorter while it was read, ", offset + done, " of ", size_, " bytes");
    done += static_cast<uint64_t>(got);
  }
  return bytes;
}

Bytes read_file(const std::filesystem::path& path) {
  const InputFile file(path);
  return file.read(0, file.size());
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), temporary_(path_.string() + ".XXXXXX") {
  if (!path_.has_filename()) user_error("cannot write '", path_.string(), "': not the name of a file");
  if (std::filesystem::is_directory(path_)) user_error("cannot write ", path_.string(), ": it is a folder");
  descriptor_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (descriptor_ < 0) resource_error("cannot write ", path_.string(), ": ", reason(errno));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) const { resource_error("cannot ", what, " ", path_.string(), ": ", reason(errno)); }

void AtomicFile::write(ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kPieceBytes));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("write");
    bytes = bytes.subspan(static_cast<size_t>(put));
    size_ += static_cast<uint64_t>(put);
  }
}

void AtomicFile::commit() {
  // On disk before it takes the name: a crash leaves the old file or the new one, whole.
  if (::fchmod(descriptor_, permissions_of(path_)) != 0 || ::fsync(descriptor_) != 0) fail("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("write");
  ::close(std::exchange(descriptor_, -1));
}

}  // namespace tandem::io
