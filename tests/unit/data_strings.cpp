// Tensors of strings: what moves and compares them, what refuses them, and their way through a pipeline.
#include <gtest/gtest.h>

#include <filesystem>

#include <tandem/data.hpp>
#include <tandem/ops.hpp>
#include <tandem/strings.hpp>

#include "base/string_hash.hpp"
#include "data/examples.hpp"
#include "data_support.hpp"
#include "frontend/string_ops.hpp"

namespace tandem::data {
namespace {

using Strings = std::vector<std::string>;

Tensor row(const Strings& all) { return from_strings(all, {static_cast<int64_t>(all.size())}); }
Strings text(const Tensor& t) {
  const auto all = strings_of(t);
  return {all.begin(), all.end()};
}

TEST(DataStrings, RowsThatMoveElementsMoveStrings) {
  const Tensor t = from_strings({"a", "b", "c", "d", "e", "f"}, {2, 3});
  EXPECT_EQ(t.type_str(), "string[2,3]");
  EXPECT_EQ(text(t[1]), (Strings{"d", "e", "f"}));
  EXPECT_EQ(text(t.transpose()), (Strings{"a", "d", "b", "e", "c", "f"}));
  EXPECT_EQ(text(concatenate({t[0], row({"", "zz"})})), (Strings{"a", "b", "c", "", "zz"}));
  EXPECT_EQ(text(where(Tensor::from(std::vector<bool>{true, false, true}), t[0], t[1])), (Strings{"a", "e", "c"}));
  EXPECT_EQ(text(sort(row({"b", "", "a"}))), (Strings{"", "a", "b"}));
  EXPECT_EQ((t[0] == row({"a", "x", "c"})).to_vector<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(text(t[0] + from_string("!")), (Strings{"a!", "b!", "c!"}));
}

TEST(DataStrings, RowsOfNumbersRefuseThem) {
  const Tensor t = row({"a"});
  EXPECT_THROW(exp(t), UserError);
  EXPECT_THROW(t * t, UserError);
  EXPECT_THROW(concatenate({t, Tensor::arange(2)}), UserError);
  EXPECT_THROW(t.item<float>(), UserError);
  EXPECT_THROW(Function([&](Tensor x) { return where(x > 0, t, t); })(Tensor::ones({1})), UserError);
  EXPECT_THROW(from_strings({"a", "b"}, {3}), UserError);
}

TEST(DataStrings, GoThroughAPipeline) {
  const Dataset d = Dataset::from_slices({row({"a", "bb", "", "d", "e"}), Tensor::arange(5)});
  Element e;
  Iterator batches = d.batch(2).iterate();
  ASSERT_TRUE(batches.next(e));
  EXPECT_EQ(text(e[0]), (Strings{"a", "bb"}));
  EXPECT_EQ(d.batch(2, true).specs()[0].str(), "string[2]");

  // Mixed up, kept, and numbers still beside their strings.
  const Dataset kept = d.shuffle(5, {.seed = 3}).cache().repeat(2).batch(3).prefetch(2);
  Iterator it = kept.iterate();
  Strings seen;
  while (it.next(e)) {
    const Strings words = text(e[0]);
    for (size_t i = 0; i < words.size(); ++i) EXPECT_EQ(words[i], (Strings{"a", "bb", "", "d", "e"})[e[1].to_vector<size_t>()[i]]);
    seen.insert(seen.end(), words.begin(), words.end());
  }
  EXPECT_EQ(seen.size(), 10U);
}

TEST(DataStrings, ArePaddedAndTakenApart) {
  const Dataset d = Dataset::range(1, 4).map_callback([](Tensor n) { return row(Strings(n.item<size_t>(), "w")); });
  Element e;
  Iterator it = d.padded_batch(3, {.values = {from_string("-")}}).iterate();
  ASSERT_TRUE(it.next(e));
  EXPECT_EQ(text(e[0]), (Strings{"w", "-", "-", "w", "w", "-", "w", "w", "w"}));
  Iterator rows = d.padded_batch(3).unbatch().iterate();
  ASSERT_TRUE(rows.next(e));
  EXPECT_EQ(text(e[0]), (Strings{"w", "", ""}));
}

TEST(DataStrings, ArePartOfAPosition) {
  const Dataset d = Dataset::from_slices({row({"a", "bb", "ccc", "d", "e"})}).shuffle(3, {.seed = 1}).prefetch(2);
  Element e;
  Iterator first = d.iterate();
  ASSERT_TRUE(first.next(e));
  const std::string state = first.save();
  Strings rest, again;
  while (first.next(e)) rest.push_back(text(e[0])[0]);
  Iterator second = d.iterate();
  second.restore(state);
  while (second.next(e)) again.push_back(text(e[0])[0]);
  EXPECT_EQ(rest, again);
  EXPECT_EQ(rest.size(), 4U);
}

TEST(DataStrings, TakeWhileAndAssertedCounts) {
  const Dataset d = Dataset::range(10).take_while([](Tensor x) { return x < 3; });
  EXPECT_EQ(values(d), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(d.assert_cardinality(3).cardinality(), 3);
  EXPECT_EQ(values(d.assert_cardinality(3)), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_THROW(values(d.assert_cardinality(4)), UserError);
  EXPECT_THROW(values(d.assert_cardinality(2)), UserError);
}

struct OwnError {
  int number;
};

TEST(DataStrings, WhatACallbackThrowsIsKept) {
  Iterator it = Dataset::range(3).map_callback([](Tensor) -> Tensor { throw OwnError{7}; }, {.parallel_calls = 2}).prefetch(1).iterate();
  Element e;
  try {
    it.next(e);
    FAIL();
  } catch (const CallbackError& error) {
    EXPECT_EQ(std::string(error.what()), "map_callback: element 0: something was thrown that is no std::exception");
    try {
      std::rethrow_exception(error.original());
    } catch (const OwnError& own) {
      EXPECT_EQ(own.number, 7);
    }
  }
}

TEST(DataStrings, HashesAreThoseOfOthers) {
  // From TensorFlow's to_hash_bucket_fast and _strong, modulo 1000.
  EXPECT_EQ(fingerprint64("hello") % 1000, 296U);
  EXPECT_EQ(fingerprint64("a longer string than sixteen") % 1000, 491U);
  EXPECT_EQ(fingerprint64(std::string(50, 'x')) % 1000, 893U);
  EXPECT_EQ(fingerprint64(std::string(200, 'y')) % 1000, 796U);
  EXPECT_EQ(fingerprint64("") % 1000, 263U);
  EXPECT_EQ(keyed_hash64("hello", 1, 2) % 1000, 622U);
}

TEST(DataStrings, SplitAndCut) {
  const string_ops::Parts p = string_ops::split(row({" a b ", "", "c"}), "", -1);
  EXPECT_EQ(text(p.values), (Strings{"a", "b", "c"}));
  EXPECT_EQ(p.counts.to_vector<int64_t>(), (std::vector<int64_t>{2, 0, 1}));
  EXPECT_EQ(text(string_ops::split(row({"a--b"}), "-", -1).values), (Strings{"a", "", "b"}));
  EXPECT_EQ(text(string_ops::substr(row({"a\xc3\xbc"
                                         "b"}),
                                    Tensor::scalar<int64_t>(1), Tensor::scalar<int64_t>(1), string_ops::Unit::Utf8)),
            (Strings{"\xc3\xbc"}));
  EXPECT_THROW(string_ops::to_number(row({"1x"}), DType::F32), UserError);
}

TEST(DataStrings, ExamplesThatAreDamaged) {
  // Example{features{feature{"a": int64_list{1}}}}
  const std::string whole = "\x0a\x0c\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x01";
  const auto found = parse_examples(Strings{whole, ""}, {{"a", DType::I64}});
  EXPECT_EQ(found[0].values.to_vector<int64_t>(), (std::vector<int64_t>{1}));
  EXPECT_EQ(found[0].counts.to_vector<int64_t>(), (std::vector<int64_t>{1, 0}));
  for (size_t n = 1; n < whole.size(); ++n) EXPECT_THROW(parse_examples(Strings{whole.substr(0, n)}, {{"a", DType::I64}}), UserError) << n;
  EXPECT_THROW(parse_examples(Strings{whole}, {{"a", DType::F32}}), UserError);
}

TEST(DataStrings, PatternsAndPiecesOfRows) {
  namespace so = string_ops;
  EXPECT_EQ(text(so::regex_replace(row({"a1b22", "\u00e9"}), "[0-9]+|\\w", "<\\0>", true)), (Strings{"<a><1><b><22>", "\u00e9"}));
  EXPECT_EQ(so::regex_full_match(row({"ab", "abc"}), "a|ab").to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(text(so::join_rows(from_strings({"a", "b", "c", "d"}, {2, 2}), "-")), (Strings{"a-b", "c-d"}));
  EXPECT_EQ(so::join_rows(from_strings({}, {3, 0}), "-").shape(), (Shape{3}));

  const Tensor words = row({"a", "b", "c", "d"}), counts = Tensor::from(std::vector<int64_t>{3, 0, 1});
  so::Parts made = so::ngrams(words, counts, {.widths = {1, 2}, .separator = " ", .left = "L", .right = "R", .padding = 1});
  EXPECT_EQ(text(made.values), (Strings{"a", "b", "c", "L a", "a b", "b c", "c R", "L R", "d", "L d", "d R"}));
  EXPECT_EQ(made.counts.to_vector<int64_t>(), (std::vector<int64_t>{7, 1, 3}));
  made = so::ngrams(words, counts, {.widths = {2}, .separator = " ", .left = "", .right = "", .keeps_short = true});
  EXPECT_EQ(text(made.values), (Strings{"a b", "b c", "d"}));
  EXPECT_THROW(so::ngrams(words, Tensor::from(std::vector<int64_t>{5}), {.widths = {2}}), UserError);

  EXPECT_TRUE(so::is_utf8(row({"a\u20ac", ""})));
  EXPECT_FALSE(so::is_utf8(row({"a", "\xc3"})));
  const so::Parts codes = so::code_points(row({"a\u20ac", "\u00e9"}));
  EXPECT_EQ(codes.values.to_vector<int32_t>(), (std::vector<int32_t>{97, 0x20ac, 0xe9}));
  EXPECT_EQ(codes.counts.to_vector<int64_t>(), (std::vector<int64_t>{2, 1}));
  EXPECT_THROW(so::code_points(row({"\xff"})), UserError);
}

}  // namespace
}  // namespace tandem::data
