"""TFRecord files."""

from tandem import _core, _strings


class TFRecordOptions:
    """How records are compressed; the other settings are kept."""

    compression_type_map = {None: "", "": "", "GZIP": "GZIP", "ZLIB": "ZLIB", 0: "", 1: "ZLIB", 2: "GZIP"}

    def __init__(
        self,
        compression_type=None,
        flush_mode=None,
        input_buffer_size=None,
        output_buffer_size=None,
        window_bits=None,
        compression_level=None,
        compression_method=None,
        mem_level=None,
        compression_strategy=None,
    ):
        if compression_type not in self.compression_type_map:
            raise ValueError(f'Not a valid compression_type: "{compression_type}"')
        self.compression_type = compression_type
        self.compression_level = compression_level

    @classmethod
    def get_compression_type_string(cls, options):
        if options is None:
            return ""
        return cls.compression_type_map[options.compression_type if isinstance(options, TFRecordOptions) else options]


class TFRecordWriter:
    """Writes records into a file, which is whole when it is closed."""

    def __init__(self, path, options=None):
        self._writer = _core.RecordWriter(_strings.text(path), TFRecordOptions.get_compression_type_string(options))
        self._closed = False

    def write(self, record):
        if self._closed:
            raise RuntimeError("Writer is closed.")
        self._writer.write(_strings.one(record))

    def flush(self):
        """Records are in the file when it is closed."""

    def close(self):
        if not self._closed:
            self._closed = True
            self._writer.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def tf_record_iterator(path, options=None):
    """The records of a file as bytes."""
    walk = _core.Dataset.tfrecords([_strings.text(path)], TFRecordOptions.get_compression_type_string(options), 1 << 18).iterate()
    while (flat := walk.next()) is not None:
        yield flat[0].numpy()
