"""tf.io.gfile: files and folders of this machine."""

import glob as _glob
import os
import shutil

from tandem import _strings
from tandem import errors


def _path(path):
    text = os.fspath(path) if hasattr(path, "__fspath__") else _strings.text(path)
    return text[7:] if text.startswith("file://") else text


def _raised(e, path):
    """What the system says, as one of tf.errors."""
    kinds = (
        (FileNotFoundError, errors.NotFoundError),
        (PermissionError, errors.PermissionDeniedError),
        (FileExistsError, errors.AlreadyExistsError),
    )
    kind = next((ours for theirs, ours in kinds if isinstance(e, theirs)), errors.FailedPreconditionError)
    return kind(None, None, f"{path}; {e.strerror or e}")


def _guarded(function):
    def guarded(path, *args, **kwargs):
        try:
            return function(_path(path), *args, **kwargs)
        except OSError as e:
            raise _raised(e, _path(path)) from None

    guarded.__name__, guarded.__doc__ = function.__name__, function.__doc__
    return guarded


def exists(path):
    return os.path.exists(_path(path))


def isdir(path):
    return os.path.isdir(_path(path))


def join(path, *paths):
    return os.path.join(path, *paths)


def glob(pattern):
    is_one = isinstance(pattern, (str, bytes)) or hasattr(pattern, "__fspath__") or hasattr(pattern, "shape")
    patterns = [pattern] if is_one else list(pattern)
    return [name for p in patterns for name in sorted(_glob.glob(_path(p)))]


@_guarded
def listdir(path):
    return [n + "/" if os.path.isdir(os.path.join(path, n)) else n for n in os.listdir(path)]


@_guarded
def makedirs(path):
    os.makedirs(path, exist_ok=True)


@_guarded
def mkdir(path):
    os.mkdir(path)


@_guarded
def remove(path):
    os.remove(path)


@_guarded
def rmtree(path):
    shutil.rmtree(path)


@_guarded
def copy(src, dst, overwrite=False):
    to = _path(dst)
    if os.path.exists(to) and not overwrite:
        raise errors.AlreadyExistsError(None, None, f"file already exists: {to}")
    shutil.copyfile(src, to)


@_guarded
def rename(src, dst, overwrite=False):
    to = _path(dst)
    if os.path.exists(to) and not overwrite:
        raise errors.AlreadyExistsError(None, None, f"file already exists: {to}")
    os.replace(src, to)


class FileStatistics:
    def __init__(self, found):
        self.length, self.mtime_nsec, self.is_directory = found.st_size, found.st_mtime_ns, os.path.stat.S_ISDIR(found.st_mode)


@_guarded
def stat(path):
    return FileStatistics(os.stat(path))


def walk(top, topdown=True, onerror=None):
    yield from os.walk(_path(top), topdown, onerror)


def get_registered_schemes():
    return ["", "file"]


class GFile:
    """A file of bytes or text."""

    def __init__(self, name, mode="r"):
        self._name, self._mode, self._file = name, mode, None

    name = property(lambda self: self._name)
    mode = property(lambda self: self._mode)

    def _open(self):
        if self._file is None:
            try:
                self._file = open(
                    _path(self._name), self._mode, **({} if "b" in self._mode else {"encoding": "utf-8", "newline": ""})
                )
            except OSError as e:
                raise _raised(e, _path(self._name)) from None
        return self._file

    def read(self, n=-1):
        return self._open().read(n)

    def readline(self):
        return self._open().readline()

    def readlines(self):
        return self._open().readlines()

    def write(self, content):
        if "b" in self._mode and isinstance(content, str):
            content = content.encode("utf-8")
        self._open().write(content)

    def seek(self, offset=None, whence=0, position=None):
        return self._open().seek(position if offset is None else offset, whence)

    def tell(self):
        return self._open().tell()

    def size(self):
        return stat(self._name).length

    def seekable(self):
        return True

    def flush(self):
        if self._file:
            self._file.flush()

    def close(self):
        if self._file:
            self._file.close()
            self._file = None

    def __enter__(self):
        self._open()
        return self

    def __exit__(self, *exception):
        self.close()

    def __iter__(self):
        return self

    def __next__(self):
        line = self.readline()
        if not line:
            raise StopIteration
        return line


FastGFile = GFile
