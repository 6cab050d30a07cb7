//===- EmitTorchtitan.cpp - A setting as torchtitan's TOML ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The names are those of torchtitan 0.2.2 (torchtitan/config/job_config.py),
// the last release that reads TOML.
//
//===----------------------------------------------------------------------===//
#include "passes/PipelineSchedules/Schedule.h"
#include "tools/driver/Emit/ChosenStep.h"
#include "tools/driver/Emit/EmitAdvice.h"

#include <algorithm>

namespace accel {
namespace {

class TorchtitanWriter {
public:
  TorchtitanWriter(const Advice &advice, const plan::Plan &plan,
                   const ChosenStep &step, const PlanOptions &options)
      : advice(advice), plan(plan), step(step), options(options) {}

  /// What was counted and torchtitan has no key for; empty: nothing.
  std::string lacking() const {
    const ScriptSettings &script = advice.job->script;
    const OptimizerConfig &optimizer = advice.job->optimizer;
    const Candidate &c = step.candidate;
    if (*script.fusedLoss)
      return "Liger Kernel's operators (" + script.fusedLoss.key + ")";
    if (c.lossChunks > 1)
      return "a loss in " + std::to_string(c.lossChunks) + " chunks";
    if (!plan.job.adapterConfig.empty() || script.adapter ||
        advice.job->adapter || !advice.job->adapterPath->empty() ||
        !options.adapter.empty())
      return "an adapter";
    if (advice.job->quantization)
      return "quantised weights";
    // OptimizersContainer knows no others (components/optimizer.py).
    if ((*optimizer.name != "adamw" && *optimizer.name != "adam") ||
        optimizer.stateDtype)
      return "the optimizer " +
             (options.optim ? options.optim->name : *optimizer.name) +
             " (it has Adam and AdamW with states in the parameters' dtype)";
    if (const auto &kernel = *script.attention;
        kernel && *kernel != AttentionKernel::Sdpa)
      return std::string("attention by ") + toString(*kernel);
    if (*script.offloadsCheckpoints ||
        std::find(c.offloadActivations.begin(), c.offloadActivations.end(),
                  true) != c.offloadActivations.end())
      return "saved values on the host";
    if (c.dtypes.compute == plan::DType::F16)
      return "computation in fp16";
    if (options.script.fp8 == toString(Fp8Recipe::Delayed))
      return "fp8 by TransformerEngine (it has torchao's recipes)";
    // parallel_dims.py takes all ranks of cp into those that share experts.
    if (const int64_t experts = c.mesh.size(plan::expertAxis);
        experts > 1 && experts % c.mesh.size("cp") != 0)
      return "experts among " + std::to_string(experts) + " of " +
             std::to_string(c.mesh.size("cp")) +
             " ranks of cp (its ep is a multiple of cp)";
    if (options.prefetch.value_or(1) != 1)
      return "another number of units gathered ahead than one";
    return "";
  }

  std::string run() {
    const plan::Mesh &mesh = step.candidate.mesh;
    const int64_t stages = mesh.size(plan::pipelineAxis);
    out = "# " + plan.job.modelName + " on " + std::to_string(mesh.ranks()) +
          (plan.target.empty() ? " ranks" : " x " + plan.target) +
          ", as accel-opt plans it. What it does not say (the model's\n"
          "# flavor, data, the optimizer's rates) is the job's own.\n";
    section("training");
    // A schedule's micro-batches are parts of the local batch.
    number("local_batch_size",
           step.microBatch * (stages > 1 ? step.candidate.accumulation : 1));
    number("global_batch_size", step.globalBatch());
    number("seq_len", plan.job.sequenceLength);
    if (plan.job.optimizer.maxGradNorm > 0)
      out +=
          "max_norm = " + std::to_string(plan.job.optimizer.maxGradNorm) + "\n";
    text("mixed_precision_param",
         step.candidate.dtypes.compute == plan::DType::BF16 ? "bfloat16"
                                                            : "float32");
    flag("enable_cpu_offload", step.candidate.offloadParameters);
    section("optimizer");
    text("name", *advice.job->optimizer.name == "adam" ? "Adam" : "AdamW");
    constexpr const char *implementations[] = {"fused", "foreach", "for-loop"};
    text("implementation",
         implementations[static_cast<int>(step.candidate.optimizer)]);
    section("parallelism");
    number("data_parallel_replicate_degree", mesh.size("dp_replicate"));
    // Ranks that share experts are among those that shard all else.
    const int64_t experts = mesh.size(plan::expertAxis);
    number("data_parallel_shard_degree", mesh.size("dp_shard") * experts);
    if (experts > 1) {
      number("expert_parallel_degree", experts);
      // Ranks of tp have a part of each expert; its default of 1 gives them
      // whole ones, and ep would have to be a multiple of cp x tp.
      if (mesh.size("tp") > 1)
        number("expert_tensor_parallel_degree", mesh.size("tp"));
    }
    text("fsdp_reshard_after_forward", resharding());
    number("tensor_parallel_degree", mesh.size("tp"));
    flag("enable_async_tensor_parallel", options.asyncTensor);
    number("context_parallel_degree", mesh.size("cp"));
    if (mesh.size("cp") > 1)
      text("context_parallel_rotate_method",
           *advice.job->accelerate.contextSends ? "alltoall" : "allgather");
    number("pipeline_parallel_degree", stages);
    if (stages > 1) {
      text("pipeline_parallel_schedule", "1F1B");
      number("pipeline_parallel_microbatch_size", step.microBatch);
    }
    section("activation_checkpoint");
    const std::string mode = step.recomputeOfAll().value_or("none");
    text("mode", mode == "pointwise" ? "selective" : mode);
    if (mode == "pointwise")
      text("selective_ac_option", "op");
    section("compile");
    flag("enable", step.candidate.compiled);
    if (const std::string &recipe = options.script.fp8; !recipe.empty()) {
      section("model");
      out += "converters = [\"quantize.linear.float8\"]\n";
      section("quantize.linear.float8");
      text("recipe_name", recipe);
    }
    return std::move(out);
  }

private:
  void section(const std::string &name) { out += "\n[" + name + "]\n"; }
  void number(const char *key, int64_t value) {
    out += std::string(key) + " = " + std::to_string(value) + "\n";
  }
  void text(const char *key, const std::string &value) {
    out += std::string(key) + " = \"" + value + "\"\n";
  }
  void flag(const char *key, bool value) {
    out += std::string(key) + " = " + (value ? "true" : "false") + "\n";
  }

  /// Its default gathers layers again in the backward, but for stages.
  std::string resharding() const {
    bool any = false, all = true;
    for (const StepCall &call : advice.model->calls)
      if (call.layer && !call.parameters.empty()) {
        const int unit = step.candidate.unitOf[call.parameters.front()];
        const bool after =
            unit >= 0 && step.candidate.reshardAfterForward[unit];
        any |= after;
        all &= after;
      }
    if (step.candidate.stages() > 1)
      return all ? "always" : "default";
    return any ? "default" : "never";
  }

  const Advice &advice;
  const plan::Plan &plan;
  const ChosenStep &step;
  const PlanOptions &options;
  std::string out;
};

} // namespace

std::optional<std::string> emitTorchtitan(const Advice &advice,
                                          const plan::Plan &plan,
                                          const PlanOptions &options,
                                          DiagnosticEngine &engine) {
  if (options.trainer != "torchtitan") {
    engine.error("emit-torchtitan", options.config,
                 "--emit torchtitan writes what torchtitan reads, and the "
                 "executor is another",
                 "pass --executor torchtitan");
    return std::nullopt;
  }
  const auto step = chosenStep(advice, plan.job.microBatch, engine);
  if (!step)
    return std::nullopt;
  if (!step->recomputeOfAll()) {
    engine.error("emit-torchtitan", options.config,
                 "layers recompute differently, which torchtitan has no word "
                 "for");
    return std::nullopt;
  }
  TorchtitanWriter writer(advice, plan, *step, options);
  if (const std::string lacking = writer.lacking(); !lacking.empty()) {
    engine.error("emit-torchtitan", options.config,
                 "the plan counts " + lacking +
                     ", which torchtitan has no word for",
                 "plan without it");
    return std::nullopt;
  }
  return writer.run();
}

} // namespace accel
