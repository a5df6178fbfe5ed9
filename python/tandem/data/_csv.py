"""CSV files as columns."""

import csv
import gzip
import io
import zlib

import numpy as np

from tandem._convert import convert


def _text(file, compression):
    with open(file, "rb") as f:
        raw = f.read()
    raw = gzip.decompress(raw) if compression == "GZIP" else zlib.decompress(raw) if compression == "ZLIB" else raw
    return io.StringIO(raw.decode("utf-8"), newline="")


def read(files, column_names, delimiter, use_quotes, na_value, header, compression):
    """(names, {name: list of str})"""
    names, rows = column_names, []
    for file in files:
        lines = csv.reader(
            _text(file, compression), delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if use_quotes else csv.QUOTE_NONE
        )
        if header:
            found = next(lines)
            names = found if names is None else names
        rows.extend(line for line in lines if line)
    if names is None:
        raise ValueError("Cannot infer column names without a header: give `column_names`.")
    if len(set(names)) != len(names):
        raise ValueError("Cannot have duplicate column names.")
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise ValueError(f"row {number} has {len(row)} fields, there are {len(names)} columns")
    return names, {name: [row[i] for row in rows] for i, name in enumerate(names)}


def as_column(values, default, na_value):
    """int32, int64, float32 or strings: the first that holds all values that are there."""
    missing = [v in ("", na_value) for v in values]
    if default is not None:
        kind = default if not hasattr(default, "as_numpy_dtype") else None
        if kind is None:  # a type: there must be a value in each row
            if any(missing) and default.name != "string":
                raise ValueError("a field is empty in a column that has no default")
            return _typed(values, default)
        filled = [kind if gone else v for v, gone in zip(values, missing)]
        return _typed(filled, convert(kind).dtype)
    for name, parse, empty in (("int32", int, 0), ("int64", int, 0), ("float32", float, 0.0)):
        try:
            numbers = [empty if gone else parse(v) for v, gone in zip(values, missing)]
            if name == "int32" and any(not -(2**31) <= n < 2**31 for n in numbers):
                continue
            return convert(np.array(numbers, name))
        except ValueError:
            continue
    return convert(["" if gone else v for v, gone in zip(values, missing)])


def _typed(values, dtype):
    if dtype.name == "string":
        return convert([str(v) if not isinstance(v, bytes) else v for v in values])
    parse = float if dtype.is_floating else int
    return convert(np.array([parse(v) for v in values], dtype.as_numpy_dtype))
