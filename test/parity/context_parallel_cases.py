"""The peak of a step with context parallelism beside FSDP2, against torch's own
ring attention: units over dp_shard x cp, on fake ranks, under MemTracker."""
from executor_cases import fsdp2_case

CASES = [
    ("peak-two", fsdp2_case("even", 2, 64, 8, False, cp=2)),
    ("peak-four", fsdp2_case("even", 2, 64, 8, False, cp=4)),
    ("peak-loss", fsdp2_case("even", 16, 128, 4, False, cp=2)),
    ("peak-checkpoint", fsdp2_case("even", 16, 64, 8, True, cp=2)),
    ("peak-bf16", fsdp2_case("even", 2, 64, 8, False, True, "bfloat16", cp=2)),
]
