"""differ.py PROGRAM PLAN [OPTION...] -- PLAN [OPTION...]: two ranks of one job
with a command line each; what they say, and how they end within 30 s."""
import os
import socket
import subprocess
import sys

program, *rest = sys.argv[1:]
cut = rest.index("--")
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
jobs = []
for rank, arguments in enumerate((rest[:cut], rest[cut + 1:])):
    environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2",
                   "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": str(port)}
    jobs.append(subprocess.Popen([program, *arguments], env=environment,
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True))
for rank, job in enumerate(jobs):
    try:
        text = job.communicate(timeout=30)[1]
    except subprocess.TimeoutExpired:
        for other in jobs:
            other.kill()
        sys.exit(f"rank {rank} still runs after 30 s")
    print(text, end="")
    print(f"rank {rank} ends with {job.returncode}")
