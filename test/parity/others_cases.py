"""Architectures that have no frontend of their own, as .pt2: planned, trained on
one process, and compared with PyTorch."""
import json
import os

import export_cases
import harness
import jobs
from harness import check

LOSS = 1e-5
STEPS = 3
SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 4, "vocab_size": 96,
         "max_position_embeddings": 128, "pad_token_id": 0}
GROUPED = {**SIZES, "num_key_value_heads": 2, "bos_token_id": 1,
           "eos_token_id": 2}
EXPERTS = {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2,
           "moe_intermediate_size": 16}
IMAGES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4, "image_size": 16, "patch_size": 8}
SEQUENCES = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
             "encoder_attention_heads": 4, "decoder_attention_heads": 4,
             "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": 96,
             "max_position_embeddings": 128}
MIXTURE = {**EXPERTS, "shared_expert_intermediate_size": 32}

# architecture -> (model type, its sizes). They differ in what they compute:
# shared layers, ALiBi, interleaved rotary embeddings, local attention, latent
# attention, sinks, state spaces, gated delta rules, tables without gradients.
MODELS = {
    "AlbertForMaskedLM": ("albert", {**SIZES, "embedding_size": 16}),
    "BartForConditionalGeneration": ("bart", SEQUENCES),
    "BertForTokenClassification": ("bert", SIZES),
    "BloomForCausalLM": ("bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4,
                                   "vocab_size": 96}),
    "DeepseekV3ForCausalLM": ("deepseek_v3", {
        **EXPERTS, "num_key_value_heads": 4, "n_routed_experts": 4,
        "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8, "v_head_dim": 8, "n_group": 2, "topk_group": 1,
        "first_k_dense_replace": 1}),
    "Dinov2ForImageClassification": ("dinov2", IMAGES),
    "ElectraForPreTraining": ("electra", {**SIZES, "embedding_size": 16}),
    "GlmForCausalLM": ("glm", {**GROUPED, "head_dim": 8}),
    "GPTJForCausalLM": ("gptj", {"n_embd": 32, "n_layer": 2, "n_head": 4,
                                 "vocab_size": 96, "n_positions": 128,
                                 "rotary_dim": 4}),
    "GPTNeoForCausalLM": ("gpt_neo", {
        "hidden_size": 32, "num_layers": 2, "num_heads": 4, "vocab_size": 96,
        "attention_types": [[["global", "local"], 1]],
        "max_position_embeddings": 128}),
    "GptOssForCausalLM": ("gpt_oss", {**EXPERTS, "head_dim": 8,
                                      "num_local_experts": 4}),
    "LlamaForSequenceClassification": ("llama", GROUPED),
    "MambaForCausalLM": ("mamba", {"hidden_size": 32, "num_hidden_layers": 2,
                                   "vocab_size": 96, "state_size": 4}),
    "PegasusForConditionalGeneration": ("pegasus", SEQUENCES),
    "Qwen2MoeForCausalLM": ("qwen2_moe", MIXTURE),
}


def make_data(folder, inputs, model_type):
    """Four rows for each input that the program has."""
    import numpy as np

    rng = np.random.default_rng(1)
    data = {}
    for name, (shape, whole) in inputs.items():
        shape = [4, *shape[1:]]
        if not whole:
            data[name] = rng.standard_normal(shape).astype(np.float32)
        else:
            few = name == "labels" and (
                len(shape) == 1 or model_type in ("electra", "bert"))
            data[name] = rng.integers(0, 2, shape) if few else rng.integers(
                3, 96, shape)
        np.save(os.path.join(folder, name + ".npy"), data[name])
    return data


def inputs_of(path):
    """{input: (shape, is of integers)}"""
    import torch

    program = torch.export.load(path)
    names = program.graph_signature.user_inputs
    values = {n.name: n.meta["val"] for n in program.graph.nodes
              if n.op == "placeholder" and n.name in names}
    return {n: (list(v.shape), not v.is_floating_point())
            for n, v in values.items()}


def loss_of(network, architecture, batch):
    """Next tokens are labels as they are: data comes shifted."""
    import torch

    if "CausalLM" not in architecture:
        return network(**batch).loss
    labels = batch.pop("labels")
    logits = network(**batch, use_cache=False).logits.float()
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                             labels.flatten())


def compare(context, architecture):
    import torch
    import transformers

    model_type, sizes = MODELS[architecture]
    folder = context.path(architecture)
    os.makedirs(folder, exist_ok=True)
    config = transformers.AutoConfig.for_model(model_type, **sizes)
    for key, value in vars(config).items():
        if "drop" in key and isinstance(value, float):
            setattr(config, key, 0.0)
    torch.manual_seed(0)
    network = getattr(transformers, architecture)._from_config(
        config, dtype=torch.float32)
    network.train()
    network.save_pretrained(os.path.join(folder, "model"))
    program = os.path.join(folder, "model.pt2")
    export_cases.export(context, os.path.join(folder, "model"), "-o", program,
                        "--weights")
    data = make_data(folder, inputs_of(program), model_type)
    job = {"accelerate": jobs.accelerate_config("single", 1, ""),
           "model": "model.pt2", "init": "pretrained",
           "data": {"arrays": {n: n + ".npy" for n in data},
                    "micro_batch": 2, "shuffle": False},
           "optimizer": {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1},
           "schedule": {"steps": STEPS, "warmup_steps": 0,
                        "decay": "constant"}, "target": "cpu"}
    jobs.write_job(folder, job)
    path = os.path.join(folder, "plan.json")
    plan = harness.plan(context, os.path.join(folder, "job.yaml"), path)
    log = harness.execute(context, path, 1, os.path.join(folder, "log.jsonl"))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3,
                                  weight_decay=0.1)
    worst = 0.0
    check(len(log) == STEPS, f"{len(log)} steps")
    for step, line in enumerate(log):
        rows = [(step * 2 + i) % 4 for i in range(2)]
        loss = loss_of(network, architecture,
                       {n: torch.as_tensor(v[rows]) for n, v in data.items()})
        worst = max(worst, harness.relative(line["loss"], loss.item()))
        check(worst < LOSS, f"{architecture}, step {step}: loss {line['loss']}, "
                            f"PyTorch {loss.item()}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    opaque = {i["op"] for f in plan["functions"] for i in f["instructions"]
              if i["kind"] == "opaque"}
    return worst, opaque


def trained(context):
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    worst, opaque = 0.0, set()
    for architecture in MODELS:
        try:
            error, names = compare(context, architecture)
        except Exception as problem:
            raise type(problem)(f"{architecture}: {problem}") from problem
        worst, opaque = max(worst, error), opaque | names
    return (f"{len(MODELS)} architectures within {worst:.1e}, not modelled: "
            f"{json.dumps(sorted(opaque))}")


CASES = [("trained", trained)]
