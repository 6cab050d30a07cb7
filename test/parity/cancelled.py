"""Biases of keys, whose gradient is zero in exact arithmetic.

A key's bias adds one number to all scores of a query, and the softmax over
these cancels it, except where a rotary embedding turns the key first. What is
left of the gradient is rounding, which another CPU, another number of ranks and
another order of sums each make anew, and Adam scales that up to whole steps. No
two runs agree there by more than the lengths of their steps, so such elements
are compared by that length, and all others as tightly as other models.
"""


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


def within_steps(job, config):
    """What harness.compare_weights takes: two runs of AdamW are at most two
    times the sum of the steps apart."""
    steps = job["schedule"]["steps"]
    if job["optimizer"]["name"] != "adamw":
        return None
    return keys(config), 2 * steps * job["optimizer"]["lr"]
