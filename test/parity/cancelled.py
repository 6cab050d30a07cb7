"""Weights that rounding decides, because Adam and Lion make a step of any
gradient.

A key's bias adds one number to all scores of a query, and the softmax over
these cancels it, except where a rotary embedding turns the key first. What is
left of the gradient is rounding, which another CPU, another number of ranks and
another order of sums each make anew. No two runs agree there by more than the
lengths of their steps.

Elsewhere a gradient is near zero by chance, in a step or two: one element of an
embedding's 16,384 was 7e-4 apart, all others 7e-5. A wrong gradient shows in
many elements, or in one that drifts by a step each time.
"""
from harness import check

# Of how many elements of a tensor one may be near zero.
ONE_IN = 4096


def keys(config):
    """function(name, tensor) -> a view of the part of `tensor` that is such a
    bias, or None."""
    kind = config["model_type"]
    names = {
        "gpt2": "attn.c_attn.bias", "gpt_bigcode": "attn.c_attn.bias",
        "gpt_neox": "attention.query_key_value.bias",
        "opt": "self_attn.k_proj.bias", "bert": "attention.self.key.bias",
        "roberta": "attention.self.key.bias",
        "vit": "attention.key.bias"}

    def part(name, tensor):
        if kind not in names or not name.endswith(names[kind]):
            return None
        if kind == "gpt2":
            return tensor.chunk(3)[1]
        if kind == "gpt_bigcode":  # queries, then one head's key and value
            width, heads = config["n_embd"], config["n_head"]
            return tensor[width:width + width // heads]
        if kind == "gpt_neox":  # a quarter of each head is turned
            heads = config["num_attention_heads"]
            size = tensor.numel() // heads // 3
            return tensor.view(heads, 3, size)[:, 1, size // 4:]
        return tensor
    return part


class Rounding:
    """What rounding decides in a run on the model of `config`."""

    def __init__(self, job, config):
        self.part = keys(config)
        self.step = job["optimizer"]["lr"]
        self.steps = job["schedule"]["steps"]
        # Lion steps by the sign alone: an element stays apart as long as its
        # momentum stays near zero.
        self.apart = 2 if job["optimizer"]["name"] == "adamw" else 2 * self.steps

    def take_out(self, name, difference, tolerance):
        """Checks these elements of a tensor's `difference` and zeroes them."""
        biases = self.part(name, difference)
        if biases is not None:
            self.within(name, biases, 2 * self.steps)
            biases.zero_()
        apart = difference > tolerance
        if 0 < int(apart.sum()) <= max(1, difference.numel() // ONE_IN):
            self.within(name, difference[apart], self.apart)
            difference[apart] = 0.0

    def within(self, name, difference, steps):
        worst, bound = float(difference.max()), steps * self.step
        check(worst <= bound, f"{name} differs by {worst:.2e} where rounding "
                              f"makes up {steps} steps, {bound:g}, at most")


def rounding(job, config):
    """Of a job's optimizer; None where small gradients make small steps."""
    signed = job["optimizer"]["name"] in ("adamw", "lion")
    return Rounding(job, config) if signed else None
