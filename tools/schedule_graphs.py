"""Writes graphs for `tandem plan --dag`: `schedule_graphs.py KIND UNITS FOLDER [--seed N]` makes KIND_UNITS.nodes.csv and .edges.csv there.

chain    a deep chain forwards, and backwards two nodes for each that read what it read
residual the same with a skip over every third node, and a few sizes of values as in stages of a net
dense    blocks of twelve, in which each node reads all before it in the block
branch   four chains side by side between common nodes, as in an inception net
random   each node reads one to three of the thirty before it; backwards as above
"""
import argparse
import csv
import pathlib
import random


def forwards(kind, depth, rng):
    """What each node reads, and its size."""
    nodes = []
    for i in range(depth):
        stage = 1 + 3 * i // depth
        size = rng.choice((4000, 8000)) // stage if kind in ("residual", "dense", "branch") else rng.randint(500, 8000)
        reads = [i - 1] if i else []
        if kind == "residual" and i % 3 == 2 and i >= 4:
            reads.append(i - 4)
        elif kind == "dense":
            reads = list(range(max(0, i - i % 12 - 1), i))
        elif kind == "branch":
            place = i % 14  # 0: common, 1..12: three in each of four chains, 13: joins them
            if place == 13:
                reads = [i - 1, i - 4, i - 7, i - 10]
            elif place in (4, 7, 10):
                reads = [i - place]
        elif kind == "random" and i:
            reads = sorted({rng.randint(max(0, i - 30), i - 1) for _ in range(rng.randint(1, 3))} | ({i - 1} if rng.random() < 0.7 else set()))
        nodes.append((reads, size))
    return nodes


def training(kind, units, rng):
    """Nodes (cost, size) and edges of a step: about a third of the nodes forwards."""
    net = forwards(kind, (units - 1) // 3, rng)
    nodes, edges = [], []

    def add(cost, size, reads):
        edges.extend((r, len(nodes)) for r in sorted(set(reads)))
        nodes.append((cost, size))
        return len(nodes) - 1

    for reads, size in net:
        add(rng.randint(20, 400), size, reads)
    gradients = [[] for _ in net]
    gradients[-1].append(add(10, 10, [len(net) - 1]))
    for i in reversed(range(len(net))):
        reads, _ = net[i]
        if not gradients[i]:
            continue
        arrived = gradients[i]
        if len(arrived) > 1:
            arrived = [add(15, net[i][1], arrived)]
        add(rng.randint(20, 400), 0, reads + arrived)  # of the weights
        for r in reads:
            gradients[r].append(add(rng.randint(20, 400), net[r][1], [r, i] + arrived))
    return nodes, edges


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("chain", "residual", "dense", "branch", "random"))
    parser.add_argument("units", type=int)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    nodes, edges = training(options.kind, options.units, random.Random(options.seed))
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, columns, rows in (("nodes", ("id", "cost_int", "mem_kb"), [(i, *n) for i, n in enumerate(nodes)]), ("edges", ("u", "v"), edges)):
        with (options.folder / f"{options.kind}_{options.units}.{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)
    print(f"{len(nodes)} nodes, {len(edges)} edges")


if __name__ == "__main__":
    main()
