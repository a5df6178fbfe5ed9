"""Plans the graphs of a folder with `tandem plan --dag` at many budgets and prints a table of what running again costs.

The folder holds NAME.nodes.csv and NAME.edges.csv, instances.csv with the columns net, batch and fixed_kb, and solver_results.csv with what an
integer-programming solver reached in a day (net, batch, budget_gib, method, objective, status). Every schedule is run again here, by the rules
of `tandem plan --help` alone, before its cost is believed. With --link the nodes' outputs may wait on the host too, and the table has both.

    nice python3 tools/schedule_table.py ../shared/yardsticks/monet-schedules --seeds 1,2,3 --effort 2000000000
"""
import argparse
import csv
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUDGETS = range(5, 11)


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def replayed(nodes, edges, fixed, budget, schedule):
    """The cost of a schedule of `compute` and `free` lines, or an error that says which line breaks a rule."""
    size = {n["id"]: (int(n["cost_int"]), int(n["mem_kb"])) for n in nodes}
    inputs = {i: [] for i in size}
    for e in edges:
        inputs[e["v"]].append(e["u"])
    live, done, memory, cost = set(), set(), fixed, 0
    for number, line in enumerate(schedule.read_text().splitlines(), 1):
        what, node = line.split(",")
        if what == "compute":
            if node in live or not live.issuperset(inputs[node]):
                sys.exit(f"{schedule}:{number}: {node} is live already, or misses an input")
            live.add(node)
            done.add(node)
            memory += size[node][1]
            cost += size[node][0]
        elif what == "free" and node in live:
            live.remove(node)
            memory -= size[node][1]
        else:
            sys.exit(f"{schedule}:{number}: {line}?")
        if memory > budget:
            sys.exit(f"{schedule}:{number}: {memory} KB of {budget}")
    if done != set(size):
        sys.exit(f"{schedule}: {len(size) - len(done)} nodes never run")
    return cost


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
    if "--link-gb-per-s" not in more and replayed(*map(rows, files), fixed, budget, schedule) != int(cost):
        sys.exit(f"{name} within {budget} KB: the schedule costs something else than {cost}")
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
