"""Bytes of live tensors of a training step under FSDP1 and DDP, by Gloo.

The counting allocator (counting_allocator.cpp) sees what trackers that watch
operators do not: DDP's buckets, which C++ makes, and flat parameters that are
resized.
"""
import ctypes
import gc
import time

import tracked_step


class Counter:
    def __init__(self, library):
        self.c = ctypes.CDLL(library)
        for name in ("live", "peak"):
            getattr(self.c, "accel_count_" + name).restype = ctypes.c_int64
        self.c.accel_count_install()

    def live(self):
        return self.c.accel_count_live()

    def measure(self, step):
        """Live bytes before it, its peak, live bytes after it."""
        self.c.accel_count_reset()
        before = self.live()
        step()
        return before, self.c.accel_count_peak(), self.live()


def start(rank, ranks, port):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks,
                            init_method=f"tcp://127.0.0.1:{port}")


def settle(counter):
    """Waits for what is about to be freed: cycles of Python, and what Gloo's
    threads hold of a collective that has ended, on busy cores for a while."""
    gc.collect()
    last, same = counter.live(), 0
    for _ in range(50):
        time.sleep(0.02)
        now = counter.live()
        same = same + 1 if now == last else 0
        last = now
        if same == 3:
            return


def steps(counter, idle, model, optimizer, batch, length, vocab):
    """Figures of the third step beside `idle`."""
    import torch
    tokens = torch.randint(0, vocab, (batch, length))
    for _ in range(2):
        tracked_step.one_step(model, optimizer, tokens)
    settle(counter)
    held, peak, after = counter.measure(
        lambda: tracked_step.one_step(model, optimizer, tokens))
    return {"held": held - idle, "peak": peak - idle, "after": after - idle}


def without_copies():
    """Collectives of the same results that copy nothing: Gloo's all-gather
    stages its output, its reduce-scatter its input, as NCCL's do not."""
    import torch.distributed as dist

    def all_gather(outputs, piece, group=None, async_op=False):
        mine = dist.get_rank(group)
        outputs[mine].copy_(piece)
        for rank, output in enumerate(outputs):
            dist.broadcast(output, src=rank, group=group)

    def reduce_scatter(output, input, op=None, group=None, async_op=False):
        dist.all_reduce(input, group=group)
        pieces = input.chunk(dist.get_world_size(group))
        output.copy_(pieces[dist.get_rank(group)])

    dist.all_gather = all_gather
    dist.reduce_scatter_tensor = reduce_scatter


def fsdp1(library, folder, batch, length, rank, ranks, port, strategy, prefetch,
          precision, checkpoint):
    """A step under FullyShardedDataParallel with the units that Accelerate
    makes: each layer, and the root."""
    counter = Counter(library)
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import (BackwardPrefetch,
                                        FullyShardedDataParallel,
                                        MixedPrecision, ShardingStrategy)
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    start(rank, ranks, port)

    without_copies()
    idle = counter.live()
    model = tracked_step.build(folder)
    layer = type(model.model.layers[0])
    policy = None
    if precision:
        kind = getattr(torch, precision)
        policy = MixedPrecision(param_dtype=kind, reduce_dtype=kind,
                                buffer_dtype=kind)
    model = FullyShardedDataParallel(
        model, auto_wrap_policy=ModuleWrapPolicy({layer}),
        sharding_strategy=ShardingStrategy[strategy], mixed_precision=policy,
        device_id=torch.device("cpu"), use_orig_params=True,
        backward_prefetch=BackwardPrefetch[prefetch] if prefetch else None)
    if checkpoint:
        from torch.distributed.algorithms._checkpoint.checkpoint_wrapper \
            import apply_activation_checkpointing, checkpoint_wrapper
        apply_activation_checkpointing(
            model, checkpoint_wrapper_fn=checkpoint_wrapper,
            auto_wrap_policy=ModuleWrapPolicy({layer}))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    result = steps(counter, idle, model, optimizer, batch, length,
                   model.module.config.vocab_size)
    dist.destroy_process_group()
    return result


def fsdp1_adapter(library, folder, batch, length, rank, ranks, port,
                  reentrant):
    """A step of a PEFT model with checkpointed layers and the units that
    transformers' Trainer makes: layers, and the adapter's matrices."""
    counter = Counter(library)
    import saved_tensors
    import torch
    import torch.distributed as dist
    from peft.utils.other import fsdp_auto_wrap_policy
    from torch.distributed.fsdp import FullyShardedDataParallel

    start(rank, ranks, port)
    without_copies()
    idle = counter.live()
    model = saved_tensors.adapted(tracked_step.build(folder), folder,
                                  checkpointed=True)
    vocab = model.config.vocab_size
    model.base_model.model.gradient_checkpointing_enable(
        {"use_reentrant": reentrant})
    model = FullyShardedDataParallel(
        model, auto_wrap_policy=fsdp_auto_wrap_policy(model),
        device_id=torch.device("cpu"), use_orig_params=True,
        backward_prefetch=None)
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=1e-3,
        foreach=True)
    result = steps(counter, idle, model, optimizer, batch, length, vocab)
    dist.destroy_process_group()
    return result


def ddp(library, folder, batch, length, rank, ranks, port, views, hook,
        bucket_mb):
    """A step under DistributedDataParallel."""
    counter = Counter(library)
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    start(rank, ranks, port)
    idle = counter.live()
    model = tracked_step.build(folder)
    vocab = model.config.vocab_size
    options = {"bucket_cap_mb": bucket_mb} if bucket_mb else {}
    model = torch.nn.parallel.DistributedDataParallel(
        model, gradient_as_bucket_view=views, **options)
    if hook:
        model.register_comm_hook(
            None, getattr(default_hooks, hook + "_compress_hook"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    result = steps(counter, idle, model, optimizer, batch, length, vocab)
    dist.destroy_process_group()
    return result


def staged(library, folder, batch, length, ranks, stages, stage, parts,
           checkpoint, param):
    """The peak of a step of torch's Schedule1F1B of `parts` micro-batches, on
    the first rank of `stage` of fake ranks, as torchtitan has its stages under
    FSDP2: gathered until the step ends, outputs not returned."""
    counter = Counter(library)

    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from transformers.loss.loss_utils import ForCausalLMLoss

    dist.init_process_group("fake", rank=stage * ranks,
                            world_size=stages * ranks, store=FakeStore())
    mesh = torch.distributed.init_device_mesh("cpu", (stages, ranks),
                                              mesh_dim_names=("pp", "dp"))
    model = tracked_step.build(folder)
    if checkpoint:
        tracked_step.checkpoint_layers(model)
    vocab, hidden = model.config.vocab_size, model.config.hidden_size
    first, last = stage == 0, stage == stages - 1
    # The ends count as layers, and the first stages have what is over
    # (generate_llm_fqn_per_model_part).
    counted = len(model.model.layers) + 2
    own = [counted // stages + (i < counted % stages) for i in range(stages)]
    own[0] -= 1
    own[-1] -= 1
    begin = sum(own[:stage])

    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = model.model.layers[begin:begin + own[stage]]
            self.rotary = model.model.rotary_emb
            if first:
                self.embed = model.model.embed_tokens
            if last:
                self.norm, self.head = model.model.norm, model.lm_head

        def forward(self, x):
            x = self.embed(x) if first else x
            positions = torch.arange(x.shape[1])[None]
            rotary = self.rotary(x, positions)
            for layer in self.layers:
                x = layer(x, attention_mask=None, position_ids=positions,
                          position_embeddings=rotary)
            return self.head(self.norm(x)) if last else x

    part = Part().train()
    dtype = getattr(torch, param) if param else torch.float32
    policy = MixedPrecisionPolicy(param_dtype=dtype,
                                  reduce_dtype=dtype) if param else (
        MixedPrecisionPolicy())
    ends = ([part.embed] if first else []) + ([[part.norm, part.head]] if last
                                              else [])
    for unit in [*part.layers, *ends, part]:
        fully_shard(unit, mesh=mesh["dp"], mp_policy=policy,
                    reshard_after_forward=False)
    del model
    with torch.device("meta"):
        tokens = torch.zeros(batch, length, dtype=torch.long)
        between = torch.empty(batch, length, hidden, dtype=dtype,
                              requires_grad=True)
        logits = torch.empty(batch, length, vocab, dtype=dtype,
                             requires_grad=True)
    schedule = Schedule1F1B(
        PipelineStage(part, stage, stages, torch.device("cpu"),
                      input_args=(tokens if first else between,),
                      output_args=(logits if last else between,),
                      group=mesh["pp"].get_group()),
        parts, lambda logits, labels: ForCausalLMLoss(logits, labels, vocab))
    optimizer = torch.optim.AdamW(part.parameters(), lr=1e-3, foreach=True)
    ids = torch.randint(0, vocab, (parts * batch, length))

    def one_step():
        schedule.step(*([ids] if first else []),
                      **({"target": ids, "losses": []} if last else {}),
                      return_outputs=False)
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(2):
        one_step()
    gc.collect()
    peak = counter.measure(one_step)[1]
    dist.destroy_process_group()
    return peak
