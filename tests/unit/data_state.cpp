// Saved at any element, restored into another iterator: the elements that follow are the same.
#include <tandem/data/records.hpp>
#include <tandem/ops.hpp>

#include "data_support.hpp"

namespace tandem::data {
namespace {

std::vector<std::string> fingerprints(Iterator& it, size_t most = 1000) {
  std::vector<std::string> all;
  for (Element e; all.size() < most;) {
    try {
      if (!it.next(e)) break;
      std::string text;
      for (const Tensor& t : e) text += t.type_str() + t.str();
      all.push_back(std::move(text));
    } catch (const Error& error) {
      all.push_back(std::string("error ") + error.what());
    }
  }
  return all;
}

// `make` gives an equal Dataset each time: nothing may be carried over but the text.
void expect_resumes(const std::string& what, const std::function<Dataset()>& make) {
  SCOPED_TRACE(what);
  for (size_t stop = 0; stop < 12; ++stop) {
    SCOPED_TRACE("after " + std::to_string(stop) + " elements");
    Iterator first = make().iterate();
    const std::vector<std::string> before = fingerprints(first, stop);
    const std::string state = first.save();
    const std::vector<std::string> rest = fingerprints(first);
    Iterator second = make().iterate();
    second.restore(state);
    ASSERT_EQ(fingerprints(second), rest);
    Iterator third = make().iterate();  // one that has run already
    fingerprints(third, 3);
    third.restore(state);
    ASSERT_EQ(fingerprints(third), rest);
  }
}

Dataset slices() { return Dataset::from_slices({counting(23, 2), Tensor::arange(23)}); }
Dataset many(const Element& e) { return Dataset::range(e[0].item<int64_t>() + 1).shuffle(3, {.seed = 1}); }

TEST(DataState, EveryStage) {
  const auto doubled = [](Tensor x) { return x * 2; };
  expect_resumes("slices", [] { return slices(); });
  expect_resumes("batch of rows", [] { return slices().batch(3); });
  expect_resumes("shuffled rows", [] { return slices().shuffle(7, {.seed = 3}).repeat(2).batch(4); });
  expect_resumes("shuffled elements", [] { return Dataset::range(23).shuffle(7, {.seed = 3}).repeat(2).batch(4).prefetch(3); });
  expect_resumes("map", [&] { return Dataset::range(20).map(doubled, {.parallel_calls = 3}).prefetch(2); });
  expect_resumes("map over batches", [&] {
    return slices()
        .shuffle(9, {.seed = 1})
        .map([](Tensor x, Tensor y) { return std::tuple(x + 1, y); }, {.parallel_calls = 2})
        .batch(2)
        .prefetch();
  });
  expect_resumes("map_random", [] {
    return Dataset::range(15).map_random(5, [](Tensor key, Tensor x) { return x.cast(DType::F32) + random_uniform(key, {2}); }).repeat(2);
  });
  expect_resumes("map_callback", [] {
    return Dataset::range(20)
        .map_callback([](Tensor x) { return x + 1; }, {.parallel_calls = 4})
        .batch(3, BatchOptions{.parallel_calls = 2});
  });
  expect_resumes("filter", [] { return Dataset::range(40).filter([](Tensor x) { return x % 3 == 0; }).enumerate(); });
  expect_resumes("scan", [] {
    return Dataset::range(20).scan({Tensor::scalar<int64_t>(1)},
                                   [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[1], in[0]}; });
  });
  expect_resumes("unique", [] { return Dataset::range(20).repeat(2).unique(); });
  expect_resumes("unbatch", [] { return Dataset::range(20).batch(3).unbatch().window(3, {.shift = 2}); });
  expect_resumes("padded", [] {
    return Dataset::range(12).map_callback([](Tensor x) { return Tensor::arange(x.item<int64_t>() % 4); }).padded_batch(3);
  });
  expect_resumes("bucket", [] {
    return Dataset::range(30)
        .map_callback([](Tensor x) { return Tensor::arange(x.item<int64_t>() % 7); })
        .bucket_by_sequence_length([](const Element& e) { return e[0].size(); }, {2, 4}, {2, 3, 4});
  });
  expect_resumes("interleave", [] { return Dataset::range(7).interleave(many, {.cycle_length = 3, .block_length = 2}); });
  expect_resumes("parallel interleave",
                 [] { return Dataset::range(7).interleave(many, {.cycle_length = 3, .parallel_calls = 2}).prefetch(3); });
  expect_resumes("flat_map", [] { return Dataset::range(7).flat_map(many); });
  expect_resumes("zip and concatenate", [] {
    return Dataset::zip({Dataset::range(20), Dataset::range(5).concatenate(Dataset::range(50, 70)).shuffle(4, {.seed = 9})});
  });
  expect_resumes("sample_from",
                 [] { return Dataset::sample_from({Dataset::range(10), Dataset::range(100, 120)}, {.weights = {0.3, 0.7}, .seed = 4}); });
  expect_resumes("choose_from",
                 [] { return Dataset::choose_from({Dataset::range(10), Dataset::range(100, 120)}, Dataset::range(2).repeat()); });
  expect_resumes("take, skip, shard", [] { return Dataset::range(100).skip(3).shard(3, 1).take(20); });
  expect_resumes("cache", [] { return Dataset::range(6).shuffle(6, {.seed = 2}).cache().repeat(3); });
  expect_resumes("rebatch, prefetch_to_device", [] { return slices().batch(4).rebatch(3).prefetch_to_device(2); });
  expect_resumes("generator", [] {
    return Dataset::generator(
        [] {
          return [n = int64_t{0}](Element& e) mutable {
            e = {Tensor::scalar(n)};
            return n++ < 9;
          };
        },
        {{DType::I64, {}}});
  });
  expect_resumes("errors on the way", [] {
    return Dataset::range(20)
        .map_callback(
            [](Tensor x) {
              if (x.item<int64_t>() % 5 == 3) throw std::runtime_error("three");
              return x;
            },
            {.parallel_calls = 2})
        .prefetch(4);
  });
}

TEST(DataState, Files) {
  const Folder folder;
  folder.write("a.txt", "one\ntwo\r\n\nfour");
  folder.write("b.txt", "five\nsix\n");
  folder.write("c.csv", "1,x\n2,\"y\nz\"\n3,w\n4,v\n5,u\n");
  for (const Compression c : {Compression::None, Compression::Gzip}) {
    RecordWriter w(folder / (c == Compression::None ? "r" : "r.gz"), c);
    for (int i = 0; i < 30; ++i) w.write(std::string(static_cast<size_t>(i), static_cast<char>('a' + i % 26)));
  }
  expect_resumes("lines", [&] { return Dataset::text_lines({folder / "a.txt", folder / "b.txt"}); });
  expect_resumes("records", [&] { return Dataset::tfrecords({folder / "r", folder / "r"}); });
  expect_resumes("compressed records",
                 [&] { return Dataset::tfrecords({folder / "r.gz"}, {.compression = Compression::Gzip}).prefetch(2); });
  expect_resumes("csv",
                 [&] { return Dataset::csv({folder / "c.csv"}, {.columns = {{.dtype = DType::I32}, {.kind = CsvColumn::Kind::Text}}}); });
  expect_resumes("fixed", [&] { return Dataset::fixed_length_records({folder / "b.txt"}, 2, {.header_bytes = 1}); });
  expect_resumes("list_files", [&] { return Dataset::list_files(folder / "*", {.shuffle = true, .seed = 1}); });
  expect_resumes("file cache", [&] { return Dataset::range(8).shuffle(8, {.seed = 2}).cache(folder / "cached").repeat(2); });
}

TEST(DataState, AShuffledIteratorGoesOnInTheNextEpochs) {
  const auto make = [] { return slices().shuffle(23, {.seed = 11}).repeat(5).batch(5); };
  Iterator whole = make().iterate();
  const std::vector<std::string> all = fingerprints(whole);
  Iterator first = make().iterate();
  fingerprints(first, 9);
  Iterator second = make().iterate();
  second.restore(first.save());
  EXPECT_EQ(fingerprints(second), std::vector<std::string>(all.begin() + 9, all.end()));
}

TEST(DataState, OtherStatesAreRefused) {
  Iterator it = slices().batch(3).iterate();
  Element e;
  ASSERT_TRUE(it.next(e));
  const std::string state = it.save();
  EXPECT_EQ(error_of([&] { slices().batch(4).iterate().restore(state); }),
            "restore: the state is of another pipeline\n"
            "  saved:    from_slices(23 x (float32[2], int32[])) | batch(3)\n"
            "  restored: from_slices(23 x (float32[2], int32[])) | batch(4)");
  EXPECT_NE(error_of([&] { it.restore("nonsense"); }).find("damaged"), std::string::npos);
  EXPECT_NE(error_of([&] { it.restore(std::string(8, '\0') + state); }).find("no state of an iterator"), std::string::npos);
  // Any text is either a state or an error, and the iterator stays usable.
  for (size_t n = 0; n < state.size(); ++n) EXPECT_NE(error_of([&] { it.restore(std::string_view(state).substr(0, n)); }), "no error") << n;
  for (size_t n = 0; n < state.size(); ++n)
    for (const int flip : {1, 0x80, 0xff}) {
      std::string bad = state;
      bad[n] = static_cast<char>(bad[n] ^ flip);
      error_of([&] { it.restore(bad); });
      error_of([&] {
        while (it.next(e)) {
        }
      });
    }
  it.restore(state);
  EXPECT_EQ(all_of(it).size(), 7u);
}

}  // namespace
}  // namespace tandem::data
