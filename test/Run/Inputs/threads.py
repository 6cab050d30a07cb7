"""threads.py one|CPUS PROGRAM PLAN LOG [OPTION...]: two ranks of a job on one CPU,
or on two or more, and which CPUs they run on."""
import os
import signal
import subprocess
import sys
import time

how, program, plan, log, *options = sys.argv[1:]
cpus = sorted(os.sched_getaffinity(0))
cpus = cpus[:1 if how == "one" else int(how)]
os.sched_setaffinity(0, cpus)
environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
if os.path.exists(log):
    os.remove(log)
job = subprocess.Popen([program, plan, "--nproc", "2", "--log", log, *options],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, env=environment)
deadline = time.time() + 60
while not os.path.exists(log) or not os.path.getsize(log):
    if time.time() > deadline or job.poll() is not None:
        print(job.communicate()[0])
        sys.exit("it did not start to train")
    time.sleep(0.02)
with open(f"/proc/{job.pid}/task/{job.pid}/children") as f:
    ranks = sorted(int(pid) for pid in f.read().split())
# Ranks are forks of it, without its other threads.
assert os.listdir(f"/proc/{job.pid}/task") == [str(job.pid)]
# All threads of a rank, in places in the list of CPUs.
for rank, pid in enumerate(ranks):
    places = set()
    for thread in os.listdir(f"/proc/{pid}/task"):
        places |= {cpus.index(c) for c in os.sched_getaffinity(int(thread))}
    print(f"rank {rank} runs on {sorted(places)}")
job.send_signal(signal.SIGTERM)
print(job.communicate(timeout=60)[0], end="")
