"""What PyTorch's autograd saves of each part of a transformers model."""
import contextlib


def aligned(size):
    return (size + 63) // 64 * 64


def layers_of(model):
    """The path of the list of layers, and the layers."""
    import torch
    return next((name, list(module))
                for name, module in model.named_modules()
                if isinstance(module, torch.nn.ModuleList))


class Recorder:
    """Storages that autograd saves, by the module that was running."""

    def __init__(self, model):
        self.model = model
        self.part = "embedding"
        self.saved = {}      # part -> {storage pointer: (bytes, tensor)}
        self.inputs = {}     # part -> storage pointers of its inputs
        self.outputs = {}    # part -> storage pointers of its outputs
        self.parameters = {p.untyped_storage().data_ptr()
                           for p in list(model.parameters())
                           + list(model.buffers())}
        self.keep = []

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        part = self.saved.setdefault(self.part, {})
        part[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    def tensors(self, values):
        import torch
        for value in values:
            if isinstance(value, torch.Tensor):
                yield value
            elif isinstance(value, (tuple, list)):
                yield from self.tensors(value)

    def enter(self, name):
        def hook(module, args, kwargs):
            self.part = name
            inputs = list(self.tensors(list(args) + list(kwargs.values())))
            self.keep += inputs
            self.inputs[name] = {t.untyped_storage().data_ptr()
                                 for t in inputs}
        return hook

    def leave(self, name, after):
        def hook(module, args, output):
            outputs = list(self.tensors([output]))
            self.keep += outputs
            self.outputs[name] = {t.untyped_storage().data_ptr()
                                  for t in outputs}
            self.part = after
        return hook

    @contextlib.contextmanager
    def recording(self):
        import torch
        handles = []
        path, layers = layers_of(self.model)
        for i, layer in enumerate(layers):
            name = f"{path}.{i}"
            after = "head" if i + 1 == len(layers) else "between"
            handles.append(layer.register_forward_pre_hook(
                self.enter(name), with_kwargs=True))
            handles.append(layer.register_forward_hook(
                self.leave(name, after)))
        with torch.autograd.graph.saved_tensors_hooks(self.pack, lambda t: t):
            yield
        for handle in handles:
            handle.remove()

    def bytes_of(self, part):
        """Bytes of a part's own saved storages, and of its saved inputs."""
        own = received = 0
        inputs = self.inputs.get(part, set())
        for pointer, (size, _) in self.saved.get(part, {}).items():
            if pointer in self.parameters:
                continue
            if pointer in inputs:
                received += aligned(size)
            elif pointer not in self.outputs.get(part, set()):
                own += aligned(size)
        return own, received


# transformers has no fused attention for them.
EAGER = ("gemma2", "mpt")


def measure(folder, batch, length, dtype="float32"):
    """{part: (own bytes, bytes of saved inputs)}, and bytes of gradients."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.AutoConfig.from_pretrained(folder)
    config.use_cache = False
    attention = "eager" if config.model_type in EAGER else "sdpa"
    model = transformers.AutoModelForCausalLM.from_config(
        config, dtype=getattr(torch, dtype), attn_implementation=attention)
    model.train()
    recorder = Recorder(model)
    ids = torch.randint(0, config.vocab_size, (batch, length))
    with recorder.recording():
        recorder.part = "embedding"
        output = model(input_ids=ids, labels=ids, use_cache=False)
    path, layers = layers_of(model)
    recorder.inputs["head"] = recorder.outputs[f"{path}.{len(layers) - 1}"]
    parts = {part: recorder.bytes_of(part) for part in recorder.saved}
    output.loss.backward()
    gradients = sum(aligned(p.grad.numel() * p.grad.element_size())
                    for p in model.parameters())
    parameters = sum(p.numel() * p.element_size() for p in model.parameters())
    return {"parts": parts, "gradients": gradients, "parameters": parameters,
            "layers": [f"{path}.{i}" for i in range(len(layers))]}


def measure_each(cases):
    """`measure` of each (folder, batch, length, dtype), in one process; a
    failure's text where it failed."""
    import traceback

    found = []
    for case in cases:
        try:
            found.append(measure(*case))
        except Exception:  # one model must not hide the others
            found.append(traceback.format_exc())
    return found
