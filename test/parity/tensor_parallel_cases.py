"""The peak of a step with tensor parallelism beside FSDP2, against DTensor's:
models that transformers splits, on fake ranks, under MemTracker."""
from executor_cases import fsdp2_case

CASES = [
    ("peak-two", fsdp2_case("even", 2, 64, 8, False, tp=2)),
    ("peak-four", fsdp2_case("even", 2, 64, 8, False, tp=4)),
    ("peak-loss", fsdp2_case("even", 16, 128, 4, False, tp=2)),
    ("peak-checkpoint", fsdp2_case("even", 16, 64, 8, True, tp=2)),
    ("peak-adapter", fsdp2_case(
        "even", 16, 64, 4, False, tp=2,
        adapter=dict(r=8, target_modules=["q_proj", "v_proj", "up_proj"]))),
    ("peak-bf16", fsdp2_case("even", 2, 64, 8, False, True, "bfloat16",
                             tp=2)),
]
