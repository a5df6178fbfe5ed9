"""Strategies: what several devices compute together is what one computes. On logical CPUs, and on emulated GPUs beside the CPU."""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).parent / "distribute_program.py"
WHERE = {
    "cpus": ({}, ["cpus", "/CPU:0", "/CPU:1", "/CPU:2"]),
    "gpus": ({"TANDEM_EMULATE_GPU": "2x256MiB"}, ["/GPU:0", "/GPU:1", "/CPU:0"]),
}


@pytest.fixture(scope="module", params=WHERE)
def found(request):
    environment, arguments = WHERE[request.param]
    done = subprocess.run([sys.executable, PROGRAM, *arguments], env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return {**json.loads(done.stdout.splitlines()[-1]), "devices asked for": [a for a in arguments if a != "cpus"]}


def assert_same(a, b, where="", rtol=3e-4, atol=3e-5):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key], f"{where}/{key}", rtol, atol)
    else:
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=where)


@pytest.mark.parametrize("what", ["fit", "one row too few", "clipped", "normalized", "own step"])
def test_several_devices_give_what_one_gives(found, what):
    """Losses, metrics, predictions, weights and the number of updates; also with parts of unequal size, and with a last batch that has fewer rows
    than there are devices."""
    wanted = found[what]["one"]
    for name, got in found[what].items():
        assert_same(wanted, got, f"{what}/{name}")


def test_speed_is_measured_and_nothing_of_it_stays(found):
    assert_same(found["fit"]["one"], found["measured"])
    assert len(found["shares"]) == 3 and abs(sum(found["shares"]) - 1) < 1e-6
    assert len(found["shares without fit"]) == 3 and abs(sum(found["shares without fit"]) - 1) < 1e-6
    assert found["traces of the work"] == 3, "it runs compiled, once traced for each device"


def test_a_loop_of_ones_own(found):
    loop = found["own loop"]
    assert loop["same"] and loop["compiled"] and loop["updates"] == 4
    assert loop["losses"][0] > loop["losses"][2]
    assert loop["sums"] == 12 and loop["means"] == 1 and loop["firsts"] == 4
    assert_same(loop["mean"], sum(loop["losses"]) * 12 / 42)
    assert found["eager"][0] > found["eager"][1]


def test_values_of_replicas(found):
    x = np.random.RandomState(0).rand(42, 8).astype("float32")
    assert_same(found["mean of rows"], x[:12].mean(0))
    assert [d[-5:].strip("/") for d in found["devices"]] == [d[1:] for d in found["devices asked for"]]
    assert found["workers"] == found["devices"]


def test_errors(found):
    text = found["errors"]
    assert "replicas [0] wait in an all_reduce" in text["only the first"] and "the other replicas of 3 do not come to" in text["only the first"]
    assert text["in a branch"].startswith("RuntimeError: merge_call called while defining a new graph or a tf.function")
    assert text["in the replica"] == "ZeroDivisionError: division by zero"
    assert text["twice"].startswith("ValueError: Duplicates in devices")
    assert text["not there"].startswith("InvalidArgumentError: /job:localhost/replica:0/task:0/device:GPU:17 unknown device. All available devices [")
    assert "shares [1.0] for 3 devices" in text["shares"]
    assert found["after"] == 6
