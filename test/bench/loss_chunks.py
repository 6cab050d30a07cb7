"""The loss in pieces against all at once: peak, step time, predicted and measured.

  loss_chunks.py [--vocab 128256] [--hidden 256] [--tokens 1024] [--steps 4]
                 [--rounds 3] [--build-dir DIR]

A llama of two narrow layers under a vocabulary as large as Llama 3's, one CPU
rank and thread. Rounds alternate between the settings, so that a machine that
drifts hits all; figures are medians. Checks that own peaks are predicted to the
byte and that losses agree to 1e-6.
"""
import argparse
import json
import os
import statistics
import sys

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(BENCH))
sys.path[:0] = [os.path.join(ROOT, "test", "parity")]
import harness  # noqa: E402
import jobs  # noqa: E402

SETTINGS = ("1", "2", "4", "8", "16", "128", "auto")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vocab", type=int, default=128256)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", choices=("fp32", "bf16"),
                        default="fp32")
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    args = parser.parse_args()
    folder = os.path.join(args.build_dir, "bench", "loss-chunks")
    context = harness.Context(args.build_dir, folder)
    model = jobs.variant(vocab_size=args.vocab, hidden_size=args.hidden,
                         intermediate_size=4 * args.hidden,
                         num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=4, tie_word_embeddings=True,
                         max_position_embeddings=args.tokens)
    os.makedirs(os.path.join(folder, "model"), exist_ok=True)
    jobs.write_config(os.path.join(folder, "model"), model)
    jobs.make_tokens(os.path.join(folder, "train.bin"),
                     args.tokens * (args.steps + 2), min(args.vocab, 65000))
    job = {"accelerate": jobs.accelerate_config("single", 1, "LlamaDecoderLayer"),
           "model": "model", "init": {"seed": 0},
           "data": {"tokens": "train.bin", "dtype": "uint16",
                    "sequence_length": args.tokens, "micro_batch": 1},
           "optimizer": {"name": "adamw", "lr": 1e-3},
           "schedule": {"steps": args.steps}, "target": "cpu"}
    if args.precision == "bf16":
        job["precision"] = {"param": "bf16", "reduce": "fp32", "output": "bf16"}
    jobs.write_job(folder, job)
    plans, seconds, losses, measured = {}, {}, {}, {}
    for name in SETTINGS:
        plans[name] = harness.plan(
            context, os.path.join(folder, "job.yaml"),
            os.path.join(folder, f"{name}.json"), "--loss-chunks", name)
        seconds[name] = []
    for _ in range(args.rounds):
        for name in SETTINGS:
            summary = os.path.join(folder, f"{name}.summary.json")
            log = harness.execute(
                context, os.path.join(folder, f"{name}.json"), 1,
                os.path.join(folder, f"{name}.jsonl"), "--summary", summary,
                timeout=1200)
            losses[name] = [line["loss"] for line in log]
            seconds[name] += [line["step_s"] for line in log[1:]]
            with open(summary, encoding="utf-8") as f:
                measured[name] = json.load(f)["measured"]
    print("| pieces | own peak | measured | with workspaces | ms a step | "
          "predicted ms | loss |")
    print("|---|---|---|---|---|---|---|")
    for name in SETTINGS:
        predicted = plans[name]["predicted"]
        chosen = next(d["choice"] for d in plans[name]["decisions"]
                      if d["what"] == "loss")
        worst = max(harness.relative(a, b)
                    for a, b in zip(losses[name], losses["1"]))
        own = predicted["memory"]["own_peak_bytes"]
        print(f"| {name if name != 'auto' else 'auto: ' + chosen} "
              f"| {own / 1e6:.1f} MB "
              f"| {measured[name]['own_peak_bytes'] / own - 1:+.4%} "
              f"| {measured[name]['peak_bytes'] / 1e6:.1f} MB "
              f"| {1e3 * statistics.median(seconds[name]):.0f} "
              f"| {1e3 * predicted['time']['step_s']:.0f} | {worst:.1e} |",
              flush=True)
        assert measured[name]["own_peak_bytes"] == own
        assert worst < (1e-6 if args.precision == "fp32" else 5e-3)
    return 0


if __name__ == "__main__":
    sys.exit(main())
