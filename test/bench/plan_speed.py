"""How fast and small accel-opt plans: the figures that the design promises.

  plan_speed.py [--build-dir DIR] [--repeat N]

Whole processes, best and median of N: start-up, Llama-3.1-8B on 8 ranks,
Llama-3.1-405B on 16,384 ranks, each with its recommendations; the first screen
of the 8B under each framework; the 405B with more layers; the joint search over
every knob for Llama-2-7B on 8 ranks and for the 405B; the largest micro-batch.
Exit code 1 if a median misses its bound.
"""
import argparse
import json
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
    Least seconds of CPU are in `measure.cpu`: what another load leaves alone;
    their median is in `measure.median_cpu`."""
    seconds, rss, cpu = [], 0, []
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
            cpu.append(usage.ru_utime + usage.ru_stime)
        rss = max(rss, usage.ru_maxrss * 1024)
    measure.cpu, measure.median_cpu = min(cpu), statistics.median(cpu)
    return seconds, rss


FRAMEWORKS = {  # files of `accelerate config`
    "fsdp1": "distributed_type: FSDP\nmixed_precision: bf16\n"
             "num_machines: 1\nnum_processes: 8\nfsdp_config:\n"
             "  fsdp_version: 1\n"
             "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
             "  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer\n"
             "  fsdp_sharding_strategy: FULL_SHARD\n",
    "ddp": "distributed_type: MULTI_GPU\nmixed_precision: bf16\n"
           "num_machines: 1\nnum_processes: 8\n",
    "deepspeed": "distributed_type: DEEPSPEED\nmixed_precision: bf16\n"
                 "num_machines: 1\nnum_processes: 8\ndeepspeed_config:\n"
                 "  zero_stage: 3\n  zero3_init_flag: true\n",
}


def with_layers(folder, layers):
    """A model directory: the 405B with so many layers."""
    source = os.path.join(PARITY, "configs", "llama-3.1-405b", "config.json")
    with open(source, encoding="utf-8") as f:
        config = json.load(f)
    config["num_hidden_layers"] = layers
    path = os.path.join(folder, f"405b-{layers}")
    os.mkdir(path)
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    return path


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
        fsdp2 = jobs.write_job(
            folder, jobs.accelerate_config("fsdp", 8, "LlamaDecoderLayer",
                                           precision="bf16"), "fsdp2.yaml")
        files = {"fsdp2": [fsdp2], "accel-run": [fsdp2, "--executor",
                                                 "accel-run"]}
        for name, text in FRAMEWORKS.items():
            files[name] = [os.path.join(folder, name + ".yaml")]
            with open(files[name][0], "w", encoding="utf-8") as f:
                f.write(text)
        for name, job in files.items():
            measure([binary, "plan", *job, "--model",
                     os.path.join(PARITY, "configs", "llama-3.1-8b"),
                     "--target", "h100-sxm-80gb"], args.repeat)
            row(f"llama-3.1-8b, {name}, bound 60 ms of CPU",
                f"CPU {measure.median_cpu * 1e3:.0f} ms "
                f"(best {measure.cpu * 1e3:.0f})", measure.cpu, 0.060)
        first = None
        for layers in (126, 512, 2048):
            measure([binary, "plan", fsdp2, "--model",
                     with_layers(folder, layers), "--target",
                     "h100-sxm-80gb"], min(args.repeat, 3))
            first = first or measure.cpu / layers
            row(f"405B of {layers} layers, bound linear",
                f"CPU {measure.cpu * 1e3:.0f} ms", measure.cpu,
                1.1 * first * layers)
        for name, ranks, bound, options in (
                ("llama-2-7b", 8, 0.5, ["--tune", "--global-batch", "64"]),
                ("llama-2-7b", 8, 1.0, ["--tune=all", "--global-batch", "64"]),
                ("llama-3.1-405b", 16384, 1.0,
                 ["--tune=all", "--seq-len", "8192"]),
                ("llama-3.1-405b", 16384, 2.0,
                 ["--tune=all", "--seq-len", "131072"]),
                ("llama-3.1-8b", 8, 1.0, ["--max-batch"])):
            config = jobs.accelerate_config("fsdp", ranks, "LlamaDecoderLayer",
                                            precision="bf16")
            config["num_machines"] = max(1, ranks // 8)
            path = jobs.write_job(folder, config, name + ".tune.yaml")
            command = [binary, "plan", path, "--model",
                       os.path.join(PARITY, "configs", name), "--target",
                       "h100-sxm-80gb", *options]
            seconds, rss = measure(command, args.repeat)
            median = statistics.median(seconds)
            row(f"{name} on {ranks} {' '.join(options)}, bound {bound:g} s",
                f"{median * 1e3:.0f} ms (best {min(seconds) * 1e3:.0f}, "
                f"CPU {measure.cpu * 1e3:.0f})",
                median, bound)
            row(f"{name} {options[0]} peak RSS, bound 500 MB",
                f"{rss / 1e6:.0f} MB", rss, 500e6)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
