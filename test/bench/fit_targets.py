#!/usr/bin/env python3
"""Fits the few constants of a device to measured runs, and cross-validates.

  test/bench/fit_targets.py                 every device, each family left out
  test/bench/fit_targets.py --device a100   one of them

For each device four constants are fitted by damped least squares on the
logarithms of predicted over measured tokens/s: the matrix products' efficiency
and half depth, the attention's efficiency (its backward has a fixed share of
it) and the memory's efficiency (reductions have a fixed share). Weak priors
stand for the datasheets and kernels' own figures, so that few runs suffice.
Each family of runs is then left out in turn, the rest fitted, and the family
predicted: that is what the constants are worth on runs nobody has seen. The
target files are not changed; the fitted values are printed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "passes/Targets/data")
BACKWARD, REDUCTION = 0.85, 0.8  # of forward attention, of other operators

# Targets that share constants, and where the search for them starts.
DEVICES = {
    "a100": (["a100-40gb", "a100-80gb"], [0.80, 200.0, 0.68, 0.75]),
    "h100": (["h100-sxm-80gb"], [0.70, 200.0, 0.40, 0.70]),
    "h100-500w": (["h100-sxm-96gb"], [0.62, 200.0, 0.36, 0.75]),
}
NAMES = ["matmul_efficiency", "matmul_half_depth", "attention_efficiency",
         "bandwidth_efficiency"]
PRIOR = np.array([0.15, 0.7, 0.15, 0.3])  # standard deviations of logarithms
NOISE = 0.05  # of a run: deviations beyond it count less


def replaced(text, path, value):
    """The file with the figure at the dotted `path` set to `value`."""
    lines, at = text.split("\n"), 0
    keys = path.split(".")
    for depth, key in enumerate(keys):
        while not lines[at].startswith("  " * depth + key + ":"):
            at += 1
        at += 1
    at -= 1
    if lines[at].strip() == keys[-1] + ":":
        while not lines[at].strip().startswith("value:"):
            at += 1
    lines[at] = re.sub(r": .*", f": {value:.6g}", lines[at], count=1)
    return "\n".join(lines)


class Model:
    """Predictions of one device's rows as a function of its constants."""

    def __init__(self, tool, runs, targets):
        self.tool, self.runs, self.targets = tool, runs, targets
        self.folder = tempfile.TemporaryDirectory()

    def rows(self, constants):
        product, depth, attention, memory = constants
        figures = {
            "memory.bandwidth_efficiency": memory,
            "memory.reduction_efficiency": REDUCTION * memory,
        }
        for dtype in ("bf16", "f16"):
            base = f"compute.{dtype}."
            figures[base + "matmul_efficiency"] = product
            figures[base + "matmul_half_depth"] = depth
            figures[base + "attention_efficiency"] = attention
            figures[base + "attention_backward_efficiency"] = BACKWARD * attention
        for name in self.targets:
            with open(f"{DATA}/{name}.yaml", encoding="utf-8") as file:
                text = file.read()
            for path, value in figures.items():
                text = replaced(text, path, min(value, 1.0)
                                if "depth" not in path else value)
            with open(f"{self.folder.name}/{name}.yaml", "w",
                      encoding="utf-8") as file:
                file.write(text)
        out = subprocess.run(
            [self.tool, "validate", self.runs, "--format", "json", "--targets",
             self.folder.name], capture_output=True, text=True, check=True)
        return {row["id"]: row for row in json.loads(out.stdout)["rows"]
                if row["target"] in self.targets
                and row["tokens_per_s_error"] is not None}


def fit(model, prior, ids):
    """Damped least squares in the logarithms of the constants."""
    def residuals(x):
        rows = model.rows(np.exp(x))
        errors = np.array([np.log1p(rows[i]["tokens_per_s_error"])
                           for i in ids]) / NOISE
        # Huber's weights by their square roots.
        weights = np.minimum(1, np.sqrt(2 / np.maximum(np.abs(errors), 1e-9)))
        return np.concatenate([errors * weights, (x - np.log(prior)) / PRIOR])

    x, damping = np.log(prior), 1e-2
    now = residuals(x)
    for _ in range(12):
        slope = np.stack([(residuals(x + step) - now) / 0.02
                          for step in 0.02 * np.eye(len(x))], axis=1)
        square = slope.T @ slope
        while True:
            step = np.linalg.solve(
                square + damping * np.diag(np.diag(square)), -slope.T @ now)
            step = np.clip(step, -0.5, 0.5)
            new = residuals(x + step)
            if new @ new < now @ now or damping > 1e4:
                break
            damping *= 10
        gained = now @ now - new @ new
        if gained > 0:
            x, now, damping = x + step, new, damping / 10
        if gained < 1e-3 * (now @ now):
            break
    return np.exp(x)


def summary(rows, ids):
    errors = np.abs([rows[i]["tokens_per_s_error"] for i in ids])
    return (f"{len(ids):4d} rows  mean {errors.mean():6.1%}  median "
            f"{np.median(errors):6.1%}  max {errors.max():6.1%}")


def families_of(rows):
    """By family, those of several targets apart: each is left out by itself."""
    groups = {}
    for name, row in rows.items():
        groups.setdefault(f'{row["family"]} on {row["target"]}', []).append(name)
    return groups


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accel-opt", default=f"{ROOT}/build/bin/accel-opt")
    parser.add_argument("--runs",
                        default=f"{ROOT}/test/bench/Inputs/measured_runs.csv")
    parser.add_argument("--device", choices=DEVICES, action="append")
    options = parser.parse_args()
    for device in options.device or DEVICES:
        targets, prior = DEVICES[device]
        model = Model(options.accel_opt, options.runs, targets)
        every = model.rows(prior)
        groups = families_of(every)
        print(f"{device}: {len(every)} runs")
        fitted = fit(model, prior, sorted(every))
        print("  all          ", "  ".join(
            f"{name} {value:.4g}" for name, value in zip(NAMES, fitted)))
        print("  in sample    ", summary(model.rows(fitted), sorted(every)))
        for group, ids in groups.items():
            rest = sorted(set(every) - set(ids))
            constants = fit(model, prior, rest) if rest else np.array(prior)
            print(f"  without {group:24s}", summary(model.rows(constants), ids),
                  " ", " ".join(f"{value:.3g}" for value in constants),
                  flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
