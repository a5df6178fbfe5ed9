// Files that take their name when they are whole.
#include "base/file.hpp"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include <tandem/error.hpp>

#include "error_of.hpp"
#include "temporary_folder.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}
void put(const fs::path& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }
void replace(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}
TEST(AtomicFile, ReplacesTheOldOneOnlyWhenItIsWhole) {
  const TemporaryFolder folder;
  const auto path = folder / "weights.h5";
  put(path, "old");
  {
    AtomicFile file(path);
    file.write("half of the n");
    EXPECT_EQ(content(path), "old");
  }
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(folder.file_count(), 1u);  // the temporary one is gone
  replace(path, "new");
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(AtomicFile, SmallAndLargePiecesInOrder) {
  const TemporaryFolder folder;
  std::string all;
  AtomicFile file(folder / "a");
  for (size_t bytes : {0, 1, 70000, 5, 65536, 65537, 30000, 30000, 30000, 1}) {
    const std::string piece(bytes, static_cast<char>('a' + all.size() % 26));
    file.write(piece);
    all += piece;
    EXPECT_EQ(file.size(), all.size());
  }
  file.commit();
  EXPECT_TRUE(content(folder / "a") == all);
}

TEST(AtomicFile, KeepsThePermissionsOfTheFileItReplaces) {
  const TemporaryFolder folder;
  const auto path = folder / "a";
  put(path, "1");
  ::chmod(path.c_str(), 0640);
  replace(path, "2");
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  const mode_t mask = ::umask(027);
  replace(folder / "new", "1");
  ::umask(mask);
  ASSERT_EQ(::stat((folder / "new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(AtomicFile, SaysWhyItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { AtomicFile(folder / "no/such/a"); }),
            "cannot write " + (folder / "no/such/a").string() + ": No such file or directory");
  EXPECT_EQ(error_of([&] { AtomicFile(folder.path()); }), "cannot write " + folder.path().string() + ": it is a folder");
  EXPECT_EQ(error_of([&] { AtomicFile(""); }), "cannot write '': not the name of a file");
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { AtomicFile{pipe}; }), "cannot write " + pipe.string() + ": it is not a regular file");
  fs::create_symlink("loop", folder / "loop");
  EXPECT_EQ(error_of([&] { AtomicFile(folder / "loop"); }),
            "cannot write " + (folder / "loop").string() + ": Too many levels of symbolic links");
}

TEST(AtomicFile, ALinkStaysAndItsTargetIsReplaced) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "store");
  put(folder / "store/model", "old");
  fs::create_symlink("store/model", folder / "link");
  fs::create_symlink(folder / "link", folder / "link_to_link");
  replace(folder / "link_to_link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link") && fs::is_symlink(folder / "link_to_link"));
  EXPECT_EQ(content(folder / "store/model"), "new");
  fs::create_symlink("store/not_yet", folder / "dangling");
  replace(folder / "dangling", "made");
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
  EXPECT_EQ(content(folder / "store/not_yet"), "made");
}

TEST(AtomicFile, NamesOfAnyLength) {
  const TemporaryFolder folder;
  replace(folder / std::string(255, 'n'), "long");
  EXPECT_EQ(content(folder / std::string(255, 'n')), "long");
}

TEST(AtomicFile, KnowsItsOwnTemporaryFiles) {
  EXPECT_TRUE(is_temporary("m.keras.abcdefghijkl.tandem-part"));
  for (const char* name : {"m.keras", "m.tandem-part", ".tandem-part", "abcdefghijkl.tandem-part", "m.keras.ABCDEFGHIJKL.tandem-part",
                           "m.keras.abcdefghijkl.tandem-part.txt", "m.keras.abcdefghijk.tandem-part", "m.keras_abcdefghijkl.tandem-part"})
    EXPECT_FALSE(is_temporary(name)) << name;
}

// A child begins to write a file and is killed in the middle of it.
class Writer {
 public:
  explicit Writer(const fs::path& path) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    process_ = ::fork();
    if (process_ == 0) {
      AtomicFile file(path);
      file.write(std::string(1 << 20, 'x'));
      if (::write(ends[1], "1", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char byte;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
  }
  ~Writer() { kill(); }
  void kill() {
    if (process_ == 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(std::exchange(process_, 0), nullptr, 0);
  }

 private:
  pid_t process_;
};

TEST(AtomicFile, TheNextOneRemovesWhatAKilledProcessLeft) {
  const TemporaryFolder folder;
  put(folder / "m.keras", "old");
  put(folder / "notes.part", "another program's");
  Writer dead(folder / "m.keras"), alive(folder / "m.keras");
  dead.kill();
  EXPECT_EQ(folder.file_count(), 4u);
  EXPECT_EQ(content(folder / "m.keras"), "old");
  replace(folder / "another.keras", "new");  // in this folder, under any name
  EXPECT_EQ(folder.file_count(), 4u);        // the one that is still being written stays
  alive.kill();
  replace(folder / "m.keras", "new");
  EXPECT_EQ(folder.file_count(), 3u);
  EXPECT_EQ(content(folder / "m.keras"), "new");
  EXPECT_EQ(content(folder / "notes.part"), "another program's");
}

TEST(AtomicFile, ManyProcessesWriteTheSameFile) {
  const TemporaryFolder folder;
  std::vector<pid_t> children;
  for (char c = 'a'; c < 'e'; ++c) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    for (int i = 0; i < 50; ++i) {
      AtomicFile file(folder / "shared");
      file.write(std::string(100000, c));
      file.commit(AtomicFile::Flush::Later);
    }
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const std::string whole = content(folder / "shared");
  EXPECT_TRUE(whole.size() == 100000 && whole == std::string(100000, whole[0]));
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(RegularFile, IsFoundWithoutWaiting) {
  const TemporaryFolder folder;
  put(folder / "a", "1234");
  fs::create_symlink("a", folder / "link");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(find_regular(folder / "a", Links::Refused).bytes, 4u);
  EXPECT_TRUE(find_regular(folder / "link", Links::Followed).descriptor);
  EXPECT_FALSE(find_regular(folder / "link", Links::Refused).descriptor);
  for (const fs::path& other : {folder / "pipe", folder / "none", folder.path(), fs::path("/dev/zero")})
    EXPECT_FALSE(find_regular(other, Links::Followed).descriptor) << other;
}

}  // namespace
}  // namespace tandem
