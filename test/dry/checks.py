"""What is held of every run on GPUs that do not exist: the tools that plan and
run, and checks of their logs and reports, which raise Wrong."""
import functools
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess

import cases
import prefork

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# The step that is counted, in which memory has settled.
SETTLED = 3
# Both sides play the same events with the same seconds: what differs is order.
QUEUED_TOLERANCE = 1e-4


@functools.cache
def gpu_check():
    """tools/gpu-check as a module; it has no suffix."""
    loader = importlib.machinery.SourceFileLoader(
        "gpu_check", os.path.join(ROOT, "tools", "gpu-check"))
    spec = importlib.util.spec_from_loader("gpu_check", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Wrong(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Wrong(text)


class Tools:
    def __init__(self, build, runtime=None):
        self.build = os.path.abspath(build)
        self.bin = os.path.join(self.build, "bin")
        # Where accel-run and the stand-ins are.
        self.runtime = os.path.abspath(runtime or self.bin)
        self.work = os.path.join(self.build, "dry")
        self.is_pinned = self.runtime == self.bin
        # Plans are of the torch that runs them, which may keep workspaces.
        self.of_torch = [] if self.is_pinned else [
            "--torch-version", self.call(
                [os.path.join(self.runtime, "accel-run"), "--version"])
            .split("LibTorch ")[1].split()[0]]
        self.prefork = prefork.Prefork()

    def call(self, command, environment=None, timeout=300, expect=0):
        env = {k: v for k, v in os.environ.items()
               if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
        env.update(NO_COLOR="1", OMP_NUM_THREADS="1", **(environment or {}))
        try:
            done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=timeout,
                                  text=True, errors="replace")
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"").decode(errors="replace")
            raise Wrong(f"{' '.join(command)}\n{text[-3000:]}\nran longer than "
                        f"{timeout} s") from None
        check(done.returncode == expect,
              f"{' '.join(command)}\n{done.stdout[-3000:]}\nexit code "
              f"{done.returncode}")
        return done.stdout

    def plan(self, job, path, *extra):
        text = self.call([os.path.join(self.bin, "accel-opt"), "plan", job,
                          "--emit", "plan", "-o", path, *self.of_torch,
                          *extra], timeout=60)
        check(os.path.exists(path), text)
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def run(self, plan, ranks, log, *extra, environment=None):
        self.call([os.path.join(self.runtime, "accel-run"), plan, "--nproc",
                   str(ranks), "--log", log, *extra], environment)
        with open(log, encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def run_dry(self, plan, ranks, folder, *extra, module=None,
                environment=None, values=True):
        """The log and the reports of all ranks. `module`: a folder with an
        accel-run and its CUDA module other than the build's."""
        exchange = os.path.join("/dev/shm", f"accel-dry-{os.getpid()}-"
                                + os.path.basename(folder))
        os.makedirs(exchange, exist_ok=True)
        report = os.path.join(folder, "report")
        settings = {
            "LD_PRELOAD": os.path.join(self.runtime, "dry-gpu.so"),
            "LD_LIBRARY_PATH": os.path.join(self.runtime, "dry"),
            "DRY_REPORT": report, **({"DRY_COMPUTE": "1"} if values else {}),
            "DRY_EXCHANGE": exchange, "DRY_TRACE": str(SETTLED),
            **(environment or {})}
        log = os.path.join(folder, "gpu.jsonl")
        trains = "--fit" not in extra
        try:
            text = self.call(
                [os.path.join(module or self.runtime, "accel-run"), plan,
                 "--nproc", str(ranks), *(["--log", log] if trains else []),
                 *extra], settings)
        finally:
            shutil.rmtree(exchange, ignore_errors=True)
        with open(os.path.join(folder, "text"), "w", encoding="utf-8") as f:
            f.write(text)
        records = []
        if trains:
            with open(log, encoding="utf-8") as f:
                records = [json.loads(line) for line in f]
        reports = []
        for rank in range(ranks):
            with open(f"{report}.{rank}", encoding="utf-8") as f:
                reports.append(json.load(f))
        return records, reports


def relative(a, b):
    return abs(a - b) / max(abs(a), abs(b), 1e-30)


def same_values(got, want, tolerance):
    check(len(got) == len(want), f"{len(got)} steps, not {len(want)}")
    worst = 0.0
    for a, b in zip(got, want):
        for key in ("loss", "grad_norm"):
            if a.get(key) is None and b.get(key) is None:
                continue
            check(a.get(key) is not None and b.get(key) is not None,
                  f"{key} at step {a['step']}: {a.get(key)}, on CPUs "
                  f"{b.get(key)}")
            # A norm is a sum over all gradients: rounding adds up.
            allowed = tolerance * (1 if key == "loss" else 10)
            difference = relative(a[key], b[key])
            worst = max(worst, difference) if key == "loss" else worst
            check(difference <= allowed,
                  f"{key} at step {a['step']}: {a[key]!r}, on CPUs {b[key]!r} "
                  f"(relative difference {difference:.2e}, allowed "
                  f"{allowed:g})")
        check(a.get("skipped") == b.get("skipped"),
              f"step {a['step']}: skipped on one side only")
    return worst


def in_order(reports):
    for rank, report in enumerate(reports):
        check(report["race_count"] == 0,
              f"rank {rank}: {report['race_count']} races\n" + "\n".join(
                  f"{n} x {text}" for text, n in report["races"].items()))
        check(not report["warnings"], f"rank {rank}: {report['warnings']}")
        check(report["contexts"] == [rank],
              f"rank {rank} makes contexts on devices {report['contexts']}")
        check(not report["counts"].get("on the default stream"),
              f"rank {rank} works on the default stream")
        check(not any(step.get("communicators") for step in report["steps"]),
              f"rank {rank} connects a communicator within a step, when torch's "
              "allocator may have left no memory for it")
    same_collectives(reports)


def collectives_of(report):
    """What a rank runs by each of its communicators, without the streams'
    names, by the name that all ranks of the communicator have for it."""
    result = {shared: [] for shared in report["communicators"]}
    for line in report["collectives"]:
        own, what = line.split(" on ")[0].split(": ", 1)
        number = int(own.removeprefix("communicator "))
        result[report["communicators"][number]].append(what)
    return result


def same_collectives(reports):
    """All ranks of a communicator run the same by it. Messages are as long as
    what a rank has for another; each that is sent is received."""
    ranks = [collectives_of(report) for report in reports]
    for shared in dict.fromkeys(name for each in ranks for name in each):
        lines = {rank: each[shared] for rank, each in enumerate(ranks)
                 if shared in each}
        place = f"the communicator of ranks {list(lines)}:"
        sent, received = (
            sorted(line.split(name)[1] for each in lines.values()
                   for line in each if name in line)
            for name in ("ncclSend", "ncclRecv"))
        check(sent == received, f"{place} what is sent is not what is received")
        (first, expected), *others = [
            (rank, [line for line in each
                    if "ncclSend" not in line and "ncclRecv" not in line])
            for rank, each in lines.items()]
        for rank, other in others:
            check(other == expected, f"{place} rank {rank} runs other "
                  f"collectives than rank {first}")


def in_time(tools, folder, ranks=1, target=cases.TARGET):
    """What was queued takes as long as predicted; the relative difference. Of a
    pipeline `ranks` are all, of others one stands for all."""
    text = tools.call([os.path.join(tools.bin, "dry-replay"),
                       os.path.join(folder, "gpu.json"), target,
                       *(os.path.join(folder, f"report.{rank}")
                         for rank in range(ranks))])
    replayed, predicted = map(float, text.split())
    difference = relative(replayed, predicted)
    check(difference <= QUEUED_TOLERANCE,
          f"what was queued takes {replayed:.6g} s, predicted are "
          f"{predicted:.6g} s")
    return difference


def own_peak(tools, plan, measured):
    """Own bytes at the peak are the plan's, with the workspaces that its torch
    keeps; those of the stand-ins are an H200's."""
    if not tools.is_pinned and plan["target"] != cases.TARGET:
        return
    predicted = plan["predicted"]["memory"]["own_peak_bytes"]
    check(measured["own_peak_bytes"] == predicted,
          f"own bytes at the peak: {measured['own_peak_bytes']}, predicted "
          f"{predicted}")


def as_reserved(tools, plan, measured):
    """The pinned torch's allocator holds and gives out as many bytes as
    predicted; another one's nearly, since what operators need inside is the
    pinned one's. The stand-ins are of an H200, whose cuBLAS has larger
    workspaces than others."""
    if plan["target"] != cases.TARGET:
        return
    for what in ("reserved", "allocated"):
        predicted = plan["predicted"]["memory"][what + "_bytes"]
        seen = measured[what + "_peak_bytes"]
        check(relative(seen, predicted) <= (0 if tools.is_pinned else 0.01),
              f"{what} bytes: {seen}, predicted {predicted}")
