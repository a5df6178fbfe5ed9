"""A model as a folder: what a .keras file holds, not zipped. The old one is replaced only when the new one is whole."""
import os
import shutil
import tempfile


def is_meant(filepath):
    """A path without an ending, or one that is a folder already."""
    path = os.fspath(filepath)
    return isinstance(path, str) and "://" not in path and (os.path.splitext(path)[1] == "" or os.path.isdir(path))


def save(model, filepath, overwrite=True):
    from keras.src.saving import saving_lib
    from keras.src.utils import io_utils

    path = os.path.abspath(os.fspath(filepath))
    if os.path.isfile(path):
        raise ValueError(f"model.save: {filepath} is a file, not a folder\n  hint: another name, or one that ends in .keras")
    if os.path.exists(path) and not overwrite and not io_utils.ask_to_proceed_with_overwrite(path):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    work = tempfile.mkdtemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        made, old = os.path.join(work, "new"), os.path.join(work, "old")
        os.mkdir(made)
        saving_lib.save_model(model, made, zipped=False)
        if os.path.exists(path):
            os.rename(path, old)
        os.rename(made, path)
    finally:
        shutil.rmtree(work, ignore_errors=True)
