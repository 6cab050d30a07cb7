"""What job-phases.test loads, saves and resumes: the 1.2 B parameters of
llama-3.2-1b in bf16, in bytes beside a process.

  check-loads.py FOLDER
"""
import json
import subprocess
import sys

folder = sys.argv[1]
layers, hidden, inner, keys, words = 16, 2048, 8192, 512, 128256
embedding = words * hidden
numel = embedding + hidden + layers * (
    2 * hidden * hidden + 2 * keys * hidden + 3 * inner * hidden + 2 * hidden)
read = 2 * numel + 2 * embedding  # and the tensor that is converted
old = "--transformers-version=4.57"


def report(config, *arguments):
    command = ["accel-opt", "plan", f"{folder}/{config}.yaml", "--model",
               folder, "--seq-len=128", "--dtype=bf16", "--format=json",
               *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)["phases"]


def phases(config, *arguments):
    """By name, (device, host of a rank, host of a node) beside the start's."""
    found = report(config, *arguments)
    return {p["phase"]: tuple(p[key] - found[0][key] for key in
                              ("device_bytes", "host_bytes",
                               "node_host_bytes"))
            for p in found}


def check(what, got, expected):
    assert got == expected, f"{what}: {got}, expected {expected}"


def host(what, expected, config, *arguments):
    check(what, phases(config, *arguments)["load"][1:], expected)


host("FSDP2", (4 * numel, 8 * numel), "full")
host("before the turn", (read, 2 * read), "full",
     "--accelerate-version=1.12")
host("rank 0 reads, all turn", (4 * numel, 8 * numel), "full", old)
host("rank 0 reads", (read, read), "full", old, "--accelerate-version=1.12")
host("FSDP1", (read, 2 * read), "fsdp1")
host("FSDP1 before transformers 5", (read, read), "fsdp1", old)

one = phases("one", "--optim=adamw_torch")
check("load", one["load"][0], 2 * numel)
check("load of SGD", phases("one", "--optim=sgd")["load"][0], 2 * numel)
# Weights are mapped, and the states follow.
check("resume", one["resume"], (6 * numel, 4 * numel, 4 * numel))
wide = phases("one", "--optim=adamw_bnb_8bit")["load"][0]
assert 0 <= wide - 2 * numel < 1 << 20, f"load of 8 bits: {wide}"
ddp = phases("ddp", "--optim=adamw_torch")
check("resume of DDP", ddp["resume"][0], ddp["save"][0])
check("load of DDP", ddp["load"][0], ddp["save"][0] - 4 * numel)
# load_state reads the weights beside the model's; Trainer maps them.
script = f"--trainer={folder}/all.yaml"
plain = phases("ddp", "--optim=sgd")
check("resume of SGD", plain["resume"][0], plain["save"][0] + 2 * numel)
plain = phases("ddp", "--optim=sgd", script)
check("resume by Trainer", plain["resume"], (plain["save"][0], 0, 0))

part = 4 * numel // 8
check("save of ZeRO-3", phases("zero3")["save"][1:], (part, 8 * part))

# Each rank of FSDP1 reads the model, rank 0 alone the states; of shards the
# model's are gone before the optimizer's are read.
read8 = phases("full1", "--optim=adamw_torch", "--num-processes=8")
check("resume of FSDP1", read8["resume"][1:], (8 * numel, 8 * 4 * numel))
moved = phases("moved1", "--optim=adamw_torch")
check("resume of offloaded FSDP1", moved["resume"][1],
      8 * numel + moved["step"][1])
sharded = phases("sharded", "--optim=adamw_torch")
for phase in ("save", "resume"):
    check(phase + " of shards", sharded[phase][1:], (4 * numel, 8 * numel))
check("merge of shards", sharded["merge"][1], 4 * numel + 2 * embedding)

# The module's file of ZeRO-2 is gone before the partition is read; what is
# offloaded is there beside either.
part = 12 * numel // 8
check("resume of ZeRO-2", phases("zero2")["resume"][1:],
      (2 * numel, 16 * numel))
check("resume of ZeRO-3", phases("zero3")["resume"][1:], (part, 8 * part))
moved = phases("moved3")
check("resume of offloaded ZeRO-3", moved["resume"][1],
      moved["step"][1] + part)

# save_only_model: what of it Trainer resumes. Stage 3 saves all that its engine
# has where it gathers no weights.
only = f"--trainer={folder}/only.yaml"
alone = phases("one", "--optim=adamw_torch", only)
check("resume without states", alone["resume"],
      (alone["save"][0] - 4 * numel, 0, 0))
check("resume of ZeRO-3 without states",
      phases("zero3", only)["resume"][1], part)
stopped = report("zero2", only)[-1]
check("resume of ZeRO-2 without states",
      [stopped[key] for key in ("phase", "device_bytes", "host_bytes",
                            "seconds", "device_fits")],
      ["resume", None, None, None, None])
names = [p["phase"] for p in report("one", f"--trainer={folder}/unsaved.yaml")]
check("save_strategy no", names[-1], "save")

lora = phases("full", "--lora-r=8")
check("resume of LoRA", lora["resume"][1:], lora["load"][1:])

# An adapter in fp32 and its two states. Of one process the states are read onto
# the host, of several onto the device, and PEFT reads the adapter there before
# either. A rank has its shards of both; the whole state is sent by tensors.
widths = [(2 * hidden, 2), (hidden + keys, 2), (hidden + inner, 3)]
trained = 512 * layers * sum(width * times for width, times in widths)
adapter = 4 * trained
large = ("--lora-r=512", "--optim=adamw_torch")
for config in ("one", "ddp", "sharded"):
    lora = phases(config, *large)
    check("resume of an adapter, " + config, lora["resume"],
          (lora["save"][0], *lora["load"][1:]))
check("save of an adapter's shards", lora["save"][1:], (adapter, 2 * adapter))
lora = phases("full", *large)
check("resume of a whole adapter", lora["resume"][0],
      lora["save"][0] - 2 * embedding + 4 * 512 * inner)
for config, bytes_of, copied in (("one", 12, 12), ("ddp", 12, 12),
                                 ("sharded", 12, 6), ("zero2", 14, 3.5)):
    found = {p["phase"]: p for p in report(config, *large)}
    check("an adapter's checkpoint, " + config,
          (found["save"]["storage_bytes"],
           found["resume"]["storage_bytes"] - found["load"]["storage_bytes"],
           found["resume"]["copied_bytes"] - found["load"]["copied_bytes"]),
          (bytes_of * trained, bytes_of * trained, copied * trained))
merged = report("full", "--lora-r=8")[-1]
check("merge", merged["node_host_bytes"], merged["host_bytes"])
# Beside the base a weight of its layers, and the adapter, not the embedding.
process = report("full", "--lora-r=8")[0]["host_bytes"]
beside = merged["host_bytes"] - process - 2 * numel
assert 0 < beside < 128 << 20, f"merge: {beside} beside the base"

# States are there from the first update on; this step's peak is before it.
wide = phases("full", "--optim=adamw_torch", "--micro-batch=128")
check("states of the first step", wide["step"][0] - wide["first step"][0],
      4 * numel)
check("DeepSpeed's first step", *(
    [phases("zero3")[name] for name in ("first step", "step")]))

# The gradients of FSDP1 are between steps alone.
flat = phases("fsdp1", "--optim=adamw_torch")
for name in ("save", "resume"):
    beyond = flat[name][0] - 6 * numel
    assert 0 <= beyond < 1 << 20, f"{name} of FSDP1: {beyond}"
print("to the byte")
