"""What torch.compile's partitioner saves of each layer of a transformers model.

Inductor is left out behind the partitioner: each half of a graph runs operator
by operator. Its decompositions and its passes over the joint graph run as ever.
"""
import os

from saved_tensors import aligned, each_of, layers_of, model_of


def tensors(node):
    import torch
    value = getattr(node, "meta", {}).get("val")
    return [value] if isinstance(value, torch.Tensor) else []


def key(tensor):
    from torch.multiprocessing.reductions import StorageWeakRef
    return StorageWeakRef(tensor.untyped_storage()).cdata


def saved_of(forward, outputs, parameters):
    """(bytes of own storages, bytes of storages of inputs that are no
    parameters) that a forward graph hands on beside its outputs."""
    placeholders = [n for n in forward.graph.nodes if n.op == "placeholder"]
    inputs, weights = {}, set()
    for node in placeholders:
        for tensor in tensors(node):
            weight = tuple(tensor.shape) in parameters
            (weights if weight else inputs.setdefault(key(tensor), set())).add(
                key(tensor))
    own, received, seen = 0, 0, set()
    results = forward.graph.output_node().args[0]
    for node in results[:outputs]:
        for tensor in tensors(node):
            seen.add(key(tensor))
    for node in results[outputs:]:
        for tensor in tensors(node):
            storage = key(tensor)
            if storage in seen or storage in weights:
                continue
            seen.add(storage)
            size = aligned(tensor.untyped_storage().nbytes())
            if storage in inputs:
                received += size
            else:
                own += size
    return own, received


def capture(backend_calls):
    """A backend of torch.compile that notes the partitioner's answers."""
    from torch._functorch import partitioners
    from torch._inductor import compile_fx

    original = partitioners.min_cut_rematerialization_partition

    def partition(joint, arguments, compiler="inductor", **settings):
        halves = original(joint, arguments, compiler=compiler, **settings)
        backend_calls.append((halves[0], settings["num_fwd_outputs"]))
        return halves

    compile_fx.min_cut_rematerialization_partition = partition
    return lambda graph, inputs: compile_fx.compile_fx(
        graph, inputs, inner_compile=lambda half, *_, **__: half)


def measure(folder, batch, length, dtype, whole=False, autocast=False,
            checkpointed=False):
    """[(own, received)] of each compiled graph, in the order of the forward."""
    import torch

    torch._dynamo.reset()
    model = model_of(folder, dtype)
    if checkpointed:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    shapes = {tuple(p.shape) for p in model.parameters()}
    calls = []
    backend = capture(calls)
    if whole:
        run = torch.compile(model, backend=backend)
    else:
        run = model
        for layer in layers_of(model).values():
            layer.compile(backend=backend)
    ids = torch.arange(batch * length).reshape(batch, length) \
        % model.config.vocab_size
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        run(input_ids=ids, labels=ids).loss.backward()
    return [saved_of(forward, outputs, shapes) for forward, outputs in calls]


def bucketed(folder, batch, length, dtype, cap):
    """(bytes that a model saves beside its parameters and buffers, graphs),
    compiled as a whole; cut as DDPOptimizer cuts it for DDP's `cap`, 0: not."""
    import torch
    from torch._dynamo.backends.distributed import DDPOptimizer
    from torch._inductor import compile_fx

    torch._dynamo.reset()
    model = model_of(folder, dtype)
    halves = []

    def backend(graph, inputs):
        halves.append(graph)
        return compile_fx.compile_fx(
            graph, inputs, inner_compile=lambda half, *_, **__: half)

    run = torch.compile(
        model, backend=DDPOptimizer(cap, backend).compile_fn if cap
        else backend)
    ids = torch.arange(batch * length).reshape(batch, length) \
        % model.config.vocab_size
    run(input_ids=ids, labels=ids)
    own = {t.untyped_storage().data_ptr()
           for t in [*model.parameters(), *model.buffers()]}
    saved, kept = {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept.append(tensor.detach())  # no pointer comes again
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = aligned(storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept):
        run(input_ids=ids, labels=ids)
    return sum(saved.values()), len(halves)


def bucketed_each(cases):
    os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"
    os.environ["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0"
    return each_of(bucketed, cases)


def measure_each(cases):
    """`measure` of each case's arguments, in one process; a failure's text
    where it failed."""
    os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"
    os.environ["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0"
    return each_of(measure, cases)
