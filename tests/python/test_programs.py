"""Whole programs that say `import tensorflow as tf`, unchanged, through the command `tandem run`."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
OWN = sorted((Path(__file__).parent / "programs").glob("*.py"))
SHARED = sorted((ROOT.parent / "shared" / "programs").glob("s0*.py"))


def run(program, folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "tandem", "run", str(program), *arguments], cwd=folder, capture_output=True, text=True, timeout=600,
        env={**os.environ, **environment},
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all of them: some programs load what the one before saved."""
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("program", OWN, ids=lambda p: p.stem)
def test_own(program, folder):
    done = run(program, folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.parametrize("program", SHARED, ids=lambda p: p.stem)
def test_shared(program, folder):
    done = run(program, folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


# All of them on emulated GPUs take minutes: tools/device_programs.py, whose table says what has to be where.
@pytest.mark.skipif(not SHARED, reason="the programs are not beside this repository")
def test_devices_and_replicas_are_tensorflows():
    programs = ["s002_1_device_placement", "s004_1_list_devices", "s004_3_mirrored_strategy"]
    command = [sys.executable, str(ROOT / "tools" / "device_programs.py"), "--gpus", "2x2GiB@12GB/s", *programs]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert done.stdout.count(" passed ") == 3, done.stdout


def test_what_is_elsewhere_is_said():
    """Of the tool's own table: a program that pins to the second GPU what the table has on the first."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import device_programs
    finally:
        sys.path.pop(0)
    local = device_programs.LOCAL
    log = f"square: (float32[1000,1000]): {local}GPU:1\nmean: (float32[]): {local}CPU:0\n"
    assert device_programs.missing("s002_3_function_graph", (2, "cost"), "", log) == ["square: (float32[1000,1000]) was not on GPU:0, but on GPU:1"]
    assert device_programs.missing("s004_3_mirrored_strategy", (0, "cost"), "2 replicas, test accuracy 0.9\n", f"fused: (float32[784,128]): {local}CPU:0\n") == [
        "it did not print: 1 replicas, test accuracy"
    ]


def test_arguments_are_given_on(tmp_path):
    (tmp_path / "p.py").write_text("import sys\nimport tensorflow as tf\nprint(sys.argv[1:], __name__, tf.__name__)\n")
    done = run(tmp_path / "p.py", tmp_path, "--epochs", "3")
    assert done.stdout.strip() == "['--epochs', '3'] __main__ tandem"


def test_a_traceback_shows_the_users_lines(tmp_path):
    (tmp_path / "p.py").write_text("import tensorflow as tf\n\n\ndef f(x):\n    return tf.matmul(x, x)\n\n\nf(tf.ones((2, 3)))\n")
    done = run(tmp_path / "p.py", tmp_path)
    assert done.returncode == 1
    assert "line 5, in f" in done.stderr and "line 8, in <module>" in done.stderr
    assert "tandem/math.py" not in done.stderr


def test_a_program_that_is_not_there():
    done = run("nowhere.py", ".")
    assert done.returncode == 1 and "there is no file nowhere.py" in done.stderr
