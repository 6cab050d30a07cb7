"""PyTorch's own ways of sharing a sample among ranks, for Llama of transformers:
DTensor's tensor parallelism (with the loss of sharded logits, as torchtitan runs
it), sequence parallelism beside it, and the ring attention of its context
parallelism called on the CPU's attention kernel, which `context_parallel`
itself does not dispatch."""
import torch
import torch.distributed as dist
from torch.distributed.tensor.experimental._context_parallel import \
    _attention as ring

KERNEL = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def split_layers(model, mesh, sequence):
    """parallelize_module over all ranks of `mesh`."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
        parallelize_module)

    between = Shard(1) if sequence else Replicate()
    base = model.model
    plan = {"embed_tokens": RowwiseParallel(input_layouts=Replicate(),
                                            output_layouts=between)}
    if sequence:
        plan["norm"] = SequenceParallel()
    parallelize_module(base, mesh, plan)
    parallelize_module(model, mesh, {"lm_head": ColwiseParallel(
        input_layouts=between, output_layouts=Shard(-1),
        use_local_output=False)})
    for layer in base.layers:
        plan = {name: ColwiseParallel() for name in (
            "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
            "mlp.gate_proj", "mlp.up_proj")}
        for name in ("self_attn.o_proj", "mlp.down_proj"):
            plan[name] = RowwiseParallel(output_layouts=between)
        if sequence:
            plan["input_layernorm"] = SequenceParallel()
            plan["post_attention_layernorm"] = SequenceParallel()
            plan["self_attn"] = PrepareModuleInput(
                input_kwarg_layouts={"hidden_states": Shard(1)},
                desired_input_kwarg_layouts={"hidden_states": Replicate()})
            plan["mlp"] = PrepareModuleInput(
                input_layouts=(Shard(1),),
                desired_input_layouts=(Replicate(),))
        parallelize_module(layer, mesh, plan)


group = None  # of the ranks that share sequences; None: all


class RingAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, scale):
        def kernel(q, k, v, is_causal, **options):
            return KERNEL(q, k, v, is_causal=is_causal, scale=scale)

        out, sums = ring._templated_ring_attention(
            group or dist.group.WORLD, 2, kernel, query, key, value, is_causal=True)[:2]
        ctx.save_for_backward(query, key, value, out, sums)
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx, gradient):
        def kernel(grad_out, query, key, value, out, logsumexp, is_causal):
            return BACKWARD(grad_out, query, key, value, out, logsumexp, 0.0,
                            is_causal, scale=ctx.scale)

        made = ring._templated_ring_attention_backward(
            group or dist.group.WORLD, 2, kernel, gradient.contiguous(), "grad_out",
            *ctx.saved_tensors, is_causal=True)
        return *made[:3], None


def attend(module, query, key, value, mask, scaling=None, **options):
    """Several query heads read a key head, as in transformers' own attention."""
    out = RingAttention.apply(query, key, value, scaling)
    return out.transpose(1, 2).contiguous(), None


def use_ring(model):
    from transformers import AttentionInterface

    AttentionInterface.register("ring", attend)
    model.config._attn_implementation = "ring"


def own_tokens(length, ranks, rank):
    """Head and tail: the order of torch's round-robin balancing."""
    chunks = torch.arange(length).chunk(2 * ranks)
    return torch.cat([chunks[rank], chunks[2 * ranks - 1 - rank]])
