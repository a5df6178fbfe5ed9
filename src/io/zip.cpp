// Field by field as in PKWARE's APPNOTE 6.3.10; the section numbers are its.
#include "io/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "io/binary.hpp"

namespace tandem::io {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr uint16_t kStored = 0, kDeflated = 8, kZip64Field = 1;
constexpr uint16_t kEncrypted = 1, kUtf8 = 1 << 11;
constexpr uint32_t kIn64 = 0xffffffff;                                              // the number is in the zip64 field
constexpr uint64_t kMostExpansion = 1032;                                           // of deflate
constexpr uint64_t kAlwaysInflated = uint64_t{64} << 20, kPlausibleExpansion = 64;  // numbers and texts that mean something
constexpr uint16_t kFirstDate = 0x21;                                               // 1980-01-01: the bytes depend on the content alone

uint32_t crc_of(ByteView bytes, uint32_t before = 0) {
  if (bytes.empty()) return before;  // zlib takes a null pointer for the wish to start anew
  return static_cast<uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

bool climbs_out(const std::string& name) {
  if (name.empty() || name[0] == '/' || name.find('\\') != std::string::npos || name.find('\0') != std::string::npos) return true;
  if (name.size() > 1 && name[1] == ':') return true;  // a drive letter
  for (size_t start = 0; start <= name.size();) {
    const size_t end = std::min(name.find('/', start), name.size());
    if (name.compare(start, end - start, "..") == 0) return true;
    start = end + 1;
  }
  return false;
}

// 4.5.3: the numbers that did not fit, in this order, only those.
void read_zip64(ByteView extra, ZipReader::Entry& entry) {
  for (BinaryReader fields(extra); fields.left() >= 4;) {
    const auto id = fields.get<uint16_t>(), size = fields.get<uint16_t>();
    BinaryReader field(fields.take(size));
    if (id != kZip64Field) continue;
    for (uint64_t* number : {&entry.size, &entry.stored_size, &entry.header})
      if (*number == kIn64) *number = field.get<uint64_t>();
  }
}

// As many bytes as come out, into `to`. zlib counts in 32 bits, so both ends are refilled piece by piece.
uint64_t inflate_into(std::span<std::byte> to, ByteView from, int& status) {
  constexpr size_t kPiece = size_t{1} << 30;
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) resource_error("zlib cannot start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data()));
  std::byte nothing;  // zlib wants a place even for no bytes
  stream.next_out = reinterpret_cast<Bytef*>(to.empty() ? &nothing : to.data());
  size_t in_left = from.size(), out_left = to.size();
  do {
    const auto in = static_cast<uInt>(std::min(in_left, kPiece)), out = static_cast<uInt>(std::min(out_left, kPiece));
    stream.avail_in = in;
    stream.avail_out = out;
    status = inflate(&stream, Z_NO_FLUSH);
    in_left -= in - stream.avail_in;
    out_left -= out - stream.avail_out;
  } while (status == Z_OK);  // Z_BUF_ERROR when it cannot go on
  inflateEnd(&stream);
  return to.size() - out_left;
}

}  // namespace

template <class... T> void ZipReader::fail(const T&... what) const { user_error(file_.path().string(), ": ", what...); }

ZipReader::ZipReader(const std::filesystem::path& path) : file_(path) {
  try {
    read_directory(find_directory());
  } catch (const EndOfBytes&) {
    fail("damaged zip archive: its directory ends in the middle of an entry");
  }
}

ZipReader::Directory ZipReader::find_directory() const {
  const uint64_t tail_size = std::min<uint64_t>(file_.size(), kEndBytes + 0xffff);  // a comment of up to 64 KiB may follow
  const uint64_t tail_start = file_.size() - tail_size;
  const Bytes tail = file_.read(tail_start, tail_size);
  for (size_t at = tail_size < kEndBytes ? 0 : tail_size - kEndBytes + 1; at-- > 0;) {
    BinaryReader fields(ByteView(tail).subspan(at));
    if (fields.get<uint32_t>() != kEnd) continue;
    const auto disk = fields.get<uint16_t>(), start_disk = fields.get<uint16_t>(), here = fields.get<uint16_t>();
    Directory directory{};
    directory.count = fields.get<uint16_t>();
    directory.size = fields.get<uint32_t>();
    directory.offset = fields.get<uint32_t>();
    if (disk != start_disk || here != directory.count) fail("a zip archive of several files, which is not supported");
    uint64_t end = tail_start + at;
    if (directory.count == 0xffff || directory.size == kIn64 || directory.offset == kIn64) {
      if (end < kLocatorBytes) fail("damaged zip archive: no room for its zip64 record");
      const Bytes locator_bytes = file_.read(end - kLocatorBytes, kLocatorBytes);
      BinaryReader locator(locator_bytes);
      if (locator.get<uint32_t>() != kEnd64Locator) fail("damaged zip archive: its zip64 record is missing");
      locator.skip(4);
      end = locator.get<uint64_t>();
      if (end > file_.size() || file_.size() - end < kEnd64Bytes)
        fail("damaged zip archive: zip64 record at ", end, " of ", file_.size(), " bytes");
      const Bytes record_bytes = file_.read(end, kEnd64Bytes);
      BinaryReader record(record_bytes);
      if (record.get<uint32_t>() != kEnd64) fail("damaged zip archive: no zip64 record at ", end);
      record.skip(8 + 2 + 2 + 4 + 4 + 8);
      directory.count = record.get<uint64_t>();
      directory.size = record.get<uint64_t>();
      directory.offset = record.get<uint64_t>();
    }
    if (directory.offset > end || directory.size > end - directory.offset)
      fail("damaged zip archive: a directory of ", directory.size, " bytes at ", directory.offset, ", but its end record is at ", end);
    if (directory.count > directory.size / kCentralBytes)
      fail("damaged zip archive: ", directory.count, " entries in a directory of ", directory.size, " bytes");
    return directory;
  }
  fail("not a zip archive, or truncated: no end record in ", file_.size(), " bytes");
}

void ZipReader::read_directory(const Directory& directory) {
  directory_ = directory.offset;
  const Bytes bytes = file_.read(directory.offset, directory.size);
  BinaryReader fields(bytes);
  std::set<std::string> names;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (fields.get<uint32_t>() != kCentralHeader) fail("damaged zip archive: entry ", i, " of its directory is no entry");
    Entry entry;
    fields.skip(4);
    const auto flags = fields.get<uint16_t>();
    entry.method = fields.get<uint16_t>();
    fields.skip(4);
    entry.crc = fields.get<uint32_t>();
    entry.stored_size = fields.get<uint32_t>();
    entry.size = fields.get<uint32_t>();
    const auto name_size = fields.get<uint16_t>(), extra_size = fields.get<uint16_t>(), comment_size = fields.get<uint16_t>();
    fields.skip(2 + 2 + 4);
    entry.header = fields.get<uint32_t>();
    entry.name = text_of(fields.take(name_size));
    read_zip64(fields.take(extra_size), entry);
    fields.skip(comment_size);
    if (flags & kEncrypted) fail("entry '", entry.name, "' is encrypted, which is not supported");
    check(entry);
    if (!names.insert(entry.name).second) fail("entry '", entry.name, "' is there twice");
    entries_.push_back(std::move(entry));
  }
}

void ZipReader::check(const Entry& entry) const {
  if (climbs_out(entry.name)) fail("entry '", entry.name, "' has a path that leads out of the archive");
  if (entry.header > directory_ || entry.stored_size > directory_ - entry.header)
    fail("entry '", entry.name, "' has ", entry.stored_size, " bytes at ", entry.header, ", but entries end at ", directory_);
  if (entry.method != kStored && entry.method != kDeflated)
    fail("entry '", entry.name, "' is compressed by method ", entry.method, "; only stored (0) and deflated (8) ones can be read");
  if (entry.method == kStored && entry.size != entry.stored_size)
    fail("entry '", entry.name, "' is stored but has two sizes, ", entry.size, " and ", entry.stored_size);
  if (entry.method == kDeflated && entry.size / kMostExpansion > entry.stored_size)
    fail("entry '", entry.name, "' claims ", entry.size, " bytes out of ", entry.stored_size, "; deflate cannot do that");
}

const ZipReader::Entry* ZipReader::find(const std::string& name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

uint64_t ZipReader::data_offset(const Entry& entry) const {
  if (directory_ - entry.header < kLocalBytes) fail("entry '", entry.name, "' has no room for its header");
  const Bytes bytes = file_.read(entry.header, kLocalBytes);
  BinaryReader fields(bytes);
  if (fields.get<uint32_t>() != kLocalHeader) fail("damaged zip archive: no entry '", entry.name, "' at ", entry.header);
  fields.skip(22);
  const auto name_size = fields.get<uint16_t>(), extra_size = fields.get<uint16_t>();
  const uint64_t offset = entry.header + kLocalBytes + name_size + extra_size;
  if (offset > directory_ || entry.stored_size > directory_ - offset)
    fail("entry '", entry.name, "' has ", entry.stored_size, " bytes at ", offset, ", but entries end at ", directory_);
  if (text_of(file_.read(entry.header + kLocalBytes, name_size)) != entry.name)
    fail("damaged zip archive: the entry at ", entry.header, " is not '", entry.name, "', as its directory says");
  return offset;
}

Bytes ZipReader::read(const std::string& name, uint64_t most_bytes) const {
  const Entry* entry = find(name);
  if (!entry) fail("there is no entry '", name, "'");
  if (entry->size > most_bytes) fail("entry '", name, "' has ", entry->size, " bytes, at most ", most_bytes, " are read");
  const uint64_t plausible = kAlwaysInflated + kPlausibleExpansion * std::min(file_.size(), UINT64_MAX / (2 * kPlausibleExpansion));
  if (entry->method == kDeflated && entry->size > plausible)
    fail("entry '", name, "' is unpacked to ", entry->size, " bytes, at most ", plausible, " are taken from an archive of ", file_.size(),
         "\n  hint: pack it again without compression, as Keras does");
  Bytes content = file_.read(data_offset(*entry), entry->stored_size);
  if (entry->method == kDeflated) {
    Bytes inflated = allocate_bytes(entry->size, file_.path().string());
    int status = Z_OK;
    const uint64_t got = inflate_into(inflated, content, status);
    if (status != Z_STREAM_END || got != entry->size)
      fail("entry '", name, "' is damaged: ", got, " of ", entry->size, " bytes could be decompressed");
    content = std::move(inflated);
  }
  if (const uint32_t crc = crc_of(content); crc != entry->crc)
    fail("entry '", name, "' is damaged: its CRC is ", hex(crc), ", but ", hex(entry->crc), " is written");
  return content;
}

void ZipWriter::add(const std::string& name, std::span<const ByteView> pieces) {
  uint32_t crc = 0;
  uint64_t size = 0;
  for (const ByteView piece : pieces) {
    crc = crc_of(piece, crc);
    size += piece.size();
  }
  const uint64_t header = file_.size();
  const bool wide = std::max(size, header) >= kIn64;
  const auto narrow = [&](uint64_t x) { return wide ? kIn64 : static_cast<uint32_t>(x); };
  const uint16_t version = wide ? 45 : 20;

  BinaryWriter common;  // what both headers have alike
  common.put(version).put(kUtf8).put(kStored).put(uint16_t{0}).put(kFirstDate);
  common.put(crc).put(narrow(size)).put(narrow(size)).put(static_cast<uint16_t>(name.size()));

  BinaryWriter local;
  local.put(kLocalHeader).put_text(common.text()).put(static_cast<uint16_t>(wide ? 20 : 0)).put_text(name);
  if (wide) local.put(kZip64Field).put(uint16_t{16}).put(size).put(size);
  file_.write(local.text());
  for (const ByteView piece : pieces) file_.write(text_of(piece));

  constexpr uint16_t kMadeByUnix = 3 << 8;
  constexpr uint32_t kOwnersFile = 0600u << 16;
  BinaryWriter central;
  central.put(kCentralHeader).put(static_cast<uint16_t>(kMadeByUnix | version)).put_text(common.text());
  central.put(static_cast<uint16_t>(wide ? 28 : 0)).fill(6).put(kOwnersFile).put(narrow(header)).put_text(name);
  if (wide) central.put(kZip64Field).put(uint16_t{24}).put(size).put(size).put(header);
  directory_ += central.text();
  ++count_;
}

void ZipWriter::finish() {
  const uint64_t offset = file_.size(), size = directory_.size();
  file_.write(directory_);
  const bool wide = offset >= kIn64 || size >= kIn64 || count_ >= 0xffff;
  BinaryWriter end;
  if (wide) {
    end.put(kEnd64).put(uint64_t{kEnd64Bytes - 12}).put(uint16_t{45}).put(uint16_t{45}).fill(8);
    end.put(count_).put(count_).put(size).put(offset);
    end.put(kEnd64Locator).fill(4).put(offset + size).put(uint32_t{1});
  }
  const auto count = static_cast<uint16_t>(wide ? 0xffff : count_);
  const auto narrow = [&](uint64_t x) { return wide ? kIn64 : static_cast<uint32_t>(x); };
  file_.write(end.put(kEnd).fill(4).put(count).put(count).put(narrow(size)).put(narrow(offset)).fill(2).text());
}

}  // namespace tandem::io
