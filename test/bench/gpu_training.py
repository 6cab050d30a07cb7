#!/usr/bin/env python3
"""Jobs of transformers' Trainer on one GPU: what plan says, and what is true.

  gpu_training.py prepare DIR   models (config.json), accelerate's YAML, and
                                TrainingArguments of every job
  gpu_training.py run DIR       there: trains each for a few steps on random
                                tokens, writes DIR/measured.json
  gpu_training.py compare DIR   what accel-opt predicts beside it, or beside
                                what is committed (Inputs/h200_training.json)

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

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
COMMITTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs",
                         "h200_training.json")
COMMITTED_TORCH = "2.11"
STEPS = 8


def llama(layers, hidden, ffn, heads, kv, vocab, tied, **more):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
            "hidden_size": hidden, "intermediate_size": ffn,
            "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv, "head_dim": hidden // heads,
            "vocab_size": vocab, "tie_word_embeddings": tied,
            "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
            "rope_theta": 500000.0, "hidden_act": "silu",
            "bos_token_id": 1, "eos_token_id": 2, **more}


LLAMA_1B = llama(16, 2048, 8192, 32, 8, 128256, True)
LLAMA_3B = llama(28, 3072, 8192, 24, 8, 128256, True)
LLAMA_8B = llama(32, 4096, 14336, 32, 8, 128256, False)
LLAMA_8B_8 = llama(8, 4096, 14336, 32, 8, 128256, False)
QWEN3_06B = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
    "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 151936, "tie_word_embeddings": True,
    "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
    "rope_theta": 1000000, "hidden_act": "silu"}
QWEN2_15B = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
    "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
    "num_attention_heads": 12, "num_key_value_heads": 2,
    "vocab_size": 151936, "tie_word_embeddings": True,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0, "hidden_act": "silu"}
GPT2_MEDIUM = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
    "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_positions": 1024,
    "vocab_size": 50257, "activation_function": "gelu_new",
    "embd_pdrop": 0.1, "attn_pdrop": 0.1, "resid_pdrop": 0.1,
    "bos_token_id": 50256, "eos_token_id": 50256}
GEMMA2_2B = {
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2",
    "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "vocab_size": 256000, "tie_word_embeddings": True, "sliding_window": 4096,
    "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
    "query_pre_attn_scalar": 256, "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "hidden_activation": "gelu_pytorch_tanh"}
MOE = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
    "hidden_size": 1024, "intermediate_size": 3072,
    "moe_intermediate_size": 512, "num_hidden_layers": 12,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64,
    "num_experts": 32, "num_experts_per_tok": 4, "norm_topk_prob": True,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936,
    "tie_word_embeddings": True, "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "hidden_act": "silu"}
MISTRAL_4 = {
    "architectures": ["MistralForCausalLM"], "model_type": "mistral",
    "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 4,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 32000, "tie_word_embeddings": False, "sliding_window": 4096,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "hidden_act": "silu"}
PHI3_16 = {
    "architectures": ["Phi3ForCausalLM"], "model_type": "phi3",
    "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 32,
    "vocab_size": 32064, "tie_word_embeddings": False, "sliding_window": None,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
    "original_max_position_embeddings": 4096, "rope_theta": 10000.0,
    "hidden_act": "silu", "embd_pdrop": 0.0, "resid_pdrop": 0.0,
    "attention_dropout": 0.0, "pad_token_id": 32000}
BERT_LARGE = {
    "architectures": ["BertForMaskedLM"], "model_type": "bert",
    "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
    "num_attention_heads": 16, "vocab_size": 30522,
    "max_position_embeddings": 512, "type_vocab_size": 2,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1, "layer_norm_eps": 1e-12,
    "pad_token_id": 0}
T5_BASE = {
    "architectures": ["T5ForConditionalGeneration"], "model_type": "t5",
    "d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12,
    "num_decoder_layers": 12, "num_heads": 12, "vocab_size": 32128,
    "relative_attention_num_buckets": 32, "dropout_rate": 0.1,
    "feed_forward_proj": "relu", "is_encoder_decoder": True,
    "tie_word_embeddings": True, "decoder_start_token_id": 0,
    "pad_token_id": 0, "eos_token_id": 1, "layer_norm_epsilon": 1e-6}
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
LINEARS = [*ATTENTION, "gate_proj", "up_proj", "down_proj"]


def job(config, sequence, batch, precision="bf16", weights="float32",
        lora=None, attention=None, **arguments):
    return {"config": config, "sequence": sequence, "precision": precision,
            "weights": weights, "lora": lora, "attention": attention,
            "arguments": {"per_device_train_batch_size": batch, **arguments}}


JOBS = {
    "llama1b-amp": job(LLAMA_1B, 2048, 4),
    "llama1b-amp-ckpt": job(LLAMA_1B, 2048, 8, gradient_checkpointing=True),
    "llama1b-bf16": job(LLAMA_1B, 4096, 2, weights="bfloat16"),
    "llama1b-bf16-accum": job(LLAMA_1B, 1024, 2, weights="bfloat16",
                              gradient_accumulation_steps=4),
    "llama1b-compile": job(LLAMA_1B, 2048, 4, weights="bfloat16",
                           torch_compile=True),
    "llama1b-fp32": job(LLAMA_1B, 1024, 2, precision="no"),
    "llama1b-tf32": job(LLAMA_1B, 1024, 4, precision="no", tf32=True),
    "llama1b-fp16": job(LLAMA_1B, 1024, 4, precision="fp16"),
    "llama1b-eager": job(LLAMA_1B, 1024, 4, attention="eager"),
    "llama3b-bf16-ckpt": job(LLAMA_3B, 4096, 2, weights="bfloat16",
                             gradient_checkpointing=True),
    "llama3b-adafactor": job(LLAMA_3B, 2048, 2, weights="bfloat16",
                             optim="adafactor"),
    "llama8b-lora-ckpt": job(LLAMA_8B, 4096, 1, weights="bfloat16",
                             lora=(16, LINEARS), gradient_checkpointing=True),
    "llama8b-lora": job(LLAMA_8B, 1024, 2, weights="bfloat16",
                        lora=(16, ATTENTION)),
    "llama8b-lora-amp": job(LLAMA_8B, 1024, 2, weights="bfloat16",
                            lora=(64, LINEARS), attention="sdpa"),
    "qwen06b-amp": job(QWEN3_06B, 4096, 2, optim="adamw_torch"),
    "qwen06b-bf16": job(QWEN3_06B, 2048, 8, weights="bfloat16"),
    "qwen15b-amp-ckpt": job(QWEN2_15B, 2048, 8, gradient_checkpointing=True),
    "qwen15b-lora": job(QWEN2_15B, 2048, 4, weights="bfloat16",
                        lora=(8, ATTENTION)),
    "gpt2m-fp16": job(GPT2_MEDIUM, 1024, 8, precision="fp16"),
    "gpt2m-fp32-sgd": job(GPT2_MEDIUM, 1024, 8, precision="no", optim="sgd"),
    "gemma2b-bf16": job(GEMMA2_2B, 2048, 2, weights="bfloat16",
                        attention="eager"),
    "gemma2b-amp-ckpt": job(GEMMA2_2B, 1024, 4, gradient_checkpointing=True,
                            attention="eager"),
    "moe-bf16": job(MOE, 2048, 4, weights="bfloat16"),
    "llama8b-bf16-ckpt": job(LLAMA_8B, 2048, 1, weights="bfloat16",
                             gradient_checkpointing=True),
    "mistral-window": job(MISTRAL_4, 8192, 1, weights="bfloat16"),
    "phi3-bf16": job(PHI3_16, 2048, 2, weights="bfloat16"),
    "bert-large-amp": job(BERT_LARGE, 512, 16, precision="fp16"),
    "t5-base-amp": job(T5_BASE, 512, 8),
    "llama8b-8layers": job(LLAMA_8B_8, 8192, 1),
    "moe-amp-ckpt": job(MOE, 2048, 4, gradient_checkpointing=True),
    "llama8b-8layers-compile": job(LLAMA_8B_8, 8192, 1, torch_compile=True),
}


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
                           "target_modules": modules}, f, indent=1)


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
    if spec["lora"]:
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig.from_pretrained(
            os.path.join(here, "adapter")))
        if arguments.get("gradient_checkpointing"):
            model.enable_input_require_grads()
    return spec, arguments, model


def tokens(sequence, vocabulary):
    """A dataset of random ones."""
    import torch

    class Tokens(torch.utils.data.Dataset):
        def __len__(self):
            return 4096

        def __getitem__(self, i):
            draw = torch.Generator().manual_seed(i)
            ids = torch.randint(0, min(50000, vocabulary), (sequence,),
                                generator=draw)
            return {"input_ids": ids, "labels": ids}

    return Tokens()


def train(here):
    """What one job took. Leaves the process with its memory."""
    import torch
    import transformers
    spec, arguments, model = build(here, "cuda")
    arguments = transformers.TrainingArguments(**arguments)
    times = []

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, *_, **__):
            torch.cuda.synchronize()
            times.append(time.perf_counter())

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    trainer = transformers.Trainer(
        model=model, args=arguments,
        train_dataset=tokens(spec["sequence"], model.config.vocab_size),
        callbacks=[Clock()],
        data_collator=transformers.default_data_collator)
    trainer.train()
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


def send(here, pipe):
    try:
        pipe.send(train(here))
    except Exception:  # the report says which
        pipe.send({"error": traceback.format_exc()[-800:]})


def apart(here, seconds):
    """train() in a forked process."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(False)
    child = fork.Process(target=send, args=(here, theirs))
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


def run(folder, chosen, limit):
    # Asking CUDA for devices would keep forked processes from using them.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    import peft  # noqa: F401
    import transformers  # noqa: F401
    path = os.path.join(folder, "measured.json")
    measured = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            measured = json.load(f)
    begin = time.time()
    for name in JOBS:
        if chosen and name not in chosen:
            continue
        if time.time() - begin > limit:
            print(f"{name}: no time left")
            continue
        at = time.time()
        measured[name] = apart(os.path.join(folder, name), 120)
        m = measured[name]
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
    done = subprocess.run(command, capture_output=True, text=True,
                          check=False)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        print(f"{name}: {done.stderr[-600:]}")
        return None


def measurements(folder):
    """Of each job, and the release of torch that ran the committed ones."""
    path = os.path.join(folder, "measured.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            return json.load(f), None
    with open(COMMITTED, encoding="utf-8") as f:
        return json.load(f)["jobs"], COMMITTED_TORCH


def compare(folder, binary, target):
    measured, torch = measurements(folder)
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
                        choices=["prepare", "run", "compare"])
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
    elif args.action == "run":
        run(os.path.abspath(args.dir), args.k, args.limit)
    else:
        compare(args.dir, args.accel_opt, args.target)


if __name__ == "__main__":
    main()
