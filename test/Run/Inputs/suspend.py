"""suspend.py PROGRAM PLAN LOG SECONDS: a job of two ranks is stopped as a whole
for SECONDS, twice: one rank is stopped last and continued first, rank 0 and then
rank 1. It has to train on each time; a SIGTERM ends it. What it says and its
exit code."""
import os
import signal
import subprocess
import sys
import time

program, plan, log, seconds = sys.argv[1:]


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return sorted(int(p) for p in f.read().split())


def lines():
    return open(log).read().count("\n") if os.path.exists(log) else 0


def await_lines(count, what):
    deadline = time.time() + 60
    while lines() < count:
        if time.time() > deadline or job.poll() is not None:
            for pid in (job.pid, *ranks):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            print(job.communicate()[0])
            sys.exit(what)
        time.sleep(0.02)


def send(number, *pids):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:  # what it says is printed
            pass


if os.path.exists(log):
    os.remove(log)
job = subprocess.Popen([program, plan, "--nproc", "2", "--log", log],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True)
ranks = []
await_lines(3, "it did not start to train")
ranks = children(job.pid)
for first, second in (ranks, reversed(ranks)):
    send(signal.SIGSTOP, job.pid, second)
    time.sleep(0.8)  # the first one has seen the second one's last sign of life
    send(signal.SIGSTOP, first)
    time.sleep(float(seconds))
    send(signal.SIGCONT, job.pid, first)
    time.sleep(1)
    send(signal.SIGCONT, second)
    time.sleep(2)  # for the watches to look
    await_lines(lines() + 3, "it did not go on")
send(signal.SIGTERM, job.pid)
print(job.communicate(timeout=60)[0], end="")
print(f"exit code {job.returncode}")
