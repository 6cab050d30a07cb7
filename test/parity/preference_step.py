"""The peak of one step of TRL's DPOTrainer on CPUs, as the counting allocator
and torch's tracker count it, and of LLaMA-Factory's (train/dpo/trainer.py). TRL is not needed: selective_log_softmax and the parts of
DPOTrainer._compute_loss (trl 1.10, trl/trainer/utils.py and dpo_trainer.py)
that allocate tensors of the logits' size are written out here, and prepare_fsdp
of trl/models/utils.py.
"""
import counted_step
import tracked_step


def selective_log_softmax(logits, index):
    import torch
    index = index.unsqueeze(-1)
    if logits.dtype is torch.float32:
        picked = torch.gather(logits, dim=-1, index=index)
        sums = torch.stack([torch.logsumexp(row, dim=-1) for row in logits])
        result = picked - sums.unsqueeze(-1)
    else:
        result = torch.stack([
            torch.nn.functional.log_softmax(row, dim=-1).gather(-1, labels)
            for row, labels in zip(logits, index)])
    return result.squeeze(-1)


def entropy(logits):
    """entropy_from_logits, of DPOTrainer's metrics."""
    import torch
    flat = logits.reshape(-1, logits.shape[-1])
    for chunk in flat.split(128):
        rows = torch.nn.functional.log_softmax(chunk, dim=-1)
        -(torch.exp(rows) * rows).sum(-1)


def whole_log_probabilities(run, ids):
    """get_batch_logps of LLaMA-Factory over concatenated_forward's logits,
    which its metrics keep."""
    logits = run().logits.float()
    picked = logits[:, :-1, :].log_softmax(-1).gather(
        2, ids[:, 1:].unsqueeze(2)).squeeze(2)
    return picked.sum(-1), logits


def whole_loss_of(model, reference, itself, ids, run):
    import torch

    def of_reference():
        with torch.no_grad():
            if itself:
                with model.disable_adapter():
                    return whole_log_probabilities(lambda: run(model), ids)[0]
            return whole_log_probabilities(lambda: run(reference), ids)[0]

    own, logits = whole_log_probabilities(lambda: run(model), ids)
    other = of_reference() if reference or itself else torch.zeros(len(ids))
    chosen, rejected = (own - other).chunk(2)
    loss = -torch.nn.functional.logsigmoid(0.1 * (chosen - rejected)).mean()
    for half in logits.chunk(2):
        half.mean().item()
    return loss


def loss_of(model, reference, ids, itself, autocast, whole=False):
    """A pair's sequences are the first and the second half of `ids`."""
    import torch

    def run(model):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            outputs = model(input_ids=ids, use_cache=False)
        # ConvertOutputsToFp32, which Accelerate puts around autocast.
        if autocast:
            outputs = type(outputs)(logits=outputs.logits.float())
        return outputs

    if whole:
        return whole_loss_of(model, reference, itself, ids, run)
    outputs = run(model)
    shifted, labels = outputs.logits[..., :-1, :], ids[..., 1:]
    chosen, rejected = selective_log_softmax(shifted, labels).sum(1).chunk(2)
    if reference is None and not itself:
        reference_chosen = reference_rejected = torch.zeros(len(ids) // 2)
    else:
        with torch.no_grad():
            if itself:
                with model.disable_adapter():
                    reference_outputs = run(model)
            else:
                reference_outputs = run(reference)
            of_reference = selective_log_softmax(
                reference_outputs.logits[..., :-1, :], labels).sum(1)
        reference_chosen, reference_rejected = of_reference.chunk(2)
    ratios = (chosen - reference_chosen) - (rejected - reference_rejected)
    loss = -torch.nn.functional.logsigmoid(0.1 * ratios).mean()
    entropy(shifted.detach())
    return loss


def one_step(model, reference, optimizer, ids, itself, autocast=False,
             whole=False):
    loss = loss_of(model, reference, ids, itself, autocast, whole)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def build(folder, second, adapter):
    model = tracked_step.build(folder)
    reference = tracked_step.build(folder).eval() if second else None
    if adapter:
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(**adapter))
    return model, reference


def optimizer_of(model):
    import torch
    return torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=1e-3,
        foreach=True)


def count(counter, idle, model, reference, ids, itself=False, autocast=False,
          whole=False):
    """Bytes of the third step, as counted_step.steps has them."""
    optimizer = optimizer_of(model)
    for _ in range(2):
        one_step(model, reference, optimizer, ids, itself, autocast, whole)
    held, peak, after = counter.measure(lambda: one_step(
        model, reference, optimizer, ids, itself, autocast, whole))
    return {"held": held - idle, "peak": peak - idle, "after": after - idle}


def single(library, folder, batch, length, second, adapter=None,
           autocast=False, whole=False):
    counter = counted_step.Counter(library)
    import torch
    torch.set_num_threads(1)
    idle = counter.live()
    model, reference = build(folder, second, adapter)
    ids = torch.randint(0, model.config.vocab_size, (batch, length))
    if whole and autocast and reference:
        reference = reference.to(torch.bfloat16)
    if reference:
        reference.requires_grad_(not whole)
    return count(counter, idle, model, reference, ids, bool(adapter), autocast,
                 whole)


def fsdp1(library, folder, batch, length, rank, ranks, port):
    """Both models are wrapped alike."""
    counter = counted_step.Counter(library)
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    counted_step.start(rank, ranks, port)
    counted_step.without_copies()
    idle = counter.live()
    model, reference = build(folder, True, None)
    vocab = model.config.vocab_size
    layer = type(model.model.layers[0])
    model, reference = (FullyShardedDataParallel(
        each, auto_wrap_policy=ModuleWrapPolicy({layer}),
        device_id=torch.device("cpu"), use_orig_params=True,
        backward_prefetch=None) for each in (model, reference))
    ids = torch.randint(0, vocab, (batch, length))
    result = count(counter, idle, model, reference, ids)
    dist.destroy_process_group()
    return result


def fsdp2(folder, batch, length, ranks, second, param=None):
    """The trained model has Accelerate's units, a second model is one unit."""
    import torch
    import torch.distributed as dist
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=ranks,
                            store=FakeStore())
    mesh = torch.distributed.init_device_mesh("cpu", (ranks,))
    model, reference = build(folder, second, None)
    policy = MixedPrecisionPolicy()
    if param:
        dtype = getattr(torch, param)
        policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=dtype,
                                      output_dtype=dtype)

    def shard(modules, reshard=True):
        fully_shard(modules, mesh=mesh, mp_policy=policy,
                    reshard_after_forward=reshard)

    for layer in model.model.layers:
        shard(layer)
    shard(model.model.embed_tokens)
    shard([model.model.norm, model.lm_head], reshard=False)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    if reference:
        shard(reference)
    ids = torch.randint(0, model.config.vocab_size, (batch, length))
    optimizer = optimizer_of(model)
    one_step(model, reference, optimizer, ids, False)
    tracker = MemTracker()
    tracker.track_external(model, optimizer, ids,
                           *([reference] if reference else []))
    with tracked_step.hooks_of_frozen(), tracker:
        one_step(model, reference, optimizer, ids, False)
    held = tracked_step.peak_of(tracker)
    dist.destroy_process_group()
    return held
