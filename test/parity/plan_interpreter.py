"""Runs the functions of a plan with PyTorch on the CPU, one call at a time.

A check of what the compiler wrote, independent of accel-run: results are freed
where the plan says so (a later use fails), views share the storage of their
base, shapes and dtypes are the slots', and the bytes of live storages are
counted as the memory model counts them.
"""
import torch

DTYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16,
          "f16": torch.float16, "i64": torch.int64, "i32": torch.int32,
          "i16": torch.int16, "u8": torch.uint8, "i1": torch.bool}


class PlanError(Exception):
    """The plan does not hold together."""


def aligned(size):
    return (size + 63) // 64 * 64


def glu_in_place_backward(grad, gate, up, gelu):
    activation = torch.nn.functional.gelu if gelu else torch.nn.functional.silu
    with torch.enable_grad():
        x = gate.clone().requires_grad_()
        opened = activation(x)
        slope, = torch.autograd.grad(opened, x, grad * up)
    opened = opened.detach()
    of_up = grad * opened
    grad.copy_(opened * up)
    gate.copy_(slope)
    up.copy_(of_up)
    return grad, gate, up


FUSED = {  # what accel-run has no operator for
    "alpha_mm": lambda a, b, alpha: (a @ b) * alpha,
    "swiglu": lambda gate, up: torch.nn.functional.silu(gate) * up,
    "geglu": lambda gate, up: torch.nn.functional.gelu(gate) * up,
    "glu_in_place_backward": glu_in_place_backward,
    "hold": lambda value, held, saved: value,
    "lora_projections": lambda values: values,
    "lora_mlp": lambda values: values[0],
}


def operator(name):
    """aten::mm.out -> torch.ops.aten.mm.out."""
    packet, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


class Frame:
    """The slots of one call."""

    def __init__(self, function):
        self.function = function
        self.slots = function["slots"]
        self.tensors = {}

    def base(self, index):
        slot = self.slots[index]
        return slot[2] if len(slot) > 2 else index

    def put(self, index, tensor):
        dtype, shape = self.slots[index][:2]
        if tensor.dtype != DTYPES[dtype] or list(tensor.shape) != shape:
            raise PlanError(f"{self.function['name']}: slot {index} is "
                            f"{dtype}{shape}, got {tensor.dtype}"
                            f"{list(tensor.shape)}")
        self.tensors[index] = tensor

    def get(self, index):
        if index not in self.tensors:
            raise PlanError(f"{self.function['name']}: slot {index} is used "
                            "after its last use, or before it is made")
        return self.tensors[index]

    def decode(self, arg):
        if arg in ("inf", "-inf"):
            return float(arg)
        if isinstance(arg, str) and arg.startswith("%"):
            return self.get(int(arg[1:]))
        if isinstance(arg, dict):
            (kind, value), = arg.items()
            return DTYPES[value] if kind == "dtype" else value
        if isinstance(arg, list):
            return [self.decode(item) for item in arg]
        return arg

    def live_bytes(self, owned):
        """Bytes of storages made here that a slot still holds."""
        bases = {self.base(i) for i in self.tensors} & owned
        return sum(slot_bytes(self.slots[b]) for b in bases)


def slot_bytes(slot):
    size = DTYPES[slot[0]].itemsize
    for extent in slot[1]:
        size *= extent
    return aligned(size)


def call(op, args):
    keywords = {}
    for value, declared in zip(args, op._schema.arguments):
        if declared.kwarg_only:
            keywords[declared.name] = value
    return op(*args[:len(args) - len(keywords)], **keywords)


class Call:
    """A function that runs: its frame, and the bytes of what it made."""

    def __init__(self, function, inputs, parameters, gradients):
        self.function, self.frame = function, Frame(function)
        self.owned, self.peak = set(), 0
        for slot, tensor in zip(function["inputs"], inputs, strict=True):
            self.frame.put(slot, tensor)
        for slot, name in function["params"]:
            self.frame.put(slot, parameters[name])
        for slot, name in function["gradients"]:
            self.frame.put(slot, gradients[name])

    def arguments(self, instruction):
        return [self.frame.decode(arg) for arg in instruction["args"]]

    def finish(self, number, results):
        """What instruction `number` made, and what is freed behind it."""
        frame = self.frame
        instruction = self.function["instructions"][number]
        where = f"{self.function['name']}[{number}]"
        for slot, tensor in zip(instruction.get("results", []), results):
            if slot < 0:
                continue
            frame.put(slot, tensor)
            base = frame.base(slot)
            if base == slot:
                self.owned.add(slot)
            elif base in frame.tensors and (
                    tensor.untyped_storage().data_ptr() !=
                    frame.tensors[base].untyped_storage().data_ptr()):
                raise PlanError(f"{where}: slot {slot} is no view of slot "
                                f"{base}")
        self.peak = max(self.peak, frame.live_bytes(self.owned))
        for slot in instruction.get("frees", []):
            if frame.tensors.pop(slot, None) is None:
                raise PlanError(f"{where}: slot {slot} is freed twice")

    def run(self, number):
        instruction = self.function["instructions"][number]
        with torch.no_grad():
            kind, _, name = instruction["op"].partition("::")
            arguments = self.arguments(instruction)
            results = FUSED[name](*arguments) if kind == "fused" else call(
                operator(instruction["op"]), arguments)
        self.finish(number, results if isinstance(results, (tuple, list))
                    else [results])

    def outputs(self):
        return [self.frame.get(slot) for slot in self.function["outputs"]]


def execute(function, inputs, parameters, gradients):
    """Runs `function`; parameters and gradients are tensors by relative name,
    and gradients are written in place. Returns (outputs, peak bytes)."""
    running = Call(function, inputs, parameters, gradients)
    for number in range(len(function["instructions"])):
        running.run(number)
    return running.outputs(), running.peak
