"""signals.py PROGRAM PLAN LOG SIGNAL[:SIGNAL] WHOM[:WHOM] [OPTION...]: a job of
two ranks gets a signal once it has logged three steps (LOG is "-": once its
ranks are started; "LOG@FILE": once FILE has three lines): WHOM is "launcher",
"rank 0" or "rank 1" (with SIGSTOP: it is stopped), of each signal or of all;
what it says and its exit code."""
import os
import signal
import subprocess
import sys
import time

program, plan, log, names, whom, *options = sys.argv[1:]


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return sorted(int(p) for p in f.read().split())


early = log == "-"
log, _, watched = log.partition("@")
if not early:
    options += ["--log", log]
    if not watched and os.path.exists(log):
        os.remove(log)
    watched = watched or log
job = subprocess.Popen([program, plan, "--nproc", "2", *options],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True)
deadline = time.time() + 60
while (len(children(job.pid)) < 2 if early else
       not os.path.exists(watched) or open(watched).read().count("\n") < 3):
    if time.time() > deadline or job.poll() is not None:
        print(job.communicate()[0])
        sys.exit("it did not start to train")
    time.sleep(0.001 if early else 0.02)
ranks = children(job.pid)
targets = [job.pid if one == "launcher" else ranks[int(one.split()[1])]
           for one in whom.split(":")]
began = time.time()
for i, name in enumerate(names.split(":")):
    if i:
        time.sleep(3)
    try:
        os.kill(targets[i % len(targets)], getattr(signal, name))
    except ProcessLookupError:
        break
try:
    text = job.communicate(timeout=60)[0]
except subprocess.TimeoutExpired:
    for pid in [job.pid, *ranks]:
        os.kill(pid, signal.SIGKILL)
    sys.exit("still running after 60 s")
print(text, end="")
seconds = time.time() - began
print(f"exit code {job.returncode} "
      f"{'within 30 s' if seconds < 30 else f'after {seconds:.0f} s'}")
