"""Rows of operators.TABLE: matmuls, convolution, reductions, attention."""
import math

import torch

from operators import ANY, DTYPES, FLOATS, Call, T, operator, simple


#===----------------------------------------------------------------------===#
# Matmuls
#===----------------------------------------------------------------------===#


def maybe_off(d, size):
    return size + 1 if d.chance(0.05) else size


@operator("mm", "bmm", "mv", "dot", "addmm", "baddbmm")
def product(d, name):
    n, k, m, batch = d.size(), d.size(), d.size(), d.size()
    dtype = d.dtype(FLOATS)
    other = dtype if not d.chance(0.05) else "f16"
    inner = maybe_off(d, k)
    shapes = {"mm": ((n, k), (inner, m)), "addmm": ((n, k), (inner, m)),
              "bmm": ((batch, n, k), (maybe_off(d, batch), inner, m)),
              "baddbmm": ((batch, n, k), (maybe_off(d, batch), inner, m)),
              "mv": ((n, k), (inner,)), "dot": ((k,), (inner,))}[name]
    operands = [d.tensor(dtype, shapes[0]), d.tensor(other, shapes[1])]
    attrs, extra = {}, []
    if name in ("addmm", "baddbmm"):
        whole = (n, m) if name == "addmm" else (batch, n, m)
        operands.insert(0, d.tensor(dtype, d.broadcast(whole)))
    if name == "baddbmm":
        attrs = {"beta": d.pick(1.0, 0.5), "alpha": d.pick(1.0, 0.25)}
        extra = [attrs]
    return simple(name, operands, attrs, extra, exact=False)


def plain(shape):
    """Channels and positions are more than one: the format is no guess."""
    return shape[1] > 1 and math.prod(shape[2:]) > 1


@operator("convolution")
def convolution(d):
    return convolve(d)[0]


def convolve(d):
    dims = d.pick(1, 2, 2, 3) if not d.gradient else d.pick(1, 2)
    groups, batch = d.pick(1, 1, 2), d.random.randint(1, 3)
    cin, cout = groups * d.random.randint(1, 3), groups * d.random.randint(1, 3)
    transposed = d.random.random() < 0.3
    kernel = [d.random.randint(1, 3) for _ in range(dims)]
    stride = [d.random.randint(1, 2) for _ in range(dims)]
    padding = [d.random.randint(0, 1) for _ in range(dims)]
    dilation = [d.pick(1, 1, 2) for _ in range(dims)]
    out_padding = [d.pick(0, 0, 1) if transposed and s > 1 else 0
                   for s in stride]
    spatial = [d.random.randint(3 if not d.chance(0.1) else 1, 7)
               for _ in range(dims)]
    dtype = d.dtype(("f32", "f32", "f64", "bf16"))
    weight = ((maybe_off(d, cin), cout // groups) if transposed else
              (cout, maybe_off(d, cin) // groups)) + tuple(kernel)
    operands = [d.tensor(dtype, (batch, cin, *spatial)),
                d.tensor(dtype, weight)]
    for x in operands:  # channels last, or as they come
        x.order = d.pick(None, (0, *range(2, dims + 2), 1)) \
            if dims == 2 and not d.gradient and plain(x.shape) else None
    bias = d.random.random() < 0.5
    if bias:
        operands.append(d.tensor(dtype, (maybe_off(d, cout),)))
    attrs = {"stride": stride, "padding": padding, "dilation": dilation,
             "transposed": transposed, "output_padding": out_padding,
             "groups": groups}
    args = [T(0), T(1), T(2) if bias else None, *attrs.values()]
    return Call("aten::convolution", operands, attrs, args, exact=False), bias


@operator("convolution_backward")
def convolution_backward(d):
    call, bias = convolve(d)
    try:
        out = torch.ops.aten.convolution.default(
            *[torch.empty(o.shape, device="meta") for o in call.operands[:2]],
            None, *call.attrs.values())
    except RuntimeError:
        out = torch.empty(1)
    mask = [d.pick(True, False), True, bias and d.pick(True, False)]
    sizes = [out.shape[1]] if bias and out.dim() > 1 else None
    mask[2] = mask[2] and sizes is not None
    x, weight = call.operands[:2]
    grad = d.tensor(x.dtype, tuple(out.shape))
    attrs = {"bias_sizes": sizes, **call.attrs, "output_mask": mask}
    args = [T(0), T(1), T(2), *attrs.values()]
    return Call("aten::convolution_backward", [grad, x, weight], attrs, args,
                results=tuple(i for i, wanted in enumerate(mask) if wanted))


#===----------------------------------------------------------------------===#
# Reductions
#===----------------------------------------------------------------------===#


@operator("sum.dim_IntList", "mean.dim", "amax", "amin", "any.dims",
          "all.dims")
def reduction(d, name):
    x = d.any(FLOATS if name == "mean.dim" else ANY)
    dims = d.dims(len(x.shape))
    keep = d.pick(True, False)
    return simple(name, [x], {"dim": dims, "keepdim": keep},
                  extra=(dims, keep))


@operator("cumsum")
def cumsum(d):
    x = d.any(ANY, rank=(1, 4))
    dim = d.dim(len(x.shape))
    return simple("cumsum", [x], {"dim": dim}, extra=(dim,))


@operator("_softmax", "_log_softmax")
def softmax(d, name):
    x = d.any(FLOATS, rank=(1, 4))
    dim = d.dim(len(x.shape))
    return simple(name, [x], {"dim": dim}, extra=(dim, False))


@operator("_softmax_backward_data", "_log_softmax_backward_data")
def softmax_backward(d, name):
    x = d.any(FLOATS, rank=(1, 4))
    out = d.tensor(x.dtype, x.shape)
    dim, dtype = d.random.randrange(len(x.shape)), DTYPES[x.dtype]
    return simple(name, [x, out], {"dim": dim, "input_dtype": dtype},
                  extra=(dim, dtype))


@operator("nll_loss_forward")
def nll_loss(d):
    rows, classes = d.random.randint(1, 5), d.random.randint(1, 6)
    x = d.tensor(d.dtype(FLOATS), (rows, classes))
    target = d.tensor("i64", (maybe_off(d, rows),), low=0, high=classes)
    attrs = {"ignore_index": -100, "reduction": d.pick(1, 2)}
    return simple("nll_loss_forward", [x, target], attrs,
                  extra=(None, attrs["reduction"], -100))


@operator("nll_loss_backward")
def nll_loss_backward(d):
    rows, classes = d.random.randint(1, 5), d.random.randint(1, 6)
    dtype = d.dtype(FLOATS)
    operands = [d.tensor(dtype, ()), d.tensor(dtype, (rows, classes)),
                d.tensor("i64", (rows,), low=0, high=classes),
                d.tensor(dtype, ())]
    attrs = {"ignore_index": -100, "reduction": d.pick(1, 2)}
    return Call("aten::nll_loss_backward", operands, attrs,
                [T(0), T(1), T(2), None, attrs["reduction"], -100, T(3)])


@operator("native_layer_norm")
def layer_norm(d):
    x = d.any(FLOATS, rank=(1, 4))
    width = [x.shape[-1]]
    operands = [x, d.tensor(x.dtype, width), d.tensor(x.dtype, width)]
    bias = d.pick(True, False)
    if d.gradient:
        operands[0].shape = x.shape[:-1] + (max(x.shape[-1], 3),)
        operands[1].shape = operands[2].shape = operands[0].shape[-1:]
        width = [operands[0].shape[-1]]
    return Call("aten::native_layer_norm", operands[:3 if bias else 2],
                {"normalized_shape": width, "eps": 1e-5,
                 "stats": DTYPES[x.dtype]},
                [T(0), width, T(1), T(2) if bias else None, 1e-5])


@operator("native_layer_norm_backward")
def layer_norm_backward(d):
    x = d.any(FLOATS, rank=(1, 4))
    width = [x.shape[-1]]
    stats = x.shape[:-1] + (1,)
    bias = d.pick(True, False)
    operands = [d.tensor(x.dtype, x.shape), x, d.tensor(x.dtype, stats),
                d.tensor(x.dtype, stats), d.tensor(x.dtype, width),
                d.tensor(x.dtype, width)]
    mask = [True, True, bias]
    return Call("aten::native_layer_norm_backward",
                operands[:6 if bias else 5],
                {"normalized_shape": width, "output_mask": mask},
                [T(0), T(1), width, T(2), T(3), T(4),
                 T(5) if bias else None, mask],
                results=(0, 1, 2) if bias else (0, 1))


#===----------------------------------------------------------------------===#
# Attention
#===----------------------------------------------------------------------===#


def heads(d):
    batch, sequence, keys = (d.random.randint(1, 3) for _ in range(3))
    groups = d.random.randint(1, 2)
    count, width = groups * d.random.randint(1, 2), d.pick(4, 8)
    dtype = d.dtype(("f32", "f32", "bf16"))
    operands = [d.tensor(dtype, (batch, count, length, width))
                for length in (sequence, keys, keys)]
    for x in operands:  # heads are contiguous
        x.dense().order = d.pick(None, (0, 2, 1, 3))
    return operands


CPU_FLASH = "_scaled_dot_product_flash_attention_for_cpu"


@operator(CPU_FLASH)
def flash_cpu(d):
    causal = d.pick(True, False)
    return simple(CPU_FLASH, heads(d), {"is_causal": causal, "scale": 0.5},
                  extra=(0.0, causal, {"attn_mask": None, "scale": 0.5}),
                  exact=False)


@operator(CPU_FLASH + "_backward")
def flash_cpu_backward(d):
    q, k, v = heads(d)
    grad = d.tensor(q.dtype, q.shape).dense()
    out = d.tensor(q.dtype, q.shape).dense()
    lse = d.tensor("f32", q.shape[:3]).dense()
    return simple(CPU_FLASH + "_backward", [grad, q, k, v, out, lse],
                  {"is_causal": False, "scale": 0.5},
                  extra=(0.0, False, {"attn_mask": None, "scale": 0.5}))
