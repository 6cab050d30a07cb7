"""LoRA as PEFT does it: names, first values, gradients, training, files."""
import contextlib
import json
import os
import re
import shutil

import dropout_cases
import export_cases
import functions_cases
import harness
import jobs
from harness import check

# Names, which modules, what trains: (model, LoraConfig).
NAMES = {
    "list": ("gqa", dict(r=4, target_modules=["q_proj", "v_proj"])),
    "regex": ("gqa", dict(
        r=2, target_modules=r".*\.(0|2)\.(self_attn|mlp)\.\w*_proj")),
    "all-linear": ("mha-bias", dict(r=3, target_modules="all-linear",
                                    bias="all")),
    "lora_only": ("mha-bias", dict(
        target_modules=["q_proj", "mlp.down_proj"], bias="lora_only",
        exclude_modules=["layers.1.self_attn.q_proj"])),
    "layers": ("gqa", dict(target_modules=["o_proj", "up_proj"],
                           layers_to_transform=[0, 2],
                           layers_pattern="layers",
                           rank_pattern={"o_proj": 3, ".*up_proj": 5},
                           alpha_pattern={"0.self_attn.o_proj": 32})),
    "saved": ("qwen2", dict(target_modules=["k_proj"], task_type="CAUSAL_LM",
                            modules_to_save=["lm_head", "norm"])),
    "head": ("gqa", dict(target_modules=["lm_head", "gate_proj"],
                         modules_to_save=["embed_tokens"])),
    "tied-head": ("tied", dict(target_modules=["lm_head", "gate_proj"])),
    "tied-saved": ("tied", dict(target_modules=["q_proj"],
                                modules_to_save=["embed_tokens"])),
    "conv1d": ("gpt2", dict(target_modules="all-linear", bias="all",
                            modules_to_save=["wte"])),
    "conv1d-names": ("gpt2", dict(target_modules=["c_attn", "mlp.c_proj"],
                                  fan_in_fan_out=True)),
    "dropout": ("gqa", dict(target_modules=["q_proj"], lora_dropout=0.1)),
}


def write_adapter(folder, options):
    """What LoraConfig.save_pretrained writes."""
    import peft

    config = peft.LoraConfig(**options)
    config.save_pretrained(folder)


def adapted(folder, options, seed=0):
    """(base model, PeftModel) of the folder's weights, adapters from torch."""
    import peft
    import torch
    import transformers

    base = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="sdpa")
    base.config.use_cache = False
    torch.manual_seed(seed)
    with contextlib.redirect_stderr(open(os.devnull, "w", encoding="utf-8")):
        return base, peft.get_peft_model(base, peft.LoraConfig(**options))


def make(context, model, options, **more):
    job = jobs.make_job(context.path(), jobs.MODELS[model], **more)
    write_adapter(context.path("adapter"), options)
    job["adapter"] = "adapter"
    jobs.write_job(context.path(), job)
    return job


def names(context):
    """Parameters, their order, what trains, modules and keys of the file."""
    import peft.utils

    total = 0
    for name, (model, options) in NAMES.items():
        make(context, model, options, steps=1)
        plan = harness.plan(context, context.path("job.yaml"),
                            context.path("plan.json"))
        text_path = context.path("model.mlir")
        harness.run([context.binary("accel-opt"), "plan",
                     context.path("job.yaml"), "--compile-to", "model", "-o",
                     text_path])
        with open(text_path, encoding="utf-8") as f:
            text = f.read()
        _, model = adapted(context.path("model"), options)
        want = [(n, list(p.shape), p.requires_grad)
                for n, p in model.named_parameters()]
        got = [(p["fqn"], p["shape"], p.get("trainable", True))
               for p in plan["parameters"]]
        for a, b in zip(got, want):
            check(a == b, f"{name}: {a}, PEFT has {b}")
        check(len(got) == len(want), f"{name}: {len(got)} parameters, PEFT "
                                     f"has {len(want)}")
        aliases = {n for n, _ in model.named_parameters(
            remove_duplicate=False)} - {n for n, _, _ in want}
        mine = {a for p in plan["parameters"] for a in p.get("aliases", [])}
        check(mine == aliases, f"{name}: aliases {mine}, PEFT has {aliases}")
        modules = re.findall(r'sharding\.module "(.*?)" class "(.*?)"', text)
        # A rotary table is no module of ours; what has no parameters and no
        # name in a policy does not matter.
        theirs = [(n, type(m).__name__) for n, m in model.named_modules()]
        known = {n for n, _ in modules}
        theirs = [t for t in theirs if t[0] in known or "lora" in t[0]
                  or "modules_to_save" in t[0]]
        check(modules == theirs, f"{name}: modules {set(modules) ^ set(theirs)}")
        keys = {p["adapter_key"] for p in plan["parameters"]
                if "adapter_key" in p}
        expected = set(peft.utils.get_peft_model_state_dict(
            model, save_embedding_layers=False))
        check(keys == expected, f"{name}: keys {keys ^ expected}")
        total += len(got)
    return f"{total} parameters of {len(NAMES)} models"


def first_values(context):
    """A is uniform with nn.Linear's bound and B zero, as PEFT's own."""
    import torch

    options = dict(r=16, target_modules=["down_proj", "q_proj"])
    job = make(context, "wide", options, steps=1, lr=1e-12)
    job["optimizer"]["weight_decay"] = 0.0
    results = {}
    for kind, init in (("kaiming", True), ("gaussian", "gaussian")):
        write_adapter(context.path("adapter"),
                      dict(options, init_lora_weights=init))
        jobs.write_job(context.path(), job)
        shutil.rmtree(context.path("out"), ignore_errors=True)
        harness.plan(context, context.path("job.yaml"),
                     context.path("plan.json"))
        harness.execute(context, context.path("plan.json"), 2,
                        context.path("log.jsonl"))
        got = harness.load_weights(context.path("out", "model"))
        _, model = adapted(context.path("model"),
                           dict(options, init_lora_weights=init))
        want = {n.replace(".default", ""): p
                for n, p in model.named_parameters() if "lora_" in n}
        worst = 0.0
        for name, values in want.items():
            mine, values = got[name].double(), values.detach().double()
            if "lora_B" in name:
                check(mine.abs().max() < 1e-9, f"{name} is not zero")
                continue
            check(mine.std(), f"{name} is constant")
            # Means and deviations of n samples differ by a few / sqrt(n).
            bound = 5 / mine.numel() ** 0.5
            error = max(float((mine.std() / values.std() - 1).abs()),
                        float((mine.mean() - values.mean()).abs()
                              / values.std()))
            check(error < bound, f"{name}: {error:.1e}, allowed {bound:.1e}")
            if kind == "kaiming":
                limit = values.shape[1] ** -0.5
                check(mine.abs().max() <= limit * (1 + 1e-6) and
                      mine.abs().max() > 0.99 * limit,
                      f"{name} reaches {mine.abs().max()}, not {limit}")
                # A uniform distribution's kurtosis is 1.8, a normal's 3.
                kurtosis = float(((mine - mine.mean()) ** 4).mean()
                                 / mine.var() ** 2)
                check(abs(kurtosis - 1.8) < 0.1, f"{name}: {kurtosis}")
            worst = max(worst, error)
        other = [got[n] for n in want if "lora_A" in n]
        check(not torch.equal(other[0], other[1][:, :other[0].shape[1]]),
              "two matrices have the same values")
        results[kind] = worst
    return ", ".join(f"{k} within {v:.1e}" for k, v in results.items())


GRADIENTS = {
    "llama": ("gqa", dict(r=4, lora_alpha=12,
                          target_modules=["q_proj", "v_proj", "down_proj"])),
    "biases": ("mha-bias", dict(r=3, target_modules="all-linear", bias="all",
                                use_rslora=True)),
    "layers": ("qwen3", dict(target_modules=["k_proj", "gate_proj"],
                             layers_to_transform=[1],
                             rank_pattern={"k_proj": 2})),
    "head": ("gqa", dict(target_modules=["lm_head", "o_proj"],
                         modules_to_save=["norm"])),
    "tied-saved": ("tied", dict(target_modules=["up_proj"],
                                modules_to_save=["embed_tokens"])),
    "gpt2": ("gpt2", dict(target_modules="all-linear", bias="lora_only")),
}


def gradients(context):
    """Loss and gradients of what trains; of the rest there are none."""
    import torch

    worst, texts = 0.0, []
    torch.set_num_threads(1)
    for name, (model_name, options) in GRADIENTS.items():
        make(context, model_name, options, steps=1, sequence_length=24)
        text_path = context.path("adapted.mlir")
        harness.run([context.binary("accel-opt"), "plan",
                     context.path("job.yaml"), "--compile-to", "model", "-o",
                     text_path])
        with open(text_path, encoding="utf-8") as f:
            text = f.read()
        printed = functions_cases.print_joint(context, text, "pointwise")
        graph = functions_cases.Graph(printed)
        graph.bindings, graph.input_gradients = \
            functions_cases.bindings_of(printed)
        _, model = adapted(context.path("model"), options)
        with torch.no_grad():  # B is not zero, so that A has a gradient
            for n, p in model.named_parameters():
                if "lora_B" in n:
                    p.normal_(std=0.1)
        model.train()
        parameters = {n: p.detach().clone()
                      for n, p in model.named_parameters()}
        vocab = jobs.MODELS[model_name]["vocab_size"]
        torch.manual_seed(1)
        ids = torch.randint(vocab, (2, 24))
        labels = torch.randint(vocab, (2, 24))
        want = torch.nn.functional.cross_entropy(
            model(input_ids=ids).logits.flatten(0, 1), labels.flatten())
        want.backward()
        trainer = functions_cases.Trainer(
            graph, functions_cases.export(context, text, "pointwise", False),
            functions_cases.export(context, text, "pointwise", True),
            parameters)
        loss = trainer.run(ids, labels)
        error = functions_cases.relative(loss, want.detach())
        for n, p in model.named_parameters():
            got = trainer.gradients.pop(n, None)
            if not p.requires_grad:
                check(got is None, f"{name}: the frozen {n} has a gradient")
                continue
            check(got is not None, f"{name}: {n} has no gradient")
            own = functions_cases.relative(got, p.grad)
            check(own < 1e-5, f"{name}: gradient of {n} is off by {own:.1e}")
            error = max(error, own)
        check(not trainer.gradients, f"{name}: {list(trainer.gradients)}")
        check(error < 1e-5, f"{name}: off by {error:.1e}")
        worst = max(worst, error)
        texts.append(name)
    return f"{', '.join(texts)} within {worst:.1e}"


def train(context, model="gqa", options=None, **more):
    """FSDP2 of PyTorch on the PeftModel, and accel-run on the plan."""
    import peft
    import torch
    import transformers
    from safetensors.torch import load_file

    job = make(context, model, options, **more)
    ranks = job["accelerate"]["num_processes"]
    # Both start from the adapter of torch, as a continued run would.
    _, start = adapted(context.path("model"), options, seed=5)
    with contextlib.redirect_stderr(open(os.devnull, "w", encoding="utf-8")):
        start.save_pretrained(context.path("adapter"))
    plan = harness.plan(context, context.path("job.yaml"),
                        context.path("plan.json"))
    got = harness.execute(context, context.path("plan.json"), ranks,
                          context.path("run.jsonl"), "--summary",
                          context.path("summary.json"))
    want = harness.reference(context.path("job.yaml"), ranks,
                             context.path("reference.jsonl"),
                             context.path("reference.safetensors"))
    check(want[-1]["loss"] < 0.98 * want[0]["loss"],
          f"the reference did not learn: {want[0]['loss']} to "
          f"{want[-1]['loss']}")
    text = f"loss {harness.compare_logs(got, want, 'loss', 1e-5):.1e}"
    memory = harness.compare_memory(plan, context.path("summary.json"))
    # Only what trains has states and gradients.
    trained = sum(u["numel"] for u in plan["units"] if u["states"])
    expected = sum(
        torch.Size(p["shape"]).numel() for p in plan["parameters"]
        if p.get("trainable", True))
    check(trained == expected, f"states of {trained} elements, {expected} train")
    folder = context.path("out", "model")
    check(sorted(os.listdir(folder)) == ["accel-run.json", "adapter_config.json",
                                         "adapter_model.safetensors"],
          f"{os.listdir(folder)} was written")
    # PEFT loads it, and it is the adapter that PyTorch trained.
    base = transformers.AutoModelForCausalLM.from_pretrained(
        context.path("model"), dtype=torch.float32)
    loaded = peft.PeftModel.from_pretrained(base, folder, is_trainable=True)
    final = load_file(context.path("reference.safetensors"))
    mine = {n: p for n, p in loaded.named_parameters()}
    worst = max(float((mine[n].detach() - p).abs().max())
                for n, p in final.items())
    check(worst < 1e-4, f"weights differ by {worst:.1e}")
    with open(os.path.join(folder, "adapter_config.json"),
              encoding="utf-8") as f:
        check(json.load(f)["base_model_name_or_path"]
              == os.path.abspath(context.path("model")),
              "the base is not named")
    # And a run that starts from what this one wrote starts where it ended.
    shutil.copytree(folder, context.path("again"))
    job["adapter"] = "again"
    job["schedule"]["steps"] = 1
    job["data"]["shuffle"] = False
    jobs.write_job(context.path(), job)
    harness.plan(context, context.path("job.yaml"), context.path("plan2.json"))
    shutil.rmtree(context.path("out"))
    again = harness.execute(context, context.path("plan2.json"), ranks,
                            context.path("again.jsonl"))
    check(again[0]["loss"] < got[0]["loss"], "the adapter was not loaded")
    return f"{text}, weights {worst:.1e}, {memory}"


def frozen(context):
    """A frozen embedding and head: no gradients, states or reductions."""
    job = jobs.make_job(context.path(), jobs.MODELS["gqa"], ranks=2, steps=30)
    whole = harness.plan(context, context.path("job.yaml"),
                         context.path("whole.json"))
    job["trainable"] = ["layers", "model.norm"]
    jobs.write_job(context.path(), job)
    plan = harness.plan(context, context.path("job.yaml"),
                        context.path("plan.json"))
    got = harness.execute(context, context.path("plan.json"), 2,
                          context.path("run.jsonl"), "--summary",
                          context.path("summary.json"))
    want = harness.reference(context.path("job.yaml"), 2,
                             context.path("reference.jsonl"))
    text = f"loss {harness.compare_logs(got, want, 'loss', 1e-5):.1e}"
    text += ", " + harness.compare_memory(plan, context.path("summary.json"))
    # No backward of the embedding; of the head's matmul only the hidden
    # state's gradient.
    def products(which):
        names = {f["name"]: json.dumps(f).count('"aten::mm')
                 for f in which["functions"]}
        return "Embedding.backward" in names, names["LlamaHead.backward"]
    check(products(whole)[0] and not products(plan)[0],
          "the frozen embedding has a backward")
    check(products(plan)[1] == products(whole)[1] - 1,
          f"the head has {products(plan)[1]} products, "
          f"{products(whole)[1]} where it is trained")
    for program in plan["programs"]:
        for step in program["instructions"]:
            if "educe" in step.get("kind", "") or \
                    step.get("kind") == "optimizer":
                check(step["unit"] not in ("model.embed_tokens",
                                           "model.norm/frozen"),
                      f"{step} of a frozen unit")
    saved = (whole["predicted"]["memory"]["persistent_bytes"]
             - plan["predicted"]["memory"]["persistent_bytes"])
    check(saved >= 0.99 * 2 * 2 * 257 * 64 * 4 / 2,
          f"only {saved} bytes are saved")
    return text


def dropout(context):
    """lora_dropout: PEFT under the same masks has the same losses; what is
    recomputed draws the same."""
    seed, ranks = 3, 2
    options = dict(r=4, lora_alpha=32, target_modules="all-linear",
                   lora_dropout=0.3)
    runs = []
    for mode in ("pointwise", "full"):
        folder = context.path(mode)
        job = jobs.make_job(folder, jobs.variant(num_hidden_layers=2), steps=6,
                            ranks=ranks, accumulation=2, lr=5e-3,
                            activation_checkpointing=mode)
        # Both start from the adapter of torch.
        _, start = adapted(os.path.join(folder, "model"), options, seed=5)
        with contextlib.redirect_stderr(open(os.devnull, "w",
                                             encoding="utf-8")):
            start.save_pretrained(os.path.join(folder, "adapter"))
        job.update(adapter="adapter", dropout_seed=seed)
        jobs.write_job(folder, job)
        path = os.path.join(folder, "plan.json")
        plan = harness.plan(context, os.path.join(folder, "job.yaml"), path)
        summary = os.path.join(folder, "summary.json")
        runs.append([line["loss"] for line in harness.execute(
            context, path, ranks, os.path.join(folder, "log.jsonl"),
            "--summary", summary)])
        memory = harness.compare_memory(plan, summary)
        with open(os.path.join(folder, "out", "model", "adapter_config.json"),
                  encoding="utf-8") as f:
            check(json.load(f)["lora_dropout"] == 0.3, "dropout was not saved")
    check(runs[0] == runs[1], f"modes differ: {runs}")
    want = harness.in_python(
        dropout_cases.torch_losses,
        [({}, (context.path("pointwise"), seed, ranks))],
        context.path("torch.log"))[0]
    worst = max(harness.relative(a, b) for a, b in zip(runs[0], want))
    check(worst < 2e-5, f"losses {runs[0]}\nPEFT {want}")
    return f"loss {worst:.1e}, {memory}"


def exported(context):
    """An adapter of a .pt2: the plan and losses of the same model's folder."""
    options = dict(r=4, lora_alpha=16, target_modules="all-linear")
    job = make(context, "gqa", options, steps=12, lr=5e-3, tokens=129)
    _, start = adapted(context.path("model"), options, seed=5)
    with contextlib.redirect_stderr(open(os.devnull, "w", encoding="utf-8")):
        start.save_pretrained(context.path("adapter"))
    data = job["data"]
    export_cases.export(
        context, context.path("model"), "-o", context.path("model.pt2"),
        "--weights", "--batch", str(data["micro_batch"]), "--seq-len",
        str(data["sequence_length"]))
    jobs.write_job(context.path(), dict(job, model="model.pt2"),
                   "exported.yaml")
    logs, plans = [], []
    for name in ("job", "exported"):
        path = context.path(name + ".json")
        plans.append(harness.plan(context, context.path(name + ".yaml"), path))
        shutil.rmtree(context.path("out"), ignore_errors=True)
        logs.append(harness.execute(context, path, 2,
                                    context.path(name + ".jsonl"), "--summary",
                                    context.path(name + ".summary.json")))
    text = export_cases.compare_plans(plans[1], plans[0])
    memory = harness.compare_memory(plans[1],
                                    context.path("exported.summary.json"))
    check(sorted(os.listdir(context.path("out", "model"))) == [
        "accel-run.json", "adapter_config.json",
        "adapter_model.safetensors"], "what is saved")
    worst = harness.compare_logs(logs[1], logs[0], "loss", 1e-5)
    return f"loss {worst:.1e}, {text}, {memory}"


def chunked(context):
    """loss_chunks cuts a frozen head, its trained copy, and a head with an
    adapter."""
    text = []
    for name, options in (
            ("body", dict(r=4, target_modules=["q_proj", "down_proj"])),
            ("copy", dict(r=4, target_modules=["q_proj"],
                          modules_to_save=["lm_head"])),
            ("head", dict(r=4, target_modules=["q_proj", "lm_head"]))):
        logs = []
        for chunks in (1, 3):
            job = make(context, "gqa", options, steps=10, lr=5e-3, tokens=129)
            job["loss_chunks"] = chunks
            jobs.write_job(context.path(), job)
            path = context.path("plan.json")
            plan = harness.plan(context, context.path("job.yaml"), path)
            shutil.rmtree(context.path("out"), ignore_errors=True)
            logs.append(harness.execute(
                context, path, 2, context.path("log.jsonl"), "--summary",
                context.path("summary.json")))
            harness.compare_memory(plan, context.path("summary.json"))
        worst = harness.compare_logs(logs[1], logs[0], "loss", 1e-6)
        text.append(f"{name} {worst:.1e}")
    # Dropout draws by an element's place among all rows.
    job = make(context, "gqa", dict(target_modules=["lm_head"],
                                    lora_dropout=0.1), steps=1)
    job["loss_chunks"] = 3
    jobs.write_job(context.path(), job)
    refusal = harness.run([context.binary("accel-opt"), "plan",
                           context.path("job.yaml")], expect=None)
    check("cannot be cut into chunks" in refusal and "error" in refusal,
          refusal)
    return ", ".join(text)


CASES = [
    ("names", names),
    ("first-values", first_values),
    ("gradients", gradients),
    ("train-lora-2-ranks", lambda context: train(
        context, options=dict(r=4, lora_alpha=16, target_modules="all-linear"),
        steps=30, lr=5e-3, tokens=129)),
    ("train-saved-2-ranks", lambda context: train(
        context, model="mha-bias",
        options=dict(r=2, target_modules=["q_proj", "up_proj"], bias="all",
                     modules_to_save=["lm_head"]),
        steps=20, lr=5e-3, tokens=257, max_grad_norm=1.0, accumulation=2)),
    ("train-gpt2-2-ranks", lambda context: train(
        context, model="gpt2",
        options=dict(r=4, target_modules=["c_attn", "c_fc"]),
        steps=20, lr=5e-3, tokens=129, activation_checkpointing="full")),
    ("train-frozen-2-ranks", frozen),
    ("dropout-as-peft", dropout),
    ("exported", exported),
    ("loss-in-chunks", chunked),
]
