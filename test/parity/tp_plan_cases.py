"""Tensor-parallel plans against the installed transformers: which parameters of
a model are sharded over `tp`, and along which dimension."""
import json
import re

import harness
from harness import check

RANKS = 2
# Of families that transformers has a plan for.
PUBLISHED = ("llama", "mistral", "qwen2", "gemma", "gemma2", "gemma3_text",
             "qwen3", "qwen3_moe", "mixtral", "olmo2", "phi3", "gpt_neox",
             "deepseek_v3", "nemotron_h", "granite", "smollm3", "starcoder2",
             "qwen2_moe", "phi", "olmo3", "exaone4", "glm4", "cohere",
             "cohere2", "glm", "arcee", "seed_oss", "olmoe", "glm4_moe",
             "glm4_moe_lite", "ministral", "ministral3", "ernie4_5",
             "granitemoe")
# A text model of such a family beside a tower, which is whole.
COMPOSED = ("gemma3", "mistral3", "llava", "qwen2_vl", "qwen2_5_vl", "qwen3_vl")
# With a plan of experts alone.
EXPERTS = PUBLISHED + ("gpt_oss",)
# Families without: what is sharded there, by the end of a module's name.
DERIVED = {
    "gpt2": ({"c_attn", "c_fc", "wte", "lm_head"}, {"c_proj"}),
    "gpt_bigcode": ({"c_fc", "wte", "lm_head"}, {"c_proj"}),
    "falcon": ({"dense_h_to_4h", "word_embeddings", "lm_head"},
               {"dense", "dense_4h_to_h"}),
    "mpt": ({"Wqkv", "up_proj", "wte", "lm_head"}, {"out_proj", "down_proj"}),
    "stablelm": ({"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj",
                  "embed_tokens", "lm_head"},
                 {"o_proj", "down_proj"}),
    "hunyuan_v1_dense": (
        {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "embed_tokens",
         "lm_head"}, {"o_proj", "down_proj"}),
    "opt": ({"q_proj", "k_proj", "v_proj", "fc1", "embed_tokens", "lm_head"},
            {"out_proj", "fc2"}),
    "whisper": ({"q_proj", "k_proj", "v_proj", "fc1", "embed_tokens",
                 "proj_out"}, {"out_proj", "fc2"}),
    "bert": ({"query", "key", "value", "intermediate.dense",
              "word_embeddings", "predictions.decoder"},
             {"output.dense"}),
    "roberta": ({"query", "key", "value", "intermediate.dense",
                 "word_embeddings", "lm_head.decoder"},
                {"output.dense"}),
    "vit": ({"q_proj", "k_proj", "v_proj", "fc1"}, {"o_proj", "fc2"}),
    "t5": ({"q", "k", "v", "wi", "shared", "lm_head"}, {"o", "wo"}),
}
SIZES = dict(
    hidden_size=16, intermediate_size=32, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, head_dim=4, vocab_size=64,
    n_embd=16, n_layer=2, n_head=4, n_positions=32, n_inner=32, d_model=16,
    n_heads=4, n_layers=2, d_ff=32, d_kv=4, num_layers=2, num_heads=4,
    encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=32, decoder_ffn_dim=32,
    ffn_dim=32, word_embed_proj_dim=16, pad_token_id=0, image_size=32,
    patch_size=16, moe_intermediate_size=32, num_experts=4,
    num_local_experts=4, max_position_embeddings=32, n_routed_experts=4,
    n_group=2, topk_group=1, num_experts_per_tok=2, first_k_dense_replace=1,
    q_lora_rank=8, kv_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4,
    v_head_dim=4)
HEADS = {"whisper": "WhisperForConditionalGeneration",
         "t5": "T5ForConditionalGeneration", "bert": "BertForMaskedLM",
         "roberta": "RobertaForMaskedLM",
         "vit": "ViTForImageClassification"}


def models(families):
    """Each family's model without memory, its embeddings not tied."""
    import torch
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import \
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

    for family in families:
        made = CONFIG_MAPPING[family]
        known = made().to_dict()
        config = made(**{k: v for k, v in SIZES.items() if k in known})
        config.tie_word_embeddings = False
        name = HEADS.get(family) or CAUSAL[family]
        with torch.device("meta"):
            model = getattr(transformers, name)(config)
        yield family, model


def composed():
    """Each composed model without memory, of two layers a part."""
    import torch
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import \
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as READERS

    for family in COMPOSED:
        config = CONFIG_MAPPING[family]()
        for part in (config.text_config, config.vision_config):
            for layers in ("num_hidden_layers", "depth"):
                if hasattr(part, layers):
                    setattr(part, layers, 2)
            if getattr(part, "layer_types", None):
                part.layer_types = part.layer_types[:2]
            part.tie_word_embeddings = False
        config.tie_word_embeddings = False
        with torch.device("meta"):
            model = getattr(transformers, READERS[family])(config)
        yield family, model


def sharded(context, family, model, axis="tp", option=""):
    """{parameter: (dimension, layers in it)} that import-tp-plan shards."""
    lines = [f'sharding.mesh @mesh [#sharding.axis<"{axis}" = {RANKS}>]']
    lines += [f"sharding.module {json.dumps(name)} class "
              f'"{type(module).__name__}"'
              for name, module in model.named_modules()]
    for name, value in model.named_parameters():
        shape = "".join(f"{s}x" for s in value.shape)
        lines.append(f"sharding.param {json.dumps(name)} : "
                     f"tensor<{shape}f32> init <zeros>")
    path = context.path(f"{family}-{axis}.mlir")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    output = context.path(f"{family}-{axis}.out.mlir")
    harness.run([context.binary("accel-opt"), "opt", path,
                 "--import-tp-plan" + option, "-o", output])
    with open(output, encoding="utf-8") as f:
        text = f.read()
    found = {}
    for name, dims in re.findall(
            r'sharding\.param "([^"]+)"[^\n]*spec = #sharding\.spec<'
            r"((?:\[[^]]*\](?:, )?)+)", text):
        axes = re.findall(r"\[([^]]*)\]", dims)
        ((dim, of),) = [(i, of) for i, of in enumerate(axes) if of]
        layers, _, over = of.rpartition(", ")
        check(over == f'"{axis}"', f"{name}: {dims}")
        found[name] = dim, int(layers or 1)
    return found


def dimension(style, module, parameter):
    """What transformers shards of a parameter by this style: (dimension, layers
    of which each is sharded)."""
    rank = parameter.dim()
    flipped = type(module).__name__ == "Conv1D"
    if style in ("colwise", "colwise_gather_output"):
        return 0 if rank == 1 else rank - 1 if flipped else rank - 2, 1
    if style == "packed_colwise":  # gate and up projections of experts
        return rank - 2, 2
    if style == "embedding_rowwise":
        return 0, 1
    if style in ("rowwise", "rowwise_split_input"):
        return None if rank == 1 else \
            (rank - 2 if flipped else rank - 1, 1)
    # Norms of heads, what heads share and experts' modules are not sharded.
    check(style in ("replicated_with_grad_allreduce", "moe_tp_experts",
                    "mla_kv_a_proj"),
          f"an unknown style {style}")
    return None


def as_planned(context, family, model):
    """Compares what is sharded with the model's plan in transformers, and
    returns the number of sharded parameters and the rules that apply."""
    plan = model.tp_plan
    modules, wanted, used = dict(model.named_modules()), {}, set()
    for name, parameter in model.named_parameters():
        owner = name.rpartition(".")[0]
        for of in (name, owner):
            pattern = re.sub(r"\.\d+(\.|$)", r".*\1", of)
            if pattern in plan:
                used.add(pattern)
                dim = dimension(plan[pattern], modules[owner], parameter)
                if dim is not None:
                    wanted[name] = dim
                break
    found = sharded(context, family, model, option="=as-transformers")
    check(found == wanted, f"{family}: shards differ in "
          f"{sorted(set(found.items()) ^ set(wanted.items()))}")
    return len(found), used


def published(context):
    count = 0
    for family, model in models(PUBLISHED):
        check(model.config.base_model_tp_plan,
              f"{family} has no plan any more")
        shards, used = as_planned(context, family, model)
        check(len(used) >= 3,
              f"{family}: of {model.tp_plan} only {used} is there")
        count += shards
    for family, model in composed():
        shards, used = as_planned(context, family, model)
        # The text model of Qwen3-VL has no plan: its head is sharded alone.
        check(len(used) >= (1 if family == "qwen3_vl" else 3),
              f"{family}: of {model.tp_plan} only {used} is there")
        count += shards
    return (f"{len(PUBLISHED) + len(COMPOSED)} families, {count} sharded "
            "parameters")


def derived(context):
    """Columns, then rows; every linear layer between blocks but those that hold
    layers of different sizes, and the vocabulary of the table and the head."""
    count = 0
    for family, model in models(DERIVED):
        config = type(model.config)
        check(not getattr(config, "base_model_tp_plan", None),
              f"transformers has a plan of {family} now: use it")
        columns, rows = DERIVED[family]
        found = sharded(context, family, model)
        seen = set()
        for name, (dim, layers) in found.items():
            owner, _, kind = name.rpartition(".")
            flipped = type(model.get_submodule(owner)).__name__ == "Conv1D"
            column = any(("." + owner).endswith("." + end) for end in columns)
            row = any(("." + owner).endswith("." + end) for end in rows)
            check(column != row, f"{family}: {name} is sharded")
            seen.add(next(end for end in columns | rows
                          if ("." + owner).endswith("." + end)))
            check(kind == "weight" or column, f"{family}: {name} is sharded")
            first = kind == "bias" or column != flipped
            check(dim == (0 if first else 1), f"{family}: {name} along {dim}")
            packed = owner.endswith(("c_attn", "Wqkv"))
            check(layers == (3 if packed else 1), f"{family}: {name} is "
                  f"{layers} layers")
        check(seen == columns | rows,
              f"{family}: nothing of {sorted((columns | rows) - seen)}")
        blocks = {re.sub(r"^(.*?\.\d+)\..*", r"\1", name) for name in found}
        check(len(blocks) >= 2, f"{family}: only {blocks}")
        count += len(found)
    return f"{len(DERIVED)} families, {count} sharded parameters"


def experts(context):
    """Of the families whose plan names experts: all of them over `ep`, and
    nothing else."""
    count, mixtures = 0, 0
    for family, model in models(EXPERTS):
        plan = {f"{model.base_model_prefix}.{pattern}": style for pattern, style
                in (model.config.base_model_ep_plan or {}).items()}
        check(set(plan.values()) <= {"grouped_gemm", "ep_dispatch_experts"},
              f"{family}: an unknown style in {plan}")
        wanted = {name: (0, 1) for name, _ in model.named_parameters()
                  if plan.get(re.sub(r"\.\d+(\.|$)", r".*\1", name)) ==
                  "grouped_gemm"}
        found = sharded(context, family, model, "ep")
        check(found == wanted, f"{family}: {found}, transformers {wanted}")
        count += len(found)
        mixtures += bool(plan)
    check(mixtures >= 2 and count >= 8, f"{count} of {mixtures} mixtures")
    return f"{mixtures} mixtures, {count} sharded parameters"


CASES = [("transformers' plans", published), ("derived plans", derived),
         ("transformers' experts", experts)]
