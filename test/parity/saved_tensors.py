"""What PyTorch's autograd saves of each part of a transformers model."""
import contextlib
import weakref


def aligned(size):
    return (size + 63) // 64 * 64


def layers_of(model):
    """{path: module} of the model's layers: of its lists that lie in no other
    list."""
    import torch
    lists = [(name, module) for name, module in model.named_modules()
             if isinstance(module, torch.nn.ModuleList)]
    outer = [(name, module) for name, module in lists
             if not any(name.startswith(other + ".") for other, _ in lists)]
    return {f"{name}.{i}": layer for name, module in outer
            for i, layer in enumerate(module)}


class Saved:
    """What a node keeps in place of a tensor; gone when the node is."""

    def __init__(self, tensor):
        self.tensor = tensor


class Recorder:
    """Storages that autograd saves, by the module that was running."""

    def __init__(self, model):
        self.model = model
        self.part = "embedding"
        self.saved = []      # (part, weak Saved, storage, bytes, bytes of view)
        self.inputs = {}     # part -> storages of its inputs
        self.passed = {}     # part -> storages that later parts read
        self.parameters = {p.untyped_storage().data_ptr()
                           for p in model.parameters()}
        self.buffers = {b.untyped_storage().data_ptr()
                        for b in model.buffers()}
        self.keep = []

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        saved = Saved(tensor)
        self.saved.append((self.part, weakref.ref(saved), storage.data_ptr(),
                           storage.nbytes(),
                           tensor.numel() * tensor.element_size()))
        return saved

    def tensors(self, values):
        import torch
        for value in values:
            if isinstance(value, torch.Tensor):
                yield value
            elif isinstance(value, (tuple, list)):
                yield from self.tensors(value)

    def storages(self, values):
        found = list(self.tensors(values))
        self.keep += [t.detach() for t in found]  # no pointer comes again
        return {t.untyped_storage().data_ptr() for t in found}

    def enter(self, name):
        def hook(module, args, kwargs):
            self.part = name
            self.inputs[name] = self.storages([*args, *kwargs.values()])
        return hook

    def leave(self, name):
        def hook(module, args, output):
            # What a layer returns beside the hidden states is its own.
            first = output[0] if isinstance(output, tuple) else output
            self.passed[name] = self.storages([first])
            self.part = f"after {name}"
            self.inputs[self.part] = self.passed[name]
        return hook

    @contextlib.contextmanager
    def recording(self):
        import torch
        handles = []
        for name, layer in layers_of(self.model).items():
            handles.append(layer.register_forward_pre_hook(
                self.enter(name), with_kwargs=True))
            handles.append(layer.register_forward_hook(self.leave(name)))
        with torch.autograd.graph.saved_tensors_hooks(
                self.pack, lambda saved: saved.tensor):
            yield
        for handle in handles:
            handle.remove()

    def held(self, part=None):
        """{storage: (bytes, bytes of view)} of nodes that are still there."""
        return {pointer: (size, view)
                for name, saved, pointer, size, view in self.saved
                if saved() is not None and pointer not in self.parameters
                and part in (None, name)}

    def bytes_of(self, part):
        """Bytes of a part's own saved storages, and of its saved inputs."""
        own = received = 0
        for pointer, (size, _) in self.held(part).items():
            if pointer in self.buffers:
                continue
            if pointer in self.inputs.get(part, set()):
                received += aligned(size)
            elif pointer not in self.passed.get(part, set()):
                own += aligned(size)
        return own, received

    def total(self):
        """Bytes of all saved storages; of buffers, what is read."""
        return sum(aligned(view if pointer in self.buffers else size)
                   for pointer, (size, view) in self.held().items())


# In a folder with an adapter: axolotl computes its layers.
FUNCTIONS = "axolotl_functions"


def mark(folder, functions=True):
    if functions:
        open(f"{folder}/{FUNCTIONS}", "w").close()


# transformers has no fused attention for them.
EAGER = ("gemma2", "gpt_oss", "mpt")


def model_of(folder, dtype, attention=None):
    """The class of `architectures`, as its config.json asks."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.AutoConfig.from_pretrained(folder)
    config.use_cache = False
    if not attention:
        attention = "eager" if config.model_type in EAGER else "sdpa"
    kind = getattr(transformers, config.architectures[0])
    model = kind._from_config(config, dtype=getattr(torch, dtype),
                              attn_implementation=attention).train()
    return adapted(model, folder)


def adapted(model, folder, checkpointed=False):
    """With the adapter of the folder, if it has one. Under gradient
    checkpointing transformers' Trainer lets hidden states have gradients from
    the embedding on."""
    import os

    if not os.path.exists(os.path.join(folder, "adapter_config.json")):
        return model
    import peft

    if checkpointed:
        model.enable_input_require_grads()
    model = peft.get_peft_model(
        model, peft.LoraConfig.from_pretrained(folder)).train()
    if os.path.exists(os.path.join(folder, FUNCTIONS)):
        import axolotl_functions
        axolotl_functions.patch(model)
    return model


def to_float8(model, recipe):
    """As Accelerate's _prepare_ao, with products that CPUs can emulate."""
    import dataclasses

    from accelerate.utils import convert_model_to_fp8_ao
    from torchao.float8 import Float8LinearConfig

    config = Float8LinearConfig.from_recipe_name(recipe)
    convert_model_to_fp8_ao(model, config=dataclasses.replace(config,
                                                              emulate=True))


def float8_layers(model):
    return [name for name, module in model.named_modules()
            if type(module).__name__ == "Float8Linear"]


def measure(folder, batch, length, dtype="float32", arrays=None,
            autocast=False, attention=None, float8=None):
    """{part: (own bytes, bytes of saved inputs)}, and what the whole model
    saves and has. `arrays` are the inputs by name, else tokens."""
    import torch

    model = model_of(folder, dtype, attention)
    if float8:
        to_float8(model, float8)
    recorder = Recorder(model)
    if arrays:
        inputs = {name: torch.from_numpy(array)
                  for name, array in arrays.items()}
        inputs = {name: value.to(getattr(torch, dtype))
                  if value.is_floating_point() else value.long()
                  for name, value in inputs.items()}
    else:
        ids = torch.randint(0, model.config.vocab_size, (batch, length))
        inputs = {"input_ids": ids, "labels": ids, "use_cache": False}
    with recorder.recording(), torch.autocast(
            "cpu", dtype=torch.bfloat16, enabled=autocast):
        output = model(**inputs)
    loss = output.loss
    del output
    names = list(layers_of(model))
    parts = {part: recorder.bytes_of(part) for part in names}
    parts["embedding"] = recorder.bytes_of("embedding")
    parts["head"] = recorder.bytes_of(f"after {names[-1]}")
    total = recorder.total()
    loss.backward()
    tensors = {name: (list(p.shape), aligned(p.nbytes),
                      None if p.grad is None else aligned(p.grad.nbytes))
               for name, p in model.named_parameters()}
    return {"parts": parts, "layers": names, "total": total,
            "tensors": tensors, "float8": float8_layers(model),
            "gradients": sum(t[2] or 0 for t in tensors.values())}


def each_of(measure, cases):
    """`measure` of each case's arguments, in one process; a failure's text
    where it failed."""
    import traceback

    found = []
    for case in cases:
        try:
            found.append(measure(*case))
        except Exception:  # one model must not hide the others
            found.append(traceback.format_exc())
    return found


def measure_each(cases):
    return each_of(measure, cases)
