"""Tensors of strings, tf.strings and tf.lookup. Numbers of buckets are those that TensorFlow gives."""

import numpy as np
import pytest

from tandem import _core, errors, lookup, strings
from tandem._convert import convert

ops = _core.ops


def words(t):
    return t.numpy().tolist() if t.ndim else t.numpy()


# --- tensors --------------------------------------------------------------------------------------------------------------------


def test_made_and_read():
    t = convert([["a", b"\xff"], ["ü", ""]])
    assert t.dtype.name == "string" and t.shape == (2, 2) and isinstance(t, _core.Tensor)
    assert words(t) == [[b"a", b"\xff"], ["ü".encode(), b""]]
    assert (
        words(convert("x")) == b"x"
        and words(convert([b"a\0"])) == [b"a\0"]
        and words(convert(np.array(["a", "bc"]))) == [b"a", b"bc"]
    )
    assert repr(convert("x")) == "<tf.Tensor: shape=(), dtype=string, numpy=b'x'>"
    with pytest.raises(ValueError, match="non-rectangular"):
        convert([["a"], ["b", "c"]])


def test_moved():
    t = convert([["a", "b", "c"], ["d", "e", "f"]])
    assert words(t[1]) == [b"d", b"e", b"f"] and words(t[:, ::-1][0]) == [b"c", b"b", b"a"] and words(t[-1, 0]) == b"d"
    assert words(ops.reshape(t, shape=[3, 2])) == [[b"a", b"b"], [b"c", b"d"], [b"e", b"f"]]
    assert words(ops.transpose(t)) == [[b"a", b"d"], [b"b", b"e"], [b"c", b"f"]]
    assert words(ops.concatenate([t[0], t[1]])) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    assert words(ops.stack([t[0], t[1]], axis=1))[0] == [b"a", b"d"]
    assert words(ops.take(t, convert([2, 0]), axis=1)) == [[b"c", b"a"], [b"f", b"d"]]
    assert words(ops.where(convert([True, False, True]), t[0], "-")) == [b"a", b"-", b"c"]
    assert words(ops.tile(t[0], repeats=[2])) == [b"a", b"b", b"c"] * 2
    assert words(t[0] + "!") == [b"a!", b"b!", b"c!"]
    assert words(t[convert([True, False])]) == [[b"a", b"b", b"c"]]


def test_compared():
    t = convert(["b", "a", "c"])
    assert (t == ["b", "x", "c"]).numpy().tolist() == [True, False, True]
    assert (t != "a").numpy().tolist() == [True, False, True]
    assert words(ops.sort(t)) == [b"a", b"b", b"c"] and ops.argsort(t).numpy().tolist() == [1, 0, 2]
    assert ops.less(t, "b").numpy().tolist() == [False, True, False]


def test_refused_by_numbers():
    t = convert(["1", "2"])
    with pytest.raises(errors.InvalidArgumentError, match=r"multiply: computes with numbers and was given string\[2\]"):
        t * t
    with pytest.raises(errors.InvalidArgumentError, match="exp: computes with numbers"):
        ops.exp(t)
    with pytest.raises(errors.InvalidArgumentError, match="strings do not meet"):
        ops.concatenate([t, convert([1, 2])])
    with pytest.raises(TypeError):
        convert(t, "float32")
    f = _core.Function(lambda x: [ops.where(ops.equal(x[0], 1), convert("a"), convert("b"))])
    with pytest.raises(errors.InvalidArgumentError, match="meets strings, which are not traced"):
        f([convert(1)])


# --- tf.strings -----------------------------------------------------------------------------------------------------------------


def test_letters_and_lengths():
    assert words(strings.lower(["AbÜ"])) == ["abÜ".encode()] and words(strings.lower("ÄB", encoding="utf-8")) == "äb".encode()
    assert words(strings.upper("ab1")) == b"AB1" and words(strings.strip([" a\n", "b"])) == [b"a", b"b"]
    assert strings.length(["abc", "ü"]).numpy().tolist() == [3, 2] and strings.length("ü", unit="UTF8_CHAR").numpy() == 1


def test_substr():
    assert words(strings.substr(["hello", "world"], 1, 3)) == [b"ell", b"orl"]
    assert words(strings.substr(["hello", "world"], [0, -2], [2, 9])) == [b"he", b"ld"]
    assert words(strings.substr("aübc", 1, 2, unit="UTF8_CHAR")) == "üb".encode()
    with pytest.raises(errors.InvalidArgumentError, match="pos 7 out of range"):
        strings.substr("hello", 7, 1)


def test_join_and_split():
    assert words(strings.join([["a", "b"], "x", ["1", "2"]], separator="-")) == [b"a-x-1", b"b-x-2"]
    assert words(strings.reduce_join([["a", "b"], ["c", "d"]], axis=-1, separator="+")) == [b"a+b", b"c+d"]
    assert words(strings.reduce_join([["a", "b"], ["c", "d"]])) == b"abcd"
    assert words(strings.split(" a  b c ")) == [b"a", b"b", b"c"]
    assert words(strings.split("a  b c", maxsplit=1)) == [b"a", b"b c"]
    assert words(strings.split("a,,b", sep=",")) == [b"a", b"", b"b"]
    assert words(strings.bytes_split("abc")) == [b"a", b"b", b"c"]
    assert words(strings.unsorted_segment_join(["a", "b", "c"], [1, 0, 1], 2, ":")) == [b"b", b"a:c"]


def test_patterns():
    assert words(strings.regex_replace(["a1b22", "x"], r"\d+", "<\\0>")) == [b"a<1>b<22>", b"x"]
    assert words(strings.regex_replace("aaa", "a", "b", replace_global=False)) == b"baa"
    assert words(strings.regex_replace("a.b!", "[[:punct:]]", "")) == b"ab"
    assert strings.regex_full_match(["abc", "xabc"], "a.*c").numpy().tolist() == [True, False]
    with pytest.raises(errors.InvalidArgumentError, match="Invalid pattern"):
        strings.regex_full_match("a", "(")


def test_numbers():
    assert strings.to_number(["1.5", " -2 "]).numpy().tolist() == [1.5, -2.0]
    assert strings.to_number("9007199254740993", "int64").numpy() == 9007199254740993
    with pytest.raises(errors.InvalidArgumentError, match="could not correctly convert string: x"):
        strings.to_number("x")
    assert words(strings.as_string([1.5, 2.0])) == [b"1.500000", b"2.000000"]
    assert words(strings.as_string([1.5], precision=2)) == [b"1.50"] and words(strings.as_string([True, False])) == [
        b"true",
        b"false",
    ]
    assert words(strings.as_string(7, width=3, fill="0")) == b"007"
    assert words(strings.format("x {} y {}", (convert([1, 2, 3]), convert("a")))) == b'x [1 2 3] y "a"'


def test_buckets():
    texts = ["hello", "a longer string than sixteen", "x" * 50, "y" * 200, ""]
    assert strings.to_hash_bucket_fast(texts, 1000).numpy().tolist() == [296, 491, 893, 796, 263]
    assert strings.to_hash_bucket_strong(["hello", "abc"], 1000, [1, 2]).numpy().tolist() == [622, 917]


def test_ngrams():
    assert words(strings.ngrams(["a", "b", "c"], 2)) == [b"a b", b"b c"]
    assert words(strings.ngrams(["a", "b", "c"], 2, pad_values=("L", "R"))) == [b"L a", b"a b", b"b c", b"c R"]
    assert words(strings.ngrams(["a", "b", "c"], [1, 2])) == [b"a", b"b", b"c", b"a b", b"b c"]


def test_unicode():
    assert strings.unicode_decode("aü", "UTF-8").numpy().tolist() == [97, 252]
    assert words(strings.unicode_split("aü", "UTF-8")) == [b"a", "ü".encode()]
    assert words(strings.unicode_encode([97, 252], "UTF-8")) == "aü".encode()
    assert words(strings.unicode_transcode("ü", "UTF-8", "UTF-16-BE")) == "ü".encode("utf-16-be")


# --- tf.lookup ------------------------------------------------------------------------------------------------------------------


def test_static_tables():
    table = lookup.StaticHashTable(lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
    assert table.lookup(convert([["b"], ["z"]])).numpy().tolist() == [[2], [-1]] and int(table.size()) == 2
    back = lookup.StaticHashTable(lookup.KeyValueTensorInitializer(convert([5, 7], "int64"), ["five", "seven"]), "?")
    assert words(back[convert([7, 6], "int64")]) == [b"seven", b"?"]
    with pytest.raises(TypeError, match="Dtype of argument"):
        table.lookup(convert([1]))
    with pytest.raises(errors.FailedPreconditionError, match="different value for same key"):
        lookup.StaticHashTable(lookup.KeyValueTensorInitializer(["a", "a"], [1, 2]), -1)


def test_numbers_are_looked_up_inside_a_trace():
    table = lookup.StaticHashTable(
        lookup.KeyValueTensorInitializer(convert([30, 10, 20], "int64"), convert([3.0, 1.0, 2.0])), -1.0
    )
    f = _core.Function(lambda x: [table.lookup(x[0])])
    assert f([convert([10, 20, 25, 40], "int64")])[0].numpy().tolist() == [1, 2, -1, -1]


def test_vocabularies(tmp_path):
    file = tmp_path / "vocabulary.txt"
    file.write_text("a\nb\n")
    initializer = lookup.TextFileInitializer(
        str(file), "string", lookup.TextFileIndex.WHOLE_LINE, "int64", lookup.TextFileIndex.LINE_NUMBER
    )
    table = lookup.StaticVocabularyTable(initializer, 3)
    assert table.lookup(convert(["b", "z", "q"])).numpy().tolist() == [1, 3, 4] and int(table.size()) == 5
    with pytest.raises(errors.NotFoundError):
        lookup.StaticHashTable(lookup.TextFileInitializer(str(tmp_path / "none"), "string", -2, "int64", -1), -1)


def test_mutable_tables():
    table = lookup.experimental.MutableHashTable("string", "int64", -1)
    table.insert(["a", "b"], [1, 2])
    table.remove(["a"])
    assert table.lookup(convert(["a", "b"])).numpy().tolist() == [-1, 2]
    keys, values = table.export()
    assert words(keys) == [b"b"] and values.numpy().tolist() == [2]
    dense = lookup.experimental.DenseHashTable("int64", "int64", -1, empty_key=0, deleted_key=-1)
    dense.insert([5], [50])
    assert dense.lookup(convert([5, 6], "int64")).numpy().tolist() == [50, -1]
    with pytest.raises(errors.InvalidArgumentError, match="empty_key"):
        dense.insert([0], [1])


def test_patterns_are_of_characters():
    """As TensorFlow's expressions, not as Python's: a dot is a character, a dollar the end of all text."""
    replace = strings.regex_replace
    assert words(replace(["é€x", "a\nb"], ".", "_")) == [b"___", b"_\n_"]
    assert words(replace("a\n", "a$", "x")) == b"a\n" and words(replace("b1b22", r"b(\d+)", r"<\1>")) == b"<1><22>"
    assert words(replace("aBc, Ünd 3.", r"[\p{Lu}[:digit:]]", "")) == b"ac, nd ." and words(replace("aÜ", r"\PL|\p{^Ll}", "-")) == b"a-"
    assert words(strings.regex_full_match(["ab", "abc", "b"], "a|ab|b")) == [True, False, True]
    with pytest.raises(errors.InvalidArgumentError, match="missing closing"):
        replace("a", "(", "")
    with pytest.raises(errors.InvalidArgumentError, match="names group 2"):
        replace("a", "(a)", r"\2")


def test_pieces_of_rows():
    got = strings.ngrams([["a", "b", "c"], ["d", "e", "f"]], 2)
    assert words(got) == [[b"a b", b"b c"], [b"d e", b"e f"]]
    from tandem import ragged

    rows = ragged.constant([[["a", "b", "c"], ["d"]], [[]]], dtype="string")
    got = strings.ngrams(rows, [1, 2], pad_values=("L", "R"), padding_width=1)
    assert got.to_list() == [[[b"a", b"b", b"c", b"L a", b"a b", b"b c", b"c R"], [b"d", b"L d", b"d R"]], [[b"L R"]]]
    assert strings.ngrams(ragged.constant([["a", "b"], ["c"]]), 3, preserve_short_sequences=True).to_list() == [[b"a b"], [b"c"]]
    assert words(strings.reduce_join([["a", "b"], ["c", "d"]], axis=[0, 1], separator=" ")) == b"a c b d"
    assert words(strings.reduce_join([["a", "b"], ["c", "d"]], axis=0, keepdims=True)) == [[b"ac", b"bd"]]
    codes, starts = strings.unicode_decode_with_offsets(["aé€b", "", "x"], "UTF-8")
    assert codes.to_list() == [[97, 233, 8364, 98], [], [120]] and starts.to_list() == [[0, 1, 3, 6], [], [0]]
    assert words(strings.as_string(np.array([1 + 2j, 3.5 - 1j]), precision=2)) == [b"(1.00,2.00)", b"(3.50,-1.00)"]
    assert words(strings.format("{} {}", (convert([0.1, 2.5]), np.float64(1) / 3))) == b"[0.1 2.5] 0.33333333333333331"
    assert words(strings.to_number(["1e400", "-1e400", "1e-400"], "float64")) == [np.inf, -np.inf, 0]
    with pytest.raises(errors.InvalidArgumentError, match="num_segments"):
        strings.unsorted_segment_join(["a", "b"], [0, 3], 2)
