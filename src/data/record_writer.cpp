// TFRecord files as they are written: lengths, checksums, and gzip or zlib around them.
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <tandem/data/records.hpp>

#include "base/border.hpp"
#include "base/text.hpp"
#include "data/record_format.hpp"

namespace tandem::data {

struct RecordWriter::Impl {
  std::string path;
  std::FILE* file = nullptr;
  bool is_compressed = false;
  z_stream stream{};

  Impl(std::string p, Compression c) : path(std::move(p)), is_compressed(c != Compression::None) {
    file = std::fopen(path.c_str(), "wbe");
    if (!file) resource_error(code_of_errno(errno), path, ": cannot be written: ", std::strerror(errno));
    const int window = c == Compression::Gzip ? 15 + 16 : 15;
    if (is_compressed && deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
      std::fclose(file);
      resource_error("zlib: cannot be started");
    }
  }
  ~Impl() {
    try {
      close();
    } catch (const Error&) {  // nobody is left to be told
    }
  }

  void put(const void* bytes, size_t count) {
    if (std::fwrite(bytes, 1, count, file) != count) resource_error(path, ": cannot be written: ", std::strerror(errno));
  }
  void deflate_some(const void* bytes, size_t count, int flush) {
    stream.next_in = static_cast<Bytef*>(const_cast<void*>(bytes));
    stream.avail_in = static_cast<uInt>(count);
    do {
      char out[1 << 14];
      stream.next_out = reinterpret_cast<Bytef*>(out);
      stream.avail_out = sizeof out;
      deflate(&stream, flush);
      put(out, sizeof out - stream.avail_out);
    } while (stream.avail_out == 0);
  }
  void add(const void* bytes, size_t count) {
    if (!is_compressed) return put(bytes, count);
    constexpr size_t kMost = size_t{1} << 30;
    const char* from = static_cast<const char*>(bytes);
    for (size_t done = 0; done < count; done += kMost) deflate_some(from + done, std::min(kMost, count - done), Z_NO_FLUSH);
  }
  void close() {
    if (!file) return;
    std::FILE* closing = file;
    try {
      if (is_compressed) deflate_some(nullptr, 0, Z_FINISH);
    } catch (const Error&) {
      file = nullptr;
      deflateEnd(&stream);
      std::fclose(closing);
      throw;
    }
    file = nullptr;
    if (is_compressed) deflateEnd(&stream);
    if (std::fclose(closing) != 0) resource_error(path, ": cannot be written: ", std::strerror(errno));
  }
};

RecordWriter::RecordWriter(const std::string& file, Compression compression)
    : impl_(at_border("RecordWriter", [&] { return std::make_unique<Impl>(file, compression); })) {}
RecordWriter::RecordWriter(RecordWriter&&) noexcept = default;
RecordWriter& RecordWriter::operator=(RecordWriter&&) noexcept = default;
RecordWriter::~RecordWriter() = default;

void RecordWriter::write(std::string_view record) {
  if (!impl_ || !impl_->file) user_error("this RecordWriter is closed");
  const RecordFrame frame = frame_of(record);
  impl_->add(frame.head, sizeof frame.head);
  impl_->add(record.data(), record.size());
  impl_->add(frame.tail, sizeof frame.tail);
}

void RecordWriter::close() {
  if (impl_) impl_->close();
}

}  // namespace tandem::data
