// What goes wrong has the stage and the element in its message, can be skipped, and stops nothing else.
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include <tandem/data/images.hpp>
#include <tandem/data/records.hpp>

#include "data/crc32c.hpp"
#include "data/mapped_file.hpp"
#include "data_support.hpp"
#include "support/source_folder.hpp"

namespace tandem::data {
namespace {

std::string next_error(Iterator& it) {
  Element e;
  return error_of([&] {
    while (it.next(e)) {
    }
  });
}
std::string first_error(const Dataset& d) {
  Iterator it = d.iterate();
  return next_error(it);
}

Tensor fails_at_three(Tensor x) {
  if (x.item<int64_t>() == 3) throw std::runtime_error("three is bad");
  return x;
}

TEST(DataErrors, ACallbackThatThrows) {
  for (const int64_t calls : {1, 3}) {
    const Dataset d = Dataset::range(6).map_callback(fails_at_three, {.parallel_calls = calls});
    EXPECT_EQ(first_error(d), "map_callback: element 3: three is bad");
    EXPECT_EQ(first_error(d.batch(2).prefetch(2).repeat(2).prefetch()), "map_callback: element 3: three is bad");
    EXPECT_EQ(values(d.ignore_errors()), (std::vector<int64_t>{0, 1, 2, 4, 5}));
    // The batch goes on with what it has: only the bad element is lost.
    EXPECT_EQ(values(d.batch(4).ignore_errors()), (std::vector<int64_t>{0, 1, 2, 4, 5}));
  }
  EXPECT_EQ(first_error(Dataset::range(2).map_callback([](Tensor) -> Tensor { throw 7; })),
            "map_callback: element 0: something was thrown that is no std::exception");
  EXPECT_EQ(first_error(Dataset::range(2).map_callback([](Tensor) { return Tensor(); })),
            "map_callback: element 0: component 0 of the callback's result holds nothing");
}

TEST(DataErrors, AFunctionWithOtherParametersThanAnElementHas) {
  const Dataset pairs = Dataset::from_slices({Tensor::ones({4, 2}), Tensor::ones({4})});
  const std::string hint = "\n  hint: a parameter for each, or one std::vector<Tensor> for all";
  EXPECT_EQ(error_of([&] { pairs.map([](Tensor x) { return x; }); }), "map: the function takes 1 components, an element has 2" + hint);
  EXPECT_EQ(error_of([&] { pairs.filter([](Tensor, Tensor, Tensor z) { return z > 0; }); }),
            "filter: the function takes 3 components, an element has 2" + hint);
  EXPECT_EQ(error_of([&] { pairs.map_random(1, [](Tensor, Tensor x) { return x; }); }),
            "map_random: the function takes 1 components behind the key, an element has 2" + hint);
  EXPECT_EQ(first_error(pairs.map_callback([](Tensor x) { return x; })),
            "map_callback: element 0: the function takes 1 components, an element has 2" + hint);
  EXPECT_EQ(first_error(pairs.map([](std::vector<Tensor> all) { return all; })), "no error");
}

TEST(DataErrors, AnIteratorGoesOnBehindAnError) {
  Iterator it = Dataset::range(6).map_callback(fails_at_three, {.parallel_calls = 2}).prefetch(2).iterate();
  EXPECT_EQ(next_error(it), "map_callback: element 3: three is bad");
  EXPECT_EQ(values<int64_t>(all_of(it)), (std::vector<int64_t>{4, 5}));
}

TEST(DataErrors, ShapesThatDoNotMatchInABatch) {
  const Dataset d = Dataset::range(1, 5).map_callback([](Tensor x) { return Tensor::arange(x.item<int64_t>() / 3); });
  EXPECT_EQ(first_error(d.batch(4)),
            "batch: element 0: component 0 is int32[1] in element 2 of the batch and int32[0] in the first\n"
            "  hint: padded_batch() pads to one shape");
  EXPECT_EQ(first_error(Dataset::range(4)
                            .map_callback(FlatFunction([](const std::vector<Tensor>& in) {
                              return std::vector<Tensor>(static_cast<size_t>(in[0].item<int64_t>() + 1), in[0]);
                            }))
                            .batch(4)),
            "batch: element 0: an element has 2 components, the first of the batch has 1 (2 != 1)");
}

TEST(DataErrors, DeclaredTypesAreHeldTo) {
  EXPECT_EQ(first_error(Dataset::range(3).map_callback([](Tensor x) { return x; }, {.specs = {{DType::F32, {}}}})),
            "map_callback: element 0: component 0 is int64[], declared is float32[]");
  const auto two = [] {
    return [](Element& e) {
      e = {Tensor::scalar(1.f), Tensor::scalar(2.f)};
      return true;
    };
  };
  EXPECT_EQ(first_error(Dataset::generator(two, {{DType::F32, {}}})),
            "generator: element 0: the element has 2 components, declared are 1 (float32[])");
  EXPECT_EQ(error_of([] { Dataset::range(3).map_callback([](Tensor x) { return x; }).specs(); }),
            "specs: map_callback gives elements whose types are known only when it runs\n"
            "  hint: declare them, as in map_callback(f, {.specs = ...})");
}

TEST(DataErrors, RecordsThatAreDamaged) {
  const Folder folder;
  const std::string file = folder / "r";
  {
    RecordWriter w(file);
    for (int i = 0; i < 5; ++i) w.write(std::string(10, static_cast<char>('a' + i)));
  }
  std::string bytes;
  {
    std::ifstream in(file, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  constexpr size_t kRecord = 26;
  ASSERT_EQ(bytes.size(), 5 * kRecord);
  std::string bad_data = bytes;
  bad_data[kRecord + 15] ^= 1;
  folder.write("bad_data", bad_data);
  std::string bad_length = bytes;
  bad_length[kRecord] ^= 1;
  folder.write("bad_length", bad_length);
  folder.write("short", bytes.substr(0, 3 * kRecord + 20));
  folder.write("short_head", bytes.substr(0, 3 * kRecord + 5));
  const auto records = [&](const std::string& name) { return Dataset::tfrecords({folder / name, file}); };

  EXPECT_NE(first_error(records("bad_data"))
                .find("tfrecords: element 1: " + (folder / "bad_data") + ": corrupted: the data of the record at byte 26"),
            std::string::npos);
  EXPECT_EQ(texts(records("bad_data").ignore_errors()).size(), 9u);
  EXPECT_NE(first_error(records("bad_length")).find("corrupted: the record at byte 26 has a length"), std::string::npos);
  EXPECT_EQ(texts(records("bad_length").ignore_errors()).size(), 6u);  // one before, and the next file
  EXPECT_NE(first_error(records("short")).find("truncated: the record at byte 78 should have 26 bytes, 20 are there"), std::string::npos);
  EXPECT_EQ(texts(records("short").ignore_errors()).size(), 8u);
  EXPECT_NE(first_error(records("short_head")).find("truncated: the record at byte 78 has 5 of the 12 bytes"), std::string::npos);

  {
    RecordWriter w(folder / "gz", Compression::Gzip);
    for (int i = 0; i < 1000; ++i) w.write(std::to_string(i * 7919));
  }
  std::ifstream in(folder / "gz", std::ios::binary);
  std::string packed(std::istreambuf_iterator<char>(in), {});
  folder.write("gz_short", packed.substr(0, packed.size() / 2));
  EXPECT_NE(first_error(Dataset::tfrecords({folder / "gz_short"}, {.compression = Compression::Gzip})).find("compressed data end early"),
            std::string::npos);
  EXPECT_NE(first_error(Dataset::tfrecords({file}, {.compression = Compression::Gzip})).find("compressed data are damaged"),
            std::string::npos);
}

// What is wrong at the end is said once, also behind a footer, and the next file follows, also for an iterator that is restored there.
TEST(DataErrors, AFileIsLeftBehindItsLastError) {
  const Folder folder;
  const std::string odd = folder.write("odd", "aabb_"), good = folder.write("good", "ccddff");
  const Dataset d = Dataset::fixed_length_records({odd, good}, 2, {.footer_bytes = 2});
  Iterator it = d.iterate();
  Element e;
  ASSERT_TRUE(it.next(e));
  EXPECT_NE(next_error(it).find("truncated: behind byte 2 there are 3 bytes"), std::string::npos);
  Iterator restored = d.iterate();
  restored.restore(it.save());
  for (Iterator* i : {&it, &restored}) {
    EXPECT_EQ(all_of(*i).size(), 2u);
    EXPECT_FALSE(i->next(e));
  }
  EXPECT_EQ(texts(d.ignore_errors()), (std::vector<std::string>{"aa", "cc", "dd"}));
  std::filesystem::create_directory(folder / "folder");
  EXPECT_EQ(texts(Dataset::text_lines({folder / "folder", good}).ignore_errors()), (std::vector<std::string>{"ccddff"}));
}

TEST(DataErrors, FilesThatVanish) {
  const Folder folder;
  const std::string there = folder.write("there", "1\n2\n"), gone = folder / "gone";
  EXPECT_EQ(first_error(Dataset::text_lines({there, gone})),
            "text_lines: element 2: " + gone + ": cannot be opened: No such file or directory");
  EXPECT_EQ(texts(Dataset::text_lines({gone, there}).ignore_errors()), (std::vector<std::string>{"1", "2"}));
  // One that is listed and then removed, in the middle of an epoch.
  folder.write("a", "1\n");
  folder.write("b", "2\n");
  Iterator it =
      Dataset::list_files(folder / "[ab]").flat_map([](const Element& e) { return Dataset::text_lines({to_text(e[0])}); }).iterate();
  Element e;
  ASSERT_TRUE(it.next(e));
  std::filesystem::remove(folder / "b");
  EXPECT_EQ(next_error(it), "text_lines: element 0: " + (folder / "b") + ": cannot be opened: No such file or directory");
  EXPECT_FALSE(it.next(e));
  EXPECT_EQ(error_of([&] { Dataset::list_files(folder / "*.none"); }), "list_files: no file fits " + (folder / "*.none"));
}

TEST(DataErrors, AMappedFileThatShrinks) {
  const Folder folder;
  const std::string file = folder / "x.npy";
  std::filesystem::copy_file(test::source_file("tests/data/pipelines/array.npy"), file);
  Iterator it = Dataset::npy(file).iterate();
  Element e;
  ASSERT_TRUE(it.next(e));
  std::filesystem::resize_file(file, 150);
  EXPECT_NE(next_error(it).find("truncated while it was read: 150 of 224 bytes are left"), std::string::npos);
}

// 64 rows of a page each, so that most of them are gone when the file is cut.
std::string array_of_pages(const Folder& folder) {
  std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 1024), }";
  head.resize(117, ' ');
  const std::vector<float> ones(64 * 1024, 1.f);
  return folder.write("pages.npy", std::string("\x93NUMPY\1\0\x76\0", 10) + head + '\n' +
                                       std::string(reinterpret_cast<const char*>(ones.data()), ones.size() * sizeof(float)));
}
constexpr const char* kCut = "truncated while it was read: 4096 of 262272 bytes are left";

TEST(DataErrors, AMappedFileThatShrinksBehindAView) {
  const Folder folder;
  const std::string file = array_of_pages(folder);
  Iterator it = Dataset::npy(file).batch(32).iterate(), last = Dataset::npy(file).batch(64).iterate();
  Element e, all;
  ASSERT_TRUE(it.next(e));
  ASSERT_TRUE(last.next(all));
  std::filesystem::resize_file(file, 4096);
  const std::vector<float> seen = e[0].to_vector<float>();  // would end the process
  EXPECT_EQ(seen.front(), 1.f);
  EXPECT_EQ(seen.back(), 0.f);
  EXPECT_NE(next_error(it).find(file + ": " + kCut), std::string::npos);
  EXPECT_EQ(all[0].to_vector<float>().back(), 0.f);
  // Nothing is left to be read, but the view that was given out is not what it was.
  EXPECT_EQ(error_of([&] { last.next(e); }), file + ": " + kCut);
  EXPECT_FALSE(last.next(e));
  EXPECT_EQ(error_of([&] { it.save(); }), file + ": " + kCut);
  // Another file, and the same one written anew, are not concerned.
  EXPECT_EQ(values<float>(Dataset::npy(array_of_pages(folder)).batch(64)), std::vector<float>(64 * 1024, 1.f));
}

TEST(DataErrors, AMappedFileThatShrinksWhileRowsAreCopied) {
  const Folder folder;
  const std::string path = array_of_pages(folder);
  const auto file = std::make_shared<const MappedFile>(path);
  struct Cut final : RowWatch {
    Cut(std::string path, std::shared_ptr<const FileHealth> health) : RowWatch(std::move(health)), path(std::move(path)) {}
    void before(int64_t, Order) const override { std::filesystem::resize_file(path, 4096); }
    const std::string path;
  };
  Rows rows({npy_array(file->bytes(), file, path)}, "npy");
  rows.watch = std::make_shared<Cut>(path, file->health());
  Element e;
  const std::vector<int64_t> indices = {40, 3, 63};
  EXPECT_EQ(error_of([&] { rows.gather(indices, e); }), path + ": " + kCut);
  // It stays an error when the file has its old size again: what was mapped is gone.
  std::filesystem::resize_file(path, 262272);
  EXPECT_EQ(error_of([&] { file->before(1); }), path + ": " + kCut);
}

TEST(DataErrors, ACacheOfABrokenFileIsNotKept) {
  const Folder folder;
  const std::string path = array_of_pages(folder);
  const Dataset d = Dataset::npy(path).prefetch(1).cache(folder / "kept");
  Iterator it = d.iterate();
  Element e;
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(it.next(e));
  std::filesystem::resize_file(path, 4096);
  EXPECT_EQ(e[0].to_vector<float>().back(), 0.f);
  EXPECT_NE(error_of([&] { it.next(e); }).find(kCut), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "kept"));
}

TEST(DataErrorsDeathTest, OtherBusErrorsAreAsBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Folder folder;
  const Dataset ours = Dataset::npy(array_of_pages(folder));  // the handler is there
  const std::string path = folder.write("other", std::string(8192, 'x'));
  const Descriptor file = open_to_read(path, Files::Regular);
  const auto* bytes = static_cast<const volatile char*>(mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE, file.get(), 0));
  std::filesystem::resize_file(path, 0);
  std::filesystem::remove_all(folder.path());  // what is killed removes nothing
  const auto dies = [](int status) {           // of the signal, or of a sanitizer's own handler, which was there before
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS : WEXITSTATUS(status) != 0;
  };
  EXPECT_EXIT((void)bytes[5000], dies, "");
  EXPECT_EXIT(raise(SIGBUS), dies, "");
}

TEST(DataErrors, ArraysThatAreDamaged) {
  const Folder folder;
  const std::string source = test::source_file("tests/data/pipelines/");
  for (const char* name : {"array.npy", "stored.npz", "deflated.npz"}) {
    std::ifstream in(source + name, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    const auto open = [&](const std::string& path) {
      const Dataset d = std::string(name).ends_with("npz") ? Dataset::npz(path) : Dataset::npy(path);
      all_of(d.batch(2));
    };
    for (size_t n = 0; n < bytes.size(); n += 3)
      EXPECT_NE(error_of([&] { open(folder.write("cut", bytes.substr(0, n))); }), "no error") << name << " " << n;
    for (size_t n = 0; n < bytes.size(); ++n) {  // an error or other numbers, never a crash
      std::string bad = bytes;
      bad[n] = static_cast<char>(bad[n] ^ 0x5a);
      error_of([&] { open(folder.write("flipped", bad)); });
    }
  }
}

TEST(DataErrors, ImagesThatAreDamaged) {
  const std::string source = test::source_file("tests/data/pipelines/");
  for (const char* name : {"colour.jpg", "colour.png"}) {
    const std::string bytes = to_text(read_file(source + name));
    for (size_t n = 0; n + 20 < bytes.size(); n += 7)
      EXPECT_NE(error_of([&] { decode_image(from_text(bytes.substr(0, n))); }), "no error") << name << " " << n;
    for (size_t n = 0; n < bytes.size(); ++n) {
      std::string bad = bytes;
      bad[n] = static_cast<char>(bad[n] ^ 0x5a);
      error_of([&] { decode_image(from_text(bad)); });
    }
  }
  EXPECT_EQ(error_of([] { decode_image(from_text("hello")); }), "decode_image: the bytes are neither a JPEG nor a PNG image");
}

TEST(DataErrors, ImageFolders) {
  const Folder folder;
  const std::string source = test::source_file("tests/data/pipelines/");
  folder.write("cats/1.jpg", to_text(read_file(source + "colour.jpg")));
  folder.write("cats/2.png", to_text(read_file(source + "alpha.png")));
  folder.write("dogs/1.jpg", to_text(read_file(source + "grey.jpg")));
  folder.write("dogs/2.jpg", "no image");
  folder.write("dogs/notes.txt", "left out");
  const Dataset d = Dataset::image_folder(folder / "", {.height = 12, .width = 10});
  EXPECT_EQ(d.cardinality(), 4);
  EXPECT_EQ(d.specs()[0].str(), "uint8[12,10,3]");
  EXPECT_NE(first_error(d).find("decode_image: element 3: " + (folder / "dogs/2.jpg") + ": decode_image: the bytes are neither"),
            std::string::npos);
  EXPECT_EQ(values<int>(d.ignore_errors(), 1), (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(shapes(d.ignore_errors().batch(3)), (std::vector<std::string>{"uint8[3,12,10,3]"}));
}

TEST(DataErrors, CsvFields) {
  const Folder folder;
  const std::string file = folder.write("t.csv", "1,a\nx,b\n3\n4,d\n");
  const Dataset d = Dataset::csv({file}, {.columns = {{.dtype = DType::I32}, {.kind = CsvColumn::Kind::Text}}});
  Iterator it = d.iterate();
  EXPECT_EQ(next_error(it), "csv: element 1: " + file + " line 2: column 1: 'x' is no int32");
  EXPECT_EQ(next_error(it), "csv: element 2: " + file + " line 3: has 1 fields, declared are 2");
  EXPECT_EQ(texts(d.ignore_errors(), 1), (std::vector<std::string>{"a", "d"}));
  EXPECT_EQ(first_error(Dataset::csv({folder.write("big.csv", "300\n")}, {.columns = {{.dtype = DType::U8}}})),
            "csv: element 0: " + (folder / "big.csv") + " line 1: column 1: '300' is no uint8");
}

TEST(DataErrors, CsvColumnsAreNamed) {
  const Folder folder;
  const std::string file = folder.write("t.csv",
                                        "\xef\xbb\xbf"
                                        "name,age,city\na,1,x\nb,old,y\nc,,z\nd,4\ne,5,z,more,fields\nf\n\"g\nh\",7,w\n");
  const auto with = [&](const std::vector<CsvColumn>& columns) { return Dataset::csv({file}, {.columns = columns, .header = true}); };
  const CsvColumn name{.name = "name", .kind = CsvColumn::Kind::Text}, age{.name = "age", .dtype = DType::I32};
  Iterator it = with({name, age}).iterate();
  EXPECT_EQ(next_error(it), "csv: element 1: " + file + " line 3: column 2 ('age'): 'old' is no int32");
  EXPECT_EQ(next_error(it),
            "csv: element 2: " + file + " line 4: column 2 ('age') is empty\n  hint: CsvColumn::missing says what that stands for");
  EXPECT_EQ(next_error(it), "csv: element 4: " + file +
                                " line 6: has 5 fields, the header has 3\n  hint: a field with a delimiter in it is written in quotes");
  EXPECT_EQ(next_error(it), "csv: element 5: " + file + " line 7: has 1 fields, column 2 ('age') is asked for");
  EXPECT_EQ(texts(with({name, age}).ignore_errors()), (std::vector<std::string>{"a", "d", "g\nh"}));  // "name" is found behind the mark
  EXPECT_EQ(first_error(with({{.name = "zip"}})), "csv: element 0: " + file + ": the header has no column 'zip'; it has name, age, city");
  // A column by its place has its name too; a mark in front of numbers is no part of them.
  EXPECT_EQ(first_error(with({{.dtype = DType::I32}})), "csv: element 0: " + file + " line 2: column 1 ('name'): 'a' is no int32");
  const std::string plain = folder.write("p.csv",
                                         "\xef\xbb\xbf"
                                         "1\n2\n");
  EXPECT_EQ(values<int32_t>(Dataset::csv({plain}, {.columns = {{.dtype = DType::I32}}})), (std::vector<int32_t>{1, 2}));
  const std::string wide = folder.write("w.csv", std::string(5000, 'x') + "\n");
  EXPECT_LT(first_error(Dataset::csv({wide}, {.columns = {{.dtype = DType::I32}}})).size(), 500u);
}

TEST(DataErrors, Checksums) {
  const std::string text = "123456789";
  EXPECT_EQ(crc32c(text.data(), text.size()), 0xe3069283u);  // the check value of CRC-32C
  EXPECT_EQ(crc32c_by_table(text.data(), text.size()), 0xe3069283u);
  std::string bytes;
  for (int n = 0; n < 100; ++n) {
    EXPECT_EQ(crc32c(bytes.data(), bytes.size()), crc32c_by_table(bytes.data(), bytes.size()));
    bytes += static_cast<char>(37 * n);
  }
}

}  // namespace
}  // namespace tandem::data
