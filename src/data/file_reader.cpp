#include "data/file_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace tandem::data {

Descriptor open_to_read(const std::string& path, Files which) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | (which == Files::Regular ? O_NONBLOCK : 0)));
  if (!file) resource_error(code_of_errno(errno), path, ": cannot be opened: ", std::strerror(errno));
  struct stat s;
  if (which == Files::Regular && (fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode)))
    resource_error(ErrorCode::FailedPrecondition, path, ": is no file");
  return file;
}

struct FileReader::Inflater {
  explicit Inflater(Compression c, size_t bytes) : input(bytes) {
    const int window = c == Compression::Gzip ? 15 + 16 : 15;
    if (inflateInit2(&stream, window) != Z_OK) resource_error("zlib: cannot be started");
  }
  ~Inflater() { inflateEnd(&stream); }
  z_stream stream{};
  std::vector<char> input;
  bool finished = false;  // a whole stream was read; a gzip file may have another one behind
};

namespace {
constexpr size_t kLeastBuffer = 64, kAlwaysAllowed = size_t{1} << 20;  // a budget that is smaller than a record does not stop everything
}

FileReader::FileReader(std::string path, const ReaderOptions& o)
    : path_(std::move(path)),
      ram_budget_bytes_(o.ram_budget_bytes),
      most_bytes_(std::max({o.ram_budget_bytes / 8, o.buffer_bytes, kAlwaysAllowed})),
      file_(open_to_read(path_, o.files)),
      buffer_(std::max(o.buffer_bytes, kLeastBuffer)) {
  if (o.compression != Compression::None) inflater_ = std::make_unique<Inflater>(o.compression, buffer_.size());
}

FileReader::~FileReader() = default;

size_t FileReader::read_some(char* to, size_t count) {
  for (;;) {
    const ssize_t got = read(file_.get(), to, count);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno == EINTR) continue;
    const int error = errno;
    abandon();  // it would fail for ever
    resource_error(path_, ": cannot be read at byte ", offset_, ": ", std::strerror(error));
  }
}

bool FileReader::fill() {
  if (ended_) return false;
  if (begin_ > 0) {  // what is there moves to the front
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    if (end_ >= most_bytes_) {
      const int64_t start = offset_;
      abandon();
      resource_error(path_, ": what begins at byte ", start, " has more than ", most_bytes_,
                     " bytes, all that one record may have of a RAM budget of ", ram_budget_bytes_,
                     "; the rest of the file is left out\n  hint: options({.ram_budget_bytes = ...})");
    }
    buffer_.resize(std::min(2 * buffer_.size(), most_bytes_));
  }
  char* to = buffer_.data() + end_;
  const size_t room = buffer_.size() - end_;
  if (!inflater_) {
    const size_t got = read_some(to, room);
    end_ += got;
    ended_ = got == 0;
    return got > 0;
  }
  z_stream& z = inflater_->stream;
  for (;;) {
    if (z.avail_in == 0) {
      z.next_in = reinterpret_cast<Bytef*>(inflater_->input.data());
      z.avail_in = static_cast<uInt>(read_some(inflater_->input.data(), inflater_->input.size()));
      if (z.avail_in == 0) {
        ended_ = true;
        if (inflater_->finished) return false;
        abandon();
        resource_error(ErrorCode::DataLoss, path_, ": the compressed data end early, behind byte ", offset_);
      }
    }
    if (std::exchange(inflater_->finished, false)) inflateReset(&z);
    z.next_out = reinterpret_cast<Bytef*>(to);
    z.avail_out = static_cast<uInt>(std::min<size_t>(room, 1 << 30));
    const uInt before = z.avail_out;
    const int result = inflate(&z, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      abandon();
      resource_error(ErrorCode::DataLoss, path_, ": the compressed data are damaged behind byte ", offset_, ": ",
                     z.msg ? z.msg : "unknown error");
    }
    inflater_->finished = result == Z_STREAM_END;
    const size_t got = before - z.avail_out;
    end_ += got;
    if (got > 0) return true;
  }
}

std::string_view FileReader::peek(size_t count) {
  while (end_ - begin_ < count && fill()) {
  }
  return {buffer_.data() + begin_, std::min(count, end_ - begin_)};
}

std::string_view FileReader::peek_line(size_t from_byte) {
  size_t searched = from_byte;
  for (;;) {
    const char* from = buffer_.data() + begin_;
    if (const void* found = std::memchr(from + searched, '\n', end_ - begin_ - searched))
      return {from, static_cast<size_t>(static_cast<const char*>(found) - from) + 1};
    searched = end_ - begin_;
    if (!fill()) return {buffer_.data() + begin_, end_ - begin_};
  }
}

void FileReader::consume(size_t count) {
  begin_ += count;
  offset_ += static_cast<int64_t>(count);
}

void FileReader::skip_to(int64_t offset) {
  if (!inflater_ && begin_ == end_ && offset >= offset_) {
    if (lseek(file_.get(), offset, SEEK_SET) < 0) resource_error(path_, ": cannot be read at byte ", offset, ": ", std::strerror(errno));
    offset_ = offset;
    return;
  }
  while (offset_ < offset) {
    const size_t some = peek(static_cast<size_t>(std::min<int64_t>(offset - offset_, 1 << 16))).size();
    if (some == 0) resource_error(path_, ": ends at byte ", offset_, ", before byte ", offset, ", where reading is to go on");
    consume(some);
  }
}

void FileReader::abandon() {
  offset_ += static_cast<int64_t>(end_ - begin_);
  begin_ = end_ = 0;
  ended_ = abandoned_ = true;
}

}  // namespace tandem::data
