"""Forward and backward of each architecture against transformers, in fp32.

One training step on one process tells every gradient: with eps far above any
gradient, AdamW's first step is w1 = w0 - lr * g / (|g| + eps), which is solved
for g. The rate is so high that w1 is mostly the update, and g keeps its bits.
Loss within 1e-5, each parameter's gradient within 1e-5 of its norm.
"""
import os
import shutil

import harness
import jobs
from harness import check

EPS, LR = 1e3, 1e8
TOLERANCE = 1e-5


def load(folder):
    """transformers' model, read from a folder under its own names."""
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    auto = jobs.text_model(transformers, config)
    kind = auto._model_mapping[type(config)]
    return auto.from_pretrained(
        folder, dtype=torch.float32,
        attn_implementation="sdpa" if kind._supports_sdpa else "eager")


def autograd(folder, job, written):
    """transformers' loss and gradients of the first micro-batch, and what
    accel-run's first step subtracted from each parameter."""
    import fsdp2
    import torch

    torch.set_num_threads(1)
    model = load(f"{folder}/model")
    ids, labels = fsdp2.Tokens(f"{folder}/train.bin",
                               job["data"]).micro_batch(0)
    out = model(input_ids=ids, use_cache=False)
    loss = torch.nn.functional.cross_entropy(out.logits.flatten(0, 1),
                                             labels.flatten())
    if getattr(out, "aux_loss", None) is not None:
        loss = loss + model.config.router_aux_loss_coef * out.aux_loss
    loss.backward()
    after = dict(load(written).named_parameters())
    return float(loss.detach()), {
        name: (None if p.grad is None else p.grad.numpy(),
               (p.detach().double() - after[name].detach().double()).numpy())
        for name, p in model.named_parameters()}


def as_published(folder):
    """The tower's weights by the names that transformers before 5 wrote."""
    from safetensors.torch import load_file, save_file

    path = os.path.join(folder, "model.safetensors")
    weights = load_file(path)
    older = {name.replace("vision_tower.", "vision_tower.vision_model."): value
             for name, value in weights.items()}
    check(set(older) != set(weights), "no tower")
    save_file(older, path, metadata={"format": "pt"})


def saved(folder):
    """All of the folder as save_pretrained of transformers writes it."""
    load(folder).save_pretrained(folder)


def save_again(folder):
    harness.in_python(saved, [({}, (folder,))], folder + ".saved")


def by_attributes(folder):
    """Weights by the names of the model's own attributes, as its state_dict has them:
    what merging FSDP's shards writes."""
    from safetensors.torch import load_file, save_file

    path = os.path.join(folder, "model.safetensors")
    weights = load_file(path)
    own = {}
    for name, value in weights.items():
        part, _, rest = name.partition(".")
        if part == "visual":
            name = "model." + name
        elif part == "model":
            name = "model.language_model." + rest
        own[name] = value
    check(any(name.startswith("model.visual.") for name in own), "no tower")
    save_file(own, path, metadata={"format": "pt"})


def case(config, rewrite=None, **options):
    def compare(context):
        import numpy as np

        options.setdefault("sequence_length", 33)
        options.setdefault("micro_batch", 3)
        job = jobs.make_job(context.path(), config, kind="single", ranks=1,
                            steps=1, lr=LR, **options)
        if rewrite:
            rewrite(context.path("model"))
        job["optimizer"].update(eps=EPS, weight_decay=0.0)
        jobs.write_job(context.path(), job)
        harness.plan(context, context.path("job.yaml"),
                     context.path("plan.json"))
        log = harness.execute(context, context.path("plan.json"), 1,
                              context.path("run.jsonl"))
        written = os.path.abspath(harness.find_weights(context.path("out")))
        shutil.copy(context.path("model", "config.json"), written)
        loss, gradients = harness.in_python(
            autograd, [({}, (context.path(), job, written))],
            context.path("torch.out"))[0]
        check(harness.relative(log[0]["loss"], loss) < TOLERANCE,
              f"loss {log[0]['loss']!r}, transformers {loss!r}")
        # A gradient that is zero but for rounding (of a key's bias, say) is
        # judged by the model's largest.
        least = 1e-3 * max(np.linalg.norm(g) for g, _ in gradients.values()
                           if g is not None)
        unread = [name for name, (g, _) in gradients.items() if g is None]
        check(bool(unread) == ("vision_config" in config) and
              all(not gradients.pop(name)[1].any() for name in unread),
              f"without a gradient: {unread[:3]}")
        worst = 0.0
        for name, (want, change) in gradients.items():
            update = change / LR
            got = update * EPS / (1 - np.abs(update))
            check(np.linalg.norm(want) > 0, f"{name} has no gradient")
            norm = max(np.linalg.norm(want), least)
            off = np.linalg.norm(got - want)
            check(off <= TOLERANCE * norm,
                  f"the gradient of {name} differs by {off / norm:.2e} of its "
                  "norm")
            worst = max(worst, off / norm)
        return (f"loss {harness.relative(log[0]['loss'], loss):.1e}, "
                f"gradients {worst:.1e}")
    return compare


CASES = [(name, case(config)) for name, config in jobs.MODELS.items()
         if name != "wide"]
CASES += [(name, case(config)) for name, config in jobs.TOWERS.items()]
CASES += [("gemma3-tower-as-published", case(jobs.TOWERS["gemma3-tower"], as_published))]
CASES += [(f"{name}-{how.__name__.replace('_', '-')}", case(jobs.TOWERS[name], how))
          for name in ("qwen2-5-vl-tower", "qwen2-vl-tower")
          for how in (save_again, by_attributes)]
CASES += [
    # Attention kernels work in blocks of 512 keys and 32 to 256 queries.
    ("long-sequence", case(jobs.variant(max_position_embeddings=1024,
                                        num_hidden_layers=1),
                           sequence_length=700, micro_batch=1)),
    ("two-tokens", case(jobs.LLAMA, sequence_length=2, micro_batch=1)),
    ("one-kv-head", case(jobs.variant(num_key_value_heads=1))),
    ("nothing-recomputed", case(jobs.LLAMA, activation_checkpointing="none")),
    ("everything-recomputed",
     case(jobs.variant(tie_word_embeddings=True, attention_bias=True),
          activation_checkpointing="pointwise")),
    ("linear-rope", case(jobs.variant(rope_parameters={
        "rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}))),
]
