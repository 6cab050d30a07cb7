"""Rows of operators.TABLE: losses, further functions and matmuls."""
import math

import torch

from operators import (ANY, FLOATS, INTS, Call, T, operator, simple)
from operator_rows_more import image

#: Types that the kernels of losses take.
WIDE = ("f32", "f32", "f64")


def scored(d, types=FLOATS, low=0.05, high=0.95):
    """x and targets, mostly of one type."""
    x = d.any(types, low=low, high=high)
    shape = d.broadcast(x.shape) if d.chance(0.1) else x.shape
    target = d.tensor(x.dtype if not d.chance(0.1) else d.pick("f16", "f32"),
                      shape, low=low, high=high)
    return [x, target]


def filled(x):
    """PyTorch's meta functions divide by the number of elements."""
    x.shape = tuple(max(s, 1) for s in x.shape)
    return x


def reductions(d):
    return d.pick(0, 1, 2) if not d.chance(0.04) else 3


@operator("mse_loss", "smooth_l1_loss", "huber_loss")
def loss(d, name):
    more = {"mse_loss": {}, "smooth_l1_loss": {"beta": d.pick(0.25, 1.0)},
            "huber_loss": {"delta": d.pick(0.25, 1.0)}}[name]
    attrs = {"reduction": reductions(d), **more}
    return simple(name, scored(d, WIDE, low=-1.0), attrs,
                  extra=tuple(attrs.values()))


@operator("mse_loss_backward", "smooth_l1_loss_backward",
          "huber_loss_backward")
def loss_backward(d, name):
    more = {"mse_loss_backward": {}, "smooth_l1_loss_backward": {"beta": 0.5},
            "huber_loss_backward": {"delta": 0.5}}[name]
    x = filled(d.any(WIDE))
    attrs = {"reduction": d.pick(0, 1, 2), **more}
    target = d.tensor(x.dtype, x.shape)
    grad = d.tensor(x.dtype, () if attrs["reduction"] else x.shape)
    return simple(name, [grad, x, target], attrs, extra=tuple(attrs.values()))


@operator("binary_cross_entropy")
def binary_cross_entropy(d):
    operands = scored(d, WIDE)
    weighted = d.random.random() < 0.4
    if weighted:
        operands.append(d.tensor(operands[0].dtype, operands[0].shape))
    attrs = {"reduction": reductions(d)}

    def reference(x, y, w):  # PyTorch has no gradient for weights
        loss = -w * (y * x.log() + (1 - y) * (1 - x).log())
        return (loss, loss.mean(), loss.sum())[attrs["reduction"]]
    return Call("aten::binary_cross_entropy", operands, attrs,
                [T(0), T(1), T(2) if weighted else None, attrs["reduction"]],
                exact=False, reference=reference if weighted else None)


@operator("binary_cross_entropy_backward")
def binary_cross_entropy_backward(d):
    x, target = scored(d, WIDE)
    if d.chance(0.9):
        target = d.tensor(filled(x).dtype, x.shape, low=0.05, high=0.95)
    attrs = {"reduction": d.pick(0, 1, 2)}
    grad = d.tensor(x.dtype, () if attrs["reduction"] else x.shape)
    operands = [grad, x, target]
    weighted = d.random.random() < 0.4
    if weighted:
        operands.append(d.tensor(x.dtype, x.shape))
    return Call("aten::binary_cross_entropy_backward", operands, attrs,
                [T(0), T(1), T(2), T(3) if weighted else None,
                 attrs["reduction"]])


@operator("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(d):
    operands = scored(d, FLOATS, low=-2.0, high=2.0)
    weighted = d.random.random() < 0.4
    if weighted:
        shape = operands[0].shape
        shape = shape[d.random.randint(0, len(shape)):]
        operands.append(d.tensor(operands[0].dtype, shape))
    attrs = {"reduction": d.pick(0, 1, 2)}

    def reference(x, y, w):
        log = torch.nn.functional.logsigmoid
        loss = -(w * y * log(x) + (1 - y) * log(-x))
        return (loss, loss.mean(), loss.sum())[attrs["reduction"]]
    return Call("aten::binary_cross_entropy_with_logits", operands, attrs,
                [T(0), T(1), None, T(2) if weighted else None,
                 attrs["reduction"]], exact=False,
                reference=reference if weighted else None)


#===----------------------------------------------------------------------===#
# Functions
#===----------------------------------------------------------------------===#


@operator("erfc", "asin", "acos", "asinh", "acosh", "atanh", "log_sigmoid")
def function(d, name):
    low, high = {"acosh": (1.1, 3.0), "asinh": (-3.0, 3.0),
                 "erfc": (-3.0, 3.0), "log_sigmoid": (-4.0, 4.0)}.get(
                     name, (-0.9, 0.9))
    return simple(name, [d.any(FLOATS, low=low, high=high)],
                  exact=name != "log_sigmoid")


@operator("glu", "glu_backward")
def glu(d, name):
    shape = list(d.shape(1))
    dim = d.dim(len(shape))
    if dim < len(shape):
        shape[dim] = 2 * max(shape[dim], 1) + (1 if d.chance(0.1) else 0)
    x = d.tensor(d.dtype(FLOATS), shape, low=-2.0)
    if name == "glu":
        return simple(name, [x], {"dim": dim}, extra=(dim,))
    half = list(shape)
    if dim < len(shape):
        half[dim] //= 2
    return simple(name, [d.tensor(x.dtype, half), x], {"dim": dim},
                  extra=(dim,))


@operator("_prelu_kernel", "_prelu_kernel_backward")
def prelu(d, name):
    x = d.any(FLOATS, low=-2.0, high=2.0)
    weight = d.tensor(x.dtype if not d.chance(0.05) else "f16",
                      [s if d.random.random() < 0.5 else 1 for s in x.shape])
    grad = [d.tensor(x.dtype, x.shape)] if name.endswith("backward") else []
    return simple(name, [*grad, x, weight])


@operator("atan2", "remainder.Tensor", "fmod.Tensor")
def pairwise(d, name):
    # A truth value may be 0, which no integer is divided by.
    types = ANY if name == "atan2" else FLOATS + INTS
    x = d.any(types, low=1.0, high=4.0)
    other = d.tensor(d.dtype(types), d.broadcast(x.shape), low=1.0, high=4.0)
    if d.chance(0.05):
        x.dtype = other.dtype = "i1"
    return simple(name, [x, other] if d.random.random() < 0.5 else [other, x])


@operator("remainder.Scalar", "fmod.Scalar")
def rest(d, name):
    number = d.pick(2, 3, 1.5)
    return simple(name, [d.any(ANY, low=-4.0, high=4.0)], {"other": number},
                  extra=(number,))


@operator("addcmul", "addcdiv", "lerp.Tensor", "lerp.Scalar")
def three(d, name):
    x = d.any(FLOATS)
    operands = [x] + [d.tensor(x.dtype if not d.chance(0.05) else "f16",
                               d.broadcast(x.shape))
                      for _ in range(1 if name == "lerp.Scalar" else 2)]
    if name == "lerp.Tensor":
        return simple(name, operands, exact=False)
    value = d.pick(0.25, 1.0, 0.75)
    key = "weight" if name == "lerp.Scalar" else "value"
    return simple(name, operands, {key: value},
                  extra=(value if key == "weight" else {key: value},),
                  exact=False)


#===----------------------------------------------------------------------===#
# Reductions
#===----------------------------------------------------------------------===#


@operator("prod.dim_int")
def product(d):
    x = d.any(ANY, rank=(1, 4))
    if d.gradient:  # whole numbers, zeros among them
        x.low, x.high = (-1.0, 2.0) if d.random.random() < 0.5 else (0.2, 2.0)
        x.whole = x.low < 0
    dim, keep = d.dim(len(x.shape)), d.pick(True, False)
    return simple("prod.dim_int", [x], {"dim": dim, "keepdim": keep},
                  extra=(dim, keep), exact=False)


@operator("linalg_vector_norm")
def vector_norm(d):
    x = d.any(FLOATS, low=-2.0, high=2.0)
    order = d.pick(0.0, 0.5, 1.0, 1.5, 2.0, 2.0, 3.0, math.inf, -math.inf)
    dims, keep = d.dims(len(x.shape)), d.pick(True, False)
    return simple("linalg_vector_norm", [x],
                  {"ord": order, "dim": dims, "keepdim": keep},
                  extra=(order, dims, keep), exact=False)


#===----------------------------------------------------------------------===#
# Images
#===----------------------------------------------------------------------===#


@operator("upsample_bilinear2d", "upsample_bilinear2d_backward")
def bilinear(d, name):
    x = image(d, least=1)
    small, out = list(x.shape), [d.random.randint(1, 7) for _ in range(2)]
    align = d.pick(True, False)
    scales = [None, None]
    if d.random.random() < 0.3:
        scales = [o / s for o, s in zip(out, small[2:])]
    attrs = {"align_corners": align, "scales_h": scales[0],
             "scales_w": scales[1]}
    if name == "upsample_bilinear2d":
        return simple(name, [x], {"output_size": out, **attrs},
                      extra=(out, align, *scales), exact=False)
    size = small[:2] + [d.random.randint(1, 4), d.random.randint(1, 4)]
    out = small[2:]
    return simple(name, [x], {"output_size": out, "input_size": size, **attrs},
                  extra=(out, size, align, *scales))
