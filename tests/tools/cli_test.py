"""The command `tandem`, run as a user runs it: what it prints, what it writes, its errors and exit codes.

usage: cli_test.py PROGRAM [unittest options]
"""
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Beside the checkout, or beside a folder of checkouts.
YARDSTICKS = next((p for p in (f / "shared" / "yardsticks" / "minimalloc" for f in ROOT.parents) if p.is_dir()), None)
PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else str(ROOT / "build" / "release" / "tandem")
HEADER = "id,lower,upper,size\n"


def tandem(*words, **environment):
    """Runs the program without any TANDEM_* variable but those given."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("TANDEM_")} | environment
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, env=env, timeout=300)


def blocks(path):
    with open(path, newline="") as file:
        return [{k: v if k == "id" else int(v) for k, v in row.items()} for row in csv.DictReader(file)]


class Command(unittest.TestCase):
    def fails(self, run, code, message):
        """Exactly this one line on stderr."""
        self.assertEqual(run.stderr, message + "\n")
        self.assertEqual(run.returncode, code)


class General(Command):
    def test_help_names_every_command_and_each_has_its_own(self):
        run = tandem("--help")
        self.assertEqual(run.returncode, 0)
        for name in ("devices", "doctor", "plan"):
            self.assertIn(f"\n  {name} ", run.stdout)
            own = tandem(name, "--help")
            self.assertEqual(own.returncode, 0)
            self.assertTrue(own.stdout.startswith(f"usage: tandem {name}"), own.stdout)

    def test_version_is_the_projects(self):
        version = re.search(r"project\(tandem VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        self.assertEqual(tandem("--version").stdout, f"tandem {version}\n")

    def test_no_command_is_a_wrong_use(self):
        run = tandem()
        self.assertEqual(run.returncode, 2)
        self.assertIn("usage: tandem COMMAND", run.stderr)

    def test_plan_alone_lists_what_can_be_planned(self):
        run = tandem("plan")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("\n  --allocate ", run.stderr)
        self.assertIn("\n  --dag ", run.stderr)

    def test_errors_of_use(self):
        self.fails(tandem("fly"), 2, 'tandem: there is no command "fly"; see tandem --help')
        self.fails(tandem("devices", "now"), 2, 'tandem devices: "now" is not an option; see tandem devices --help')
        self.fails(tandem("doctor", "--deep", "1"), 2, "tandem doctor: there is no option --deep; see tandem doctor --help")
        self.fails(tandem("plan", "--effort", "1"), 2, "tandem plan: the options do not say what to plan; see tandem plan --help")
        self.fails(tandem("plan", "--allocate"), 2, "tandem plan: --allocate needs a value; see tandem plan --help")
        self.fails(tandem("plan", "--allocate="), 2, "tandem plan: --allocate needs a value; see tandem plan --help")
        self.fails(tandem("plan", "--allocate", "a", "--allocate", "b"), 2,
                   "tandem plan: --allocate is given twice; see tandem plan --help")
        for wrong in ("x", "-1", "0", "1k", "99999999999999999999"):
            self.fails(tandem("plan", "--allocate", "a", "--capacity", wrong), 2,
                       f'tandem plan: --capacity is "{wrong}", not a whole number of at least 1; see tandem plan --help')
        self.fails(tandem("plan", "--allocate", "a", "--alignment", 2**40), 2,
                   "tandem plan: --alignment is 1099511627776, more than 1073741824; see tandem plan --help")


MODELS = ROOT / "tests" / "data" / "keras_files"


class PlanModel(Command):
    """tandem plan MODEL.keras"""

    MODEL = MODELS / "images.keras"

    def plan(self, *words):
        run = tandem("plan", self.MODEL, "--batch", 8, "--quick", *words)
        self.assertEqual(run.stderr, "")
        return run

    def test_a_table_for_a_card(self):
        run = self.plan("--card", "rtx 3060")
        self.assertEqual(run.returncode, 0)
        for line in (r"batch 8, on RTX 3060 with 11\.2 GiB", r"fits as it is: .* stay free", r"  step +\S+ .s", r"    weights +\S+ .*B",
                     r"  smallest limit that works ", r"  largest batch planned +\d+ "):
            self.assertRegex(run.stdout, line)

    def test_json_and_the_smallest_limit_that_it_names_works(self):
        refused = self.plan("--gpu-memory", "2KiB", "--json")
        self.assertEqual(refused.returncode, 1)
        answer = json.loads(refused.stdout)
        self.assertFalse(answer["fits"])
        self.assertIsNone(answer["planned"])
        least = answer["least_bytes"]
        self.assertIn(f"needs at least {least} bytes", answer["refusal"])
        fits = self.plan("--gpu-memory", least, "--json")
        self.assertEqual(fits.returncode, 0, fits.stdout)
        planned = json.loads(fits.stdout)["planned"]
        self.assertLessEqual(planned["peak_bytes"], least)
        self.assertEqual(sum(planned["parts"].values()), planned["peak_bytes"])

    def test_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "plan.html"
            run = self.plan("--gpu-memory", "1GiB", "--html", page)
            self.assertEqual(run.returncode, 0)
            text = page.read_text()
        self.assertTrue(text.startswith("<!DOCTYPE html>"))
        self.assertIn("Memory over a step", text)
        self.assertNotIn("http://", text.replace("http://www.w3.org/", ""))

    def test_the_optimizer_may_be_another(self):
        state = {}
        for optimizer in ("sgd", "adam"):
            run = self.plan("--gpu-memory", "1GiB", "--optimizer", optimizer, "--json")
            parts = json.loads(run.stdout)["unlimited"]["parts"]
            state[optimizer] = parts["optimizer_state"]
            self.assertGreater(parts["weights"], 0)
        self.assertLess(state["sgd"], state["adam"])

    def test_cards_are_listed_with_their_sources(self):
        run = tandem("plan", "--cards")
        self.assertEqual(run.returncode, 0)
        self.assertGreater(len(run.stdout.splitlines()), 20)
        self.assertRegex(run.stdout, r"\n  RTX 3060 +12 GB +360 GB/s +12\.7 TFLOP/s PCIe 4\.0 x16 +NVIDIA")

    def test_errors(self):
        self.fails(tandem("plan", self.MODEL), 2,
                   'tandem plan: how much memory there is, is missing: --gpu-memory 4GiB, or --card "RTX 3060"; see tandem plan --help')
        self.fails(tandem("plan", self.MODEL, "--gpu-memory", "much"), 2,
                   'tandem plan: --gpu-memory is "much", not a size such as 4GiB or 512MiB; see tandem plan --help')
        self.fails(tandem("plan", self.MODEL, "--card", "T4", "--device", "gpu:0"), 2,
                   "tandem plan: --card and --device cannot both be given; see tandem plan --help")
        self.fails(tandem("plan", self.MODEL, "--json=1", "--card", "T4"), 2, "tandem plan: --json takes no value; see tandem plan --help")
        self.fails(tandem("plan", "nowhere.keras", "--card", "T4"), 1, "tandem plan: cannot open nowhere.keras: No such file or directory")
        run = tandem("plan", self.MODEL, "--card", "RTX 9999")
        self.assertEqual(run.returncode, 1)
        self.assertTrue(run.stderr.startswith('tandem plan: card: there is none named "RTX 9999" in the catalogue; there are GTX 1080, '), run.stderr)


class Plan(Command):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, source, result, capacity, alignment=1):
        """The same rows in the same order, and no two that are alive at once share a byte."""
        given, placed = blocks(source), blocks(result)
        self.assertEqual(given, [{k: v for k, v in b.items() if k != "offset"} for b in placed])
        for i, a in enumerate(placed):
            self.assertEqual(a["offset"] % alignment, 0)
            self.assertLessEqual(a["offset"] + a["size"], capacity)
            for b in placed[:i]:
                apart_in_time = a["upper"] <= b["lower"] or b["upper"] <= a["lower"]
                apart_in_space = a["offset"] + a["size"] <= b["offset"] or b["offset"] + b["size"] <= a["offset"]
                self.assertTrue(apart_in_time or apart_in_space, f"{a} and {b}")

    def fit(self, source, capacity, *more):
        result = self.folder / "placed.csv"
        run = tandem("plan", "--allocate", source, "--capacity", capacity, "--out", result, *more)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr, "")
        self.check(source, result, capacity)
        return run.stdout

    def test_blocks_that_need_the_search(self):
        printed = self.fit(ROOT / "tests" / "data" / "blocks.csv", 6)
        self.assertRegex(printed, r"^5 buffers, lower bound 6, peak 6, \d+\.\d{3} s, [1-9]\d* steps\n$")

    def test_without_the_search_they_do_not_fit(self):
        out = self.folder / "placed.csv"
        run = tandem("plan", "--allocate", ROOT / "tests" / "data" / "blocks.csv", "--capacity", 6, "--effort", 0, "--out", out)
        self.fails(run, 1, "tandem plan: nothing within the capacity 6 was found in 0 steps, the best peak is 7; "
                           "a larger --effort searches longer")
        self.assertRegex(run.stdout, r"^5 buffers, lower bound 6, peak 7, ")
        self.assertFalse(out.exists())

    def test_a_capacity_that_is_too_small(self):
        run = tandem("plan", "--allocate", ROOT / "tests" / "data" / "blocks.csv", "--capacity", 5)
        self.fails(run, 1, "tandem plan: no allocation is within the capacity 5, the least possible is 6 or more")

    def test_without_a_capacity_the_peak_is_made_small(self):
        run = tandem("plan", "--allocate", ROOT / "tests" / "data" / "blocks.csv")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"^5 buffers, lower bound 6, peak 6, ")

    def test_alignment(self):
        source, result = ROOT / "tests" / "data" / "blocks.csv", self.folder / "placed.csv"
        run = tandem("plan", "--allocate", source, "--alignment=4", "--out", result)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.check(source, result, 12, alignment=4)

    def test_the_same_bytes_every_time(self):
        source, texts = ROOT / "tests" / "data" / "blocks.csv", []
        for _ in range(2):
            self.fit(source, 6)
            texts.append((self.folder / "placed.csv").read_bytes())
        self.assertEqual(*texts)

    def test_columns_in_another_order_and_lines_from_elsewhere(self):
        source = self.folder / "blocks.csv"
        source.write_bytes(b"size,upper,note,id,lower\r\n4,2,x,a,0\r\n\r\n4,3,,b,1\r\n")
        run = tandem("plan", "--allocate", source, "--capacity", 8, "--out", self.folder / "placed.csv")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted((b["id"], b["lower"], b["upper"], b["size"]) for b in blocks(self.folder / "placed.csv")),
                         [("a", 0, 2, 4), ("b", 1, 3, 4)])

    def test_no_blocks_and_blocks_of_no_bytes(self):
        source = self.folder / "blocks.csv"
        source.write_text(HEADER)
        self.assertRegex(self.fit(source, 1), "^0 buffers, lower bound 0, peak 0, ")
        source.write_text(HEADER + "a,0,5,0\nb,0,5,0\n")
        self.assertRegex(self.fit(source, 1), "^2 buffers, lower bound 0, peak 0, ")

    def test_errors_in_files(self):
        source = self.folder / "blocks.csv"
        for text, message in {
            "": ": empty, not even a line that names the columns id,lower,upper,size",
            "id,lower,size\n": ':1: the first line is "id,lower,size" and names no column "upper"',
            HEADER + "a,0,1,4\nb,0,1\n": ":3: 3 fields, the first line has 4",
            HEADER + "a,0,1,4\n\nb,0,1,4,5\n": ":4: 5 fields, the first line has 4",
            HEADER + "a,0,x,4\n": ':2: upper is "x", not a whole number of 64 bits',
            HEADER + "a,,1,4\n": ':2: lower is "", not a whole number of 64 bits',
            HEADER + "a,0,1, 4\n": ':2: size is " 4", not a whole number of 64 bits',
            HEADER + "a,0,1,99999999999999999999\n": ':2: size is "99999999999999999999", not a whole number of 64 bits',
            HEADER + "a,0,1,-4\n": ":2: size -4 is negative",
            HEADER + "a,5,5,4\n": ":2: upper 5 is not above lower 5",
            HEADER + "a,5,-9223372036854775808,4\n": ":2: upper -9223372036854775808 is not above lower 5",
        }.items():
            with self.subTest(text=text):
                source.write_text(text)
                run = tandem("plan", "--allocate", source, "--capacity", 10)
                self.fails(run, 1, f"tandem plan: {source}{message}")
                self.assertEqual(run.stdout, "")
        source.write_text(HEADER + "a,0,1,4611686018427387904\n")
        self.fails(tandem("plan", "--allocate", source), 1,
                   "tandem plan: allocate: the blocks have 2^62 bytes or more together")

    def test_files_that_are_not_there(self):
        missing = self.folder / "missing.csv"
        self.fails(tandem("plan", "--allocate", missing), 1, f"tandem plan: {missing}: No such file or directory")
        self.fails(tandem("plan", "--allocate", self.folder), 1, f"tandem plan: {self.folder}: Is a directory")
        out = self.folder / "nowhere" / "placed.csv"
        run = tandem("plan", "--allocate", ROOT / "tests" / "data" / "blocks.csv", "--out", out)
        self.fails(run, 1, f"tandem plan: {out}: No such file or directory")

    @unittest.skipUnless(YARDSTICKS, "the problems of MiniMalloc are not here")
    def test_the_problems_of_minimalloc(self):
        problems = sorted(YARDSTICKS.glob("*.csv"))
        self.assertEqual(len(problems), 12)
        for problem in problems:
            with self.subTest(problem=problem.name):
                self.fit(problem, int(problem.name.split(".")[1]))


class Machine(Command):
    def test_devices_are_tried_out(self):
        run = tandem("devices")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"(?m)^\* cpu +PASS +host +- +- +[\d.]+ +[\d.]+ +[\d.]+ +[\d,-]+ +\d+ threads?, ")
        self.assertRegex(run.stdout, r"(?m)^  ref +PASS ")
        self.assertRegex(tandem("devices", TANDEM_DEVICE="ref").stdout, r"(?m)^\* ref ")

    def test_devices_as_json(self):
        run = tandem("devices", "--json", TANDEM_DEVICE="ref")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        found = {d["name"]: d for d in json.loads(run.stdout)}
        self.assertTrue(found["ref"]["default"])
        self.assertFalse(found["cpu"]["default"])
        self.assertEqual(found["cpu"]["link_bytes_per_second"], 0)
        for rate in ("flops_per_second", "bytes_per_second", "launch_seconds"):
            self.assertGreater(found["cpu"][rate], 0)
        self.assertEqual(found["null"]["flops_per_second"], 10e12)
        self.assertFalse(found["null"]["computes"])
        broken = {d["name"]: d for d in json.loads(tandem("devices", "--json", TANDEM_CPU_ISA="abacus").stdout)}
        self.assertIn("TANDEM_CPU_ISA is 'abacus'", broken["cpu"]["problem"])
        self.fails(tandem("devices", "--json", "1"), 2, 'tandem devices: "1" is not an option; see tandem devices --help')

    def test_cores_are_shared_out(self):
        cores = sorted(os.sched_getaffinity(0))
        run = tandem("devices", "--json", TANDEM_CORES=str(cores[-1]))
        cpu = {d["name"]: d for d in json.loads(run.stdout)}["cpu"]
        self.assertEqual(cpu["cores"], str(cores[-1]))
        self.assertRegex(cpu["description"], "^1 thread, pinned, ")
        text = tandem("devices", TANDEM_DATA_CORES=str(cores[-1])).stdout
        self.assertRegex(text, rf"(?m)^  pipelines +- .* {cores[-1]} +input pipelines, kept there with all that they compute$")
        self.assertRegex(tandem("devices").stdout, r"(?m)^  pipelines +- .* [\d,-]+ +input pipelines$")

    def test_a_device_that_cannot_be_used_gives_its_reason(self):
        run = tandem("devices", TANDEM_CPU_ISA="abacus")
        self.assertEqual(run.returncode, 0, run.stderr)  # ref computes
        self.assertRegex(run.stdout, r"(?m)^\* cpu +no +TANDEM_CPU_ISA is 'abacus'; known are native, avx2, avx512, avx512_bf16$")

    def test_doctor(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "a.k").write_bytes(bytes(3000))
            run = tandem("doctor", TANDEM_CACHE_DIR=folder, TANDEM_THREADS="1")
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertIn(f"\nok cache           {folder}, 1 file, 2.9 KiB\n", run.stdout)
            self.assertIn("\nok environment     TANDEM_THREADS=1\n", run.stdout)
            self.assertRegex(run.stdout, r"\nok cpu device      1 thread, .*; the code generator compiles")
            self.assertEqual(os.listdir(folder), ["a.k"])  # looking changes nothing

    def test_doctor_says_what_to_do(self):
        run = tandem("doctor", TANDEM_THREADS="many", TANDEM_THREAD="1", TANDEM_CACHE_DIR="off")
        self.assertEqual(run.returncode, 1)
        self.assertIn("-- environment     TANDEM_THREAD=1, which nothing reads\n", run.stdout)
        self.assertIn("-- cache           off: every process compiles its kernels anew\n", run.stdout)
        self.assertIn('-- cpu device      TANDEM_THREADS: "many" is not a whole number\n', run.stdout)
        self.assertEqual(run.stdout.count("hint: "), 3)


class PlanDag(Command):
    """Three nodes forwards and three back, which read what was made before."""
    NODES = "id,op,cost_int,mem_kb\n10,a,5,10\n20,b,7,10\n30,c,1,2\n40,cb,1,0\n50,bb,1,2\n60,ab,1,2\n"
    EDGES = "u,v\n10,20\n20,30\n30,40\n20,40\n40,50\n10,50\n20,50\n50,60\n10,60\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.nodes, self.edges, self.out = (self.folder / n for n in ("nodes.csv", "edges.csv", "out.csv"))
        self.nodes.write_text(self.NODES)
        self.edges.write_text(self.EDGES)

    def plan(self, *more):
        return tandem("plan", "--dag", self.nodes, self.edges, "--schedule", self.out, *more)

    def replay(self, fixed, nodes=None, edges=None):
        """Cost and peak of the schedule that was written, by the rules of the command's help alone."""
        read = lambda p: [dict(zip(p.read_text().splitlines()[0].split(","), line.split(","))) for line in p.read_text().splitlines()[1:]]
        size = {n["id"]: (int(n["cost_int"]), int(n["mem_kb"])) for n in read(nodes or self.nodes)}
        inputs = {i: [e["u"] for e in read(edges or self.edges) if e["v"] == i] for i in size}
        live, done, cost, peak = set(), set(), 0, fixed
        for line in self.out.read_text().splitlines():
            what, node = line.split(",")
            if what == "free":
                live.remove(node)
                continue
            self.assertEqual(what, "compute")
            self.assertNotIn(node, live)
            self.assertLessEqual(set(inputs[node]), live)
            live.add(node)
            done.add(node)
            cost += size[node][0]
            peak = max(peak, fixed + sum(size[n][1] for n in live))
        self.assertEqual(done, set(size))
        return cost, peak

    def test_without_pressure_each_node_runs_once(self):
        run = self.plan("--fixed-kb", 3, "--budget-kb", 100)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertRegex(run.stdout, r"^6 nodes, cost 16, overhead 0.000 %, bound 16 \(0.000 %\), gap 0.000 %\n"
                                     r"peak 25 KB of 100, 0 computed again, [0-9.]+ s, [0-9]+ steps\n$")
        self.assertEqual(self.replay(3), (16, 25))

    def test_a_file_is_sorted_when_it_is_not(self):
        lines = self.NODES.splitlines()
        self.nodes.write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
        run = self.plan("--fixed-kb", 0, "--budget-kb", 24)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(self.replay(0), (16, 22))

    def test_what_is_impossible_is_refused_with_what_would_do(self):
        run = self.plan("--fixed-kb", 3, "--budget-kb", 20)
        self.fails(run, 1, "tandem plan: no schedule is within 20 KB: node 50 needs 25 KB while it runs\n"
                           "  hint: the smallest budget for which a schedule was found is 25 KB")
        self.assertFalse(self.out.exists())

    def test_a_chain_runs_again_within_less(self):
        count = 24
        nodes = [f"{i},{10 + i % 3},{100 if i < count else 10}" for i in range(2 * count)]
        edges = [f"{i},{i + 1}" for i in range(2 * count - 1)] + [f"{i},{2 * count - 1 - i}" for i in range(count - 1)]
        self.nodes.write_text("id,cost_int,mem_kb\n" + "\n".join(nodes) + "\n")
        self.edges.write_text("u,v\n" + "\n".join(edges) + "\n")
        costs = []
        for budget in (2500, 1500, 800):
            run = self.plan("--fixed-kb", 0, "--budget-kb", budget, "--effort", 5_000_000, "--seed", 3)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            cost, peak = self.replay(0)
            self.assertIn(f"48 nodes, cost {cost}, ", run.stdout)
            self.assertIn(f"\npeak {peak} KB of {budget}, ", run.stdout)
            self.assertLessEqual(peak, budget)
            costs.append(cost)
        self.assertLess(costs[0], costs[1])
        self.assertLess(costs[1], costs[2])
        again = self.plan("--fixed-kb", 0, "--budget-kb", 800, "--effort", 5_000_000, "--seed", 3)
        self.assertEqual(run.stdout.split("again,")[0], again.stdout.split("again,")[0])
        linked = self.plan("--fixed-kb", 0, "--budget-kb", 800, "--effort", 5_000_000, "--link-gb-per-s", 12)
        self.assertEqual((linked.returncode, linked.stderr), (0, ""))
        self.assertIn("fetch,", self.out.read_text())
        self.assertLess(int(linked.stdout.split("cost ")[1].split(",")[0]), costs[2])

    def test_errors_of_files(self):
        for file, text, message in [
            ("nodes", "", ": empty, not even a line that names the columns id,cost_int,mem_kb"),
            ("nodes", "id,cost\n", ':1: the first line is "id,cost" and names no column "cost_int"'),
            ("nodes", "id,cost_int,mem_kb\n", ": no nodes"),
            ("nodes", "id,cost_int,mem_kb\n1,2\n", ":2: 2 fields, the first line has 3"),
            ("nodes", "id,cost_int,mem_kb\n1,2.5,3\n", ':2: column 2: cost_int is "2.5", not a whole number of 64 bits'),
            ("nodes", "id,cost_int,mem_kb\n1,2,-3\n", ":2: column 3: mem_kb -3 is not between 0 and 1099511627776"),
            ("nodes", "id,cost_int,mem_kb\n1,-2,3\n", ":2: column 2: cost_int -2 is not between 0 and 1099511627776"),
            ("nodes", "id,cost_int,mem_kb\n1,2,3\n1,2,3\n", ":3: column 1: node 1 is there twice"),
            ("edges", "u,w\n", ':1: the first line is "u,w" and names no column "v"'),
            ("edges", "u,v\n10,70\n", ":2: column 2: v is 70, and there is no such node"),
            ("edges", "u,v\n10,10\n", ":2: column 2: node 10 needs itself"),
            ("edges", "u,v\n10,20\n20,30\n30,10\n", ": the edges have a cycle; node 10 is in it or behind it"),
        ]:
            with self.subTest(text=text):
                self.setUp()
                path = self.folder / f"{file}.csv"
                path.write_text(text)
                self.fails(self.plan("--fixed-kb", 0, "--budget-kb", 100), 1, f"tandem plan: {path}{message}")

    def test_errors_of_use(self):
        see = "; see tandem plan --help"
        self.fails(tandem("plan", "--dag", self.nodes), 2, "tandem plan: --dag needs two files, of nodes and of edges" + see)
        self.fails(self.plan("--budget-kb", 1), 2, "tandem plan: --fixed-kb is missing" + see)
        self.fails(self.plan("--fixed-kb", 1), 2, "tandem plan: --budget-kb is missing" + see)
        use = ("--fixed-kb", 0, "--budget-kb", 100)
        self.fails(self.plan(*use, "--effort", 1, "--seconds", 1), 2,
                   "tandem plan: --seconds and --effort are given, and one of them says when to stop" + see)
        self.fails(self.plan(*use, "--link-gb-per-s", "fast"), 2,
                   'tandem plan: --link-gb-per-s is "fast", not a number between 0.001 and 1000000' + see)
        missing = self.folder / "missing.csv"
        self.fails(tandem("plan", "--dag", missing, self.edges, *use), 1, f"tandem plan: {missing}: No such file or directory")


if __name__ == "__main__":
    unittest.main()
