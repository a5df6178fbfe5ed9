#include "data/mapped_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/text.hpp"

namespace tandem::data {
namespace {

[[noreturn]] void damaged(const std::string& what, std::string_view why) { resource_error(ErrorCode::DataLoss, what, ": ", why); }

// The bytes of an array of this shape. It has at most so many rows as there are bytes for, or a few that have none: a walk over more
// would not end.
size_t bytes_of_array(const Shape& shape, DType dtype, size_t have, const std::string& what) {
  constexpr int64_t kMostEmptyRows = int64_t{1} << 20;
  size_t needed = 0;
  try {
    needed = byte_size(shape, dtype);
  } catch (const UserError& e) {
    damaged(what, e.what());
  }
  if (have < needed) damaged(what, cat("truncated: ", shape.str(), " of ", name(dtype), " needs ", needed, " bytes, ", have, " are there"));
  if (needed == 0 && !shape.empty() && shape[0] > kMostEmptyRows)
    damaged(what, cat("has ", shape[0], " rows without a byte, at most ", kMostEmptyRows, " of these are read"));
  return needed;
}

template <class T> T number_at(std::string_view bytes, size_t at, const std::string& what) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) damaged(what, "truncated");
  T x;
  std::memcpy(&x, bytes.data() + at, sizeof x);
  return x;
}

// The text behind 'key': in the header's dictionary.
std::string_view value_of(std::string_view header, std::string_view key, const std::string& what) {
  const size_t at = header.find(cat("'", key, "'"));
  const size_t colon = at == std::string_view::npos ? at : header.find(':', at);
  if (colon == std::string_view::npos) damaged(what, cat("its header has no '", key, "'"));
  std::string_view rest = header.substr(colon + 1);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return rest;
}

DType dtype_of(std::string_view descr, const std::string& what) {
  static constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"b1", DType::Bool}, {"u1", DType::U8},  {"u2", DType::U16}, {"u4", DType::U32}, {"u8", DType::U64}, {"i1", DType::I8},
      {"i2", DType::I16},  {"i4", DType::I32}, {"i8", DType::I64}, {"f2", DType::F16}, {"f4", DType::F32}, {"f8", DType::F64}};
  if (descr.size() == 3 && (descr[0] == '<' || descr[0] == '|' || descr[0] == '='))
    for (const auto& [text, dtype] : kTypes)
      if (descr.substr(1) == text) return dtype;
  damaged(what, cat("elements of type '", descr, "' are not supported"));
}

Shape shape_of(std::string_view text, const std::string& what) {
  Shape shape;
  if (!text.starts_with('(')) damaged(what, "its shape is no tuple");
  text.remove_prefix(1);
  for (;;) {
    while (!text.empty() && (text.front() == ' ' || text.front() == ',')) text.remove_prefix(1);
    if (text.starts_with(')')) return shape;
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0 || shape.rank() == kMaxRank) damaged(what, "its shape cannot be read");
    shape.push_back(extent);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
}

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)), file_(open_to_read(path_, Files::Regular)) {
  struct stat s;
  if (fstat(file_.get(), &s) != 0) resource_error(path_, ": ", std::strerror(errno));
  size_ = static_cast<size_t>(s.st_size);
  if (size_ == 0) return;
  void* mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_.get(), 0);
  if (mapped == MAP_FAILED) resource_error(path_, ": cannot be mapped: ", std::strerror(errno));
  data_ = static_cast<const char*>(mapped);
  health_ = std::make_shared<FileHealth>(path_, size_);
  guard_.emplace(data_, size_, file_.get(), *health_);
}

MappedFile::~MappedFile() {
  guard_.reset();
  if (data_) munmap(const_cast<char*>(data_), size_);
}

void MappedFile::before(size_t bytes) const {
  if (health_) health_->require_whole();
  struct stat s;
  if (fstat(file_.get(), &s) != 0) resource_error(path_, ": ", std::strerror(errno));
  if (static_cast<size_t>(s.st_size) < size_)
    resource_error(ErrorCode::DataLoss, path_, ": truncated while it was read: ", s.st_size, " of ", size_, " bytes are left");
  constexpr size_t kMostTouched = size_t{64} << 20;
  if (size_ <= 4 * kMostTouched || touched_.fetch_add(bytes) + bytes < kMostTouched) return;
  touched_ = 0;
  madvise(const_cast<char*>(data_), size_, MADV_DONTNEED);  // read-only: what a view still needs is mapped again when it is touched
}

namespace {

class MappedRows final : public RowWatch {
 public:
  MappedRows(std::shared_ptr<const MappedFile> file, size_t row_bytes, size_t arrays)
      : RowWatch(file->health()), file_(std::move(file)), row_bytes_(row_bytes), arrays_(arrays) {}
  void before(int64_t count, Order order) const override {
    constexpr size_t kAround = size_t{64} << 10;  // the kernel maps so much around a page that is touched
    const size_t each = order == Order::Together ? row_bytes_ : std::max(row_bytes_, kAround * arrays_);
    file_->before(static_cast<size_t>(count) * each);
  }

 private:
  const std::shared_ptr<const MappedFile> file_;
  const size_t row_bytes_, arrays_;
};

}  // namespace

std::shared_ptr<const RowWatch> row_watch(std::shared_ptr<const MappedFile> file, const Rows& rows) {
  if (!file->health()) return nullptr;
  file->health()->require_whole();  // what was read so far: headers, and arrays that were unpacked
  size_t row_bytes = 0, arrays = 0;
  for (const Spec& s : rows.specs()) {
    row_bytes += byte_size(bind(s.dims, {}), s.dtype);
    ++arrays;
  }
  return std::make_shared<MappedRows>(std::move(file), row_bytes, arrays);
}

RowTensor npy_array(std::string_view bytes, const std::shared_ptr<const void>& owner, const std::string& what) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY") damaged(what, "is no .npy array: it does not begin with \\x93NUMPY");
  const int version = bytes[6];
  if (version < 1 || version > 3) damaged(what, cat("has version ", version, " of .npy, known are 1 to 3"));
  const size_t length = version == 1 ? number_at<uint16_t>(bytes, 8, what) : number_at<uint32_t>(bytes, 8, what);
  const size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start + length) damaged(what, "truncated in its header");
  const std::string_view header = bytes.substr(start, length);
  std::string_view descr = value_of(header, "descr", what);
  if (!descr.starts_with('\'') || descr.find('\'', 1) == std::string_view::npos)
    damaged(what, "its elements are records, which are not supported");
  descr = descr.substr(1, descr.find('\'', 1) - 1);
  const DType dtype = dtype_of(descr, what);
  const bool by_columns = value_of(header, "fortran_order", what).starts_with("True");
  const Shape shape = shape_of(value_of(header, "shape", what), what);
  const size_t needed = bytes_of_array(shape, dtype, bytes.size() - start - length, what);
  const char* data = bytes.data() + start + length;

  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % size_of(dtype) == 0;
  if (is_aligned || needed == 0) {
    Strides strides = contiguous_strides(shape);
    if (by_columns) {
      int64_t step = 1;
      for (size_t i = 0; i < shape.size(); ++i) {
        strides[i] = step;
        step *= std::max<int64_t>(shape[i], 1);
      }
    }
    return {Tensor::view(data, dtype, shape, strides, [owner] {})};
  }
  if (by_columns) damaged(what, "lies at an odd address in column order, which is not supported\n  hint: save it in row order");
  if (shape.empty()) damaged(what, "has no rows");
  // Such bytes can only be copied: they are rows of bytes that become rows of this type.
  Shape row;
  for (size_t i = 1; i < shape.size(); ++i) row.push_back(shape[i]);
  const auto row_bytes = static_cast<int64_t>(byte_size(row, dtype));
  return {Tensor::view(data, DType::U8, {shape[0], row_bytes}, {}, [owner] {}), RowTensor::Type{dtype, row}};
}

// --- zip -------------------------------------------------------------------------------------------------------------------------

// APPNOTE.TXT of PKWARE, 4.3: the directory at the end names the entries, with 64-bit fields in extra blocks where 32 bits do not do.
std::vector<ZipEntry> zip_entries(const MappedFile& file) {
  const std::string_view all = file.bytes();
  const std::string& what = file.path();
  constexpr size_t kEndBytes = 22, kLongestComment = 65535;
  size_t end = std::string_view::npos;
  if (all.size() >= kEndBytes) end = all.rfind(std::string_view("PK\5\6", 4), all.size() - kEndBytes);
  if (end == std::string_view::npos || all.size() - end > kEndBytes + kLongestComment)
    damaged(what, "is no zip archive: it has no directory");
  uint64_t count = number_at<uint16_t>(all, end + 10, what), at = number_at<uint32_t>(all, end + 16, what);
  if (end >= 20 && all.substr(end - 20, 4) == std::string_view("PK\6\7", 4)) {
    const auto wide = number_at<uint64_t>(all, end - 12, what);
    if (wide > end) damaged(what, cat("its 64-bit directory is at byte ", wide, ", behind its end at ", end));
    count = number_at<uint64_t>(all, wide + 32, what);
    at = number_at<uint64_t>(all, wide + 48, what);
  }
  std::vector<ZipEntry> entries;
  uint64_t packed_in_all = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (number_at<uint32_t>(all, at, what) != 0x02014b50) damaged(what, cat("entry ", i, " of its directory is damaged"));
    ZipEntry e;
    e.method = number_at<uint16_t>(all, at + 10, what);
    e.crc = number_at<uint32_t>(all, at + 16, what);
    uint64_t packed = number_at<uint32_t>(all, at + 20, what), place = number_at<uint32_t>(all, at + 42, what);
    e.full_size = number_at<uint32_t>(all, at + 24, what);
    const size_t name_size = number_at<uint16_t>(all, at + 28, what), extra_size = number_at<uint16_t>(all, at + 30, what);
    const size_t comment_size = number_at<uint16_t>(all, at + 32, what);
    if (all.size() - at < 46 + name_size + extra_size) damaged(what, "truncated in its directory");
    e.name = all.substr(at + 46, name_size);
    std::string_view extra = all.substr(at + 46 + name_size, extra_size);
    while (extra.size() >= 4) {
      const size_t id = number_at<uint16_t>(extra, 0, what), size = number_at<uint16_t>(extra, 2, what);
      size_t field = 4;
      for (uint64_t* wide : {&e.full_size, &packed, &place})
        if (id == 1 && *wide == 0xffffffffu) {
          *wide = number_at<uint64_t>(extra, field, what);
          field += 8;
        }
      extra.remove_prefix(std::min(extra.size(), 4 + size));
    }
    if (number_at<uint32_t>(all, place, what) != 0x04034b50) damaged(what, cat("entry '", e.name, "' is not where the directory says"));
    const size_t head = 30 + size_t{number_at<uint16_t>(all, place + 26, what)} + number_at<uint16_t>(all, place + 28, what);
    if (place + head > all.size() || packed > all.size() - place - head)
      damaged(what, cat("truncated: entry '", e.name, "' is not all there"));
    e.bytes = all.substr(place + head, packed);
    packed_in_all += packed;
    if (packed_in_all > all.size()) damaged(what, cat("entries that overlap, ", packed_in_all, " bytes in a file of ", all.size()));
    constexpr uint64_t kMostExpansion = 1032;  // of deflate
    if (e.full_size / kMostExpansion > packed)
      damaged(what, cat("entry '", e.name, "' claims ", e.full_size, " bytes out of ", packed, "; deflate cannot do that"));
    if (e.method == 0 && packed != e.full_size) damaged(what, cat("entry '", e.name, "' has two different sizes"));
    if (e.method != 0 && e.method != 8) damaged(what, cat("entry '", e.name, "' is packed by method ", e.method, ", known are 0 and 8"));
    entries.push_back(std::move(e));
    at += 46 + name_size + extra_size + comment_size;
  }
  return entries;
}

std::vector<char> inflated(const ZipEntry& entry, const std::string& what) {
  std::vector<char> full;  // grows with what there is: the size that the archive claims may be anything
  z_stream z{};
  if (inflateInit2(&z, -15) != Z_OK) resource_error("zlib: cannot be started");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ends(&z, inflateEnd);
  std::string_view left = entry.bytes;
  int result = Z_OK;
  while (result == Z_OK) {
    if (z.avail_in == 0) {
      const size_t some = std::min<size_t>(left.size(), 1 << 30);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(left.data()));
      z.avail_in = static_cast<uInt>(some);
      left.remove_prefix(some);
    }
    constexpr size_t kStep = 1 << 20;
    const size_t before = full.size();
    if (before > entry.full_size) break;
    full.resize(before + kStep);
    z.next_out = reinterpret_cast<Bytef*>(full.data() + before);
    z.avail_out = kStep;
    result = inflate(&z, Z_NO_FLUSH);
    full.resize(before + kStep - z.avail_out);
  }
  if (result != Z_STREAM_END || full.size() != entry.full_size)
    damaged(what, cat("its compressed data are damaged behind byte ", full.size(), " of ", entry.full_size));
  const auto crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(full.data()), full.size()));
  if (crc != entry.crc) damaged(what, cat("its checksum is ", crc, ", stored is ", entry.crc));
  return full;
}

}  // namespace tandem::data
