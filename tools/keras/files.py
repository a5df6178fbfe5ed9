"""Model files both ways between Keras and Tandem. Needs an environment with Keras 3.15, for example one that ./dev bench made:

  ~/.cache/tandem/bench/torch/bin/python tools/keras/files.py store      makes tests/data/keras_files, which the tests read without Keras
  ~/.cache/tandem/bench/torch/bin/python tools/keras/files.py check [MODEL...] [--program build/release/tests/keras_file]

`check` saves each model of MODELS in Keras, lets the program load it, use it, save it and train it, and loads what it saved in Keras:
outputs, configs, weights, the state of the optimizer and the losses of further steps have to be the same.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")
import h5py
import keras
import numpy as np

from file_models import MODELS, POLICIES

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "tests" / "data" / "keras_files"
STEPS_BEFORE, STEPS_AFTER = 3, 3  # training steps before a model is saved, and from what was saved
AS_KERAS_WRITES = ("mlp", "graph", "precisions")  # of the stored files; the others are made smaller
TOLERANCE = 2e-4  # relative to the largest value; sums in another order, a few steps long
ROUNDED = {"mixed": 2e-3, "mixed_layers": 2e-3, "mixed_bfloat16": 1e-2}  # the same of what each computes, where all is rounded to 16 bits


def make(name):
    """The compiled model, trained a little, with inputs and targets of one batch."""
    keras.utils.clear_session()
    keras.config.set_dtype_policy(POLICIES.get(name, "float32"))
    keras.utils.set_random_seed(sum(map(ord, name)))
    model, x, y = MODELS[name]()
    if model.compiled:
        for _ in range(STEPS_BEFORE):
            model.train_on_batch(x, y)
    return model, x, y


def as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def outputs(model, x):
    return [np.asarray(y, np.float32) for y in as_list(model.predict_on_batch(x))]


def losses(model, x, y):
    if not model.compiled:
        return np.zeros(0, np.float32)
    return np.array([as_list(model.train_on_batch(x, y))[0] for _ in range(STEPS_AFTER)], np.float32)


def write_data(path, **groups):
    with h5py.File(path, "w") as file:
        for group, values in groups.items():
            for i, value in enumerate(values):
                file[f"{group}/{i}"] = value


def save_all(model, x, y, folder, name):
    """NAME.keras, and NAME.data.h5 with inputs, targets, outputs and the losses of further steps."""
    model.save(folder / f"{name}.keras")
    seen = outputs(model, x)
    write_data(folder / f"{name}.data.h5", x=as_list(x), y=as_list(y) if model.compiled else [], outputs=seen,
               losses=[losses(model, x, y)])
    return seen


def deflate(path):
    """Writes an archive again, compressed: most of a small HDF5 file is empty."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def far(ours, theirs):
    """The largest difference, relative to the largest value."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if ours.shape != theirs.shape:
        return np.inf
    return float(np.max(np.abs(ours - theirs), initial=0) / max(1e-6, np.max(np.abs(theirs), initial=0)))


def tensors_in(argument):
    if isinstance(argument, dict) and argument.get("class_name") == "__keras_tensor__":
        return [argument["config"]["keras_history"]]
    return [t for a in argument for t in tensors_in(a)] if isinstance(argument, list) else []


def others_in(argument):
    """What a call is given besides tensors: numbers, constants, indices."""
    if isinstance(argument, list):
        return [o for a in argument for o in others_in(a)]
    return [] if isinstance(argument, dict) and argument.get("class_name") == "__keras_tensor__" else [comparable(argument)]


def comparable(config):
    """A config in one form, without what may differ: ids of objects, how it was built, the compiler, on which engine Keras made its
    optimizer, whether a call's tensors are named, a type's policy or its name, one axis or a list of one."""
    if isinstance(config, list):
        return [comparable(v) for v in config]
    if isinstance(config, float):
        return float(f"{config:.6g}")
    if not isinstance(config, dict):
        return config
    if config.get("class_name") == "DTypePolicy":
        return config["config"]["name"]
    if config.keys() == {"args", "kwargs"}:
        flags = {k: v for k, v in config["kwargs"].items() if v is not None and not tensors_in([v])}
        return {"tensors": tensors_in([config["args"], *config["kwargs"].values()]), "flags": flags, "others": others_in(config["args"])}
    left_out = {"shared_object_id", "build_config", "jit_compile"}
    if "learning_rate" in (config.get("config") or ()):
        left_out |= {"module", "registered_name"}
    same = {k: comparable(v) for k, v in config.items() if k not in left_out and not (k == "compile_config" and not v)}
    if isinstance(axis := same.get("axis"), list) and len(axis) == 1:
        same["axis"] = axis[0]
    return same


def differences(ours, theirs, path=""):
    """Paths at which two configs differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [d for k in sorted({*ours, *theirs}) for d in differences(ours.get(k, "(none)"), theirs.get(k, "(none)"), f"{path}/{k}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [d for i, pair in enumerate(zip(ours, theirs)) for d in differences(*pair, f"{path}/{i}")]
    return [] if ours == theirs else [f"{path}: {json.dumps(ours)[:80]}, Keras has {json.dumps(theirs)[:80]}"]


def config_in(path):
    return json.loads(zipfile.ZipFile(path).read("config.json"))


def check(name, program, folder):
    """A list of what is wrong."""
    model, x, y = make(name)
    trained = [np.asarray(v) for v in (model.optimizer.variables if model.compiled else [])]
    weights = [np.asarray(v) for v in model.weights]
    expected = save_all(model, x, y, folder, name)
    run = subprocess.run([program, folder / f"{name}.keras", folder / f"{name}.data.h5", folder / f"{name}.ours.keras", folder / f"{name}.ours.h5"],
                         capture_output=True, text=True, timeout=300)
    if run.returncode:
        return [f"the program failed: {run.stderr.strip()}"]
    wrong = []

    def compare(what, ours, theirs, tolerance=TOLERANCE):
        if len(ours) != len(theirs):
            wrong.append(f"{what}: {len(ours)}, Keras has {len(theirs)}")
        for i, pair in enumerate(zip(ours, theirs)):
            if not (distance := far(*pair)) <= tolerance:
                wrong.append(f"{what} {i}: differs by {distance:.1e}, {np.shape(pair[0])} and {np.shape(pair[1])}")

    with h5py.File(folder / f"{name}.ours.h5") as file, h5py.File(folder / f"{name}.data.h5") as data:
        compare("outputs after loading", [file[f"outputs/{i}"][()] for i in range(len(expected))], expected, ROUNDED.get(name, TOLERANCE))
        compare("losses after loading", [file["losses/0"][()]], [data["losses/0"][()]], ROUNDED.get(name, TOLERANCE))
        further = data["losses/0"][()]
    wrong += differences(comparable(config_in(folder / f"{name}.ours.keras")), comparable(config_in(folder / f"{name}.keras")))
    try:
        back = keras.models.load_model(folder / f"{name}.ours.keras")
    except Exception as error:  # whatever it is, it is a finding
        return [*wrong, f"Keras cannot load it: {error}"]
    compare("weights in Keras", [np.asarray(v) for v in back.weights], weights)
    compare("outputs in Keras", outputs(back, x), expected)
    if model.compiled:
        compare("optimizer in Keras", [np.asarray(v) for v in back.optimizer.variables], trained)
        compare("losses in Keras", [losses(back, x, y)], [further])
    weights_only = folder / f"{name}.ours.weights.h5"
    back.load_weights(weights_only)
    compare("outputs of the weights file", outputs(back, x), expected)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["store", "check"])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--program", default=ROOT / "build" / "release" / "tests" / "keras_file")
    options = parser.parse_args()
    if unknown := set(options.models) - set(MODELS):
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.models or MODELS:
            if options.command == "store":
                STORED.mkdir(exist_ok=True)
                save_all(*make(name), STORED, name)
                if name not in AS_KERAS_WRITES:
                    deflate(STORED / f"{name}.keras")
                print(f"{name}: {(STORED / f'{name}.keras').stat().st_size} bytes", flush=True)
                continue
            wrong = check(name, options.program, Path(temporary))
            failed += bool(wrong)
            print(f"{name:<14} {'the same both ways' if not wrong else 'DIFFERENT'}", *wrong, sep="\n  ", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
