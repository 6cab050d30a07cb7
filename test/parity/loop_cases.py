"""What the training loop does beside steps: data, schedules, evaluations.

Documents within samples, sampling and metrics are compared with transformers,
schedules with its get_scheduler, the order of batches with Accelerate's
samplers.
"""
import itertools
import math
import os
import subprocess

import numpy as np

import harness
import jobs
from harness import check

EOS = 7
LENGTH, BATCH = 48, 2


def write_documents(path, count, vocab, seed=3):
    """Documents of 5 to 40 tokens, each ended by EOS."""
    random = np.random.default_rng(seed)
    ids = []
    while len(ids) < count:
        body = random.integers(8, vocab, random.integers(4, 40))
        ids += [*body.tolist(), EOS]
    np.asarray(ids[:count], np.uint16).tofile(path)


def samples_of(path, length):
    """(ids, positions, labels) of each sample, as docs/guide.md says."""
    tokens = np.fromfile(path, np.uint16).astype(np.int64)
    for begin in range(0, len(tokens) - length, length):
        ids, after = (tokens[begin + i:begin + i + length] for i in (0, 1))
        positions = np.zeros(length, np.int64)
        for i in range(1, length):
            positions[i] = 0 if ids[i - 1] == EOS else positions[i - 1] + 1
        yield ids, positions, np.where(ids == EOS, -100, after)


def load(folder):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        os.path.join(folder, "model"), dtype=torch.float32)
    model.config.use_cache = False
    return torch, model


def logits_of(torch, model, ids, positions):
    """Documents are masked by transformers, from their positions; its OPT does
    not look at them, so it is told the mask."""
    masks = {}
    if model.config.model_type == "opt":
        length = ids.shape[1]
        start = torch.arange(length) - positions
        seen = (start[:, :, None] == start[:, None, :]).tril()
        masks["attention_mask"] = torch.where(
            seen, 0.0, torch.finfo(torch.float32).min)[:, None]
    return model(input_ids=ids, position_ids=positions, **masks).logits.float()


def loss_of(torch, model, rows):
    ids, positions, labels = (torch.tensor(np.stack(x)) for x in zip(*rows))
    logits = logits_of(torch, model, ids, positions)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                             labels.flatten())


def train_on_documents(folder, steps, lr):
    """Losses of AdamW steps of one process."""
    torch, model = load(folder)
    model.train()
    rows = list(samples_of(os.path.join(folder, "train.bin"), LENGTH))
    # A document's logits are the same alone: the reference does mask.
    ids, positions, _ = rows[0]
    last = int(np.flatnonzero(positions == 0)[-1])
    check(last > 0, "the first sample has one document")
    with torch.no_grad():
        whole = logits_of(torch, model, torch.tensor(ids[None]),
                          torch.tensor(positions[None]))
        alone = model(input_ids=torch.tensor(ids[None, last:])).logits
    check(torch.allclose(whole[:, last:], alone, atol=1e-4),
          "the reference lets documents see each other")
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95),
                                  eps=1e-8, weight_decay=0.1)
    losses = []
    for step in range(steps):
        batch = [rows[(step * BATCH + i) % len(rows)] for i in range(BATCH)]
        loss = loss_of(torch, model, batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def documents(model, by_starts=False, **options):
    config = jobs.FAMILIES.get(model) or jobs.PEAKED[model]
    steps, lr = 6, 2e-3

    def run(context):
        job = jobs.make_job(context.path(), config, kind="single", ranks=1,
                            steps=steps, sequence_length=LENGTH,
                            micro_batch=BATCH, lr=lr, **options)
        write_documents(context.path("train.bin"), 3000, config["vocab_size"])
        job["data"]["documents"] = {"eos": EOS}
        if by_starts:
            tokens = np.fromfile(context.path("train.bin"), np.uint16)
            np.save(context.path("starts.npy"),
                    np.flatnonzero(tokens[:-1] == EOS) + 1)
            job["data"]["documents"] = {"starts": "starts.npy"}
        jobs.write_job(context.path(), job)
        plan_path = context.path("plan.json")
        plan = harness.plan(context, context.path("job.yaml"), plan_path)
        got = harness.execute(context, plan_path, 1, context.path("run.jsonl"),
                              "--summary", context.path("summary.json"))
        [want] = harness.in_python(
            train_on_documents, [({}, (context.path(), steps, lr))],
            context.path("reference.out"))
        worst = max(harness.relative(a["loss"], b) for a, b in zip(got, want))
        check(worst < 1e-5, f"losses {[a['loss'] for a in got]}, "
                            f"transformers {want}")
        memory = harness.compare_memory(plan, context.path("summary.json"),
                                        128 * 1024)
        return f"loss {worst:.1e}, {memory}"

    return run


def rates(decay, steps, warmup, lr, minimum, settings):
    """transformers' rate at each step, from 0."""
    import torch
    import transformers

    names = {"power": "power", "cycles": "num_cycles",
             "decay_steps": "num_decay_steps", "decay_shape": "decay_type",
             "timescale": "timescale"}
    options = {names[key]: value for key, value in settings.items()}
    if decay == "polynomial":
        options["lr_end"] = minimum
    if decay == "warmup_stable_decay":
        options["min_lr_ratio"] = minimum / lr
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    schedule = transformers.get_scheduler(
        decay, optimizer, num_warmup_steps=warmup, num_training_steps=steps,
        scheduler_specific_kwargs=options)
    result = []
    for _ in range(steps):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return result


def schedules(context):
    """Each decay at each step; a step of the warmup is transformers' next."""
    steps, warmup, lr = 24, 5, 1e-3
    job = jobs.make_job(context.path(), jobs.PEAKED["gqa"], kind="single",
                        ranks=1, steps=steps, sequence_length=8, micro_batch=1,
                        lr=lr)
    job.pop("checkpoint")
    cases = [("linear", 0, {}), ("cosine", 0, {}),
             ("cosine_with_restarts", 0, {"cycles": 3}),
             ("polynomial", 1e-4, {"power": 2.0}), ("inverse_sqrt", 0, {}),
             ("inverse_sqrt", 0, {"timescale": 9}),
             ("warmup_stable_decay", 1e-4, {"decay_steps": 8}),
             ("warmup_stable_decay", 0,
              {"decay_steps": 8, "decay_shape": "1-sqrt"})]
    calls = [({}, (decay, steps, warmup, lr, minimum, settings))
             for decay, minimum, settings in cases]
    wanted = harness.in_python(rates, calls, context.path("rates.out"))
    for (decay, minimum, settings), want in zip(cases, wanted):
        job["schedule"] = {"steps": steps, "warmup_steps": warmup,
                           "decay": decay, **settings}
        if minimum:
            job["schedule"]["min_lr"] = minimum
        jobs.write_job(context.path(), job)
        harness.plan(context, context.path("job.yaml"),
                     context.path("plan.json"))
        log = context.path("run.jsonl")
        harness.run([context.binary("accel-run"), context.path("plan.json"),
                     "--log", log])
        got = [record["lr"] for record in harness.read_log(log)]
        # Its warmup begins at min_lr where there is one.
        first = warmup if minimum and decay == "warmup_stable_decay" else 0
        for step in range(first, steps):
            expected = want[step + 1 if step < warmup else step]
            check(abs(got[step] - expected) <= 1e-12 * lr + 1e-9 * expected,
                  f"{decay} {settings}: step {step} has {got[step]!r}, "
                  f"transformers {expected!r}")
    return f"{len(cases)} schedules of {steps} steps"


def orders(context):
    """Epochs that end with whole batches, as Accelerate's samplers end them."""
    from accelerate.data_loader import BatchSamplerShard
    from torch.utils.data import BatchSampler

    asked, wanted = [], []
    for samples in (3, 5, 8, 12, 13, 31):
        tokens = context.path(f"{samples}.bin")
        np.arange(samples + 1, dtype=np.int64).tofile(tokens)
        for batch, ranks, drop, split in itertools.product(
                (1, 2, 3), (1, 2, 3), (True, False), (True, False)):
            # Accelerate repeats a data set only within one turn.
            if not drop and samples < batch * ranks:
                continue
            whole = BatchSampler(range(samples),
                                 batch * (ranks if split else 1), drop)
            want = [[i for each in BatchSamplerShard(
                whole, ranks, rank, split_batches=split) for i in each]
                for rank in range(ranks)]
            if want[0]:
                wanted.append(want)
                asked.append(f"{tokens} 1 {batch} {ranks} "
                             f"{'drop' if drop else 'repeat'} "
                             f"{len(want[0]) // batch}")
    done = subprocess.run([context.binary("data-order")], text=True,
                          input="\n".join(asked) + "\n", timeout=300,
                          capture_output=True)
    check(done.returncode == 0, done.stderr)
    lines = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    for text, want in zip(asked, wanted):
        got, lines = lines[:len(want)], lines[len(want):]
        check(got == want, f"{text}: {got}, Accelerate {want}")
    check(len(asked) > 100 and not lines,
          f"{len(asked)} orders, {len(lines)} lines are left")
    return f"{len(asked)} orders"


def metrics_of(folder, prompts, new):
    """Loss, accuracy and predictions over val.bin, and greedy texts."""
    torch, _ = load(folder)
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(
        os.path.join(folder, "out", "model"), dtype=torch.float32).eval()
    tokens = np.fromfile(os.path.join(folder, "val.bin"),
                         np.uint16).astype(np.int64)
    count = (len(tokens) - 1) // LENGTH
    ids = torch.tensor(tokens[:count * LENGTH].reshape(count, LENGTH))
    labels = torch.tensor(tokens[1:count * LENGTH + 1].reshape(count, LENGTH))
    with torch.no_grad():
        logits = model(input_ids=ids).logits.float()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                                 labels.flatten()).item()
        said = logits.argmax(-1)
        texts = model.generate(
            ids[:prompts[0], :prompts[1]], max_new_tokens=new, do_sample=False,
            use_cache=False, eos_token_id=None, pad_token_id=0)
    margin = logits.topk(2, -1).values
    return (loss, (said == labels).float().mean().item(), said.tolist(),
            (margin[..., 0] - margin[..., 1]).min().item(),
            texts[:, prompts[1]:].tolist())


def evaluation(context):
    """All of the data, of which the last batches are not whole, on two ranks."""
    config = jobs.PEAKED["gqa"]
    job = jobs.make_job(context.path(), config, ranks=2, steps=8,
                        sequence_length=LENGTH, micro_batch=BATCH, lr=5e-3,
                        evaluation={"every": 8, "batches": 0})
    jobs.make_tokens(context.path("val.bin"), 10 * LENGTH + 3,
                     config["vocab_size"], seed=5)
    job["eval"].update(metrics=["accuracy", "perplexity"],
                       predictions="said.jsonl")
    job["sample"] = {"count": 3, "prompt_tokens": 9, "new_tokens": 11}
    jobs.write_job(context.path(), job)
    write_tokenizer(context.path("model", "tokenizer.json"),
                    config["vocab_size"])
    plan_path = context.path("plan.json")
    plan = harness.plan(context, context.path("job.yaml"), plan_path)
    got = harness.execute(context, plan_path, 2, context.path("run.jsonl"),
                          "--summary", context.path("summary.json"))[-1]
    [(loss, accuracy, said, margin, texts)] = harness.in_python(
        metrics_of, [({}, (context.path(), (3, 9), 11))],
        context.path("reference.out"))
    check(harness.relative(got["eval_loss"], loss) < 1e-5,
          f"loss {got['eval_loss']!r}, transformers {loss!r}")
    check(harness.relative(got["eval_perplexity"], math.exp(loss)) < 1e-4,
          f"perplexity {got['eval_perplexity']!r} of loss {loss!r}")
    check(margin > 1e-5, "two logits are too near for one answer")
    check(abs(got["eval_accuracy"] - accuracy) < 1e-6,
          f"accuracy {got['eval_accuracy']!r}, transformers {accuracy!r}")
    records = harness.read_log(context.path("said.jsonl"))
    check([r["sample"] for r in records] == list(range(10)),
          f"samples {[r['sample'] for r in records]}")
    check([r["prediction"] for r in records] == said,
          "predictions differ from transformers'")
    ids = [sample["ids"] for sample in got["samples"]]
    check(ids == texts, f"greedy texts {ids}, transformers {texts}")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(context.path("model", "tokenizer.json"))
    for sample in got["samples"]:
        check(sample["text"] == tokenizer.decode(sample["ids"]) and
              sample["prompt"] == tokenizer.decode(sample["prompt_ids"]),
              f"{sample}: tokenizers says {tokenizer.decode(sample['ids'])!r}")
    memory = harness.compare_memory(plan, context.path("summary.json"))
    return f"loss {harness.relative(got['eval_loss'], loss):.1e}, {memory}"


def write_tokenizer(path, vocab):
    """A byte-level tokenizer of `vocab` tokens, some of several bytes and
    some of halves of characters."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = {character: i for i, character in enumerate(alphabet)}
    tokens["<end>"] = len(tokens)
    for a in alphabet:
        if len(tokens) >= vocab:
            break
        tokens[a + alphabet[3]] = len(tokens)
    tokenizer = Tokenizer(models.BPE(vocab=tokens, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<end>"])
    tokenizer.save(path)


def classifier_accuracy(context):
    """Of a classifier of images, over rows that two ranks share."""
    job = jobs.make_array_job(context.path(), "vit", ranks=2, steps=4)
    rows = 13
    arrays = {}
    for name, file in job["data"]["arrays"].items():
        values = np.load(context.path(file))[:rows]
        np.save(context.path(f"val-{name}.npy"), values)
        arrays[name] = f"val-{name}.npy"
    job["eval"] = {"arrays": arrays, "every": 4, "metrics": ["accuracy"],
                   "predictions": "said.jsonl"}
    jobs.write_job(context.path(), job)
    plan_path = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan_path)
    got = harness.execute(context, plan_path, 2,
                          context.path("run.jsonl"))[-1]
    [(accuracy, said)] = harness.in_python(
        classify, [({}, (context.path(),))], context.path("reference.out"))
    records = harness.read_log(context.path("said.jsonl"))
    check([r["prediction"] for r in records] == said,
          f"{[r['prediction'] for r in records]}, transformers {said}")
    check(abs(got["eval_accuracy"] - accuracy) < 1e-9,
          f"accuracy {got['eval_accuracy']!r}, transformers {accuracy!r}")
    return f"accuracy {accuracy:.3f} of {rows} images"


def classify(folder):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForImageClassification.from_pretrained(
        os.path.join(folder, "out", "model"), dtype=torch.float32).eval()
    images, labels = (torch.tensor(np.load(os.path.join(folder, f"val-{n}.npy")))
                      for n in ("pixel_values", "labels"))
    with torch.no_grad():
        said = model(pixel_values=images.float()).logits.argmax(-1)
    return (said == labels).double().mean().item(), said.tolist()


def number_losses(context, kind, count):
    """Of labels that are numbers, over rows that fill no whole micro-batch."""
    config = dict(jobs.ENCODERS["roberta"], problem_type=kind,
                  id2label={str(i): str(i) for i in range(count)})
    job = jobs.make_array_job(context.path(), "roberta", ranks=2, steps=2,
                              model_config=config)
    ids = np.load(context.path("input_ids.npy"))
    rng = np.random.default_rng(1)
    labels = (3 * rng.standard_normal(len(ids)) if count == 1 else
              rng.integers(0, 2, (len(ids), count))).astype(np.float32)
    np.save(context.path("labels.npy"), labels)
    rows = 5
    np.save(context.path("val-input_ids.npy"), ids[:rows])
    np.save(context.path("val-labels.npy"), labels[:rows])
    job["eval"] = {"arrays": {"input_ids": "val-input_ids.npy",
                              "labels": "val-labels.npy"}, "every": 2}
    jobs.write_job(context.path(), job)
    plan_path = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan_path)
    got = harness.execute(context, plan_path, 2,
                          context.path("run.jsonl"))[-1]["eval_loss"]
    [want] = harness.in_python(loss_of_rows, [({}, (context.path(),))],
                               context.path("reference.out"))
    error = harness.relative(got, want)
    check(error < 1e-5, f"loss {got!r}, transformers {want!r}")
    return f"loss {error:.1e}"


def loss_of_rows(folder):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        os.path.join(folder, "out", "model"), dtype=torch.float32).eval()
    ids, labels = (torch.tensor(np.load(os.path.join(folder, f"val-{n}.npy")))
                   for n in ("input_ids", "labels"))
    with torch.no_grad():
        return model(input_ids=ids.long(), labels=labels).loss.item()


def regression_loss(context):
    return number_losses(context, "regression", 1)


def several_classes_loss(context):
    return number_losses(context, "multi_label_classification", 3)


def background(context):
    """Checkpoints that are written behind the step are those of the step: a run
    that goes on from one has the losses of a run without a break."""
    job = jobs.make_job(context.path(), jobs.MODELS["gqa"], ranks=2, steps=12,
                        checkpoint_every=4)
    job["checkpoint"]["background"] = True
    jobs.write_job(context.path(), job)
    plan_path = context.path("plan.json")
    harness.plan(context, context.path("job.yaml"), plan_path)
    whole = harness.execute(context, plan_path, 2, context.path("whole.jsonl"))
    names = sorted(n for n in os.listdir(context.path("out"))
                   if n.startswith("step-"))
    check(names == ["step-00000008", "step-00000012"], f"kept {names}")
    log = context.path("resumed.jsonl")
    resumed = harness.execute(context, plan_path, 2, log, "--resume",
                              context.path("out", "step-00000008"))
    for a, b in zip(resumed[-4:], whole[-4:]):
        check(a["step"] == b["step"] and a["loss"] == b["loss"],
              f"step {a['step']}: {a['loss']!r}, unbroken {b['loss']!r}")
    return "bit-equal"


def export_integers(folder):
    """A loss that ignores no label; that of its 7 samples to evaluate."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))

        def forward(self, x, labels):
            return ((self.layers(x).squeeze(-1) - labels.float()) ** 2).mean()

    torch.manual_seed(0)
    module = Module()
    torch.export.save(torch.export.export(
        module, (torch.randn(4, 4), torch.zeros(4, dtype=torch.long))),
        os.path.join(folder, "net.pt2"))
    random = np.random.default_rng(0)
    x, labels = random.standard_normal((7, 4)), random.integers(0, 5, 7)
    np.save(os.path.join(folder, "x.npy"), x.astype(np.float32))
    np.save(os.path.join(folder, "labels.npy"), labels)
    return module(torch.tensor(x, dtype=torch.float32),
                  torch.tensor(labels)).item()


def exported_loss(context):
    [want] = harness.in_python(export_integers, [({}, (context.path(),))],
                               context.path("torch.out"))
    arrays = {"x": "x.npy", "labels": "labels.npy"}
    for ranks in (1, 2):
        jobs.write_job(context.path(), {
            "accelerate": {"distributed_type": "MULTI_CPU" if ranks > 1 else
                           "NO", "use_cpu": True, "num_processes": ranks},
            "model": "net.pt2", "init": "pretrained", "target": "cpu",
            "data": {"arrays": arrays, "micro_batch": 4},
            "eval": {"arrays": arrays, "every": 1},
            "optimizer": {"name": "sgd", "lr": 0.0}, "schedule": {"steps": 1}})
        plan_path = context.path("plan.json")
        harness.plan(context, context.path("job.yaml"), plan_path)
        got = harness.execute(context, plan_path, ranks,
                              context.path("run.jsonl"))[-1]["eval_loss"]
        check(harness.relative(got, want) < 1e-5,
              f"{ranks} ranks: loss {got!r}, torch {want!r}")
    return f"loss {want:.4f}"


CASES = [
    ("exported-evaluation", exported_loss),
    ("documents-starts-window",
     documents("mistral-window", by_starts=True)),
    ("documents-gpt2", documents("gpt2")),
    ("documents-opt", documents("opt")),
    ("documents-gemma2", documents("gemma2")),
    ("schedules", schedules),
    ("orders", orders),
    ("evaluation", evaluation),
    ("classifier-accuracy", classifier_accuracy),
    ("regression-evaluation", regression_loss),
    ("several-classes-evaluation", several_classes_loss),
    ("background-checkpoint", background),
]
