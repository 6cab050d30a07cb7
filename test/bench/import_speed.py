#!/usr/bin/env python3
"""How fast and small models are imported: the 126 layers of Llama-3.1-405B
from config.json and from a .pt2, to the model phase as MLIR.

  import_speed.py [--build-dir DIR] [--repeat N] [--pt2 FILE] [--peer]

Whole processes, median of N, least CPU time. Without --pt2 tools/export-model writes the
program first (on meta tensors). --peer also times torch.export.load of the
same file, without torch's own import. Exit code 1 if CPU time, which other
processes leave alone, misses its bound: 0.3 s from config.json, 3 s from the
.pt2; or 500 MB of either.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(BENCH))
PARITY = os.path.join(ROOT, "test", "parity")
sys.path[:0] = [BENCH, PARITY]
import jobs  # noqa: E402
from plan_speed import measure  # noqa: E402

NAME = "llama-3.1-405b"
MOST_BYTES = 500e6
LOAD = """
import resource, sys, time
import torch
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start, cpu = time.perf_counter(), time.process_time()
program = torch.export.load(sys.argv[1])
print(time.perf_counter() - start, time.process_time() - cpu,
      len(program.graph.nodes),
      (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--pt2", metavar="FILE")
    parser.add_argument("--peer", action="store_true")
    args = parser.parse_args()
    binary = os.path.join(args.build_dir, "bin", "accel-opt")
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(PARITY, "configs", NAME)
        program = args.pt2 or os.path.join(folder, NAME + ".pt2")
        if not args.pt2:
            subprocess.run([os.path.join(ROOT, "tools", "export-model"),
                            config, "-o", program, "--dynamic"], check=True)
        job = jobs.write_job(folder, jobs.accelerate_config(
            "fsdp", 8, "LlamaDecoderLayer", precision="bf16"), "job.yaml")
        print("| import of | seconds | CPU seconds | peak RSS, MB | bound |\n"
              "|---|---|---|---|---|")
        for what, model, bound in (("config.json", config, 0.3),
                                   ("the .pt2", program, 3.0)):
            seconds, rss = measure(
                [binary, "plan", job, "--model", model, "--seq-len", "4096",
                 "--compile-to", "model", "-o",
                 os.path.join(folder, "model.mlir")], args.repeat)
            median = statistics.median(seconds)
            late = measure.cpu >= bound or rss >= MOST_BYTES
            missed |= late
            print(f"| {what} | {median:.3f} | {measure.cpu:.3f} | "
                  f"{rss / 1e6:.0f} | {bound} s, {MOST_BYTES / 1e6:.0f} MB"
                  f"{': OVER' if late else ''} |", flush=True)
        if args.peer:
            out = subprocess.run([sys.executable, "-c", LOAD, program],
                                 check=True, capture_output=True, text=True)
            wall, cpu, nodes, more = map(float, out.stdout.split())
            print(f"| torch.export.load of it ({nodes:.0f} nodes) | {wall:.3f}"
                  f" | {cpu:.3f} | {more / 1e6:.0f} more | |")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
