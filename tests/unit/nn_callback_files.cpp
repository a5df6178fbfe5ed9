// Callbacks that write files where none can be written, and backups that are damaged.
#include <sys/stat.h>

#include <tandem/nn/layers/core.hpp>
#include <tandem/nn/model.hpp>

#include <source_location>

#include "io_support.hpp"

namespace tandem::nn {
namespace {

namespace fs = std::filesystem;

Model compiled_model() {
  const Model model(Network::sequential({Input({2}), Dense(1)}));
  model.compile({.optimizer = "sgd", .loss = {"mse"}});
  return model;
}

constexpr auto kFit = std::source_location::current().line() + 4;
const std::string kLine = "\n  at nn_callback_files.cpp:" + std::to_string(kFit);
std::string error_of_fit(const Callback& callback) {
  const Tensor x = Tensor::ones({4, 2}), y = Tensor::ones({4, 1});
  return error_of([&] { compiled_model().fit({x}, {y}, {.batch_size = 2, .epochs = 2, .callbacks = {callback}, .verbose = 0}); });
}

// error_of lets only our own errors out: a filesystem_error would end the test.
TEST(CallbackFiles, FoldersThatCannotBeMade) {
  const TemporaryFolder folder;
  write_file(folder / "file", io::bytes_of("in the way"));
  const fs::path below = folder / "file/checkpoints";
  EXPECT_TRUE(error_of_fit(ModelCheckpoint(below / "m.keras")).starts_with("tandem: filesystem error: "));
  EXPECT_NE(error_of_fit(BackupAndRestore(below)), "no error");
  EXPECT_EQ(error_of_fit(CSVLogger(below / "log.csv")), "CSVLogger: cannot write " + (below / "log.csv").string() + kLine);
  EXPECT_EQ(error_of([&] { compiled_model().save(below / "m.keras"); }),
            "cannot write " + (below / "m.keras").string() + ": Not a directory");
  EXPECT_NE(error_of([&] { Model::load(below / "m.keras"); }), "no error");
  const std::string longer(5000, 'x');
  EXPECT_NE(error_of([&] { compiled_model().save(folder / (longer + ".keras")); }), "no error");
  EXPECT_NE(error_of([&] { Model::load(folder / (longer + ".keras")); }), "no error");
}

TEST(CallbackFiles, BackupsThatAreDamaged) {
  const TemporaryFolder folder;
  const fs::path backup = folder / "backup", metadata = backup / "training_metadata.json";
  ASSERT_EQ(error_of_fit(BackupAndRestore(backup, {.delete_checkpoint = false})), "no error");
  const io::Bytes good = io::read_file(metadata);
  const auto error_with = [&](const std::string& text) {
    write_file(metadata, io::bytes_of(text));
    return error_of_fit(BackupAndRestore(backup));
  };
  const std::string is_damaged = "BackupAndRestore: " + metadata.string() + " is damaged" + kLine + "\n  hint: delete it to begin anew";
  std::string text(io::text_of(good));
  const size_t at = text.find("\"epoch\":2");
  ASSERT_NE(at, std::string::npos) << text;
  for (const char* epoch : {"-1", "-9223372036854775808", "18446744073709551615", "1e3", "null"}) {
    std::string bad = text;
    EXPECT_EQ(error_with(bad.replace(at, 9, std::string("\"epoch\":") + epoch)), is_damaged) << epoch;
  }
  EXPECT_EQ(error_with(text.substr(0, text.size() / 2)), is_damaged);
  EXPECT_EQ(error_with(std::string(100000, '[')), is_damaged);
  EXPECT_EQ(error_with(""), is_damaged);
  fs::remove(metadata);
  ASSERT_EQ(::mkfifo(metadata.c_str(), 0600), 0);
  EXPECT_EQ(error_of_fit(BackupAndRestore(backup)), "cannot read " + metadata.string() + ": not a regular file" + kLine);
}

}  // namespace
}  // namespace tandem::nn
