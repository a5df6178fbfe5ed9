"""The two engines, each in a process of its own, over the same cases."""
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SECONDS = 60  # that one case may take


def environment(engine):
    made = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    if engine == "tandem":
        made["PYTHONPATH"] = str(ROOT / "build" / "release" / "python")
        made["KERAS_BACKEND"] = "tandem"
    else:
        made.pop("PYTHONPATH", None)
        made["KERAS_BACKEND"] = "tensorflow"
        made["TF_ENABLE_ONEDNN_OPTS"] = "0"  # its bfloat16 products end the process on processors without such instructions
    return made


def run(engine, python, cases, folder):
    """The results of `cases`, in their order; None for one that ended its process or took too long."""
    folder.mkdir(parents=True, exist_ok=True)
    data, results = folder / "cases.pickle", folder / f"{engine}.results"
    data.write_bytes(pickle.dumps(cases))
    found, began = [], time.time()
    while len(found) < len(cases):
        results.unlink(missing_ok=True)
        results.touch()
        with open(folder / f"{engine}.log", "ab") as log:
            process = subprocess.Popen(
                [str(python), str(HERE / "driver.py"), engine, str(data), str(results), str(len(found))], env=environment(engine), stdout=log, stderr=log
            )
            size, since = 0, time.time() + SECONDS  # the imports take their time
            while process.poll() is None:
                time.sleep(0.05)
                now = results.stat().st_size
                if now != size:
                    size, since = now, time.time()
                elif time.time() - since > SECONDS:
                    process.kill()
            process.wait()
        before = len(found)
        with open(results, "rb") as f:
            while True:
                try:
                    found.append(pickle.load(f))
                except (EOFError, pickle.UnpicklingError):
                    break
        if len(found) == before == 0 and process.returncode and size == 0 and not starts(engine, python):
            sys.exit(f"{engine} does not start: see {folder / f'{engine}.log'}")
        if len(found) < len(cases):
            found.append(None)
    print(f"{engine}: {len(cases)} cases in {time.time() - began:.0f} s", flush=True)
    return found


def starts(engine, python):
    module = "tensorflow" if engine == "tensorflow" else "tandem"
    return subprocess.run([str(python), "-c", f"import {module}"], env=environment(engine), capture_output=True).returncode == 0
