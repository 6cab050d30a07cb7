"""Operators that have no kernel of ATen on CPUs, as formulas: attention and
norms before kernels are selected, kernels of CUDA, fused and random ones."""
import dataclasses
import math

import torch
from dropout_cases import scale_mask
from operators import Operand

import sharded_forms
from sharded_calls import plain


@dataclasses.dataclass
class Row:
    name: str
    operands: list
    attrs: dict
    run: object              # of (tensors, attrs), a list of results
    form: object = plain
    mask: object = None      # of (shape, attrs), what dropout multiplies by


ROWS = {}


def row(*names):
    def register(function):
        for name in names:
            ROWS[name] = lambda d, name=name: function(d, name)
        return function
    return register


def f32(*shape, low=-1.5, high=1.5):
    return Operand("f32", shape, low=low, high=high)


def drop_mask(shape, attrs):
    p = attrs.get("p", attrs.get("dropout_p"))
    key = attrs.get("key", attrs.get("dropout_key"))
    return scale_mask(tuple(shape), p, seed=7, micro_batch=1, call=2, key=key)


#===----------------------------------------------------------------------===#
# Attention
#===----------------------------------------------------------------------===#


def scores(q, k, attrs, mask):
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    s = q @ k.transpose(2, 3) * attrs["scale"]
    if attrs.get("softcap"):
        s = torch.tanh(s / attrs["softcap"]) * attrs["softcap"]
    rows, columns = s.shape[2:]
    ahead = torch.arange(columns) - torch.arange(rows).unsqueeze(1)
    if attrs["is_causal"]:
        s = s.masked_fill(ahead > 0, -math.inf)
    if attrs.get("window"):
        s = s.masked_fill(ahead <= -attrs["window"], -math.inf)
    return s if mask is None else s + mask


def weights_that_stay(shape, attrs):
    """What dropout multiplies weights by: of the whole, or of a rank's part."""
    if not attrs.get("dropout_p"):
        return 1.0
    part = attrs.get("mask_of_part")
    return drop_mask(shape, attrs) if part is None else part


def attend(tensors, attrs):
    q, k, v = tensors[:3]
    s = scores(q, k, attrs, tensors[3] if len(tensors) > 3 else None)
    weights = s.softmax(-1)
    weights = weights * weights_that_stay(weights.shape, attrs)
    v = v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)
    return weights @ v, s.logsumexp(-1)


def attention_operands(d):
    batch, sequence = d.size(), d.size()
    groups, per_group = d.pick(1, 2, 3, 4), d.pick(1, 2, 3)
    keys, width = sequence if d.random.random() < 0.6 else 6, d.pick(2, 4)
    q = f32(batch, groups * per_group, sequence, width)
    return [q, f32(batch, groups, keys, width), f32(batch, groups, keys, width)]


@row("scaled_dot_product_attention")
def attention(d, name):
    operands = attention_operands(d)
    q, k = operands[0].shape, operands[1].shape
    causal = d.pick(True, False)
    attrs = {"is_causal": causal, "scale": 0.5,
             "window": d.pick(0, 2, 3) if causal else 0,
             "softcap": d.pick(0.0, 2.0), "dropout_p": d.pick(0.0, 0.0, 0.25),
             "dropout_key": 5}
    if d.random.random() < 0.4:
        shape = [size if d.random.random() < 0.5 else 1 for size in q[:3]]
        operands.append(f32(*shape, k[2]))
    return Row(name, operands, attrs, lambda t, a: [attend(t, a)[0]],
               sharded_forms.form_of(name), drop_mask)


def forward(name):
    def run(tensors, attrs):
        out, sums = attend(tensors, attrs)
        if name == CUDNN:
            return [out, sums.unsqueeze(-1)]
        short = -sums.shape[-1] % 32 if "efficient" in name else 0
        return [out, torch.nn.functional.pad(sums, (0, short))]
    return run


def backward_with_scores(tensors, attrs):
    """Gradients of q, k, v and of the scores with their mask."""
    grad, q, k, v, out, sums = tensors[:6]
    mask = tensors[6] if len(tensors) > 6 else None
    times = q.shape[1] // k.shape[1]
    wide_k, wide_v = (t.repeat_interleave(times, dim=1) for t in (k, v))
    s = scores(q, k, attrs, mask)
    sums = sums.squeeze(-1) if sums.dim() == 4 else sums
    p = (s - sums[..., :q.shape[2], None]).exp()
    stays = weights_that_stay(p.shape, attrs)
    gp = (grad @ wide_v.transpose(2, 3)) * stays
    masked = p * (gp - (grad * out).sum(-1, keepdim=True))
    gs = masked * attrs["scale"]
    each = (gs.transpose(2, 3) @ q, (p * stays).transpose(2, 3) @ grad)
    return [gs @ wide_k] + [
        g.unflatten(1, (k.shape[1], times)).sum(2) for g in each] + [masked]


def backward(tensors, attrs):
    return backward_with_scores(tensors, attrs)[:3]


CUDA = "_scaled_dot_product_flash_attention"
CPU = CUDA + "_for_cpu"
EFFICIENT = "_scaled_dot_product_efficient_attention"
CUDNN = "_scaled_dot_product_cudnn_attention"


@row(CUDA, CPU, CUDNN, EFFICIENT)
def attention_kernel(d, name):
    operands = attention_operands(d)
    q, k = operands[0].shape, operands[1].shape
    if name != CUDA and d.random.random() < 0.4:
        operands.append(f32(*q[:3], k[2]))
    attrs = {"is_causal": d.pick(True, False), "scale": 0.5}
    return Row(name, operands, attrs, forward(name),
               sharded_forms.form_of(name))


@row(*(each + "_backward" for each in (CUDA, CPU, CUDNN, EFFICIENT)))
def attention_backward(d, name):
    of_efficient = name.startswith(EFFICIENT)
    operands = attention_operands(d)
    q, k = operands[0].shape, operands[1].shape
    rows = (q[2] + 31) // 32 * 32 if of_efficient else q[2]
    sums = (*q[:2], rows, *([1] if name.startswith(CUDNN) else []))
    operands = [f32(*q), *operands, f32(*q), f32(*sums)]
    if not name.startswith(CUDA + "_b") and d.random.random() < 0.4:
        operands.append(f32(*q[:3], k[2]))
    attrs = {"is_causal": d.pick(True, False), "scale": 0.5}
    return Row(name, operands, attrs, backward, sharded_forms.form_of(name))


# Numbers are those of dropout on CPUs, not the kernels': a rule says how they are
# cut, which is the same for every function of the position.
DROPPED = tuple(f"dropped_{kernel}_attention" for kernel in ("flash", "efficient"))


def dropped_attrs(d):
    return {"is_causal": d.pick(True, False), "scale": 0.5, "dropout_p": 0.25,
            "dropout_key": 5}


@row(*DROPPED)
def dropped_attention(d, name):
    operands = attention_operands(d)
    if "efficient" in name and d.random.random() < 0.4:
        operands.append(f32(*operands[0].shape[:3], operands[1].shape[2]))
    return Row(name, operands, dropped_attrs(d), forward(name),
               sharded_forms.form_of(name), drop_mask)


@row(*(name + "_backward" for name in DROPPED))
def dropped_attention_backward(d, name):
    operands = attention_operands(d)
    q, k = operands[0].shape, operands[1].shape
    rows = (q[2] + 31) // 32 * 32 if "efficient" in name else q[2]
    operands = [f32(*q), *operands, f32(*q), f32(*q[:2], rows)]
    if "efficient" in name and d.random.random() < 0.4:
        operands.append(f32(*q[:3], k[2]))
    return Row(name, operands, dropped_attrs(d), backward,
               sharded_forms.form_of(name), drop_mask)


@row(EFFICIENT + "_mask_backward")
def trained_mask_backward(d, name):
    operands = attention_operands(d)
    q, k = operands[0].shape, operands[1].shape
    mask = f32(*q[:3], k[2])
    rows = (q[2] + 31) // 32 * 32
    attrs = {"is_causal": d.pick(True, False), "scale": 0.5}

    def run(tensors, attrs):
        grad, query, key, value, mask, out, sums = tensors
        return backward_with_scores([grad, query, key, value, out, sums, mask],
                                    attrs)

    return Row(name, [f32(*q), *operands, mask, f32(*q), f32(*q[:2], rows)],
               attrs, run)


def swapped(tensors):
    return [t.transpose(1, 2) if t.dim() == 4 else t for t in tensors]


def window(attrs):
    return {**attrs, "is_causal": True, "window": attrs["before"] + 1}


@row("_flash_attention_forward")
def window_attention(d, name):
    def run(tensors, attrs):
        out, sums = attend(swapped(tensors), window(attrs))
        return [out.transpose(1, 2), sums]

    operands = attention_operands(d)
    return Row(name, [f32(*(o.shape[i] for i in (0, 2, 1, 3)))
                      for o in operands],
               {"before": d.pick(0, 1, 3), "scale": 0.5}, run,
               sharded_forms.form_of(name))


@row("_flash_attention_backward")
def window_attention_backward(d, name):
    q, k, v = attention_operands(d)
    order = [f32(*(o.shape[i] for i in (0, 2, 1, 3))) for o in (q, q, k, v, q)]
    return Row(name, order + [f32(*q.shape[:3])],
               {"before": d.pick(0, 1, 3), "scale": 0.5},
               lambda tensors, attrs: swapped(
                   backward(swapped(tensors), window(attrs))),
               sharded_forms.form_of(name))


#===----------------------------------------------------------------------===#
# Kernels that want other operands than operators.TABLE draws
#===----------------------------------------------------------------------===#


@row("_grouped_mm")
def grouped_mm(d, name):
    """PyTorch's kernel refuses sizes whose rows are not multiples of 16 bytes;
    half of the calls are for the gradient of the weights."""
    groups, k, m, n = d.pick(1, 2, 3), d.pick(4, 6, 8), d.pick(4, 6), d.size()
    rows = 6
    of_weights = d.random.random() < 0.5
    ends = Operand("i32", (groups,), low=0, high=rows + 1)

    def run(tensors, attrs):
        x, other, ends = tensors
        ends = ends.sort().values.tolist()
        starts = [0] + ends[:-1]
        if other.dim() == 2:
            return [torch.stack([x[:, a:b] @ other[a:b]
                                 for a, b in zip(starts, ends)])]
        out = x.new_zeros(x.shape[0], other.shape[2])
        for i, (a, b) in enumerate(zip(starts, ends)):
            out[a:b] = x[a:b] @ other[i]
        return [out]
    operands = [f32(m, rows), f32(rows, n), ends] if of_weights else \
        [f32(rows, k), f32(groups, k, n), ends]
    return Row(name, operands, {}, run)


@row("bitwise_not", "bitwise_and.Tensor", "bitwise_or.Tensor",
     "bitwise_xor.Tensor")
def bits(d, name):
    shape = d.shape(1)
    operands = [Operand("i64", shape, low=0, high=16)]
    if name != "bitwise_not":
        operands.append(Operand("i64", d.broadcast(shape), low=0, high=16))
    packet, _, overload = name.partition(".")
    kernel = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return Row(name, operands, {}, lambda t, a: [kernel(*t)])


@row("view")
def view(d, name):
    """Two shapes of one size: merges, splits, and boundaries that cross."""
    primes = [d.pick(2, 2, 2, 3, 3, 5) for _ in range(d.random.randint(1, 6))]

    def grouped():
        sizes, order = [], list(primes)
        if d.random.random() < 0.4:
            d.random.shuffle(order)
        for prime in order:
            if sizes and d.random.random() < 0.5:
                sizes[-1] *= prime
            else:
                sizes.append(prime)
            if d.random.random() < 0.1:
                sizes.append(1)
        return sizes
    return Row(name, [f32(*grouped())], {"size": grouped()},
               lambda t, a: [t[0].reshape(a["size"]).clone()])


@row("any.dims", "all.dims")
def truth(d, name):
    """Of truth values, as numbers are seldom 0."""
    shape = d.shape(1)
    dims, keep = d.dims(len(shape)), d.pick(True, False)
    kernel = getattr(torch.ops.aten, name.removesuffix(".dims")).dims
    return Row(name, [Operand("i1", shape)], {"dim": dims, "keepdim": keep},
               lambda t, a: [kernel(t[0], a["dim"], a["keepdim"])])


#===----------------------------------------------------------------------===#
# Norms
#===----------------------------------------------------------------------===#


@row("rms_norm")
def rms_norm(d, name):
    x = f32(*d.shape(1), low=0.2)

    def run(tensors, attrs):
        x, weight = tensors
        return [x * (x.square().mean(-1, keepdim=True) +
                     attrs["eps"]).rsqrt() * weight]
    return Row(name, [x, f32(x.shape[-1])], {"eps": 1e-5}, run)


@row("layer_norm")
def layer_norm(d, name):
    x = f32(*d.shape(1))
    operands = [x, f32(x.shape[-1])] + \
        ([f32(x.shape[-1])] if d.random.random() < 0.5 else [])

    def run(tensors, attrs):
        return [torch.nn.functional.layer_norm(
            tensors[0], tensors[1].shape, *tensors[1:], eps=attrs["eps"])]
    return Row(name, operands, {"eps": 1e-5}, run)


@row("_fused_rms_norm")
def fused_rms_norm(d, name):
    x = f32(*d.shape(1), low=0.2)

    def run(tensors, attrs):
        x, weight = tensors
        rstd = (x.square().mean(-1, keepdim=True) + attrs["eps"]).rsqrt()
        return [x * rstd * weight, rstd]
    return Row(name, [x, f32(x.shape[-1])],
               {"normalized_shape": [x.shape[-1]], "eps": 1e-5}, run)


@row("_fused_rms_norm_backward")
def fused_rms_norm_backward(d, name):
    x = f32(*d.shape(1))
    stats = f32(*x.shape[:-1], 1, low=0.3)

    def run(tensors, attrs):
        grad, x, rstd, weight = tensors
        normed, flowing = x * rstd, grad * weight
        mean = (flowing * normed).mean(-1, keepdim=True)
        rows = list(range(x.dim() - 1))
        weights = grad * normed
        return [rstd * (flowing - normed * mean),
                weights.sum(rows) if rows else weights]
    return Row(name, [f32(*x.shape), x, stats, f32(x.shape[-1])],
               {"normalized_shape": [x.shape[-1]]}, run)


#===----------------------------------------------------------------------===#
# Fused
#===----------------------------------------------------------------------===#


@row("rotary")
def rotary(d, name):
    batch, sequence, heads, width = d.size(), d.size(), d.size(), d.pick(2, 4)
    tables = [f32(sequence, 1, width) for _ in range(2)]

    def run(tensors, attrs):
        x, cos, sin = tensors
        a, b = x.chunk(2, -1)
        turned = torch.cat([-b, a], -1)
        return [x * cos + turned * (-sin if attrs["inverse"] else sin)]
    return Row(name, [f32(batch, sequence, heads, width), *tables],
               {"inverse": d.pick(True, False)}, run)


@row("swiglu")
def swiglu(d, name):
    shape = d.shape(1)
    return Row(name, [f32(*shape), f32(*shape)], {},
               lambda t, a: [torch.nn.functional.silu(t[0]) * t[1]])


@row("swiglu_backward")
def swiglu_backward(d, name):
    shape = d.shape(1)

    def run(tensors, attrs):
        grad, gate, up = tensors
        return [torch.ops.aten.silu_backward(grad * up, gate),
                grad * torch.nn.functional.silu(gate)]
    return Row(name, [f32(*shape) for _ in range(3)], {}, run)


def mamba2(tensors, attrs, groups):
    """The recurrence step by step; each group has its rows of the projection
    (gate, input, B, C, steps) and its channels side by side."""
    projected, conv, bias, step_bias, decay, skip, norm = tensors
    batch, tokens = projected.shape[:2]
    size, state = attrs["head_dim"], attrs["state"]
    heads = decay.numel() // groups
    inner = heads * size
    z, mixed, steps = projected.view(batch, tokens, groups, -1).split(
        [inner, inner + 2 * state, heads], -1)
    channels = mixed.reshape(batch, tokens, -1).transpose(1, 2)
    channels = torch.nn.functional.conv1d(
        channels, conv, bias, padding=conv.shape[2] - 1,
        groups=channels.shape[1])[:, :, :tokens]
    mixed = torch.nn.functional.silu(channels.transpose(1, 2)).reshape(
        batch, tokens, groups, -1)
    x, b, c = mixed.split([inner, state, state], -1)
    x = x.reshape(batch, tokens, groups, heads, size)
    steps = torch.nn.functional.softplus(
        steps + step_bias.view(groups, heads)).clamp(min=attrs["step_min"])
    shrink = torch.exp(-torch.exp(decay.view(groups, heads)) * steps)
    h = torch.zeros(batch, groups, heads, size, state)
    rows = []
    for t in range(tokens):
        h = h * shrink[:, t, :, :, None, None] + (
            steps[:, t, :, :, None] * x[:, t])[..., None] \
            * b[:, t, :, None, None]
        rows.append((h * c[:, t, :, None, None]).sum(-1)
                    + skip.view(groups, heads, 1) * x[:, t])
    scanned = torch.stack(rows, 1).reshape(batch, tokens, groups, inner)
    gated = scanned * torch.nn.functional.silu(z)
    rstd = torch.rsqrt(gated.pow(2).mean(-1) + attrs["eps"])
    y = gated * rstd[..., None] * norm.view(groups, inner)
    shape = (batch, tokens, groups * inner)
    return [y.reshape(shape), scanned.reshape(shape), rstd]


def mamba2_operands(d):
    groups, heads, size, state = d.pick(1, 2, 4), d.pick(1, 2), 2, 3
    batch, tokens = d.pick(1, 2), d.pick(2, 5)
    inner = groups * heads * size
    channels = inner + 2 * groups * state
    operands = [f32(batch, tokens, inner + channels + groups * heads),
                f32(channels, 1, 2), f32(channels), f32(groups * heads),
                f32(groups * heads), f32(groups * heads), f32(inner)]
    return groups, operands, {"head_dim": size, "state": state, "chunk": 4,
                              "eps": 1e-5, "step_min": 1e-3}


@row("mamba2_mixer")
def mamba2_mixer(d, name):
    groups, operands, attrs = mamba2_operands(d)
    return Row(name, operands, {"groups": groups, **attrs},
               lambda t, a: mamba2(t, a, a["groups"]))


@row("mamba2_mixer_backward")
def mamba2_mixer_backward(d, name):
    groups, operands, attrs = mamba2_operands(d)

    def run(tensors, attrs):
        with torch.enable_grad():
            inputs = [t.detach().requires_grad_() for t in tensors[1:8]]
            y = mamba2(inputs, attrs, tensors[9].shape[2])[0]
            return list(torch.autograd.grad(y, inputs, tensors[0]))
    batch, tokens = operands[0].shape[:2]
    inner = operands[6].shape[0]
    return Row(name, [f32(batch, tokens, inner), *operands,
                      f32(batch, tokens, inner), f32(batch, tokens, groups)],
               attrs, run)


def targets(rows, classes):
    return Operand("i64", (rows,), low=0, high=classes)


@row("cross_entropy")
def cross_entropy(d, name):
    rows, classes = d.size(), d.pick(2, 4, 6)

    def run(tensors, attrs):
        logits, target = tensors
        return [torch.nn.functional.cross_entropy(
            logits, target, ignore_index=attrs["ignore_index"]),
            logits.logsumexp(1)]
    # Among several rows the class 1 does not count.
    return Row(name, [f32(rows, classes), targets(rows, classes)],
               {"ignore_index": d.pick(-100, 1) if rows > 1 else -100,
                "in_place": d.pick(True, False)}, run,
               sharded_forms.form_of(name))


@row("cross_entropy_backward", "cross_entropy_in_place_backward")
def cross_entropy_backward(d, name):
    rows, classes = d.size(), d.pick(2, 4, 6)

    def run(tensors, attrs):
        logits, grad, target, sums = tensors
        counts = target != attrs["ignore_index"]
        hot = torch.nn.functional.one_hot(target, logits.shape[1])
        return [((logits - sums[:, None]).exp() - hot) * counts[:, None] *
                grad / counts.sum()]
    return Row(name, [f32(rows, classes), f32(), targets(rows, classes),
                      f32(rows, low=3.0, high=4.0)],
               {"ignore_index": d.pick(-100, 1) if rows > 1 else -100}, run,
               sharded_forms.form_of(name))


@row("dropout")
def dropout(d, name):
    return Row(name, [f32(*d.shape(1))], {"p": 0.25, "key": 3},
               lambda t, a: [t[0] * drop_mask(t[0].shape, a)],
               sharded_forms.form_of(name), drop_mask)


@row("type_as")
def type_as(d, name):
    return Row(name, [f32(*d.shape(1)), Operand("f64", d.shape(1))], {},
               lambda t, a: [t[0].double()])
