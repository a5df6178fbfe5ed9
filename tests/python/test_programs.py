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


# All of them on emulated GPUs take minutes: tools/device_programs.py.
@pytest.mark.parametrize("program", [p for p in SHARED if p.stem in ("s002_1_device_placement", "s004_1_list_devices")], ids=lambda p: p.stem)
def test_on_two_emulated_gpus(program, folder):
    done = run(program, folder, TANDEM_EMULATE_GPU="2x2GiB@12GB/s")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    if "placement" in program.stem:
        local = "/job:localhost/replica:0/task:0/device:"
        assert f"product on {local}GPU:0 - result on {local}CPU:0" in done.stdout
    else:
        assert "2 Physical GPUs, 2 Logical GPUs" in done.stdout
        assert "refused as it should be: Physical devices cannot be modified after being initialized" in done.stdout


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
