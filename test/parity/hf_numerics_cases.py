"""The model phase computes what transformers computes, forward and backward.

hf-model-dump prints the functions and the graph that the frontend builds; they
are run here operator by operator under autograd, and loss and gradients are
compared with the sdpa path of transformers on the same weights in fp32.
"""
import json
import os

import harness
from harness import check

BASE = dict(model_type="llama", vocab_size=131, hidden_size=48,
            intermediate_size=88, num_hidden_layers=3, num_attention_heads=6,
            num_key_value_heads=2, max_position_embeddings=64,
            rms_norm_eps=1e-5, initializer_range=0.1)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=32)

GPT2 = dict(model_type="gpt2", resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0)
GPT2_MODELS = {
    "gpt2": GPT2,
    "gpt2 untied, odd": {**GPT2, "tie_word_embeddings": False, "n_inner": 40,
                         "hidden_size": 45, "num_attention_heads": 5},
    "gpt2 one head, unscaled": {**GPT2, "num_attention_heads": 1,
                                "scale_attn_weights": False},
    **{f"gpt2 {name}": {**GPT2, "activation_function": name}
       for name in ("gelu", "gelu_pytorch_tanh", "relu", "silu", "tanh")},
}

CONFIGS = {
    **GPT2_MODELS,
    "llama": {},
    "multi-head": dict(num_key_value_heads=6),
    "one token wide": dict(num_attention_heads=1, num_key_value_heads=1,
                           head_dim=2),
    "biases": dict(attention_bias=True, mlp_bias=True),
    "tied": dict(tie_word_embeddings=True),
    "head_dim": dict(head_dim=20),
    "padding": dict(pad_token_id=5),
    "llama 3.1": dict(rope_scaling=LLAMA3, rope_theta=100.0),
    "linear rope": dict(rope_scaling={"type": "linear", "factor": 3.0}),
    "mistral": dict(model_type="mistral", sliding_window=None),
    "qwen2": dict(model_type="qwen2"),
    "qwen3": dict(model_type="qwen3", head_dim=12),
    "qwen3 biases, tied": dict(model_type="qwen3", attention_bias=True,
                               head_dim=16, tie_word_embeddings=True),
    "swish": dict(hidden_act="swish"),
}


class Interpreter:
    """Runs the functions of hf-model-dump with PyTorch."""

    def __init__(self, dump, parameters):
        self.dump = dump
        self.parameters = parameters

    def loss(self, *inputs):
        graph = self.dump["graph"]
        values = dict(zip(graph["inputs"], inputs))
        for call in graph["calls"]:
            operands = [values[i] for i in call["operands"]]
            results = self.call(call["function"], call["path"], operands)
            values.update(zip(call["results"], results))
        return values[graph["loss"]]

    def call(self, name, path, operands):
        function = self.dump["functions"][name]
        operands = iter(operands)
        values = {}
        for arg in function["args"]:
            if "param" in arg:
                fqn = f"{path}.{arg['param']}" if path else arg["param"]
                values[arg["id"]] = self.parameters[fqn]
            else:
                values[arg["id"]] = next(operands)
        for op in function["ops"]:
            results = self.run(op["op"],
                               [decode(a, values) for a in op["args"]])
            if not isinstance(results, (tuple, list)):
                results = [results]
            values.update(zip(op["results"], results))
        return [values[i] for i in function["returns"]]

    @staticmethod
    def run(name, args):
        import torch

        if name == "aten.type_as":
            return args[0].to(args[1].dtype)
        if name == "aten.rms_norm":
            x, weight, eps, rounds_last, shifted = args
            wide = x.to(torch.float32)
            wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
            if shifted:
                weight = 1.0 + weight.float()
            if rounds_last:
                return (weight * wide).to(x.dtype)
            return weight * wide.to(x.dtype)
        if name == "aten.layer_norm":
            *operands, eps = args
            return torch.nn.functional.layer_norm(
                operands[0], operands[1].shape, *operands[1:], eps=eps)
        if name == "aten.scaled_dot_product_attention":
            return attention(*args)
        overload = name.removeprefix("aten::").split(".")
        packet = getattr(torch.ops.aten, overload[0])
        op = getattr(packet, overload[1] if len(overload) > 1 else "default")
        keywords = {}
        for value, declared in zip(args, op._schema.arguments):
            if declared.kwarg_only:
                keywords[declared.name] = value
        return op(*args[:len(args) - len(keywords)], **keywords)


def attention(q, k, v, *rest):
    """aten.scaled_dot_product_attention by its definition, but where PyTorch
    has a function for it."""
    import torch

    *mask, causal, scale, window, softcap = rest
    grouped = q.shape[1] != k.shape[1]
    if not mask and not window and not softcap:
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal, scale=scale, enable_gqa=grouped)
    times = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(times, 1) for x in (k, v))
    scores = q @ k.transpose(2, 3) * scale
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    if mask:
        scores = scores + mask[0]
    rows = torch.arange(q.shape[2])[:, None]
    columns = torch.arange(k.shape[2])[None, :]
    seen = columns <= rows
    if window:
        seen &= columns > rows - window
    scores = scores.masked_fill(~seen, float("-inf"))
    mixed = torch.softmax(scores.float(), -1).to(q.dtype) @ v
    return mixed.transpose(1, 2).contiguous().transpose(1, 2)


def decode(value, values):
    import torch

    if isinstance(value, dict):
        if "tensor" in value:
            return values[value["tensor"]]
        if "tensors" in value:
            return [values[i] for i in value["tensors"]]
        return {"f32": torch.float32, "bf16": torch.bfloat16,
                "i64": torch.int64}[value["dtype"]]
    return value


def relative(a, b, least=0.0):
    """Largest difference, relative to the largest value of b, or to `least`
    where that is more."""
    scale = max(b.abs().max().item(), least) or 1.0
    return (a - b).abs().max().item() / scale


def least_gradient(model):
    """Gradients far below the largest one are sums that cancel: without rotary
    embeddings the softmax cancels the keys' bias to rounding alone."""
    return 1e-3 * max(p.grad.abs().max().item() for p in model.parameters())


def compare(context, changes, batch=2, length=24):
    config = {**BASE, **changes}
    folder = context.path("model")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w",
              encoding="utf-8") as f:
        json.dump(config, f)
    worst = difference(context, folder, config, batch, length)
    return f"within {worst:.1e}" if worst else "bit-equal"


def widened(compute):
    """`compute()` in fp64: what it converts to fp32 is fp64 too, so that what
    is left between two orders of the same operations is the rounding of
    constants, such as rotary frequencies, which both sides keep in fp32."""
    import torch

    class Widen(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            def wide(value):
                return torch.float64 if value is torch.float32 else value
            if function is torch.Tensor.float:
                function = torch.Tensor.double
            return function(*map(wide, args), **{
                key: wide(value) for key, value in (kwargs or {}).items()})

    with Widen():
        return compute()


def difference(context, folder, config, batch=2, length=24):
    """Largest relative difference of the loss and of any gradient in fp64;
    fails above 1e-5, and above 1e-5 for the loss in fp32. fp64 tells a wrong
    formula from rounding: fp32 gradients of small heads with norms differ by up
    to 2e-5 by the order in which a CPU's kernels sum. 0: not a bit differs."""
    import torch
    import transformers

    dump = json.loads(harness.run([context.binary("hf-model-dump"), folder,
                                   str(batch), str(length)]))
    torch.manual_seed(3)
    torch.set_num_threads(1)
    # With the attention that transformers chooses: sdpa where the family has it.
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.from_pretrained(folder)).float()
    with torch.no_grad():  # also biases and norms get values that matter
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    ids = torch.randint(config["vocab_size"], (batch, length))
    labels = torch.randint(config["vocab_size"], (batch, length))
    labels[0, 3:6] = -100
    model.train()

    def losses():
        parameters = {name: p.detach().clone().requires_grad_()
                      for name, p in model.named_parameters()}
        expected = model(input_ids=ids, labels=labels, shift_labels=labels,
                         use_cache=False).loss
        return expected, Interpreter(dump, parameters).loss(ids, labels), \
            parameters

    def compared():
        expected, loss, parameters = losses()
        expected.backward()
        loss.backward()
        return expected.detach(), loss.detach(), parameters

    with torch.no_grad():
        expected, loss, _ = losses()
    check(loss.shape == () and loss.dtype == torch.float32, "0-d fp32 loss")
    check(relative(loss, expected) < 1e-5,
          f"loss {loss.item()}, transformers {expected.item()}")

    model.double()
    expected, loss, parameters = widened(compared)
    check(loss.dtype == expected.dtype == torch.float64, "loss in fp64")
    worst = relative(loss, expected)
    check(worst < 1e-5, f"loss {loss.item()}, transformers {expected.item()}")
    least = least_gradient(model)
    for name, parameter in model.named_parameters():
        got = parameters[name].grad
        check(got is not None, f"{name} has no gradient")
        error = relative(got, parameter.grad, least)
        check(error < 1e-5, f"gradient of {name} is off by {error:.1e}")
        worst = max(worst, error)
    return worst


CASES = [(name, lambda context, changes=changes: compare(context, changes))
         for name, changes in CONFIGS.items()]
CASES += [
    ("one token", lambda context: compare(context, {}, batch=1, length=1)),
    # max_position_embeddings is 64.
    ("beyond its positions", lambda context: compare(context, {}, batch=1,
                                                     length=80)),
    ("one sequence", lambda context: compare(context, {}, batch=1, length=64)),
]
