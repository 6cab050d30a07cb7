//===- RunDescription.cpp - What a measured run was -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Targets/Target.h"
#include "passes/Validate/MegatronRows.h"
#include "passes/Validate/RowCheckpoints.h"
#include "passes/Validate/RowWords.h"
#include "runtime/plan/Stages.h"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace accel::validate {

using plan::DType;

namespace {

std::string lower(const std::string &text) {
  std::string result = text;
  std::transform(result.begin(), result.end(), result.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return result;
}

bool has(const std::string &text, const char *part) {
  return text.find(part) != text.npos;
}

class Interpreter {
public:
  Interpreter(const RunRow &row, const ModelSource &models)
      : row(row), models(models), framework(lower(row.framework)),
        sharding(lower(row.sharding)), precision(lower(row.precision)),
        checkpointing(lower(row.checkpointing)), text(lower(row.source)),
        said(meshWords(framework, sharding)) {}

  Run interpret() {
    run.source = sourceOf(framework);
    run.family = familyOf();
    skip(row.problem);
    readShape();
    readTarget();
    readParallelism();
    readPrecision();
    readStyle();
    skip(readCheckpointing(row, rowText(), run));
    readExtras();
    return std::move(run);
  }

private:
  void skip(const std::string &why) {
    if (run.skipped.empty())
      run.skipped = why;
  }
  void assume(const std::string &what) { run.assumptions.push_back(what); }

  std::string familyOf() const {
    size_t letters = 0;
    while (letters < row.id.size() &&
           std::isalpha(static_cast<unsigned char>(row.id[letters])))
      ++letters;
    const bool numbered =
        letters > 0 && letters < row.id.size() &&
        (std::isdigit(static_cast<unsigned char>(row.id[letters])) ||
         row.id[letters] == '-' || row.id[letters] == '_');
    return numbered ? row.id.substr(0, letters) : toString(run.source);
  }

  void readShape() {
    const std::string model = lower(row.model);
    if (models)
      if (auto config = models(row.model)) {
        run.config = std::move(config->text);
        run.configFile = std::move(config->file);
        return;
      }
    ModelSizes stated;
    stated.layers = row.layers.value_or(0);
    stated.hidden = row.hidden.value_or(0);
    stated.heads = row.heads.value_or(0);
    stated.keyValueHeads = row.keyValueHeads.value_or(0);
    stated.ffn = row.ffn.value_or(0);
    stated.vocab = row.vocab.value_or(0);
    if (auto config =
            shippedConfig(row.model, stated, row.sequence.value_or(1))) {
      run.config = std::move(*config);
      return;
    }
    ModelSizes &s = run.sizes;
    const bool gpt = !isLlama();
    s.family = gpt ? "gpt2" : "llama";
    s.tied = gpt || has(model, "llama3.2") || has(model, "llama-3.2");
    if (std::optional<ModelSizes> known = knownModel(row.model))
      s = *known;
    for (const char *latent : {"deepseek", "kimi"})
      if (has(model, latent))
        skip("the attention of '" + row.model + "' is not modelled");
    for (const char *hybrid : {"nemotron_3", "nemotron v3", "nemotron-h"})
      if (has(model, hybrid))
        skip("the layers of the hybrid model '" + row.model +
             "' are not known");
    for (const char *other : {"moe", "mixtral", "expert"})
      if (has(model, other))
        skip("the shape of the mixture '" + row.model +
             "' is neither stated nor known");
    auto take = [](int64_t &to, const std::optional<int64_t> &from) {
      if (from)
        to = *from;
    };
    take(s.layers, row.layers);
    take(s.hidden, row.hidden);
    take(s.heads, row.heads);
    take(s.keyValueHeads, row.keyValueHeads);
    take(s.ffn, row.ffn);
    take(s.vocab, row.vocab);
    if (s.layers <= 0 || s.hidden <= 0 || s.heads <= 0) {
      skip("the shape of '" + row.model + "' is neither stated nor known");
      return;
    }
    if (s.keyValueHeads <= 0)
      s.keyValueHeads = s.heads;
    if (s.ffn <= 0 && gpt)
      s.ffn = 4 * s.hidden;
    if (s.vocab <= 0 && gpt) {
      s.vocab = 51200; // GPT-2's, padded by Megatron
      assume("a vocabulary of 51200");
    }
    if (s.ffn <= 0 || s.vocab <= 0)
      skip("the shape of '" + row.model + "' is neither stated nor known");
    if (s.hidden % s.heads || s.heads % s.keyValueHeads)
      skip("the heads do not divide the hidden size");
    for (int64_t size : {s.hidden, s.heads, s.ffn})
      if (size > 1'000'000)
        skip("the shape is larger than any model");
    if (s.layers > 10'000 || s.vocab > 10'000'000)
      skip("the shape is larger than any model");
  }

  bool isLlama() const {
    const std::string model = lower(row.model);
    for (const char *name : {"mpt", "gpt", "opt-", "bloom", "megatron"})
      if (has(model, name))
        return false;
    return true;
  }

  void readTarget() {
    run.target = targetOfGpu(row.gpu);
    if (run.target.empty())
      skip("no target file for '" + row.gpu + "'");
    else if (lower(row.gpu) == "a100")
      assume("a bare A100 is one of 80 GB");
    if (!row.gpus)
      skip("the number of GPUs is not stated");
  }

  /// Sizes of axes inside of functions and between stages.
  struct InnerAxes {
    int64_t tensor = 1, context = 1, stages = 1;
  };
  InnerAxes readInnerAxes() {
    auto size = [&](std::optional<int64_t> stated, const AxisWords &words,
                    const char *name, const char *column) {
      skip(takeDegree(words, name, column, stated));
      return std::max<int64_t>(stated.value_or(1), 1);
    };
    const InnerAxes axes = {
        size(row.tensorParallel, said.tensor, "tensor", "tp"),
        size(row.contextParallel, said.context, "context", "cp"),
        size(row.pipelineParallel, said.stages, "pipeline", "pp")};
    const bool megatron = run.source == Source::Megatron;
    auto refuse = [&](int64_t size, const char *name) {
      if (size > 1)
        skip(std::string(name) + " parallelism (" + std::to_string(size) +
             ") is not modelled");
    };
    if (!megatron && run.source != Source::Torchtitan) {
      refuse(axes.tensor, "tensor");
      refuse(axes.context, "context");
    }
    if (!megatron && run.source != Source::Torchtitan)
      refuse(axes.stages, "pipeline");
    if (!megatron && axes.stages > 1 && said.chunks.named &&
        said.chunks.degree != 1)
      skip("interleaved stages under FSDP2 are not modelled");
    auto divides = [&](int64_t ranks, const char *name, int64_t size) {
      if (size > 1 && row.gpus.value_or(ranks) % ranks)
        skip(std::string(name) + " parallelism (" + std::to_string(size) +
             ") does not divide the GPUs");
    };
    divides(axes.tensor, "tensor", axes.tensor);
    divides(axes.tensor * axes.context, "context", axes.context);
    divides(axes.tensor * axes.context * axes.stages, "pipeline", axes.stages);
    run.asyncTensor = run.source == Source::Torchtitan &&
                      (has(sharding, "asynctp") || has(precision, "asynctp"));
    if (run.source == Source::Transformers)
      for (const char *other : {"device_map", "pipeline", "tp="})
        if (has(sharding, other))
          skip("'" + row.sharding + "' is not modelled");
    if (!megatron && said.experts.named && said.experts.degree != 1)
      skip("expert parallelism is not modelled");
    if (!megatron && said.sequence.degree.value_or(1) > 1)
      skip("sequence parallelism (" + std::to_string(*said.sequence.degree) +
           ") is not modelled");
    return axes;
  }

  /// Who shards over the ranks of samples, and how.
  void readWrapper(int64_t gpus) {
    Run &s = run;
    s.executor = run.source == Source::Torchtitan ||
                         run.source == Source::KempnerForge ||
                         run.source == Source::Torchtune
                     ? FrameworkKind::Fsdp2
                     : FrameworkKind::Fsdp1;
    const WrapperWords wrapper = wrapperWords(framework, sharding);
    skip(wrapper.refused);
    // accelerate launch and torchrun replicate where nothing else is said.
    const bool plain =
        gpus > 1 && run.source == Source::Transformers && !wrapper.executor;
    // "FSDP" alone is the trainer's own.
    const bool unnumbered = wrapper.executor == FrameworkKind::Fsdp1 &&
                            s.executor == FrameworkKind::Fsdp2 &&
                            !hasWord(sharding, "fsdp1") &&
                            !hasWord(framework, "fsdp1");
    if (!unnumbered)
      s.executor =
          wrapper.executor.value_or(plain ? FrameworkKind::Ddp : s.executor);
    if (plain && sharding.empty())
      assume("DistributedDataParallel, as nothing shards the model");
    if (s.executor == FrameworkKind::Deepspeed) {
      if (!wrapper.zeroStage && !has(sharding, "not stated") && gpus > 1)
        skip("the ZeRO stage is not stated");
      s.zeroStage = wrapper.zeroStage.value_or(0);
    }
    if (has(sharding, "hsdp") || has(sharding, "hybrid"))
      s.mesh = s.mesh.sharded(std::min<int64_t>(gpus, s.ranksPerNode));
    // "FSDP2=8" on more ranks: groups of 8 are replicas of each other.
    const int64_t replicas = std::max<int64_t>(1, said.replicas.value_or(1)),
                  shards = said.shards.value_or(gpus / replicas);
    if (replicas > 1 && replicas * shards != gpus) {
      skip("the " + std::to_string(replicas) + " x " + std::to_string(shards) +
           " ranks of the column sharding are not the " + std::to_string(gpus) +
           " of samples");
    } else if (shards > 1 && shards < gpus && gpus % shards == 0) {
      s.mesh = s.mesh.sharded(shards);
      if (!said.replicas && !has(sharding, "hsdp") && !has(sharding, "hybrid"))
        assume("groups of " + std::to_string(shards) +
               " ranks that shard are replicas of each other");
    } else if (shards > 1 && shards != gpus &&
               shards != gpus * s.mesh.size("cp")) {
      skip("the " + std::to_string(shards) +
           " ranks that shard by the column sharding do not divide the " +
           std::to_string(gpus) + " of samples");
    }
    if (gpus == 1 && !wrapper.zeroStage &&
        (sharding.empty() || has(sharding, "none") || has(sharding, "single")))
      s.executor = FrameworkKind::Single;
    if (s.executor == FrameworkKind::Ddp)
      s.mesh = s.mesh.onto("dp_replicate");
    run.keepGathered = has(sharding, "shard_grad_op");
  }

  /// A job of several nodes, or domains of NVLink, has as many GPUs of each.
  int64_t ranksPerNode(int64_t ranks) const {
    DiagnosticEngine ignored;
    const std::optional<Target> target =
        run.target.empty() ? std::nullopt : loadTarget(run.target, ignored);
    const int64_t most =
        std::max<int64_t>(1, target ? target->ranksPerNode : 8);
    if (ranks <= most)
      return std::max<int64_t>(1, ranks);
    int64_t each = most;
    while (most > 8 && ranks % each)
      --each;
    return each;
  }

  void readParallelism() {
    const auto [tensor, context, stages] = readInnerAxes();
    Run &s = run;
    const int64_t ranks = row.gpus.value_or(1);
    const int64_t gpus =
        std::max<int64_t>(ranks / tensor / context / stages, 1); // of samples
    if (stages > 1) // the outermost, as Megatron numbers its ranks
      s.mesh.axes.insert(s.mesh.axes.begin(), {plan::pipelineAxis, stages});
    s.mesh.resize("dp_shard", gpus);
    if (context > 1)
      s.mesh.resize("cp", context);
    if (tensor > 1)
      s.mesh.resize("tp", tensor);
    s.ranksPerNode = ranksPerNode(ranks);
    run.microBatch = row.microBatch.value_or(1);
    if (run.source == Source::KempnerForge && gpus > 4) {
      s.ranksPerNode = 4;
      assume("nodes of 4 GPUs, as the Kempner cluster has");
    }
    offload = offloadWords(framework + ", " + sharding);
    skip(offload.refused);
    if (run.source == Source::Megatron)
      skip(readMegatron(rowText(), !row.attention.empty(), run));
    else
      readWrapper(gpus);
    s.offloadOptimizer = offload.optimizer;
    s.offloadParameters =
        offload.parameters && (s.executor != FrameworkKind::Deepspeed ||
                               s.zeroStage == 3); // the others keep them
    // Sequences, micro-batches, accumulation.
    std::optional<int64_t> sequence = row.sequence;
    if (!sequence && run.source == Source::Torchtitan &&
        has(lower(row.model), "llama3")) {
      sequence = 8192;
      assume("sequences of 8192 tokens, as torchtitan's configurations of "
             "Llama 3 have (train_configs)");
    }
    if (!sequence)
      skip("the sequence length is not stated");
    run.sequenceLength = sequence.value_or(1);
    int64_t micro = row.microBatch.value_or(0);
    if (!micro && run.source == Source::FmsFsdp) {
      micro = 2;
      assume("fms-fsdp's default micro-batch of 2");
    } else if (!micro && run.source == Source::Megatron) {
      micro = 1;
      assume("a micro-batch of 1");
    } else if (!micro && row.globalBatch && *row.globalBatch % gpus == 0) {
      micro = *row.globalBatch / gpus;
      assume("no gradient accumulation");
    } else if (!micro) {
      skip("the micro-batch is not stated");
      micro = 1;
    }
    // torchtitan cuts the batch of a rank into as many micro-batches as there
    // are stages (build_pipeline_schedule of pipelining_utils.py).
    const bool cut = stages > 1 && run.source == Source::Torchtitan;
    if (cut && micro % stages != 0)
      skip("a batch of " + std::to_string(micro) +
           " does not divide into micro-batches of " + std::to_string(stages) +
           " stages");
    if (cut)
      micro = std::max<int64_t>(1, micro / stages);
    run.microBatch = micro;
    const int64_t perStep = micro * gpus;
    if (cut)
      s.accumulation = stages;
    if (row.globalBatch && *row.globalBatch > perStep)
      s.accumulation =
          std::max<int64_t>(1, static_cast<int64_t>(std::llround(
                                   static_cast<double>(*row.globalBatch) /
                                   static_cast<double>(perStep))));
    if (static_cast<double>(micro) * static_cast<double>(run.sequenceLength) >
        1e9)
      skip("a micro-batch of more than 1e9 tokens");
    if (gpus > 100'000'000)
      skip("more GPUs than exist");
    if (s.accumulation > 100'000)
      skip("more than 100000 micro-batches a step");
    const int64_t each = row.microBatch.value_or(1);
    if (run.skipped.empty() && row.microBatch && row.globalBatch &&
        *row.globalBatch % (each * gpus))
      skip("a global batch of " + std::to_string(*row.globalBatch) +
           " is no multiple of micro-batches of " + std::to_string(each) +
           " on " + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs"));
  }

  /// torchtitan converts every linear layer but the head by torchao; its
  /// tensorwise recipe gathers weights in fp8
  /// (torchtitan/components/float8.py).
  void readOperands() {
    const bool four = has(precision, "nvfp4");
    run.operands = four                      ? LinearOperands::Nvfp4
                   : has(precision, "mxfp8") ? LinearOperands::Mxfp8
                   : has(precision, "fp8") || has(precision, "float8")
                       ? LinearOperands::Fp8
                       : LinearOperands::Computed;
    if (has(precision, "mxfp4") || (four && run.source != Source::Megatron))
      skip("products of 4-bit operands ('" + row.precision +
           "') are not modelled");
    // Tensor cores multiply fp8 with a scale for each 32 elements as fast as
    // with one for each tensor; torchao's casts to it are its own.
    if (run.operands == LinearOperands::Mxfp8 && run.source != Source::Megatron)
      skip("mxfp8 (a scale for each 32 elements) is not modelled");
    if (run.operands != LinearOperands::Fp8 || run.source != Source::Torchtitan)
      return;
    run.fp8Training.emplace();
    if (has(precision, "rowwise"))
      run.fp8Training->recipe = Fp8Recipe::Rowwise;
    else
      run.fp8Training->gathers = !has(precision, "bfloat16 all-gather");
  }

  void readPrecision() {
    Run &s = run;
    const PrecisionWords words = precisionWords(precision);
    run.compute = words.compute;
    const bool fp32 = words.compute == DType::F32;
    if (precision.empty())
      assume("bf16");
    readOperands();
    const bool pure = words.pure;
    run.parameters = DType::F32;
    if (!fp32)
      s.reduce = DType::F32;
    switch (run.source) {
    case Source::Megatron:
      s.reduce = std::nullopt;
      if (s.megatron.overlaps && !s.megatron.wideGradients)
        s.reduce = run.compute;
      break;
    case Source::KempnerForge:
      // The model itself is converted to bf16 before it is sharded.
      run.parameters = run.compute;
      break;
    case Source::Torchtune:
      run.parameters = run.compute;
      s.reduce = std::nullopt;
      break;
    case Source::LlmFoundry:
      // PURE reduces in bf16 too; the shards stay in fp32.
      if (pure)
        s.reduce = run.compute;
      break;
    case Source::FmsFsdp:
      s.reduce = run.compute; // its bfSixteen policy
      break;
    default:
      if (pure) {
        run.parameters = run.compute;
        if (s.executor == FrameworkKind::Fsdp1)
          s.reduce = run.compute;
      }
    }
    s.autocast = (s.executor == FrameworkKind::Single ||
                  s.executor == FrameworkKind::Ddp) &&
                 !fp32 && run.parameters == DType::F32;
  }

  void readStyle() {
    const std::string compile = lower(row.compile);
    run.compiled = compile == "y" || compile == "yes" || compile == "true" ||
                   compile == "1" || has(framework, "torch.compile");
    // Its documents have both under torch.compile alone (docs/float8.md; "Async
    // TP requires --training.compile").
    if (compile.empty() && run.source == Source::Torchtitan &&
        (run.asyncTensor || run.fp8Training)) {
      run.compiled = true;
      assume("layers are compiled, as torchtitan runs fp8 and asynchronous "
             "tensor parallelism");
    }
    const std::string attention = lower(row.attention);
    const bool transformers =
        run.source == Source::Transformers || run.source == Source::Unknown;
    run.eagerAttention = transformers && attention == "eager";
    run.flashAttention = transformers && has(attention, "flash");
    for (const char *slow : {"torch", "eager", "math"})
      if (attention == slow && !run.eagerAttention)
        skip("attention that materialises its scores ('" + row.attention +
             "') is not modelled");
    switch (run.source) {
    case Source::Torchtitan: {
      const int month = monthOfTable(text);
      run.torchVersion = torchOfTable(month);
      // run_llama_train.sh and run_train.sh, since November 2024.
      run.allocator.expandableSegments = month >= 202411;
      run.clipGradients = true;
      break;
    }
    case Source::KempnerForge:
      run.holdsLogits = true;
      run.clipGradients = true;
      run.reduceEachMicroBatch = false;
      break;
    case Source::LlmFoundry:
    case Source::FmsFsdp:
      run.clipGradients = true;
      break;
    case Source::Megatron:
      run.clipGradients = true;
      break;
    case Source::Torchtune:
      break;
    case Source::Transformers:
    case Source::Unknown:
      run.holdsLogits = true;           // a loop of one's own
      run.reduceEachMicroBatch = false; // Accelerate's no_sync
      if (run.source == Source::Unknown)
        assume("'" + row.framework + "' writes models as transformers does");
      break;
    }
    run.memory = run.source == Source::Torchtitan || row.id.starts_with("mle")
                     ? MemoryKind::Reserved
                     : MemoryKind::Allocated;
  }

  RowText rowText() const {
    return {lower(row.model), framework, sharding,      precision,
            checkpointing,    text,      lower(row.gpu)};
  }

  void readExtras() {
    skip(readFineTuning(rowText(), run));
    readWords();
    if (has(text, "unpacked"))
      skip("sequences that are not packed: their length is not stated");
    // torchtune's table adds one technique a row to those before it.
    run.optimizerInBackward =
        has(text, "optimizer-in-bwd") || has(text, "fuse optim") ||
        (run.source == Source::Torchtune && run.activationOffload);
    if (run.optimizerInBackward && run.executor != FrameworkKind::Single)
      skip("sharded optimizer steps inside the backward are not modelled");
    skip(readOffloadedActivations(offload, run));
  }

  /// What no reader took.
  void readWords() {
    const std::string schedule = framework + " " + sharding;
    for (const char *other :
         {"zbb", "zbv", "zbh1", "zbh2", "zero-bubble", "zero bubble", "v-half",
          "v-min", "dualpipe", "gpipe"})
      if (run.mesh.size(plan::pipelineAxis) > 1 && hasWord(schedule, other))
        skip("the schedule '" + std::string(other) + "' is not modelled");
    for (const auto &[column, words] :
         {std::pair("framework", framework), std::pair("sharding", sharding),
          std::pair("precision", precision)}) {
      const UnreadWords unread = unreadWords(column, words);
      skip(unread.refused);
      // A framework that is not known is an assumption itself.
      if (column != std::string("framework") || run.source != Source::Unknown)
        for (const std::string &word : unread.others)
          assume("'" + word + "' of the column " + column + " is not read");
    }
  }

  const RunRow &row;
  const ModelSource &models;
  std::string framework, sharding, precision, checkpointing, text;
  MeshWords said;
  OffloadWords offload;
  Run run;
};

} // namespace

Run interpret(const RunRow &row, const ModelSource &models) {
  Interpreter interpreter(row, models);
  return interpreter.interpret();
}

} // namespace accel::validate
