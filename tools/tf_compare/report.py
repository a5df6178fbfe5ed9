"""What was found: on the terminal, and docs/tf_differences.md."""
import collections
import os
import re
import subprocess

from compare import FAILURES, NO_FAILURES
from known import reason
from processes import ROOT, environment
from tolerances import TABLE

HEAD = """# Where numbers differ from TensorFlow's

Written by `./dev tf-compare`: seeded random shapes, types and arguments, the same for TensorFlow 2.21 and for Tandem, each in a process of its
own. Values, element types, shapes and gradients (of a weighted sum of the results) are compared, and whether there is an error at all.
"""


def report(cases, theirs, found, options, python, whole):
    bad = [(c, d) for c, d in zip(cases, found) if d and d[0] not in NO_FAILURES]
    for c, d in bad[: options.show]:
        print(f"{d[0]}: {c['code']}  {[describe(v) for v in c['x']]}\n    {d[1]}")
    kinds = collections.Counter(d[0] for _, d in bad)
    errors = sum(1 for t in theirs if t and t["value"][0] == "error")
    functions = len({c["function"] for c in cases})
    summary = f"{len(cases) - len(bad)} of {len(cases)} cases of {functions} functions agree ({100 - 100 * len(bad) / len(cases):.1f} %)"
    print(f"{summary}; {errors} are errors in TensorFlow; differences: {', '.join(f'{k} {kinds[k]}' for k in FAILURES if kinds[k]) or 'none'}")
    if whole or options.write:
        write(cases, found, bad, summary, errors, kinds, python, options)
    return len(bad)


def describe(x):
    return f"{x.dtype}{list(x.shape)}" if hasattr(x, "shape") else x.kind


def write(cases, found, bad, summary, errors, kinds, python, options):
    modules = collections.defaultdict(lambda: [0, collections.Counter()])
    for case, difference in zip(cases, found):
        row = modules[module_of(case["function"])]
        row[0] += 1
        if difference and difference[0] not in NO_FAILURES:
            row[1][difference[0]] += 1
    lines = [HEAD, f"{summary} (seed {options.seed}, {options.rounds} rounds). In {errors} of them TensorFlow gives an error.", ""]
    lines += ["| module | cases | agree | " + " | ".join(FAILURES) + " |", "|---|---|---|" + "---|" * len(FAILURES)]
    for module, (count, counter) in sorted(modules.items()):
        lines.append(f"| `{module}` | {count} | {count - counter.total()} | " + " | ".join(str(counter[k] or "") for k in FAILURES) + " |")
    free = collections.Counter(d[0] for d in found if d and d[0] in NO_FAILURES)
    lines += ["", "`fails`: TensorFlow gives a result and Tandem an error. `accepts`: the other way round. `ended`: the process ended or took too long.",
              f"Not counted as differences: {free['wider']} cases of a type for which TensorFlow has no kernel on a CPU, and {free['denormal']} of denormal arguments, which TensorFlow takes for 0.",
              "Random numbers are compared by shape, type, limits and mean. TensorFlow promises the same bits for a seed on its own devices within one version; Tandem's generator is",
              "another one, with the same bits on every machine and at any number of threads ([python.md](python.md)).", ""]  # fmt: skip
    lines += ["## Functions that differ", "", "| function | kind | cases | types | first difference | reason |", "|---|---|---|---|---|---|"]
    groups = collections.defaultdict(list)
    for case, difference in bad:
        groups[case["function"], difference[0]].append((case, difference))
    for (function, kind), rows in sorted(groups.items()):
        types = collections.Counter(str(v.dtype) for c, _ in rows for v in c["x"][:1] if hasattr(v, "dtype"))
        lines.append(f"| `{function}` | {kind} | {len(rows)} | {' '.join(types)} | {clean(rows[0][1][1])} | {reason(function, kind, rows[0][1][1])} |")
    lines += ["", "## Tolerances", "", "In units in the last place of the result's type: of the element itself, or of the largest number in the result. The last row that matches holds.", ""]
    lines += ["| functions | values | of | gradients | reason |", "|---|---|---|---|---|"]
    lines += [f"| `{row.pattern.replace('|', chr(92) + '|')}` | {row.value} | {row.scale} | {row.gradient} | {row.reason} |" for row in TABLE]
    missing = uncovered(cases, python)
    lines += ["", "## Functions without a case", "", f"{len(missing)} public functions, by module. Most of them give no tensors: settings, files, graphs, devices.", ""]
    by_module = collections.defaultdict(list)
    for name in missing:
        by_module[module_of(name)].append(f"`{name.rsplit('.', 1)[1]}`")
    lines += [f"- `{module}`: {', '.join(names)}" for module, names in sorted(by_module.items())]
    (ROOT / "docs" / "tf_differences.md").write_text("\n".join(lines) + "\n")


def module_of(function):
    parts = function.split(" ")[0].split("[")[0].split(".")
    return ".".join(parts[:-1]) if len(parts) > 2 else "tf"


def clean(text):
    text = re.sub(r"\{\{.*?\}\} ?| at \w+\.py:\d+|\[Op:\w+\] ?|name: ", "", " ".join(text.split()))
    return text.replace("|", "\\|")[:150].replace("<", "&lt;")


WALK = """
import os, sys; os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import inspect, tensorflow as tf
for name in sys.stdin.read().split():
    found = tf
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    print(name, id(found) if callable(found) and not inspect.isclass(found) else 0)
"""


def uncovered(cases, python):
    """Public functions that are there and have no case, nor has another name of the same function."""
    import tandem as tf
    from tf_coverage import SKIP, WALK as NAMES, has

    started = dict(capture_output=True, text=True, check=True, env=environment("tensorflow"))
    names = subprocess.run([str(python), "-c", f"SKIP = {SKIP!r}\n{NAMES}"], **started).stdout
    identity = dict(line.split() for line in subprocess.run([str(python), "-c", WALK], input=names, **started).stdout.splitlines())
    tested = {c["function"] for c in cases}
    tested |= {name for c in cases for name in re.findall(r"tf(?:\.\w+)+(?=\()", c["code"])}
    used = {identity[n] for n in identity if n in tested}
    os.environ.setdefault("KERAS_BACKEND", "tandem")
    return [n for n in names.split() if identity.get(n, "0") != "0" and identity[n] not in used and has(tf, n)]
