"""DoRA as PEFT computes it: what autograd saves of each layer, and the peak of a
step under FSDP2."""
from executor_cases import adapted_case, fsdp2_case

DORA = {  # model, LoraConfig
    "dora": ("gqa", dict(r=4, use_dora=True, target_modules=[
        "q_proj", "v_proj", "down_proj"])),
    "dora-bias": ("mha-bias", dict(r=3, use_dora=True,
                                   target_modules="all-linear")),
    "dora-dropout": ("gqa", dict(r=4, use_dora=True, lora_dropout=0.1,
                                 target_modules=["q_proj", "o_proj"])),
    "dora-conv1d": ("gpt2", dict(r=2, use_dora=True, fan_in_fan_out=True,
                                 target_modules=["c_attn", "c_proj"])),
}

CASES = [
    ("saved", adapted_case("float32", adapted=DORA)),
    ("saved-bf16", adapted_case("bfloat16", adapted=DORA)),
    ("saved-autocast", adapted_case("bfloat16", autocast=True, adapted=DORA)),
    ("saved-autocast-fp32", adapted_case("float32", autocast=True,
                                         adapted=DORA)),
    ("peak-fsdp2", fsdp2_case("wide", 2, 64, 4, False, adapter=dict(
        r=8, use_dora=True, target_modules=["q_proj", "v_proj"]))),
    ("peak-fsdp2-tokens", fsdp2_case("gqa", 8, 128, 2, False, adapter=dict(
        use_dora=True, target_modules="all-linear"))),
]
