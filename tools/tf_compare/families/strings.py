"""tf.strings, as_string, tf.sets."""
import numpy as np

from inputs import FLOATS, TYPES, array, ragged, sparse, special, text

WORDS = [["", "a", "Hello World"], ["héllo", "日本語 text", "a,b,,c"], ["  x y  ", "123", "-4.5e3"]]


def fill(cases):
    words, flat = text(WORDS), text(sum(WORDS, []))
    table = {
        "length": [((words,), {}), ((words,), {"unit": "UTF8_CHAR"})], "lower": [((words,), {}), ((words,), {"encoding": "utf-8"})], "upper": [((words,), {}), ((words,), {"encoding": "utf-8"})], "strip": [((words,), {})],
        "bytes_split": [((flat,), {}), ((words,), {}), ((text("ab"),), {})], "join": [(([words, text("-"), words],), {}), (([flat, flat],), {"separator": ", "}), (([flat, words],), {})],
        "reduce_join": [((words,), {}), ((words,), {"axis": 0}), ((words,), {"axis": -1, "separator": "|", "keepdims": True}), ((words,), {"axis": [1, 0]}), ((text(np.empty((0, 2), object)),), {"axis": 0})],
        "split": [((flat,), {}), ((flat,), {"sep": ","}), ((flat,), {"sep": " ", "maxsplit": 1}), ((words,), {}), ((text("a b c"),), {}), ((flat,), {"sep": "l"})],
        "substr": [((flat, 0, 2), {}), ((flat, -3, 2), {}), ((text(["abcdef", "xyz123"]), np.array([1, -2]), np.array([3, 9])), {}), ((text(["abc", "日本語"]), 1, 1), {"unit": "UTF8_CHAR"}), ((text(["abc"]), 5, 1), {})],
        "to_number": [((text(["1", "2.5", "-3e2", " 7 ", "inf", "nan"]),), {}), ((text(["1", "-7"]),), {"out_type": "int32"}), ((text(["99999999999"]),), {"out_type": "int32"}), ((text(["99999999999"]),), {"out_type": "int64"}), ((text(["x"]),), {}), ((text([""]),), {}), ((text(["1.5"]),), {"out_type": "int32"}), ((text(["1.5", "1e400"]),), {"out_type": "float64"})],
        "to_hash_bucket": [((flat, 10), {})], "to_hash_bucket_fast": [((flat, 1000003), {}), ((words, 1), {}), ((flat, 0), {})], "to_hash_bucket_strong": [((flat, 1000003, [1, 2]), {})],
        "regex_replace": [((flat, "[aeiou]", "_"), {}), ((flat, "(l+)", r"<\1>"), {}), ((flat, "l", "L"), {"replace_global": False}), ((flat, "(", "x"), {}), ((flat, r"\d+", "#"), {}), ((flat, "^", ">"), {})],
        "regex_full_match": [((flat, ".*l.*"), {}), ((flat, r"\d+"), {}), ((flat, "[a-z]*"), {}), ((flat, "*"), {})],
        "ngrams": [((ragged([["a", "b", "c", "d"], ["e"]]), 2), {}), ((ragged([["a", "b", "c"], ["e", "f"]]), [1, 3]), {"separator": "+"}), ((text(["a", "b", "c"]), 2), {"pad_values": ("<", ">")}), ((text(["a", "b", "c"]), 3), {"pad_values": "_", "padding_width": 1})],
        "unicode_decode": [((flat, "UTF-8"), {}), ((text([b"a\xffb", b"ok"]), "UTF-8"), {}), ((text([b"a\xffb"]), "UTF-8"), {"errors": "ignore"}), ((text([b"a\xffb"]), "UTF-8"), {"errors": "strict"}), ((text(["abc"]), "UTF-16-BE"), {})],
        "unicode_decode_with_offsets": [((flat, "UTF-8"), {})], "unicode_split": [((flat, "UTF-8"), {}), ((text("日本"), "UTF-8"), {})], "unicode_split_with_offsets": [((flat, "UTF-8"), {})],
        "unicode_encode": [((np.array([[72, 105], [26085, 26412]], np.int32), "UTF-8"), {}), ((ragged([[72], [26085, 26412]], "int32"), "UTF-16-BE"), {}), ((np.array([-1, 72], np.int32), "UTF-8"), {}), ((np.array([-1, 72], np.int32), "UTF-8"), {"errors": "strict"})],
        "unicode_transcode": [((flat, "UTF-8", "UTF-16-BE"), {}), ((text([b"a\xffb"]), "UTF-8", "UTF-8"), {}), ((text([b"a\xe9"]), "LATIN1", "UTF-8"), {}), ((text([b"a\tb\xff"]), "UTF-8", "UTF-8"), {"errors": "ignore", "replace_control_characters": True})],
        "unicode_script": [((np.array([65, 26085, 1080, 33], np.int32),), {})],
        "unsorted_segment_join": [((flat, np.array([0, 1, 0, 2, 1, 1, 0, 4, 4]), 5), {}), ((flat, np.array([0, 1, 0, 2, 1, 1, 0, -1, 4]), 5), {"separator": ":"})],
        "format": [(("v: {}", array(np.random.default_rng(1), (3,), "int32")), {}), (("v: {} {}", (array(np.random.default_rng(1), (2, 2), "float32"), array(np.random.default_rng(1), (), "int32"))), {}), (("{}", np.arange(20)), {"summarize": 3}), (("{}", flat), {})],
    }  # fmt: skip
    for name, calls in table.items():
        cases.rng(f"tf.strings.{name}")
        for args, options in calls:
            cases.call(f"tf.strings.{name}", *args, **options)
        if name not in ("format", "unicode_encode", "unicode_script", "join"):
            cases.call(f"tf.strings.{name}", np.array([1, 2]), *calls[0][0][1:], note="numbers for text")
    function = "tf.strings.as_string"
    rng = cases.rng(function)
    for dtype in TYPES:
        cases.call(function, array(rng, (2, 3), dtype, -50, 50), grad=[])
        cases.call(function, special(dtype), grad=[])
        if dtype in FLOATS:
            for options in ({"precision": 2}, {"scientific": True}, {"shortest": True}, {"width": 12}, {"width": 12, "fill": "0"}, {"precision": 3, "width": 9}):
                cases.call(function, array(rng, (3,), dtype, -50, 50), grad=[], **options)
    cases.call(function, np.array([3, 40], np.int32), width=5, fill="0")
    for name in ("difference", "intersection", "union"):
        function = f"tf.sets.{name}"
        rng = cases.rng(function)
        for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "float32"):
            cases.call(function, array(rng, (2, 4), dtype, 0, 5), array(rng, (2, 3), dtype, 0, 5), grad=[])
        cases.call(function, text([["a", "b"]]), text([["b", "c"]]))
        if name == "difference":
            cases.call(function, array(rng, (2, 4), "int32", 0, 5), array(rng, (2, 3), "int32", 0, 5), aminusb=False)
    cases.rng("tf.sets.size")
    cases.call("tf.sets.size", sparse([[0, 0], [0, 1], [0, 2], [2, 1]], np.array([1, 1, 2, 3]), [3, 3]))
