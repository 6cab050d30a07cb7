"""The pages of --report that tests look at, each by one command."""
import json
import os
import subprocess

from conftest import ROOT

LLAMA_1B = os.path.join(ROOT, "test", "parity", "configs", "llama-3.2-1b")
LLAMA_8B = os.path.join(ROOT, "docs", "examples", "llama-8b")
TINY = os.path.join(ROOT, "test", "Plan", "Inputs", "tiny-llama")

MESH = """\
distributed_type: FSDP
num_processes: 16
num_machines: 2
machine_rank: 0
mixed_precision: bf16
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
parallelism_config:
  parallelism_config_dp_replicate_size: 2
  parallelism_config_dp_shard_size: 4
  parallelism_config_tp_size: 2
"""
PLAIN = MESH[:MESH.index("parallelism_config:")]
TARGET = ["--target", "h100-sxm-80gb"]
MEGATRON = """\
distributed_type: MEGATRON_LM
num_processes: 16
num_machines: 2
machine_rank: 0
mixed_precision: bf16
megatron_lm_config:
  megatron_lm_tp_degree: 2
  megatron_lm_pp_degree: 4
  megatron_lm_num_micro_batches: 8
  megatron_lm_sequence_parallelism: true
  megatron_lm_use_distributed_optimizer: true
  megatron_lm_gradient_clipping: 1.0
"""
NAMES = ("fits", "misfit", "explain", "validate", "diff", "log", "lint",
         "pipeline", "stages")


def log_line(step):
    loss = round(4 * 0.97 ** step + 1.5, 4)
    return json.dumps({"step": step, "loss": loss, "tokens_per_s": 60 + step % 5,
                       "step_s": round(0.25 + (step % 7) / 100, 3),
                       "peak_bytes": 102400})


def write_pages(program, folder):
    """{name: path} of NAMES; paths that pages show are those of `folder`."""
    def write(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)

    def run(*command):
        done = subprocess.run([program, *command], cwd=folder, text=True,
                              capture_output=True)
        expected = (1,) if command[0] == "lint" else (0, 2)
        assert done.returncode in expected, done.stderr

    def page(name, *command):
        run(*command, "--report", name + ".html")
        pages[name] = os.path.join(folder, name + ".html")

    pages = {}
    write("job.yaml", MESH)
    write("megatron.yaml", MEGATRON)
    write("plain.yaml", PLAIN)
    write("small.yaml", PLAIN.replace(
        "num_processes: 16\nnum_machines: 2\nmachine_rank: 0", "num_processes: 8")
        + "  fsdp_activation_checkpointing: true\n")
    write("log.jsonl", "\n".join(map(log_line, range(1, 41))) + "\n")
    with open(os.path.join(ROOT, "test", "Plan", "Inputs", "fsdp.yaml"),
              encoding="utf-8") as f:
        write("tiny.yaml", f.read())
    with open(os.path.join(LLAMA_8B, "fsdp.yaml"), encoding="utf-8") as f:
        write("fsdp.yaml", f.read())
    with open(os.path.join(ROOT, "test", "Validate", "Inputs", "runs.csv"),
              encoding="utf-8") as f:
        write("runs.csv", f.read())
    model = ["--model", LLAMA_1B, "--seq-len", "1024"]
    page("fits", "plan", "job.yaml", *model, *TARGET)
    # So long that the device decides, not the host.
    page("stages", "plan", "megatron.yaml", "--model", LLAMA_1B, "--seq-len",
         "8192", *TARGET)
    page("misfit", "plan", "fsdp.yaml", "--model", LLAMA_8B, "--target",
         "a100-40gb", "--tune=all")
    run("plan", "tiny.yaml", "--model", TINY, "--seq-len", "8", "--executor",
        "accel-run", *TARGET, "--emit", "plan", "-o", "plan.json")
    page("explain", "explain", "plan.json")
    page("log", "explain", "plan.json", "--log", "log.jsonl")
    page("validate", "validate", "runs.csv")
    page("diff", "diff", "plain.yaml", "small.yaml", *model, *TARGET)
    page("pipeline", "pipeline", "--schedule", "zb-v", "--ranks", "4",
         "--micro-batches", "8", "--frame-bytes", "1GiB")
    write("bad.yaml", PLAIN.replace("bf16", "bf17").replace(
        "fsdp_version: 2", "fsdp_version: 2\n  fsdp_offload_param: true"))
    page("lint", "lint", "bad.yaml", "--fix=diff")
    return pages
