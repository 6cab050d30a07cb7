"""States on a drive: what run.py examines of them beside other offload."""
import ctypes
import json
import os
import resource
import subprocess
import time

import yaml


def has_uring():
    """The kernel gives a ring (io_uring_setup, with 120 bytes of parameters)."""
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(425, 4, ctypes.create_string_buffer(120))
    if ring >= 0:
        os.close(ring)
    return ring >= 0


def transfers(case):
    return case.get("io") or ("io_uring" if has_uring() else "threads")


def options(case):
    """Of accel-run; empty: nothing is on a drive."""
    return (("--disk-io", transfers(case))
            if "nvme" in case and case.get("records", True) else ())


def examine(tools, case, folder, measured):
    """What is wrong, or the plan of the same job with states in memory, whose
    numbers must be the same to the bit."""
    drive = os.path.join(folder, "nvme")
    with open(os.path.join(folder, "gpu.json"), encoding="utf-8") as f:
        plan = json.load(f)
    if plan["offload"]["disk"]["folder"] != drive:
        return "the plan has another folder", None
    if os.listdir(drive):
        return f"files are left in {drive}", None
    if plan["predicted"]["memory"]["disk_bytes"] <= 0:
        return "nothing is on the drive", None
    if measured["disk_io"] != transfers(case):
        return f"transfers are by {measured['disk_io']}", None
    with open(os.path.join(folder, "gpu.yaml"), encoding="utf-8") as f:
        job = yaml.safe_load(f)
    job["offload"]["states"] = "cpu"
    del job["offload"]["nvme"]
    held = os.path.join(folder, "held.yaml")
    with open(held, "w", encoding="utf-8") as f:
        yaml.safe_dump(job, f)
    path = os.path.join(folder, "held.json")
    tools.plan(held, path)
    return "", path


def fit(tools, case, ranks, folder):
    """What is wrong with the drive's rates that accel-run measures into a
    target, by which the job is planned again."""
    if not case.get("fit"):
        return ""
    target = os.path.join(folder, "mine.yaml")
    plan = os.path.join(folder, "gpu.json")
    with open(os.path.join(folder, "gpu.yaml"), encoding="utf-8") as f:
        job = yaml.safe_load(f)
    text = tools.call([os.path.join(tools.bin, "accel-opt"), "targets",
                       job["target"], "--format", "yaml"])
    with open(target, "w", encoding="utf-8") as f:
        f.write(text)
    before = yaml.safe_load(text)["drive"]
    tools.run_dry(plan, ranks, folder, "--fit", target)
    with open(target, encoding="utf-8") as f:
        after = yaml.safe_load(f)["drive"]
    if "accel-run --fit" not in after["source"]:
        return "the target's drive is not measured"
    for key in ("read_bandwidth", "write_bandwidth"):
        if not 1e6 < float(after[key]) < 1e12 or after[key] == before[key]:
            return f"{key} is {after[key]}"
    job["target"] = target
    fitted = os.path.join(folder, "fitted.yaml")
    with open(fitted, "w", encoding="utf-8") as f:
        yaml.safe_dump(job, f)
    tools.plan(fitted, os.path.join(folder, "fitted.json"))
    return ""


def fail(tools, case, folder):
    """What is wrong with how a run ends whose file cannot be written any more:
    of one rank, since what stands in for NCCL writes files too."""
    if not case.get("fails"):
        return ""
    log = os.path.join(folder, "failing.jsonl")
    environment = {
        **os.environ, "LD_PRELOAD": os.path.join(tools.runtime, "dry-gpu.so"),
        "LD_LIBRARY_PATH": os.path.join(tools.runtime, "dry"),
        "OMP_NUM_THREADS": "1", "DRY_EXCHANGE": folder,
        "DRY_REPORT": os.path.join(folder, "failing")}
    run = subprocess.Popen(
        [os.path.join(tools.runtime, "accel-run"),
         os.path.join(folder, "gpu.json"), "--nproc", "1", "--log", log,
         "--steps", "100000", *options(case)], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 60
        while not os.path.exists(log) or not os.path.getsize(log):
            if run.poll() is not None or time.monotonic() > end:
                return "no step is logged"
            time.sleep(0.02)
        # Of this process writes beyond a page fail from now on.
        resource.prlimit(run.pid, resource.RLIMIT_FSIZE, (4096, 4096))
        text = run.communicate(timeout=60)[0]
    finally:
        run.kill()
    said = (f"accel-run: error: {os.path.join(folder, 'nvme')}: the file for "
            "states of rank 0: cannot write ")
    if text.count("error:") != 1 or said not in text or \
            "File too large" not in text or run.returncode != 1:
        return f"exit code {run.returncode}: {text[-1000:]}"
    if os.listdir(os.path.join(folder, "nvme")):
        return "files are left"
    return ""
