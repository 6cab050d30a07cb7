"""Encoders and encoder-decoders from config.json alone equal transformers'.

For random tiny configurations of each family: modules, parameters, ties and
initial values, then loss and every gradient in fp32.
"""
import json
import math
import os
import random

import harness
from encoder_models import FAMILIES, batch_of, build, configs
from graph_runner import Graph
from harness import check
from hf_numerics_cases import relative

COUNT = 24
BOUND = 1e-5


def write(context, config, saved=False):
    """A folder with config.json: `config` as it stands, or what transformers
    makes of it, as every checkpoint that it saved has it."""
    folder = context.path("model")
    os.makedirs(folder, exist_ok=True)
    if saved:
        import transformers

        transformers.AutoConfig.for_model(**config).save_pretrained(folder)
        return folder
    with open(os.path.join(folder, "config.json"), "w",
              encoding="utf-8") as f:
        json.dump(config, f)
    return folder


def described(context, folder):
    """(modules, parameters with shape, aliases, {name: initial values})."""
    text = harness.run([context.binary("hf-dump"), folder])
    modules, parameters, aliases, inits = [], [], {}, {}
    for line in text.splitlines():
        fields = line.split("\t")
        if fields[0] == "module":
            modules.append((fields[1], fields[2]))
            continue
        name = fields[1]
        parameters.append((name, [int(n) for n in fields[2].split(",")]))
        inits[name] = (fields[3], [float(n) for n in fields[4].split()])
        if fields[5].split():
            aliases[name] = fields[5].split()
    return modules, parameters, aliases, inits


def compare_names(model, got):
    modules, parameters, aliases, inits = got
    expected = [(n, type(m).__name__) for n, m in model.named_modules()]
    for i, (a, b) in enumerate(zip(modules, expected)):
        check(a == b, f"module {i} is {a}, transformers has {b}")
    check(len(modules) == len(expected), "number of modules")
    listed = [(n, list(p.shape)) for n, p in model.named_parameters()]
    for i, (a, b) in enumerate(zip(parameters, listed)):
        check(a == b, f"parameter {i} is {a}, transformers has {b}")
    check(len(parameters) == len(listed), "number of parameters")
    owners, ties = {}, {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        first = owners.setdefault(id(parameter), name)
        if first != name:
            ties.setdefault(first, []).append(name)
    check(ties == aliases, f"ties {aliases}, transformers has {ties}")


def compare_values(torch, value, kind, numbers):
    """"" where `value` can be a sample of what is described."""
    number, low, high, zero_row, _ = numbers
    if zero_row >= 0:
        if bool(value[int(zero_row)].any()):
            return "its padding row is not zero"
        keep = torch.ones(len(value), dtype=torch.bool)
        keep[int(zero_row)] = False
        value = value[keep]
        if not value.numel():
            return ""
    if kind in ("ones", "zeros", "constant"):
        expected = {"ones": 1.0, "zeros": 0.0, "constant": number}[kind]
        return "" if bool((value == expected).all()) else f"not {expected}"
    if kind == "sinusoids":
        half = value.shape[1] // 2
        rate = torch.exp(-math.log(number) / (half - 1) * torch.arange(half))
        angle = torch.arange(len(value)).view(-1, 1) * rate
        table = torch.cat([angle.sin(), angle.cos()], 1)
        return "" if bool((value - table).abs().max() < 1e-5) else "off"
    if kind == "truncated_normal" and (value.min() < low or value.max() > high):
        return "out of range"
    # The sample deviation of n normal values is off by 1/sqrt(2n), their
    # mean by 1/sqrt(n).
    n = value.numel()
    deviation = value.pow(2).mean().sqrt().item()
    if abs(deviation / number - 1) > 5 / math.sqrt(2 * n):
        return f"deviation {deviation}, not {number}"
    if abs(value.mean().item()) > 5 * number / math.sqrt(n):
        return f"mean {value.mean().item()}"
    return ""


def tree(family):
    def case(context):
        import torch
        import transformers

        torch.manual_seed(5)
        for number, config in enumerate(configs(family, COUNT)):
            where = f"config {number}: {config}: "
            folder = write(context, config, saved=number % 4 > 1)
            model = build(transformers, folder, config)
            try:
                got = described(context, folder)
                compare_names(model, got)
            except harness.Failure as failure:
                raise harness.Failure(where + str(failure)) from None
            for name, parameter in model.named_parameters():
                kind, numbers = got[3][name]
                problem = compare_values(torch, parameter.detach(), kind,
                                         numbers)
                check(not problem, f"{where}{name}: {problem}")
                used = parameter.requires_grad and \
                    not unread(config, name)
                check(used != bool(numbers[4]), f"{where}{name}: frozen")
        return f"{COUNT} configurations"
    return case


def unread(config, name):
    """The head's own bias where the decoder has another."""
    return not config.get("tie_word_embeddings", True) and name in (
        "cls.predictions.bias", "lm_head.bias")


def values(family):
    def case(context):
        worst = 0.0
        rng = random.Random(family)
        for number, config in enumerate(configs(family, COUNT)):
            mode = ("pointwise", "none", "full")[number % 3]
            error, where = compare(context, rng, config, mode,
                                   saved=number % 4 > 1)
            check(error < BOUND,
                  f"config {number}: {config}: {where} is off by {error:.1e}")
            worst = max(worst, error)
        return f"{COUNT} configurations within {worst:.1e}"
    return case


def compare(context, rng, config, mode, saved=False, folder=None, model=None):
    """(largest relative error of loss and gradients, where).

    A gradient is as good as its largest element allows, or as a thousandth of
    the model's largest gradient allows: that of the keys' bias, which softmax
    cancels, is rounding alone.
    """
    import torch
    import transformers

    folder = folder or write(context, config, saved)
    torch.manual_seed(rng.randrange(1000))
    torch.set_num_threads(1)
    model = model or build(transformers, folder, config,
                           attn_implementation="sdpa")
    with torch.no_grad():  # also biases and norms get values that matter
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    batch, length, target = batch_of(torch, rng, config, rng.choice((1, 2, 3)))
    size = str(len(batch["labels"]))
    command = [context.binary("hf-model-dump"), folder, size, str(length),
               "--mlir"] + [f"--input={name}" for name in batch]
    if target:
        command.append(f"--target={target}")
    if config["model_type"] == "whisper":
        command[3] = str(batch["labels"].shape[1])
    graph = Graph(context, harness.run(command), mode)

    model.train()
    expected = model(**batch).loss
    expected.backward()
    parameters = {name: p.detach().clone()
                  for name, p in model.named_parameters()}
    loss, gradients = graph.train(batch, parameters)
    worst, where = relative(loss, expected.detach()), "loss"
    floor = 1e-3 * max(p.grad.abs().max().item() for p in model.parameters()
                       if p.grad is not None)
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            check(name not in gradients or not parameter.requires_grad,
                  f"{name} has a gradient")
            continue
        check(name in gradients, f"{name} has no gradient")
        scale = max(parameter.grad.abs().max().item(), floor)
        error = (gradients[name] - parameter.grad).abs().max().item() / scale
        if error > worst or math.isnan(error):
            worst, where = error, f"gradient of {name}"
    return worst, where


T5 = dict(model_type="t5", architectures=["T5ForConditionalGeneration"],
          vocab_size=64, d_model=32, d_kv=8, d_ff=40, num_layers=2,
          num_heads=3, dropout_rate=0.0, decoder_start_token_id=0)
T5_VERSIONS = {
    "1.0": dict(feed_forward_proj="relu"),
    "1.1": dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    # Written by hand: what save_pretrained writes wins over what it comes from.
    "gate by its own key": dict(is_gated_act=True, dense_act_fn="silu"),
    "no gate by its own key": dict(feed_forward_proj="gated-gelu",
                                   is_gated_act=False, dense_act_fn="relu"),
    "gate without the approximation": dict(feed_forward_proj="gated-gelu",
                                           dense_act_fn="gelu"),
    "scaled though untied": dict(tie_word_embeddings=False,
                                 scale_decoder_outputs=True),
    "unscaled though tied": dict(tie_word_embeddings=True,
                                 scale_decoder_outputs=False),
    "null as absent": dict(tie_word_embeddings=None),
}


def t5_versions(context):
    """Loss and gradients of each version, as given and as saved."""
    worst = 0.0
    for name, changes in T5_VERSIONS.items():
        for saved in (False, True):
            error, where = compare(context, random.Random(name),
                                   {**T5, **changes}, "none", saved)
            check(error < BOUND, f"{name}, saved {saved}: {where} is off by "
                                 f"{error:.1e}")
            worst = max(worst, error)
    return f"{len(T5_VERSIONS)} versions within {worst:.1e}"


def t5_own_head(context):
    """Files of T5 1.1 hold a weight of the LM head: transformers then leaves
    it untied, though config.json says otherwise."""
    import torch
    import transformers

    folder = write(context, {**T5, **T5_VERSIONS["1.1"]}, saved=True)
    config = transformers.AutoConfig.from_pretrained(folder)
    torch.manual_seed(4)
    model = transformers.T5ForConditionalGeneration(config)
    model.lm_head.weight = torch.nn.Parameter(torch.randn(64, 32) * 0.1)
    # As from_pretrained does with such files; else one of them is written.
    model.all_tied_weights_keys.pop("lm_head.weight")
    model._tied_weights_keys = model.all_tied_weights_keys
    model.save_pretrained(folder)
    config.save_pretrained(folder)
    loaded = transformers.T5ForConditionalGeneration.from_pretrained(folder)
    check(loaded.lm_head.weight is not loaded.shared.weight,
          "transformers ties it")
    compare_names(loaded, described(context, folder))
    error, where = compare(context, random.Random(1), T5, "none",
                           folder=folder, model=loaded)
    check(error < BOUND, f"{where} is off by {error:.1e}")
    return f"within {error:.1e}"


CASES = [("t5 versions", t5_versions), ("t5 own head", t5_own_head)]
CASES += [(f"{family} tree", tree(family)) for family in FAMILIES]
CASES += [(f"{family} values", values(family)) for family in FAMILIES]
