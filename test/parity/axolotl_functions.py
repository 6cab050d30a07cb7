"""axolotl's autograd functions around a model's adapters, on CPUs: its own
kernels/lora.py, and its Triton kernels of the activation in plain operators."""
import importlib
import sys
import types


def in_rows(function):
    """Row by row, so that temporaries are small beside the tensors."""
    def run(*tensors):
        for rows in zip(*(t.flatten(0, -2) for t in tensors), strict=True):
            function(*rows)
    return run


def forward_of(activation):
    import torch

    def forward(gate, up):
        out = torch.empty_like(gate)
        in_rows(lambda o, g, u: o.copy_(activation(g) * u))(out, gate, up)
        return out
    return forward


def backward_of(gelu):
    """The output over its gradient, and the gradients of gate and up over
    those."""
    from plan_interpreter import glu_in_place_backward

    def backward(grad, gate, up):
        in_rows(lambda *rows: glu_in_place_backward(*rows, gelu))(grad, gate,
                                                                  up)
        return grad, gate, up
    return backward


def lora():
    """axolotl/kernels/lora.py with what it imports of bitsandbytes and Triton
    replaced."""
    if "axolotl.kernels.lora" in sys.modules:
        return sys.modules["axolotl.kernels.lora"]
    import torch.nn.functional as F

    def module(name, **contents):
        sys.modules[name] = made = types.ModuleType(name)
        vars(made).update(contents)
        return made

    functional = module("bitsandbytes.functional", QuantState=type(None))
    module("bitsandbytes", functional=functional)
    module("axolotl.kernels.quantize", dequantize=lambda weight, state: weight)
    for name, activation in (("swiglu", F.silu), ("geglu", F.gelu)):
        module(f"axolotl.kernels.{name}", **{
            f"{name}_forward": forward_of(activation),
            f"{name}_backward": backward_of(name == "geglu")})
    return importlib.import_module("axolotl.kernels.lora")


def one_call(layers, apply):
    """`apply` computes all layers when the first is called; the others give
    what it left for them."""
    waiting = []

    def first(x):
        result, *others = apply(x)
        waiting.extend(others)
        return result
    layers[0].forward = first
    for layer in layers[1:]:
        layer.forward = lambda x: waiting.pop(0)


def patch(model):
    """As apply_lora_kernel_patches with lora_qkv_kernel, lora_o_kernel and
    lora_mlp_kernel; it rewrites the text of attention's forward for the
    first."""
    functions = lora()
    activation = getattr(model.config, "hidden_act", None) or \
        model.config.hidden_activation
    has = lambda *layers: all(hasattr(layer, "lora_A") for layer in layers)
    for layer in model.base_model.model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        if has(*projections):
            one_call(projections, types.MethodType(functions.apply_lora_qkv,
                                                   attention))
        if has(attention.o_proj):
            attention.o_proj.forward = types.MethodType(
                lambda self, x: functions.apply_lora_o(self, x), attention)
        if hasattr(mlp, "gate_proj") and has(mlp.gate_proj, mlp.up_proj,
                                             mlp.down_proj):
            kind = "geglu" if "gelu" in activation else "swiglu"
            mlp.forward = types.MethodType(
                getattr(functions, f"apply_lora_mlp_{kind}"), mlp)
    return model
