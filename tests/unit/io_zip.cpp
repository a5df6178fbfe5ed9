// Zip archives: what was written comes back, and what lies about itself is refused.
#include "io/zip.hpp"

#include <zlib.h>

#include "base/text.hpp"
#include "io/binary.hpp"
#include "io_support.hpp"

namespace tandem::io {
namespace {

// One entry and its directory, field by field, so that a test can lie in each.
struct Handmade {
  std::string name = "a.txt", local_name = {};
  std::string content = "hello hello hello";
  bool deflated = false;
  uint16_t flags = 0, method = 0xffff;
  std::optional<uint64_t> size = {}, stored_size = {}, header = {}, count = {}, directory_size = {}, directory_offset = {};
  std::optional<uint32_t> crc = {};
  bool zip64 = false;
  int copies = 1;

  std::string write() const {
    std::string data = content;
    if (deflated) {
      z_stream stream{};
      deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
      data.assign(deflateBound(&stream, content.size()), '\0');
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
      stream.avail_in = static_cast<uInt>(content.size());
      stream.next_out = reinterpret_cast<Bytef*>(data.data());
      stream.avail_out = static_cast<uInt>(data.size());
      EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
      data.resize(stream.total_out);
      deflateEnd(&stream);
    }
    const std::string inner = local_name.empty() ? name : local_name;
    BinaryWriter out;
    out.put(uint32_t{0x04034b50}).fill(22).put(static_cast<uint16_t>(inner.size())).put(uint16_t{0}).put_text(inner).put_text(data);
    const uint64_t at = out.size();
    const auto narrow = [&](uint64_t x) { return zip64 ? 0xffffffffu : static_cast<uint32_t>(x); };
    const uint64_t plain = size.value_or(content.size()), stored = stored_size.value_or(data.size());
    for (int i = 0; i < copies; ++i) {
      out.put(uint32_t{0x02014b50}).fill(4).put(flags).put(method != 0xffff ? method : static_cast<uint16_t>(deflated ? 8 : 0)).fill(4);
      out.put(
          crc.value_or(static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())))));
      out.put(narrow(stored))
          .put(narrow(plain))
          .put(static_cast<uint16_t>(name.size()))
          .put(static_cast<uint16_t>(zip64 ? 28 : 0))
          .fill(10);
      out.put(narrow(header.value_or(0))).put_text(name);
      if (zip64) out.put(uint16_t{1}).put(uint16_t{24}).put(plain).put(stored).put(header.value_or(0));
    }
    const uint64_t bytes = directory_size.value_or(out.size() - at), entries = count.value_or(static_cast<uint64_t>(copies));
    const uint64_t offset = directory_offset.value_or(at);
    if (zip64) {
      const uint64_t record = out.size();
      out.put(uint32_t{0x06064b50}).put(uint64_t{44}).fill(12).put(entries).put(entries).put(bytes).put(offset);
      out.put(uint32_t{0x07064b50}).fill(4).put(record).put(uint32_t{1});
    }
    const auto few = static_cast<uint16_t>(zip64 ? 0xffff : entries);
    out.put(uint32_t{0x06054b50}).fill(4).put(few).put(few).put(narrow(bytes)).put(narrow(offset)).fill(2);
    return out.text();
  }
};

class Zip : public testing::Test {
 protected:
  std::string refused(const std::string& archive, const std::string& entry = "a.txt") {
    write_file(path_, bytes_of(archive));
    const std::string message = error_of([&] { ZipReader(path_).read(entry); });
    const std::string start = path_.string() + ": ";
    return message.starts_with(start) ? message.substr(start.size()) : "not named: " + message;
  }
  std::string content(const std::string& archive) {
    write_file(path_, bytes_of(archive));
    return std::string(text_of(ZipReader(path_).read("a.txt")));
  }
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.keras";
};

TEST_F(Zip, GivesBackWhatWasPut) {
  {
    AtomicFile file(path_);
    ZipWriter zip(file);
    zip.add("metadata.json", "{}");
    const std::string big(100000, 'x');
    zip.add("folder/pieces", std::array{bytes_of("one "), bytes_of(""), bytes_of(big), bytes_of(" three")});
    zip.add("empty", "");
    zip.finish();
    file.commit();
  }
  const ZipReader zip(path_);
  ASSERT_EQ(zip.entries().size(), 3u);
  EXPECT_EQ(text_of(zip.read("metadata.json")), "{}");
  EXPECT_EQ(text_of(zip.read("folder/pieces")), "one " + std::string(100000, 'x') + " three");
  EXPECT_TRUE(zip.read("empty").empty());
  EXPECT_FALSE(zip.has("other"));
  EXPECT_EQ(error_of([&] { zip.read("other"); }), path_.string() + ": there is no entry 'other'");
}

TEST_F(Zip, MoreEntriesThanTheOldRecordCounts) {
  constexpr int kCount = 70000;
  {
    AtomicFile file(path_);
    ZipWriter zip(file);
    for (int i = 0; i < kCount; ++i) zip.add(std::to_string(i), "x");
    zip.finish();
    file.commit();
  }
  const ZipReader zip(path_);
  ASSERT_EQ(zip.entries().size(), size_t{kCount});
  EXPECT_EQ(text_of(zip.read("69999")), "x");
}

TEST_F(Zip, ReadsDeflatedEntriesAndZip64) {
  EXPECT_EQ(content(Handmade{}.write()), "hello hello hello");
  EXPECT_EQ(content(Handmade{.deflated = true}.write()), "hello hello hello");
  EXPECT_EQ(content(Handmade{.zip64 = true}.write()), "hello hello hello");
  EXPECT_EQ(content(Handmade{.content = std::string(1 << 20, 'a'), .deflated = true, .zip64 = true}.write()), std::string(1 << 20, 'a'));
  EXPECT_EQ(content(Handmade{.content = "", .deflated = true}.write()), "");
}

TEST_F(Zip, PathsThatLeadOut) {
  for (const std::string name : {"../a", "/etc/passwd", "a/../../b", "..", "a\\b", "C:/a", "a/..", ""}) {
    EXPECT_EQ(refused(Handmade{.name = name}.write(), name), cat("entry '", name, "' has a path that leads out of the archive"));
  }
  EXPECT_EQ(content(Handmade{.name = "a.txt"}.write()), "hello hello hello");
}

TEST_F(Zip, AbsurdSizesAreRefusedBeforeMemoryIsTaken) {
  EXPECT_EQ(refused(Handmade{.size = 1ull << 60, .stored_size = 1ull << 60, .zip64 = true}.write()),
            "entry 'a.txt' has 1152921504606846976 bytes at 0, but entries end at 52");
  EXPECT_EQ(refused(Handmade{.deflated = true, .size = 1ull << 60, .zip64 = true}.write()),
            "entry 'a.txt' claims 1152921504606846976 bytes out of 10; deflate cannot do that");
  EXPECT_EQ(refused(Handmade{.size = 5}.write()), "entry 'a.txt' is stored but has two sizes, 5 and 17");
  EXPECT_EQ(refused(Handmade{.header = 1 << 30}.write()), "entry 'a.txt' has 17 bytes at 1073741824, but entries end at 52");
  EXPECT_EQ(refused(Handmade{.count = 9}.write()), "damaged zip archive: 9 entries in a directory of 51 bytes");
  EXPECT_EQ(refused(Handmade{.directory_size = 5000}.write()),
            "damaged zip archive: a directory of 5000 bytes at 52, but its end record is at 103");
  EXPECT_EQ(refused(Handmade{.directory_offset = 1ull << 40, .zip64 = true}.write()),
            "damaged zip archive: a directory of 79 bytes at 1099511627776, but its end record is at 131");
  EXPECT_EQ(refused(Handmade{.directory_size = 48}.write()), "damaged zip archive: its directory ends in the middle of an entry");
}

TEST_F(Zip, WhatIsDamagedOrNotSupported) {
  EXPECT_EQ(refused(Handmade{.crc = 1}.write()), "entry 'a.txt' is damaged: its CRC is e5f98880, but 1 is written");
  EXPECT_EQ(refused(Handmade{.deflated = true, .size = 16}.write()), "entry 'a.txt' is damaged: 16 of 16 bytes could be decompressed");
  EXPECT_EQ(refused(Handmade{.deflated = true, .size = 18}.write()), "entry 'a.txt' is damaged: 17 of 18 bytes could be decompressed");
  EXPECT_EQ(refused(Handmade{.method = 12}.write()),
            "entry 'a.txt' is compressed by method 12; only stored (0) and deflated (8) ones can be read");
  EXPECT_EQ(refused(Handmade{.flags = 1}.write()), "entry 'a.txt' is encrypted, which is not supported");
  EXPECT_EQ(refused(Handmade{.local_name = "b.txt"}.write()), "damaged zip archive: the entry at 0 is not 'a.txt', as its directory says");
  EXPECT_EQ(refused(Handmade{.header = 3}.write()), "damaged zip archive: no entry 'a.txt' at 3");
  EXPECT_EQ(refused(Handmade{.copies = 2}.write()), "entry 'a.txt' is there twice");
  EXPECT_EQ(refused("PK"), "not a zip archive, or truncated: no end record in 2 bytes");
  EXPECT_EQ(refused(""), "not a zip archive, or truncated: no end record in 0 bytes");
  EXPECT_EQ(refused(std::string(1000, 'z')), "not a zip archive, or truncated: no end record in 1000 bytes");
}

TEST_F(Zip, TruncatedAnywhere) {
  const std::string whole = Handmade{.deflated = true, .zip64 = true}.write();
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_NE(refused(whole.substr(0, size)), "no error") << size;
}

TEST_F(Zip, DamagedAnywhere) {
  const std::string whole = Handmade{.content = std::string(300, 'q'), .deflated = true, .zip64 = true}.write();
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    write_file(path_, damaged(bytes_of(whole), seed));
    try {
      const ZipReader zip(path_);
      for (const auto& entry : zip.entries()) zip.read(entry.name);
    } catch (const UserError&) {
    }
  }
  EXPECT_EQ(folder_.file_count(), 1u);
}

}  // namespace
}  // namespace tandem::io
