"""Profiles of a program's run: what `tandem run --profile FILE` and tf.profiler write."""
import os
import sys

from tandem import _core


def start(file, title=None):
    """Records from now on. FILE.html is a page, FILE.json a trace for ui.perfetto.dev; another name gives both."""
    if title is None:
        program = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else ""
        title = f"Profile of {program}" if program else "Profile"
    _core.profile_start(os.fspath(file), title)


def stop():
    """Writes the files, says which on stderr, and gives their names; none when nothing was begun."""
    files = _core.profile_stop()
    if files:
        print(f"tandem: profile: wrote {', '.join(files)}", file=sys.stderr)
    return files
