"""accel-run shares sequences among ranks: what they learn is what data-parallel
ranks learn, and what they hold is what the plan says."""
import jobs
from tensor_training_cases import (as_alone, as_torch_splits,
                                   moves_to_other_meshes)
from training_cases import BF16, LOSS_BF16, TURNED, WEIGHTS_BF16, case

CP, BOTH = {"cp": 2}, {"cp": 2, "tp": 2}
SP, SP_TP = {"sp": 2}, {"sp": 2, "tp": 2}
WINDOW = {**jobs.GEMMA, "architectures": ["Gemma2ForCausalLM"],
          "model_type": "gemma2", "sliding_window": 8,
          "query_pre_attn_scalar": 16, "vocab_size": 256,
          "num_attention_heads": 4, "num_key_value_heads": 2}


def other_meshes(axis):
    return lambda context: moves_to_other_meshes(context, axis)


CASES = [
    ("cp2", case("halves", ranks=2, cp=2, max_grad_norm=0.5)),
    ("cp2-dp2", case("halves", ranks=4, cp=2, max_grad_norm=0.5)),
    ("cp4", case("halves", ranks=4, cp=4, steps=20, learned=1.01)),
    ("cp2-tp2", case("halves", ranks=4, cp=2, tp=2, steps=20,
                     max_grad_norm=1.0, learned=1.01)),
    ("cp2-dp2-accumulation", case("halves", ranks=4, cp=2, accumulation=2,
                                  steps=20, learned=1.01)),
    ("cp2-full-checkpointing",
     case("halves-tied", ranks=2, cp=2, activation_checkpointing="full",
          steps=20, learned=1.01)),
    ("cp2-bf16", case("halves", ranks=2, cp=2, precision=BF16, loss=LOSS_BF16,
                      weights=WEIGHTS_BF16)),
    ("cp2-ministral3", case("halves-ministral3", ranks=2, cp=2, steps=20,
                            max_grad_norm=1.0, learned=1.01, **TURNED)),
    ("cp2-hunyuan", case("halves-hunyuan", ranks=2, cp=2, steps=20,
                         max_grad_norm=1.0, learned=1.01, **TURNED)),
    ("cp2-qwen3", case("halves-qwen3", ranks=2, cp=2, steps=20,
                       max_grad_norm=1.0, learned=1.01, **TURNED)),
    ("dropout", as_alone(jobs.PEAKED["halves-dropout"], axes=CP, steps=6,
                         evaluation={"every": 3, "batches": 2})),
    ("adapter", as_alone(jobs.PEAKED["halves"], {"adapter": {
        "r": 4, "lora_alpha": 8, "lora_dropout": 0.1, "target_modules": [
            "q_proj", "o_proj", "gate_proj", "down_proj"]}}, axes=CP)),
    ("loss-in-pieces", as_alone(jobs.PEAKED["halves"], {"loss_chunks": 4},
                                axes=CP)),
    ("gpt2", as_alone({**jobs.GPT2, "vocab_size": 256}, axes=BOTH)),
    ("window", as_alone(WINDOW, axes=CP)),
    ("qwen3-moe", as_alone(jobs.MODELS["qwen3-moe"], axes=CP)),
    ("gpt-oss", as_alone(jobs.MODELS["gpt-oss"], axes=CP)),
    ("sequence", as_alone(jobs.PEAKED["halves"], {"sequence_parallel": True},
                          axes=BOTH, accumulation=2)),
    ("sgd", as_alone(jobs.PEAKED["halves-tied"], axes=CP, optimizer={
        "name": "sgd", "lr": 0.05, "momentum": 0.9, "max_grad_norm": 0.5})),
    ("torch-ring", as_torch_splits("cp", cp=2)),
    ("other-meshes", other_meshes("cp")),
    # Tokens for heads.
    ("sp2", case("halves", ranks=2, sp=2, max_grad_norm=0.5)),
    ("sp4-repeated-heads", case("halves", ranks=4, sp=4, steps=20,
                                learned=1.01)),
    ("sp2-tp2", case("halves-tied", ranks=4, sp=2, tp=2, steps=20,
                     max_grad_norm=1.0, learned=1.01)),
    ("sp2-full-checkpointing",
     case("halves", ranks=4, sp=2, activation_checkpointing="full",
          accumulation=2, steps=20, learned=1.01)),
    ("sp2-bf16", case("halves", ranks=2, sp=2, precision=BF16, loss=LOSS_BF16,
                      weights=WEIGHTS_BF16)),
    ("sp2-dropout", as_alone(jobs.PEAKED["halves-dropout"], axes=SP, steps=6,
                             evaluation={"every": 3, "batches": 2})),
    ("sp2-adapter", as_alone(jobs.PEAKED["halves"], {"adapter": {
        "r": 4, "lora_alpha": 8, "lora_dropout": 0.1, "target_modules": [
            "q_proj", "o_proj", "gate_proj", "down_proj"]}}, axes=SP)),
    ("sp2-gpt2", as_alone({**jobs.GPT2, "vocab_size": 256}, axes=SP_TP)),
    ("sp2-window", as_alone(WINDOW, axes=SP)),
    ("sp2-qwen3-moe", as_alone({**jobs.MODELS["qwen3-moe"],
                                "num_attention_heads": 2}, axes=SP)),
    ("sp2-sequence", as_alone(jobs.PEAKED["halves"],
                              {"sequence_parallel": True}, axes=SP_TP)),
    ("sp2-loss-in-pieces", as_alone(jobs.PEAKED["halves"], {"loss_chunks": 4},
                                    axes=SP)),
    ("sp2-other-meshes", other_meshes("sp")),
]

# Functions of these families on the same axes are in partition_cases; dtypes and
# recomputation are those of cp.
REPEATED = {"cp2-qwen3", "sp2-gpt2", "sp2-window", "sp2-qwen3-moe",
            "sp2-full-checkpointing", "sp2-bf16"}
