"""tf.strings: what is done with strings. They are on the host: a compiled function can only use strings that it knows."""

import functools
import re
import sys
import unicodedata

import numpy as np

from tandem import _core
from tandem import _dtypes as dtypes
from tandem import errors
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._strings import as_strings, mapped, one

_s = _core.strings


def _from(items, shape):
    return _core.strings_from(items, tuple(shape))


def ragged(values, counts):
    """Rows of different lengths: one tensor for a scalar, else a RaggedTensor."""
    if counts.ndim == 0:
        return values
    from tandem._ragged import RaggedTensor

    made = RaggedTensor.from_row_lengths(values, _core.ops.reshape(counts, shape=[-1]))
    for extent in reversed(counts.shape[1:]):
        made = RaggedTensor.from_uniform_row_length(made, extent)
    return made


def _on_values(function, x):
    """function(tensor) for a tensor, or for the values of a ragged one."""
    if hasattr(x, "flat_values") and hasattr(x, "with_flat_values"):
        return x.with_flat_values(function(x.flat_values))
    return function(as_strings(x))


def lower(input, encoding="", name=None):
    if encoding == "utf-8":
        return _on_values(lambda x: mapped(lambda s: s.decode("utf-8").lower().encode("utf-8"), x), input)
    return _on_values(_s.lower, input)


def upper(input, encoding="", name=None):
    if encoding == "utf-8":
        return _on_values(lambda x: mapped(lambda s: s.decode("utf-8").upper().encode("utf-8"), x), input)
    return _on_values(_s.upper, input)


def strip(input, name=None):
    return _on_values(_s.strip, input)


def length(input, unit="BYTE", name=None):
    return _on_values(lambda x: _s.length(x, unit), input)


def substr(input, pos, len, unit="BYTE", name=None):
    pos, count = (_core.ops.cast(convert(x), dtype="int64") for x in (pos, len))
    return _on_values(lambda x: _s.substr(x, pos, count, unit), input)


def _flat_like(x, like):
    """The flat values of a ragged tensor that is parted as another one; a scalar is joined to each of them."""
    if not hasattr(x, "flat_values"):
        x = as_strings(x)
        if x.ndim:
            raise ValueError(f"tf.strings.join: a tensor of shape {x.shape} does not fit beside a ragged one of shape {like.shape}")
        return x
    ours, theirs = x.nested_row_splits, like.nested_row_splits
    if len(ours) != len(theirs) or any(not np.array_equal(a, b) for a, b in zip(ours, theirs)):
        raise errors.InvalidArgumentError(None, None, f"tf.strings.join: ragged tensors are parted differently: {x.shape} and {like.shape}")
    return x.flat_values


def join(inputs, separator="", name=None):
    like = next((x for x in inputs if hasattr(x, "flat_values")), None)
    if like is not None:  # rows of different lengths: their values, if all are parted alike
        return like.with_flat_values(join([_flat_like(x, like) for x in inputs], separator))
    parts = [as_strings(x) for x in inputs]
    shape = next((p.dims for p in parts if p.ndim), ())
    return _s.join(
        [p if p.ndim == 0 or p.dims == shape else _core.ops.broadcast_to(p, shape=shape) for p in parts], one(separator)
    )


def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    x, by = as_strings(inputs), one(separator)
    axes = list(range(x.ndim)) if axis is None else [a % x.ndim for a in np.atleast_1d(np.asarray(axis)).tolist()]
    rest = [a for a in range(x.ndim) if a not in axes]
    if axis is not None:
        axes = axes[::-1]  # the one that is named first is joined first
    if not axes:
        return x
    moved = _core.ops.transpose(x, perm=[*rest, *axes]) if [*rest, *axes] != list(range(x.ndim)) else x
    count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    joined = _s.join_rows(_core.ops.reshape(moved, shape=[*(x.shape[a] for a in rest), count]), by)
    return _core.ops.reshape(joined, shape=[1 if a in axes else x.shape[a] for a in range(x.ndim)]) if keepdims else joined


def split(input, sep=None, maxsplit=-1, name=None):
    def parts(x):
        return ragged(*_s.split(x, b"" if sep is None else one(sep), int(maxsplit)))

    return _on_values(parts, input)


def bytes_split(input, name=None):
    return ragged(*_s.split_bytes(as_strings(input)))


# --- patterns -------------------------------------------------------------------------------------------------------------------


@functools.lru_cache
def _of_category(name):
    """The characters of a Unicode category, such as L or Lu, as the inside of brackets."""
    text, begin = "", None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code)).startswith(name)
        if inside and begin is None:
            begin = code
        elif not inside and begin is not None:
            text += f"\\x{{{begin:x}}}-\\x{{{code - 1:x}}}"
            begin = None
    return text


def _pattern(pattern):
    """The engine's expressions have RE2's syntax but for Unicode's categories (\\pL, \\p{Lu}), which are written out here."""
    text = one(pattern)
    if b"\\p" not in text.lower():
        return text
    parts, in_brackets = [], False
    for found in re.finditer(rb"\\([pP])(?:\{(\^?)([A-Z][a-z]?|Punct)\}|([A-Z]))|\\.|\[:\^?\w+:\]|\[\^?\]?|\]|.", text, re.DOTALL):
        token = found.group()
        if found.group(1):
            members = _of_category((found.group(3) or found.group(4)).replace(b"Punct", b"P").decode()).encode()
            negated = (found.group(1) == b"P") != bool(found.group(2))
            if in_brackets and negated:
                raise errors.InvalidArgumentError(None, None, f"Invalid pattern: {text.decode(errors='replace')}, error: {token.decode()} inside of brackets")
            token = members if in_brackets else b"[" + (b"^" if negated else b"") + members + b"]"
        elif token.startswith(b"[") and not in_brackets:
            in_brackets = True
        elif token == b"]":
            in_brackets = False
        parts.append(token)
    return b"".join(parts)


def regex_replace(input, pattern, rewrite, replace_global=True, name=None):
    compiled, by = _pattern(pattern), one(rewrite)
    return _on_values(lambda x: _s.regex_replace(x, compiled, by, bool(replace_global)), input)


def regex_full_match(input, pattern, name=None):
    compiled = _pattern(pattern)
    return _on_values(lambda x: _s.regex_full_match(x, compiled), input)


# --- numbers --------------------------------------------------------------------------------------------------------------------


def to_number(input, out_type=dtypes.float32, name=None):
    return _on_values(lambda x: _s.to_number(x, as_dtype(out_type)), input)


def as_string(input, precision=-1, scientific=False, shortest=False, width=-1, fill="", name=None):
    from tandem._face import any_tensor

    x = any_tensor(input)
    if x.dtype is dtypes.string:
        return x
    if x.dtype.is_complex:
        re, im = (as_string(part, precision, scientific, shortest) for part in (x.re, x.im))
        made = join([join(["(", re]), join([im, ")"])], ",")
        filler, left = (one(fill).decode() or " ").replace("-", " "), one(fill) == b"-"
        return made if width < 0 else mapped(lambda t: (t.decode().ljust(width) if left else t.decode().rjust(width, filler)).encode(), made)
    if scientific and shortest:
        raise errors.InvalidArgumentError(None, None, "Cannot select both scientific and shortest notation")
    array = x.numpy() if x.ndim else np.asarray(x.numpy())
    fill = one(fill).decode()
    size = "" if width < 0 else (fill + str(width) if fill != "-" else str(width))
    left = fill == "-"
    if x.dtype.is_bool:
        texts = ["true" if v else "false" for v in array.reshape(-1)]
    elif x.dtype.is_integer:
        texts = [f"{int(v):{'<' if left else ''}{size}d}" for v in array.reshape(-1)]
    else:
        kind = "e" if scientific else "g" if shortest else "f"
        digits = "" if precision < 0 else f".{precision}"
        texts = [f"{float(v):{'<' if left else ''}{size}{digits}{kind}}" for v in array.reshape(-1)]
    return _from([t.encode() for t in texts], x.shape)


def format(template, inputs, placeholder="{}", summarize=3, name=None):
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if template.count(placeholder) != len(inputs):
        raise ValueError(f"The template expects {template.count(placeholder)} tensors, but the inputs only has {len(inputs)}")
    text, rest = "", template
    for x in inputs:
        before, rest = rest.split(placeholder, 1)
        text += before + _summary(convert(x), summarize)
    return convert(text + rest)


def _summary(x, most):
    def show(v):
        if isinstance(v, bytes):
            return '"' + v.decode("utf-8", "replace") + '"'
        if isinstance(v, (bool, np.bool_)):
            return "1" if v else "0"
        if not isinstance(v, (float, np.floating)):
            return str(v)
        short, long = ("15", "17") if isinstance(v, (float, np.float64)) else ("6", "9")  # so many digits as tell it from its neighbours
        text = f"{float(v):.{short}g}"
        return text if type(v)(text) == v else f"{float(v):.{long}g}"

    def walk(a):
        if not isinstance(a, np.ndarray) or a.ndim == 0:
            return show(a[()] if isinstance(a, np.ndarray) else a)
        items = [walk(i) for i in a] if most < 0 or len(a) <= 2 * most else [*map(walk, a[:most]), "...", *map(walk, a[-most:])]
        return "[" + (" " if a.ndim == 1 else "\n ").join(items) + "]"

    value = x.numpy()
    return walk(value) if x.ndim or x.dtype is not dtypes.string else '"' + value.decode("utf-8", "replace") + '"'


def to_hash_bucket_fast(input, num_buckets, name=None):
    return _on_values(lambda x: _s.to_hash_bucket(x, int(num_buckets)), input)


def to_hash_bucket_strong(input, num_buckets, key, name=None):
    first, second = (int(k) % 2**64 for k in key)
    return _on_values(lambda x: _s.to_keyed_hash_bucket(x, int(num_buckets), first, second), input)


def to_hash_bucket(input, num_buckets, name=None):
    return _on_values(lambda x: _s.to_plain_hash_bucket(x, int(num_buckets)), input)


# --- pieces ---------------------------------------------------------------------------------------------------------------------


def ngrams(data, ngram_width, separator=" ", pad_values=None, padding_width=None, preserve_short_sequences=False, name=None):
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    left, right = ("", "") if pad_values is None else (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else pad_values
    padding = 0 if pad_values is None else max(widths) if padding_width is None else padding_width
    words = data if hasattr(data, "flat_values") else as_strings(data)
    if hasattr(words, "flat_values"):
        made = lambda x: x  # noqa: E731
        *outer, counts = words.nested_row_lengths()
        flat = words.flat_values
    else:
        shape = words.shape
        counts = convert(np.full(int(np.prod(shape[:-1], dtype=int)), shape[-1], np.int64))
        flat, outer = _core.ops.reshape(words, shape=[-1]), None
    grams, counts = _s.ngrams(
        flat, _core.ops.cast(counts, dtype="int64"), widths, one(separator), one(left), one(right), padding, bool(preserve_short_sequences)
    )
    if outer is None:  # rows of one length give as many pieces each
        rows = counts.shape[0]
        return _core.ops.reshape(grams, shape=[*shape[:-1], grams.shape[0] // rows if rows else 0])
    from tandem._ragged import RaggedTensor

    made = RaggedTensor.from_row_lengths(grams, counts)
    for lengths in reversed(outer):
        made = RaggedTensor.from_row_lengths(made, lengths)
    return made


def unsorted_segment_join(inputs, segment_ids, num_segments, separator="", name=None):
    x, ids = as_strings(inputs), convert(segment_ids).numpy()
    rest = list(x.shape[ids.ndim :])
    rows = np.array(_core.strings_to_list(x), object).reshape(ids.size, -1)
    parts = [[[] for _ in range(rows.shape[1])] for _ in range(int(num_segments))]
    if ids.size and ids.max() >= len(parts):
        raise errors.InvalidArgumentError(
            None, None, f"unsorted_segment_join: segment_ids are not allowed to exceed num_segments, got {ids.max()} and {len(parts)}"
        )
    for row, segment in zip(rows, ids.reshape(-1)):
        for place, word in enumerate(row if segment >= 0 else ()):
            parts[int(segment)][place].append(word)
    return _from([one(separator).join(words) for segment in parts for words in segment], [len(parts), *rest])


# --- Unicode --------------------------------------------------------------------------------------------------------------------

_BAD = {"replace": "replace", "ignore": "ignore", "strict": "strict"}


def _decoded(word, encoding, bad, replacement):
    try:
        text = word.decode(encoding, _BAD[bad])
    except UnicodeDecodeError as e:
        raise errors.InvalidArgumentError(None, None, f"Invalid formatting on input string: {e}") from None
    return text.replace("\ufffd", chr(replacement)) if bad == "replace" and replacement != 0xFFFD else text


def _is_plain(x, encoding):
    """Whether the engine's own functions read these strings: they know UTF-8, without what is not."""
    return encoding.upper() in ("UTF-8", "UTF8") and _s.is_utf8(x)


def _each(input, function):
    x = as_strings(input)
    rows = [function(s) for s in _core.strings_to_list(x)]
    counts = convert(np.array([len(r) for r in rows], np.int64).reshape(tuple(x.shape)))
    return [item for row in rows for item in row], counts


def _without_control(text, replaces, replacement):
    return "".join(chr(replacement) if unicodedata.category(c) == "Cc" else c for c in text) if replaces else text


def _split(input, encoding, bad, replacement, replaces_control=False):
    """(characters as strings, counts)"""
    x = as_strings(input)
    if not replaces_control and _is_plain(x, encoding):
        return _s.split_characters(x)
    flat, counts = _each(
        x, lambda s: [c.encode(encoding) for c in _without_control(_decoded(s, encoding, bad, replacement), replaces_control, replacement)]
    )
    return _from(flat, [len(flat)]), counts


def unicode_decode(input, input_encoding, errors="replace", replacement_char=65533, replace_control_characters=False, name=None):
    x = as_strings(input)
    if not replace_control_characters and _is_plain(x, input_encoding):
        return ragged(*_s.code_points(x))
    flat, counts = _each(
        x,
        lambda s: [
            ord(c) for c in _without_control(_decoded(s, input_encoding, errors, replacement_char), replace_control_characters, replacement_char)
        ],
    )
    return ragged(convert(np.array(flat, np.int32)), counts)


def unicode_split(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    return ragged(*_split(input, input_encoding, errors, replacement_char))


def _offsets(input, encoding, bad, replacement):
    """Where each character begins, in bytes of its string."""
    characters, counts = _split(input, encoding, bad, replacement)
    sizes, counts_of = _s.length(characters, "BYTE").numpy().astype(np.int64), counts.numpy().reshape(-1)
    before = np.cumsum(sizes) - sizes
    starts = np.concatenate([[0], np.cumsum(counts_of)[:-1]]).astype(np.int64) if counts_of.size else counts_of
    first = np.append(before, 0)[starts]  # of each string; one without characters has none to move
    return ragged(convert(before - np.repeat(first, counts_of)), counts)


def unicode_decode_with_offsets(
    input, input_encoding, errors="replace", replacement_char=65533, replace_control_characters=False, name=None
):
    codes = unicode_decode(input, input_encoding, errors, replacement_char, replace_control_characters)
    return codes, _offsets(input, input_encoding, errors, replacement_char)


def unicode_split_with_offsets(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    return unicode_split(input, input_encoding, errors, replacement_char), _offsets(
        input, input_encoding, errors, replacement_char
    )


def unicode_encode(input, output_encoding, errors="replace", replacement_char=65533, name=None):
    from tandem.errors import InvalidArgumentError

    def encode(codes):
        text = ""
        for c in codes:
            if 0 <= c < 0x110000 and not 0xD800 <= c < 0xE000:
                text += chr(c)
            elif errors == "strict":
                raise InvalidArgumentError(None, None, "Code point is out of range for Unicode, or is a surrogate.")
            elif errors == "replace":
                text += chr(replacement_char)
        return text.encode(output_encoding)

    if hasattr(input, "flat_values"):
        return convert([encode(row) for row in input.to_list()])
    if isinstance(input, list) and input and isinstance(input[0], (list, _core.Tensor)):
        return convert([encode(np.asarray(row).tolist()) for row in input])
    x = convert(input)
    rows = x.numpy().reshape(-1, x.shape[-1])
    return _from([encode(r.tolist()) for r in rows], x.shape[:-1])


def unicode_transcode(
    input, input_encoding, output_encoding, errors="replace", replacement_char=65533, replace_control_characters=False, name=None
):
    def transcode(s):
        text = _decoded(s, input_encoding, errors, replacement_char)
        if replace_control_characters:
            by = "" if errors == "ignore" else chr(replacement_char)
            text = "".join(by if unicodedata.category(c) == "Cc" else c for c in text)
        return text.encode({"UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}.get(output_encoding, output_encoding))

    return _on_values(lambda x: mapped(transcode, x), input)


def unicode_script(input, name=None):
    raise NotImplementedError("tf.strings.unicode_script: Python's own tables do not have scripts")
