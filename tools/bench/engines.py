"""How each engine is run: one piece of work in a process of its own, which prints a line of JSON."""
import json
import os
import pathlib

import environments

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "build" / "release" / "bench"
WORKS = ("mlp", "mlp_big", "cnn", "resnet", "transformer", "lstm")
# engine -> its environment and what it is started with. Everybody computes on the CPU.
PEERS = {
    "tensorflow": ("tensorflow", {"TF_ENABLE_ONEDNN_OPTS": "0"}),
    "tensorflow-onednn": ("tensorflow", {"TF_ENABLE_ONEDNN_OPTS": "1"}),
    "jax": ("jax", {"JAX_PLATFORMS": "cpu"}),
    "torch": ("torch", {}),
}
ENGINES = ("tandem", *PEERS)


class Failure(Exception):
    pass


def available(names, progress):
    """Those of the engines that can run. One that cannot is named, with the reason, and left out."""
    reasons = {name: environments.ensure(name, progress) for name in dict.fromkeys(PEERS[n][0] for n in names if n in PEERS)}
    for name, reason in reasons.items():
        if reason:
            progress.say(f"no environment for {name}, which is left out: {reason}")
    return [n for n in names if n not in PEERS or reasons[PEERS[n][0]] is None]


def run(engine, work, options, progress, what, cache_dir=None):
    """The object that the engine's program printed. Raises Failure with its last words when it did not end well."""
    environment = dict(os.environ)
    if engine in PEERS:
        name, extra = PEERS[engine]
        command = [environments.python(name), ROOT / "tools" / "bench" / "keras_train.py", work, *options]
        environment.pop("PYTHONPATH", None)
        environment.update(extra, KERAS_BACKEND=name, KERAS_HOME=str(environments.folder() / name), CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
    else:
        command = [PROGRAMS / "train", work, *options]
        if cache_dir:
            environment["TANDEM_CACHE_DIR"] = str(cache_dir)
    return output(command, progress, what, environment)


def output(command, progress, what, environment=None):
    result = progress.run(what, command, environment)
    if result.returncode:
        raise Failure(environments.last_line(result.stderr) or f"ended with {result.returncode}")
    return json.loads(result.stdout.splitlines()[-1])
