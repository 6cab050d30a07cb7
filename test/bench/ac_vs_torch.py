"""Activation checkpointing against torch.compile's activation_memory_budget.

  ac_vs_torch.py [--build-dir DIR] [--caps N] [--budgets N] [--model NAME]...
                 [--markdown]

On the same joint graphs, taken inside PyTorch's own partitioner
(joint_capture.py). torch has three ways at each of N budgets: as shipped; with
CPU attention in its list of compute-intensive operators, as CUDA's is; and that
with this benchmark's seconds as its runtime estimator. A cap is a number of
bytes. At each one, torch's answer is the setting that recomputes least of those
that fit; ours is solved with the same cap and with torch's backward peak as a
cap of its own. Exit 1 if a cap is not kept, or torch recomputes less, or its
backward's peak is lower.

Nothing is timed: seconds are modelled (joint_capture.py), the same for both.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(BENCH))
sys.path.insert(0, BENCH)

import torch  # noqa: E402
import transformers  # noqa: E402

import joint_capture  # noqa: E402

VARIANTS = {"as shipped": {}, "as on CUDA": {"cuda_like": True},
            "our seconds": {"cuda_like": True, "matched": True}}


class Block(torch.nn.Module):
    """A decoder layer with its rotary tables as inputs."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, cos, sin):
        return self.layer(x, position_embeddings=(cos, sin))


class Head(torch.nn.Module):
    """A llama block, the norm, the head and the loss."""

    def __init__(self, block, hidden, vocab):
        super().__init__()
        self.block = block
        self.norm = torch.nn.RMSNorm(hidden)
        self.head = torch.nn.Linear(hidden, vocab, bias=False)

    def forward(self, x, cos, sin, labels):
        x = self.block(x, cos, sin)
        x = x[0] if isinstance(x, tuple) else x
        logits = self.head(self.norm(x)).float()
        return torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten())


class Blocks(torch.nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = torch.nn.ModuleList(blocks)

    def forward(self, x, cos, sin):
        for block in self.blocks:
            x = block(x, cos, sin)
            x = x[0] if isinstance(x, tuple) else x
        return x


def decoder(kind, hidden, mlp, heads, kv_heads, head_dim=None, count=1,
            dtype=torch.float32, sequence=512):
    """`count` layers of a transformers model, and inputs for one."""
    head_dim = head_dim or hidden // heads
    name = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3",
            "mistral": "Mistral"}[kind]
    config = getattr(transformers, name + "Config")(
        hidden_size=hidden, intermediate_size=mlp, num_attention_heads=heads,
        num_key_value_heads=kv_heads, head_dim=head_dim, vocab_size=64,
        num_hidden_layers=count)
    config._attn_implementation = "sdpa"
    module = __import__(f"transformers.models.{kind}.modeling_{kind}",
                        fromlist=[name])
    make = getattr(module, name + "DecoderLayer")
    layers = [Block(make(config, i)).to(dtype) for i in range(count)]
    x = torch.randn(1, sequence, hidden, dtype=dtype, requires_grad=True)
    cos, sin = (torch.randn(1, sequence, head_dim, dtype=dtype)
                for _ in range(2))
    return layers, (x, cos, sin)


def block(*args, **options):
    def make():
        layers, inputs = decoder(*args, **options)
        return layers[0], inputs
    return make


def blocks(count):
    def make():
        layers, inputs = decoder("llama", 256, 688, 4, 2, count=count,
                                 sequence=256)
        return Blocks(layers), inputs
    return make


def gpt2():
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block
    config = transformers.GPT2Config(n_embd=768, n_head=12, n_layer=1,
                                     attn_pdrop=0, resid_pdrop=0, embd_pdrop=0)
    config._attn_implementation = "sdpa"
    return (GPT2Block(config, 0).train(),
            (torch.randn(1, 512, 768, requires_grad=True),))


def with_loss():
    layers, inputs = decoder("llama", 256, 688, 4, 2, sequence=256)
    labels = torch.randint(0, 8192, (1, 256))
    return Head(layers[0], 256, 8192), (*inputs, labels)


MODELS = {
    "llama": block("llama", 512, 1376, 8, 4),
    "llama bf16": block("llama", 512, 1376, 8, 4, dtype=torch.bfloat16),
    "llama, all heads": block("llama", 512, 1376, 8, 8),
    "8B shape": block("llama", 1024, 3584, 32, 8, sequence=512),
    "qwen2": block("qwen2", 512, 1376, 8, 2),
    "qwen3": block("qwen3", 512, 1376, 8, 4, head_dim=128),
    "mistral": block("mistral", 512, 1792, 8, 2),
    "gpt2": gpt2,
    "llama and loss": with_loss,
    "4 llama blocks": blocks(4),
}


def torch_settings(joint, budgets):
    """Every setting's figures; its name is (variant, budget)."""
    found = {}
    for i in range(budgets + 1):
        for name, options in VARIANTS.items():
            found[name, i / budgets] = joint.partition(i / budgets, **options)
    return found


def solve(build, joint, caps, peaks):
    command = [os.path.join(build, "bin", "ac-solve"),
               "--caps", ",".join(map(str, caps)),
               "--peaks", ",".join(map(str, peaks))]
    done = subprocess.run(command, input=json.dumps(joint.json), text=True,
                          capture_output=True)
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(name, build, num_caps, budgets):
    torch.manual_seed(0)
    joint = joint_capture.capture(*MODELS[name]())
    begin = time.time()
    settings = torch_settings(joint, budgets)
    torch_seconds = (time.time() - begin) / len(settings)
    most = settings["as shipped", 1.0]["saved_bytes"]
    # torch's own promise: a share of what the budget 1.0 saves.
    over = sum(s["saved_bytes"] > budget * most
               for (_, budget), s in settings.items())
    caps = [most * (i + 1) // (num_caps + 1) for i in range(num_caps)]
    best = []
    for cap in caps:
        fitting = [s for s in settings.values() if s["saved_bytes"] <= cap]
        best.append(min(fitting, key=lambda s: (s["recompute_s"],
                                                s["backward_peak"])))
    peaks = [s["backward_peak"] for s in best]
    ours = solve(build, joint, caps, peaks)
    free = solve(build, joint, caps, [0] * len(caps))
    rows = []
    for cap, theirs, mine, alone in zip(caps, best, ours, free):
        rows.append({"cap": cap, "torch": theirs, "ours": mine,
                     "free": alone, "wrong": wrong(cap, theirs, mine)})
    return {"name": name, "ops": len(joint.json["ops"]), "rows": rows,
            "over": over, "settings": len(settings),
            "torch_s": torch_seconds}


def wrong(cap, theirs, mine):
    if not mine["feasible"]:
        return "no answer"
    found = []
    if mine["saved_bytes"] > cap:
        found.append("cap not kept")
    if mine["recompute_s"] > theirs["recompute_s"] * (1 + 1e-9):
        found.append("torch recomputes less")
    if mine["backward_peak"] > theirs["backward_peak"]:
        found.append("torch's peak is lower")
    return ", ".join(found)


def ratio(mine, theirs):
    return mine / theirs if theirs else (1.0 if not mine else float("inf"))


def report(result, markdown):
    rows = result["rows"]
    solved = [r for r in rows if r["ours"]["feasible"]]
    ratios = [ratio(r["ours"]["recompute_s"], r["torch"]["recompute_s"])
              for r in solved]
    peaks = [ratio(r["ours"]["backward_peak"], r["torch"]["backward_peak"])
             for r in solved]
    gaps = [r["ours"]["gap"] for r in solved]
    free = [r["free"] for r in rows]
    times = [f["solve_s"] for f in free]
    line = [result["name"], f"{result['ops']}", f"{len(rows)}",
            f"{statistics.median(ratios):.3f} ({min(ratios):.2f} "
            f"to {max(ratios):.3f})",
            f"{statistics.median(peaks):.3f} ({max(peaks):.3f})",
            f"{sum(g > 1e-9 for g in gaps)}, {max(gaps):.3f}",
            f"{max(f['gap'] for f in free):.0e}",
            f"{1e3 * statistics.median(times):.0f}, {1e3 * max(times):.0f}",
            f"{result['over']} of {result['settings']}",
            str(sum(bool(r["wrong"]) for r in rows))]
    if markdown:
        print("| " + " | ".join(line) + " |", flush=True)
    else:
        print("  ".join(line), flush=True)
    for row in rows:
        if row["wrong"]:
            print(f"  cap {row['cap']}: {row['wrong']}: torch "
                  f"{row['torch']}, ours "
                  f"{ {k: v for k, v in row['ours'].items() if k != 'saved'} }",
                  file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--caps", type=int, default=19)
    parser.add_argument("--budgets", type=int, default=20)
    parser.add_argument("--model", action="append", choices=list(MODELS))
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", help="every row, to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    head = ["graph", "ops", "caps", "recompute / torch: median (range)",
            "peak / torch: median (max)", "gaps under both caps, largest",
            "largest gap under the cap alone", "ms to solve: median, max",
            "torch over its share", "lost"]
    print(("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
          if options.markdown else "  ".join(head), flush=True)
    results = []
    for name in options.model or MODELS:
        results.append(compare(name, options.build_dir, options.caps,
                               options.budgets))
        report(results[-1], options.markdown)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(results, f)
    rows = [r for result in results for r in result["rows"]]
    lost = sum(bool(r["wrong"]) for r in rows)
    print(f"{len(rows)} caps, {lost} lost")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
