"""How accel-run is started, and how it ends when something is wrong."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import harness
import jobs
from harness import check


def wait_for_steps(process, log, steps):
    """Until the log has as many; fails where the process ends before."""
    deadline = time.time() + 60
    while not os.path.exists(log) or len(harness.read_log(log)) < steps:
        check(time.time() < deadline and process.poll() is None,
              "it did not start to train")
        time.sleep(0.02)


def make(context, steps=6, ranks=2, **options):
    jobs.make_job(context.path(), jobs.MODELS["gqa"], steps=steps, ranks=ranks,
                  **options)
    harness.plan(context, context.path("job.yaml"), context.path("plan.json"))


def expected_losses(context):
    log = harness.execute(context, context.path("plan.json"), 2,
                          context.path("nproc.jsonl"))
    shutil.rmtree(context.path("out"))
    return [line["loss"] for line in log]


def losses(context, name):
    return [line["loss"] for line in harness.read_log(context.path(name))]


def torchrun(context):
    make(context)
    want = expected_losses(context)
    harness.run([os.path.join(os.path.dirname(sys.executable), "torchrun"),
                 "--no-python", "--nproc-per-node", "2", "--master-port",
                 # torchrun's parser would take --log for --log-dir.
                 str(free_port()), "--", context.binary("accel-run"),
                 context.path("plan.json"), "--log", context.path("t.jsonl"),
                 "--summary", context.path("summary.json")])
    check(losses(context, "t.jsonl") == want, "other losses than with --nproc")
    with open(context.path("summary.json"), encoding="utf-8") as f:
        held = json.load(f)["measured"]["max_rss_bytes"]
    # The system counts a process from what started it: Python with torch.
    check(50e6 < held < 350e6, f"{held} bytes resident, as torchrun has")


def restarted(context):
    """torchrun starts all ranks again where one is lost; they go on from the
    last checkpoint, and the losses are those of a run that lost none."""
    make(context, steps=150, checkpoint_every=20, tokens=20000)
    want = expected_losses(context)
    log = context.path("t.jsonl")
    with open(context.path("torchrun.out"), "w") as output:
        agent = subprocess.Popen(
            [os.path.join(os.path.dirname(sys.executable), "torchrun"),
             "--max-restarts", "1", "--monitor-interval", "0.2", "--no-python",
             "--nproc-per-node", "2", "--master-port", str(free_port()), "--",
             context.binary("accel-run"), context.path("plan.json"),
             "--resume", "auto", "--log", log], stdout=output, stderr=output,
            stdin=subprocess.DEVNULL, env=harness.clean_environment())
    try:
        wait_for_steps(agent, log, 50)
        os.kill(children(agent.pid)[-1], signal.SIGKILL)
        begin = time.time()
        code = agent.wait(120)
        seconds = time.time() - begin
    finally:
        agent.kill()
    with open(context.path("torchrun.out")) as f:
        text = f.read()
    check(code == 0, f"exit code {code}:\n{text[-2000:]}")
    # Gloo tells the other rank at once, or leaves a send waiting.
    check("continues from" in text and "error:" not in text and
          ("stops: another rank has gone, and SIGTERM asks this one to end"
           in text or "stops: rank 1: gave no sign of life for 5 s" in text),
          text[-3000:])
    steps = [line["step"] for line in harness.read_log(log)]
    check(steps == list(range(1, 151)), f"steps {steps}")
    check(losses(context, "t.jsonl") == want, "other losses than unbroken")
    # The other rank does not wait until it is sure which one is silent (20 s).
    check(seconds < 18, f"done {seconds:.1f} s after the rank was killed")
    return f"done {seconds:.1f} s after the rank was killed"


def free_port():
    import fsdp2

    return fsdp2.free_port()


def by_environment(variables):
    """Two processes that find their rank where `variables` says."""
    def case(context):
        make(context)
        want = expected_losses(context)
        port = str(free_port())
        ranks = []
        for rank in range(2):
            environment = harness.clean_environment()
            environment.update({k: v.format(rank=rank)
                                for k, v in variables.items()})
            environment.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            with open(context.path(f"rank{rank}.out"), "w") as output:
                ranks.append(subprocess.Popen(
                    [context.binary("accel-run"), context.path("plan.json"),
                     "--log", context.path("e.jsonl")], stdout=output,
                    stderr=output, stdin=subprocess.DEVNULL, env=environment))
        try:
            codes = [process.wait(120) for process in ranks]
        except subprocess.TimeoutExpired:
            raise harness.Failure("the ranks did not end in 120 s") from None
        finally:
            for process in ranks:
                process.kill()
        for rank in range(2):
            with open(context.path(f"rank{rank}.out")) as f:
                check(codes[rank] == 0, f"rank {rank} exit code {codes[rank]}:"
                                        f"\n{f.read()[-2000:]}")
        check(losses(context, "e.jsonl") == want,
              "other losses than with --nproc")
    return case


def killed_rank(context, names=("rank 1", "rank 0"), **options):
    """A rank that is killed takes the job down within 30 s, by name."""
    make(context, steps=100000, tokens=20000, **options)
    log = context.path("run.jsonl")
    with open(context.path("run.out"), "w") as output:
        process = subprocess.Popen(
            [context.binary("accel-run"), context.path("plan.json"), "--nproc",
             "2", "--log", log], stdout=output, stderr=output,
            stdin=subprocess.DEVNULL, env=harness.clean_environment())
    try:
        wait_for_steps(process, log, 3)
        victim = children(process.pid)[-1]
        start = time.time()
        os.kill(victim, signal.SIGKILL)
        try:
            code = process.wait(30)
        except subprocess.TimeoutExpired:
            raise harness.Failure("still running 30 s after a rank was "
                                  "killed") from None
        seconds = time.time() - start
    finally:
        if process.poll() is None:
            for pid in children(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.kill()
    check(code != 0, "it ended with exit code 0")
    with open(context.path("run.out")) as f:
        text = f.read()
    check(any(name in text for name in names),
          f"the message does not name the rank:\n{text[-1500:]}")
    return f"ended after {seconds:.1f} s"


def children(pid):
    """Direct children of a process, oldest first."""
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)],
                          stdout=subprocess.PIPE, text=True)
    return sorted(int(p) for p in done.stdout.split())


def refused(damage, *words, arguments=("--nproc", "2"), **options):
    """One clear message, exit code 1, and nothing written."""
    def case(context):
        make(context, **options)
        damage(context)
        output = harness.run([context.binary("accel-run"),
                              context.path("plan.json"), *arguments, "--log",
                              context.path("run.jsonl")], expect=1, timeout=60)
        errors = [line for line in output.splitlines() if "error:" in line]
        check(len(errors) == 1, f"{len(errors)} error lines, not 1:\n{output}")
        for word in words:
            check(word in output, f"no '{word}' in:\n{output}")
        left = []
        for base, _, files in os.walk(context.path("out")):
            left += [os.path.join(base, f) for f in files if f != ".lock"]
        check(not left, f"it left {left}")
        return errors[0]
    return case


def truncate(name, size):
    def damage(context):
        with open(context.path(name), "r+b") as f:
            f.truncate(size)
    return damage


def overwrite_token(context):
    with open(context.path("train.bin"), "r+b") as f:
        f.write((60000).to_bytes(2, "little"))


CASES = [
    ("torchrun", torchrun),
    ("torchrun-max-restarts", restarted),
    ("rank-environment",
     by_environment({"RANK": "{rank}", "WORLD_SIZE": "2",
                     "LOCAL_RANK": "{rank}"})),
    ("srun-environment",
     by_environment({"SLURM_PROCID": "{rank}", "SLURM_NTASKS": "2",
                     "SLURM_LOCALID": "{rank}", "SLURM_JOB_ID": "17",
                     "SLURM_STEP_ID": "0",
                     "SLURM_STEP_TASKS_PER_NODE": "2",
                     "SLURM_STEP_NODELIST": "localhost"})),
    ("mpirun-environment",
     by_environment({"OMPI_COMM_WORLD_RANK": "{rank}",
                     "OMPI_COMM_WORLD_SIZE": "2",
                     "OMPI_COMM_WORLD_LOCAL_RANK": "{rank}",
                     "OMPI_COMM_WORLD_LOCAL_SIZE": "2"})),
    ("killed-rank", killed_rank),
    ("other-world-size", refused(lambda context: None, "2", "3",
                                 arguments=("--nproc", "3"))),
    ("no-data-file", refused(lambda c: os.remove(c.path("train.bin")),
                             "train.bin")),
    ("data-shorter-than-a-sample", refused(truncate("train.bin", 40),
                                           "train.bin")),
    ("data-of-half-a-token", refused(truncate("train.bin", 4097),
                                     "train.bin")),
    ("token-above-the-vocabulary", refused(overwrite_token, "60000", "256")),
    ("no-weights",
     refused(lambda c: os.remove(c.path("model/model.safetensors")),
             "model.safetensors")),
    ("truncated-weights", refused(truncate("model/model.safetensors", 5000),
                                  "model.safetensors")),
    ("empty-weights", refused(truncate("model/model.safetensors", 0),
                              "model.safetensors")),
    ("no-plan", refused(lambda c: os.remove(c.path("plan.json")),
                        "plan.json")),
    ("truncated-plan", refused(truncate("plan.json", 3000), "plan.json")),
    ("checkpoint-folder-is-a-file",
     refused(lambda c: open(c.path("out"), "w").close(), "out")),
]
