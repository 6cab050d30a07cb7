"""`accel-opt lint` says error where Accelerate raises, and is silent about the
files that Accelerate's own questionnaire writes for a plain job."""
import json
import os
import random
import subprocess
import sys
import unittest.mock as mock

import harness
from harness import check


def lint(context, path, *options):
    """The findings of a file. Exit code 1 is an error in it."""
    out = subprocess.run([context.binary("accel-opt"), "lint", path, "--format",
                          "json", *options], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=60,
                         env=harness.clean_environment())
    check(out.returncode in (0, 1), f"{path}: {out.stdout}")
    return [d for d in json.loads(out.stdout)["diagnostics"]
            if d["code"] != "not-supported"]


def codes(findings, *severities):
    return sorted({d["code"] for d in findings
                   if d["severity"] in severities})


# --- units -------------------------------------------------------------------

SMALL = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2,
         "num_attention_heads": 4, "vocab_size": 64}
TIED = SMALL | {"tie_word_embeddings": True}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
      "vocab_size": 64}
OPT = {"hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 2,
       "num_attention_heads": 4, "vocab_size": 64, "word_embed_proj_dim": 32}
TRANSFORMER = "TRANSFORMER_BASED_WRAP"
# model_type, class, configuration, dtype, wrap classes by version
MODELS = [
    ("llama", "LlamaForCausalLM", SMALL, None,
     [None, "LlamaModel", "LlamaDecoderLayer,Embedding", "LlamaMLP",
      "ModuleList", "LlamaForCausalLM", "LlamaDecoderLayer,LlamaModel",
      "LlamaDecoderLayer,LlamaModel,Embedding,LlamaRMSNorm", "BertLayer",
      "LlamaDecoderLayer,SiLUActivation"]),
    ("llama", "LlamaForCausalLM", TIED, None,
     [None, "LlamaModel", "LlamaDecoderLayer,Embedding",
      "LlamaDecoderLayer,Linear", "LlamaRMSNorm"]),
    ("llama", "LlamaModel", SMALL, None, [None]),
    ("bert", "BertForMaskedLM", SMALL, None,
     [None, "BertLayer", "BertLayer,BertLMPredictionHead"]),
    ("bert", "BertModel", SMALL, None, [None]),
    ("roberta", "RobertaForMaskedLM", SMALL, None, [None, "RobertaLayer",
                                                    "BertLayer"]),
    ("distilbert", "DistilBertForMaskedLM",
     {"dim": 32, "hidden_dim": 40, "n_layers": 2, "n_heads": 4,
      "vocab_size": 64}, None, [None, "TransformerBlock"]),
    ("gpt2", "GPT2LMHeadModel",
     {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 64}, None,
     [None]),
    ("opt", "OPTForCausalLM", OPT, None, [None, "OPTDecoder"]),
    ("t5", "T5ForConditionalGeneration", T5, None, [None, "T5Stack"]),
    ("t5", "T5ForConditionalGeneration", T5, "float16", [None]),
    ("t5", "T5EncoderModel", T5, None, [None]),
    ("vit", "ViTForImageClassification",
     {k: v for k, v in SMALL.items() if k != "vocab_size"}, None,
     [None, "ViTLayer"]),
]


def wrapping(context):
    """Two ranks on CPU wrap each model and run its forward."""
    import transformers
    transformers.logging.set_verbosity_error()
    cases = []

    def add(kind, name, values, dtype, lines):
        folder = context.path(str(len(cases)))
        os.mkdir(folder)
        config = transformers.CONFIG_MAPPING[kind](**values)
        config.architectures, config.dtype = [name], dtype
        config.save_pretrained(folder)
        path = os.path.join(folder, "config.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write("distributed_type: FSDP\nnum_processes: 2\n"
                    "mixed_precision: 'no'\nfsdp_config:\n"
                    + "".join(f"  fsdp_{k}: {v}\n" for k, v in lines.items()))
        cases.append([path, folder])

    for kind, name, values, dtype, lists in MODELS:
        for version in (1, 2):
            for classes in lists:
                lines = {"version": version, "auto_wrap_policy": TRANSFORMER}
                if classes:
                    lines["transformer_layer_cls_to_wrap"] = classes
                add(kind, name, values, dtype, lines)
    for version in (1, 2):
        for count in (100, 5000, 200000):
            add("llama", "LlamaForCausalLM", SMALL, None,
                {"version": version, "auto_wrap_policy": "SIZE_BASED_WRAP",
                 "min_num_params": count})
        add("llama", "LlamaForCausalLM", TIED, None,
            {"version": version, "auto_wrap_policy": "NO_WRAP"})
    for strategy in ("SHARD_GRAD_OP", "NO_SHARD"):
        add("llama", "LlamaForCausalLM", TIED, None, {
            "version": 1, "auto_wrap_policy": TRANSFORMER,
            "sharding_strategy": strategy,
            "transformer_layer_cls_to_wrap": "LlamaDecoderLayer,Embedding"})
    with open(context.path("cases.json"), "w", encoding="utf-8") as f:
        json.dump(cases, f)
    harness.run([sys.executable, "-m", "torch.distributed.run",
                 "--nproc-per-node", "2", "--master-port", "29653",
                 os.path.join(harness.HERE, "lint_wrap.py"),
                 context.path("cases.json"), context.path("results.json")],
                timeout=280, expect=None)
    with open(context.path("results.json"), encoding="utf-8") as f:
        results = [json.loads(line) for line in f]
    check(len(results) == len(cases), f"{len(results)} of {len(cases)} ran")
    wrong, refused = [], 0
    for (path, folder), result in zip(cases, results):
        found = lint(context, path, "--model", folder)
        # It depends on how the script loads the model; here in its own dtype.
        mine = codes(found, "error") or \
            [c for c in codes(found, "warning") if c == "mixed-dtypes"]
        refused += bool(result["error"])
        if bool(mine) != bool(result["error"]):
            with open(path, encoding="utf-8") as f:
                wrong.append(f"{f.read()}Accelerate: {result['error']}\n"
                             f"here: {mine}")
    check(not wrong, f"{len(wrong)} of {len(cases)} differ:\n"
          + "\n\n".join(wrong[:5]))
    check(refused > 15, f"only {refused} are refused")
    return f"{len(cases)} files, {refused} refused by both"


# --- the questionnaire -------------------------------------------------------

GPU = 4
PLAIN = [(0, ()), (1, ()), (GPU, ()), (GPU, ("FullySharded",)),
         (GPU, ("DeepSpeed? ",)), (2, ()), (5, ()), (9, ())]


def write(context, name, config):
    path = context.path(name + ".yaml")
    config.to_yaml_file(path)
    return path


def plain_jobs(context):
    """All defaults, for each kind of machine: nothing to say."""
    import lint_wizard
    for number, (machine, wanted) in enumerate(PLAIN):
        config = lint_wizard.answer(random.Random(0), machine, wanted, True)
        path = write(context, str(number), config)
        found = [d for d in lint(context, path)
                 # Launch starts one process for MULTI_CPU, as it says there.
                 if d["code"] != "mpirun-needed"]
        with open(path, encoding="utf-8") as f:
            check(not found, f"{f.read()}{found}")
    return f"{len(PLAIN)} files"


# What the questionnaire itself gets wrong, or a person chose.
EXPECTED = {
    "ignored-key",       # FSDP1's strategy under a key that it does not read
    "wraps-nothing",     # NO_WRAP
    "offload-no-gain", "nvme-path", "wrap-container", "checkpointing-no-wrap",
    "loading-needs-sync", "mesh-no-shard", "mesh-axes", "mesh-product",
    "mpirun-needed", "process-count", "tp-model",
    "tp-import", "tp-skipped", "sharded-saving", "deepspeed-accumulation",
    "sequence-split", "unused-section", "mesh-needs-fsdp2", "unknown-key",
    "cuda-graphs",       # a mode that the questionnaire offers beside dynamic
}


# What torch stops with in a step, which no launch comes to.
IN_STEPS = {"graph-ends"}


def random_jobs(context, count=150, seed=3):
    """Errors where launch or the plugins raise, and nothing unexpected."""
    import accelerate_frontend
    import lint_wizard
    rng = random.Random(seed)
    wrong, refused, kinds = [], 0, {}
    for number in range(count):
        wanted = rng.choice([(), ("FullySharded",), ("FullySharded",),
                             ("DeepSpeed? ",)])
        config = lint_wizard.answer(rng, rng.choice([0, GPU, GPU, GPU]),
                                    wanted, False)
        path = write(context, str(number), config)
        kinds[config.distributed_type] = kinds.get(config.distributed_type,
                                                   0) + 1
        found = lint(context, path)
        error, _ = accelerate_frontend.judge(path)
        if not error and wanted == ("DeepSpeed? ",):
            error = deepspeed_error(path)
        refused += bool(error)
        surprising = set(codes(found, "error", "warning", "note")) - EXPECTED - IN_STEPS
        if bool(set(codes(found, "error")) - IN_STEPS) != bool(error) or surprising:
            with open(path, encoding="utf-8") as f:
                wrong.append(f"{f.read()}Accelerate: {error}\nhere: {found}")
    check(not wrong, f"{len(wrong)} of {count} differ:\n"
          + "\n\n".join(wrong[:3]))
    return f"{count} files {kinds}, {refused} refused by both"


# --- DeepSpeed ---------------------------------------------------------------

def deepspeed_error(path):
    """What DeepSpeedPlugin raises in a rank, or None."""
    import accelerate_frontend
    from accelerate.utils import DeepSpeedPlugin
    from accelerate.utils import launch as environment
    from accelerate.commands import launch as launching
    try:
        parser = launching.launch_command_parser()
        args = parser.parse_args(["--config_file", path, "script.py"])
        args.nondefault = []
        args, defaults, mixed = launching._validate_launch_command(args)
        fields = list(defaults.deepspeed_config.keys())
        if mixed:
            fields.append("mixed_precision")
        args.deepspeed_fields_from_accelerate_config = ",".join(fields)
        with mock.patch.object(environment, "is_port_in_use",
                               lambda port: False):
            _, env = environment.prepare_deepspeed_cmd_env(args)
        with mock.patch.dict(os.environ, {k: str(v) for k, v in env.items()},
                             clear=True), accelerate_frontend.devices():
            plugin = DeepSpeedPlugin()
            plugin.set_mixed_precision(args.mixed_precision.lower())
        return None
    except (Exception, SystemExit) as error:  # any way of failing counts
        return f"{type(error).__name__}: {error}"


FILES = {
    "good.json": {"zero_optimization": {"stage": 2}},
    "three.json": {"zero_optimization": {"stage": 3, "offload_param": {
        "device": "auto"}}, "gradient_accumulation_steps": "auto"},
    "empty.json": {},
    "no-zero.json": {"train_batch_size": "auto"},
}


def deepspeed(context, count=120, seed=5):
    """deepspeed_config with and without a file, by the plugin itself."""
    rng = random.Random(seed)
    for name, content in FILES.items():
        with open(context.path(name), "w", encoding="utf-8") as f:
            json.dump(content, f)
    choices = {
        "gradient_accumulation_steps": ["1", "4", "auto"],
        "gradient_clipping": ["1.0", "0.5", "auto", "none"],
        "zero_stage": ["0", "1", "2", "3", "'3'", "auto"],
        "offload_optimizer_device": ["none", "cpu", "nvme"],
        "offload_param_device": ["none", "cpu", "nvme"],
        "offload_optimizer_nvme_path": ["/nvme"],
        "zero3_init_flag": ["true", "false", "maybe"],
        "zero3_save_16bit_model": ["true", "false"],
    }
    wrong, refused = [], 0
    for number in range(count):
        lines = ["distributed_type: DEEPSPEED", "num_processes: 2"]
        if rng.random() < 0.3:
            lines.append("mixed_precision: "
                         + rng.choice(["bf16", "'no'", "fp16", "null"]))
        lines.append("deepspeed_config:")
        name = rng.choice([None, *FILES, "none"])
        if name:
            lines.append("  deepspeed_config_file: "
                         + (name if name == "none" else context.path(name)))
        for key in rng.sample(sorted(choices), rng.choice([0, 0, 1, 2, 3])):
            lines.append(f"  {key}: {rng.choice(choices[key])}")
        if lines[-1] == "deepspeed_config:":
            lines.append("  zero3_init_flag: false")
        path = context.path(f"{number}.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        error = deepspeed_error(path)
        refused += bool(error)
        mine = codes(lint(context, path), "error")
        if bool(mine) != bool(error):
            wrong.append("\n".join(lines) + f"\nAccelerate: {error}\n"
                         f"here: {mine}")
    check(not wrong, f"{len(wrong)} of {count} differ:\n"
          + "\n\n".join(wrong[:4]))
    check(count / 6 < refused < count * 5 / 6, f"{refused} refused")
    return f"{count} files, {refused} refused by both"


# --- heads -------------------------------------------------------------------

def heads(context):
    """tp_size 2 with heads that divide and heads that do not."""
    import transformers
    transformers.logging.set_verbosity_error()
    folders = []
    for q, kv in ((6, 6), (6, 3), (3, 3), (4, 1), (4, 2)):
        folders.append(context.path(f"{q}-{kv}"))
        config = transformers.LlamaConfig(
            hidden_size=24, head_dim=8, intermediate_size=40,
            num_hidden_layers=1, vocab_size=64, num_attention_heads=q,
            num_key_value_heads=kv)
        transformers.LlamaForCausalLM(config).save_pretrained(folders[-1])
    path = context.path("config.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("distributed_type: FSDP\nnum_processes: 4\n"
                "fsdp_config: {fsdp_version: 2, fsdp_auto_wrap_policy: "
                "TRANSFORMER_BASED_WRAP}\nparallelism_config:\n"
                "  parallelism_config_dp_shard_size: 2\n"
                "  parallelism_config_tp_size: 2\n")
    harness.run([sys.executable, "-m", "torch.distributed.run",
                 "--nproc-per-node", "2", "--master-port", "29654",
                 os.path.join(harness.HERE, "lint_heads.py"),
                 context.path("results"), *folders],
                timeout=280, expect=None)
    with open(context.path("results"), encoding="utf-8") as f:
        results = f.read().splitlines()
    check(len(results) == len(folders), f"{results}")
    for folder, result in zip(folders, results):
        mine = codes(lint(context, path, "--model", folder), "error")
        check(mine == ([] if result == "ok" else ["head-count"]),
              f"{folder}: transformers {result}, here {mine}")
    return f"{len(folders)} models"


def mesh(context):
    """Two ranks: all sizes 1 (as the questionnaire writes them) are fine."""
    paths = []
    for sizes in ({"dp_replicate": 1, "dp_shard": 1, "tp": 1, "cp": 1},
                  {"dp_shard": 2}, {"dp_replicate": 2}, {"dp_shard": 4},
                  {"dp_replicate": 2, "dp_shard": 1, "cp": 1}, {"tp": 2}):
        paths.append(context.path(f"{len(paths)}.yaml"))
        with open(paths[-1], "w", encoding="utf-8") as f:
            f.write("distributed_type: FSDP\nnum_processes: 2\n"
                    "fsdp_config: {fsdp_version: 2, fsdp_auto_wrap_policy: "
                    "TRANSFORMER_BASED_WRAP}\nparallelism_config:\n"
                    + "".join(f"  parallelism_config_{k}_size: {v}\n"
                              for k, v in sizes.items()))
    harness.run([sys.executable, "-m", "torch.distributed.run",
                 "--nproc-per-node", "2", "--master-port", "29655",
                 os.path.join(harness.HERE, "lint_mesh.py"),
                 context.path("results"), *paths], timeout=200, expect=None)
    with open(context.path("results"), encoding="utf-8") as f:
        results = f.read().splitlines()
    check(len(results) == len(paths), f"{results}")
    for path, result in zip(paths, results):
        mine = codes(lint(context, path), "error")
        with open(path, encoding="utf-8") as f:
            check(bool(mine) == (result != "ok"),
                  f"{f.read()}Accelerate {result}, here {mine}")
    return f"{len(paths)} files, {results.count('ok')} accepted by both"


CASES = [
    ("mesh", mesh),
    ("wrapping", wrapping),
    ("heads", heads),
    ("plain-jobs", plain_jobs),
    ("random-jobs", random_jobs),
    ("deepspeed", deepspeed),
]
