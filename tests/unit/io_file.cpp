// Files that cannot be read, and sizes that there is no memory for.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "io_support.hpp"

namespace tandem::io {
namespace {

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
