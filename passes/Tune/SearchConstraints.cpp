//===- SearchConstraints.cpp - Which knobs may be turned ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/SearchConstraints.h"

#include <algorithm>

namespace accel::tune {
namespace {

class Opener {
public:
  Opener(Space &space, const JobConfig &job, const TuneRequest &request)
      : space(space), job(job), accelerate(job.accelerate), request(request),
        executor(space.base.executor) {}

  void run() {
    for (KnobState &state : space.knobs)
      state = {true, "", "", 0, 0};
    space.isJob = job.isJob;
    readConfiguration();
    readExecutor();
    allowVariants();
    for (int k = 0; k < numKnobs; ++k)
      closeIfAlone(static_cast<Knob>(k));
  }

private:
  void close(Knob knob, std::string by) {
    KnobState &state = space.state(knob);
    if (!state.open)
      return; // the first reason is the strongest
    state.open = false;
    state.by = std::move(by);
  }

  /// What is written stays, unless everything may change.
  template <typename T> void written(Knob knob, const Setting<T> &setting) {
    if (request.all || !setting.written() || !space.open(knob))
      return;
    std::string asked;
    for (const EffectiveValue &value : accelerate.effective)
      if (value.key == setting.key)
        asked = value.asked;
    std::string name = setting.key.substr(setting.key.rfind('.') + 1);
    close(knob, name + (asked.empty() ? " is written" : ": " + asked));
    KnobState &state = space.state(knob);
    state.file = setting.at.file;
    state.line = setting.at.line;
    state.column = setting.at.column;
  }

  void readConfiguration() {
    const AccelerateConfig &a = accelerate;
    if (request.microBatch)
      close(Knob::Split, "--micro-batch or --grad-accum");
    written(Knob::Split, job.data.microBatch);
    written(Knob::Split, job.accumulation);
    if (request.prefetch) {
      close(Knob::ForwardPrefetch, "--prefetch");
      close(Knob::BackwardPrefetch, "--prefetch");
    }
    if (request.accumulationMode)
      close(Knob::Accumulation, "--accumulation");
    if (request.lossChunks)
      close(Knob::Loss, "--loss-chunks");
    if (request.bucket)
      close(Knob::Bucket, "--ddp-kwargs");
    written(Knob::Loss, job.lossChunks);
    written(Knob::Reductions, job.awaitReductions);
    if (request.optimizer)
      close(Knob::Optimizer, "--optim");
    written(Knob::Optimizer, job.script.optim);
    for (OptimizerOption &option : space.optimizers)
      option.allowed = request.narrowStates || option.caution.empty();
    if (space.optimizers.size() > 1 &&
        std::count_if(space.optimizers.begin(), space.optimizers.end(),
                      [](const auto &option) { return option.allowed; }) < 2)
      close(Knob::Optimizer, "others change results; --tune-precision allows "
                             "it");
    if (!request.precision)
      close(Knob::Precision, "it changes results; --tune-precision allows it");
    written(Knob::Mesh, a.mesh);
    if (executor == FrameworkKind::Fsdp1)
      written(Knob::Mesh, a.sharding);
    written(Knob::Wrap, a.wrapClasses);
    written(Knob::Wrap, a.minNumParams);
    written(Knob::Wrap, a.wrapPolicy);
    if (!a.ignoredModules.value.empty())
      close(Knob::Wrap, "fsdp_ignored_modules is set");
    written(Knob::Reshard, a.reshardAfterForward);
    if (executor == FrameworkKind::Fsdp1) {
      written(Knob::Reshard, a.sharding);
      written(Knob::ForwardPrefetch, a.forwardPrefetch);
      written(Knob::BackwardPrefetch, a.backwardPrefetch);
    }
    written(Knob::Checkpoint, job.activationCheckpointing);
    written(Knob::Checkpoint, a.activationCheckpointing);
    written(Knob::Checkpoint, job.script.layerCheckpointing);
    written(Knob::ParameterOffload, a.offloadParams);
    if (a.deepspeed) {
      written(Knob::ZeroStage, a.deepspeed->zeroStage);
      written(Knob::OptimizerOffload, a.deepspeed->offloadOptimizer);
      written(Knob::ParameterOffload, a.deepspeed->offloadParameters);
    }
    written(Knob::ActivationOffload, a.activationCheckpointingOffload);
  }

  void closeAll(std::initializer_list<Knob> knobs, const std::string &by) {
    for (Knob knob : knobs)
      close(knob, by);
  }

  void readExecutor() {
    const std::string name = toString(executor);
    // What is left is said by keys of its own, which are for all layers alike.
    if (!request.trainer.empty()) {
      closeAll({Knob::Loss, Knob::Wrap, Knob::ForwardPrefetch,
                Knob::BackwardPrefetch, Knob::Accumulation,
                Knob::ActivationOffload},
               request.trainer + " decides it");
      space.uniformCheckpoint = true;
      // The last layer alone stays gathered until mid-2025.
      const int kept = space.configured[Knob::Reshard];
      space.uniformReshard =
          kept == 0 || kept == static_cast<int>(space.layers.size());
    }
    if (space.lossChunks.size() < 2)
      close(Knob::Loss, "the logits are too few to be cut");
    if (space.base.shards().ranks <= 1)
      closeAll({Knob::Mesh, Knob::Wrap, Knob::Reshard, Knob::ForwardPrefetch,
                Knob::BackwardPrefetch, Knob::ParameterOffload},
               "parameters are not sharded");
    if (*job.script.ownShards)
      closeAll({Knob::Mesh, Knob::Wrap, Knob::Reshard, Knob::ForwardPrefetch,
                Knob::BackwardPrefetch, Knob::ParameterOffload,
                Knob::ActivationOffload},
               "distributed_config decides it");
    if (executor != FrameworkKind::AccelRun)
      close(Knob::Reductions, name + " overlaps them as it does");
    else if (!space.isJob)
      close(Knob::Reductions, "only a job file says it");
    else if (space.base.shards().ranks <= 1)
      close(Knob::Reductions, "gradients are not sharded");
    if (executor != FrameworkKind::Ddp)
      close(Knob::Bucket, "only ddp has buckets");
    if (executor != FrameworkKind::Deepspeed)
      close(Knob::ZeroStage, "only deepspeed has stages");
    switch (executor) {
    case FrameworkKind::AccelRun:
      closeAll({Knob::ParameterOffload, Knob::OptimizerOffload,
                Knob::ActivationOffload},
               "accel-run keeps everything on the device");
      break;
    case FrameworkKind::Fsdp2:
      // One unit ahead is what it does by itself, in both ways.
      space.minPrefetch = std::min(
          {1, space.base.forwardPrefetch, space.base.backwardPrefetch});
      close(Knob::OptimizerOffload, "goes with the parameters");
      break;
    case FrameworkKind::Fsdp1:
      close(Knob::OptimizerOffload, "goes with the parameters");
      close(Knob::ActivationOffload, "fsdp1 has none");
      space.maxPrefetch = 1;
      space.uniformReshard = space.uniformCheckpoint = true;
      break;
    case FrameworkKind::Deepspeed:
      space.uniformCheckpoint = true;
      closeAll({Knob::Mesh, Knob::Wrap, Knob::Reshard, Knob::ForwardPrefetch,
                Knob::BackwardPrefetch, Knob::ActivationOffload},
               "the stage decides it");
      break;
    case FrameworkKind::Megatron:
      space.uniformCheckpoint = true;
      closeAll({Knob::Mesh, Knob::Split, Knob::Wrap, Knob::Reshard,
                Knob::ForwardPrefetch, Knob::BackwardPrefetch,
                Knob::Accumulation, Knob::ParameterOffload,
                Knob::OptimizerOffload, Knob::ActivationOffload, Knob::Loss},
               "megatron_lm_config decides it");
      break;
    case FrameworkKind::Ddp:
    case FrameworkKind::Single:
      space.uniformCheckpoint = true;
      closeAll({Knob::ParameterOffload, Knob::OptimizerOffload,
                Knob::ActivationOffload},
               name + " has none");
      break;
    }
    if (!request.noOffload.empty())
      close(Knob::ActivationOffload, request.noOffload);
    if (!request.noHostUpdates.empty())
      closeAll({Knob::ParameterOffload, Knob::OptimizerOffload},
               request.noHostUpdates);
  }

  /// accel-run computes any segment again in any way; a wrapper around layers
  /// computes all of a layer again, or under torch 2.4's selective policies
  /// all but matmuls and attention.
  void allowVariants() {
    for (LayerGroup &group : space.groups)
      for (size_t v = 0; v < group.names.size(); ++v) {
        bool own = space.configured.counts[group.offset + v] > 0;
        const std::string &name = group.names[v];
        if (executor == FrameworkKind::AccelRun) {
          group.allowed[v] =
              own || !group.unnamed || name == "none" || name == "pointwise";
          continue;
        }
        // Megatron has no word for nothing (accelerate 1.13 and later).
        const bool selects = executor == FrameworkKind::Fsdp2 ||
                             executor == FrameworkKind::Megatron;
        group.allowed[v] =
            own || (group.layer &&
                    ((name == "none" && executor != FrameworkKind::Megatron) ||
                     name == "full" || (name == "pointwise" && selects)));
      }
  }

  /// A knob with one option is no choice.
  void closeIfAlone(Knob knob) {
    if (!space.open(knob))
      return;
    if (knob == Knob::Checkpoint) {
      for (const LayerGroup &group : space.groups)
        if (std::count(group.allowed.begin(), group.allowed.end(), true) > 1)
          return;
      return close(knob, "there is one way only");
    }
    if (knob == Knob::Accumulation) {
      for (const SplitOption &split : space.splits)
        if (split.accumulation > 1)
          return;
      // Of a mesh that is found, ranks that share samples have more of them.
      if (space.open(Knob::Mesh) && space.mesh(space.configured).whole())
        return;
      return close(knob, "a step has one micro-batch");
    }
    Point point = space.configured;
    // Others may be found for it.
    if (knob == Knob::Mesh && space.mesh(point).whole())
      return;
    if (space.values(knob, point).size() < 2)
      close(knob, knob == Knob::Split ? "a step has one sample a rank"
                                      : "there is one way only");
  }

  Space &space;
  const JobConfig &job;
  const AccelerateConfig &accelerate;
  const TuneRequest &request;
  FrameworkKind executor;
};

} // namespace

void openKnobs(Space &space, const JobConfig &job, const TuneRequest &request) {
  Opener(space, job, request).run();
}

bool openSolved(Space &space) {
  const KnobState &state = space.state(Knob::Checkpoint);
  if (!state.open && state.line)
    return false;
  bool any = false;
  for (LayerGroup &group : space.groups)
    for (size_t v = 0; v < group.names.size(); ++v)
      if (group.layer && (group.solved[v] || group.names[v] == "none" ||
                          group.names[v] == "full")) {
        group.allowed[v] = true;
        any |= group.solved[v];
      }
  space.state(Knob::Checkpoint).open = true;
  space.uniformCheckpoint = false;
  return any;
}

void restrictToYaml(Space &space, bool scriptFile, bool checkpointingGiven) {
  FrameworkKind executor = space.base.executor;
  auto close = [&](Knob knob) {
    if (space.open(knob)) {
      space.state(knob).open = false;
      space.state(knob).by = "no key of the YAML says it";
    }
  };
  space.uniformReshard = space.uniformCheckpoint = true;
  if (!scriptFile)
    close(Knob::Split);
  // The script says how many micro-batches a step has.
  if (!scriptFile && executor == FrameworkKind::Fsdp2)
    for (MeshOption &option : space.meshes)
      option.allowed =
          option.accumulation == space.mesh(space.configured).accumulation;
  close(Knob::Accumulation);
  close(Knob::Bucket);
  if (!scriptFile)
    close(Knob::Optimizer);
  const bool ownJob = executor == FrameworkKind::AccelRun && space.isJob;
  if (!ownJob && !scriptFile)
    close(Knob::Loss);
  if (!ownJob)
    close(Knob::Reductions);
  if (executor != FrameworkKind::Fsdp1) {
    close(Knob::ForwardPrefetch);
    close(Knob::BackwardPrefetch);
  }
  if (checkpointingGiven ||
      (!scriptFile &&
       (neverShards(executor) || executor == FrameworkKind::Deepspeed)))
    close(Knob::Checkpoint);
  // Whole layers are recomputed, or nothing; accel-run's own default lies
  // between.
  for (LayerGroup &group : space.groups)
    for (size_t v = 0; v < group.names.size(); ++v)
      if (group.solved[v] ||
          (group.layer && group.names[v] == "pointwise" &&
           !space.configured.counts[group.offset + v] &&
           executor != FrameworkKind::AccelRun &&
           executor != FrameworkKind::Megatron) ||
          // Nothing recomputed at all is said by a job.yaml alone.
          (group.names[v] == "none" && executor == FrameworkKind::AccelRun &&
           !ownJob && group.variants.size() > 1 &&
           !space.configured.counts[group.offset + v]))
        group.allowed[v] = false;
  for (WrapOption &wrap : space.wraps)
    wrap.allowed = wrap.perLayer <= 1;
}

bool wrapsHalves(FrameworkKind executor) {
  return executor == FrameworkKind::AccelRun ||
         executor == FrameworkKind::Fsdp2 || executor == FrameworkKind::Fsdp1;
}
bool wrapsSeveralLayers(FrameworkKind executor) {
  return executor == FrameworkKind::AccelRun ||
         executor == FrameworkKind::Fsdp2;
}

} // namespace accel::tune
