"""How long training waits for a checkpoint that is written beside it.

  checkpoint_stall.py [--ranks 1 2] [--build-dir DIR] [--limit PERCENT]

accel-run trains a decoder whose parameters and AdamW states take about 1 GB
(all ranks together), one thread a rank, and writes a checkpoint every third
step. Printed are the wait of a checkpoint, as accel-run says it, and its share
of the median step; what a step takes beside the thread that writes is printed
too. With --limit the exit code is 1 where the share is above it.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(BENCH))
sys.path[:0] = [BENCH, os.path.join(ROOT, "test", "parity")]
import harness  # noqa: E402
import jobs  # noqa: E402

MODEL = jobs.variant(vocab_size=8192, hidden_size=768, intermediate_size=2048,
                     num_hidden_layers=12, num_attention_heads=12,
                     num_key_value_heads=6, max_position_embeddings=1024)
# The last step saves one more, and waits for what is on its way.
STEPS, EVERY, WARM = 12, 3, 1


def measure(ranks, build):
    folder = os.path.join(build, "bench", f"checkpoint-{ranks}")
    shutil.rmtree(folder, ignore_errors=True)
    job = jobs.make_job(folder, MODEL, ranks=ranks, steps=STEPS,
                        sequence_length=256, micro_batch=2, lr=1e-4,
                        checkpoint_every=EVERY)
    job["checkpoint"].update(background=True, keep=1)
    jobs.write_job(folder, job, "job.yaml")
    context = harness.Context(build, folder)
    plan = os.path.join(folder, "plan.json")
    harness.plan(context, os.path.join(folder, "job.yaml"), plan)
    log = os.path.join(folder, "log.jsonl")
    text = subprocess.run(
        [context.binary("accel-run"), plan, "--nproc", str(ranks), "--log",
         log],
        env={**harness.clean_environment(), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, check=True, text=True).stdout
    count, wait = re.search(
        r"each of (\d+) checkpoints beside training held it up for ([\d.]+) ms",
        text).groups()
    with open(log, encoding="utf-8") as f:
        steps = [(r["step"], r["step_s"]) for r in map(json.loads, f)]
    beside = {EVERY * k + 1 for k in range(1, STEPS)}
    quiet = [s for n, s in steps if n > WARM and n not in beside]
    busy = [s for n, s in steps if n > WARM and n in beside]
    last = os.path.join(folder, "out", f"step-{STEPS:08d}")
    size = sum(os.path.getsize(os.path.join(last, name))
               for name in os.listdir(last))
    step, wait = statistics.median(quiet), float(wait) / 1e3
    share = wait / step
    print(f"{ranks} rank(s): {count} checkpoints of {size / 1e9:.2f} GB; a step "
          f"takes {step * 1e3:.0f} ms, beside a thread that writes "
          f"{statistics.median(busy) * 1e3:.0f} ms; a checkpoint holds training "
          f"up for {wait * 1e3:.1f} ms: {share:.2%} of a step", flush=True)
    shutil.rmtree(folder)
    return share


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--limit", type=float, metavar="PERCENT")
    args = parser.parse_args()
    shares = [measure(n, os.path.abspath(args.build_dir)) for n in args.ranks]
    return 1 if args.limit and max(shares) * 100 > args.limit else 0


if __name__ == "__main__":
    sys.exit(main())
