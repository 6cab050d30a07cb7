"""How fast and small accel-opt plans: the figures that the design promises.

  plan_speed.py [--build-dir DIR] [--repeat N]

Whole processes, best and median of N: start-up, Llama-3.1-8B on 8 ranks,
Llama-3.1-405B on 16,384 ranks, each with its recommendations; the joint search
over every knob for Llama-2-7B on 8 ranks and for the 405B; the largest
micro-batch. Exit code 1 if a median misses its bound.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(BENCH))
PARITY = os.path.join(ROOT, "test", "parity")
sys.path[:0] = [BENCH, PARITY]
import jobs  # noqa: E402


def measure(command, repeat):
    """([seconds], highest peak RSS in bytes); the first run is not counted.
    Least seconds of CPU are in `measure.cpu`: what another load leaves alone."""
    seconds, rss, measure.cpu = [], 0, float("inf")
    for i in range(repeat + 1):
        start = time.perf_counter()
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
        _, status, usage = os.wait4(pid, 0)
        spent = time.perf_counter() - start
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, 2):  # 2: planned, does not fit
            raise SystemExit(f"{' '.join(command)}: exit code {code}")
        if i:
            seconds.append(spent)
            measure.cpu = min(measure.cpu, usage.ru_utime + usage.ru_stime)
        rss = max(rss, usage.ru_maxrss * 1024)
    return seconds, rss


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--repeat", type=int, default=10)
    args = parser.parse_args()
    binary = os.path.join(args.build_dir, "bin", "accel-opt")
    missed = []

    def row(name, text, value, bound):
        ok = value < bound
        if not ok:
            missed.append(name)
        print(f"{name:44}{text:>32}   {'' if ok else 'OVER THE BOUND'}",
              flush=True)

    with tempfile.TemporaryDirectory() as folder:
        seconds, _ = measure([binary, "--version"], args.repeat)
        median = statistics.median(seconds)
        row("start-up (--version), bound 10 ms",
            f"{median * 1e3:.1f} ms (best {min(seconds) * 1e3:.1f})",
            median, 0.010)
        for name, ranks, bound, memory in (("llama-3.1-8b", 8, 0.05, None),
                                           ("llama-3.1-405b", 16384, 0.5,
                                            500e6)):
            config = jobs.accelerate_config("fsdp", ranks, "LlamaDecoderLayer",
                                            precision="bf16")
            config["num_machines"] = max(1, ranks // 8)
            path = jobs.write_job(folder, config, name + ".yaml")
            plan = os.path.join(folder, name + ".json")
            command = [binary, "plan", path, "--model",
                       os.path.join(PARITY, "configs", name), "--target",
                       "h100-sxm-80gb", "--emit", "plan", "-o", plan]
            seconds, rss = measure(command, args.repeat)
            median = statistics.median(seconds)
            row(f"{name} on {ranks} ranks, bound {bound * 1e3:.0f} ms",
                f"{median * 1e3:.0f} ms (best {min(seconds) * 1e3:.0f}, "
                f"CPU {measure.cpu * 1e3:.0f})",
                median, bound)
            limit = memory or 500e6
            row(f"{name} peak RSS, bound {limit / 1e6:.0f} MB",
                f"{rss / 1e6:.0f} MB", rss, limit)
            size = os.path.getsize(plan)
            row(f"{name} plan.json, bound 2 MB", f"{size / 1e6:.2f} MB",
                size, 2e6)
        for name, ranks, options in (
                ("llama-2-7b", 8, ["--tune=all", "--global-batch", "64"]),
                ("llama-3.1-405b", 16384, ["--tune=all", "--seq-len", "8192"]),
                ("llama-3.1-8b", 8, ["--max-batch"])):
            config = jobs.accelerate_config("fsdp", ranks, "LlamaDecoderLayer",
                                            precision="bf16")
            config["num_machines"] = max(1, ranks // 8)
            path = jobs.write_job(folder, config, name + ".tune.yaml")
            command = [binary, "plan", path, "--model",
                       os.path.join(PARITY, "configs", name), "--target",
                       "h100-sxm-80gb", *options]
            seconds, rss = measure(command, args.repeat)
            median = statistics.median(seconds)
            row(f"{name} on {ranks} {options[0]}, bound 1 s",
                f"{median * 1e3:.0f} ms (best {min(seconds) * 1e3:.0f}, "
                f"CPU {measure.cpu * 1e3:.0f})",
                median, 1.0)
            row(f"{name} {options[0]} peak RSS, bound 500 MB",
                f"{rss / 1e6:.0f} MB", rss, 500e6)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
