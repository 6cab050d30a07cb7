"""What FSDP2 itself allocates for each unit, and FSDPMemTracker's account."""
import contextlib

from saved_tensors import aligned, each_of, model_of


def names_of(model):
    """{(module, attribute): FQN}: fully_shard replaces parameters."""
    names = {}
    for path, module in model.named_modules(remove_duplicate=False):
        for attribute, _ in module.named_parameters(recurse=False):
            names.setdefault((id(module), attribute),
                             f"{path}.{attribute}" if path else attribute)
    return names


def modules_of(model, unit):
    """The module whose parameters are just these, or their owners, with those
    of tied ones."""
    path = unit[0].rpartition(".")[0]
    while path:
        module = model.get_submodule(path)
        own = {f"{path}.{n}" for n, _ in module.named_parameters()}
        if own == set(unit):
            break
        path = path.rpartition(".")[0] if own < set(unit) else ""
    wanted = {id(model.get_parameter(name)) for name in unit}
    owners = [m for m in model.modules()
              if any(id(p) in wanted for p in m._parameters.values())]
    return module if path and len(owners) <= len(unit) and all(
        o in list(module.modules()) for o in owners) else owners


def shard(model, units, mesh, policy):
    """fully_shard on each of `units`, lists of FQNs; the last is the root."""
    from torch.distributed.fsdp import fully_shard

    *inner, root = [u for u in units]
    for unit in inner:
        modules = modules_of(model, unit)
        fully_shard(modules, mesh=mesh, mp_policy=policy,
                    reshard_after_forward=not isinstance(modules, list))
    fully_shard(model, mesh=mesh, mp_policy=policy)


@contextlib.contextmanager
def watching(names, found):
    """Notes the tensors of each group of parameters in `found`, by FQNs."""
    from torch.distributed.fsdp._fully_shard import _fsdp_param_group as module

    def entry(params):
        key = tuple(sorted(names[id(p._module_info.module),
                                 p._module_info.param_name] for p in params))
        return found.setdefault(key, {})

    gather, reduce = module.foreach_all_gather, module.foreach_reduce
    wait = module.FSDPParamGroup.wait_for_unshard

    def foreach_all_gather(params, *args, **kwargs):
        result = gather(params, *args, **kwargs)
        if result is not None:
            entry(params)["gathered"] = aligned(
                result.all_gather_output.nbytes)
        return result

    def wait_for_unshard(group):
        wait(group)
        note = entry(group.fsdp_params)
        note["unsharded"] = sum(
            aligned(t.untyped_storage().nbytes())
            for p in group.fsdp_params for t in p.all_gather_outputs)
        note["shard"] = sum(
            aligned(p._sharded_param_data.untyped_storage().nbytes())
            for p in group.fsdp_params)

    def foreach_reduce(params, grads, *args, **kwargs):
        note = entry(params)
        note["gradients"] = sum(aligned(g.nbytes) for g in grads)
        result = reduce(params, grads, *args, **kwargs)
        note["reduce_input"] = aligned(result[0].nbytes)
        return result

    module.foreach_all_gather = foreach_all_gather
    module.foreach_reduce = foreach_reduce
    module.FSDPParamGroup.wait_for_unshard = wait_for_unshard
    try:
        yield
    finally:
        module.foreach_all_gather = gather
        module.foreach_reduce = reduce
        module.FSDPParamGroup.wait_for_unshard = wait


def measure(folder, units, ranks, rank, low, batch, length):
    """{FQNs of a unit, joined: {what: bytes}} of a step on one of `ranks`, and
    the bytes of parameters and optimizer that FSDPMemTracker sees after it."""
    import torch
    import torch.distributed as dist
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed.fsdp import MixedPrecisionPolicy
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=rank, world_size=ranks,
                            store=FakeStore())
    try:
        mesh = dist.init_device_mesh("cpu", (ranks,))
        model = model_of(folder, "float32")
        names = names_of(model)
        policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16,
            output_dtype=torch.bfloat16) if low else MixedPrecisionPolicy()
        shard(model, units, mesh, policy)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3,
                                      foreach=True)
        ids = torch.randint(0, model.config.vocab_size, (batch, length))

        def step():
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        found = {}
        with watching(names, found):
            step()
        # The step before filled the caches of DTensor's sharding propagation,
        # whose tensors of global shape the tracker would count.
        tracker = FSDPMemTracker(model, optimizer)
        tracker.track_inputs((ids,))
        with tracker:
            step()
        (held,) = tracker.get_tracker_snapshot("current").values()
        (peak,) = tracker.get_tracker_snapshot("peak").values()

        def named(snapshot):
            return {getattr(k, "value", k): v for k, v in snapshot.items()}
        return {"units": {" ".join(k): v for k, v in found.items()},
                "held": named(held), "peak": named(peak)}
    finally:
        dist.destroy_process_group()


def measure_each(cases):
    """`measure` of each case's arguments; a failure's text where it failed."""
    return each_of(measure, cases)
