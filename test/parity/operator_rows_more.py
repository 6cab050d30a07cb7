"""More rows of operators.TABLE: images, further reductions, routing."""
import torch

from operator_rows_kernels import maybe_off, plain
from operators import (ANY, FLOATS, INTS, Call, Operand, T, operator,
                       simple)

#===----------------------------------------------------------------------===#
# Images
#===----------------------------------------------------------------------===#


def image(d, dtypes=("f32", "f32", "f64"), least=3):
    """x [N, C, H, W], as it comes or with the channels last in memory."""
    shape = (d.random.randint(1, 3), 2 * d.random.randint(1, 2),
             d.random.randint(least, 6), d.random.randint(least, 6))
    x = d.tensor(d.dtype(dtypes), shape, low=-2.0, high=2.0).dense()
    x.order = d.pick(None, None, (0, 2, 3, 1)) \
        if not d.gradient and plain(shape) else None
    return x


def channels(d, x):
    return d.tensor(x.dtype if not d.chance(0.05) else "f16",
                    (maybe_off(d, x.shape[1]),)).dense()


@operator("_native_batch_norm_legit_functional",
          "_native_batch_norm_legit.no_stats",
          "_native_batch_norm_legit_no_training")
def batch_norm(d, name):
    x = image(d)
    if d.random.random() < 0.3:
        x = d.tensor(x.dtype, x.shape[:2] if x.shape[0] > 1 or d.chance(0.5)
                     else (2, x.shape[1]), low=-2.0).dense()
    count = 2 if name.endswith("no_stats") else 4
    operands = [x] + [channels(d, x) for _ in range(count)]
    training = [] if name.endswith("no_training") else [True]
    results = (0,) if name.endswith("no_training") else None
    for stat in operands[3:]:
        stat.fixed = True

    def reference(x, weight, bias, *stats):
        return torch.nn.functional.batch_norm(
            x, *([s.clone() for s in stats] or (None, None)), weight, bias,
            bool(training), 0.1, 1e-5)
    return simple(name, operands, {"momentum": 0.1, "eps": 1e-5},
                  extra=(*training, 0.1, 1e-5), results=results,
                  reference=reference)


@operator("native_batch_norm_backward", "native_batch_norm_backward.eval")
def batch_norm_backward(d, name):
    x = image(d)
    operands = [d.tensor(x.dtype, x.shape), x] + \
        [d.tensor(x.dtype, (x.shape[1],)) for _ in range(3)]
    for operand in operands:
        operand.dense()
    operands[0].order = x.order
    mask = [d.pick(True, False), True, d.pick(True, False)]
    training = not name.endswith("eval")
    stats = [T(3), T(4)]
    args = [T(0), T(1), T(2), *([None, None] if training else stats),
            *(stats if training else [None, None]), training, 1e-5, mask]
    return Call("aten::native_batch_norm_backward", operands,
                {"eps": 1e-5, "output_mask": mask}, args,
                results=tuple(i for i in range(3) if mask[i]))


@operator("native_group_norm")
def group_norm(d):
    x = image(d)
    x.order = None
    n, c, rest = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
    groups = d.pick(1, 2) if not d.chance(0.1) else 3
    width = maybe_off(d, c)
    operands = [x, d.tensor(x.dtype, (width,)).dense(),
                d.tensor(x.dtype, (width,)).dense()]
    return simple("native_group_norm", operands,
                  {"N": n, "C": c, "HxW": rest, "group": groups, "eps": 1e-5},
                  extra=(n, c, rest, groups, 1e-5))


@operator("native_group_norm_backward")
def group_norm_backward(d):
    x = image(d)
    x.order = None
    n, c, rest = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
    stats = (n, 2)
    operands = [d.tensor(x.dtype, x.shape), x, d.tensor(x.dtype, stats),
                d.tensor(x.dtype, stats), d.tensor(x.dtype, (c,))]
    for operand in operands:
        operand.dense().order = None
    mask = [d.pick(True, False), True, d.pick(True, False)]
    return simple("native_group_norm_backward", operands,
                  {"N": n, "C": c, "HxW": rest, "group": 2,
                   "output_mask": mask},
                  extra=(n, c, rest, 2, mask),
                  results=tuple(i for i in range(3) if mask[i]))


def pool_window(d):
    kernel = [d.random.randint(1, 3) for _ in range(2)]
    stride = [d.random.randint(1, 3) for _ in range(2)]
    padding = [d.random.randint(0, k // 2) for k in kernel]
    if d.chance(0.1):
        padding[0] += 1
    return {"kernel_size": kernel, "stride": stride, "padding": padding}


@operator("max_pool2d_with_indices", "max_pool2d_with_indices_backward")
def max_pool(d, name):
    x = image(d)
    attrs = {**pool_window(d), "dilation": [d.pick(1, 1, 2) for _ in range(2)],
             "ceil_mode": d.pick(True, False)}
    if name == "max_pool2d_with_indices":
        return simple(name, [x], attrs, extra=tuple(attrs.values()))
    try:
        out = torch.ops.aten.max_pool2d_with_indices(
            torch.empty(x.shape, device="meta"), *attrs.values())[0].shape
    except RuntimeError:
        out = (1, 1, 1, 1)
    grad = d.tensor(x.dtype, tuple(out)).dense()
    grad.order = x.order
    indices = d.tensor("i64", tuple(out), low=0, high=4).dense()
    indices.order = x.order
    return Call("aten::" + name, [grad, x, indices], attrs,
                [T(0), T(1), *attrs.values(), T(2)])


@operator("avg_pool2d", "avg_pool2d_backward")
def avg_pool(d, name):
    x = image(d)
    attrs = {**pool_window(d), "ceil_mode": d.pick(True, False),
             "count_include_pad": d.pick(True, False)}
    extra = (*attrs.values(), None)
    if name == "avg_pool2d":
        return simple(name, [x], attrs, extra=extra)
    try:
        out = torch.ops.aten.avg_pool2d(
            torch.empty(x.shape, device="meta"), *attrs.values()).shape
    except RuntimeError:
        out = (1, 1, 1, 1)
    grad = d.tensor(x.dtype, tuple(out)).dense()
    grad.order = x.order
    return simple(name, [grad, x], attrs, extra=extra)


@operator("_adaptive_avg_pool2d", "upsample_nearest2d")
def resize(d, name):
    x = image(d, least=1)
    size = [d.random.randint(0 if d.chance(0.1) else 1, 7) for _ in range(2)]
    return simple(name, [x], {"output_size": size}, extra=(size,))


@operator("_adaptive_avg_pool2d_backward")
def adaptive_pool_backward(d):
    x = image(d, least=1)
    grad = d.tensor(x.dtype, x.shape[:2] + (d.random.randint(1, 4),
                                            d.random.randint(1, 4))).dense()
    grad.order = x.order
    return simple("_adaptive_avg_pool2d_backward", [grad, x])


@operator("upsample_nearest2d_backward")
def upsample_backward(d):
    grad = image(d, least=1)
    size = list(grad.shape[:2]) + [d.random.randint(1, 4),
                                   d.random.randint(1, 4)]
    out = list(grad.shape[2:])
    return simple("upsample_nearest2d_backward", [grad],
                  {"output_size": out, "input_size": size}, extra=(out, size))


#===----------------------------------------------------------------------===#
# More reductions and movement
#===----------------------------------------------------------------------===#


@operator("var.correction")
def variance(d):
    x = d.any(FLOATS)
    dims, keep = d.dims(len(x.shape)), d.pick(True, False)
    correction = d.pick(0.0, 1.0)
    return simple("var.correction", [x],
                  {"dim": dims, "correction": correction, "keepdim": keep},
                  extra=(dims, {"correction": correction, "keepdim": keep}))


@operator("logsumexp")
def logsumexp(d):
    x = d.any(FLOATS)
    dims, keep = d.dims(len(x.shape)), d.pick(True, False)
    return simple("logsumexp", [x], {"dim": dims, "keepdim": keep},
                  extra=(dims, keep))


@operator("max.dim", "min.dim", "argmax", "argmin")
def extreme(d, name):
    x = d.any(ANY, rank=(1, 4))
    dim, keep = d.dim(len(x.shape)), d.pick(True, False)
    return simple(name, [x], {"dim": dim, "keepdim": keep}, extra=(dim, keep))


@operator("tril", "triu")
def triangle(d, name):
    x = d.any(ANY, rank=(1 if d.chance(0.2) else 2, 4))
    diagonal = d.random.randint(-2, 2)
    return simple(name, [x], {"diagonal": diagonal}, extra=(diagonal,))


@operator("roll")
def roll(d):
    x = d.any(ANY, rank=(1, 4))
    dims = d.dims(len(x.shape))
    shifts = [d.random.randint(-3, 3) for _ in dims]
    return simple("roll", [x], {"shifts": shifts, "dims": dims},
                  extra=(shifts, dims))


@operator("repeat")
def repeat(d):
    x = d.any(ANY)
    repeats = [d.pick(1, 2, 3) for _ in range(len(x.shape) + d.pick(0, 0, 1))]
    if repeats and d.chance(0.1):
        repeats = repeats[1:]
    return simple("repeat", [x], {"repeats": repeats}, extra=(repeats,))


@operator("slice_scatter", "select_scatter")
def place(d, name):
    x = d.any(ANY, rank=(1, 4))
    dim, shape = d.dim(len(x.shape)), list(x.shape)
    size = shape[dim] if dim < len(shape) else 1
    start = d.random.randint(0, max(size - 1, 0))
    if name == "slice_scatter":
        end, step = d.random.randint(start, size), d.random.randint(1, 2)
        attrs = {"dim": dim, "start": start, "end": end, "step": step}
        if dim < len(shape):
            shape[dim] = (end - start + step - 1) // step
    else:
        attrs = {"dim": dim, "index": start}
        if dim < len(shape):
            shape.pop(dim)
    if shape and d.chance(0.05):
        shape[0] += 1
    src = d.tensor(x.dtype, shape)
    return simple(name, [x, src], attrs, extra=tuple(attrs.values()))


#===----------------------------------------------------------------------===#
# Routing and dropout
#===----------------------------------------------------------------------===#

#: Types that CPU kernels sort.
SORTED = FLOATS + INTS


@operator("topk")
def topk(d):
    x = d.any(SORTED, rank=(1, 3))
    dim = d.dim(len(x.shape))
    size = x.shape[dim] if dim < len(x.shape) else 1
    k = d.random.randint(0 if d.chance(0.2) else min(1, size), size)
    k += 1 if d.chance(0.05) else 0
    return simple("topk", [x], {"k": k, "dim": dim}, extra=(k, dim, True, True))


@operator("sort.stable")
def sort_stable(d):
    x = d.any(SORTED, rank=(1, 3))
    dim, down = d.dim(len(x.shape)), d.pick(True, False)
    return Call("aten::sort.stable", [x], {"dim": dim, "descending": down},
                [T(0), {"stable": True, "dim": dim, "descending": down}])


@operator("value_selecting_reduction_backward")
def selecting_backward(d):
    shape = [max(s, 1) for s in d.shape(1, 3)]
    dim = d.random.randrange(len(shape))
    part = list(shape)
    part[dim] = d.random.randint(1, shape[dim])
    grad = d.tensor(d.dtype(FLOATS), part)
    indices = d.tensor("i64", part, low=0, high=shape[dim])
    return Call("aten::value_selecting_reduction_backward", [grad, indices],
                {"dim": dim, "sizes": shape},
                [T(0), dim, T(1), shape, True])


@operator("floor_divide.Scalar")
def floor_divide(d):
    return simple("floor_divide.Scalar", [d.any(("i64", "i32"))],
                  {"other": 3}, extra=(3,))


@operator("searchsorted.Tensor")
def searchsorted(d):
    dtype = d.dtype(SORTED)
    ordered = d.tensor(dtype, (d.size(),))
    values = d.any((dtype,))
    narrow, right = d.pick(True, False), d.pick(True, False)
    return simple("searchsorted.Tensor", [ordered, values],
                  {"out_int32": narrow, "right": right},
                  extra=({"out_int32": narrow, "right": right},))


@operator("histc")
def histc(d):
    x = d.any(("f32", "f64"))
    bins = d.random.randint(1, 5)
    return simple("histc", [x], {"bins": bins, "min": 0, "max": 4},
                  extra=(bins, 0, 4))


@operator("native_dropout_backward")
def dropout_backward(d):
    grad = d.any(FLOATS)
    mask = d.tensor("i1", grad.shape)
    return simple("native_dropout_backward", [grad, mask], {"scale": 1.25},
                  extra=(1.25,))


@operator("_grouped_mm")
def grouped_mm(d):
    groups, rows = d.random.randint(1, 3), d.random.randint(4, 9)
    k, n = 4 * d.random.randint(1, 3), 4 * d.random.randint(1, 3)
    x = d.tensor("f32", (rows, k))
    weights = d.tensor("f32", (groups, k, n))
    for operand in (x, weights):
        operand.order = operand.every = operand.once = None
    offs = Operand("i32", (groups,), low=rows, high=rows)
    return Call("aten::_grouped_mm", [x, weights, offs], {},
                [T(0), T(1), T(2)], exact=False)
