"""Every operator of the aten dialect: how it is written in MLIR, called in
PyTorch, and with which random operands it is tried.

`TABLE` maps an operation's name to a builder: a function of a `Draw` that
returns a `Call`. In gradient mode a builder draws legal fp32 operands only;
else also other types, layouts and mistakes.
"""
import dataclasses
import math
import random

import torch

DTYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16,
          "f16": torch.float16, "i64": torch.int64, "i32": torch.int32,
          "i16": torch.int16, "ui8": torch.uint8, "i1": torch.bool}
NAMES = {v: k for k, v in DTYPES.items()}
FLOATS = ("f32", "f32", "f64", "bf16", "f16")
INTS = ("i64", "i32", "i16", "ui8")
ANY = FLOATS + INTS + ("i1",)


class T(int):
    """An operand's number, among the arguments of a PyTorch call."""


@dataclasses.dataclass
class Operand:
    dtype: str
    shape: tuple
    order: tuple = None  # dimensions in memory, the slowest first
    low: float = 0.2     # values are drawn from [low, high)
    high: float = 2.2
    fixed: bool = False  # PyTorch has no gradient for it
    whole: bool = False  # floating-point numbers without fractions
    every: int = None    # a dimension of which memory has twice as many
    once: int = None     # a dimension whose elements are one in memory

    def type(self):
        return tensor_type(self.dtype, self.shape)

    def tensor(self, generator):
        dtype = DTYPES[self.dtype]
        order = self.order or tuple(range(len(self.shape)))
        shape = [self.shape[i] * (2 if i == self.every else 1)
                 if i != self.once else min(self.shape[i], 1) for i in order]
        if dtype == torch.bool:
            data = torch.rand(shape, generator=generator) < 0.5
        elif dtype.is_floating_point:
            data = (torch.rand(shape, generator=generator,
                               dtype=torch.float64) *
                    (self.high - self.low) + self.low).to(dtype)
            data = data.round() if self.whole else data
        else:
            low = int(math.floor(self.low))
            data = torch.randint(low, max(int(self.high), low + 1), shape,
                                 generator=generator).to(dtype)
        data = data.permute(self.turn(back=True))
        if self.every is not None:
            part = [slice(None)] * data.dim()
            part[self.every] = slice(None, None, 2)
            data = data[tuple(part)]
        return data if self.once is None else data.expand(self.shape)

    def dense(self):
        """Without gaps or repetitions in memory, past which kernels that take
        raw pointers would read."""
        self.every = self.once = None
        return self

    def turn(self, back=False):
        """Dimensions in the order of memory, or that order undone."""
        order = list(self.order or range(len(self.shape)))
        return [order.index(i) for i in range(len(order))] if back else order


@dataclasses.dataclass
class Call:
    aten: str        # "aten::mm"
    operands: list
    attrs: dict
    args: list       # of the PyTorch call; T(i) is operand i
    results: tuple = None  # positions of the results in ATen's
    exact: bool = True     # gradients are to be bit-equal
    reference: object = None  # what autograd differentiates, of the tensors


def tensor_type(dtype, shape):
    return f"tensor<{''.join(f'{s}x' for s in shape)}{dtype}>"


def attribute(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        if math.isinf(value):
            return ("0x7FF0000000000000" if value > 0 else
                    "0xFFF0000000000000") + " : f64"
        return f"{value:.17e} : f64"
    if isinstance(value, torch.dtype):
        return NAMES[value]
    if isinstance(value, str):
        return f'"{value}"'
    kind = "i1" if value and isinstance(value[0], bool) else "i64"
    items = ", ".join(str(v).lower() for v in value)
    return f"array<{kind}: {items}>" if value else f"array<{kind}>"


def generic(name, call, operands, results):
    """The operation in MLIR's generic form."""
    attrs = ", ".join(f"{k} = {attribute(v)}" for k, v in call.attrs.items()
                      if v is not None)
    types = ", ".join(o.type() for o in call.operands)
    left = "%r" if len(results) == 1 else f"%r:{len(results)}"
    right = results[0] if len(results) == 1 else f"({', '.join(results)})"
    attrs = f" <{{{attrs}}}>" if attrs else ""
    return (f"{left} = \"aten.{name}\"({', '.join(operands)}){attrs} : "
            f"({types}) -> {right}")


class Draw:
    def __init__(self, seed, gradient, turned=False):
        self.random = random.Random(seed)
        self.gradient = gradient
        self.turned = turned  # in gradient mode: dimensions in any order

    def chance(self, p):
        """True now and then, but never in gradient mode."""
        return not self.gradient and self.random.random() < p

    def pick(self, *options):
        return self.random.choice(options)

    def size(self):
        if self.chance(0.04):
            return 0
        return self.random.choice((1, 2, 3, 4, 5, 6))

    def shape(self, low=0, high=4):
        rank = self.random.randint(max(low, 1) if self.gradient else low, high)
        return tuple(self.size() for _ in range(rank))

    def dtype(self, options):
        return "f32" if self.gradient and "f32" in options else \
            self.random.choice(options)

    def tensor(self, dtype, shape, **values):
        order = None
        if len(shape) > 1 and (self.turned or self.chance(0.4)):
            order = list(range(len(shape)))
            self.random.shuffle(order)
        x = Operand(dtype, tuple(shape), order and tuple(order), **values)
        if shape and self.chance(0.15):
            x.every = self.random.randrange(len(shape))
        elif shape and self.chance(0.1):
            x.once = self.random.randrange(len(shape))
        return x

    def any(self, options=ANY, rank=(0, 4), **values):
        return self.tensor(self.dtype(options), self.shape(*rank), **values)

    def broadcast(self, shape):
        """A shape that broadcasts with `shape`, mostly."""
        other = list(shape)[self.random.randint(0, len(shape)):] \
            if self.random.random() < 0.4 else list(shape)
        for i in range(len(other)):
            if self.random.random() < 0.25:
                other[i] = 1
        if other and self.chance(0.08):
            i = self.random.randrange(len(other))
            other[i] += 1
        return tuple(other)

    def dim(self, rank):
        """A dimension, now and then one that is not."""
        if rank == 0 or self.chance(0.05):
            return self.random.choice((rank, rank + 3))
        return self.random.randrange(rank)

    def dims(self, rank, least=1):
        dims = self.random.sample(range(rank),
                                  self.random.randint(min(least, rank), rank))
        if dims and self.chance(0.05):
            dims.append(self.random.choice((dims[0], rank + 1)))
        return dims


TABLE = {}


def operator(*names):
    """Registers a builder for names; it gets the name if it takes two."""
    def register(function):
        for name in names:
            TABLE[name] = function if function.__code__.co_argcount == 1 \
                else (lambda d, name=name: function(d, name))
        return function
    return register


def simple(name, operands, attrs=None, extra=(), **more):
    """A call of the operands, then `extra`."""
    return Call("aten::" + name, operands, attrs or {},
                [T(i) for i in range(len(operands))] + list(extra), **more)
