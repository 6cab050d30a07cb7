"""The reference: PyTorch FSDP2, DDP or one process, on the job of a job.yaml.

  fsdp2.py JOB.yaml --log LOG [--weights OUT.safetensors] [--steps N]
           [--count-memory LIBRARY] [--share tp|sp|cp]

Starts the job's ranks on this machine (Gloo, CPU) and trains as a careful user
of PyTorch would: `fully_shard` on the embedding, each decoder layer, [norm,
lm_head] and the root, fused AdamW, one intra-op thread per rank, the data order
of job.yaml. Rank 0 logs a JSON line per optimizer step. With --share all ranks have
the same samples and PyTorch's own tensor, sequence or context parallelism
(torch_split.py).
"""
import argparse
import contextlib
import ctypes
import itertools
import json
import math
import os
import re
import resource
import socket
import subprocess
import sys
import time

_ports = itertools.count(os.getpid())
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class CountingAllocator:
    """Peak of the live tensor bytes, each storage rounded up to 64 bytes."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.accel_count_install()
        self.library.accel_count_peak.restype = ctypes.c_int64
        self.library.accel_count_live.restype = ctypes.c_int64

    def peak(self):
        return self.library.accel_count_peak()

    def reset(self):
        self.library.accel_count_reset()


def learning_rate(job, step):
    schedule, base = job.get("schedule", {}), job["optimizer"]["lr"]
    warmup = schedule.get("warmup_steps", 0)
    if step < warmup:
        return base * (step + 1) / warmup
    floor = schedule.get("min_lr", 0.0)
    span = max(1, schedule["steps"] - warmup)
    progress = min(1.0, (step - warmup) / span)
    decay = schedule.get("decay", "constant")
    if decay == "linear":
        return base + (floor - base) * progress
    if decay == "cosine":
        return floor + (base - floor) * 0.5 * (1 + math.cos(math.pi * progress))
    return base


class Tokens:
    """Micro-batch k of a token file: samples k*b ... k*b+b-1, modulo n."""

    def __init__(self, path, data):
        import numpy as np

        self.tokens = np.fromfile(path, dtype=data["dtype"]).astype(np.int64)
        self.length = data["sequence_length"]
        self.batch = data["micro_batch"]
        self.samples = (len(self.tokens) - 1) // self.length

    def micro_batch(self, k):
        import numpy as np
        import torch

        rows = []
        for j in range(self.batch):
            i = (k * self.batch + j) % self.samples
            start = i * self.length
            rows.append(self.tokens[start:start + self.length + 1])
        rows = torch.from_numpy(np.stack(rows))
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


class Arrays:
    """Micro-batch k of data.arrays: rows k*b ... k*b+b-1, modulo n."""

    def __init__(self, folder, data):
        import numpy as np

        kinds = {"f": np.float32, "i": np.int64, "u": np.int64, "b": np.int64}
        self.arrays = {}
        for name, path in data["arrays"].items():
            array = np.load(os.path.join(folder, path))
            self.arrays[name] = array.astype(kinds[array.dtype.kind])
        self.batch = data["micro_batch"]
        self.length = data.get("sequence_length", 1)

    def micro_batch(self, k):
        import torch

        batch = {}
        for name, array in self.arrays.items():
            rows = [(k * self.batch + j) % len(array)
                    for j in range(self.batch)]
            batch[name] = torch.from_numpy(array[rows])
        return batch


def load_model(transformers, folder, arrays, **options):
    """The causal model, or with arrays the one of architectures[0]."""
    if not arrays:
        import jobs

        config = transformers.AutoConfig.from_pretrained(folder)
        return jobs.text_model(transformers, config).from_pretrained(
            folder, **options)
    import torch

    config = transformers.AutoConfig.from_pretrained(folder)
    kind = getattr(transformers, config.architectures[0])
    model = kind.from_pretrained(folder, **options)
    # transformers 5.23 makes all that it loads trainable, also what the class
    # freezes: Whisper's table of sinusoids.
    with torch.device("meta"):
        made = dict(kind(config).named_parameters())
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(made[name].requires_grad)
    return model


def causal_loss(output, labels, balance):
    """Mean over the tokens, and a mixture's load balancing loss."""
    from torch.nn.functional import cross_entropy

    loss = cross_entropy(output.logits.float().flatten(0, 1), labels.flatten())
    if getattr(output, "aux_loss", None) is not None:
        loss = loss + balance * output.aux_loss
    return loss


def shard_classes(model, classes, mesh):
    """FSDP2 on every module of these classes, and the root."""
    from torch.distributed.fsdp import fully_shard

    for module in list(model.modules()):
        if type(module).__name__ in classes:
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def shard(model, job, mesh, compiled=False):
    """FSDP2 with the units that Accelerate 1.15 makes; each layer `compiled`
    by itself, as regional compilation does."""
    import torch
    from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as cw
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy()
    if job.get("precision"):
        def dtype(key):
            return getattr(torch, DTYPES[job["precision"][key]])
        policy = MixedPrecisionPolicy(param_dtype=dtype("param"),
                                      reduce_dtype=dtype("reduce"),
                                      output_dtype=dtype("output"))
    fsdp = job["accelerate"]["fsdp_config"]
    reshard = fsdp.get("fsdp_reshard_after_forward", True)
    whole = model
    if hasattr(model, "peft_config"):
        model = model.get_base_model()
    base, embedding = model.base_model, model.get_input_embeddings()
    base = getattr(base, "decoder", base)  # OPT's
    base = getattr(base, "language_model", base)  # beside a tower
    layers = next(m for m in base.children()
                  if isinstance(m, torch.nn.ModuleList))
    tail = [m for m in base.children() if "Norm" in type(m).__name__][-1:]
    if fsdp.get("fsdp_activation_checkpointing"):
        for i, layer in enumerate(layers):
            layers[i] = cw.checkpoint_wrapper(
                layer, checkpoint_impl=cw.CheckpointImpl.NO_REENTRANT,
                preserve_rng_state=False)
    for layer in layers:
        if compiled:
            layer.compile()
        fully_shard(layer, mesh=mesh, mp_policy=policy,
                    reshard_after_forward=reshard)
    tail.append(model.get_output_embeddings())
    if model.config.tie_word_embeddings:
        tail.insert(0, embedding)
    else:
        fully_shard(embedding, mesh=mesh, mp_policy=policy,
                    reshard_after_forward=reshard)
    fully_shard(tail, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    fully_shard(whole, mesh=mesh, mp_policy=policy)
    return whole


def data_parallel(model, options):
    """DDP, with what a script passes to it."""
    import torch
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    model = torch.nn.parallel.DistributedDataParallel(
        model, **{key: value for key, value in options.items()
                  if key != "comm_hook"})
    if "comm_hook" in options:
        model.register_comm_hook(None, getattr(
            default_hooks, options["comm_hook"] + "_compress_hook"))
    return model


def adapt(model, job, folder):
    """PEFT's adapter of the job, and what `trainable` freezes."""
    if job.get("adapter"):
        import peft

        path = os.path.join(folder, job["adapter"])
        model = peft.PeftModel.from_pretrained(model, path, is_trainable=True)
    if job.get("trainable"):
        parts = job["trainable"]
        parts = [parts] if isinstance(parts, str) else parts
        for name, parameter in model.named_parameters():
            parameter.requires_grad = any(re.search(p, name) for p in parts)
    return model


def make_optimizer(model, job):
    import published_optimizers

    options = job["optimizer"]
    make, weight_decay, _ = published_optimizers.OPTIMIZERS[options["name"]]
    return make(optimizer_groups(model, job, weight_decay), options)


def optimizer_groups(model, job, weight_decay=0.01):
    """The first group whose regex matches a name, else the rest."""
    groups = job["optimizer"].get("groups", [])
    base = {"weight_decay": job["optimizer"].get("weight_decay", weight_decay)}
    split = [[] for _ in range(len(groups) + 1)]
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        name = name.replace("_checkpoint_wrapped_module.", "")
        name = name.removeprefix("module.")
        for i, group in enumerate(groups):
            if re.search(group["match"], name):
                split[i].append(parameter)
                break
        else:
            split[-1].append(parameter)
    result = []
    for i, parameters in enumerate(split):
        if parameters:
            extra = {k: v for k, v in groups[i].items() if k != "match"} \
                if i < len(groups) else {}
            result.append({"params": parameters, **base, **extra})
    return result


def share_batch(batch, share, world, rank):
    """Input ids, labels and position ids of a rank that shares its samples."""
    import torch
    import torch_split

    ids, labels = batch
    positions = torch.arange(ids.shape[1])
    if share == "cp":
        positions = torch_split.own_tokens(ids.shape[1], world, rank)
        ids, labels = ids[:, positions], labels[:, positions]
    return ids, labels, positions.unsqueeze(0)


def sharded_logits(share):
    """What cross-entropy and its backward run under."""
    from torch.distributed.tensor.parallel import loss_parallel

    return loss_parallel() if share in ("tp", "sp") else \
        contextlib.nullcontext()


def shared_loss(logits, labels, share):
    """The mean over the rank's tokens, of logits that may be sharded."""
    from torch.nn.functional import cross_entropy

    with sharded_logits(share):
        return cross_entropy(logits.float().flatten(0, 1), labels.flatten())


def train(job_path, log_path, weights_path, steps, count_memory, share=None,
          compiled=False):
    """One rank; RANK, WORLD_SIZE and MASTER_* are in the environment."""
    # Before the first tensor, so that it counts all of them.
    counter = CountingAllocator(count_memory) if count_memory else None
    import torch
    import torch.distributed as dist
    import transformers
    import yaml

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    folder = os.path.dirname(os.path.abspath(job_path))
    with open(job_path, encoding="utf-8") as f:
        job = yaml.safe_load(f)
    steps = steps or job["schedule"]["steps"]
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    accumulation = job.get("gradient_accumulation_steps", 1)
    distributed = job["accelerate"]["distributed_type"]
    if distributed != "NO":
        dist.init_process_group("gloo", rank=rank, world_size=world)

    arrays = "arrays" in job["data"]
    model = load_model(transformers, os.path.join(folder, job["model"]), arrays,
                       dtype=torch.float32)
    model.config.use_cache = False
    balance = getattr(model.config, "router_aux_loss_coef", 0.0)
    model = adapt(model, job, folder)
    model.train()
    if share:
        import torch_split

        mesh = dist.init_device_mesh("cpu", (1, world),
                                     mesh_dim_names=("dp_shard", "tp"))
        if share == "cp":
            torch_split.use_ring(model)
            mesh = dist.init_device_mesh("cpu", (world,),
                                         mesh_dim_names=("dp_shard_cp",))
            model = shard(model, job, mesh)
        else:
            torch_split.split_layers(model, mesh["tp"], share == "sp")
            model = shard(model, job, mesh["dp_shard"])
    elif distributed == "FSDP":
        parallel = job["accelerate"].get("parallelism_config", {})
        replicate = parallel.get("parallelism_config_dp_replicate_size", 1)
        if replicate > 1:
            mesh = dist.init_device_mesh(
                "cpu", (replicate, world // replicate),
                mesh_dim_names=("dp_replicate", "dp_shard"))
        else:
            mesh = dist.init_device_mesh("cpu", (world,),
                                         mesh_dim_names=("dp_shard",))
        if arrays:
            model = shard_classes(
                model, job["accelerate"]["fsdp_config"]
                ["fsdp_transformer_layer_cls_to_wrap"].split(","), mesh)
        else:
            model = shard(model, job, mesh, compiled)
    elif distributed != "NO":
        model = data_parallel(model, job.get("ddp", {}))
    options = job["optimizer"]
    optimizer = make_optimizer(model, job)
    data = (Arrays(folder, job["data"]) if arrays else
            Tokens(os.path.join(folder, job["data"]["tokens"]), job["data"]))
    max_norm = options.get("max_grad_norm")

    log = open(log_path, "w", encoding="utf-8") if rank == 0 else None
    for step in range(steps):
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        total = torch.zeros(())
        for slot in range(accumulation):
            k = step * accumulation + slot
            if not share:
                k = k * world + rank
            batch = data.micro_batch(k)
            last = slot == accumulation - 1
            sync = contextlib.nullcontext()
            if distributed == "FSDP":
                model.set_requires_gradient_sync(last)
            elif distributed != "NO" and not last:
                sync = model.no_sync()
            with sync:
                if arrays:
                    loss = model(**batch).loss
                elif share:
                    ids, labels, positions = share_batch(batch, share, world,
                                                         rank)
                    output = model(input_ids=ids, position_ids=positions,
                                   use_cache=False)
                    loss = shared_loss(output.logits, labels, share)
                    del output
                else:
                    ids, labels = batch
                    output = model(input_ids=ids, use_cache=False)
                    loss = causal_loss(output, labels, balance)
                    del output
                whole = loss.detach()
                if hasattr(whole, "full_tensor"):
                    whole = whole.full_tensor()
                total += whole / accumulation
                with sharded_logits(share):
                    (loss / accumulation).backward()
                del loss
        if distributed != "NO":
            dist.all_reduce(total)
        norm = None
        if max_norm:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        lr = learning_rate(job, step)
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_SELF)
        if log:
            cpu = (after.ru_utime + after.ru_stime - before.ru_utime
                   - before.ru_stime)
            line = {"step": step + 1, "loss": float(total) / world,
                    "grad_norm": None if norm is None else float(norm),
                    "lr": lr,
                    "tokens_per_s": (1 if share else world) * accumulation
                    * data.batch
                    * data.length / seconds,
                    "step_s": seconds, "cpu_s": cpu,
                    "faults": after.ru_minflt - before.ru_minflt}
            if counter:
                line["peak_bytes"] = counter.peak()
            log.write(json.dumps(line) + "\n")
            log.flush()
        if counter:
            counter.reset()
    if log:
        log.close()
    if weights_path:
        save_weights(model, weights_path, rank)
    if distributed != "NO":
        dist.barrier()
        dist.destroy_process_group()


def save_weights(model, path, rank):
    from safetensors.torch import save_file

    tensors = {}
    for name, parameter in model.named_parameters():
        value = parameter.detach()
        value = value.full_tensor() if hasattr(value, "full_tensor") else value
        name = name.replace("_checkpoint_wrapped_module.", "")
        tensors[name.removeprefix("module.")] = value.contiguous()
    if rank == 0:
        save_file(tensors, path)


def free_port():
    """A port that nothing listens on. The ports that the system hands out itself
    start at 32768; gloo takes those, and could take this one before rank 0
    does. Each process that runs cases has a thousand of its own."""
    worker = int(re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", "0")))
    first = 10000 + 1000 * (worker % 20)
    for _ in range(1000):
        port = first + next(_ports) % 1000
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"all ports from {first} to {first + 999} are taken")


def rank_environment(rank, world, port):
    """What torchrun would set, and one thread per rank."""
    return {"RANK": str(rank), "WORLD_SIZE": str(world),
            "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}


def start(job_path, ranks, arguments, script=__file__):
    """Starts the ranks as processes of their own; returns them."""
    port = free_port()
    return [subprocess.Popen([sys.executable, os.path.abspath(script),
                              job_path, *arguments],
                             env={**os.environ,
                                  **rank_environment(rank, ranks, port)})
            for rank in range(ranks)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job")
    parser.add_argument("--log", required=True)
    parser.add_argument("--weights")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--count-memory", metavar="LIBRARY")
    parser.add_argument("--share", choices=["tp", "sp", "cp"])
    parser.add_argument("--compile", action="store_true",
                        help="torch.compile for each layer of an FSDP job")
    args = parser.parse_args()
    if "RANK" in os.environ:
        train(args.job, args.log, args.weights, args.steps, args.count_memory,
              args.share, args.compile)
        return 0
    import yaml

    with open(args.job, encoding="utf-8") as f:
        ranks = yaml.safe_load(f)["accelerate"]["num_processes"]
    codes = [p.wait() for p in start(args.job, ranks, sys.argv[2:])]
    return max(abs(code) for code in codes)


if __name__ == "__main__":
    sys.exit(main())
