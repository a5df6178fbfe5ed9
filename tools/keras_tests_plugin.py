"""For pytest: loads the backend before Keras, and writes what became of each test as JSON to $TANDEM_KERAS_REPORT."""
import json
import os
import sys

import keras_tandem  # noqa: F401 (before any test imports keras)
from keras_tandem._hook import _Finder

_results = []


def pytest_configure(config):
    # Before pytest's own finder, which would load one of Keras's test modules without our case.
    sys.meta_path.sort(key=lambda f: not isinstance(f, _Finder))
    for mark in ("requires_trainable_backend", "multi_device", "multi_process"):
        config.addinivalue_line("markers", mark)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        if report.when == "teardown" and report.outcome != "failed":
            return
        text = "" if report.outcome == "passed" else str(report.longrepr)[-3000:]
        _results.append({"name": report.nodeid.split("keras/src/")[-1], "outcome": report.outcome, "text": text})


def pytest_collectreport(report):
    if report.failed:
        _results.append({"name": report.nodeid.split("keras/src/")[-1], "outcome": "failed", "text": str(report.longrepr)[-3000:]})


def pytest_sessionfinish(session):
    with open(os.environ["TANDEM_KERAS_REPORT"], "w") as file:
        json.dump(_results, file)
