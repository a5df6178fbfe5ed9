"""What TensorFlow saved is loaded here, and what we saved there: checkpoints, .keras, .h5 and .weights.h5, with the optimizer's slots."""
import shutil
import subprocess
import sys

from processes import HERE, ROOT, environment
from tf_examples import CACHE


HEADING = "\n## Files\n"


def check(python, is_written):
    """How many files are not read back as they were saved; a line for each is printed, and written to docs/tf_differences.md."""
    pythons, failed, lines = {"tensorflow": str(python), "tandem": sys.executable}, 0, []
    for saver in pythons:
        folder = CACHE / "files" / saver
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = run(pythons[saver], saver, "save", folder)
        if made.returncode:
            failed += 1
            lines.append(f"{saver} could not save: {' '.join(made.stderr[-1000:].split())}")
            print(lines[-1])
            continue
        loader = next(e for e in pythons if e != saver)
        loaded = run(pythons[loader], loader, "load", folder)
        results = [line for line in loaded.stdout.splitlines() if ": " in line]
        if loaded.returncode:
            results.append(f"{loader} ended with {loaded.returncode}: {loaded.stderr[-1000:]}")
        for line in results:
            failed += not line.endswith(": ok")
            lines.append(f"{saver} to {loader}: {line}")
            print(lines[-1], flush=True)
    summary = f"{len(lines) - failed} of {len(lines)} files are read back as they were saved"
    print(summary)
    if is_written:
        write(summary, lines)
    return failed


def write(summary, lines):
    document = ROOT / "docs" / "tf_differences.md"
    before = document.read_text().split(HEADING)[0] if document.exists() else ""
    explained = "Variables, predictions, the optimizer's slots, the loss of one more step and the weights after it are compared (`./dev tf-compare files`); of `.h5`, which leaves the slots out, the first two."
    document.write_text("\n".join([before.rstrip("\n"), HEADING, explained, f"{summary}.", "", *(f"- {line}" for line in lines)]) + "\n")


def run(python, engine, action, folder):
    return subprocess.run([python, str(HERE / "file_programs.py"), engine, action, str(folder)], capture_output=True, text=True, env=environment(engine))
