"""accel-run on GPUs that do not exist: order, values, memory and counts.

  python test/dry/run.py              each family, each pair of options once
  python test/dry/run.py --all        their product, and what repeats: hours
  python test/dry/run.py -k llama ddp cases with a text in their name
  python test/dry/run.py --update     writes steps.csv anew
  python test/dry/run.py -k mutant    only device code with mistakes
  python test/dry/run.py -k gpu-check the cases of tools/gpu-check
  python test/dry/run.py -k full-size Llama-3.1-8B, without values
  python test/dry/run.py -k trainer   bytes of transformers' Trainer
  python test/dry/run.py -k launched  the same of accelerate launch, two ranks
  python test/dry/run.py --runtime DIR    with the accel-run of another build

The real accel-run-cuda.so and libtorch_cuda run over stand-ins for the CUDA
libraries (DryGpu.h). Of each case: no two accesses to memory without an order,
nothing on the default stream, contexts on the own device alone, the same
collectives on all ranks, own bytes at the peak as predicted, losses as those
of the plan for CPUs, counts of a step as in steps.csv, and the seconds of what
was queued, at the cost model's rates, as passes/Simulate predicts. Device code
with a mistake (Mutants.cmake) must fail one of these. The accel-run of another
build is of another torch, for which plans are made: counts are not compared
then, transformers' and Accelerate's jobs are left out, and every function of
every family is prepared for its schemas.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import cases  # noqa: E402
import checks  # noqa: E402
import drive  # noqa: E402
import full_size  # noqa: E402
import gpu_jobs  # noqa: E402
import harness  # noqa: E402  (test/parity, by cases)
import launched  # noqa: E402
import prepare_cases  # noqa: E402
import stages  # noqa: E402
import steps_table  # noqa: E402
import trainer  # noqa: E402
from checks import (Tools, Wrong, as_reserved, check,  # noqa: E402
                    gpu_check, in_order, in_time, same_values)


def examine_segments(tools, case):
    """Models whose tensors are larger than the allocator's pages, without
    values: bytes of segments that grow and of fixed ones."""
    folder = os.path.join(tools.work, "segments-" + case["name"])
    path = os.path.join(folder, "gpu.json")
    text = []
    for conf in ("expandable_segments:True", case["fixed"]):
        plan = tools.plan(gpu_jobs.large_job(folder, case), path,
                          "--allocator-conf", conf)
        summary = os.path.join(folder, "summary.json")
        _, reports = tools.run_dry(
            path, case["ranks"], folder, "--summary", summary,
            environment={"PYTORCH_CUDA_ALLOC_CONF": conf}, values=False)
        in_order(reports)
        with open(summary, encoding="utf-8") as f:
            measured = json.load(f)["measured"]
        as_reserved(tools, plan, measured)
        memory = plan["predicted"]["memory"]
        text.append(f"{memory['reserved_bytes'] / memory['peak_bytes']:.3f}")
    shutil.rmtree(folder)
    return f"{' '.join(text)} of the peak, to the byte"


def examine(tools, case):
    """What is to be said of a case that holds; Wrong where it does not."""
    title = cases.name(case)
    folder = os.path.join(tools.work, title)
    cpu, gpu, ranks = cases.write(folder, case)
    tools.plan(cpu, os.path.join(folder, "cpu.json"))
    plan = tools.plan(gpu, os.path.join(folder, "gpu.json"))
    want = tools.run(os.path.join(folder, "cpu.json"), ranks,
                     os.path.join(folder, "cpu.jsonl"))
    # What the host asks for and is not there orders nothing and frees nothing.
    got, reports = tools.run_dry(
        os.path.join(folder, "gpu.json"), ranks, folder, "--summary",
        os.path.join(folder, "summary.json"),
        environment={"DRY_BUSY": "1"})
    in_order(reports)
    worst = same_values(got, want, cases.tolerance(case))
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as f:
        measured = json.load(f)["measured"]
    checks.own_peak(tools, plan, measured)
    as_reserved(tools, plan, measured)
    in_time(tools, folder, ranks if plan.get("stages") else 1,
            case.get("target", cases.TARGET))
    counts = steps_table.counts(reports[0], checks.SETTLED)
    if plan.get("stages"):
        check(not (wrong := stages.profile(tools, folder, plan, ranks)), wrong)
    shutil.rmtree(folder)
    return counts, f"losses within {worst:.1e}, {counts['launches']} launches"


def examine_offload(tools, case):
    """Parts of a job wait on the host: values, order and both memories; of two
    ranks also that it goes on from its own checkpoint, to the bit, and from
    that of a job that offloads nothing."""
    folder = os.path.join(tools.work, offload_name(case))
    cpu, gpu, ranks = cases.write(folder, case)
    path = {key: os.path.join(folder, key + ".json") for key in ("cpu", "gpu")}
    tools.plan(cpu, path["cpu"])
    plan = tools.plan(gpu, path["gpu"])
    want = tools.run(path["cpu"], ranks, os.path.join(folder, "cpu.jsonl"))
    summary = os.path.join(folder, "summary.json")
    how = drive.options(case)
    got, reports = tools.run_dry(path["gpu"], ranks, folder, "--summary",
                                 summary, *how)
    in_order(reports)
    tolerance = cases.tolerance(case)
    worst = same_values(got, want, tolerance)
    # The host's update is in the seconds of its own step.
    seconds = [line["step_s"] for line in got]
    check("states" not in case["offload"] or
          seconds[-1] > 0.1 * min(seconds[:-1]), f"seconds of steps: {seconds}")
    with open(summary, encoding="utf-8") as f:
        measured = json.load(f)["measured"]
    as_reserved(tools, plan, measured)
    for key in ("own_peak_bytes", "host_bytes", *(["disk_bytes"] if how else [])):
        check(measured[key] == plan["predicted"]["memory"][key],
              f"{key}: {measured[key]}, predicted "
              f"{plan['predicted']['memory'][key]}")
    # Beside it batches and losses, in small pieces.
    pinned = reports[0]["pinned_peak_bytes"] - measured["host_bytes"]
    check(not tools.is_pinned or 0 <= pinned <= 1 << 16,
          f"{pinned} bytes are pinned beside the plan's")
    if case["offload"] == ["states"] and case["mesh"] == "one" and not how:
        wrong = stages.profile_host(tools, folder, plan, ranks)
        check(not wrong, wrong)
    if case["offload"] == ["activations"]:
        # What the host updates meanwhile is in no trace.
        in_time(tools, folder)
    # To step 2 and on, by the same plan; and from the checkpoint of CPUs.
    if how:
        wrong, held = drive.examine(tools, case, folder, measured)
        check(not wrong, wrong)
        same_values(got, tools.run_dry(held, ranks, folder)[0], 0)
        wrong = (drive.fit(tools, case, ranks, folder) or
                 drive.fail(tools, case, folder))
        check(not wrong, wrong)
    moves = case["mesh"] == "two" and "activations" not in case["offload"]
    for start in ("gpu", "cpu") if moves else ():
        out = os.path.join(folder, "out-" + start)
        half = (path[start], ranks, folder, "--steps", "2", "--out", out)
        if start == "gpu":
            tools.run_dry(*half)
        else:
            tools.run(path["cpu"], ranks, os.path.join(folder, "half.jsonl"),
                      *half[3:])
        rest, reports = tools.run_dry(
            path["gpu"], ranks, folder, "--out", out, "--resume",
            os.path.join(out, "step-00000002"))
        in_order(reports)
        # The log has the steps before too.
        same_values(rest[-2:], (got if start == "gpu" else want)[2:],
                    0 if start == "gpu" else tolerance)
    shutil.rmtree(folder)
    return (f"losses within {worst:.1e}, {measured['own_peak_bytes']} bytes on "
            f"the device, {measured['host_bytes']} on the host")


def offload_name(case):
    return (f"offload-{'-'.join(case['offload'])}"
            f"{'-nvme' if 'nvme' in case else ''}-{cases.name(case)}")


# Mistake -> what must be said of it. In a case with prefetch, accumulation and
# reductions.
MUTANTS = {"no-await": "races", "no-enter": "races", "no-record": "races",
           "early-free": "races", "wrong-stream": "races",
           "no-await-exchange": "races", "no-enter-exchange": "races",
           "no-await-update": "races", "one-pool": "races",
           "no-await-send": "races", "no-await-receive": "races",
           "context": "contexts", "no-overlap": "what was queued",
           "await-all-updates": "what was queued",
           "no-host-wait": "the loss is"}
# In jobs whose awaits are of copies to and from the host alone.
MUTANTS_OF_COPIES = ("no-await", "no-enter", "no-record")
MUTANTS.update({f"{name}-of-copies": "races" for name in MUTANTS_OF_COPIES})
MUTATED = {"family": "gqa", "precision": "bf16", "mesh": "two",
           "accumulation": 2, "recompute": "pointwise", "extra": "clip"}
# ... but for mistakes about what there is not in it.
MUTATED_IN = {"exchange": {"family": "halves", "mesh": "tensor"},
              "send": {"family": "six", "mesh": "stages"},
              "receive": {"family": "six", "mesh": "stages"}}


def place_mutants(tools):
    """Beside their CUDA module lies the accel-run that takes it."""
    binary = os.path.join(tools.runtime, "mutants", "accel-run")
    if os.path.exists(binary):
        os.remove(binary)
    os.link(os.path.join(tools.runtime, "accel-run"), binary)


def examine_mutant(tools, name):
    folder = os.path.join(tools.work, "mutant-" + name)
    module = os.path.join(tools.runtime, "mutants")
    mistake = name.removesuffix("-of-copies")
    offloads = name == "no-host-wait"
    case = {**MUTATED, **MUTATED_IN.get(name.rsplit("-", 1)[-1], {})}
    if offloads or mistake != name:
        case = next(c for c in cases.OFFLOADED if c["offload"] ==
                    ["states" if offloads else "activations"])
    _, gpu, ranks = cases.write(folder, case)
    tools.plan(gpu, os.path.join(folder, "gpu.json"))
    try:
        _, reports = tools.run_dry(
            os.path.join(folder, "gpu.json"), ranks, folder, module=module,
            environment={"DRY_MUTANT": mistake, "DRY_BUSY": "1"})
        in_order(reports)
        if not offloads:
            in_time(tools, folder)
    except Wrong as seen:
        text = str(seen)
        check(MUTANTS[name] in text, f"seen as something else:\n{text}")
        return text.splitlines()[0]
    raise Wrong("nothing is wrong with it")


def examine_move(tools, _):
    """A checkpoint of CPUs goes on on GPUs; dropout then draws otherwise, and
    accel-run says so."""
    worst = None
    for extra in ("none", "dropout"):
        case = {"family": "gqa", "precision": "fp32", "mesh": "two",
                "accumulation": 1, "recompute": "none", "extra": extra}
        folder = os.path.join(tools.work, "move-" + extra)
        cpu, gpu, ranks = cases.write(folder, case)
        for job in ("cpu", "gpu"):
            tools.plan(cpu if job == "cpu" else gpu,
                       os.path.join(folder, job + ".json"))
        out = os.path.join(folder, "out")
        want = tools.run(os.path.join(folder, "cpu.json"), ranks,
                         os.path.join(folder, "cpu.jsonl"))
        tools.run(os.path.join(folder, "cpu.json"), ranks,
                  os.path.join(folder, "half.jsonl"), "--steps", "2", "--out",
                  out)
        got, reports = tools.run_dry(
            os.path.join(folder, "gpu.json"), ranks, folder, "--out", out,
            "--resume", os.path.join(out, "step-00000002"))
        in_order(reports)
        with open(os.path.join(folder, "text"), encoding="utf-8") as f:
            text = f.read()
        said = "dropout draws other numbers on 'cuda'" in text
        check(said == (extra == "dropout"), text)
        if extra == "none":
            worst = same_values(got, want[2:], cases.TOLERANCE["fp32"])
    return f"losses within {worst:.1e}"


def examine_move_tensor(tools, _):
    """A run with tp 2 goes on without; attention's kernels then drop other
    weights, and accel-run says so."""
    for family, moves in (("halves", True), ("halves-dropout", True),
                          ("halves-dropout", False)):
        folder = os.path.join(tools.work, f"move-{family}-{moves}")
        paths, ranks = {}, {}
        for mesh in ("tensor", "two"):
            _, gpu, ranks[mesh] = cases.write(
                os.path.join(folder, mesh),
                {"family": family, "precision": "fp32", "mesh": mesh,
                 "accumulation": 1, "recompute": "none", "extra": "none"})
            paths[mesh] = os.path.join(folder, mesh + ".json")
            tools.plan(gpu, paths[mesh])
        out = os.path.join(folder, "out")
        tools.run_dry(paths["tensor"], ranks["tensor"], folder, "--steps", "2",
                      "--out", out)
        to = "two" if moves else "tensor"
        tools.run_dry(paths[to], ranks[to], folder, "--out", out, "--resume",
                      os.path.join(out, "step-00000002"))
        with open(os.path.join(folder, "text"), encoding="utf-8") as f:
            text = f.read()
        said = "of a run with tp 2" in text and "with tp 1 other" in text
        check(said == (moves and family == "halves-dropout"),
              f"{family}, {moves}:\n{text}")
    return "said where weights are dropped on another tp"


PREPARING = threading.Lock()


def examine_gpu_check(tools, name):
    """A case of tools/gpu-check; the first one makes the jobs of all."""
    folder = os.path.join(tools.work, "gpu-check")
    with PREPARING:
        if not os.path.exists(folder):
            gpu_jobs.prepare(folder, tools.bin, dry=True)
    machine = gpu_check().Machine(argparse.Namespace(
        dry=True, dir=folder, bin=tools.runtime, torch=None))
    line = gpu_check().run_case(machine, name)
    check(line["ok"], line.get("reason"))
    return json.dumps(line["measured"])[:200]


def examine_prepare(tools, precision):
    """Layer A for another torch: parity's prepare.* is for the pinned one."""
    context = harness.Context(tools.build, os.path.join(tools.work, "prepare"))
    paths = [prepare_cases.planned(context, precision, *model)
             for model in prepare_cases.models()]
    text = tools.call([os.path.join(tools.runtime, "runtime-prepare"), *paths])
    bad = [line for line in text.splitlines() if " functions for cuda:" not in
           line]
    check(not bad, "\n".join(bad))
    return f"{len(paths)} plans"


def examine_deterministic(tools, _):
    """cuDNN's attention is refused where bits are to be the same, and not
    chosen where the job says so."""
    case = {"family": "gqa", "precision": "bf16", "mesh": "two",
            "accumulation": 1, "recompute": "none", "extra": "none"}
    folder = os.path.join(tools.work, "deterministic")
    _, gpu, ranks = cases.write(folder, case)
    path = os.path.join(folder, "gpu.json")
    tools.plan(gpu, path)
    try:
        tools.run_dry(path, ranks, folder, "--deterministic")
    except Wrong as refused:
        check("a plan of a job with 'deterministic: true' takes another kernel"
              in str(refused), str(refused))
    else:
        raise Wrong("--deterministic runs cuDNN's attention")
    with open(gpu, encoding="utf-8") as f:
        job = cases.yaml.safe_load(f)
    job["deterministic"] = True
    tools.plan(cases.jobs.write_job(folder, job, "same.yaml"), path)
    runs = [tools.run_dry(path, ranks, folder)[0] for _ in range(2)]
    first, again = ([record["loss"] for record in run] for run in runs)
    check(first == again, f"losses {first}, then {again}")
    return f"{len(first)} losses twice, {examine_counts(tools)} of a mixture"


def examine_counts(tools):
    """What balances the load of experts counts integers where bits are to be
    the same, and has the losses of CPUs."""
    case = {"family": "qwen3-moe", "precision": "fp32", "mesh": "one",
            "accumulation": 1, "recompute": "pointwise", "extra": "none"}
    folder = os.path.join(tools.work, "deterministic-counts")
    cpu, gpu, ranks = cases.write(folder, case)
    path = {key: os.path.join(folder, key + ".json") for key in ("cpu", "gpu")}
    tools.plan(cpu, path["cpu"])
    want = tools.run(path["cpu"], ranks, os.path.join(folder, "cpu.jsonl"))
    tools.plan(gpu, path["gpu"])
    try:
        tools.run_dry(path["gpu"], ranks, folder, "--deterministic")
    except Wrong as refused:
        check("(aten::histc): does not give the same bits each time; a plan of "
              "a job with 'deterministic: true' takes another kernel"
              in str(refused), str(refused))
    else:
        raise Wrong("--deterministic counts floating-point numbers")
    with open(gpu, encoding="utf-8") as f:
        job = cases.yaml.safe_load(f)
    job["deterministic"] = True
    tools.plan(cases.jobs.write_job(folder, job, "same.yaml"), path["gpu"])
    first, again = ([record["loss"] for record in
                     tools.run_dry(path["gpu"], ranks, folder)[0]]
                    for _ in range(2))
    check(first == again, f"losses {first}, then {again}")
    same_values([{"step": i, "loss": loss} for i, loss in enumerate(first)],
                [{"step": i, "loss": each["loss"]}
                 for i, each in enumerate(want)], cases.tolerance(case))
    return f"{len(first)} losses twice"


def examine_nccl_backend(tools, _):
    """A group of NCCL is bound to the process' device, named, limited in time
    and connected before anything is sent."""
    folder = os.path.join(tools.work, "nccl-backend")
    os.makedirs(folder)
    report = os.path.join(folder, "report")
    text = tools.call(
        [os.path.join(tools.runtime, "dry-nccl-backend")],
        {"LD_PRELOAD": os.path.join(tools.runtime, "dry-gpu.so"),
         "LD_LIBRARY_PATH": os.path.join(tools.runtime, "dry"),
         "DRY_REPORT": report})
    want = {"device": "cuda:3", "name": "gather/dp_shard",
            "description": "gather/dp_shard", "option_name": "gather/dp_shard",
            "global_ranks": [5], "timeout_ms": 90000}
    got = json.loads(next(line for line in text.splitlines()
                          if line.startswith("{")))
    check(got == want, f"a group of NCCL has {got}, not {want}")
    with open(report + ".0", encoding="utf-8") as f:
        seen = json.load(f)
    check(len(seen["communicators"]) == 1, "it is not connected at once")
    check(seen["contexts"] == [3], f"it makes contexts on {seen['contexts']}")
    return f"{got['name']} on {got['device']}"


def examine_without_gloo(tools, _):
    """What hosts tell one another goes by NCCL: the same losses, norms and
    first weights, which rank 0 hands out."""
    case = {"family": "gqa", "precision": "fp32", "mesh": "two",
            "accumulation": 1, "recompute": "none", "extra": "clip"}
    folder = os.path.join(tools.work, "without-gloo")
    cpu, gpu, ranks = cases.write(folder, case)
    path = {key: os.path.join(folder, key + ".json") for key in ("cpu", "gpu")}
    tools.plan(cpu, path["cpu"])
    tools.plan(gpu, path["gpu"])
    want = tools.run(path["cpu"], ranks, os.path.join(folder, "cpu.jsonl"))
    collectives = []
    for settings in ({}, {"ACCEL_RUN_WITHOUT_GLOO": "1"}):
        got, reports = tools.run_dry(path["gpu"], ranks, folder,
                                     environment=settings)
        in_order(reports)
        worst = same_values(got, want, cases.tolerance(case))
        collectives.append(len(reports[0]["collectives"]))
    check(collectives[1] > collectives[0],
          f"{collectives[1]} collectives without Gloo, {collectives[0]} with it")
    return (f"losses within {worst:.1e}, {collectives[1] - collectives[0]} "
            f"collectives more")


def examine_one_communicator(tools, _):
    """ACCEL_RUN_ONE_COMMUNICATOR=1: gathers go by the communicator of
    reductions, on their own stream; the same bits, and nothing else changes."""
    case = {"family": "gqa", "precision": "bf16", "mesh": "hybrid",
            "accumulation": 2, "recompute": "pointwise", "extra": "clip"}
    folder = os.path.join(tools.work, "one-communicator")
    _, gpu, ranks = cases.write(folder, case)
    path = os.path.join(folder, "gpu.json")
    tools.plan(gpu, path)
    (want, two), (got, one) = [
        tools.run_dry(path, ranks, folder, environment=settings)
        for settings in ({}, {"ACCEL_RUN_ONE_COMMUNICATOR": "1"})]
    in_order(one)
    same_values(got, want, 0)
    made = [reports[0]["counts"]["communicators"] for reports in (two, one)]
    check(made[0] - made[1] == 1, f"communicators: {made[0]}, then {made[1]}")
    check(len(one[0]["collectives"]) == len(two[0]["collectives"]),
          "other collectives")
    streams = {line.split(" on ")[1] for line in one[0]["collectives"]
               if "AllGather" in line or "ReduceScatter" in line}
    check(len(streams) > 1, f"gathers and reductions are on {streams}")
    return f"{made[1]} communicators, {made[0]} without"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--runtime", metavar="DIR",
                        help="with accel-run and the stand-ins (default: the "
                        "build's bin)")
    parser.add_argument("--report", help="write [{name, ok, detail}] as JSON")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-k", metavar="TEXT", nargs="+", default=[])
    parser.add_argument("-j", type=int, default=2, metavar="N")
    args = parser.parse_args()
    tools = Tools(args.build_dir, args.runtime)
    shutil.rmtree(tools.work, ignore_errors=True)
    os.makedirs(tools.work)
    table = steps_table.read()
    listed = list(cases.everything() if args.all else cases.chosen())
    listed += [("mutant-" + m, examine_mutant, m) for m in MUTANTS]
    listed.append(("move", examine_move, None))
    listed.append(("move-tensor", examine_move_tensor, None))
    listed.append(("deterministic", examine_deterministic, None))
    listed.append(("nccl-backend", examine_nccl_backend, None))
    listed.append(("without-gloo", examine_without_gloo, None))
    listed.append(("one-communicator", examine_one_communicator, None))
    listed += [(offload_name(c), examine_offload, c) for c in cases.OFFLOADED]
    listed += [("segments-" + c["name"], examine_segments, c)
               for c in gpu_jobs.SEGMENTS]
    listed += [("full-size-" + n, full_size.examine, n)
               for n in full_size.JOBS]
    if tools.is_pinned:  # torch's own, of .venv
        listed += [("trainer-" + n, trainer.examine, n)
                   for n in (trainer.JOBS if args.all else trainer.CHOSEN)]
        listed += [("launched-" + n, launched.examine, n)
                   for n in (launched.JOBS if args.all else launched.CHOSEN)]
    listed += [("gpu-check-" + n, examine_gpu_check, n)
               for n, _ in gpu_check().CASES]
    if not tools.is_pinned:
        listed += [("prepare-" + p, examine_prepare, p)
                   for p in prepare_cases.PRECISIONS]

    def name(case):
        return case[0] if isinstance(case, tuple) else cases.name(case)
    if args.k:
        listed = [c for c in listed if any(k in name(c) for k in args.k)]
    elif not args.all:
        assert cases.REPEATED <= {name(c) for c in listed}
        listed = [c for c in listed if name(c) not in cases.REPEATED]
    if args.list:
        print("\n".join(map(name, listed)))
        return 0
    place_mutants(tools)
    # Lazy imports are not made for threads.
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: F401
    start, results, counted = time.time(), [], {}

    def one(case):
        begin = time.time()
        try:
            said = (case[1](tools, case[2]) if isinstance(case, tuple)
                    else examine(tools, case))
            counts, detail = said if isinstance(said, tuple) else (None, said)
            # The full product has no table.
            update = args.update or name(case) not in table and args.all
            if counts and tools.is_pinned and not update:
                check(not (wrong := steps_table.changed(
                    table, name(case), counts)), wrong)
            return case, True, detail, counts, time.time() - begin
        except Exception as wrong:  # a case that breaks must not hide others
            text = str(wrong) if isinstance(wrong, Wrong) else repr(wrong)
            return case, False, text, None, time.time() - begin

    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        for case, ok, detail, counts, took in pool.map(one, listed):
            title = name(case)
            results.append({"name": title, "ok": ok, "detail": detail})
            if counts:
                counted[title] = counts
            print(f"{'ok  ' if ok else 'FAIL'} {title:<50} {took:5.1f} s  "
                  f"{detail if ok else ''}", flush=True)
            if not ok:
                print("     " + "\n     ".join(detail.splitlines()[-30:]),
                      flush=True)
    if args.update and not args.all and tools.is_pinned:
        keep = table if args.k else {n: row for n, row in table.items()
                                     if n in cases.REPEATED}
        steps_table.write({**keep, **counted})
    if args.report:
        with open(args.report, "w", encoding="utf-8") as f:
            json.dump(results, f)
    failed = sum(not r["ok"] for r in results)
    print(f"{len(results) - failed} passed, {failed} failed, "
          f"{time.time() - start:.0f} s", flush=True)
    return 5 if not results else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
