"""The Python environments of the other engines: outside the repository, made when they are missing, kept for the next run."""
import os
import pathlib
import subprocess
import sys

KERAS = ("keras>=3.15.1,<3.16", "numpy")
REQUIREMENTS = {
    "tensorflow": ("tensorflow==2.21.*", *KERAS),
    "jax": ("jax[cpu]", *KERAS),
    "torch": ("torch", *KERAS),
}
NOTES = {"torch": "PyTorch brings several GB of CUDA packages with it"}


def folder():
    return pathlib.Path(os.environ.get("TANDEM_BENCH_ENVS") or pathlib.Path.home() / ".cache" / "tandem" / "bench")


def python(name):
    return folder() / name / "bin" / "python"


def ensure(name, progress):
    """Makes the environment unless it is there. Gives None, or the reason why it cannot be made."""
    place = folder() / name
    stamp = place / "requirements.stamp"  # written last: an environment without it was interrupted, and pip goes on where it was
    wanted = "\n".join(REQUIREMENTS[name]) + "\n"
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    note = f" ({NOTES[name]})" if name in NOTES else ""
    # Debian's own Python, whatever else stands first in PATH: python3-venv belongs to it.
    base = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        commands = [[python(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS[name]]]
        if not python(name).exists():
            commands.insert(0, [base, "-m", "venv", place])
        for command in commands:
            result = progress.run(f"making the environment {place}{note}", command)
            if result.returncode:
                return last_line(result.stderr) or f"{command[0]} ended with {result.returncode}"
        stamp.write_text(wanted)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
