//===- FineTuning.cpp - What a fine-tuning run's libraries do -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/FineTuning.h"

#include "frontends/Job/QuantizedRefusals.h"
#include "passes/Frameworks/OptimizerFailure.h"
#include "passes/Validate/RowWords.h"
#include "runtime/plan/Optimizers.h"

#include <cctype>
#include <cstdlib>

namespace accel::validate {

using plan::DType;

namespace {

bool has(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}
bool hasAny(const std::string &text, std::initializer_list<const char *> list) {
  for (const char *part : list)
    if (has(text, part))
      return true;
  return false;
}

/// What a benchmark's published scripts say that its rows do not.
struct Scripts {
  const char *source; // part of the column `source`
  const char *transformers;
  int64_t rank;
  double alpha, dropout;
  std::vector<std::string> targets; // empty: all linear layers
  /// Other ranks than `rank` of targets.
  AdapterConfig::Pattern<int64_t> ranks;
  const char *quantization;                 // of QLoRA, as --quantize spells it
  DType adapterDtype;                       // PEFT's, of its release
  bool checkpoints;                         // gradient_checkpointing=True
  int fullStage, loraStage, quantizedStage; // of ZeRO, on one GPU too; 0: none
  double deviceUnit; // memory is nvidia-smi's, in these bytes; 0: it is not
  DType loaded;      // torch_dtype of a base that is not quantised
  bool direct;       // use_reentrant=False, but over a quantised base
  const char *why;
};

/// scripts/benchmarks/scenarios.yaml and framework_plugin_bnb.py; Qwen's
/// finetune/*.sh and finetune.py, with PEFT before 0.12, which makes adapters
/// in the dtype of their layers.
const Scripts scripts[] = {
    {"fms-acceleration",
     "4.48.1",
     16,
     16,
     0.1,
     {"q_proj", "k_proj", "v_proj", "o_proj", "c_attn"},
     {},
     "nf4,double_quant",
     DType::F32,
     false,
     0,
     0,
     0,
     0,
     DType::BF16,
     false,
     "LoRA of attention with a dropout of 0.1, as fms-acceleration's "
     "scenarios.yaml has it"},
    {"qwenlm/qwen",
     "4.32.0",
     64,
     16,
     0.05,
     {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
      "down_proj"},
     // Its c_attn is one layer, whose adapter of rank 64 has as many elements.
     {{"q_proj", 43}, {"k_proj", 43}, {"v_proj", 42}},
     "gptq,bits=4,group=128",
     DType::BF16,
     true,
     3,
     2,
     2,
     1e9,
     DType::BF16,
     false,
     "LoRA of rank 64 at every linear layer of the layers and gradient "
     "checkpointing, ZeRO-3 for full fine-tuning and ZeRO-2 for LoRA on "
     "several "
     "GPUs and for Q-LoRA, as Qwen's finetune scripts have it"},
    // examples/sft of PEFT: utils.py loads in fp32 what it does not quantise.
    {"peft docs/source/accelerate",
     "4.45",
     8,
     16,
     0.1,
     {},
     {},
     "nf4,double_quant",
     DType::F32,
     true,
     0,
     0,
     0,
     1073741824,
     DType::F32,
     true,
     "LoRA of rank 8 at every linear layer with a dropout of 0.1 and gradient "
     "checkpointing, as PEFT's examples/sft have it"},
};

class Reader {
public:
  Reader(const RowText &text, Run &run)
      : text(text), techniques(text.techniques()), run(run) {
    for (const Scripts &known : scripts)
      if (has(text.source, known.source))
        published = &known;
  }

  std::string read() {
    if (has(text.framework, "maxtext") || has(text.framework, "jax"))
      return "programs of JAX are not modelled";
    for (const char *other : {"colossal", "mindspore", "paddle", "mlx"})
      if (has(text.framework, other))
        return "runs of '" + std::string(other) + "' are not modelled";
    // A loop of one's own around transformers' models.
    const bool own =
        run.source == Source::Unknown &&
        !hasAny(text.framework, {"litgpt", "lit-gpt", "lightning", "nanotron"});
    if (run.source != Source::Transformers && !own)
      return readOthers();
    if (const std::string other = otherTraining(text.framework); !other.empty())
      return "training by '" + other + "' is not modelled here";
    run.trainerScript = hasAny(
        text.framework, {"trainer", "trl", "sft", "axolotl", "factory", "swift",
                         "alignment-handbook", "lmflow", "fastchat", "alpaca"});
    readReleases();
    // Trainer.compute_loss returns the loss alone. Runs of models that compute
    // it themselves take a copy of the logits more, so something holds them.
    if (run.trainerScript)
      run.holdsLogits = computesOwnLoss();
    run.mixed = !precisionWords(text.precision).pure;
    if (!run.mixed)
      run.autocast = false;
    // MixedPrecision of Accelerate's plugin, beside autocast.
    if (run.mixed && run.executor == FrameworkKind::Fsdp1 &&
        run.compute != DType::F32) {
      run.reduce = run.compute;
      run.autocast = true;
    }
    if (std::string why = readKernels(); !why.empty())
      return why;
    if (std::string why = readOptimizer(); !why.empty())
      return why;
    if (std::string why = readAdapter(); !why.empty())
      return why;
    if (std::string why = readPublished(); !why.empty())
      return why;
    if (std::string why = whyOptimizerCannotRun(); !why.empty())
      return why;
    if (published && published->checkpoints &&
        run.recompute == Recompute::None && text.checkpointing.empty())
      run.recompute = Recompute::Layers;
    readMemoryKind();
    // TrainingArguments' default until transformers 5.
    const std::string said = text.checkpointing + " " + techniques;
    const bool never =
        hasAny(said, {"non-reentrant", "nonreentrant", "use_reentrant=false",
                      "use_reentrant false"}) ||
        (published && published->direct && !run.quantization);
    run.reentrant =
        run.recompute == Recompute::Layers && !never &&
        (has(said, "reentrant") ||
         (run.trainerScript && !atLeast(run.transformersVersion, "5.0")));
    return "";
  }

private:
  void assume(const std::string &what) { run.assumptions.push_back(what); }

  std::string readOthers() {
    const std::string named = techniques + " " + text.model;
    if (hasAny(named, {"qlora", "q-lora"}))
      return std::string("QLoRA by ") + toString(run.source) +
             " is not modelled";
    if (run.executor == FrameworkKind::Megatron && has(text.framework, "lora"))
      return readAdapter();
    if (has(named, "lora"))
      return std::string("LoRA by ") + toString(run.source) +
             " is not modelled";
    if (hasAny(techniques, {"8-bit", "8bit", "pagedadamw"}))
      return "8-bit optimizer states of other trainers than transformers' are "
             "not modelled";
    return "";
  }

  bool computesOwnLoss() const {
    if (atLeast(run.transformersVersion, "4.49"))
      return false;
    return hasAny(run.config, {"\"gpt_bigcode\"", "\"falcon\"", "\"mpt\"",
                               "\"opt\"", "\"gpt_neox\""}) ||
           run.sizes.family == "gpt2";
  }

  void readReleases() {
    auto take = [&](const char *word, std::string &to) {
      if (std::string found = releaseAfter(text.source, word); !found.empty())
        to = found;
    };
    if (published)
      run.transformersVersion = published->transformers;
    const bool said =
        published || !releaseAfter(text.source, "transformers").empty();
    // What is not said was new when the source was written, or with its torch.
    const std::string torch = releaseAfter(text.source, "torch");
    int month = monthIn(text.source);
    if (month == 0 && !torch.empty())
      month = monthOfTorch(torch);
    if (month > 0) {
      const frameworks::Versions then = releasesOf(month);
      if (!said)
        run.transformersVersion = then.transformers;
      run.accelerateVersion = then.accelerate;
      run.torchVersion = then.torch;
      if (!said)
        assume("transformers " + then.transformers + " of that time");
    }
    take("transformers", run.transformersVersion);
    take("accelerate", run.accelerateVersion);
    take("torch", run.torchVersion);
  }

  /// Kernels that replace transformers' modules.
  std::string readKernels() {
    if (has(text.framework, "unsloth"))
      return "Unsloth's models are not modelled";
    if (has(techniques, "foak"))
      run.kernels.push_back(frameworks::KernelSet::Foak);
    run.fusedLoss = has(techniques, "liger");
    if (run.fusedLoss && run.kernels.empty())
      run.kernels.push_back(frameworks::KernelSet::Liger);
    if (hasAny(techniques, {"cut_cross_entropy", "cut cross-entropy",
                            "cut cross entropy", "cutcrossentropy"}) ||
        hasWord(techniques, "cce")) {
      run.fusedLoss = true;
      assume("cut cross-entropy as Liger Kernel's loss in chunks");
    }
    return "";
  }

  std::string readOptimizer() {
    const OptimizerWords words = optimizerWords(techniques);
    run.optimizer = words.name;
    // TrainingArguments.optim's names are transformers' own.
    if (run.source != Source::Transformers && !words.name.empty() &&
        !plan::findOptimizer(words.name))
      return "the optimizer '" + words.name +
             "' of other trainers than transformers' is not modelled";
    return words.refused.empty()
               ? ""
               : "the optimizer '" + words.refused + "' is not modelled";
  }

  /// As `plan` says it, of the executor that the columns and the scripts name.
  std::string whyOptimizerCannotRun() {
    const plan::TransformersOptimizer *named =
        run.source == Source::Transformers
            ? plan::findTransformersOptimizer(run.optimizer)
            : nullptr;
    const auto *description = plan::findOptimizer(
        named && named->optimizer ? named->optimizer : run.optimizer);
    const char *reason =
        description ? whyOptimizerFails(run.executor, *description, named)
                    : nullptr;
    if (!reason)
      return "";
    const std::string optimizer = "the optimizer '" + run.optimizer + "'";
    if (run.executor == FrameworkKind::Fsdp2) {
      assume(optimizer + " stops at its first step under FSDP2 (" + reason +
             "): predicted is what its states would take");
      return "";
    }
    return optimizer + " cannot run under " + toString(run.executor) + ": " +
           reason;
  }

  /// axolotl turns them on by itself since 0.10, of June 2025
  /// (check_auto_enable_lora_kernels of utils/schemas/config.py).
  bool takesFunctions(const AdapterConfig &adapter,
                      const QuantizationWords &base) const {
    const std::string release = releaseAfter(text.source, "axolotl");
    const int month = monthIn(text.source);
    return has(text.framework, "axolotl") && !adapter.magnitude &&
           !base.format.starts_with("int8") && !run.compiled &&
           run.executor != FrameworkKind::Fsdp1 &&
           (release.empty() ? month == 0 || month >= 202506
                            : atLeast(release, "0.10"));
  }

  std::string readAdapter() {
    const AdapterWords words = adapterWords(text.framework);
    const QuantizationWords base =
        quantizationWords(techniques, text.precision);
    if (!words.refused.empty())
      return "'" + words.refused + "' is not modelled";
    if (base.format.empty() && base.refused.empty() &&
        namesQuantizedBase(text.framework + " ; " + text.sharding + " ; " +
                           text.precision))
      return "the format of the quantised base is not stated (nf4, fp4, int8 "
             "or gptq)";
    if (!words.adapter && !has(techniques, "lora") && base.format.empty())
      return "";
    if (!words.adapter && !has(techniques, "lora") &&
        hasWord(text.framework, "full"))
      return "full fine-tuning of a base in 8 or 4 bits ('" + base.format +
             "') is not modelled";
    if (!base.refused.empty())
      return "a base quantised by '" + base.refused + "' is not modelled";
    AdapterConfig adapter;
    adapter.taskType = "CAUSAL_LM";
    adapter.rank = published ? published->rank : 8;
    adapter.alpha = published ? published->alpha : 8;
    adapter.dropout = published ? published->dropout : 0;
    const bool recipes = run.executor == FrameworkKind::Megatron;
    if (recipes) // LoRA of megatron/bridge/peft/lora.py
      adapter.rank = 32, adapter.alpha = 32;
    adapter.magnitude = words.magnitude;
    if (words.dropout)
      adapter.dropout = *words.dropout;
    if (words.rank > 0)
      adapter.rank = words.rank;
    else if (recipes)
      assume("LoRA of rank 32, the recipes' default");
    else if (!published)
      assume("LoRA of rank 8, PEFT's default");
    if (!words.targets.empty())
      adapter.target.names = words.targets;
    else if (published && !published->targets.empty())
      adapter.target.names = published->targets;
    else if (recipes) // target_modules linear_qkv
      adapter.target.names = {"q_proj", "k_proj", "v_proj"};
    else
      adapter.allLinear = true;
    if (published) {
      adapter.rankPattern = published->ranks;
      assume(published->why);
    } else if (recipes)
      assume("LoRA at queries, keys and values");
    else if (words.targets.empty())
      assume("LoRA at every linear layer");
    run.ownUnits = run.executor == FrameworkKind::Fsdp1 && !run.trainerScript;
    if (run.ownUnits)
      assume("adapters are units of their own, as PEFT's fsdp_auto_wrap_policy "
             "has them");
    adapter.modulesToSave = words.saved;
    if (takesFunctions(adapter, base)) {
      adapter.functions = {true, true, true};
      assume("axolotl computes the adapter's layers in functions of its own");
    }
    run.adapter = std::move(adapter);
    // PEFT since 0.12 makes adapters in fp32 over any base of 16 bits.
    const std::string peft = releaseAfter(text.source, "peft");
    const bool early =
        peft.empty() ? monthIn(text.source) > 0 && monthIn(text.source) < 202407
                     : !atLeast(peft, "0.12");
    run.adapterDtype = published ? published->adapterDtype
                       : recipes || (early && base.format.empty()) ? run.compute
                                                                   : DType::F32;
    // The base is loaded in 16 bits; autocast alone computes otherwise.
    run.parameters =
        published && published->loaded == DType::F32 && base.format.empty()
            ? DType::F32
            : run.compute;
    run.autocast = run.mixed && castsByAutocast();
    return base.format.empty() ? "" : readQuantization(base);
  }

  /// What shards the run, and what its memory column counts.
  std::string readPublished() {
    const bool unstated = has(text.sharding, "not stated");
    if (published && published->loaded != DType::F32)
      run.parameters = run.compute;
    if (published && published->deviceUnit > 0) {
      run.memory = MemoryKind::Device;
      run.memoryUnit = published->deviceUnit;
    }
    if (!published || published->fullStage == 0)
      return unstated && run.executor == FrameworkKind::Deepspeed
                 ? "the ZeRO stage is not stated"
                 : "";
    const bool alone = run.mesh.ranks() == 1;
    if (unstated || alone) {
      const int stage = run.quantization        ? published->quantizedStage
                        : run.adapter && !alone ? published->loraStage
                        : run.adapter           ? 0
                                                : published->fullStage;
      run.zeroStage = stage;
      // ds_config_zero2.json and ds_config_zero3.json.
      if (stage > 0)
        run.zeroFile = ZeroFile{stage == 2 ? std::optional<int64_t>(200'000'000)
                                           : std::nullopt,
                                /*overlap=*/true, /*ownOptimizer=*/true};
      run.executor =
          stage > 0 ? FrameworkKind::Deepspeed : FrameworkKind::Single;
      run.autocast = run.executor == FrameworkKind::Single && castsByAutocast();
    }
    return "";
  }

  bool castsByAutocast() const {
    return run.compute != DType::F32 &&
           (run.executor == FrameworkKind::Single ||
            run.executor == FrameworkKind::Fsdp1 ||
            run.executor == FrameworkKind::Ddp);
  }

  std::string readQuantization(const QuantizationWords &base) {
    std::string format = base.format;
    const bool gptq = format.starts_with("gptq");
    if (published && (!base.named || format == "nf4"))
      format = published->quantization;
    // A flat parameter has one dtype. fms-acceleration views the int32 of GPTQ
    // in it (autogptq_utils.py, PATCH_FOR_FSDP_TRITON_V2).
    const bool flat = run.executor == FrameworkKind::Fsdp1;
    const bool viewed = gptq && published && has(text.framework, "autogptq");
    if (flat &&
        (viewed || format.starts_with("nf4") || format.starts_with("fp4")))
      format += std::string(",storage=") + plan::toString(run.parameters);
    // TRL's own preparation, which it leaves to FSDP where the base is sharded.
    if (has(text.framework, "baseline-peft-bnb") && !flat)
      format += ",prepared";
    std::string problem;
    run.quantization = parseQuantization(format, problem);
    if (!run.quantization)
      return "the quantisation '" + format + "': " + problem;
    if (run.executor == FrameworkKind::Fsdp2)
      if (const auto why = refusalOfWrapper(
              *run.quantization, {.strategy = Strategy::Fsdp2,
                                  .accelerate = run.accelerateVersion,
                                  .torch = run.torchVersion}))
        return why->message;
    if (flat && gptq && !viewed)
      return "GPTQ's int32 weights cannot be flattened with 16-bit ones by "
             "FSDP1";
    return "";
  }

  /// What the memory column counts, where the source says so.
  void readMemoryKind() {
    if (has(techniques, "allocated"))
      run.memory = MemoryKind::Allocated;
    else if (has(techniques, "reserved"))
      run.memory = MemoryKind::Reserved;
    else if (hasAny(techniques, {"nvidia-smi", "nvidia smi", "nvml"}) ||
             hasWord(techniques, "vram"))
      run.memory = MemoryKind::Device;
  }

  const RowText &text;
  const std::string techniques;
  Run &run;
  const Scripts *published = nullptr;
};

} // namespace

std::string RowText::techniques() const {
  // No phrase goes from one column to the next.
  return framework + " ; " + sharding + " ; " + precision + " ; " +
         withoutPaths(source);
}

std::string releaseAfter(const std::string &text, const std::string &word) {
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1)) {
    size_t begin = at + word.size();
    while (begin < text.size() && (text[begin] == ' ' || text[begin] == '='))
      ++begin;
    size_t end = begin;
    while (end < text.size() &&
           (std::isdigit(static_cast<unsigned char>(text[end])) ||
            text[end] == '.'))
      ++end;
    while (end > begin && text[end - 1] == '.')
      --end;
    if (text.substr(begin, end - begin).find('.') != std::string::npos)
      return text.substr(begin, end - begin);
  }
  return "";
}

std::string readFineTuning(const RowText &text, Run &run) {
  return Reader(text, run).read();
}

} // namespace accel::validate
