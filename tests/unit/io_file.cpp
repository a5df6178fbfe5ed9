#include <gtest/gtest.h>
#include <sys/stat.h>

#include "io_support.hpp"

namespace tandem::io {
namespace {

void replace(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

TEST(AtomicFile, ReplacesTheOldOneOnlyWhenItIsWhole) {
  const TemporaryFolder folder;
  const auto path = folder / "weights.h5";
  write_file(path, bytes_of("old"));
  {
    AtomicFile file(path);
    file.write("half of the n");
    EXPECT_EQ(text_of(read_file(path)), "old");
  }
  EXPECT_EQ(text_of(read_file(path)), "old");
  EXPECT_EQ(folder.file_count(), 1u);  // the temporary one is gone
  replace(path, "new");
  EXPECT_EQ(text_of(read_file(path)), "new");
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(AtomicFile, KeepsThePermissionsOfTheFileItReplaces) {
  const TemporaryFolder folder;
  const auto path = folder / "a";
  write_file(path, bytes_of("1"));
  ::chmod(path.c_str(), 0640);
  replace(path, "2");
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(AtomicFile, SaysWhyItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { AtomicFile(folder / "no/such/a"); }),
            "cannot write " + (folder / "no/such/a").string() + ": No such file or directory");
  EXPECT_EQ(error_of([&] { AtomicFile(folder.path()); }), "cannot write " + folder.path().string() + ": it is a folder");
  EXPECT_EQ(error_of([&] { AtomicFile(""); }), "cannot write '': not the name of a file");
}

TEST(InputFile, SaysWhyItCannotRead) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { read_file(folder / "none"); }), "cannot open " + (folder / "none").string() + ": No such file or directory");
  EXPECT_EQ(error_of([&] { read_file(folder.path()); }), "cannot read " + folder.path().string() + ": not a regular file");
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_file(pipe); }), "cannot read " + pipe.string() + ": not a regular file");
  write_file(folder / "four", bytes_of("1234"));
  const InputFile file(folder / "four");
  EXPECT_EQ(text_of(file.read(1, 2)), "23");
  EXPECT_EQ(error_of([&] { file.read(3, 2); }), file.path().string() + ": 2 bytes at 3 are wanted, but the file has 4");
  EXPECT_EQ(error_of([&] { file.read(~uint64_t{0}, 2); }),
            file.path().string() + ": 2 bytes at 18446744073709551615 are wanted, but the file has 4");
}

TEST(InputFile, SaysWhenAFileBecomesShorterWhileItIsRead) {
  const TemporaryFolder folder;
  write_file(folder / "a", bytes_of("12345678"));
  const InputFile file(folder / "a");
  std::filesystem::resize_file(folder / "a", 3);
  EXPECT_EQ(error_of([&] { file.read(0, 8); }),
            "cannot read " + file.path().string() + ": it became shorter while it was read, 3 of 8 bytes");
}

TEST(AllocateBytes, SaysHowMuchThereIsNot) {
  EXPECT_EQ(error_of([] { allocate_bytes(~uint64_t{0}, "x.keras"); }), "x.keras: no memory for 18446744073709551615 bytes");
}

}  // namespace
}  // namespace tandem::io
