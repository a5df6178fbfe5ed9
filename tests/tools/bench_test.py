"""The training benchmark's own arithmetic: what it makes of the runs, what it calls equal, what it does without an environment."""
import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "bench"))
import busy  # noqa: E402
import check  # noqa: E402
import engines  # noqa: E402
import report  # noqa: E402

MACHINE = {"threads": 2, "fma_gflops": 100.0, "gemm_gflops": 90.0, "memory_1_mib_gb_per_s": 100.0, "memory_64_mib_gb_per_s": 20.0}


def run(ms, first=1.0, **more):
    return {"passes_ms": ms, "first_step_s": first, "peak_mib": 100.0, "loss": 0.5, "accuracy": 0.9, **more}


def wait_until(condition, limit_s=20):
    end = time.monotonic() + limit_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


class Silent:
    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)

    def run(self, what, command, env=None):
        raise OSError(f"cannot run {command[0]}")


class Report(unittest.TestCase):
    def setUp(self):
        ours = {"flops": 1e8, "weights": 1_000_000}
        runs = {("mlp", "tandem"): run([9.0, 2.0, 1.0, 2.5, 1.5], 0.4, **ours), ("mlp", "jax"): run([1.0]), ("mlp", "torch"): run([4.0])}
        self.rows = report.summary(runs, {"mlp": 0.1}, MACHINE)

    def test_rows_have_the_promised_names(self):
        for row in self.rows:
            self.assertLessEqual({"work", "engine", "ms_per_step", "peak_mib", "first_step_s", "loss"}, set(row))

    def test_the_median_counts_and_the_first_run_had_no_kernels(self):
        tandem = self.rows[0]
        self.assertEqual((tandem["ms_per_step"], tandem["best_ms"], tandem["middle_half_ms"]), (2.0, 1.0, [1.5, 2.5]))
        self.assertEqual((tandem["first_step_s"], tandem["first_step_warm_s"]), (0.4, 0.1))

    def test_floor(self):
        # 1e8 operations at 100 GFLOP/s; 28 MB of traffic in 15 MiB of state, which the smaller cache size stands for: 100 GB/s.
        self.assertAlmostEqual(self.rows[0]["floor_ms"], 1.0 + 0.28)

    def test_ratio_is_to_the_best_peer(self):
        self.assertEqual(list(report.ratios(self.rows)), ["mlp: 2.00 ms, 2.00 x the time of the best peer (jax, 1.00 ms), 1.6 x the floor"])

    def test_table_and_document_name_every_engine(self):
        for text in (report.text(self.rows, MACHINE), report.markdown(self.rows, MACHINE, "./dev bench --write")):
            for word in ("tandem", "jax", "torch", "floor"):
                self.assertIn(word, text)

    def test_document_says_what_another_program_left(self):
        rows = [{"work": "mlp", "alone_ms": 1.5, "busy_ms": 2.5, "left": 0.6, "share": 0.45}]
        document = report.markdown(self.rows, MACHINE, "./dev bench --busy --write", rows)
        self.assertIn("| mlp | 1.50 | 2.50 | 0.60 | 0.55 |", document)
        self.assertNotIn("one core busy", report.markdown(self.rows, MACHINE, "./dev bench --write"))


class Busy(unittest.TestCase):
    def test_the_neighbour_computes_while_it_is_let_and_ends_with_its_block(self):
        with busy.Neighbour() as neighbour:
            stopped = neighbour._cpu_seconds()
            neighbour.beside(lambda: wait_until(lambda: neighbour._cpu_seconds() > stopped))
            self.assertGreater(neighbour.share(), 0)
        self.assertIsNotNone(neighbour.process.poll())


# A program that does as bench/train and keras_train.py do with --wait.
TURNS = """
import sys
print("some words first")
turns = 0
while print("ready", flush=True) or sys.stdin.readline():
    turns += 1
    if turns == 3: sys.exit("had enough")
print('{"passes_ms": %s}' % ([1.0] * turns))
"""


class Sessions(unittest.TestCase):
    def session(self, script=TURNS):
        with mock.patch.object(engines, "program", return_value=([sys.executable, "-c", script], None)):
            return engines.Session("tandem", "mlp")

    def test_there_is_a_pass_for_each_turn(self):
        with self.session() as session:
            session.run_pass()
            session.run_pass()
            self.assertEqual(session.end(), {"passes_ms": [1.0, 1.0]})

    def test_one_that_ends_early_says_why(self):
        with self.session() as session:
            session.run_pass()
            session.run_pass()
            with self.assertRaisesRegex(engines.Failure, "had enough"):
                session.run_pass()
        with self.assertRaisesRegex(engines.Failure, "no module"):
            self.session("import sys; sys.exit('no module')")


class Check(unittest.TestCase):
    def test_what_counts_as_equal(self):
        curve = [1.0 + step / 10 for step in range(check.STEPS)]
        noisy = curve[:5] + [loss * 1.01 for loss in curve[5:]]
        off = curve[:5] + [loss * 1.015 for loss in curve[5:]]
        self.assertIsNone(check.first_wrong_step(curve, [curve]))
        self.assertEqual(check.first_wrong_step(off, [curve]), 5)
        self.assertIsNone(check.first_wrong_step(off, [curve, noisy]))  # no farther than twice what the peers differ by
        self.assertEqual(check.first_wrong_step([1.001, *curve[1:]], [curve, noisy]), 0)  # at the beginning they do not differ


class Environments(unittest.TestCase):
    def test_one_that_cannot_be_made_is_named_and_left_out(self):
        progress = Silent()
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, TANDEM_BENCH_ENVS=folder):
            self.assertEqual(engines.available(["tandem", "jax"], progress), ["tandem"])
        self.assertEqual(len(progress.said), 1)
        self.assertRegex(progress.said[0], "^no environment for jax, which is left out: cannot run ")


if __name__ == "__main__":
    unittest.main()
