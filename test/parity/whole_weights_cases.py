"""A 4-bit base under FSDP2: Accelerate leaves its bytes out of the shards, and plan counts them so."""
import json

import adapter_cases
import harness
import jobs
import whole_weights
from harness import check

ADAPTER = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "down_proj"], "task_type": "CAUSAL_LM"}
MODEL = jobs.variant(hidden_size=256, intermediate_size=640, num_attention_heads=4, num_key_value_heads=2,
                     vocab_size=1031, attention_bias=False, mlp_bias=False, pad_token_id=None,
                     dtype="bfloat16")
CONFIG = """distributed_type: FSDP
mixed_precision: bf16
num_processes: 2
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer
  fsdp_cpu_ram_efficient_loading: false
"""


def held(context):
    folder, path = context.path("model"), context.path("fsdp2.yaml")
    jobs.write_config(folder, MODEL)
    adapter_cases.write_adapter(context.path("lora"), ADAPTER)
    with open(path, "w", encoding="utf-8") as file:
        file.write(CONFIG)
    found = harness.in_python(whole_weights.held,
                              [({}, (path, folder, ADAPTER, packed)) for packed in (False, True)],
                              context.path("torch.out"))
    (_, nothing), (_, whole) = found
    layers = MODEL["num_hidden_layers"]
    check(not nothing and len(whole) == 7 * layers, f"whole are {nothing} and {whole}")
    check(all("lora_" not in name and name.endswith("weight") for name in whole), whole[:3])
    got = []
    for quantize in ([], ["--quantize", "nf4,double_quant"]):
        out = harness.run([context.binary("accel-opt"), "plan", path, "--model", folder, "--adapter",
                           context.path("lora"), "--seq-len", "32", "--micro-batch", "1", "--target", "h200",
                           "--format", "json", *quantize])
        got.append(json.loads(out)["memory"]["persistent_bytes"])
    wanted = [total for total, _ in found]
    check(got[1] - got[0] == wanted[1] - wanted[0],
          f"plan has {got}, Accelerate {wanted}: {got[1] - got[0]} and {wanted[1] - wanted[0]} more")
    return f"{wanted[1] - wanted[0]} bytes more a rank, as Accelerate holds"


CASES = [("fsdp2-four-bit", held)]
