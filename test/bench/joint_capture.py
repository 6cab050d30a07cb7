"""Joint graphs of PyTorch's partitioner, and what its settings make of them.

`capture` runs a module under torch.compile and takes the joint graph inside the
partitioner's own call, after its common subexpressions are merged. `Joint`
translates it to the JSON of passes/Recompute/JointJson.h, runs torch's
partitioner on it at any budget, and measures its forward and backward graphs in
the same terms: bytes of distinct storages that cross (inputs and parameters are
free), seconds of operators that the backward repeats, and the backward's peak in
the order that torch chose.
"""
import contextlib
import copy
import operator

import torch
import torch.fx as fx
from torch._functorch import config as functorch_config
from torch._functorch import partitioners
from torch._functorch.compile_utils import fx_graph_cse
from torch._functorch.aot_autograd import aot_module_simplified  # noqa: F401
from torch._dynamo.backends.common import aot_autograd
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.flop_counter import flop_registry

ALIGN = 64
# Nothing is timed: matmuls and attention at their FLOPs, all else at its
# bytes, unfused (the upper limit of what a pointwise operator costs).
FLOPS, BYTES_PER_SECOND = 75e9, 10e9

DTYPES = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16",
          torch.float16: "f16", torch.int64: "i64", torch.int32: "i32",
          torch.int16: "i16", torch.uint8: "u8", torch.bool: "i1"}
RANDOM = ("rand", "bernoulli", "dropout", "philox", "multinomial", "normal")


def aligned(size):
    return (size + ALIGN - 1) // ALIGN * ALIGN


def tensors(node):
    """The tensors that a node makes, in order."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [v for v in value if isinstance(v, torch.Tensor)]
    return []


def storage_key(tensor):
    return StorageWeakRef(tensor.untyped_storage()).cdata


def storage_bytes(tensor):
    return aligned(tensor.untyped_storage().nbytes())


def is_call(node):
    return node.op == "call_function" and node.target is not operator.getitem


def seconds(node):
    """The model of both sides; 0 for what shares its input's storage."""
    made = tensors(node)
    if not made or is_view(node):
        return 0.0
    packet = getattr(node.target, "overloadpacket", None)
    if packet in flop_registry:
        args, kwargs = torch.utils._pytree.tree_map(
            lambda a: a.meta["val"] if isinstance(a, fx.Node) else a,
            (node.args, node.kwargs))
        return flop_registry[packet](*args, **kwargs,
                                     out_val=node.meta["val"]) / FLOPS
    read = sum(t.numel() * t.element_size() for a in node.all_input_nodes
               for t in tensors(a)[:1])
    return (read + sum(t.numel() * t.element_size() for t in made)) \
        / BYTES_PER_SECOND


def is_view(node):
    made = tensors(node)
    return bool(made) and any(
        storage_key(made[0]) == storage_key(t)
        for a in node.all_input_nodes for t in tensors(a))


@contextlib.contextmanager
def captured(found):
    def partition(joint, inputs, *, num_fwd_outputs, **options):
        graph = fx_graph_cse(joint.graph)
        merged = fx.GraphModule(joint, graph)
        merged.recompile()
        found.append((copy.deepcopy(merged), num_fwd_outputs, options))
        return partitioners.default_partition(
            joint, inputs, num_fwd_outputs=num_fwd_outputs, **options)
    yield aot_autograd(fw_compiler=lambda graph, _: graph,
                       bw_compiler=lambda graph, _: graph,
                       partition_fn=partition)


def capture(module, inputs):
    """The joint graph of `module`'s only graph; its loss is the sum."""
    found = []
    torch._dynamo.reset()
    with captured(found) as backend:
        compiled = torch.compile(module, backend=backend, fullgraph=True)
        output = compiled(*inputs)
        output = output[0] if isinstance(output, tuple) else output
        output.float().sum().backward()
    assert len(found) == 1, f"{len(found)} graphs"
    return Joint(*found[0])


class Joint:
    def __init__(self, module, num_outputs, options):
        self.module, self.num_outputs, self.options = module, num_outputs, options
        self.nodes = list(module.graph.nodes)
        results = next(n for n in self.nodes if n.op == "output").args[0]
        self.outputs = [n for n in results[:num_outputs]
                        if isinstance(n, fx.Node)]
        self.gradients = [n for n in results[num_outputs:]
                          if isinstance(n, fx.Node)]
        self.forward = self.ancestors(self.outputs)
        self.seconds = {n.name: seconds(n) for n in self.nodes if is_call(n)}
        self.build()

    @staticmethod
    def ancestors(nodes):
        seen, work = set(), list(nodes)
        while work:
            node = work.pop()
            if node not in seen:
                seen.add(node)
                work.extend(node.all_input_nodes)
        return seen

    def build(self):
        """The JSON graph; `op_of` maps a call's name to its index."""
        self.slots, self.slot_of, self.base_of, ops = [], {}, {}, []
        inputs, tangents = [], []
        for node in self.nodes:
            if node.op == "placeholder" and tensors(node):
                slot = self.add_slot(node.name, tensors(node)[0], None)
                (tangents if "tangents" in node.name else inputs).append(slot)
        calls = [n for n in self.nodes if is_call(n)]
        ordered = [n for n in calls if n in self.forward]
        ordered += [n for n in calls if n not in self.forward]
        self.op_of = {}
        for node in ordered:
            self.op_of[node.name] = len(ops)
            ops.append(self.operation(node))
        self.json = {
            "name": "joint", "slots": self.slots, "inputs": inputs,
            "params": [], "tangents": tangents,
            "outputs": [self.slot(n) for n in self.outputs],
            "gradients": [{"slot": self.slot(n), "of_parameter": False}
                          for n in self.gradients],
            "ops": ops}

    def add_slot(self, key, tensor, base):
        index = len(self.slots)
        # The storage is what lives: a view in the list has its base's.
        count = tensor.untyped_storage().nbytes() // tensor.element_size()
        self.slots.append({"dtype": DTYPES[tensor.dtype],
                           "shape": [count] if base is None
                           else list(tensor.shape),
                           "base": index if base is None else base})
        self.slot_of[key] = index
        if base is None:
            self.base_of[storage_key(tensor)] = index
        return index

    def slot(self, node):
        if node.op == "call_function" and node.target is operator.getitem:
            return self.slot_of[node.args[0].name, node.args[1]]
        if (node.name, 0) in self.slot_of:
            return self.slot_of[node.name, 0]
        return self.slot_of[node.name]

    def operation(self, node):
        args = []
        for argument in node.all_input_nodes:
            if not tensors(argument):
                continue
            # A tuple is read through its items, each a node of its own.
            slot = self.slot(argument)
            if slot not in args:
                args.append(slot)
        value, results, view = node.meta.get("val"), [], is_view(node)
        made = list(value) if isinstance(value, (tuple, list)) else [value]
        for i, tensor in enumerate(made):
            if not isinstance(tensor, torch.Tensor):
                continue
            base = self.base_of[storage_key(tensor)] if view else None
            results.append(self.add_slot((node.name, i), tensor, base))
        if view:
            base = self.slots[results[0]]["base"]
            args.sort(key=lambda s: self.slots[s]["base"] != base)
        name = str(node.target)
        packet = getattr(node.target, "overloadpacket", None)
        category = ("view" if view else "attention" if "attention" in name
                    else "matmul" if packet in flop_registry else "pointwise")
        forward = node in self.forward
        return {"op": name, "category": category, "forward": forward,
                "may_recompute": forward and not any(r in name for r in RANDOM),
                "norm": False, "into_place": False,
                "overwrites": False, "args": args,
                "results": results, "flops": 0, "moved_bytes": 0,
                "workspace_bytes": 0, "where": node.name,
                "seconds": self.seconds[node.name]}

    # torch's partitioner

    def partition(self, budget, cuda_like=False, matched=False):
        """(saved bytes, recomputed seconds, backward peak, saved ops)."""
        module = copy.deepcopy(self.module)
        with contextlib.ExitStack() as stack:
            patch = {"activation_memory_budget": budget}
            if matched:
                patch["activation_memory_budget_runtime_estimator"] = \
                    estimator(self.seconds)
            stack.enter_context(functorch_config.patch(patch))
            if cuda_like:
                stack.enter_context(with_cpu_attention())
            forward, backward = \
                partitioners.min_cut_rematerialization_partition(
                    module, None, num_fwd_outputs=self.num_outputs,
                    **self.options)
        return self.measure(backward)

    def measure(self, backward):
        inputs = {storage_key(t) for n in self.nodes if n.op == "placeholder"
                  for t in tensors(n)}
        nodes = list(backward.graph.nodes)
        saved = {}
        for node in nodes:
            if node.op == "placeholder" and "tangents" not in node.name:
                for tensor in tensors(node):
                    saved[storage_key(tensor)] = storage_bytes(tensor)
        size = sum(b for key, b in saved.items() if key not in inputs)
        forward = {n.name for n in self.forward}
        again = sum(self.seconds.get(n.name, 0) for n in nodes
                    if is_call(n) and n.name in forward)
        return {"saved_bytes": size, "recompute_s": again,
                "backward_peak": peak(nodes, inputs)}


def peak(nodes, free):
    """Bytes of storages at the fullest operator of a backward graph, in its
    order: what crosses and the tangents until their last use, what it makes,
    gradients to the end; `free` ones never."""
    tangents = {storage_key(t) for n in nodes
                if n.op == "placeholder" and "tangents" in n.name
                for t in tensors(n)}
    last, live, sizes = {}, set(), {}
    for i, node in enumerate(nodes):
        for argument in [*node.all_input_nodes, node]:
            for tensor in tensors(argument):
                last[storage_key(tensor)] = i
                sizes[storage_key(tensor)] = storage_bytes(tensor)
        if node.op == "output":
            for argument in node.all_input_nodes:
                for tensor in tensors(argument):
                    last[storage_key(tensor)] = len(nodes)
    for node in nodes:
        if node.op == "placeholder":
            live.update(storage_key(t) for t in tensors(node))
    counted = lambda: sum(sizes[k] for k in live  # noqa: E731
                          if k not in free or k in tangents)
    highest = counted()
    for i, node in enumerate(nodes):
        if node.op == "call_function":
            live.update(storage_key(t) for t in tensors(node))
            highest = max(highest, counted())
        if node.op != "placeholder":
            live = {k for k in live if last[k] > i}
    return highest


def estimator(table):
    from torch._inductor.custom_graph_pass import CustomRuntimeEstimator

    class Estimator(CustomRuntimeEstimator):
        def __call__(self, node):
            return max(table.get(node.name, 0), 1e-12)

        def uuid(self):
            return None

    return Estimator()


@contextlib.contextmanager
def with_cpu_attention():
    """The shipped list of compute-intensive operators has CUDA's attention
    alone; on CPUs the knapsack would take it as free to repeat."""
    original = partitioners.get_default_op_list

    def extended():
        types = original()
        types.compute_intensive_ops.add(
            torch.ops.aten._scaled_dot_product_flash_attention_for_cpu)
        return types

    partitioners.get_default_op_list = extended
    try:
        yield
    finally:
        partitioners.get_default_op_list = original
