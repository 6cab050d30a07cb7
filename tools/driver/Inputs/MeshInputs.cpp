//===- MeshInputs.cpp - Jobs with axes inside of functions ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/MeshInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/HuggingFace/HubCache.h"
#include "frontends/Lint/Lint.h"
#include "frontends/Lint/Megatron.h"
#include "frontends/ModuleTree/SharedHeads.h"
#include "passes/PipelineSchedules/Schedule.h"
#include "runtime/plan/Chunks.h"
#include "tools/driver/Inputs/CompileInputs.h"

#include <algorithm>

namespace accel {

std::optional<ModuleTree> moduleTreeOf(const PlanInputs &inputs,
                                       const PlanOptions &options) {
  DiagnosticEngine quiet; // the model was read already
  return huggingface::moduleTreeNamed(
      options.model.empty() ? *inputs.job.model : options.model, {}, quiet);
}

/// Ranks whose blocks of keys a layer's function holds one after the other.
constexpr int64_t mostContext = 512;

/// What is not planned of an axis, or nothing; `own`: accel-run executes it, or
/// its program is asked for.
static std::string whyNot(const PlanInputs &inputs, const std::string &axis,
                          bool own) {
  const bool tensor = axis == "tp";
  const bool titan = inputs.trainer == "torchtitan";
  const std::string what = tensor ? "tensor parallelism "
                           : axis == "sp" && titan
                               ? "an exchange of tokens for heads "
                               : "context parallelism ";
  const bool planned = inputs.executor == FrameworkKind::Fsdp2 ||
                       inputs.executor == FrameworkKind::Megatron;
  const bool exchanges =
      axis == "sp" && inputs.executor == FrameworkKind::Deepspeed;
  if (!own && !exchanges && (axis == "sp" || !planned))
    return what + "under " +
           (titan ? inputs.trainer : toString(inputs.executor)) +
           " is not planned";
  if (inputs.job.quantization)
    return what + "of quantised weights is not planned";
  if (axis == "cp" && inputs.job.accelerate.mesh->size("cp") > mostContext)
    return what + "over more than " + std::to_string(mostContext) +
           " ranks is not planned: each layer would loop over as many blocks "
           "of keys";
  if (inputs.adapter && inputs.adapter->magnitude)
    return what + "of DoRA's layers is not planned";
  if (!inputs.model.config())
    return what + "of a .pt2 is not planned: " +
           (tensor ? "no plan says how its parameters are sharded"
                   : "nothing says which of its dimensions are tokens");
  return "";
}

/// A finding at the key that sets an axis: of parallelism_config, else of the
/// whole mesh.
static Diagnostic axisDiagnostic(const PlanInputs &inputs,
                                 std::string_view axis, const char *code,
                                 std::string message, std::string hint) {
  const AccelerateConfig &a = inputs.job.accelerate;
  const Setting<int64_t> &size = axis == "tp"   ? a.tensorParallel
                                 : axis == "cp" ? a.contextParallel
                                                : a.sequenceParallel;
  if (size.written() && !inputs.job.ownMesh)
    return diagnosticAt(size, Severity::Error, code, std::move(message),
                        std::move(hint));
  return diagnosticAt(a.mesh, Severity::Error, code, std::move(message),
                      std::move(hint));
}

/// Layers that Accelerate's parallelism cannot share a sequence of, as lint
/// says; false where every rank stops with them, or no plan is made.
/// DeepSpeed's is an axis of the mesh only where its exchanges are planned.
static bool checkLayers(const PlanInputs &inputs, const ModuleTree &tree,
                        DiagnosticEngine &engine) {
  const AccelerateConfig &a = inputs.job.accelerate;
  const bool context =
      inputs.executor == FrameworkKind::Fsdp2 && a.mesh->size("cp") > 1;
  const bool sequence =
      inputs.executor == FrameworkKind::Deepspeed && *a.sequenceParallel > 1;
  if (!context && !sequence)
    return true;
  const bool stops = atLeast(a.version, "1.15");
  const auto layers = unsharedLayers(tree, sequence, stops ? "" : a.version);
  if (!layers)
    return true;
  const std::string axis = sequence ? "sp" : "cp";
  Diagnostic d =
      stops || sequence
          ? axisDiagnostic(inputs, axis, layers->code, layers->message,
                           layers->hint)
          : axisDiagnostic(inputs, axis, notSupportedCode,
                           layers->layers +
                               ", which torch's context parallelism cannot do",
                           recurrentLayers(tree).empty()
                               ? "leave cp_size at 1, or plan for accel-run"
                               : "leave cp_size at 1");
  const bool runs = sequence && !stops;
  if (runs)
    d.severity = Severity::Warning;
  engine.report(std::move(d));
  return runs;
}

/// A ring gives each rank two chunks of every sequence.
static void checkRing(const PlanInputs &inputs, DiagnosticEngine &engine) {
  const int64_t ranks = inputs.job.accelerate.mesh->size("cp");
  if (ranks <= 1)
    return;
  const int64_t tokens = inputs.training.sequenceLength;
  if (tokens % (2 * ranks))
    engine.report(
        axisDiagnostic(inputs, "cp", "sequence-split",
                       "sequences of " + std::to_string(tokens) +
                           " tokens cannot be divided into 2 x cp_size " +
                           std::to_string(ranks) + " chunks",
                       "choose a multiple of " + std::to_string(2 * ranks)));
}

/// Heads are dealt out whole, as lint says too; that the family has a plan is
/// import-tp-plan's to say. Context parallelism is of causal decoders.
static void checkModel(const PlanInputs &inputs,
                       const std::optional<ModuleTree> &tree,
                       DiagnosticEngine &engine) {
  const Setting<plan::Mesh> &mesh = inputs.job.accelerate.mesh;
  if (!tree)
    return;
  if (mesh->size("tp") > 1 &&
      std::count(tree->blocks.begin(), tree->blocks.end(), "linear") > 0)
    engine.report(axisDiagnostic(
        inputs, "tp", notSupportedCode,
        "tensor parallelism of " + tree->architecture +
            " is not planned: it has layers of a gated delta rule",
        "leave tp_size at 1"));
  if (!checkLayers(inputs, *tree, engine))
    return;
  if (mesh->ranksPerSequence() > 1 && tree->attention.empty()) {
    const std::string recurrent = recurrentLayers(*tree);
    engine.report(axisDiagnostic(
        inputs, mesh->size("cp") > 1 ? "cp" : "sp", notSupportedCode,
        "context parallelism of " + tree->architecture + " is not planned: " +
            (recurrent.empty() ? "it is no decoder of one sequence"
                               : recurrent),
        "leave cp and sp at 1"));
  }
  checkRing(inputs, engine);
  const int64_t tp = mesh->size("tp"), sp = mesh->size("sp"),
                heads = tree->sizes.heads;
  // Without a plan of transformers' nothing is split, whatever the heads.
  const bool whole =
      inputs.executor == FrameworkKind::Fsdp2 && !tree->tensorParallelPlan;
  if (const auto undivided = undividedHeads(*tree, tp); undivided && !whole)
    engine.report(axisDiagnostic(inputs, "tp", "head-count", undivided->first,
                                 undivided->second));
  // Key-value heads are repeated where they are fewer than the ranks.
  const bool deepspeed = inputs.executor == FrameworkKind::Deepspeed;
  if (sp > 1 && heads % (tp * sp)) {
    engine.report(
        axisDiagnostic(inputs, "sp", "head-count",
                       std::to_string(heads) + " attention heads of " +
                           tree->architecture + " cannot be divided among " +
                           (tp > 1      ? "the product of tp and sp,"
                            : deepspeed ? "sp_size"
                                        : "sp") +
                           " " + std::to_string(tp * sp) + " ranks",
                       "write a divisor of " + std::to_string(heads)));
    return;
  }
  if (const auto undivided = undividedKeyHeads(*tree, sp);
      deepspeed && undivided)
    engine.report(axisDiagnostic(inputs, "sp", "head-count", undivided->first,
                                 undivided->second));
}

/// Refuses what is not planned beside stages; false where something is.
static bool checkPipeline(const PlanInputs &inputs, const PlanOptions &options,
                          DiagnosticEngine &engine) {
  const Setting<plan::Mesh> &mesh = inputs.job.accelerate.mesh;
  auto refuse = [&](const std::string &what, const std::string &fix) {
    engine.report(
        diagnosticAt(mesh, Severity::Error, notSupportedCode,
                     "pipeline parallelism " + what + " is not planned", fix));
    return false;
  };
  const bool titan =
      !inputs.trainer.empty() && inputs.executor == FrameworkKind::Fsdp2;
  if (inputs.executor != FrameworkKind::AccelRun && !titan)
    return refuse(std::string("under ") + toString(inputs.executor),
                  "leave pp at 1, or plan for accel-run");
  if (inputs.job.quantization)
    return refuse("of quantised weights", "leave pp at 1");
  const Setting<bool> &reshards = inputs.job.accelerate.reshardAfterForward;
  // ZeRO's stages 1 and 2 hold them whole all the time.
  if (reshards.written() && !*reshards && mesh->size("dp_shard") > 1 &&
      !*inputs.job.wholeParameters)
    return refuse("of units that stay gathered after the forward",
                  "write fsdp_reshard_after_forward: true");
  if (!inputs.model.config())
    return refuse("of a .pt2", "plan from config.json");
  const std::optional<ModuleTree> tree = moduleTreeOf(inputs, options);
  if (!tree)
    return true;
  const int64_t layers = tree->sizes.layers;
  const Setting<int64_t> &chunks = inputs.job.pipelineChunks;
  if (titan && (*inputs.job.forwardsFirst || *inputs.job.splitBackward))
    return refuse("by another schedule than 1f1b under torchtitan",
                  "leave pipeline out, or plan for accel-run");
  if (titan && *chunks > 1)
    return refuse("of several chunks a stage under torchtitan",
                  "leave pipeline out, or plan for accel-run");
  if (*chunks > 1) {
    pipeline::Problem problem;
    problem.kind =
        pipeline::findKind(plan::scheduleOf(*inputs.job.splitBackward, *chunks))
            ->kind;
    problem.chunks = static_cast<int>(*chunks);
    problem.stages = static_cast<int>(mesh->size("pp") * *chunks);
    problem.microBatches = static_cast<int>(*inputs.job.accumulation);
    std::string why = pipeline::check(problem);
    if (problem.stages > layers)
      why = std::to_string(layers) + " layers cannot be cut into " +
            std::to_string(problem.stages) + " chunks, " +
            std::to_string(*chunks) + " in each of " +
            std::to_string(mesh->size("pp")) + " stages";
    if (!why.empty()) {
      engine.report(
          diagnosticAt(chunks, Severity::Error, "invalid-value", why,
                       problem.stages > layers
                           ? "write fewer chunks or a smaller pp"
                           : "change gradient_accumulation_steps, which is the "
                             "micro-batches of a step"));
      return false;
    }
  }
  if (mesh->size("pp") > layers) {
    engine.report(
        diagnosticAt(mesh, Severity::Error, "invalid-value",
                     std::to_string(layers) + " layers cannot be cut into " +
                         std::to_string(mesh->size("pp")) + " stages",
                     "write pp of at most " + std::to_string(layers)));
    return false;
  }
  return true;
}

int64_t ranksOfExperts(const JobConfig &job) {
  const auto &own = *job.script.ownShards;
  return own ? own->experts : job.accelerate.mesh->size(plan::expertAxis);
}

/// Refuses what is not planned of ranks that share experts; false where
/// something is.
static bool checkExperts(const PlanInputs &inputs, DiagnosticEngine &engine) {
  const Setting<plan::Mesh> &mesh = inputs.job.accelerate.mesh;
  auto refuse = [&](const std::string &what, const std::string &fix) {
    engine.report(diagnosticAt(mesh, Severity::Error, notSupportedCode,
                               "expert parallelism " + what + " is not planned",
                               fix));
    return false;
  };
  if (inputs.job.quantization)
    return refuse("of quantised weights", "leave ep at 1");
  if (inputs.adapter)
    return refuse("beside an adapter", "leave ep at 1");
  const huggingface::ModelConfig *config = inputs.model.config();
  if (!config)
    return refuse("of a .pt2", "plan from config.json");
  const auto *llama = std::get_if<huggingface::LlamaConfig>(&config->family);
  const huggingface::DecoderConfig *decoder = huggingface::decoderOf(config);
  const int64_t experts = llama     ? llama->mixture.experts
                          : decoder ? decoder->decoder.mixture.experts
                                    : 0,
                ranks = ranksOfExperts(inputs.job);
  if (decoder && decoder->decoder.mixture.clamped)
    return refuse("of experts with biases", "leave ep at 1");
  // tp's ranks are among transformers': each takes a part of the tokens.
  const plan::Job &training = inputs.training;
  const int64_t tokens = training.microBatch * training.sequenceLength,
                tensor = mesh->size("tp");
  if (*inputs.job.script.ownShards && tokens % tensor != 0)
    return refuse("of " + std::to_string(tokens) +
                      " tokens a micro-batch, which " + std::to_string(tensor) +
                      " ranks of tp_size take in parts of different sizes,",
                  "choose sizes of which tp_size divides the tokens");
  if (experts > 0 && experts % ranks == 0) {
    if (inputs.trainer == "torchtitan")
      engine.report(diagnosticAt(
          mesh, Severity::Warning, "torchtitan-experts",
          "torchtitan's expert parallelism is not modelled: bytes and seconds "
          "of experts and of what their ranks exchange are transformers'",
          "take them as an estimate, or leave ep at 1"));
    return true;
  }
  engine.report(diagnosticAt(
      mesh, Severity::Error, "invalid-value",
      experts ? std::to_string(experts) + " experts cannot be divided among " +
                    std::to_string(ranks) + " ranks of ep" +
                    (*inputs.job.script.ownShards ? "_size" : "")
              : "the model has no experts that the ranks of ep could share",
      experts ? "write a divisor of " + std::to_string(experts)
              : "leave ep out; dp_shard shards all parameters"));
  return false;
}

/// torchtitan: "Async TP requires --training.compile"; and ranks to exchange.
static void checkAsyncTensor(const PlanInputs &inputs,
                             DiagnosticEngine &engine) {
  const Setting<plan::Mesh> &mesh = inputs.job.accelerate.mesh;
  const bool titan = inputs.trainer == "torchtitan";
  const char *needs = !titan                 ? "--executor torchtitan"
                      : mesh->size("tp") < 2 ? "ranks of tp"
                      : !compiledWhole(inputs)
                          ? "--compile, as torchtitan's option does"
                          : nullptr;
  if (!needs)
    return;
  Diagnostic d;
  d.code = "invalid-value";
  d.file = "<options>";
  d.key = "--async-tp";
  d.message = std::string("--async-tp needs ") + needs;
  engine.report(std::move(d));
}

void checkInnerAxes(const PlanInputs &inputs, const PlanOptions &options,
                    DiagnosticEngine &engine) {
  if (options.asyncTensor)
    checkAsyncTensor(inputs, engine);
  const Setting<plan::Mesh> &mesh = inputs.job.accelerate.mesh;
  const Setting<bool> &sequence = inputs.job.sequenceParallel;
  if (sequence.value && inputs.executor != FrameworkKind::AccelRun)
    engine.report(diagnosticAt(
        sequence, Severity::Error, notSupportedCode,
        std::string("sequence parallelism is what accel-run does, and not ") +
            toString(inputs.executor) + " under accelerate",
        "leave sequence_parallel out, or plan for accel-run"));
  const bool asked = inputs.job.ownMesh && inputs.trainer.empty();
  if (asked && inputs.executor != FrameworkKind::AccelRun)
    engine.report(diagnosticAt(
        mesh, Severity::Error, notSupportedCode,
        std::string("the mesh of a job file is accel-run's, and not that of ") +
            toString(inputs.executor) + " under accelerate",
        "write the sizes into parallelism_config, or plan for accel-run"));
  if (mesh->size("tp") <= 1) {
    if (sequence.value)
      engine.report(diagnosticAt(
          sequence, Severity::Error, "invalid-value",
          "sequence_parallel needs ranks that share a sample",
          "write tp above 1 in mesh, or parallelism_config_tp_size, or leave "
          "it out"));
  }
  const Setting<int64_t> &chunks = inputs.job.pipelineChunks;
  const Setting<bool> &split = inputs.job.splitBackward;
  const Setting<bool> &first = inputs.job.forwardsFirst;
  if (mesh->size("pp") <= 1 && (*split || *first || *chunks > 1)) {
    const std::string needs =
        std::string(plan::scheduleOf(*split, *chunks, *first)) +
        " needs stages";
    const std::string fix = "write pp above 1 in mesh, or leave pipeline out";
    engine.report(*first ? diagnosticAt(first, Severity::Error, "invalid-value",
                                        needs, fix)
                  : *split ? diagnosticAt(split, Severity::Error,
                                          "invalid-value", needs, fix)
                           : diagnosticAt(chunks, Severity::Error,
                                          "invalid-value", needs, fix));
  }
  const Setting<double> &imbalance = inputs.job.expertImbalance;
  if (ranksOfExperts(inputs.job) <= 1) {
    if (imbalance.written())
      engine.report(
          diagnosticAt(imbalance, Severity::Error, "invalid-value",
                       "expert_imbalance needs ranks that share experts",
                       "write ep above 1 in mesh, or leave it out"));
  } else if (!checkExperts(inputs, engine)) {
    return;
  }
  if (mesh->size("pp") > 1 && inputs.executor != FrameworkKind::Megatron &&
      !checkPipeline(inputs, options, engine))
    return;
  const bool own =
      inputs.executor == FrameworkKind::AccelRun || options.emitsProgram();
  bool inner = false;
  for (const std::string axis : {"cp", "sp", "tp"}) {
    if (mesh->size(axis) <= 1)
      continue;
    inner = true;
    if (const std::string why = whyNot(inputs, axis, own); !why.empty()) {
      engine.report(axisDiagnostic(
          inputs, axis, notSupportedCode, why,
          axis == "cp" && mesh->size(axis) > mostContext
              ? "write a cp_size of at most " + std::to_string(mostContext)
          : inputs.job.ownMesh ? "leave " + axis + " out of mesh"
                               : "leave " + axis + "_size at 1"));
      return;
    }
  }
  if (inputs.executor == FrameworkKind::Megatron) {
    std::optional<int64_t> tokens = options.sequenceLength;
    if (!tokens)
      tokens = *inputs.job.data.sequenceLength;
    if (const auto tree = moduleTreeOf(inputs, options))
      checkMegatronModel(inputs.job.accelerate, *tree, tokens, engine);
  } else if (inputs.trainer.empty() &&
             (inner || *inputs.job.accelerate.sequenceParallel > 1)) {
    if (inputs.executor == FrameworkKind::Fsdp2)
      lintContextAttention(inputs.job, engine);
    checkModel(inputs, moduleTreeOf(inputs, options), engine);
  }
}

void reportMesh(const PlanInputs &inputs, const PlanOptions &options,
                DiagnosticEngine &engine) {
  const JobConfig &job = inputs.job;
  const AccelerateConfig &a = job.accelerate;
  const bool accelerates = inputs.executor != FrameworkKind::AccelRun &&
                           inputs.executor != FrameworkKind::Megatron &&
                           inputs.trainer.empty();
  const bool split = *a.tensorParallel > 1 || *a.contextParallel > 1 ||
                     *a.sequenceParallel > 1;
  if (!accelerates || (!split && !(a.deepspeed && *a.numMachines > 1)))
    return;
  LintOptions lint;
  lint.accelerateVersion = a.version;
  lint.model = options.model;
  lint.deepspeedVersion = options.script.versions.deepspeed;
  if (inputs.torchVersion)
    lint.torchVersion = *inputs.torchVersion;
  if (!options.script.versions.transformers.empty())
    lint.transformersVersion = options.script.versions.transformers;
  lintMesh(job.isJob ? job.file : a.file, {job, Outcome::Ok}, lint, engine);
}

} // namespace accel
