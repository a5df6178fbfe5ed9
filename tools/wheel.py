"""The wheel, and what it is on a machine that has nothing of ours: wheel.py [--check] [--mirror URL].

Builds build/wheels/tandem-*.whl. With --check, makes a bare Debian 12 (debootstrap's smallest, with python3 and python3-venv and
nothing more) in build/bare, installs the wheel there with pip inside a chroot, and runs the programs of tests/wheel in it. This
needs root.
"""

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "build" / "wheels"
DEBIAN = "bookworm"
PYTHON = (3, 11)  # Debian 12's


def run(*words, **options):
    return subprocess.run([str(w) for w in words], check=True, **options)


def build():
    """Builds the wheel with the tools of .venv, which built everything else, in a folder that stays: a second time is short."""
    for old in WHEELS.glob("tandem-*.whl"):
        old.unlink()
    options = ["--no-deps", "--no-build-isolation", "--config-settings", "build-dir=build/wheel"]
    run(sys.executable, "-m", "pip", "wheel", ROOT, "--wheel-dir", WHEELS, *options)
    return next(WHEELS.glob("tandem-*.whl"))


def show(wheel):
    print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.1f} MB")
    with zipfile.ZipFile(wheel) as archive:
        for entry in sorted(archive.infolist(), key=lambda e: -e.file_size):
            if ".so" in entry.filename or "/bin/" in entry.filename:
                print(f"  {entry.file_size / 1e6:6.1f} MB  {entry.filename}")


def mirror():
    """Where this machine's own packages come from."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        uri, name = line.split()
        if name == DEBIAN:
            return uri
    sys.exit(f"wheel: the package sources of this machine have no {DEBIAN}; give one with --mirror URL")


class Bare:
    """A Debian that has Python and nothing of ours. Made once; each check starts from a copy."""

    def __init__(self, source):
        fresh, self.root = ROOT / "build" / "bare_fresh", ROOT / "build" / "bare"
        if not (fresh / ".ready").exists():
            shutil.rmtree(fresh, ignore_errors=True)
            run("debootstrap", "--variant=minbase", "--include=python3,python3-venv", DEBIAN, fresh, source or mirror())
            (fresh / ".ready").touch()
        shutil.rmtree(self.root, ignore_errors=True)
        run("cp", "-a", fresh, self.root)

    def __call__(self, *words, **variables):
        """Runs a command in it, with /proc and an environment that holds nothing of this machine's."""
        print("bare:", *words, flush=True)
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", **variables}
        script = 'mount -t proc proc "$1/proc" && root=$1 && shift && exec chroot "$root" "$@"'
        words = ["unshare", "--mount", "--net", "sh", "-c", script, "sh", self.root, *words]
        return subprocess.run([str(w) for w in words], env=environment, check=False).returncode


def check(wheel, source):
    if sys.version_info[:2] != PYTHON:
        sys.exit(f"wheel: --check needs the Python of Debian 12, {PYTHON}, this is {sys.version_info[:2]}")
    if os.geteuid() != 0:
        sys.exit("wheel: --check makes a chroot, which needs root")
    # What the wheel depends on is fetched here, so the bare machine needs no network.
    run(sys.executable, "-m", "pip", "download", "--quiet", "--dest", WHEELS, wheel)
    bare = Bare(source)
    shutil.copytree(WHEELS, bare.root / "wheels")
    shutil.copytree(ROOT / "tests" / "wheel", bare.root / "programs")
    (bare.root / "work").mkdir()
    python = "/venv/bin/python"
    keras = "import keras; assert keras.backend.backend() == 'tandem'; print('keras', keras.__version__)"
    commands = [
        (["python3", "-m", "venv", "/venv"], {}),
        (["/venv/bin/pip", "install", "--quiet", "--no-index", "--find-links", "/wheels", "tandem"], {}),
        ([python, "/programs/libraries.py"], {}),
        (["/venv/bin/tandem", "run", "/programs/train.py", "/work"], {}),
        ([python, "/programs/embed.py"], {}),
        ([python, "-c", keras], {"KERAS_BACKEND": "tandem"}),
        (["/venv/bin/tandem", "doctor"], {}),
    ]
    failed = [" ".join(words) for words, variables in commands if bare(*words, **variables) != 0]
    if failed:
        sys.exit("wheel: failed on a bare Debian 12:\n  " + "\n  ".join(failed))
    print("wheel: it runs on a bare Debian 12")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="./dev wheel"
    )
    parser.add_argument("--check", action="store_true", help="install it on a bare Debian 12 and run programs there")
    parser.add_argument("--mirror", metavar="URL", help="where that Debian's packages come from (default: as this machine's)")
    options = parser.parse_args()
    wheel = build()
    show(wheel)
    if options.check:
        check(wheel, options.mirror)


if __name__ == "__main__":
    main()
