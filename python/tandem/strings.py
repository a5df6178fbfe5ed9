"""tf.strings: what is done with strings. They are on the host: a compiled function can only use strings that it knows."""

import re

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
    array = np.empty(tuple(x.shape), object)
    array.reshape(-1)[:] = _core.strings_to_list(x)
    count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    if axis is not None:
        axes = axes[::-1]  # the one that is named first is joined first
    moved = array.transpose([*rest, *axes]).reshape(int(np.prod([x.shape[a] for a in rest], dtype=np.int64)), count)
    flat = [by.join(row) for row in moved]
    return _from(flat, [1 if a in axes else x.shape[a] for a in range(x.ndim)] if keepdims else [x.shape[a] for a in rest])


def split(input, sep=None, maxsplit=-1, name=None):
    def parts(x):
        return ragged(*_s.split(x, b"" if sep is None else one(sep), int(maxsplit)))

    return _on_values(parts, input)


def bytes_split(input, name=None):
    return ragged(*_s.split_bytes(as_strings(input)))


# --- patterns -------------------------------------------------------------------------------------------------------------------


def _pattern(pattern):
    """RE2's syntax is that of Python's re but for the names of classes."""
    text = one(pattern)
    classes = {
        b"[:alpha:]": b"a-zA-Z",
        b"[:digit:]": b"0-9",
        b"[:alnum:]": b"a-zA-Z0-9",
        b"[:upper:]": b"A-Z",
        b"[:lower:]": b"a-z",
        b"[:space:]": b"\\s",
        b"[:punct:]": b"!-/:-@\\[-`{-~",
        b"[:word:]": b"\\w",
        b"[:xdigit:]": b"0-9A-Fa-f",
    }
    for name, members in classes.items():
        text = text.replace(name, members)
    text = re.sub(rb"\\p\{(?:P|Punct)\}", rb"[!-/:-@\\[-`{-~]", text).replace(b"\\z", b"\\Z")
    try:
        return re.compile(text)
    except re.error as e:
        raise errors.InvalidArgumentError(None, None, f"Invalid pattern: {text.decode(errors='replace')}, error: {e}") from None


def regex_replace(input, pattern, rewrite, replace_global=True, name=None):
    compiled, count = _pattern(pattern), 0 if replace_global else 1
    # In a rewrite only \0 to \9 and \\ mean something.
    by = re.sub(rb"\\(\d)", rb"\\g<\1>", one(rewrite).replace(b"\\\\", b"\\\\\\\\"))
    return _on_values(lambda x: mapped(lambda s: compiled.sub(by, s, count=count), x), input)


def regex_full_match(input, pattern, name=None):
    compiled = _pattern(pattern)

    def match(x):
        return convert(
            np.array([compiled.fullmatch(s) is not None for s in _core.strings_to_list(x)], bool).reshape(tuple(x.shape))
        )

    return _on_values(match, input)


# --- numbers --------------------------------------------------------------------------------------------------------------------


def to_number(input, out_type=dtypes.float32, name=None):
    return _on_values(lambda x: _s.to_number(x, as_dtype(out_type)), input)


def as_string(input, precision=-1, scientific=False, shortest=False, width=-1, fill="", name=None):
    x = convert(input)
    if x.dtype is dtypes.string:
        return x
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
        return f"{float(v):g}" if isinstance(v, (float, np.floating)) else str(v)

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
    by = one(separator)
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    left, right = (
        (None, None) if pad_values is None else (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else pad_values
    )
    rows, shape, is_ragged = _rows(data)
    results = []
    for row in rows:
        made = []
        for width in widths:
            pad = 0 if left is None else width - 1 if padding_width is None else min(padding_width, width - 1)
            words = [one(left)] * pad + row + [one(right)] * pad if pad else row
            made += [by.join(words[i : i + width]) for i in range(len(words) - width + 1)]
        if not made and preserve_short_sequences and row:
            made = [by.join(row)]
        results.append(made)
    flat = [g for row in results for g in row]
    if not is_ragged and len({len(r) for r in results}) <= 1:
        return _from(flat, [*shape, len(results[0]) if results else 0])
    return ragged(_from(flat, [len(flat)]), convert(np.array([len(r) for r in results], np.int64)))


def _rows(data):
    if hasattr(data, "flat_values"):
        return [[one(w) for w in row] for row in data.to_list()], None, True
    x = as_strings(data)
    flat, n = _core.strings_to_list(x), x.shape[-1]
    rows = [flat[i * n : (i + 1) * n] for i in range(int(np.prod(x.shape[:-1], dtype=int)))]
    return rows, list(x.shape[:-1]), False


def unsorted_segment_join(inputs, segment_ids, num_segments, separator="", name=None):
    x, ids = as_strings(inputs), convert(segment_ids).numpy()
    rest = list(x.shape[ids.ndim :])
    rows = np.array(_core.strings_to_list(x), object).reshape(ids.size, -1)
    parts = [[[] for _ in range(rows.shape[1])] for _ in range(int(num_segments))]
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


def _each(input, function):
    x = as_strings(input)
    rows = [function(s) for s in _core.strings_to_list(x)]
    counts = convert(np.array([len(r) for r in rows], np.int64).reshape(tuple(x.shape)))
    return [item for row in rows for item in row], counts


def unicode_decode(input, input_encoding, errors="replace", replacement_char=65533, replace_control_characters=False, name=None):
    flat, counts = _each(input, lambda s: [ord(c) for c in _decoded(s, input_encoding, errors, replacement_char)])
    return ragged(convert(np.array(flat, np.int32)), counts)


def unicode_split(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    flat, counts = _each(
        input, lambda s: [c.encode(input_encoding) for c in _decoded(s, input_encoding, errors, replacement_char)]
    )
    return ragged(_from(flat, [len(flat)]), counts)


def _offsets(input, encoding, bad, replacement):
    def starts(s):
        text = _decoded(s, encoding, bad, replacement)
        ends = np.cumsum([0, *(len(c.encode(encoding)) for c in text)])
        return list(ends[:-1])

    flat, counts = _each(input, starts)
    return ragged(convert(np.array(flat, np.int64)), counts)


def unicode_decode_with_offsets(
    input, input_encoding, errors="replace", replacement_char=65533, replace_control_characters=False, name=None
):
    return unicode_decode(input, input_encoding, errors, replacement_char), _offsets(
        input, input_encoding, errors, replacement_char
    )


def unicode_split_with_offsets(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    return unicode_split(input, input_encoding, errors, replacement_char), _offsets(
        input, input_encoding, errors, replacement_char
    )


def unicode_encode(input, output_encoding, errors="replace", replacement_char=65533, name=None):
    encode = lambda codes: "".join(
        chr(c if 0 <= c < 0x110000 and not 0xD800 <= c < 0xE000 else replacement_char) for c in codes
    ).encode(output_encoding)  # noqa: E731
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
            text = "".join(chr(replacement_char) if ord(c) < 32 or ord(c) == 127 else c for c in text)
        return text.encode({"UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}.get(output_encoding, output_encoding))

    return _on_values(lambda x: mapped(transcode, x), input)


def unicode_script(input, name=None):
    raise NotImplementedError("tf.strings.unicode_script: Python's own tables do not have scripts")
