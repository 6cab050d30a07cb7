"""The rows of operators.TABLE: a builder for each operation of the dialect."""
import math

import torch

from operators import (ANY, DTYPES, FLOATS, INTS, Call, Operand, T, operator,
                       simple)

#===----------------------------------------------------------------------===#
# Element by element
#===----------------------------------------------------------------------===#


@operator("neg", "cos", "sin", "exp", "sqrt", "rsqrt", "reciprocal", "silu",
          "tanh", "relu", "sigmoid", "log", "log2", "log10", "log1p", "exp2",
          "expm1", "erf", "tan", "atan", "sinh", "cosh", "hardswish",
          "hardsigmoid", "mish")
def unary(d, name):
    positive = name in ("sqrt", "rsqrt", "log", "log2", "log10", "log1p")
    x = d.any(FLOATS, low=0.2 if positive else -3.0, high=3.5)
    return simple(name, [x])


@operator("abs", "sgn", "sign", "floor", "ceil", "round", "trunc")
def unary_any(d, name):
    # Of truth values PyTorch knows signs alone; the dialect takes all.
    types = ANY if name in ("sgn", "sign") else FLOATS + INTS
    return simple(name, [d.any(types, low=-3.0, high=3.5)])


@operator("bitwise_not")
def bitwise_not(d):
    return simple("bitwise_not", [d.any()])


@operator("clone")
def clone(d):
    return simple("clone", [d.any()], extra=(torch.contiguous_format,))


@operator("zeros_like")
def zeros_like(d):
    return simple("zeros_like", [d.any()])


@operator("_to_copy")
def to_copy(d):
    dtype = DTYPES[d.dtype(ANY)]
    return Call("aten::_to_copy", [d.any()], {"dtype": dtype},
                [T(0), {"dtype": dtype}])


@operator("gelu")
def gelu(d):
    how = "other" if d.chance(0.1) else d.pick("none", "tanh")
    return simple("gelu", [d.any(FLOATS, low=-3.0)], {"approximate": how},
                  extra=({"approximate": how},))


@operator("tanh_backward", "threshold_backward", "silu_backward",
          "gelu_backward", "sigmoid_backward", "hardswish_backward",
          "hardsigmoid_backward", "mish_backward", "leaky_relu_backward",
          "elu_backward", "softplus_backward", "hardtanh_backward")
def activation_backward(d, name):
    grad = d.any(FLOATS, low=-2.0)
    x = d.tensor(grad.dtype, grad.shape, low=-2.0)
    attrs, extra = {}, ()
    args = [T(0), T(1)]
    if name == "threshold_backward":
        extra = (0,)
    elif name == "gelu_backward":
        attrs = {"approximate": "tanh"}
        extra = (attrs,)
    elif name == "leaky_relu_backward":
        attrs, extra = {"negative_slope": 0.1}, (0.1, False)
    elif name == "elu_backward":
        attrs = {"alpha": 1.5, "scale": 1.0, "input_scale": 1.0}
        args, extra = [T(0), 1.5, 1.0, 1.0, False, T(1)], ()
    elif name == "softplus_backward":
        attrs, extra = {"beta": 2.0, "threshold": 3.0}, (2.0, 3.0)
    elif name == "hardtanh_backward":
        attrs, extra = {"min_val": 0.0, "max_val": 1.5}, (0.0, 1.5)
    return Call("aten::" + name, [grad, x], attrs, args + list(extra))


@operator("leaky_relu", "elu", "softplus", "hardtanh")
def activation(d, name):
    x = d.any(FLOATS, low=-4.0, high=4.0)
    attrs = {"leaky_relu": {"negative_slope": 0.1},
             "elu": {"alpha": 1.5, "scale": 1.25, "input_scale": 0.5},
             "softplus": {"beta": 2.0, "threshold": 3.0},
             "hardtanh": {"min_val": -1.0, "max_val": 1.5}}[name]
    return simple(name, [x], attrs, extra=tuple(attrs.values()))


def pair(d, options, **values):
    x = d.any(options, **values)
    other = d.tensor(d.dtype(options), d.broadcast(x.shape), **values)
    return [x, other] if d.random.random() < 0.5 else [other, x]


@operator("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor",
          "bitwise_and.Tensor", "logical_and", "maximum", "minimum",
          "pow.Tensor_Tensor", "eq.Tensor", "ne.Tensor", "ge.Tensor",
          "le.Tensor", "gt.Tensor", "lt.Tensor", "logical_or", "logical_xor",
          "bitwise_or.Tensor", "bitwise_xor.Tensor")
def binary(d, name):
    return simple(name, pair(d, ANY))


@operator("div.Tensor_mode")
def div_mode(d):
    how = "up" if d.chance(0.1) else d.pick("floor", "trunc")
    operands = pair(d, FLOATS + INTS, low=1.0)
    return simple("div.Tensor_mode", operands, {"rounding_mode": how},
                  extra=({"rounding_mode": how},))


@operator("add.Scalar", "sub.Scalar", "rsub.Scalar", "mul.Scalar",
          "div.Scalar", "pow.Tensor_Scalar", "eq.Scalar", "ne.Scalar",
          "ge.Scalar", "le.Scalar", "gt.Scalar", "lt.Scalar")
def with_scalar(d, name):
    number = d.pick(2, 3, 1.5, 0.5, 1.0)
    return simple(name, [d.any()], {"other": number}, extra=(number,))


@operator("pow.Scalar")
def pow_scalar(d):
    number = d.pick(2, 3, 1.5)
    return Call("aten::pow.Scalar", [d.any()], {"other": number},
                [number, T(0)])


@operator("where.self")
def where(d):
    x, y = pair(d, ANY)
    condition = d.tensor("i1" if not d.chance(0.1) else "f32",
                         d.broadcast(x.shape))
    return simple("where.self", [condition, x, y])


@operator("clamp")
def clamp(d):
    low = d.pick(None, 0.5, 1) if not d.gradient else d.pick(None, 0.5)
    high = d.pick(1.5, 2) if low is None and not d.chance(0.1) else \
        d.pick(None, 1.5, 2)
    return simple("clamp", [d.any()], {"min": low, "max": high},
                  extra=(low, high))


@operator("masked_fill.Scalar")
def masked_fill_scalar(d):
    x = d.any()
    value = d.pick(0, 1, 0.5, -math.inf)
    mask = d.tensor("i1", d.broadcast(x.shape))
    return simple("masked_fill.Scalar", [x, mask], {"value": value},
                  extra=(value,))


@operator("masked_fill.Tensor")
def masked_fill_tensor(d):
    x = d.any()
    mask = d.tensor("i1", d.broadcast(x.shape))
    value = d.tensor(d.dtype(ANY), () if not d.chance(0.1) else (2,))
    return simple("masked_fill.Tensor", [x, mask, value], exact=False)


@operator("isnan", "isinf", "logical_not")
def predicate(d, name):
    return simple(name, [d.any()])


@operator("full")
def full(d):
    size, dtype = list(d.shape()), DTYPES[d.dtype(ANY)]
    value = d.pick(0, 1, 0.5)
    return Call("aten::full", [], {"size": size, "fill_value": value,
                                   "dtype": dtype},
                [size, value, {"dtype": dtype}])


@operator("full_like")
def full_like(d):
    dtype, value = DTYPES[d.dtype(ANY)], d.pick(0, 1, 0.5)
    return simple("full_like", [d.any()],
                  {"fill_value": value, "dtype": dtype},
                  extra=(value, {"dtype": dtype}))


@operator("arange.start_step")
def arange(d):
    start, step = d.random.randint(-3, 5), d.random.randint(1, 3)
    end = start + d.random.randint(-2 if d.chance(0.2) else 0, 9)
    dtype = DTYPES[d.dtype(ANY)]
    return Call("aten::arange.start_step", [],
                {"start": start, "end": end, "step": step, "dtype": dtype},
                [start, end, step, {"dtype": dtype}])


#===----------------------------------------------------------------------===#
# Views
#===----------------------------------------------------------------------===#


@operator("t")
def transpose_matrix(d):
    return simple("t", [d.any(ANY, rank=(2, 3 if d.chance(0.2) else 2))])


@operator("transpose.int")
def transpose(d):
    x = d.any(ANY, rank=(1, 4))
    a, b = d.dim(len(x.shape)), d.dim(len(x.shape))
    return simple("transpose.int", [x], {"dim0": a, "dim1": b}, extra=(a, b))


@operator("permute")
def permute(d):
    x = d.any(ANY, rank=(1, 4))
    dims = list(range(len(x.shape)))
    d.random.shuffle(dims)
    if d.chance(0.1):
        dims[0] = dims[-1] if len(dims) > 1 else 4
    return simple("permute", [x], {"dims": dims}, extra=(dims,))


@operator("view")
def view(d):
    x = d.any(ANY, rank=(1, 4))
    sizes = list(x.shape)
    if len(sizes) > 1 and d.random.random() < 0.7:
        i = d.random.randrange(len(sizes) - 1)
        sizes[i:i + 2] = [sizes[i] * sizes[i + 1]]
    else:
        sizes.insert(d.random.randint(0, len(sizes)), 1)
    if d.chance(0.1):
        sizes[0] += 1
    if x.order and math.prod(sizes) == math.prod(x.shape):
        # Strides decide; the exporter, which knows them, refuses.
        try:
            x.tensor(torch.Generator()).view(sizes)
        except RuntimeError:
            x.order = None
    return simple("view", [x], {"size": sizes}, extra=(sizes,))


@operator("expand")
def expand(d):
    x = d.any(ANY)
    sizes = [d.size() if s == 1 else s for s in x.shape]
    if d.random.random() < 0.3:
        sizes.insert(0, d.size())
    if sizes and d.chance(0.1):
        sizes[-1] += 1
    return simple("expand", [x], {"size": sizes}, extra=(sizes,))


@operator("unsqueeze")
def unsqueeze(d):
    x = d.any(ANY, rank=(0, 3))
    dim = d.dim(len(x.shape) + 1)
    return simple("unsqueeze", [x], {"dim": dim}, extra=(dim,))


@operator("squeeze.dim")
def squeeze(d):
    shape = list(d.shape(1))
    dim = d.dim(len(shape))
    if dim < len(shape):
        shape[dim] = 1
    return simple("squeeze.dim", [d.tensor(d.dtype(ANY), shape)],
                  {"dim": dim}, extra=(dim,))


@operator("slice.Tensor")
def slice_tensor(d):
    x = d.any(ANY, rank=(1, 4))
    dim = d.dim(len(x.shape))
    size = x.shape[dim] if dim < len(x.shape) else 3
    start = d.random.randint(0, size)
    end, step = d.random.randint(start, size), d.random.randint(1, 3)
    return simple("slice.Tensor", [x],
                  {"dim": dim, "start": start, "end": end, "step": step},
                  extra=(dim, start, end, step))


@operator("select.int")
def select(d):
    x = d.any(ANY, rank=(1, 4))
    dim = d.dim(len(x.shape))
    size = x.shape[dim] if dim < len(x.shape) else 1
    index = d.random.randrange(max(size, 1)) + (9 if d.chance(0.05) else 0)
    return simple("select.int", [x], {"dim": dim, "index": index},
                  extra=(dim, index))


#===----------------------------------------------------------------------===#
# Movement
#===----------------------------------------------------------------------===#


@operator("cat")
def cat(d):
    first = d.any(ANY, rank=(1, 4))
    dim, operands = d.dim(len(first.shape)), [first]
    for _ in range(d.random.randint(0, 2)):
        shape = list(first.shape)
        if dim < len(shape):
            shape[dim] = d.size()
        if d.chance(0.1):
            shape[0] += 1
        operands.append(d.tensor(d.dtype(ANY), shape))
    return Call("aten::cat", operands, {"dim": dim},
                [[T(i) for i in range(len(operands))], dim])


@operator("slice_backward")
def slice_backward(d):
    shape = list(d.shape(1))
    dim = d.random.randrange(len(shape))
    start = d.random.randint(0, shape[dim])
    end, step = d.random.randint(start, shape[dim]), d.random.randint(1, 3)
    grad = list(shape)
    grad[dim] = (end - start + step - 1) // step
    return simple("slice_backward", [d.tensor(d.dtype(FLOATS), grad)],
                  {"input_sizes": shape, "dim": dim, "start": start,
                   "end": end, "step": step},
                  extra=(shape, dim, start, end, step))


@operator("select_backward")
def select_backward(d):
    shape = [max(s, 1) for s in d.shape(1)]
    dim = d.random.randrange(len(shape))
    index = d.random.randrange(shape[dim])
    grad = shape[:dim] + shape[dim + 1:]
    return simple("select_backward", [d.tensor(d.dtype(FLOATS), grad)],
                  {"input_sizes": shape, "dim": dim, "index": index},
                  extra=(shape, dim, index))


@operator("constant_pad_nd")
def pad(d):
    x = d.any(ANY, rank=(1, 4))
    count = d.random.randint(0, len(x.shape)) + (1 if d.chance(0.1) else 0)
    sizes = [d.random.randint(-1, 2) for _ in range(2 * count)]
    if d.gradient:
        sizes = [max(s, 0) if x.shape[-1 - i // 2] < 3 else s
                 for i, s in enumerate(sizes)]
    if d.chance(0.05):
        sizes.append(1)
    value = d.pick(0.0, 1, 0.5)
    return simple("constant_pad_nd", [x], {"pad": sizes, "value": value},
                  extra=(sizes, value))


@operator("flip")
def flip(d):
    x = d.any(ANY, rank=(1, 4))
    dims = d.dims(len(x.shape), least=0)
    return simple("flip", [x], {"dims": dims}, extra=(dims,))


#===----------------------------------------------------------------------===#
# Indices
#===----------------------------------------------------------------------===#


def index_type(d):
    return d.pick("i64", "i64", "i32") if not d.chance(0.05) else "f32"


@operator("index_select")
def index_select(d):
    x = d.any(ANY, rank=(1, 4))
    dim = d.dim(len(x.shape))
    size = x.shape[dim] if dim < len(x.shape) else 1
    index = d.tensor(index_type(d),
                     (d.size(),) + ((2,) if d.chance(0.05) else ()),
                     low=0, high=size)
    return Call("aten::index_select", [x, index], {"dim": dim},
                [T(0), dim, T(1)])


@operator("index_add")
def index_add(d):
    x = d.any(ANY, rank=(1, 4))
    dim = d.dim(len(x.shape))
    shape, n = list(x.shape), d.size()
    size = shape[dim] if dim < len(shape) else 1
    if size == 0:
        n = 0
    if dim < len(shape):
        shape[dim] = n
    if d.chance(0.1):
        shape[0] += 1
    source = d.tensor(x.dtype if not d.chance(0.1) else "f32", shape)
    index = d.tensor(index_type(d), (n,), low=0, high=size)
    return Call("aten::index_add", [x, index, source], {"dim": dim},
                [T(0), dim, T(1), T(2)])


def within(d, shape, dim):
    """A shape of an index: nowhere larger, but along `dim`."""
    index = [d.random.randint(1 if s and d.gradient else min(s, 1), s)
             for s in shape]
    if dim < len(shape):
        index[dim] = d.size() if shape[dim] else 0
    if index and d.chance(0.1):
        i = d.random.randrange(len(index))
        index[i] += 1
    return index


@operator("gather")
def gather(d):
    x = d.any(ANY, rank=(1, 4))
    dim = d.dim(len(x.shape))
    size = x.shape[dim] if dim < len(x.shape) else 1
    index = d.tensor("i64", within(d, x.shape, dim), low=0, high=size)
    return Call("aten::gather", [x, index], {"dim": dim}, [T(0), dim, T(1)])


@operator("scatter.src", "scatter_add")
def scatter(d, name):
    x = d.any(ANY, rank=(1, 4))
    dim = d.dim(len(x.shape))
    size = x.shape[dim] if dim < len(x.shape) else 1
    shape = within(d, x.shape, dim)
    if name == "scatter.src" and d.gradient:
        shape[dim] = 1  # what is written twice has no one gradient
    # PyTorch has no gradient for a source that is not read whole.
    source = [s + (0 if d.gradient else d.pick(0, 0, 0, 1)) for s in shape]
    if d.chance(0.05):
        source = [max(s - 1, 0) for s in source]
    index = d.tensor("i64", shape, low=0, high=size)
    src = d.tensor(x.dtype if not d.chance(0.1) else "f32", source)
    return Call("aten::" + name, [x, index, src], {"dim": dim},
                [T(0), dim, T(1), T(2)])


@operator("scatter.value")
def scatter_value(d):
    x = d.any(ANY, rank=(1, 4))
    dim, value = d.dim(len(x.shape)), d.pick(0, 1, 1.5)
    size = x.shape[dim] if dim < len(x.shape) else 1
    index = d.tensor("i64", within(d, x.shape, dim), low=0, high=size)
    return Call("aten::scatter.value", [x, index],
                {"dim": dim, "value": value}, [T(0), dim, T(1), value])


def indexing(d, x):
    """(dims, index operands) for some dimensions of `x`."""
    rank = len(x.shape)
    dims = sorted(d.random.sample(range(rank), d.random.randint(1, rank)))
    shape = d.shape(1 if d.gradient else 0, 2)
    indices = []
    for dim in dims:
        own = shape if d.random.random() < 0.6 else d.broadcast(shape)
        indices.append(d.tensor(d.pick("i64", "i64", "i32"), own, low=0,
                                high=x.shape[dim]))
    return dims, indices


def placed(dims, first):
    """The index list of a call: None where a dimension is not indexed."""
    found = [None] * (dims[-1] + 1)
    for i, dim in enumerate(dims):
        found[dim] = T(first + i)
    return found


@operator("index.Tensor")
def index_tensor(d):
    x = d.any(ANY, rank=(1, 4))
    dims, indices = indexing(d, x)
    return Call("aten::index.Tensor", [x, *indices], {"dims": dims},
                [T(0), placed(dims, 1)])


@operator("index_put")
def index_put(d):
    x = d.any(ANY, rank=(1, 4))
    dims, indices = indexing(d, x)
    accumulate = d.pick(True, False)
    try:
        chosen = torch.empty(x.shape, device="meta")[tuple(
            torch.empty(indices[dims.index(i)].shape, dtype=torch.int64,
                        device="meta") if i in dims else slice(None)
            for i in range(len(x.shape)))].shape
    except (RuntimeError, IndexError):
        chosen = (1,)
    if d.gradient and not accumulate:
        # What is written twice has no one gradient: one element each.
        for index in indices:
            index.shape = tuple(1 for _ in index.shape)
        chosen = [s for i, s in enumerate(x.shape) if i not in dims]
        chosen = tuple(d.broadcast(chosen))
    values = d.tensor(x.dtype if not d.chance(0.1) else "f32",
                      d.broadcast(chosen))
    return Call("aten::index_put", [x, values, *indices],
                {"dims": dims, "accumulate": accumulate},
                [T(0), placed(dims, 2), T(1), accumulate])


@operator("embedding")
def embedding(d):
    table = d.any(FLOATS, rank=(2, 3 if d.chance(0.1) else 2))
    ids = d.tensor(d.pick("i64", "i32"), d.shape(0, 2), low=0,
                   high=table.shape[0])
    padding = d.pick(-1, 0)
    return simple("embedding", [table, ids], {"padding_idx": padding},
                  extra=(padding, False, False))


@operator("embedding_dense_backward")
def embedding_backward(d):
    rows, width = d.random.randint(1, 6), d.random.randint(1, 5)
    ids = d.tensor("i64", d.shape(1, 2), low=0, high=rows)
    grad = d.tensor(d.dtype(FLOATS), ids.shape + (width,))
    return simple("embedding_dense_backward", [grad, ids],
                  {"num_weights": rows, "padding_idx": -1},
                  extra=(rows, -1, False))


#===----------------------------------------------------------------------===#
# Products
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
    return simple("nll_loss_forward", [x, target], {"ignore_index": -100},
                  extra=(None, 1, -100))


@operator("nll_loss_backward")
def nll_loss_backward(d):
    rows, classes = d.random.randint(1, 5), d.random.randint(1, 6)
    dtype = d.dtype(FLOATS)
    operands = [d.tensor(dtype, ()), d.tensor(dtype, (rows, classes)),
                d.tensor("i64", (rows,), low=0, high=classes),
                d.tensor(dtype, ())]
    return Call("aten::nll_loss_backward", operands, {"ignore_index": -100},
                [T(0), T(1), T(2), None, 1, -100, T(3)])


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
        x.order = d.pick(None, (0, 2, 1, 3))
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
    grad = d.tensor(q.dtype, q.shape)
    out = d.tensor(q.dtype, q.shape)
    lse = d.tensor("f32", q.shape[:3])
    return simple(CPU_FLASH + "_backward", [grad, q, k, v, out, lse],
                  {"is_causal": False, "scale": 0.5},
                  extra=(0.0, False, {"attn_mask": None, "scale": 0.5}))


#===----------------------------------------------------------------------===#
# Images
#===----------------------------------------------------------------------===#


def image(d, dtypes=("f32", "f32", "f64"), least=3):
    """x [N, C, H, W], as it comes or with the channels last in memory."""
    shape = (d.random.randint(1, 3), 2 * d.random.randint(1, 2),
             d.random.randint(least, 6), d.random.randint(least, 6))
    x = d.tensor(d.dtype(dtypes), shape, low=-2.0, high=2.0)
    x.order = d.pick(None, None, (0, 2, 3, 1)) \
        if not d.gradient and plain(shape) else None
    return x


def channels(d, x):
    return d.tensor(x.dtype if not d.chance(0.05) else "f16",
                    (maybe_off(d, x.shape[1]),))


@operator("_native_batch_norm_legit_functional",
          "_native_batch_norm_legit.no_stats",
          "_native_batch_norm_legit_no_training")
def batch_norm(d, name):
    x = image(d)
    if d.random.random() < 0.3:
        x = d.tensor(x.dtype, x.shape[:2] if x.shape[0] > 1 or d.chance(0.5)
                     else (2, x.shape[1]), low=-2.0)
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
    operands = [x, d.tensor(x.dtype, (width,)), d.tensor(x.dtype, (width,))]
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
    operands[0].order = None
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
    grad = d.tensor(x.dtype, tuple(out))
    grad.order = x.order
    indices = d.tensor("i64", tuple(out), low=0, high=4)
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
    grad = d.tensor(x.dtype, tuple(out))
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
                                            d.random.randint(1, 4)))
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
    x.order = weights.order = None
    offs = Operand("i32", (groups,), low=rows, high=rows)
    return Call("aten::_grouped_mm", [x, weights, offs], {},
                [T(0), T(1), T(2)], exact=False)
