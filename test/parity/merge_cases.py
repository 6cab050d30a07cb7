"""`accel-opt checkpoint merge` against torch's and Accelerate's own readers:
equal tensors, bounded host memory, and nothing half-written."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import check


def merge(context, folder, output, *options, expect=0):
    return json.loads(harness.run(
        [context.binary("accel-opt"), "checkpoint", "merge", folder, "-o", output,
         "--format", "json", *options], expect=expect))


def loaded(folder):
    from safetensors.torch import load_file
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            tensors.update(load_file(os.path.join(folder, name)))
    return tensors


def equal(found, want):
    import torch
    check(set(found) == set(want), f"{sorted(found)}\n{sorted(want)}")
    for name, tensor in want.items():
        check(found[name].dtype == tensor.dtype
              and torch.equal(found[name], tensor), name)


def written(context, name, *options):
    folder = context.path(name)
    harness.run([sys.executable, "-m", "torch.distributed.run", "--standalone",
                 "--nproc-per-node", "2",
                 os.path.join(harness.HERE, "checkpoint_writer.py"), folder,
                 *options])
    return folder


def distributed(context):
    """FSDP2's shards, as Accelerate's SHARDED_STATE_DICT nests them."""
    from accelerate.utils import merge_fsdp_weights
    folder = written(context, "alone", "model")
    merge_fsdp_weights(folder, context.path("theirs"))
    theirs = loaded(context.path("theirs"))
    merge(context, folder, context.path("weights"))
    equal(loaded(context.path("weights")), theirs)
    # Beside an optimizer and a number, which Accelerate's cannot take apart.
    folder = written(context, "dcp")
    answer = merge(context, folder, context.path("ours"))["merged"]
    equal(loaded(context.path("ours")), theirs)
    check(answer["tensors"] == len(theirs) and answer["left_out"] > 0, answer)
    # In parts, with transformers' index.
    merge(context, folder, context.path("parts"), "--max-shard-size", "100")
    equal(loaded(context.path("parts")), theirs)
    with open(context.path("parts", "model.safetensors.index.json")) as f:
        index = json.load(f)
    check(set(index["weight_map"]) == set(theirs)
          and index["metadata"]["total_size"] == answer["bytes"], index)
    check(len(set(index["weight_map"].values())) > 1, "one part")
    # An output that is there stays as it is.
    again = merge(context, folder, context.path("ours"), expect=1)
    check(again["diagnostics"][0]["code"] == "output-exists", again)
    return f"{len(theirs)} tensors as merge_fsdp_weights has them"


def columns(context):
    """Shards along other dimensions, a scalar, an empty tensor."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict_loader import \
        _load_state_dict_from_keys
    folder = written(context, "columns", "columns")
    merge(context, folder, context.path("merged"))
    want = _load_state_dict_from_keys(
        storage_reader=dcp.FileSystemReader(folder))
    equal(loaded(context.path("merged")), want)
    return f"{len(want)} tensors"


def damage(context):
    """A bit that has changed, and a disk that is full: nothing is left."""
    folder = written(context, "dcp")
    shard = sorted(n for n in os.listdir(folder) if n.endswith(".distcp"))[0]
    path = os.path.join(folder, shard)
    with open(path, "rb") as f:
        data = bytearray(f.read())
    # torch pads with an extra field "FB" of this length before the bytes.
    at = data.index(b"FB", data.index(b"data/0"))
    at += 4 + int.from_bytes(data[at + 2:at + 4], "little")
    data[at] ^= 1
    with open(path, "wb") as f:
        f.write(data)
    answer = merge(context, folder, context.path("out"), expect=1)
    finding = answer["diagnostics"][0]
    check(answer["merged"] is None and finding["code"] == "invalid-checkpoint"
          and "damaged" in finding["message"], finding)
    left = [n for n in os.listdir(context.work) if n.startswith("out")]
    check(not left, left)
    return finding["message"]


def others(context):
    """torch.save, safetensors in parts, tied weights, and what is refused."""
    import torch
    from safetensors.torch import save_file
    os.makedirs(context.path("bin"))
    w = torch.randn(8, 3)
    big = torch.randn(6, 4)
    tensors = {"model.w": w, "head.weight": w, "part": big[2:4],
               "half": torch.randn(5).to(torch.bfloat16)}
    torch.save(tensors, context.path("bin", "pytorch_model.bin"))
    merge(context, context.path("bin"), context.path("from-bin"))
    equal(loaded(context.path("from-bin")), tensors)
    merge(context, context.path("from-bin"), context.path("again"),
          "--max-shard-size", "64")
    equal(loaded(context.path("again")), tensors)

    def refused(name, code, *words):
        answer = merge(context, context.path(name), context.path("no"),
                       expect=4 if code == "not-supported" else 1)
        finding = answer["diagnostics"][0]
        check(finding["code"] == code and all(w in finding["message"] for w in words),
              finding)
        check(not os.path.exists(context.path("no")), "something was written")

    # Parts of torch.save that an index names, and one that is gone.
    os.makedirs(context.path("parts"))
    for name in ("model.w", "part"):
        torch.save({name: tensors[name]},
                   context.path("parts", f"pytorch_model-{name}.bin"))
    with open(context.path("parts", "pytorch_model.bin.index.json"), "w") as f:
        json.dump({"weight_map": {n: f"pytorch_model-{n}.bin"
                                  for n in ("model.w", "part")}}, f)
    merge(context, context.path("parts"), context.path("from-parts"))
    equal(loaded(context.path("from-parts")),
          {n: tensors[n] for n in ("model.w", "part")})
    os.remove(context.path("parts", "pytorch_model-part.bin"))
    refused("parts", "invalid-checkpoint", "pytorch_model.bin.index.json")

    os.makedirs(context.path("strided"))
    torch.save({"t": torch.randn(3, 4).t()},
               context.path("strided", "pytorch_model.bin"))
    refused("strided", "not-supported", "'t'", "strides")
    os.makedirs(context.path("twice"))
    for name in ("model.safetensors", "model_1.safetensors"):
        save_file({"w": torch.ones(2)}, context.path("twice", name))
    refused("twice", "not-supported", "'w'", "model_1.safetensors")
    os.makedirs(context.path("zero", "global_step5"))
    torch.save({"module": {}}, context.path("zero", "global_step5",
                                            "mp_rank_00_model_states.pt"))
    refused("zero", "no-weights")
    os.makedirs(context.path("states"))
    torch.save({"state": {}}, context.path("states", "optimizer.bin"))
    refused("states", "no-weights")
    return f"{len(tensors)} tensors"


def shapes(context):
    """Weights under the keys of training scripts, beside an optimizer."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict
    from torch.distributed.checkpoint.stateful import Stateful

    class App(Stateful):
        """torch's recipe for torch.distributed.checkpoint."""

        def state_dict(self):
            state, optim = get_state_dict(model, optimizer)
            return {"model": state, "optim": optim}

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    want = {n: t.clone() for n, t in model.state_dict().items()}
    dcp.save({"app": App()}, checkpoint_id=context.path("app"), no_dist=True)
    state = {"state": {0: {"exp_avg": torch.ones(4, 3)}}, "param_groups": []}
    for name, saved in (
            ("pairs", {"model_state_dict": want, "optimizer_state_dict": state}),
            ("lightning", {"state_dict": want, "optimizer_states": [state]}),
            ("module", {"module": want, "epoch": 3})):
        os.makedirs(context.path(name))
        torch.save(saved, context.path(name, "pytorch_model.bin"))
    for name, left in (("app", 12), ("pairs", 1), ("lightning", 1), ("module", 0)):
        answer = merge(context, context.path(name), context.path("of-" + name))
        equal(loaded(context.path("of-" + name)), want)
        check(answer["merged"]["left_out"] == left, (name, answer))
    harness.run([context.binary("accel-opt"), "checkpoint", "convert",
                 context.path("app"), "-o", context.path("run"), "--to",
                 "accel-run", "--samples", "4"])
    # FULL_STATE_DICT under the Trainer: an export beside the state.
    os.makedirs(context.path("full"))
    torch.save(want, context.path("full", "pytorch_model_fsdp.bin"))
    from safetensors.torch import save_file
    save_file({n: t.to(torch.bfloat16) for n, t in want.items()},
              context.path("full", "model.safetensors"))
    answer = merge(context, context.path("full"), context.path("masters"))["merged"]
    equal(loaded(context.path("masters")), want)
    check(list(answer["unread"].values()) == [["model.safetensors"]], answer)
    # transformers takes safetensors before .bin files.
    os.makedirs(context.path("both"))
    save_file(want, context.path("both", "model.safetensors"))
    torch.save({n: t + 1 for n, t in want.items()},
               context.path("both", "pytorch_model.bin"))
    answer = merge(context, context.path("both"), context.path("of-both"))["merged"]
    equal(loaded(context.path("of-both")), want)
    check(list(answer["unread"].values()) == [["pytorch_model.bin"]], answer)
    # Other weights beside: "module" and "state_dict" are parts of a model, and
    # what "model" leaves out has a name.
    one = want["0.weight"]
    random = torch.zeros(8, dtype=torch.uint8)
    for name, saved, names, beside in (
            ("head", {"module": {"a": one}, "head": {"b": one}},
             ["head.b", "module.a"], None),
            ("averages", {"state_dict": {"a": one}, "ema_state_dict": {"a": one}},
             ["ema_state_dict.a", "state_dict.a"], None),
            ("chance", {"state_dict": {"a": one}, "rng": random, "loss": one.sum()},
             ["a"], {"loss": 1, "rng": 1}),
            ("ema", {"model": {"a": one}, "ema": {"a": one}}, ["a"], {"ema": 1}),
            ("list", [one, {"k": one}], ["0", "1.k"], None),
            ("items", [one, one + 1], ["0", "1"], None)):
        os.makedirs(context.path(name))
        torch.save(saved, context.path(name, "pytorch_model.bin"))
        answer = merge(context, context.path(name), context.path("of-" + name))["merged"]
        check(sorted(loaded(context.path("of-" + name))) == names, (name, answer))
        check(answer.get("left_out_beside") == beside, (name, answer))
    text = harness.run([context.binary("accel-opt"), "checkpoint", "merge",
                        context.path("ema"), "-o", context.path("said")])
    check("left out: 1 tensor of 'ema', beside the model" in text
          and "states of an optimizer" not in text, text)
    # Names count the items of lists; some cannot be written.
    os.makedirs(context.path("names"))
    for saved, code, words in (
            ({"layers": [want["0.weight"], want["1.weight"]]}, None, ""),
            ({"__metadata__": want["0.weight"]}, "not-supported", "keeps for itself"),
            (want["0.weight"], "not-supported", "has no name")):
        torch.save(saved, context.path("names", "pytorch_model.bin"))
        answer = merge(context, context.path("names"), context.path("named"),
                       expect=4 if code else 0)
        if code:
            finding = answer["diagnostics"][0]
            check(finding["code"] == code and words in finding["message"], finding)
            continue
        equal(loaded(context.path("named")),
              {"layers.0": want["0.weight"], "layers.1": want["1.weight"]})
        shutil.rmtree(context.path("named"))
    return "app, model_state_dict, state_dict, module, exports"


def beside(context):
    """An optimizer under any key, or flattened by torch into the model's own
    dictionary; modules that are called as its keys stay weights."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    own, nested = get_state_dict(model, optimizer)
    flat = get_state_dict(model, optimizer, options=StateDictOptions(
        flatten_optimizer_state_dict=True))[1]
    counts = {"step": torch.tensor(4), "tokens": torch.tensor(64)}
    one = torch.ones(2, 2)
    modules = {"state.0.weight": one, "state.counter.step": torch.tensor(1.0),
               "state.net.exp_avg": one, "optimizer.net.weight": one,
               "param_groups.net.weight": one, "net.weight": one,
               "net.weight.absmax": one}
    for name, saved, want, left, apart in (
            ("joined", {**own, **flat, "train_state": counts}, own, 14,
             {"train_state": 2}),
            ("joined-below", {**own, "optimizer": flat, "train_state": counts}, own,
             14, {"train_state": 2}),
            ("flat-optim", {"model": own, "optim": flat}, own, 12, None),
            ("net", {"net": own, "opt": nested}, own, 12, None),
            ("nets", {"net": own, "head": {"w": one}, "opt": nested},
             {**{"net." + n: t for n, t in own.items()}, "head.w": one}, 12, None),
            ("modules", modules, modules, 0, None),
            ("modules-joined", {**modules, **own, **flat}, {**modules, **own}, 12,
             None),
            ("policy", {"policy": {"state": {"encoder": {"l.weight": one}}}},
             {"policy.state.encoder.l.weight": one}, 0, None)):
        dcp.save(saved, checkpoint_id=context.path(name), no_dist=True)
        answer = merge(context, context.path(name), context.path("of-" + name))["merged"]
        equal(loaded(context.path("of-" + name)), want)
        check(answer["left_out"] == left, (name, answer))
        check(answer.get("left_out_beside") == apart, (name, answer))
    # convert takes these states as it takes those of {"model", "optim"}, but for
    # numbers in a DCP, whose param_groups are not read.
    def converted(name, saved, expect=0):
        if saved:
            dcp.save(saved, checkpoint_id=context.path(name), no_dist=True)
        return json.loads(harness.run(
            [context.binary("accel-opt"), "checkpoint", "convert", context.path(name),
             "-o", context.path("run-" + name), "--to", "accel-run", "--samples", "4",
             "--format", "json"], expect=expect))

    converted("plain", {"model": own, "optim": nested})
    for name in ("joined", "flat-optim", "net"):
        answer = converted(name, None)["converted"]
        check(answer["states"] == 8, (name, answer))
        equal(loaded(context.path("run-" + name)), loaded(context.path("run-plain")))
    finding = converted("raw", {"model": own, "optim": optimizer.state_dict()},
                        expect=4)["diagnostics"][0]
    check("param_groups" in finding["message"]
          and "get_optimizer_state_dict" in finding["hint"], finding)
    return "left out under any key, and converted"


def places(context):
    """A .metadata whose shards overlap or have no place, and shards that are
    stored in another way."""
    import pickle
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import filesystem

    def saved(name, tensor, change=None, **options):
        folder = context.path(name)
        dcp.save({"a": tensor}, no_dist=True,
                 storage_writer=dcp.FileSystemWriter(folder, **options))
        path = os.path.join(folder, ".metadata")
        with open(path, "rb") as f:
            metadata = pickle.load(f)
        if change:
            change(metadata)
            with open(path, "wb") as f:
                pickle.dump(metadata, f)

    def refused(name, *words):
        finding = merge(context, context.path(name), context.path("no"),
                        expect=1)["diagnostics"][0]
        text = finding["message"] + " | " + finding["hint"]
        check(all(w in text for w in words), finding)
        check(not os.path.exists(context.path("no")), "something was written")

    def halves(second):
        """Two shards of two rows, the second from a row on."""
        def change(metadata):
            [(index, place)] = metadata.storage_data.items()
            chunk = type(metadata.state_dict_metadata["a"].chunks[0])
            begins = [torch.Size([0, 0]), torch.Size([second, 0])]
            metadata.state_dict_metadata["a"].chunks = [
                chunk(b, torch.Size([2, 4])) for b in begins]
            metadata.storage_data = {
                type(index)("a", b): place for b in begins}
        return change

    whole = torch.arange(16.).reshape(4, 4)
    saved("over", whole, halves(1))
    refused("over", "the shards of 'a' overlap and leave elements out")
    saved("none", whole, lambda metadata: metadata.storage_data.clear())
    refused("none", "no place for a shard of 'a'")
    saved("turned", whole.t())
    refused("turned", "strides", "tensor.contiguous()")
    saved("safetensors", whole, serialization_format=
          filesystem.SerializationFormat.SAFETENSORS)
    refused("safetensors", "safetensors", "default format")
    return "each by its cause"


def dtypes(context):
    """--dtype rounds as Tensor.to does: each pattern of 16 bits, and of 32 those
    around every tie; shards cut along both dimensions."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict_loader import \
        _load_state_dict_from_keys
    torch.manual_seed(0)
    patterns = torch.arange(-2**15, 2**15, dtype=torch.int32).to(torch.int16)
    ties = (patterns.to(torch.int32)[:, None] * 2**16
            + torch.tensor([0, 1, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001]))
    finite = {"bf16": patterns.view(torch.bfloat16), "fp16": patterns.view(torch.float16),
              "ties": ties.to(torch.int32).view(torch.float32).flatten(),
              "random": torch.randn(4097),
              "wide": torch.randn(1001, dtype=torch.float64) * 1e-6}
    kinds = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
    os.makedirs(context.path("floats"))
    compared = 0
    for option, dtype in kinds.items():
        kept = {}
        for name, tensor in finite.items():
            # A finite value without a finite counterpart is refused, below.
            good = tensor.isinf() | ~tensor.to(dtype).isinf()
            kept[name] = tensor[good & ~tensor.isnan()].contiguous()
        kept["ids"] = torch.arange(5)
        kept["nan"] = torch.tensor([float("nan"), 1.0])
        torch.save(kept, context.path("floats", "pytorch_model.bin"))
        answer = merge(context, context.path("floats"), context.path(option),
                       "--dtype", option)["merged"]
        found = loaded(context.path(option))
        check(found.pop("nan").isnan().tolist() == [True, False], "nan")
        want = {name: t if name == "ids" else t.to(dtype)
                for name, t in kept.items() if name != "nan"}
        equal(found, want)
        compared += sum(t.numel() for t in want.values())
        check(answer["bytes"] == 2 * dtype.itemsize
              + sum(t.nbytes for t in want.values()), answer)

    folder = written(context, "columns", "columns")
    merge(context, folder, context.path("merged"), "--dtype", "bf16")
    equal(loaded(context.path("merged")),
          {name: t.to(torch.bfloat16) if t.is_floating_point() else t
           for name, t in _load_state_dict_from_keys(
               storage_reader=dcp.FileSystemReader(folder)).items()})

    torch.save({"w": torch.tensor([1.0, 70000.0])},
               context.path("floats", "pytorch_model.bin"))
    answer = merge(context, context.path("floats"), context.path("over"),
                   "--dtype", "fp16", expect=4)
    finding = answer["diagnostics"][0]
    check(answer["merged"] is None and finding["code"] == "not-supported"
          and "'w' holds 70000" in finding["message"], finding)
    left = [n for n in os.listdir(context.work) if n.startswith("over")]
    check(not left, left)
    return f"{compared} values as Tensor.to rounds them"


def unfinished(context):
    return [n for n in os.listdir(context.work) if n.startswith("merged")]


def memory(context):
    """Host memory does not grow with the model."""
    import torch
    os.makedirs(context.path("large"))
    torch.save({f"w{i}": torch.ones(25_000_000) for i in range(4)},
               context.path("large", "pytorch_model.bin"))
    command = [context.binary("accel-opt"), "checkpoint", "merge",
               context.path("large"), "-o", context.path("merged")]
    # A child's maximum starts from its parent's: a small one in between.
    peak = int(harness.run(
        [sys.executable, "-S", "-c",
         "import resource, subprocess, sys; "
         "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
         "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
         *command]))
    check(peak < 80_000, f"{peak} kB for 400 MB")
    shutil.rmtree(context.path("merged"))
    # A signal in between, or a limit of files, leaves nothing.
    for stop in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        codes = []
        while -stop not in codes:
            check(len(codes) < 30, codes)  # each was done before the signal came
            shutil.rmtree(context.path("merged"), ignore_errors=True)
            running = subprocess.Popen(  # under nohup a child ignores SIGHUP
                command, stdout=subprocess.DEVNULL,
                preexec_fn=lambda stop=stop: signal.signal(stop, signal.SIG_DFL))
            while running.poll() is None and not unfinished(context):
                time.sleep(1e-3)
            running.send_signal(stop)
            codes.append(running.wait(60))
            check((codes[-1], unfinished(context)) in
                  ((-stop, []), (0, ["merged"])), codes)
    shutil.rmtree(context.path("merged"), ignore_errors=True)
    done = subprocess.run(["sh", "-c", 'ulimit -f 100; exec "$@"', "sh", *command],
                          capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and "File too large" in done.stderr
          and not unfinished(context), (done.returncode, done.stderr))
    shutil.rmtree(context.path("large"))
    return f"{peak / 1024:.0f} MiB of host memory for 381 MiB"


def apart(context):
    """Other models in folders below are not of what from_pretrained loads: the
    layout of sentence-transformers, and a Trainer's folder after training."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModel, BertConfig, BertModel
    model = BertModel(BertConfig(vocab_size=16, hidden_size=8, num_hidden_layers=1,
                                 num_attention_heads=2, intermediate_size=8))
    folder = context.path("sentences")
    model.save_pretrained(folder)
    want = loaded(folder)
    dense = torch.nn.Linear(8, 4)
    os.makedirs(os.path.join(folder, "2_Dense"))
    save_file({"linear." + n: t for n, t in dense.state_dict().items()},
              os.path.join(folder, "2_Dense", "model.safetensors"))
    # The final model of a Trainer in parts, and a checkpoint with its optimizer.
    trained = context.path("trained")
    model.save_pretrained(trained, max_shard_size="1KB")
    step = os.path.join(trained, "checkpoint-5")
    BertModel(model.config).save_pretrained(step)
    save_file({"adapter.x": torch.ones(2)}, os.path.join(step, "extra.safetensors"))
    torch.save({"state": {0: {"exp_avg": torch.ones(16, 8)}}, "param_groups": []},
               os.path.join(step, "optimizer.pt"))
    for name, below in (("sentences", "2_Dense"), ("trained", "checkpoint-5")):
        answer = merge(context, context.path(name), context.path("of-" + name))["merged"]
        equal(loaded(context.path("of-" + name)), want)
        check(list(answer["unread"].values()) == [[below]] and not answer["left_out"],
              answer)
        shutil.copy(os.path.join(folder, "config.json"), context.path("of-" + name))
        equal(AutoModel.from_pretrained(context.path("of-" + name)).state_dict(),
              AutoModel.from_pretrained(context.path(name)).state_dict())
    return f"{len(want)} tensors, as from_pretrained loads them"


def eighths(context):
    """Dtypes of 8 bits, and complex64; what safetensors does not hold is said."""
    import torch
    import torch.distributed.checkpoint as dcp
    from safetensors.torch import save_file
    names = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
             "float8_e8m0fnu", "complex64"]
    bytes_ = torch.arange(64, dtype=torch.uint8).reshape(4, 16)
    want = {n: bytes_.clone().view(getattr(torch, n)) for n in names}
    os.makedirs(context.path("st"))
    save_file(want, context.path("st", "model.safetensors"))
    os.makedirs(context.path("bin"))
    torch.save(want, context.path("bin", "pytorch_model.bin"))
    dcp.save(dict(want), checkpoint_id=context.path("dcp"), no_dist=True)
    for name in ("st", "bin", "dcp"):
        merge(context, context.path(name), context.path("of-" + name), "--dtype", "bf16")
        found = loaded(context.path("of-" + name))
        check({n: t.dtype for n, t in found.items()}
              == {n: t.dtype for n, t in want.items()}, (name, found))
        equal({n: t.view(torch.uint8) for n, t in found.items()},
              {n: bytes_ for n in names})

    def refused(name, tensors, words):
        os.makedirs(context.path(name))
        torch.save(tensors, context.path(name, "pytorch_model.bin"))
        finding = merge(context, context.path(name), context.path("no"),
                        expect=4)["diagnostics"][0]
        check(finding["code"] == "not-supported" and words in finding["message"],
              finding)
        check(not os.path.exists(context.path("no")), "something was written")

    refused("wide", {"w": torch.ones(2, dtype=torch.complex128)},
            "complex128, which safetensors cannot hold")
    refused("packed", {"w": bytes_.view(torch.float4_e2m1fn_x2)},
            "float4_e2m1fn_x2, whose values share bytes")
    for name, lazy in (("conjugate", lambda t: t.conj()), ("sign", lambda t: t.conj().imag)):
        refused(name, {"w": lazy(want["complex64"])}, "conjugate or negative bit")
    weight = torch.ones(4, 4)
    dcp.save({"model": {"w": weight, "scale": want["float8_e8m0fnu"]},
              "optim": {"state": {"w": {n: weight for n in ("exp_avg", "exp_avg_sq")}
                                  | {"step": torch.tensor(2.0)}},
                        "param_groups": []}},
             checkpoint_id=context.path("scaled"), no_dist=True)
    finding = json.loads(harness.run(  # accel-run reads none of them
        [context.binary("accel-opt"), "checkpoint", "convert", context.path("scaled"),
         "-o", context.path("run"), "--to", "accel-run", "--samples", "4",
         "--format", "json"], expect=4))["diagnostics"][0]
    check("'scale' is float8_e8m0fnu, which accel-run does not read"
          in finding["message"], finding)
    return ", ".join(names)


def tables(context):
    """Host memory grows by what a shard of torch's takes, which is little."""
    import pickle
    import torch
    import torch.distributed.checkpoint as dcp
    folder = context.path("dcp")
    dcp.save({"w": torch.ones(1, 4)}, checkpoint_id=folder, no_dist=True)
    path = os.path.join(folder, ".metadata")
    with open(path, "rb") as f:
        metadata = pickle.load(f)
    [(index, place)] = metadata.storage_data.items()
    [chunk] = metadata.state_dict_metadata["w"].chunks
    shards = 40_000
    tensor = metadata.state_dict_metadata.pop("w")
    metadata.storage_data.clear()
    metadata.planner_data = {}
    for t in range(shards // 32):
        name = f"model.layers.{t}.self_attn.q_proj.weight"
        begins = [torch.Size([r, 0]) for r in range(32)]
        metadata.state_dict_metadata[name] = type(tensor)(
            tensor.properties, torch.Size([32, 4]),
            [type(chunk)(b, torch.Size([1, 4])) for b in begins])
        for begin in begins:
            metadata.storage_data[type(index)(name, begin)] = place
    with open(path, "wb") as f:
        pickle.dump(metadata, f)
    peak = int(harness.run(
        [sys.executable, "-S", "-c",
         "import resource, subprocess, sys; "
         "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
         "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
         context.binary("accel-opt"), "checkpoint", "inspect", folder]))
    each = (peak - 12_000) / shards
    check(each < 3, f"{peak} kB for {shards} shards")
    return f"{each:.1f} kB of host memory for a shard"


CASES = [("merge-dcp", distributed), ("merge-columns", columns),
         ("merge-damage", damage), ("merge-others", others),
         ("merge-shapes", shapes), ("merge-beside", beside),
         ("merge-places", places), ("merge-apart", apart),
         ("merge-eighths", eighths), ("merge-tables", tables),
         ("merge-dtype", dtypes), ("merge-memory", memory)]
