"""launch.py HOW PROGRAM PLAN LOG: two ranks as a launcher would start them, or
("kill") by --nproc, one of which is then killed."""
import os
import signal
import socket
import subprocess
import sys
import time

how, program, plan, log = sys.argv[1:]
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = str(s.getsockname()[1])


def variables(rank):
    if how == "rank":
        return {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank,
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    if how == "srun":
        return {"SLURM_PROCID": rank, "SLURM_NTASKS": 2, "SLURM_LOCALID": rank,
                "SLURM_STEP_ID": 0, "SLURM_JOB_ID": 1,
                "SLURM_STEP_NODELIST": "localhost",
                "SLURM_STEP_TASKS_PER_NODE": 2, "MASTER_PORT": port}
    return {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": 2,
            "OMPI_COMM_WORLD_LOCAL_RANK": rank,
            "OMPI_COMM_WORLD_LOCAL_SIZE": 2, "MASTER_PORT": port}


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return sorted(int(p) for p in f.read().split())


if how == "kill":
    if os.path.exists(log):
        os.remove(log)
    job = subprocess.Popen([program, plan, "--nproc", "2", "--log", log],
                           stdout=subprocess.DEVNULL)
    deadline = time.time() + 60
    while not os.path.exists(log) or os.path.getsize(log) < 500:
        if time.time() > deadline or job.poll() is not None:
            sys.exit("it did not start to train")
        time.sleep(0.05)
    os.kill(children(job.pid)[1], signal.SIGKILL)
    try:
        print(f"exit code {job.wait(30)} in time", flush=True)
    except subprocess.TimeoutExpired:
        job.terminate()
        sys.exit("still running after 30 s")
    sys.exit()

jobs = []
for rank in range(2):
    environment = dict(os.environ)
    environment.update({k: str(v) for k, v in variables(rank).items()})
    jobs.append(subprocess.Popen([program, plan, "--log", log],
                                 env=environment, stdout=subprocess.DEVNULL))
codes = [job.wait(60) for job in jobs]
sys.exit(0 if codes == [0, 0] else f"exit codes {codes}")
