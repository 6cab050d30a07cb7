#!/usr/bin/env python3
"""Jobs of transformers' Trainer on one GPU: what plan says, and what is true.

  gpu_training.py prepare DIR   models (config.json), accelerate's YAML, and
                                TrainingArguments of every job
  gpu_training.py run DIR       there: trains each for a few steps on random
                                tokens, writes DIR/measured.json
  gpu_training.py kernels DIR   there: one step of each under torch's profiler,
                                its kernels by time in DIR/kernels.json
  gpu_training.py compare DIR   what accel-opt predicts beside it, or beside
                                what is committed (Inputs/h100_training.json
                                and Inputs/h200_training.json, by --target)

`run` needs torch, transformers, accelerate and peft, and no network: weights
are drawn. Each job is a process of its own, so that the allocator is new; it
is forked from one that has imported everything and has touched no GPU.
"""
import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import time
import traceback

from gpu_training_jobs import JOBS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# By target.
COMMITTED = {target: os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "Inputs", card +
    "_training.json") for target, card in (("h200", "h200"),
                                           ("h100-sxm-80gb", "h100"))}
COMMITTED_TORCH = "2.11"
STEPS = 8


def prepare(folder, jobs=None):
    for name, spec in (jobs or JOBS).items():
        here = os.path.join(folder, name)
        os.makedirs(os.path.join(here, "model"), exist_ok=True)
        config = {"use_cache": False, **spec["config"],
                  "dtype": spec["weights"]}
        arguments = {"output_dir": "out", "max_steps": STEPS,
                     "optim": "adamw_torch_fused", "report_to": "none",
                     "save_strategy": "no", "logging_strategy": "no",
                     "dataloader_num_workers": 0, **spec["arguments"]}
        if spec["precision"] != "no":
            arguments[spec["precision"]] = True
        accelerate = {"compute_environment": "LOCAL_MACHINE",
                      "distributed_type": "NO", "num_machines": 1,
                      "mixed_precision": spec["precision"],
                      "num_processes": 1, "use_cpu": False}
        for path, what in (("model/config.json", config),
                           ("arguments.json", arguments),
                           ("accelerate.yaml", accelerate),
                           ("job.json", spec)):
            with open(os.path.join(here, path), "w", encoding="utf-8") as f:
                json.dump(what, f, indent=1)
        if spec["lora"]:
            rank, modules = spec["lora"]
            os.makedirs(os.path.join(here, "adapter"), exist_ok=True)
            with open(os.path.join(here, "adapter", "adapter_config.json"),
                      "w", encoding="utf-8") as f:
                json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM",
                           "r": rank, "lora_alpha": 2 * rank,
                           "lora_dropout": 0.0, "bias": "none",
                           "target_modules": modules, **spec["adapter"]}, f,
                          indent=1)


def quantized(model, how):
    """The model with bitsandbytes' layers, as from_pretrained makes them of a
    checkpoint: all of nn.Linear but the head."""
    import bitsandbytes
    import torch
    kind, *options = how.split(",")
    said = dict(option.split("=") for option in options if "=" in option)
    for name, module in list(model.named_modules()):
        if not isinstance(module, torch.nn.Linear) or name == "lm_head":
            continue
        sizes = (module.in_features, module.out_features)
        bias = module.bias is not None
        if kind == "int8":
            # Int8Params quantises what comes from the host; what is on the
            # device stays in 16 bits until its first forward.
            made = bitsandbytes.nn.Linear8bitLt(
                *sizes, bias=bias, has_fp16_weights=False, threshold=float(
                    said.get("threshold", 6)), device="meta")
            made.weight = bitsandbytes.nn.Int8Params(
                module.weight.data.to("cpu"), requires_grad=False,
                has_fp16_weights=False).cuda()
        else:
            made = bitsandbytes.nn.Linear4bit(
                *sizes, bias=bias, compute_dtype=torch.bfloat16,
                compress_statistics="double_quant" in options,
                quant_type=kind, device="meta")
            made.weight = bitsandbytes.nn.Params4bit(
                module.weight.data, requires_grad=False,
                compress_statistics="double_quant" in options,
                quant_type=kind, module=made).cuda()
        made.bias = module.bias
        parent, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(parent), leaf, made)
    setattr(model, "is_loaded_in_8bit" if kind == "int8" else
            "is_loaded_in_4bit", True)
    return model


def build(here, device):
    """The job, its TrainingArguments as a dict, and its model, which is made there."""
    import torch
    import transformers
    with open(os.path.join(here, "job.json"), encoding="utf-8") as f:
        spec = json.load(f)
    with open(os.path.join(here, "arguments.json"), encoding="utf-8") as f:
        arguments = json.load(f)
    arguments["output_dir"] = os.path.join(here, "out")
    config = transformers.AutoConfig.from_pretrained(
        os.path.join(here, "model"))
    if spec["attention"]:
        config._attn_implementation = spec["attention"]
    torch.set_default_dtype(getattr(torch, spec["weights"]))
    with torch.device(device):
        model = getattr(transformers, config.architectures[0])._from_config(
            config)
    torch.set_default_dtype(torch.float32)
    if spec["quantize"]:
        model = quantized(model, spec["quantize"])
    if spec["lora"]:
        import peft
        if "prepared" in (spec["quantize"] or ""):
            model = peft.prepare_model_for_kbit_training(
                model, arguments.get("gradient_checkpointing", False))
        model = peft.get_peft_model(model, peft.LoraConfig.from_pretrained(
            os.path.join(here, "adapter")))
        if arguments.get("gradient_checkpointing"):
            model.enable_input_require_grads()
    return spec, arguments, model


def pictures(config, images, draw):
    """What a model's processor makes of the images of a sample, and the tokens that
    each takes."""
    import torch
    high, wide = images["size"]
    vision = config.vision_config
    if config.model_type == "llava":
        values = torch.rand(images["count"], 3, high, wide, generator=draw)
        return {"pixel_values": values}, (high // vision.patch_size) ** 2
    patch = vision.patch_size
    grid = torch.tensor([[1, high // patch, wide // patch]] * images["count"])
    rows = int(grid.prod(-1).sum())
    width = 3 * vision.temporal_patch_size * patch * patch
    return ({"pixel_values": torch.rand(rows, width, generator=draw), "image_grid_thw": grid},
            rows // images["count"] // vision.spatial_merge_size ** 2)


def samples(sequence, config, images=None):
    """A dataset of random tokens, and images between them."""
    import torch
    vocabulary = config.get_text_config().vocab_size

    class Samples(torch.utils.data.Dataset):
        def __len__(self):
            return 4096

        def __getitem__(self, i):
            draw = torch.Generator().manual_seed(i)
            ids = torch.randint(0, min(50000, vocabulary), (sequence,),
                                generator=draw)
            if not images:
                return {"input_ids": ids, "labels": ids}
            ids[ids == config.image_token_id] = 0
            inputs, taken = pictures(config, images, draw)
            labels = ids.clone()
            for image in range(images["count"]):
                begin = 1 + image * (taken + 1)  # behind a token of text
                ids[begin:begin + taken] = config.image_token_id
            labels[ids == config.image_token_id] = -100
            if "image_grid_thw" in inputs:
                inputs["mm_token_type_ids"] = (ids == config.image_token_id).long()
            return {"input_ids": ids, "labels": labels, **inputs}

    return Samples()


def collate(rows):
    """transformers' default_data_collator; images are of no sample, but one after the
    other, as processors return them."""
    import torch
    import transformers
    apart = ("pixel_values", "image_grid_thw")
    batch = transformers.default_data_collator(
        [{k: v for k, v in row.items() if k not in apart} for row in rows])
    for key in apart:
        if key in rows[0]:
            batch[key] = torch.cat([row[key] for row in rows])
    return batch


class Profile:
    """Kernels of the fifth step, by name."""

    def __init__(self):
        import torch
        self.torch, self.at = torch, 5
        self.profiler = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU,
                        torch.profiler.ProfilerActivity.CUDA])

    def begin(self, step):
        if step == self.at - 1:
            self.torch.cuda.synchronize()
            self.profiler.start()
            self.since = time.perf_counter()

    def end(self, step):
        if step == self.at:
            self.torch.cuda.synchronize()
            self.seconds = time.perf_counter() - self.since
            self.profiler.stop()

    def result(self):
        """Seconds of the step (with the profiler's own), of each kernel, and calls of the
        runtime that the host made."""
        kernels, calls = {}, {}
        for event in self.profiler.events():
            on_device = event.device_type != self.torch.autograd.DeviceType.CPU
            if not on_device and not event.name.startswith("cu"):
                continue
            row = (kernels if on_device else calls).setdefault(
                event.name, [0, 0.0])
            row[0] += 1
            row[1] += event.time_range.elapsed_us() * 1e-6
        return {"profiled_s": self.seconds,
                "busy_s": sum(s for _, s in kernels.values()),
                "kernels": sorted(([k, n, s] for k, (n, s) in kernels.items()),
                                  key=lambda row: -row[2])[:80],
                "calls": {k: row for k, row in calls.items()}}


def train(here, profiled=False):
    """What one job took. Leaves the process with its memory."""
    import torch
    import transformers
    spec, arguments, model = build(here, "cuda")
    arguments = transformers.TrainingArguments(**arguments)
    times = []

    profile = Profile() if profiled else None

    class Clock(transformers.TrainerCallback):
        def on_step_begin(self, _, state, *__, **___):
            if profile:
                profile.begin(state.global_step)

        def on_step_end(self, _, state, *__, **___):
            torch.cuda.synchronize()
            times.append(time.perf_counter())
            if profile:
                profile.end(state.global_step)

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    trainer = transformers.Trainer(
        model=model, args=arguments,
        train_dataset=samples(spec["sequence"], model.config, spec.get("images")),
        callbacks=[Clock()], data_collator=collate)
    trainer.train()
    if profile:
        return profile.result()
    steps = [b - a for a, b in zip(times, times[1:])]
    smi = []
    if shutil.which("nvidia-smi"):  # a stand-in of a GPU has none
        smi = subprocess.run(
            ["nvidia-smi", "--query-compute-apps=used_memory",
             "--format=csv,noheader,nounits"], capture_output=True, text=True,
            check=False).stdout.split()
    stats = torch.cuda.memory_stats()
    free, total = torch.cuda.mem_get_info()
    return {
        "allocated": stats["allocated_bytes.all.peak"],
        "reserved": stats["reserved_bytes.all.peak"],
        "retries": stats["num_alloc_retries"],
        "device": total - free, "smi_mib": smi,
        "requested": stats["requested_bytes.all.peak"],
        "step_s": statistics.median(steps[2:]), "steps": steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "gpu": torch.cuda.get_device_name(),
        "versions": {"torch": torch.__version__,
                     "transformers": transformers.__version__}}


def send(here, profiled, pipe):
    try:
        pipe.send(train(here, profiled))
    except Exception:  # the report says which
        pipe.send({"error": traceback.format_exc()[-800:]})


def apart(here, seconds, profiled=False):
    """train() in a forked process."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(False)
    child = fork.Process(target=send, args=(here, profiled, theirs))
    child.start()
    theirs.close()
    result = {"error": f"ran longer than {seconds} s"}
    try:
        if ours.poll(seconds):
            result = ours.recv()
    except EOFError:
        result = {"error": "the process died"}
    child.join(5)
    if child.is_alive():
        child.kill()
        child.join()
    return result


def run(folder, chosen, limit, profiled=False):
    # Asking CUDA for devices would keep forked processes from using them.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"

    import transformers  # noqa: F401
    path = os.path.join(folder,
                        "kernels.json" if profiled else "measured.json")
    measured = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            measured = json.load(f)
    begin = time.time()
    for name in chosen or JOBS:
        if time.time() - begin > limit:
            print(f"{name}: no time left")
            continue
        at = time.time()
        measured[name] = apart(os.path.join(folder, name), 120, profiled)
        m = measured[name]
        if profiled and "error" not in m:
            print(f"{name:20} {time.time() - at:5.1f} s  "
                  f"{m['busy_s'] * 1e3:8.1f} of {m['profiled_s'] * 1e3:8.1f} "
                  "ms in kernels", flush=True)
            with open(path, "w", encoding="utf-8") as f:
                json.dump(measured, f, indent=1)
            continue
        print(f"{name:20} {time.time() - at:5.1f} s  " +
              (m["error"][-200:] if "error" in m else
               f"{m['allocated'] / 2**30:7.2f} GiB allocated "
               f"{m['reserved'] / 2**30:7.2f} reserved "
               f"{m['device'] / 2**30:7.2f} device "
               f"{m['step_s'] * 1e3:8.1f} ms"), flush=True)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(measured, f, indent=1)


def predicted(folder, name, binary, target, spec=None, torch=None):
    here, spec = os.path.join(folder, name), spec or JOBS[name]
    command = [binary, "plan", os.path.join(here, "accelerate.yaml"),
               "--model", os.path.join(here, "model"),
               "--trainer", os.path.join(here, "arguments.json"),
               "--seq-len", str(spec["sequence"]), "--target", target,
               "--format", "json"]
    if torch:
        command += ["--torch-version", torch]
    if spec["lora"]:
        command += ["--adapter", os.path.join(here, "adapter")]
    if spec["attention"]:
        command += ["--attn", spec["attention"]]
    if spec.get("images"):
        command += ["--images-per-sample", str(spec["images"]["count"]),
                    "--image-size", "{}x{}".format(*spec["images"]["size"])]
    if spec["quantize"]:
        command += ["--quantize", spec["quantize"]]
    done = subprocess.run(command, capture_output=True, text=True,
                          check=False)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        print(f"{name}: {done.stderr[-600:]}")
        return None


def measurements(folder, target):
    """Of each job, and the release of torch that ran the committed ones."""
    path = os.path.join(folder, "measured.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            return json.load(f), None
    with open(COMMITTED[target], encoding="utf-8") as f:
        return json.load(f)["jobs"], COMMITTED_TORCH


def compare(folder, binary, target):
    measured, torch = measurements(folder, target)
    print(f"{'job':20} {'allocated GiB':>22} {'reserved GiB':>22} "
          f"{'step ms':>22}")
    errors = {"allocated": [], "reserved": [], "step": []}
    for name in JOBS:
        m, p = measured.get(name), None
        if m and "error" not in m:
            release = torch or m["versions"]["torch"].split("+")[0]
            p = predicted(folder, name, binary, target, torch=release)
        if not p:
            continue
        row = f"{name:20}"
        for key, unit, a, b in (
                ("allocated", 2**30, p["memory"]["replayed_allocated_bytes"],
                 m["allocated"]),
                ("reserved", 2**30, p["memory"]["reserved_bytes"],
                 m["reserved"]),
                ("step", 1e-3, p["time"]["step_s"], m["step_s"])):
            errors[key].append(abs(a / b - 1))
            row += f" {a / unit:8.2f} {b / unit:7.2f} {100 * (a / b - 1):+5.1f}%"
        print(row)
    for key, all_ in errors.items():
        if all_:
            print(f"{key}: {len(all_)} jobs, mean {statistics.mean(all_):.1%},"
                  f" worst {max(all_):.1%}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action",
                        choices=["prepare", "run", "kernels", "compare"])
    parser.add_argument("dir")
    parser.add_argument("-k", nargs="+", default=[], metavar="JOB")
    parser.add_argument("--limit", type=float, default=600,
                        help="seconds after which no job is started")
    parser.add_argument("--accel-opt", default=os.path.join(
        ROOT, "build", "bin", "accel-opt"))
    parser.add_argument("--target", default="h200")
    args = parser.parse_args()
    if args.action == "prepare":
        prepare(args.dir)
    elif args.action in ("run", "kernels"):
        run(os.path.abspath(args.dir), args.k, args.limit,
            args.action == "kernels")
    else:
        compare(args.dir, args.accel_opt, args.target)


if __name__ == "__main__":
    main()
