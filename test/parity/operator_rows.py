"""The rows of operators.TABLE: a builder for each operation of the dialect."""
import math

import torch

from operators import (ANY, DTYPES, FLOATS, INTS, Call, T, operator,
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
    return simple(name, [d.any(ANY, low=-3.0, high=3.5)])


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
    if math.prod(sizes) == math.prod(x.shape):
        # Strides decide; the exporter, which knows them, refuses.
        try:
            x.tensor(torch.Generator()).view(sizes)
        except RuntimeError:
            x.order = x.every = x.once = None
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
