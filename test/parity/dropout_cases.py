"""Dropout: drawn by key, so repeated where the backward computes again, the
same on any mesh and after a break, and the one that the mathematics wants."""
import json
import os
import shutil

import export_cases
import harness
import jobs
from harness import check

GPT2 = dict(jobs.GPT2, n_embd=64, n_layer=2, resid_pdrop=0.1, embd_pdrop=0.2,
            attn_pdrop=0.15)


def plan_and_run(context, name, ranks, *extra, job=None, **options):
    """One job in a folder of its own; its plan and the log."""
    folder = context.path(name)
    made = jobs.make_job(folder, options.pop("model", GPT2), ranks=ranks,
                         **options)
    made.update(job or {})
    jobs.write_job(folder, made)
    path = os.path.join(folder, "plan.json")
    plan = harness.plan(context, os.path.join(folder, "job.yaml"), path)
    log = harness.execute(context, path, ranks,
                          os.path.join(folder, "log.jsonl"), "--summary",
                          os.path.join(folder, "summary.json"), *extra)
    harness.compare_memory(plan, os.path.join(folder, "summary.json"))
    return plan, log


def losses(log):
    return [line["loss"] for line in log]


def draws(plan, program):
    """Calls of a program that draw, as (path, number)."""
    steps = next(p for p in plan["programs"] if p["name"] == program)["instructions"]
    return [(s.get("where"), s["draw"]) for s in steps if "draw" in s]


def recomputed(context):
    """Whatever is recomputed draws what the forward drew."""
    reference = None
    for mode in ("none", "pointwise", "full", "budget"):
        options = {"activation_checkpointing": mode}
        job = {}
        if mode == "budget":
            options, job = {}, {"activation_budget": 60000}
        plan, log = plan_and_run(context, mode, 2, steps=8, job=job, **options)
        values = losses(log)
        reference = reference or values
        check(values == reference,
              f"with {mode} the losses are {values}, else {reference}")
    drawn = draws(plan, "train")
    check(len(drawn) == 6 and len(set(drawn)) == 3,
          f"three calls and their backwards draw, not {drawn}")
    check(not draws(plan, "eval"), "the evaluation draws")
    return f"bit-equal, loss {reference[0]:.4f} to {reference[-1]:.4f}"


def anywhere(context):
    """The micro-batch decides, not the rank or the slot that it falls to."""
    common = dict(steps=6, micro_batch=1)
    _, two = plan_and_run(context, "ranks", 2, **common)
    _, one = plan_and_run(context, "slots", 1, kind="single", accumulation=2,
                          **common)
    worst = max(harness.relative(a, b)
                for a, b in zip(losses(two), losses(one)))
    check(worst < 1e-5, f"losses differ by {worst:.1e}")
    _, other = plan_and_run(context, "seed", 2, job={"dropout_seed": 1},
                            **common)
    check(all(harness.relative(a, b) > 1e-5
              for a, b in zip(losses(two), losses(other))),
          "another seed gives the same losses")
    # The same data in every micro-batch, nothing learnt: masks alone differ.
    _, still = plan_and_run(context, "still", 1, kind="single", steps=4, lr=0.0,
                            micro_batch=1, tokens=33)
    check(len(set(losses(still))) == 4, f"steps draw the same: {losses(still)}")
    return f"{worst:.1e}"


def resumed(context):
    """A run that stops and goes on is the unbroken one."""
    folder = context.path("job")
    jobs.make_job(folder, GPT2, ranks=2, steps=12, checkpoint_every=6,
                  accumulation=2)
    path, out = os.path.join(folder, "plan.json"), os.path.join(folder, "out")
    harness.plan(context, os.path.join(folder, "job.yaml"), path)
    whole = harness.execute(context, path, 2, context.path("whole.jsonl"))
    again = harness.execute(context, path, 2, context.path("again.jsonl"))
    check(losses(whole) == losses(again), "two runs differ")
    shutil.rmtree(out)
    log = context.path("resumed.jsonl")
    harness.execute(context, path, 2, log, "--steps", "6")
    got = harness.execute(context, path, 2, log, "--resume", "auto")
    check(losses(got) == losses(whole),
          f"resumed {losses(got)}, unbroken {losses(whole)}")


def evaluated(context):
    """Evaluation has no dropout, and 0 is the graph without it."""
    evaluation = {"every": 1, "batches": 2}
    common = dict(steps=2, lr=0.0, evaluation=evaluation)
    _, dropped = plan_and_run(context, "dropped", 2, **common)
    off = dict(GPT2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    _, kept = plan_and_run(context, "kept", 2, model=off, **common)
    # Attention without dropout has a kernel of its own, also in evaluation.
    check(dropped[0]["eval_loss"] == kept[0]["eval_loss"],
          f"evaluated to {dropped[0]['eval_loss']!r} with dropout, "
          f"{kept[0]['eval_loss']!r} without")
    check(dropped[0]["loss"] != kept[0]["loss"], "nothing was dropped")
    for name, expected in (("dropped", True), ("kept", False)):
        text = harness.run([context.binary("accel-opt"), "plan",
                            context.path(name, "job.yaml"), "--compile-to",
                            "scheduled"])
        check(("aten.dropout" in text) == expected,
              f"{name}: dropout in the program: {not expected}")


def philox(key, block):
    """Philox 4x32-10 of a 64-bit key and [blocks] 128-bit counters."""
    import numpy as np

    x = [np.array(part, dtype=np.uint64) for part in block]
    k0, k1 = np.uint64(key & 0xffffffff), np.uint64(key >> 32)
    low = np.uint64(0xffffffff)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * x[0], np.uint64(0xCD9E8D57) * x[2]
        x = [(b >> np.uint64(32)) ^ x[1] ^ k0, b & low,
             (a >> np.uint64(32)) ^ x[3] ^ k1, a & low]
        k0 = (k0 + np.uint64(0x9E3779B9)) & low
        k1 = (k1 + np.uint64(0xBB67AE85)) & low
    return np.stack(x, axis=-1).reshape(-1)


def mix(x):
    mask = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def scale_mask(shape, p, seed, micro_batch, call, key):
    """0 or 1 / (1 - p) for each element, as docs/guide.md says it."""
    import numpy as np
    import torch

    count = int(np.prod(shape))
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    low = np.uint64(0xffffffff)
    ones = np.ones_like(blocks)
    words = philox((mix((mix(seed) + micro_batch) & ((1 << 64) - 1))),
                   [blocks & low, blocks >> np.uint64(32),
                    ones * np.uint64(key), ones * np.uint64(call)])[:count]
    kept = words >= np.uint64(round(p * 2**32))
    return torch.from_numpy(kept.reshape(shape)).float() / (1 - p)


def drawn_in_order(plan):
    """(number of the call, key in its function) of each draw of a forward."""
    functions = {f["name"]: f for f in plan["functions"]}
    program = next(p for p in plan["programs"]
                   if p["name"] in ("first", "train"))
    order = []
    for step in program["instructions"]:
        if "draw" not in step or ".forward" not in step["function"]:
            continue
        for instruction in functions[step["function"]]["instructions"]:
            if instruction["op"] == "accel::dropout":
                key = next(a for a in instruction["args"]
                           if isinstance(a, dict) and "key" in a)["key"]
                order.append((step["draw"], key))
    return order


def torch_losses(folder, seed, ranks):
    """The job's losses by transformers and torch, with the masks of the keys:
    the calls of F.dropout draw, one after the other, as the plan says."""
    import fsdp2
    import torch
    import transformers
    import yaml

    with open(os.path.join(folder, "job.yaml"), encoding="utf-8") as f:
        job = yaml.safe_load(f)
    with open(os.path.join(folder, "plan.json"), encoding="utf-8") as f:
        order = drawn_in_order(json.load(f))
    torch.set_num_threads(1)
    arrays = "arrays" in job["data"]
    model = fsdp2.load_model(transformers, os.path.join(folder, "model"),
                             arrays, dtype=torch.float32,
                             attn_implementation="eager")
    model = fsdp2.adapt(model, job, folder)
    model.train()
    place = {}

    def dropout(x, p=0.5, training=True, inplace=False):
        if p == 0:
            return x
        call, key = place["left"].pop(0)
        return x * scale_mask(tuple(x.shape), p, seed, place["batch"], call,
                              key)

    torch.nn.functional.dropout = dropout
    options = job["optimizer"]
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad],
        lr=options["lr"], betas=tuple(options["betas"]), eps=options["eps"],
        weight_decay=options["weight_decay"])
    data = (fsdp2.Arrays(folder, job["data"]) if arrays else
            fsdp2.Tokens(os.path.join(folder, "train.bin"), job["data"]))
    balance = getattr(model.config, "router_aux_loss_coef", 0.0)
    slots = job["gradient_accumulation_steps"] * ranks
    result = []
    for step in range(job["schedule"]["steps"]):
        total = 0.0
        optimizer.zero_grad()
        for slot in range(slots):
            place.update(batch=step * slots + slot, left=list(order))
            batch = data.micro_batch(place["batch"])
            loss = model(**batch).loss if arrays else \
                fsdp2.causal_loss(model(batch[0]), batch[1], balance)
            check(not place["left"], f"{len(place['left'])} draws too many")
            (loss / slots).backward()
            total += loss.item() / slots
        optimizer.step()
        result.append(total)
    return result


def as_torch(model, **options):
    """transformers with the same masks has the same losses and so gradients."""
    def case(context):
        seed, ranks = 3, 2
        common = dict(steps=6, accumulation=2, micro_batch=1)
        common.update(options)
        _, log = plan_and_run(context, "job", ranks, model=model,
                              job={"dropout_seed": seed}, **common)
        want = harness.in_python(torch_losses,
                                 [({}, (context.path("job"), seed, ranks))],
                                 context.path("torch.log"))[0]
        worst = max(harness.relative(a, b) for a, b in zip(losses(log), want))
        check(worst < 2e-5, f"losses {losses(log)}\nPyTorch {want}")
        return f"loss {worst:.1e}"
    return case


def family(name, mesh=False, **probabilities):
    """A family's dropout equals transformers' under the same masks, and depends
    neither on what is recomputed, nor on a break, nor on the `mesh`."""
    def case(context):
        seed, ranks, steps = 3, 2, 4
        job = {"dropout_seed": seed}
        if name in jobs.ENCODERS:
            made = jobs.make_array_job(
                context.path("job"), name, ranks=ranks, steps=steps,
                model_config={**jobs.ENCODERS[name], **probabilities})
        else:
            made = jobs.make_job(
                context.path("job"), {**jobs.MODELS[name], **probabilities},
                ranks=ranks, steps=steps, micro_batch=1)
        reference = planned(context, made, "plan", ranks, "--summary",
                            context.path("summary.json"), **job,
                            activation_checkpointing="none",
                            checkpoint={"dir": "out", "every": 2, "keep": 2})
        with open(context.path("job", "plan.json"), encoding="utf-8") as f:
            harness.compare_memory(json.load(f), context.path("summary.json"))
        want = harness.in_python(torch_losses,
                                 [({}, (context.path("job"), seed, ranks))],
                                 context.path("torch.log"))[0]
        worst = max(harness.relative(a, b) for a, b in zip(reference, want))
        check(worst < 2e-5, f"losses {reference}\nPyTorch {want}")
        again = planned(context, made, "full", ranks, "--resume",
                        context.path("job", "out", "step-00000002"), **job,
                        activation_checkpointing="full")
        check(again[-2:] == reference[2:], f"resumed and recomputed {again}, "
              f"without either {reference}")
        if not mesh:
            return f"loss {worst:.1e}"
        single = jobs.accelerate_config("single", 1, "")
        slots = planned(context, made, "slots", 1, **job, accelerate=single,
                        gradient_accumulation_steps=ranks, checkpoint=None)
        moved = max(harness.relative(a, b) for a, b in zip(reference, slots))
        check(moved < 1e-5, f"on one rank {slots}, on two {reference}")
        return f"loss {worst:.1e}, another mesh {moved:.1e}"
    return case


def planned(context, job, name, ranks, *extra, **changes):
    """Losses of `job` with some keys changed."""
    folder = context.path("job")
    made = {k: v for k, v in {**job, **changes}.items() if v is not None}
    path = jobs.write_job(folder, made, "job.yaml" if name == "plan"
                          else name + ".yaml")
    plan = os.path.join(folder, name + ".json")
    harness.plan(context, path, plan)
    return losses(harness.execute(context, plan, ranks,
                                  context.path(name + ".jsonl"), *extra))


def llama(context):
    """attention_dropout, with grouped heads and in bf16."""
    model = jobs.variant(attention_dropout=0.2, num_hidden_layers=2)
    _, plain = plan_and_run(context, "plain", 2, model=model, steps=6,
                            activation_checkpointing="none")
    _, again = plan_and_run(context, "again", 2, model=model, steps=6,
                            activation_checkpointing="full")
    check(losses(plain) == losses(again), "recomputation draws otherwise")
    _, off = plan_and_run(context, "off", 2, steps=6,
                          model=dict(model, attention_dropout=0.0))
    check(losses(plain) != losses(off), "nothing was dropped")
    return f"{losses(plain)[-1]:.4f}, without {losses(off)[-1]:.4f}"


NET = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(97, 16)
        self.head = torch.nn.Linear(16, 97)
        self.drop = torch.nn.{kind}(0.25)
    def forward(self, input_ids, labels):
        x = self.head(self.drop(self.table(input_ids)))
        return torch.nn.functional.cross_entropy(x.flatten(0, 1),
                                                 labels.flatten())
"""


def _export(folder, sizes):
    """All in one process: torch.export takes seconds to start."""
    import torch

    for model, name in (("model", "gpt2"),
                        ("Dropout.py:Net", "Dropout"),
                        ("AlphaDropout.py:Net", "AlphaDropout")):
        export_cases._export([os.path.join(folder, model), "-o",
                              os.path.join(folder, name + ".pt2"), "--dropout",
                              *sizes])
    program = torch.export.load(os.path.join(folder, "Dropout.pt2"))
    torch.export.save(program.run_decompositions(),
                      os.path.join(folder, "core.pt2"))


def exported(context):
    """Dropout of an exported program, as exported and decomposed, draws as that
    of the config.json; other random operators are refused."""
    folder, seed = context.path("job"), {"dropout_seed": 3}
    made = jobs.make_job(folder, GPT2, ranks=2, steps=4)
    del made["checkpoint"]
    want = planned(context, made, "plan", 2, **seed)
    data = made["data"]
    sizes = ("--weights", "--batch", str(data["micro_batch"]), "--seq-len",
             str(data["sequence_length"]))
    for kind in ("Dropout", "AlphaDropout"):
        with open(os.path.join(folder, kind + ".py"), "w",
                  encoding="utf-8") as f:
            f.write(NET.format(kind=kind))
    harness.in_python(_export, [({}, (folder, sizes))],
                      context.path("export.log"))
    got = planned(context, made, "exported", 2, model="gpt2.pt2", **seed)
    check(got == want, f"exported {got}, of config.json {want}")

    results = {}
    made["accelerate"] = jobs.accelerate_config("ddp", 2, "")
    jobs.make_tokens(os.path.join(folder, "train.bin"), 2000, 97)
    for name in ("Dropout", "core"):
        results[name] = planned(context, made, name, 2, model=name + ".pt2",
                                **seed)
    other = planned(context, made, "other", 2, model="core.pt2")
    check(other != results["core"], "core.pt2 drops nothing")
    worst = max(harness.relative(a, b) for a, b in zip(*results.values()))
    check(worst < 1e-6, f"losses {results}")
    path = jobs.write_job(folder, dict(made, model="AlphaDropout.pt2"))
    text = harness.run([context.binary("accel-opt"), "plan", path], expect=4)
    check("alpha_dropout" in text and "draws random numbers" in text, text)
    return "bit-equal to config.json"


def refused(context):
    """Probabilities that are none, and plans whose draws are wrong."""
    jobs.make_job(context.path("job"), GPT2, steps=1)
    path = context.path("plan.json")
    plan = harness.plan(context, context.path("job", "job.yaml"), path)
    for change in ("lost", "shared"):
        broken = json.loads(json.dumps(plan))
        calls = [s for p in broken["programs"] for s in p["instructions"]
                 if "draw" in s]
        if change == "lost":
            del calls[0]["draw"]
        else:
            calls[1]["draw"] = calls[0]["draw"]
        with open(context.path("broken.json"), "w", encoding="utf-8") as f:
            json.dump(broken, f)
        text = harness.run([context.binary("accel-run"),
                            context.path("broken.json"), "--nproc", "2"],
                           expect=1)
        check("draw" in text or "hash" in text, text)
    jobs.write_spelled_config(context.path("bad"), dict(GPT2, attn_pdrop=1.5))
    text = harness.run([context.binary("accel-opt"), "plan",
                        context.path("job", "job.yaml"), "--model",
                        context.path("bad")], expect=1)
    check("attn_pdrop" in text and "between 0 and 1" in text, text)


CASES = [
    ("recomputed", recomputed),
    ("any-mesh", anywhere),
    ("resumed", resumed),
    ("evaluated", evaluated),
    ("as-torch-gpt2", as_torch(GPT2)),
    ("as-torch-llama", as_torch(jobs.variant(attention_dropout=0.2,
                                             num_hidden_layers=2))),
    ("llama-attention", llama),
    ("bert", family("bert", mesh=True, hidden_dropout_prob=0.1,
                    attention_probs_dropout_prob=0.2)),
    ("roberta", family("roberta", hidden_dropout_prob=0.1,
                       attention_probs_dropout_prob=0.2,
                       classifier_dropout=0.3)),
    ("vit", family("vit", hidden_dropout_prob=0.1,
                   attention_probs_dropout_prob=0.2)),
    ("t5", family("t5", mesh=True, dropout_rate=0.1)),
    ("whisper", family("whisper", dropout=0.1, attention_dropout=0.2,
                       activation_dropout=0.15)),
    ("mixtral", family("mixtral", mesh=True, attention_dropout=0.2)),
    ("qwen3-moe", family("qwen3-moe", attention_dropout=0.2)),
    ("exported", exported),
    ("refused", refused),
]
