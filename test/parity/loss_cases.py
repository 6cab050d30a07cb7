"""The loss in pieces: the same numbers, less memory, as predicted."""
import json
import os

import harness
import jobs
from harness import check

TOLERANCE = 1e-6


def run_job(context, name, chunks, ranks=2, model=None, job=None, **options):
    """Plan, log and the first moments of AdamW after the last step, by rank
    file: (1 - beta1) times the gradients, after one step."""
    from safetensors.torch import load_file

    folder = context.path(name)
    made = jobs.make_job(folder, model or jobs.MODELS["gqa"], ranks=ranks,
                         checkpoint_every=1, max_grad_norm=1e9, **options)
    made.update(job or {})
    if chunks:
        made["loss_chunks"] = chunks
    jobs.write_job(folder, made)
    path = os.path.join(folder, "plan.json")
    plan = harness.plan(context, os.path.join(folder, "job.yaml"), path)
    summary = os.path.join(folder, "summary.json")
    log = harness.execute(context, path, ranks, os.path.join(folder, "log"),
                          "--summary", summary)
    harness.compare_memory(plan, summary,
                           2**17 if options.get("precision") else 0)
    moments = {}
    for root, _, files in os.walk(os.path.join(folder, "out")):
        if "step-" not in root:
            continue
        for file in sorted(files):
            if file.endswith(".safetensors"):
                tensors = load_file(os.path.join(root, file))
                moments.update({f"{file}:{key}": value
                                for key, value in tensors.items()
                                if key.endswith("exp_avg")})
    return plan, log, moments


def compare(context, whole, pieces, tolerance):
    """Losses, gradient norms and gradients of both; the worst difference."""
    worst = 0.0
    for a, b in zip(whole[1], pieces[1]):
        for key in ("loss", "grad_norm"):
            worst = max(worst, harness.relative(a[key], b[key]))
    check(worst <= tolerance, f"losses or norms differ by {worst:.1e}")
    check(whole[2] and set(whole[2]) == set(pieces[2]),
          f"moments {sorted(whole[2])} and {sorted(pieces[2])}")
    for key, value in whole[2].items():
        difference = (value - pieces[2][key]).norm() / max(
            float(value.norm()), 1e-30)
        worst = max(worst, float(difference))
        check(difference <= tolerance, f"{key} differs by {difference:.1e}")
    return worst


def peak(plan):
    return plan["predicted"]["memory"]["own_peak_bytes"]


def equal(model, chunks, tolerance=TOLERANCE, **options):
    def case(context):
        config = jobs.MODELS[model] if isinstance(model, str) else model
        whole = run_job(context, "whole", 0, model=config, steps=1, **options)
        pieces = run_job(context, "pieces", chunks, model=config, steps=1,
                         **options)
        names = {f["name"] for f in pieces[0]["functions"]}
        check(not any(n.endswith("Head.forward") for n in names),
              f"the head has a forward of its own: {sorted(names)}")
        worst = compare(context, whole, pieces, tolerance)
        return f"{worst:.1e}, peak {peak(whole[0])} to {peak(pieces[0])}"
    return case


BIG = jobs.variant(vocab_size=4099, num_hidden_layers=1)


def smaller(context):
    """Where logits are the peak, pieces lower it; auto takes as few as do."""
    common = dict(model=BIG, steps=1, sequence_length=64, micro_batch=4)
    whole = run_job(context, "whole", 0, **common)
    auto = run_job(context, "auto", "auto", **common)
    compare(context, whole, auto, TOLERANCE)
    check(peak(auto[0]) < 0.7 * peak(whole[0]),
          f"peak {peak(whole[0])}, in pieces {peak(auto[0])}")
    decision = next(d for d in auto[0]["decisions"] if d["what"] == "loss")
    chunks = int(decision["choice"].split()[0])
    check(chunks > 1 and "auto" in decision["why"], str(decision))
    one_less = run_job(context, "less", chunks - 1, **common)
    check(peak(one_less[0]) >= peak(auto[0]),
          f"{chunks - 1} pieces have a lower peak than {chunks}")
    return f"{chunks} pieces, peak {peak(whole[0])} to {peak(auto[0])}"


def weighed(context):
    """Where the table is nearly all, more pieces always lower the peak a
    little: auto weighs that against seconds, unless there is a budget."""
    model = jobs.variant(vocab_size=128256, hidden_size=128,
                         intermediate_size=512, num_hidden_layers=2,
                         num_key_value_heads=4, tie_word_embeddings=True,
                         max_position_embeddings=512)
    jobs.write_config(context.path("model"), model)
    jobs.make_tokens(context.path("train.bin"), 2000, 65000)
    job = {"accelerate": jobs.accelerate_config("single", 1, ""),
           "model": "model", "init": {"seed": 0},
           "data": {"tokens": "train.bin", "dtype": "uint16",
                    "sequence_length": 512, "micro_batch": 1},
           "optimizer": {"name": "adamw", "lr": 1e-3},
           "schedule": {"steps": 1}, "target": "cpu"}
    path = jobs.write_job(context.path(), job)

    def chosen(name, *extra):
        out = context.path(name + ".json")
        code = 2 if name == "impossible" else 0
        harness.run([context.binary("accel-opt"), "plan", path, "--emit",
                     "plan", "-o", out, "--loss-chunks", *extra], expect=code)
        with open(out, encoding="utf-8") as f:
            plan = json.load(f)
        why = next((d for d in plan["decisions"] if d["what"] == "loss"),
                   {"choice": "1", "why": ""})
        return int(why["choice"].split()[0]), peak(plan), why["why"]

    _, whole, _ = chosen("whole", "1")
    _, least, _ = chosen("many", "128")
    pieces, bytes_, why = chosen("auto", "auto")
    check(2 <= pieces <= 32 and bytes_ < 0.5 * whole,
          f"{pieces} pieces with {bytes_} of {whole} bytes")
    check(least < bytes_, "128 pieces do not have a lower peak")
    check("a step instead of" in why and f"with {2 * pieces} chunks" in why, why)
    more, lower, _ = chosen("tight", "auto", "--memory-budget", "370MiB")
    check(more > pieces and lower < bytes_,
          f"{more} pieces, {lower} bytes under a budget")
    _, _, why = chosen("impossible", "auto", "--memory-budget", "200MiB")
    check("no number of chunks makes it fit" in why, why)
    return f"{pieces} pieces, {more} under a budget"


def ignored(context):
    """Labels that do not count: some in each piece, all of a piece, all."""
    import numpy as np

    rows, length = 8, 32
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 257, size=(rows, length))
    labels = rng.integers(0, 257, size=(rows, length))
    labels[:2, :20] = -100
    labels[2] = -100
    labels[3, 5:9] = -100
    results = []
    for name, chunks in (("whole", 0), ("pieces", 4)):
        os.makedirs(context.path(name), exist_ok=True)
        for file, array in (("ids", ids), ("labels", labels)):
            np.save(context.path(name, file + ".npy"), array)
        data = {"arrays": {"input_ids": "ids.npy", "labels": "labels.npy"},
                "sequence_length": length, "micro_batch": 4}
        results.append(run_job(context, name, chunks, ranks=2, steps=1,
                               job={"data": data}))
    return f"{compare(context, *results, TOLERANCE):.1e}"


def refused(context):
    """Numbers of pieces that are none, and other executors, whose pieces are
    the script's."""
    jobs.make_job(context.path("job"), jobs.MODELS["gqa"], steps=1)
    path = context.path("job", "job.yaml")
    command = [context.binary("accel-opt"), "plan", path]
    for text, code in (("0", 64), ("many", 64), ("100000", 1)):
        out = harness.run(command + ["--loss-chunks", text], expect=code)
        check("chunk" in out, out)
    command += ["--executor", "fsdp2"]
    out = harness.run(command + ["--loss-chunks", "100000"], expect=1)
    check("chunk" in out and "rows" in out, out)
    plans = [json.loads(harness.run(command + [
        "--target", "cpu", "--loss-chunks", text, "--format", "json"]))
        for text in ("1", "4")]
    seconds = [plan["time"]["step_s"] for plan in plans]
    peaks = [plan["memory"]["peak_bytes"] for plan in plans]
    # The kernel of all pieces has no operators over the logits.
    check(seconds[1] != seconds[0] and peaks[1] <= peaks[0],
          f"steps of {seconds} s and {peaks} bytes")


GPT2 = dict(jobs.GPT2, resid_pdrop=0.1, embd_pdrop=0.1)

CASES = [
    ("gqa-3", equal("gqa", 3)),
    ("tied-5", equal("tied", 5, ranks=3)),
    ("gpt2-dropout-2", equal(GPT2, 2)),
    ("accumulated", equal("tied", 4, accumulation=3)),
    ("single", equal("gqa", 4, kind="single", ranks=1)),
    # bf16 rounds the table's gradient once a piece instead of once.
    ("bf16", equal("gqa", 4, tolerance=5e-3,
                   precision={"param": "bf16", "reduce": "fp32",
                              "output": "bf16"})),
    ("auto", smaller),
    ("auto-weighs-time", weighed),
    ("ignored-labels", ignored),
    ("refused", refused),
]
