//===- CandidateJson.cpp - What was modelled, for programs ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/SettingJson.h"

#include <map>

namespace accel {

using Json = nlohmann::ordered_json;

namespace {

const char *kernelName(OptimizerKernel kernel) {
  switch (kernel) {
  case OptimizerKernel::Fused:
    return "fused";
  case OptimizerKernel::Foreach:
    return "foreach";
  case OptimizerKernel::ForLoop:
    return "for_loop";
  }
  return "";
}

/// Calls by the variant that they use.
Json variants(const StepModel &model, const Candidate &candidate) {
  std::map<std::string, int> counts;
  for (size_t c = 0; c < model.calls.size(); ++c)
    if (const SegmentKind &kind = model.kinds[model.calls[c].kind];
        kind.variants.size() > 1 && model.calls[c].layer)
      ++counts[kind.variants[candidate.variants[c]].name];
  return counts;
}

} // namespace

Json candidateJson(const StepModel &model, const Candidate &c) {
  int resharded = 0;
  for (const bool after : c.reshardAfterForward)
    resharded += after;
  const StepDtypes &r = c.dtypes;
  Json result = {{"framework", toString(c.executor)},
                 {"shard_ranks", c.shards().ranks},
                 {"replicate_ranks", c.replicas().ranks},
                 {"units", c.numUnits()},
                 {"units_resharded", resharded},
                 {"storage", plan::toString(r.storage)},
                 {"compute", plan::toString(r.compute)},
                 {"reduce", plan::toString(r.reduce)},
                 {"autocast", r.autocast},
                 {"master_copy", c.holdsMasterCopy()},
                 {"accumulation", c.accumulation},
                 {"accumulation_mode",
                  c.reduceEachMicroBatch ? "reduce_each" : "keep_unsharded"},
                 {"forward_prefetch", c.forwardPrefetch},
                 {"backward_prefetch", c.backwardPrefetch},
                 {"recompute", variants(model, c)},
                 {"optimizer_kernel", kernelName(c.optimizer)},
                 {"clips", c.clipGradients},
                 {"offload_parameters", c.offloadParameters},
                 {"offload_optimizer", c.offloadOptimizer},
                 {"loss_chunks", c.lossChunks}};
  if (c.executor == FrameworkKind::AccelRun) {
    result["hold_gathers"] = c.holdGathers;
    result["await_reductions"] = c.awaitReductions;
  }
  if (c.executor == FrameworkKind::Ddp)
    result["buckets"] = {{"bytes", c.bucketBytes},
                         {"first_bytes", c.firstBucketBytes},
                         {"views", c.gradientAsBucketView},
                         {"hook", c.commHook}};
  if (c.executor == FrameworkKind::Deepspeed)
    result["zero"] = {{"stage", c.zeroStage},
                      {"reduce_bucket", c.zero.reduceBucket},
                      {"prefetch_bucket", c.zero.prefetchBucket},
                      {"persistence_threshold", c.zero.persistenceThreshold},
                      {"overlap", c.zero.overlap},
                      {"sub_group", c.zero.subGroup},
                      {"secondary", c.zero.secondaryRanks},
                      {"quantized_weights", c.zero.quantizedWeights},
                      {"quantized_gradients", c.zero.quantizedGradients}};
  const PreferenceStep &preference = c.preference;
  if (preference.reference != PreferenceStep::Reference::None)
    result["reference"] =
        preference.reference == PreferenceStep::Reference::Second ? "second"
                                                                  : "itself";
  if (preference.scoresItself)
    result["scores_itself"] = true;
  if (preference.generationBytes > 0)
    result["generation_bytes"] = preference.generationBytes;
  return result;
}

} // namespace accel
