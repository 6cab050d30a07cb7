"""The peak of one training step on CPUs, as torch's own trackers count it."""
import collections
import contextlib


def build(folder, dtype="float32"):
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.AutoConfig.from_pretrained(folder)
    config.use_cache = False
    model = transformers.AutoModelForCausalLM.from_config(
        config, dtype=getattr(torch, dtype), attn_implementation="sdpa")
    return model.train()


def checkpoint_layers(model):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
        checkpoint_wrapper)
    for i, layer in enumerate(model.model.layers):
        model.model.layers[i] = checkpoint_wrapper(layer)


def one_step(model, optimizer, ids, autocast=False):
    # As transformers' Trainer does, the outputs are gone before the backward.
    import torch
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        output = model(input_ids=ids, labels=ids, use_cache=False)
    loss = output.loss
    del output
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def loss_in_parts(model):
    """Liger Kernel's fused linear cross-entropy in plain operators: logits of
    a part of the rows, which become their gradient in place, and both
    gradients before the next part."""
    import torch

    class Parts(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, table, labels):
            words, hidden = table.shape
            parts = -(-words // hidden)
            size = 1 << (-(-len(rows) // parts) - 1).bit_length()
            counted = (labels != -100).sum().item()
            of_rows, of_table = torch.zeros_like(rows), torch.zeros_like(table)
            total = torch.zeros((), dtype=torch.float32)
            for begin in range(0, len(rows), size):
                part, target = rows[begin:begin + size], labels[begin:begin + size]
                kept = (target != -100).unsqueeze(1)
                target = target.clamp(min=0).unsqueeze(1)
                logits = part @ table.t()
                logits -= logits.amax(1, keepdim=True)
                at = logits.gather(1, target)
                logits.exp_()
                sums = logits.sum(1, keepdim=True)
                total += ((sums.log() - at) * kept).sum() / counted
                logits /= sums
                logits.scatter_add_(1, target, torch.full_like(at, -1.0))
                logits *= kept / counted
                torch.mm(logits, table, out=of_rows[begin:begin + size])
                torch.addmm(of_table, logits.t(), part, out=of_table)
                del logits
            ctx.save_for_backward(of_rows, of_table)
            return total

        @staticmethod
        def backward(ctx, gradient):
            of_rows, of_table = ctx.saved_tensors
            return of_rows.mul_(gradient), of_table.mul_(gradient), None

    def forward(input_ids, labels, use_cache):
        hidden = model.model(input_ids=input_ids, use_cache=use_cache)[0]
        shifted = torch.nn.functional.pad(labels, (0, 1), value=-100)[:, 1:]
        loss = Parts.apply(hidden.flatten(0, 1), model.lm_head.weight,
                           shifted.reshape(-1))
        return collections.namedtuple("Output", "loss")(loss)
    return forward


@contextlib.contextmanager
def hooks_of_frozen():
    """MemTracker hooks every parameter, which torch refuses for frozen ones."""
    import torch
    names = ("register_hook", "register_post_accumulate_grad_hook")
    originals = {name: getattr(torch.Tensor, name) for name in names}

    def only_trained(original):
        def register(tensor, hook):
            if tensor.requires_grad:
                return original(tensor, hook)
            return torch.utils.hooks.RemovableHandle(collections.OrderedDict())
        return register
    for name, original in originals.items():
        setattr(torch.Tensor, name, only_trained(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(torch.Tensor, name, original)


def peak_of(tracker):
    snapshot = tracker.get_tracker_snapshot("peak")
    # Those of DTensor's styles on the meta device have no bytes.
    held, = (held for device, held in snapshot.items() if device.type != "meta")
    named = {getattr(k, "value", k): v for k, v in held.items()}
    return named


def peak_of_step(model, optimizer, ids, run=None, autocast=False):
    """The peak of a second step, as MemTracker counts it."""
    from torch.distributed._tools.mem_tracker import MemTracker

    run = run or model
    one_step(run, optimizer, ids, autocast)
    tracker = MemTracker()
    tracker.track_external(model, optimizer, ids)
    with tracker:
        one_step(run, optimizer, ids, autocast)
    return peak_of(tracker)


def adapted(folder, batch, length, dtype):
    """Of a step of a model with the adapter of the folder."""
    import torch
    import saved_tensors

    model = saved_tensors.adapted(build(folder, dtype), folder)
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=1e-3,
        foreach=True)
    ids = torch.randint(0, model.config.vocab_size, (batch, length))
    with hooks_of_frozen():
        return peak_of_step(model, optimizer, ids)


def single(folder, batch, length, checkpoint, kernel, autocast=False,
           parts=False):
    """MemTracker's peak of a step without any distribution; with `parts` the
    loss in parts, which is compared with the model's own first."""
    import torch

    model = build(folder)
    if checkpoint:
        checkpoint_layers(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3,
                                  foreach=kernel == "foreach",
                                  fused=kernel == "fused")
    ids = torch.randint(0, model.config.vocab_size, (batch, length))
    run = model
    if parts:
        run = loss_in_parts(model)
        losses = [f(input_ids=ids, labels=ids, use_cache=False).loss.item()
                  for f in (model, run)]
        assert abs(losses[0] - losses[1]) < 1e-5 * losses[0], losses
    return peak_of_step(model, optimizer, ids, run, autocast)


def tensor_parallel(model, mesh):
    """As transformers' DistributedMixin.maybe_distribute_model does it."""
    from transformers.distributed.configuration_utils import DistributedConfig
    from transformers.distributed.tensor_parallel import (
        apply_tensor_parallelism)
    config = DistributedConfig(tp_size=mesh["tp"].size(),
                               fsdp_size=mesh["dp"].size())
    plan = model._resolve_parallel_plans(config)[0]
    # Where PEFT looks for them.
    model.config.distributed_config, model._device_mesh = config, mesh
    return apply_tensor_parallelism(model, mesh["tp"], plan)


def fsdp2(folder, batch, length, ranks, checkpoint, reshard, param, reduce,
          adapter=None, tp=1, cp=1, functions=False):
    """MemTracker's peak of a step of rank 0, with the units that Accelerate
    makes; with `cp` of the last rank, whose blocks of ring attention have all
    of its queries. A step before it fills the caches of DTensor's sharding propagation,
    whose fake tensors of global shape would be counted. FSDPMemTracker hooks
    the modules of a list unit one by one, so that lm_head would be reduced
    without the norm; its totals are not used."""
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=ranks - 1 if cp > 1 else 0,
                            world_size=ranks, store=FakeStore())
    mesh = torch.distributed.init_device_mesh("cpu", (ranks,))
    model = whole = build(folder)
    if cp > 1:
        import torch_split
        torch_split.group = torch.distributed.init_device_mesh(
            "cpu", (ranks // cp, cp),
            mesh_dim_names=("dp_shard", "cp"))["cp"].get_group()
        torch_split.use_ring(model)
        length //= cp
    if tp > 1:
        mesh = torch.distributed.init_device_mesh(
            "cpu", (ranks // tp, tp), mesh_dim_names=("dp", "tp"))
        tensor_parallel(model, mesh)
        mesh = mesh["dp"]
    if adapter:
        import peft
        whole = peft.get_peft_model(model, peft.LoraConfig(**adapter))
    if functions:
        import axolotl_functions
        axolotl_functions.patch(whole)
    if checkpoint:
        checkpoint_layers(model)
    policy = MixedPrecisionPolicy()
    if param:
        policy = MixedPrecisionPolicy(
            param_dtype=getattr(torch, param),
            reduce_dtype=getattr(torch, reduce),
            output_dtype=getattr(torch, param))
    for layer in model.model.layers:
        # _process_lora_module_for_fsdp of axolotl.
        matrices = [module for name, module in layer.named_modules()
                    if functions and ".lora_" in name
                    and name.endswith(".default")]
        for module in (*matrices, layer):
            fully_shard(module, mesh=mesh, mp_policy=policy,
                        reshard_after_forward=reshard)
    fully_shard(model.model.embed_tokens, mesh=mesh, mp_policy=policy,
                reshard_after_forward=reshard)
    # Accelerate does not find the norm of a PeftModel.
    tail = [model.lm_head] if adapter else [model.model.norm, model.lm_head]
    fully_shard(tail, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    fully_shard(whole, mesh=mesh, mp_policy=policy)
    with without_cycles() if adapter else contextlib.nullcontext():
        held = tracked(whole, model.config.vocab_size, batch, length)
    dist.destroy_process_group()
    return held


@contextlib.contextmanager
def without_cycles():
    """MemTracker's hooks tie tensors of a graph that has no backward (DoRA's
    norm is detached) into cycles, which wait for Python's collector; PEFT's own
    code makes none. Each count collects them first."""
    import gc

    from torch.distributed._tools.mem_tracker import MemTracker
    counts = MemTracker._update_peak_stats

    def collected(*arguments):
        gc.collect()
        return counts(*arguments)
    MemTracker._update_peak_stats = collected
    gc.collect()
    gc.freeze()  # what exists already need not be looked at each time
    try:
        yield
    finally:
        gc.unfreeze()
        MemTracker._update_peak_stats = counts


def tracked(model, vocab, batch, length):
    import torch
    from torch.distributed._tools.mem_tracker import MemTracker

    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=1e-3,
        foreach=True)
    ids = torch.randint(0, vocab, (batch, length))
    one_step(model, optimizer, ids)
    tracker = MemTracker()
    tracker.track_external(model, optimizer, ids)
    with hooks_of_frozen(), tracker:
        one_step(model, optimizer, ids)
    return peak_of(tracker)


def own_shards(folder, batch, length, ranks, policy, tp=1):
    """MemTracker's peak of a step of rank 0 of a model that transformers shards
    (DistributedConfig), over `tp` ranks by layers too, with the forward as
    Accelerate's prepare_model leaves it under bf16; `policy`: with
    fsdp_mixed_precision. Also the dtypes of gathered parameters and of sharded
    gradients."""
    import types

    import torch
    import torch.distributed as dist
    from accelerate.utils import convert_outputs_to_fp32
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from transformers.distributed.configuration_utils import DistributedConfig
    from transformers.distributed.fsdp import (
        apply_fully_sharded_data_parallelism)

    dist.init_process_group("fake", rank=0, world_size=ranks,
                            store=FakeStore())
    mesh = torch.distributed.init_device_mesh(
        "cpu", (ranks // tp, tp), mesh_dim_names=("dp", "tp"))
    model = build(folder)
    if tp > 1:
        tensor_parallel(model, mesh)
    mesh = mesh["dp"]
    config = DistributedConfig(fsdp_size=ranks // tp, tp_size=tp,
                               fsdp_mixed_precision=policy)
    model.config.distributed_config = config
    apply_fully_sharded_data_parallelism(
        model, types.SimpleNamespace(get_mesh=lambda _: mesh),
        model._resolve_parallel_plans(config)[2], {})
    forward = torch.autocast("cpu", dtype=torch.bfloat16)(
        model.forward.__func__)
    model.forward = types.MethodType(convert_outputs_to_fp32(forward), model)
    layer, dtypes = model.model.layers[0].mlp, set()
    hook = layer.register_forward_pre_hook(lambda module, _: dtypes.update(
        str(p.dtype) for p in module.parameters()))
    model(input_ids=torch.zeros(1, 2, dtype=torch.long)).logits.sum().backward()
    hook.remove()
    dtypes |= {f"gradient {p.grad.dtype}" for p in layer.parameters()}
    model.zero_grad()
    held = tracked(model, model.config.vocab_size, batch, length)
    dist.destroy_process_group()
    return held, sorted(dtypes)


def dealt_evenly():
    """Fake ranks exchange nothing: each is sent as many rows as it sends, as
    many for each expert as the remainder allows."""
    from transformers.distributed import expert_parallel

    def counts(received, sent, group):
        rows, experts = int(sent.sum()), received.numel()
        received.fill_(rows // experts)
        received.view(-1)[:rows % experts] += 1
    expert_parallel.all_to_all_single = counts


def own_experts(folder, batch, length, ranks, ep, tp=1):
    """MemTracker's peak of a step of rank 0 of a mixture that transformers
    shards (DistributedConfig with ep_size, and tp_size) in fp32, and the bytes
    of its parameters."""
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from transformers.distributed.configuration_utils import DistributedConfig
    from transformers.distributed.utils import TransformersDeviceMesh

    dist.init_process_group("fake", rank=0, world_size=ranks,
                            store=FakeStore())
    dealt_evenly()
    config = DistributedConfig(fsdp_size=ranks // tp, tp_size=tp, ep_size=ep)
    dense = torch.distributed.init_device_mesh(
        "cpu", (1, 1, ranks // tp, tp),
        mesh_dim_names=("pp", "dp_replicate", "fsdp", "tp"))
    experts = torch.distributed.init_device_mesh(
        "cpu", (1, 1, ranks // ep, ep),
        mesh_dim_names=("pp", "dp_replicate", "efsdp", "ep"))
    model = build(folder)
    model = model.maybe_distribute_model(
        model, config, TransformersDeviceMesh(dense, experts))
    stored = sum(-(-p.to_local().nbytes // 64) * 64
                 for p in model.parameters())
    held = tracked(model, model.config.vocab_size, batch, length)
    dist.destroy_process_group()
    return held, stored
