#!/usr/bin/env python3
"""Milliseconds of `accel-opt lint FILE`, the whole process, for usual files.

    python test/bench/lint_speed.py [--build-dir build] [--runs 200]

Prints a Markdown table: median and 95th percentile of wall time, median CPU
time, peak resident set. The goal is a median below 10 ms.
"""
import argparse
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
INPUTS = os.path.join(ROOT, "test", "Frontends", "Inputs", "accelerate")
CASES = [
    ("fsdp.yaml, clean", [os.path.join(INPUTS, "fsdp.yaml")]),
    ("invalid_keys.yaml, 2 errors", [os.path.join(INPUTS,
                                                  "invalid_keys.yaml")]),
    ("mistakes.yaml, 9 findings", [os.path.join(
        ROOT, "test", "Lint", "Inputs", "mistakes.yaml")]),
    ("the same with --fix=diff", [os.path.join(
        ROOT, "test", "Lint", "Inputs", "mistakes.yaml"), "--fix=diff"]),
    ("the same as JSON", [os.path.join(
        ROOT, "test", "Lint", "Inputs", "mistakes.yaml"), "--format", "json"]),
    ("--version (start-up alone)", None),
]


def once(command, sink):
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, sink, 1), (os.POSIX_SPAWN_DUP2, sink, 2)])
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        sys.exit(f"{' '.join(command)}: exit code {code}")
    return wall * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3, usage.ru_maxrss


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--runs", type=int, default=200)
    args = parser.parse_args()
    binary = os.path.join(args.build_dir, "bin", "accel-opt")
    print("| `accel-opt lint` of | median ms | 95 % ms | CPU ms | RSS MiB |\n"
          "|---|---|---|---|---|")
    slow = False
    with open(os.devnull, "wb") as sink:
        for name, arguments in CASES:
            command = [binary, "lint", *arguments] if arguments else \
                [binary, "--version"]
            once(command, sink.fileno())  # the file cache
            runs = [once(command, sink.fileno()) for _ in range(args.runs)]
            wall = sorted(r[0] for r in runs)
            median = statistics.median(wall)
            slow |= median >= 10
            print(f"| {name} | {median:.1f} | "
                  f"{wall[int(len(wall) * 0.95)]:.1f} | "
                  f"{statistics.median(r[1] for r in runs):.1f} | "
                  f"{max(r[2] for r in runs) / 1024:.0f} |", flush=True)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
