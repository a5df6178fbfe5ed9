#include "io/file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/text.hpp"

namespace tandem::io {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 30;  // read takes at most 2^31 - 4096 bytes at once

std::string reason(int error) { return std::strerror(error); }

}  // namespace

Bytes allocate_bytes(uint64_t count, const std::string& what) {
  try {
    return Bytes(count);
  } catch (const std::exception&) {  // bad_alloc or length_error
    resource_error(ErrorCode::ResourceExhausted, what, ": no memory for ", count, " bytes");
  }
}

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)), file_(open_regular(path_)) {}

Bytes InputFile::read(uint64_t offset, uint64_t count) const {
  if (offset > file_.bytes || count > file_.bytes - offset)
    user_error(path_.string(), ": ", count, " bytes at ", offset, " are wanted, but the file has ", file_.bytes);
  Bytes bytes = allocate_bytes(count, path_.string());
  for (uint64_t done = 0; done < count;) {
    const ssize_t got = ::pread(file_.descriptor.get(), bytes.data() + done, std::min<uint64_t>(count - done, kPieceBytes),
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) resource_error(code_of_errno(errno), "cannot read ", path_.string(), ": ", reason(errno));
    if (got == 0)
      resource_error(ErrorCode::DataLoss, "cannot read ", path_.string(), ": it became shorter while it was read, ", offset + done, " of ",
                     file_.bytes, " bytes");
    done += static_cast<uint64_t>(got);
  }
  return bytes;
}

Bytes read_file(const std::filesystem::path& path) {
  const InputFile file(path);
  return file.read(0, file.size());
}

}  // namespace tandem::io
