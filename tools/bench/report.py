"""What a run of the benchmark found, as a table for people, as JSON, and as docs/performance/training.md."""
import datetime
import os
import pathlib
import platform
import statistics

# Adam, for each weight: there are itself, its gradient and two moments, of 4 bytes each; all are read, and all but the gradient written.
OPTIMIZER_STATE_BYTES = 16
OPTIMIZER_TRAFFIC_BYTES = 28


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def memory_rate(machine, mib):
    """Bytes a second in a working set of this size: that of the largest measured one that is not larger, or of the smallest."""
    sizes = sorted(int(name.split("_")[1]) for name in machine if name.startswith("memory_"))
    fitting = [size for size in sizes if size <= mib] or sizes[:1]
    return machine[f"memory_{fitting[-1]}_mib_gb_per_s"] * 1e9


def floor_ms(run, machine):
    """No step can take less: the multiply-adds of its products at the cores' peak, its optimizer's traffic at the memory's speed.

    The peak and not the best matrix product: it is the same whether or not other programs keep the cores busy.
    """
    state_mib = run["weights"] * OPTIMIZER_STATE_BYTES / 2**20
    return 1e3 * (run["flops"] / (machine["fma_gflops"] * 1e9) + run["weights"] * OPTIMIZER_TRAFFIC_BYTES / memory_rate(machine, state_mib))


def middle_half(values):
    """Between which the middle half of them lies."""
    if len(values) < 2:
        return [values[0], values[0]]
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    return [quarters[0], quarters[2]]


def summary(runs, warm_s, machine):
    """One object for each work and engine. Passes of the same number ran one after the other."""
    rows = []
    for (work, engine), run in runs.items():
        passes = run["passes_ms"]
        row = {"work": work, "engine": engine, "ms_per_step": statistics.median(passes), "best_ms": min(passes), "middle_half_ms": middle_half(passes),
               "peak_mib": run["peak_mib"], "first_step_s": run["first_step_s"], "loss": run["loss"], "accuracy": run["accuracy"], "passes_ms": passes,
               "versions": run.get("versions", {})}
        if engine == "tandem":
            row["floor_ms"] = floor_ms(run, machine)
            if work in warm_s:
                row["first_step_warm_s"] = warm_s[work]
        rows.append(row)
    return rows


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def first_step(row):
    warm = row.get("first_step_warm_s")
    return number(row["first_step_s"]) + (f" ({number(warm)})" if warm is not None else "")


HEADER = ("work", "engine", "ms/step", "middle half", "best", "x tandem", "peak MiB", "first step s", "loss")


def lines(rows):
    """The table's cells."""
    for work in dict.fromkeys(row["work"] for row in rows):
        of_work = [row for row in rows if row["work"] == work]
        tandem = next((row for row in of_work if row["engine"] == "tandem"), None)
        for row in of_work:
            times = number(row["ms_per_step"] / tandem["ms_per_step"]) if tandem and row is not tandem else ""
            yield (work if row is of_work[0] else "", row["engine"], number(row["ms_per_step"]), "-".join(map(number, row["middle_half_ms"])),
                   number(row["best_ms"]), times, number(row["peak_mib"]), first_step(row), f"{row['loss']:.4f}")
        if tandem:
            yield ("", "floor", number(tandem["floor_ms"]), "", "", number(tandem["floor_ms"] / tandem["ms_per_step"]), "", "", "")


def ratios(rows):
    """For each work how Tandem stands against the best of the others and against the floor."""
    for work in dict.fromkeys(row["work"] for row in rows):
        of_work = {row["engine"]: row for row in rows if row["work"] == work}
        tandem = of_work.pop("tandem", None)
        if not tandem:
            continue
        text = f"{work}: {number(tandem['ms_per_step'])} ms"
        if of_work:
            best = min(of_work.values(), key=lambda row: row["ms_per_step"])
            text += f", {tandem['ms_per_step'] / best['ms_per_step']:.2f} x the time of the best peer ({best['engine']}, {number(best['ms_per_step'])} ms)"
        yield text + f", {tandem['ms_per_step'] / tandem['floor_ms']:.1f} x the floor"


def machine_text(machine):
    return (f"{cpu_model()}, {machine['threads']} threads: {machine['fma_gflops']:.0f} GFLOP/s of multiply-adds, "
            f"{machine['gemm_gflops']:.0f} in the best matrix product, {memory_rate(machine, 1024) / 1e9:.0f} GB/s of memory; "
            f"load {os.getloadavg()[0]:.1f}")


def aligned(table, words):
    """A table's lines for people; the first `words` columns are words, the others numbers."""
    widths = [max(map(len, column)) for column in zip(*table)]
    return ["  ".join(cell.ljust(w) if i < words else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))) for line in table]


def piped(table, words):
    """The same in Markdown; the first line is the header."""
    header, *rest = table
    return ["| " + " | ".join(line) + " |" for line in (header, ["---"] * words + ["---:"] * (len(header) - words), *rest)]


def text(rows, machine):
    return "\n".join([machine_text(machine), "", *aligned([HEADER, *lines(rows)], 2), "", *ratios(rows)])


def busy_table(rows):
    """Throughput beside another program, and what that program left of the machine."""
    yield "work", "alone ms/step", "beside it", "throughput left", "machine left"
    for row in rows:
        yield (row["work"], number(row["alone_ms"]), number(row["busy_ms"]), f"{row['left']:.2f}", f"{1 - row['share']:.2f}")


def busy_text(rows):
    return ["Beside a program that keeps one core busy:", "", *aligned(list(busy_table(rows)), 1)]


def markdown(rows, machine, command, busy_rows=()):
    versions = {name: version for row in rows for name, version in row["versions"].items()}
    busy = [] if not busy_rows else [
        "## Beside a program that keeps one core busy", "", *piped(list(busy_table(busy_rows)), 1), "",
        "Medians of passes alone and beside it, in turn. What is left of the machine is what the other program did not use of all cores while",
        "Tandem ran beside it; the kernel's scheduler decides that.", ""]
    return "\n".join([
        "# Performance", "",
        "Six models, trained by Tandem's C++ front-end and by Keras on other engines, in one run that alternates between them.", "",
        f"Written by `{command}` on {datetime.date.today().isoformat()}.", "",
        f"- Machine: {machine_text(machine)}",
        f"- Versions: {', '.join(f'{name} {version}' for name, version in sorted(versions.items())) or 'no other engine'}; {platform.system()} {platform.release()}",
        "", *piped([HEADER, *lines(rows)], 2), "",
        *[f"- {line}" for line in ratios(rows)], "",
        "How to read it: each engine has a process of its own for each work, and they take turns, a pass over the data each. `ms/step` is the",
        "median pass, between the middle half and the best one it is seen how steady the machine was, and `x tandem` is that engine's median",
        "over Tandem's. The first step includes tracing and compiling; in brackets with a warm cache of kernels on disk. The floor",
        "is the arithmetic of the step's products at the cores' peak, plus Adam's memory traffic, both at speeds that were measured on the spot.",
        "Keras runs `fit` and shuffles the rows, as is its default; Tandem's program takes consecutive rows and copies none. Only the epoch counts,",
        "not what `fit` does around it: on TensorFlow it often goes on for seconds after an epoch of two or three. The",
        "losses differ by the random weights; `./dev bench --check` compares them from equal ones.", "", *busy])
