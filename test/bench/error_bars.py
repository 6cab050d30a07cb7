#!/usr/bin/env python3
"""Error bars of predictions, from the residuals of published runs.

    test/bench/error_bars.py --accel-opt build/bin/accel-opt \\
        -o passes/Cost/data/error_bars.json TABLE.csv [TABLE.csv ...]

A residual is log(measured / predicted). A kind is what is trained: full,
adapter, quantised (an adapter over a quantised base), fp8. The bars of a kind
are quantiles of rows in which each family weighs the same, however many rows it
has: 1 for its rows of that kind, OTHER_KINDS for the rest, and a family of
fewer than LEAST_ROWS less. Each family is left out in turn; the quantiles of the
others are scaled by one factor for the kind, the nearest to 1 with which they
hold HELD of the rows that were left out between the 5th and the 95th. Where
nothing of a plan's kind, framework or device was measured, or no factor holds
LEAST_HELD, the bars are those of the family that is worst; so are those of
seconds where a micro-batch has fewer than LEAST_TOKENS, of which one family
tells: launches on the CPU decide there.
"""
import argparse
import json
import math
import re
import subprocess

LEVELS = [0.005, 0.01, 0.025] + [i / 20 for i in range(1, 20)] + [
    0.975, 0.99, 0.995]
HELD = 0.88, 0.93  # the share of 90 % bars, as near as rows can tell
LEAST_HELD = 0.85
LEAST_TOKENS = {"bytes": 0, "seconds": 2048}
LEAST_ROWS = 3  # of a family, and of a kind in each of two families
OTHER_KINDS = 0.25
FACTORS = sorted((1.02**i for i in range(-35, 36)),
                 key=lambda f: abs(math.log(f)))


def residuals(rows):
    """By figure: family, kind, framework, target, residual, tokens of a row."""
    figures = {"bytes": [], "seconds": []}
    for row in rows:
        # Another model and other kernels, which say nothing of Accelerate's jobs:
        # a plan for Megatron gets the bars of the worst family.
        if row["executor"] == "megatron":
            continue
        for figure, error, sign in (("bytes", row["memory_error"], -1),
                                    ("seconds", row["tokens_per_s_error"], 1)):
            if error is not None and error > -1:
                figures[figure].append(
                    (row["family"], row["kind"], row["executor"],
                     row["target"], sign * math.log1p(error),
                     row["tokens"]))
    counts = {name: [row[0] for row in found]
              for name, found in figures.items()}
    return {name: [row for row in found
                   if counts[name].count(row[0]) >= LEAST_ROWS]
            for name, found in figures.items()}


def weighed(rows, kind, left_out=None):
    """(residual, weight) of the rows of all families but one."""
    groups = {}
    for family, own, _, _, value, _ in rows:
        if family != left_out:
            groups.setdefault((family, own == kind), []).append(value)
    return sorted((value, (1 if same else OTHER_KINDS) /
                   max(len(values), LEAST_ROWS))
                  for (_, same), values in groups.items() for value in values)


def quantile(pairs, level):
    total = sum(weight for _, weight in pairs)
    reached = 0.0
    for value, weight in pairs:
        reached += weight
        if reached >= level * total - 1e-12:
            return value
    return pairs[-1][0]


def held(rows, kind, factor):
    """By family: how many of its rows of the kind, left out, the bars hold."""
    result = {}
    for left in sorted({row[0] for row in rows if row[1] == kind}):
        others = weighed(rows, kind, left)
        low, high = (quantile(others, level) * factor for level in (0.05, 0.95))
        values = [row[4] for row in rows if row[:2] == (left, kind)]
        result[left] = (sum(low <= v <= high for v in values), len(values))
    return result


def share(counts):
    return (sum(inside for inside, _ in counts.values()) /
            sum(rows for _, rows in counts.values()))


def bars_of(rows, kind):
    def outside(factor):
        part = share(held(rows, kind, factor))
        return max(0, HELD[0] - part, part - HELD[1])

    factor = min(FACTORS, key=outside)  # of equal ones the nearest to 1
    counts = held(rows, kind, factor)
    pairs = weighed(rows, kind)
    return {
        "rows": sum(rows for _, rows in counts.values()),
        "held_when_left_out": round(share(counts), 3),
        "families": {family: {"rows": rows, "held": inside}
                     for family, (inside, rows) in counts.items()},
        "factor": round(factor, 3),
        "log_ratio": [round(quantile(pairs, level) * factor, 4)
                      for level in LEVELS],
    }


def figure_of(all_rows, least_tokens):
    rows = [row for row in all_rows if row[5] >= least_tokens]
    kinds = {}
    for kind in sorted({row[1] for row in rows}):
        families = [row[0] for row in rows if row[1] == kind]
        enough = [f for f in set(families) if families.count(f) >= LEAST_ROWS]
        bars = bars_of(rows, kind) if len(enough) >= 2 else None
        if bars and bars["held_when_left_out"] >= LEAST_HELD:
            kinds[kind] = bars
    by_family = {}
    for row in all_rows:
        by_family.setdefault(row[0], []).append((row[4], 1))
    worst = sorted(max(by_family.values(), key=lambda pairs: max(
        abs(quantile(sorted(pairs), level)) for level in (0.05, 0.95))))
    elsewhere = []
    for i, level in enumerate(LEVELS):
        widest = min if level < 0.5 else max
        elsewhere.append(round(widest(
            [quantile(worst, level)] +
            [bars["log_ratio"][i] for bars in kinds.values()]), 4))
    counts = {}
    for bars in kinds.values():
        for family, part in bars["families"].items():
            inside, total = counts.get(family, (0, 0))
            counts[family] = inside + part["held"], total + part["rows"]
    return {
        "held_when_left_out": round(share(counts), 3),
        "least_tokens": least_tokens,
        "frameworks": sorted({row[2] for row in rows}),
        "targets": sorted({row[3] for row in rows}),
        "kinds": kinds,
        "log_ratio_elsewhere": elsewhere,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--accel-opt", required=True)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("tables", nargs="+", metavar="TABLE.csv")
    options = parser.parse_args()
    rows = []
    for table in options.tables:
        answer = subprocess.run(
            [options.accel_opt, "validate", table, "--format", "json"],
            capture_output=True, text=True, check=True)
        rows += [row for row in json.loads(answer.stdout)["rows"]
                 if not row["skipped"]]
    figures = {name: figure_of(found, LEAST_TOKENS[name])
               for name, found in residuals(rows).items()}
    with open(options.output, "w", encoding="utf-8") as out:
        text = json.dumps({"levels": LEVELS, **figures}, indent=1)
        # A list on one line.
        out.write(re.sub(r"\[[^\[\]]*\]", lambda found: " ".join(
            found.group().split()), text) + "\n")
    low, high = LEVELS.index(0.05), LEVELS.index(0.95)
    for name, figure in figures.items():
        print(f"{name}: {figure['held_when_left_out']:.1%} of all rows")
        for kind, bars in figure["kinds"].items():
            ends = (math.expm1(bars["log_ratio"][end]) for end in (low, high))
            print(f"  {kind}: {bars['held_when_left_out']:.1%} of "
                  f"{bars['rows']} rows, factor {bars['factor']}, bars "
                  + " to ".join(f"{end:+.1%}" for end in ends), {
                      family: f"{part['held']} of {part['rows']}"
                      for family, part in bars["families"].items()})


if __name__ == "__main__":
    main()
