"""Watches a training job from outside: CPU seconds, page faults, RSS.

The same code watches accel-run and the PyTorch reference: it reads /proc while
the job's log grows, so that a step's figures are differences between two steps
of one run and start-up is left out.
"""
import json
import os
import re
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")


def process_tree(root):
    """`root` and all its descendants."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as f:
                    fields = f.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry))
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def sample(pid):
    """(CPU seconds, minor faults, peak RSS in bytes) of one process."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/status") as f:
        high = re.search(r"VmHWM:\s+(\d+)", f.read())
    return ((int(fields[11]) + int(fields[12])) / TICKS, int(fields[7]),
            int(high.group(1)) * 1024 if high else 0)


def read_log(path):
    try:
        with open(path, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]
    except OSError:
        return []


def job(command, log, ranks, warm, timeout, environment):
    """Runs `command` and returns its medians after `warm` steps.

    Ranks are the `ranks` processes below `command` that use most memory.
    """
    if os.path.exists(log):
        os.remove(log)
    with open(log + ".out", "w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output,
                                   stdin=subprocess.DEVNULL, env=environment)
    marks, deadline = [], time.time() + timeout  # [(step, {pid: sample})]
    try:
        while process.poll() is None:
            if time.time() > deadline:
                raise RuntimeError(f"{command} ran longer than {timeout} s")
            lines = read_log(log)
            if lines and (not marks or marks[-1][0] != lines[-1]["step"]):
                samples = {}
                for pid in process_tree(process.pid):
                    try:
                        samples[pid] = sample(pid)
                    except OSError:
                        pass
                marks.append((lines[-1]["step"], samples))
            time.sleep(0.005)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    lines = read_log(log)
    if process.returncode:
        with open(log + ".out") as f:
            raise RuntimeError(f"{' '.join(command)}: exit code "
                               f"{process.returncode}\n{f.read()[-3000:]}")
    # The last mark may lack ranks that have ended already.
    marks = [m for m in marks if m[0] >= warm]
    full = max(len(m[1]) for m in marks)
    marks = [m for m in marks if len(m[1]) == full]
    first, last = marks[0], marks[-1]
    if last[0] - first[0] < 2:
        raise RuntimeError(f"too few steps to measure in {log}")
    by_size = sorted(last[1], key=lambda pid: last[1][pid][2])[-ranks:]
    steps = last[0] - first[0]

    def per_step(i):
        return sum(last[1][p][i] - first[1][p][i] for p in by_size) / steps / ranks

    seconds = sorted(line["step_s"] for line in lines[warm:])
    return {
        "step_s": seconds[len(seconds) // 2],
        "tokens_per_s": sorted(line["tokens_per_s"]
                               for line in lines[warm:])[len(seconds) // 2],
        "cpu_s": per_step(0),
        "faults": per_step(1),
        "rss": max(last[1][p][2] for p in by_size),
        "losses": [line["loss"] for line in lines],
        "peak_bytes": max((line.get("peak_bytes", 0) for line in lines),
                          default=0),
    }
