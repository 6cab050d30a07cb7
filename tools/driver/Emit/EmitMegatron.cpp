//===- EmitMegatron.cpp - A setting as Megatron-LM's arguments ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One argument a line, by the names of megatron/training/arguments.py that
// Accelerate's MegatronLMPlugin sets.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/HubCache.h"
#include "frontends/ModuleTree/ModuleTree.h"
#include "tools/driver/Emit/ChosenStep.h"
#include "tools/driver/Emit/EmitAdvice.h"

namespace accel {
namespace {

class MegatronWriter {
public:
  MegatronWriter(const MegatronSettings &settings, const plan::Plan &plan,
                 const ChosenStep &step)
      : settings(settings), plan(plan), step(step) {}

  std::string run(const ModuleTree *model) {
    const plan::Mesh &mesh = step.candidate.mesh;
    number("tensor-model-parallel-size", mesh.size("tp"));
    number("pipeline-model-parallel-size", mesh.size(plan::pipelineAxis));
    number("context-parallel-size", mesh.size("cp"));
    if (isOn("sequence_parallelism", *settings.sequenceParallelism) &&
        mesh.size("tp") > 1)
      flag("sequence-parallel");
    if (step.candidate.megatron.lastLayers > 0 &&
        mesh.size(plan::pipelineAxis) > 1)
      number("decoder-last-pipeline-num-layers",
             step.candidate.megatron.lastLayers);
    if (step.candidate.megatron.distributedOptimizer)
      flag("use-distributed-optimizer");
    number("micro-batch-size", step.microBatch);
    number("global-batch-size", step.globalBatch());
    if (model) {
      number("num-layers", model->sizes.layers);
      number("hidden-size", model->sizes.hidden);
      number("num-attention-heads", model->sizes.heads);
    }
    number("seq-length", plan.job.sequenceLength);
    number("max-position-embeddings", plan.job.sequenceLength);
    if (*settings.rotaryPositions)
      value("position-embedding-type", "rope");
    if (plan.job.precision != "no")
      flag(plan.job.precision);
    value("clip-grad", trimmed(plan.job.optimizer.maxGradNorm));
    recompute();
    value("attention-dropout", trimmed(*settings.attentionDropout));
    value("hidden-dropout", trimmed(*settings.hiddenDropout));
    value("attention-backend", *settings.flashAttention ? "flash" : "unfused");
    if (step.candidate.offloadOptimizer)
      flag("optimizer-cpu-offload");
    if (*settings.preciseOptimizer)
      flag("use-precision-aware-optimizer");
    return std::move(out);
  }

private:
  void flag(const std::string &name) { out += "--" + name + "\n"; }
  void value(const std::string &name, const std::string &text) {
    out += "--" + name + " " + text + "\n";
  }
  void number(const std::string &name, int64_t count) {
    value(name, std::to_string(count));
  }
  /// "1.0", "0.05"
  static std::string trimmed(double number) {
    std::string text = std::to_string(number);
    while (text.back() == '0' && text[text.size() - 2] != '.')
      text.pop_back();
    return text;
  }
  bool isOn(const std::string &key, bool configured) const {
    const auto changed = step.changed("megatron_lm_" + key);
    return changed ? *changed == "true" : configured;
  }

  void recompute() {
    const std::string mode = step.recomputeOfAll().value_or("none");
    if (mode == "none")
      return;
    value("recompute-granularity", mode == "full" ? "full" : "selective");
    if (mode != "full")
      return;
    value("recompute-method", settings.recomputeMethod->empty()
                                  ? "uniform"
                                  : *settings.recomputeMethod);
    number("recompute-num-layers",
           std::max<int64_t>(1, *settings.recomputeLayers));
  }

  const MegatronSettings &settings;
  const plan::Plan &plan;
  const ChosenStep &step;
  std::string out;
};

} // namespace

std::optional<std::string> emitMegatron(const Advice &advice,
                                        const plan::Plan &plan,
                                        const PlanOptions &options,
                                        DiagnosticEngine &engine) {
  if (advice.executor != FrameworkKind::Megatron) {
    engine.error("emit-megatron", options.config,
                 std::string("--emit megatron writes arguments of "
                             "Megatron-LM, and the executor is ") +
                     toString(advice.executor),
                 "write distributed_type: MEGATRON_LM");
    return std::nullopt;
  }
  const auto step = chosenStep(advice, plan.job.microBatch, engine);
  if (!step)
    return std::nullopt;
  DiagnosticEngine quiet; // the model was read already
  const std::optional<ModuleTree> model = huggingface::moduleTreeNamed(
      options.model.empty() ? *advice.job->model : options.model, {}, quiet);
  return MegatronWriter(*advice.job->accelerate.megatron, plan, *step)
      .run(model ? &*model : nullptr);
}

} // namespace accel
