"""Plans the graphs of a folder with `tandem plan --dag` at many budgets and prints a table of what running again costs.

The folder holds NAME.nodes.csv and NAME.edges.csv, instances.csv with the columns net, batch and fixed_kb, and solver_results.csv with what an
integer-programming solver reached in a day (net, batch, budget_gib, method, objective, status). Every schedule is run again here, by the rules
of `tandem plan --help` alone, before its cost is believed; what only runs nodes again also by the replay of the yardstick, where that is. With --link the
nodes' outputs may wait on the host too, and the table has both.

    nice python3 tools/schedule_table.py ../shared/yardsticks/monet-schedules --seeds 1,2,3 --effort 2000000000
"""
import argparse
import csv
import math
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUDGETS = range(5, 11)
UNITS_PER_SECOND = 1e5  # of cost_int, where copies take time


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class Device:
    """Memory of one kind: what the lines count, and what they have freed while a copy or a node still uses it."""

    def __init__(self, limit):
        self.limit, self.live, self.freed = limit, 0, []

    def take(self, size):
        self.live += size

    def give(self, size, until):
        self.live -= size
        self.freed.append((until, size))

    def start(self, earliest):
        """When what is live fits beside what is still in use."""
        for time in sorted({earliest, *(until for until, _ in self.freed if until > earliest)}):
            if self.live + sum(size for until, size in self.freed if until > time) <= self.limit:
                return time
        return None


def replayed(nodes, edges, fixed, budget, schedule, time_per_gib=0):
    """When the last line of a schedule ends, or an error that says which line breaks a rule. Nodes run one after the other, copies out and copies
    back beside them, each kind one after the other; a line starts when its own kind is done, what it reads is there and its memory is free."""
    size = {n["id"]: (int(n["cost_int"]), int(n["mem_kb"])) for n in nodes}
    inputs = {i: [] for i in size}
    for e in edges:
        inputs[e["v"]].append(e["u"])
    memory = Device(budget - fixed)
    ready, busy = {}, {}  # of what is on the device: when it is there, and when nobody uses it any more
    copies, done = {}, set()  # of what is on the host: when
    free_from = {"compute": 0, "offload": 0, "fetch": 0}
    for number, line in enumerate(schedule.read_text().splitlines(), 1):
        what, node = line.split(",")
        kb = size[node][1]
        copying = -(-kb * 1024 * time_per_gib // (1 << 30))
        wrong = {
            "compute": node in ready or any(i not in ready for i in inputs[node]),
            "fetch": node in ready or node not in copies,
            "offload": node not in ready or node in copies or not time_per_gib,
            "free": node not in ready,
            "free_host": node not in copies,
        }.get(what, True)
        if wrong:
            sys.exit(f"{schedule}:{number}: {line} is not possible here")
        if what == "free":
            memory.give(kb, busy.pop(node))
            del ready[node]
        elif what == "free_host":
            del copies[node]
        elif what == "offload":
            free_from[what] = copies[node] = max(free_from[what], ready[node]) + copying
            busy[node] = max(busy[node], copies[node])
        else:
            memory.take(kb)
            earliest = max(free_from[what], copies[node]) if what == "fetch" else max([free_from[what], *(ready[i] for i in inputs[node])])
            start = memory.start(earliest) if kb else earliest
            if memory.live > memory.limit or start is None:
                sys.exit(f"{schedule}:{number}: {fixed + memory.live} KB of {budget}")
            end = start + (size[node][0] if what == "compute" else copying)
            free_from[what] = ready[node] = busy[node] = end
            memory.freed = [f for f in memory.freed if f[0] > free_from["compute"] or f[0] > free_from["fetch"]]
            if what == "compute":
                done.add(node)
                for i in inputs[node]:
                    busy[i] = max(busy[i], end)
    if done != set(size):
        sys.exit(f"{schedule}: {len(size) - len(done)} nodes never run")
    return max(free_from.values())


def checked_by_the_yardstick(files, fixed, budget, schedule, overhead):
    script = next((p for p in ROOT.parents if (p / "shared").is_dir()), ROOT.parent) / "shared" / "tools" / "replay.py"
    if not script.exists():
        return
    run = subprocess.run([sys.executable, script, *files, str(fixed), str(budget), schedule], capture_output=True, text=True)
    if run.returncode or abs(float(run.stdout) - overhead) > 0.0011:
        sys.exit(f"{script}: {run.stdout}{run.stderr} instead of {overhead}")


def plan(tandem, folder, name, fixed, budget, more, schedule):
    """Overhead, bound, and the processor's seconds; or what `tandem` says."""
    files = [folder / f"{name}.{part}.csv" for part in ("nodes", "edges")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run = subprocess.run([tandem, "plan", "--dag", *files, "--fixed-kb", str(fixed), "--budget-kb", str(budget), "--schedule", schedule, *more],
                         capture_output=True, text=True)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if run.returncode:
        return {"error": run.stderr.strip()}
    cost, overhead, bound = re.search(r"cost (\d+), overhead ([0-9.]+) %, bound \d+ \(([0-9.]+) %\)", run.stdout).groups()
    gigabytes = float(more[more.index("--link-gb-per-s") + 1]) if "--link-gb-per-s" in more else 0
    time_per_gib = math.ceil((1 << 30) / (gigabytes * 1e9) * UNITS_PER_SECOND) if gigabytes else 0
    ends = replayed(*map(rows, files), fixed, budget, schedule, time_per_gib)
    if ends != int(cost):
        sys.exit(f"{name} within {budget} KB: the schedule ends at {ends} instead of {cost}")
    if not gigabytes:
        checked_by_the_yardstick(files, fixed, budget, schedule, float(overhead))
    return {"overhead": float(overhead), "bound": float(bound), "seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tandem", default=ROOT / "build" / "release" / "tandem", type=pathlib.Path)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--effort", type=int, default=2_000_000_000, help="steps; 100 million take about a second")
    parser.add_argument("--only", default="", help="a regular expression of 'NAME BUDGET'")
    parser.add_argument("--link", help="GB a second")
    options = parser.parse_args()
    seeds = options.seeds.split(",")
    stored = {(r["net"], int(float(r["budget_gib"]))): r for r in rows(options.folder / "solver_results.csv") if r["method"] == "checkmate"}
    columns = [f"seed {s}" for s in seeds] + ([f"with {options.link} GB/s"] if options.link else [])
    print("| network, GiB | solver, 24 h | bound |", " | ".join(columns), "| bound with the link |" if options.link else "|", "seconds |")
    print("|---" * (4 + len(columns) + bool(options.link)) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for instance in rows(options.folder / "instances.csv"):
            name, base = f"{instance['net']}_b{instance['batch']}", int(instance["base_cost"])
            for budget in BUDGETS:
                if not re.search(options.only, f"{name} {budget}"):
                    continue
                use = (options.tandem, options.folder, name, int(instance["fixed_kb"]), budget << 20)
                found = [plan(*use, ["--effort", str(options.effort), "--seed", s], pathlib.Path(folder) / "schedule.csv") for s in seeds]
                if "error" in found[0]:
                    print(f"| {name} {budget} | | |", found[0]["error"].replace("\n", " "), "|", flush=True)
                    continue
                if options.link:
                    found.append(plan(*use, ["--effort", str(options.effort), "--link-gb-per-s", options.link], pathlib.Path(folder) / "schedule.csv"))
                reference = stored.get((instance["net"], budget), {"objective": "-"})["objective"]
                solver = "none" if reference == "-" else f"{100 * (float(reference) / base - 1):.3f}"
                cells = [solver, f"{max(f['bound'] for f in found[:len(seeds)]):.3f}", *(f"{f['overhead']:.3f}" for f in found)]
                cells += [f"{found[-1]['bound']:.3f}"] if options.link else []
                print(f"| {name} {budget} |", " | ".join(cells), f"| {max(f['seconds'] for f in found):.0f} |", flush=True)


if __name__ == "__main__":
    main()
