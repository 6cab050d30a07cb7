"""What the parity cases share: running the binaries, comparing, reporting."""
import collections
import dataclasses
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Failure(Exception):
    """A case that does not hold, with a text for a person."""


@dataclasses.dataclass
class Context:
    build: str  # the build folder
    work: str   # scratch folder of this case

    def binary(self, name):
        path = os.path.join(self.build, "bin", name)
        if not os.access(path, os.X_OK):
            raise Failure(f"{path} is not built")
        return path

    def path(self, *parts):
        return os.path.join(self.work, *parts)


# name -> function(Context); filled by the modules that run.py imports.
Case = collections.namedtuple("Case", "name function")


def check(condition, text):
    if not condition:
        raise Failure(text)


def clean_environment():
    """The environment without what a launcher or a shell may have set."""
    prefixes = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "TORCHELASTIC_")
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    env = {k: v for k, v in os.environ.items()
           if k not in names and not k.startswith(prefixes)}
    env.update(NO_COLOR="1", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1",
               TOKENIZERS_PARALLELISM="false")
    return env


def run(command, timeout=300, expect=0, cwd=None):
    """Runs a command; its combined output. Any other exit code is a Failure."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=timeout, errors="replace", cwd=cwd,
                              env=clean_environment())
    except subprocess.TimeoutExpired as e:
        tail = (e.stdout or b"").decode(errors="replace")[-2000:]
        raise Failure(f"{' '.join(command)}\n{tail}\ntimed out "
                      f"after {timeout} s") from None
    if expect is not None and done.returncode != expect:
        raise Failure(f"{' '.join(command)}\n{done.stdout[-4000:]}\n"
                      f"exit code {done.returncode}, expected {expect}")
    return done.stdout


def plan(context, job_path, plan_path, *extra):
    """accel-opt plan JOB --emit plan -o PLAN; the plan as a dict."""
    run([context.binary("accel-opt"), "plan", job_path, "--emit", "plan",
         "-o", plan_path, *extra], timeout=60)
    with open(plan_path, encoding="utf-8") as f:
        return json.load(f)


def execute(context, plan_path, ranks, log_path, *extra, timeout=300):
    """accel-run PLAN --nproc N --log LOG; the log's records. A run that starts
    anew gets a folder without an earlier one's checkpoints."""
    if "--resume" not in extra and "--out" not in extra:
        with open(plan_path, encoding="utf-8") as f:
            folder = json.load(f)["job"]["checkpoint"]["dir"]
        if folder:
            shutil.rmtree(os.path.join(os.path.dirname(plan_path), folder),
                          ignore_errors=True)
    run([context.binary("accel-run"), plan_path, "--nproc", str(ranks),
         "--log", log_path, *extra], timeout=timeout)
    return read_log(log_path)


def compare_memory(plan, summary_path, unmodelled=0):
    """The plan's own buffers at the peak are the measured ones to the byte, and
    the peak with operators' workspaces is within 1 %, or `unmodelled` bytes
    where that is more; both as text."""
    predicted = plan["predicted"]["memory"]
    with open(summary_path, encoding="utf-8") as f:
        measured = json.load(f)["measured"]
    own, peak = measured["own_peak_bytes"], measured["peak_bytes"]
    tokens = measured["tokens_per_s"] * measured["step_s"]
    check(abs(tokens - round(tokens)) < 1e-3,
          f"the summary's step takes {tokens} tokens of a rank")
    check(predicted["own_peak_bytes"] == own,
          f"own buffers: predicted {predicted['own_peak_bytes']} bytes at the "
          f"peak, measured {own}")
    check(abs(predicted["peak_bytes"] - peak) <= max(0.01 * peak, unmodelled),
          f"with operators' workspaces: predicted peak "
          f"{predicted['peak_bytes']} bytes, measured {peak}")
    return f"own peak {own}, peak {predicted['peak_bytes'] / peak:.4f}"


# Importing torch and transformers takes seconds; a server does it once and each
# PyTorch process of the tests is a fork of it. What FSDP2 and a model's module
# import on their first use (sympy, dynamo) is as much again: 3.4 s of each rank.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([
    "torch", "transformers", "accelerate", "safetensors.torch", "torch._dynamo",
    "torch.distributed.fsdp", "torch.distributed.tensor.parallel",
    "transformers.modeling_layers", "transformers.utils.type_validators",
    "transformers.models.llama.modeling_llama"])


def _child(connection, function, environment, arguments, log_path):
    descriptor = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.environ.update(environment)
    try:
        connection.send((True, function(*arguments)))
    except BaseException:
        connection.send((False, traceback.format_exc()))
    connection.close()


def in_python(function, calls, log_path, timeout=600):
    """Runs function(*arguments) for each (environment, arguments) of `calls`,
    each in a process of its own, all at once; the results in order."""
    started = []
    for environment, arguments in calls:
        mine, theirs = _processes.Pipe(duplex=False)
        process = _processes.Process(
            target=_child,
            args=(theirs, function, environment, arguments, log_path))
        process.start()
        theirs.close()
        started.append((process, mine))
    deadline, results = time.time() + timeout, []
    try:
        for process, connection in started:
            if not connection.poll(max(0.0, deadline - time.time())):
                raise Failure(f"{function.__name__} did not end in {timeout} s")
            try:
                ok, result = connection.recv()
            except EOFError:
                process.join(10)
                raise Failure(f"{function.__name__} died with exit code "
                              f"{process.exitcode}; see {log_path}") from None
            check(ok, result)
            results.append(result)
    finally:
        for process, _ in started:
            process.join(10)
            if process.is_alive():
                process.kill()
    return results


def reference(job_path, ranks, log_path, weights_path=None, steps=0,
              share=None):
    """The PyTorch run of the same job; its log's records. `share`: all ranks
    have one sample, whose layers (tp, sp) or tokens (cp) torch splits."""
    import fsdp2

    port = fsdp2.free_port()
    in_python(fsdp2.train,
              [(fsdp2.rank_environment(rank, ranks, port),
                (job_path, log_path, weights_path, steps, None, share))
               for rank in range(ranks)], log_path + ".out")
    return read_log(log_path)


def read_log(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


# How near to its tolerance the nearest comparison of a case came, and which.
nearest = (0.0, "")


def near(difference, tolerance, name):
    global nearest
    if tolerance > 0:
        nearest = max(nearest, (difference / tolerance, name))


def relative(a, b):
    return abs(a - b) / max(abs(a), abs(b), 1e-30)


def compare_logs(got, want, key, tolerance):
    """Every step's `key` within a relative tolerance; the largest difference."""
    check(len(got) == len(want), f"{len(got)} steps logged, expected {len(want)}")
    worst = 0.0
    for a, b in zip(got, want):
        check(a["step"] == b["step"],
              f"step {a['step']} logged where {b['step']} was expected")
        difference = relative(a[key], b[key])
        worst = max(worst, difference)
        near(difference, tolerance, key)
        check(difference <= tolerance,
              f"{key} at step {a['step']}: {a[key]!r}, PyTorch has {b[key]!r} "
              f"(relative difference {difference:.2e}, allowed {tolerance:g})")
    return worst


def find_weights(folder):
    """The merged Hugging Face folder below a job's checkpoint folder."""
    found = []
    for base, _, files in os.walk(folder):
        if "model.safetensors" in files or \
                "model.safetensors.index.json" in files:
            found.append(base)
    check(found, f"no model.safetensors under {folder}")
    # The final one is the outermost; step folders lie deeper.
    return min(found, key=lambda p: (p.count(os.sep), p))


def load_weights(folder):
    """{name: tensor} of a Hugging Face folder, sharded or not."""
    from safetensors.torch import load_file

    tensors = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            tensors.update(load_file(os.path.join(folder, name)))
    return tensors


def compare_weights(got, want, tolerance, rounding=None):
    """Largest absolute difference of any element, within `tolerance`, but for
    what `rounding` (a cancelled.Rounding) says that rounding decides."""
    names = set(got) ^ set(want)
    check(not names, f"tensors on one side only: {sorted(names)[:5]}")
    worst, where = 0.0, ""
    for name, b in want.items():
        a = got[name]
        check(a.shape == b.shape, f"{name} is {tuple(a.shape)}, "
                                  f"PyTorch has {tuple(b.shape)}")
        difference = (a.double() - b.double()).abs()
        if rounding:
            rounding.take_out(name, difference, tolerance)
        difference = float(difference.max())
        if difference > worst:
            worst, where = difference, name
    near(worst, tolerance, where)
    check(worst <= tolerance, f"{where} differs by {worst:.2e}, "
                              f"allowed {tolerance:g}")
    return worst
