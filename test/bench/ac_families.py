"""Activation checkpointing of one block of each supported family: the gap.

  ac_families.py [--build-dir DIR] [--budgets N] [--target NAME] [--markdown]
                 [--only TEXT]...

Makes the joint graphs of the models in test/parity/configs and of those below,
with 2048 tokens, bf16 (T5: fp32) and CUDA's operators, and solves each segment at N caps
on the saved bytes from nothing to what keeping everything takes; then at the
same caps together with a cap on the backward's peak, halfway between the peak
of the first answer and the lowest peak of the answers for fewer bytes. Exit 1
if an answer does not keep its caps, or is not proven to be the best.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(BENCH))
CONFIGS = os.path.join(ROOT, "test", "parity", "configs")

LABELS = {"id2label": {str(i): f"L{i}" for i in range(10)},
          "label2id": {f"L{i}": i for i in range(10)}}
# The published sizes of models that test/parity/configs does not hold.
MODELS = {
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]},
    "opt-6.7b": {
        "model_type": "opt", "architectures": ["OPTForCausalLM"],
        "hidden_size": 4096, "ffn_dim": 16384, "num_hidden_layers": 32,
        "num_attention_heads": 32, "word_embed_proj_dim": 4096,
        "vocab_size": 50272, "max_position_embeddings": 2048,
        "do_layer_norm_before": True},
    "bert-base": {
        "model_type": "bert", "architectures": ["BertForMaskedLM"],
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    "roberta-base": {
        "model_type": "roberta", "architectures": ["RobertaForMaskedLM"],
        "max_position_embeddings": 514, "vocab_size": 50265,
        "type_vocab_size": 1, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0},
    "vit-base": {"model_type": "vit", **LABELS,
                 "architectures": ["ViTForImageClassification"]},
    "t5-base": {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"],
        "d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12,
        "vocab_size": 32128, "decoder_start_token_id": 0,
        "dropout_rate": 0.0},
    "whisper-small": {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "d_model": 768, "encoder_layers": 12, "decoder_layers": 12,
        "encoder_attention_heads": 12, "decoder_attention_heads": 12,
        "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072,
        "vocab_size": 51865, "dropout": 0.0},
}
ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: 'NO'
num_machines: 1
num_processes: 1
mixed_precision: %s
"""
FP32 = ("t5-base",)  # its position bias is not planned under autocast


def joint_graphs(build, name, folder):
    """The distinct segments of a model; the sequence is what it can take."""
    tool = os.path.join(build, "bin", "accel-opt")
    if name in MODELS:
        path = os.path.join(folder, name)
        os.makedirs(path)
        with open(os.path.join(path, "config.json"), "w",
                  encoding="utf-8") as f:
            json.dump(MODELS[name], f)
    else:
        path = os.path.join(CONFIGS, name)
    yaml = os.path.join(folder, name + ".yaml")
    with open(yaml, "w", encoding="utf-8") as f:
        f.write(ACCELERATE % ("'no'" if name in FP32 else "bf16"))
    ir = os.path.join(folder, name + ".mlir")
    errors = ""
    for length in ("2048", "512", "448"):
        done = subprocess.run(
            [tool, "plan", yaml, "--model", path, "--seq-len", length,
             "--compile-to", "sharded", "-o", ir],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            check=False)
        errors += done.stderr
        if os.path.exists(ir):
            break
    else:
        sys.exit(f"{name}: {errors}")
    printed = subprocess.run(
        [tool, "opt",
         "--pass-pipeline=builtin.module(print-joint{device=cuda})", ir],
        stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.JSONDecoder().raw_decode(printed)[0]


def solve(build, target, graph, *options):
    done = subprocess.run(
        [os.path.join(build, "bin", "ac-solve"), "--target", target, *options],
        input=json.dumps(graph), stdout=subprocess.PIPE, text=True,
        check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def halfway_peaks(rows):
    lowest, peaks = rows[0]["backward_peak"], []
    for row in rows:
        lowest = min(lowest, row["backward_peak"])
        peaks.append((lowest + row["backward_peak"]) // 2)
    return peaks


def problem_of(row):
    if row["wrong"]:
        return row["wrong"]
    if not row["feasible"]:
        return "" if row["proven_infeasible"] else "no answer"
    return "" if row["gap"] <= 1e-9 else f"a gap of {row['gap']:.3f}"


def figures(rows):
    times = [row["solve_s"] * 1e3 for row in rows]
    gap = max((row["gap"] for row in rows if row["feasible"]), default=0)
    return (f"{gap:.0e}" if gap else "0",
            f"{statistics.median(times):.0f}, {max(times):.0f}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    # lit has the binaries in its PATH.
    tool = shutil.which("accel-opt") or os.path.join(
        ROOT, "build", "bin", "accel-opt")
    parser.add_argument("--build-dir",
                        default=os.path.dirname(os.path.dirname(tool)))
    parser.add_argument("--budgets", type=int, default=20)
    parser.add_argument("--target", default="h100-sxm-80gb")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    head = ["segment", "ops", "gap", "ms: median, max", "gap under both caps",
            "ms: median, max"]
    print(("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
          if options.markdown else "  ".join(head), flush=True)

    def solved(graph):
        alone = solve(options.build_dir, options.target, graph,
                      "--budgets", str(options.budgets))
        both = solve(options.build_dir, options.target, graph,
                     "--caps", ",".join(str(row["cap"]) for row in alone),
                     "--peaks", ",".join(map(str, halfway_peaks(alone))))
        return graph, alone, both

    names = [n for n in sorted(os.listdir(CONFIGS)) + list(MODELS)
             if not options.only or any(t in n for t in options.only)]
    count, problems = 0, []
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name in names:
            graphs = joint_graphs(options.build_dir, name, folder)
            for graph, alone, both in pool.map(solved, graphs):
                count += len(alone) + len(both)
                segment = f"{name} {graph['name'].removesuffix('.joint')}"
                if len(alone) != options.budgets or len(both) != len(alone):
                    problems.append(f"{segment}: ac-solve failed")
                    continue
                problems += [f"{segment}, cap {row['cap']}, peak "
                             f"{row.get('cap_peak')}: {problem_of(row)}"
                             for row in alone + both if problem_of(row)]
                # Embeddings and the like have nothing to decide.
                if max(row["nodes"] for row in alone + both) == 0:
                    continue
                line = [segment, str(len(graph["ops"])), *figures(alone),
                        *figures(both)]
                print("| " + " | ".join(line) + " |" if options.markdown
                      else "  ".join(line), flush=True)
    print(f"{len(names)} models, {count} problems solved, "
          f"{len(problems)} not proven")
    print("\n".join(problems))
    sys.exit(1 if problems or not count else 0)


if __name__ == "__main__":
    main()
