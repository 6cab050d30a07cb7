//===- Parallelism.cpp - Mesh axes against the model ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/Lint/Lint.h"
#include "frontends/Lint/Subject.h"
#include "frontends/ModuleTree/SharedHeads.h"

namespace accel::lint {

namespace {

constexpr const char *section = "parallelism_config";

Field sizeField(const Subject &subject, const std::string &axis) {
  return subject.in(section, "parallelism_config_" + axis + "_size");
}

/// torch's context parallelism replaces every mask by a plain causal one, and
/// DeepSpeed's exchanges tokens for heads within attention alone.
void checkAttention(const Subject &subject, const std::string &axis) {
  const bool sequence = axis == "sp";
  if (subject.meshSize(axis) <= 1 ||
      (sequence && !subject.isType(DistributedType::Deepspeed)))
    return;
  const bool refused = subject.version >= AccelerateVersion{1, 15};
  if (const auto layers = unsharedLayers(
          *subject.tree, sequence, refused ? "" : toString(subject.version)))
    subject.report(refused ? Severity::Error : Severity::Warning, layers->code,
                   sizeField(subject, axis), layers->message, layers->hint);
}

/// Heads are dealt out whole.
void checkHeads(const Subject &subject, const std::string &axis) {
  int64_t size = subject.meshSize(axis);
  const TreeSizes &sizes = subject.tree->sizes;
  // Without a plan nothing is split, whatever the heads (no-tp-plan).
  if (size <= 1 || sizes.heads == 0 ||
      (axis == "tp" && !subject.tree->tensorParallelPlan))
    return;
  Field field = sizeField(subject, axis);
  std::optional<std::pair<std::string, std::string>> undivided;
  if (axis == "tp")
    undivided = undividedHeads(*subject.tree, size);
  else if (sizes.heads % size)
    undivided = {std::to_string(sizes.heads) + " attention heads of " +
                     subject.tree->architecture + " cannot be divided among " +
                     axis + "_size " + std::to_string(size) + " ranks",
                 "write a divisor of " + std::to_string(sizes.heads)};
  else
    undivided = undividedKeyHeads(*subject.tree, size);
  if (undivided)
    subject.report(Severity::Error, "head-count", field, undivided->first,
                   undivided->second);
}

void checkTensorParallel(const Subject &subject) {
  int64_t size = subject.meshSize("tp");
  if (size <= 1)
    return;
  Field field = sizeField(subject, "tp");
  if (subject.tree && !subject.tree->tensorParallelPlan) {
    subject.report(Severity::Error, "no-tp-plan", field,
                   "transformers has no tensor-parallel plan for " +
                       subject.tree->architecture +
                       ", and Accelerate wants a model that is split already",
                   "leave tp_size at 1");
    return;
  }
  // Since 1.13 it goes on without: tp-skipped and tp-import say how.
  const bool skips = subject.version >= AccelerateVersion{1, 13};
  if (skips &&
      (!subject.isFsdp2() || subject.transformers >= AccelerateVersion{5, 23}))
    return;
  subject.report(Severity::Note, "tp-model", field,
                 "Accelerate does not split the model: " +
                     std::string(skips ? "it trains without tensor parallelism"
                                       : "every rank stops with a ValueError") +
                     " unless the script loads it with tp_size " +
                     std::to_string(size),
                 "from_pretrained(..., distributed_config=DistributedConfig("
                 "tp_size=" +
                     std::to_string(size) +
                     ")); before transformers 5.18 tp_plan=\"auto\"");
}

void checkSequence(const Subject &subject) {
  int64_t size = subject.meshSize("sp");
  if (size <= 1)
    return;
  Field length = subject.in(section, "parallelism_config_sp_seq_length");
  std::optional<int64_t> tokens;
  if (length)
    tokens = integer(length);
  if (tokens && *tokens % size)
    subject.report(Severity::Error, "sequence-split", length,
                   "sequences of " + std::to_string(*tokens) +
                       " tokens cannot be divided among sp_size " +
                       std::to_string(size) + " ranks",
                   "write a multiple of " + std::to_string(size));
  if (!subject.isType(DistributedType::Deepspeed))
    subject.report(Severity::Error, "sp-needs-deepspeed",
                   sizeField(subject, "sp"),
                   needsDeepspeed(*subject.config->distributedType),
                   deepspeedForSequences);
}

/// torch's context parallelism gives each rank two chunks of every sequence.
void checkContext(const Subject &subject) {
  int64_t size = subject.meshSize("cp");
  if (size <= 1 || !subject.job ||
      !subject.job->data.sequenceLength->has_value())
    return;
  int64_t tokens = **subject.job->data.sequenceLength;
  if (tokens % (2 * size))
    subject.report(Severity::Error, "sequence-split", sizeField(subject, "cp"),
                   "sequences of " + std::to_string(tokens) +
                       " tokens cannot be divided into 2 x cp_size " +
                       std::to_string(size) + " chunks",
                   "choose a multiple of " + std::to_string(2 * size));
}

/// FSDP2 pads the first dimension of each parameter to a multiple of the ranks.
void checkPadding(const Subject &subject) {
  int64_t ranks = subject.config->mesh->size("dp_shard");
  if (!subject.isFsdp2() || ranks <= 1)
    return;
  double plain = 0, padded = 0;
  for (const TreeParameter &p : subject.tree->parameters) {
    if (p.tiedTo >= 0 || p.shape.empty() || p.shape[0] == 0)
      continue;
    double n = static_cast<double>(p.numel());
    double rows = static_cast<double>((p.shape[0] + ranks - 1) / ranks * ranks);
    plain += n;
    padded += n / static_cast<double>(p.shape[0]) * rows;
  }
  if (plain == 0 || padded < plain * 1.05)
    return;
  subject.report(
      Severity::Note, "shard-padding", sizeField(subject, "dp_shard"),
      "the parameters' first dimensions do not divide by " +
          std::to_string(ranks) + " ranks: padding makes the largest shard " +
          std::to_string(static_cast<int>((padded / plain - 1) * 100 + 0.5)) +
          " % larger",
      "shard over fewer ranks and replicate over the rest");
}

} // namespace

void checkParallelism(const Subject &subject) {
  if (!subject.config)
    return;
  checkTensorParallel(subject);
  checkSequence(subject);
  checkContext(subject);
  if (!subject.tree)
    return;
  checkAttention(subject, "cp");
  checkAttention(subject, "sp");
  checkHeads(subject, "tp");
  checkHeads(subject, "sp");
  checkPadding(subject);
}

} // namespace accel::lint

namespace accel {

void lintContextAttention(const JobConfig &job, DiagnosticEngine &engine) {
  const ScriptSettings &script = job.script;
  const AttentionKernel kernel =
      script.attention->value_or(AttentionKernel::Sdpa);
  // axolotl brings a ring of its own, which is flash attention's.
  if (kernel == AttentionKernel::Sdpa || script.owner == "axolotl" ||
      *job.accelerate.strategy != Strategy::Fsdp2 || job.ownMesh ||
      job.accelerate.mesh->size("cp") <= 1)
    return;
  const std::string name = toString(kernel);
  engine.report(diagnosticAt(
      script.attention, Severity::Error, "cp-attention",
      *job.transformersTrainer
          ? "Trainer runs context parallelism with sdpa alone, and "
            "attn_implementation is " +
                name + ": every rank stops with a ValueError"
          : "torch's context parallelism exchanges keys within "
            "scaled_dot_product_attention alone: with attn_implementation " +
                name + " each rank attends to its own tokens",
      "write attn_implementation: sdpa, or leave cp_size at 1"));
}

} // namespace accel
