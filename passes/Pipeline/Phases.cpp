//===- Phases.cpp - The phases of a compilation ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/Phases.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Schedule/Schedule.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Passes.h"
#include "passes/Pipeline/Requests.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Stages.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

namespace {

/// Every decision that does not depend on what the functions compute. Buffers
/// of the framework come first, since ZeRO's stage decides what is sharded.
void addDecidePasses(OpPassManager &pm) {
  pm.addPass(createDecideFrameworkPass());
  pm.addPass(createDecideExpertsPass());
  pm.addPass(createWrapPass());
  pm.addPass(createPrecisionPass());
  pm.addPass(createReshardPass());
  pm.addPass(createAccumulatePass());
  pm.addPass(createOptimizerInBackwardPass());
  pm.addPass(createPrefetchPass());
  pm.addPass(createGathersPass());
  pm.addPass(createReductionsPass());
  pm.addPass(createActivationCheckpointingPass());
  pm.addPass(createDecideLossChunksPass());
}

/// Applies the decisions to functions: the dtype of every tensor must be fixed
/// before kernels are chosen, and the kernels before their derivatives are
/// written down. Rows move between ranks before that, since a gradient moves
/// the other way.
void addDifferentiatePasses(OpPassManager &pm) {
  pm.addPass(createApplyPrecisionPass());
  pm.addPass(createApplyAutocastPass());
  pm.addPass(createSeparateEvalPass());
  pm.addPass(createSelectKernelsPass());
  pm.addPass(createApplyLossChunksPass());
  pm.addPass(createCutGraphsPass());
  pm.addPass(createDispatchExpertsPass());
  pm.addPass(createDifferentiatePass());
}

/// Makes functions of one rank's parts, for axes inside of functions (tp).
/// `torchRing`: attention over shards of tokens is torch's ("allgather" or
/// "alltoall"); empty: accel-run's.
void addPartitionPasses(OpPassManager &pm, bool asTransformers,
                        StringRef sequenceAxis, bool wholeGradients,
                        StringRef torchRing) {
  ImportTpPlanPassOptions plan;
  plan.asTransformers = asTransformers;
  pm.addPass(createImportTpPlanPass(plan));
  PropagateShardingPassOptions options;
  options.sequenceAxis = sequenceAxis.str();
  options.wholeGradients = wholeGradients;
  pm.addPass(createPropagateShardingPass(options));
  PartitionShardingPassOptions parts;
  parts.torchRing = torchRing.str();
  pm.addPass(createPartitionShardingPass(parts));
  pm.addPass(createFoldCollectivesPass());
}

struct PartitionPipelineOptions
    : PassPipelineOptions<PartitionPipelineOptions> {
  Option<std::string> sequenceAxis{
      *this, "sequence-axis",
      llvm::cl::desc("the mesh axis that shards sequences between layers")};
  Option<bool> asTransformers{
      *this, "as-transformers",
      llvm::cl::desc("logits are gathered, as transformers does it")};
  Option<bool> wholeGradients{
      *this, "whole-gradients",
      llvm::cl::desc("gradients are summed in functions, as in accel-run's")};
  Option<std::string> torchRing{
      *this, "torch-ring",
      llvm::cl::desc("ring attention as torch computes it, whose keys are "
                     "exchanged by allgather or alltoall")};
};

/// An axis that is inside of functions has more than one rank.
bool hasInnerAxis(mlir::ModuleOp module) {
  auto mesh = sharding::findOnly<sharding::MeshOp>(module);
  return mesh &&
         llvm::any_of(mesh.getAxes().getAsRange<sharding::AxisAttr>(),
                      [](sharding::AxisAttr axis) {
                        return axis.getSize() > 1 &&
                               axis.getName() != plan::pipelineAxis &&
                               plan::sharesSamples(axis.getName().str());
                      });
}

/// How accel-run computes what the partitioned functions say, before memory is
/// counted.
void addExecutionPasses(OpPassManager &pm) {
  pm.addPass(createSplitCausalAttentionPass());
  pm.addPass(createSumProductsPass());
}

/// What accel-run's functions save for their backward.
void addSavePasses(OpPassManager &pm) {
  pm.addPass(createActivationBudgetPass());
  pm.addPass(createSelectSavedTensorsPass());
}

void addShardedPasses(OpPassManager &pm) {
  addDecidePasses(pm);
  addDifferentiatePasses(pm);
  addExecutionPasses(pm);
  addSavePasses(pm);
}

/// As `module`'s executor shards it, where it has an axis to shard over.
void addPartitionPassesFor(mlir::ModuleOp module, OpPassManager &pm) {
  if (!hasInnerAxis(module))
    return;
  const frameworks::Framework &framework = frameworkOf(module);
  // torchtitan and accel-run compute the loss of sharded logits.
  const bool sequence = framework.shardsSequence() ||
                        sharding::findRequest(module, sequenceRequest);
  addPartitionPasses(pm,
                     /*asTransformers=*/framework.gathersLogits() && !sequence,
                     sequence ? "tp" : "",
                     /*wholeGradients=*/!framework.eager(),
                     !framework.eager() ? ""
                     : sharding::findRequest(module, contextSendsRequest)
                         ? "alltoall"
                         : "allgather");
}

/// lower-to-schedule overlaps what the decisions let overlap; activations are
/// freed last, where they really die.
void addProgramPasses(OpPassManager &pm, StringRef target = {},
                      bool overlap = true) {
  pm.addPass(createPartitionPass());
  CutStagesPassOptions stages;
  stages.target = target.str();
  pm.addPass(createCutStagesPass(stages));
  pm.addPass(createSplitBackwardPass());
  OverlapCollectivesPassOptions order;
  order.target = target.str();
  if (overlap)
    pm.addPass(createOverlapCollectivesPass(order));
  pm.addPass(createLowerToSchedulePass());
  pm.addPass(createOffloadActivationsPass());
  pm.addPass(createInsertFreesPass());
}

void addScheduledPasses(OpPassManager &pm) {
  addProgramPasses(pm);
  pm.addPass(createVerifySchedulePass());
}

} // namespace

const std::vector<PhaseInfo> &phases() {
  static const std::vector<PhaseInfo> table = {
      {Phase::Model, "model",
       "the model graph, its parameters, and what the configuration asks for"},
      {Phase::Sharded, "sharded",
       "units and every decision; segments with their backward"},
      {Phase::Scheduled, "scheduled",
       "forward and backward functions, and programs with explicit buffers"}};
  return table;
}

const char *toString(Phase phase) {
  return phases()[static_cast<size_t>(phase)].name;
}

std::vector<std::string> phaseNames() {
  std::vector<std::string> names;
  for (const PhaseInfo &info : phases())
    names.push_back(info.name);
  return names;
}

std::optional<Phase> parsePhase(StringRef name) {
  for (const PhaseInfo &info : phases())
    if (name == info.name)
      return info.phase;
  return std::nullopt;
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<func::FuncDialect, aten::AtenDialect,
                  sharding::ShardingDialect, schedule::ScheduleDialect>();
}

void registerPasses() {
  registerAccelPasses();
  PassPipelineRegistration<>("to-decided",
                             "every decision that needs no derivatives",
                             addDecidePasses);
  PassPipelineRegistration<>(
      "to-differentiated",
      "from decided: dtypes, kernels and derivatives of every function",
      addDifferentiatePasses);
  PassPipelineRegistration<PartitionPipelineOptions>(
      "to-partitioned",
      "from differentiated: functions of one rank's parts, where the mesh has "
      "an axis inside of functions (tp)",
      [](OpPassManager &pm, const PartitionPipelineOptions &options) {
        addPartitionPasses(pm, options.asTransformers, options.sequenceAxis,
                           options.wholeGradients, options.torchRing);
      });
  PassPipelineRegistration<>("to-sharded",
                             "phase 'sharded': every decision is taken",
                             addShardedPasses);
  PassPipelineRegistration<>(
      "to-scheduled", "phase 'scheduled': programs with explicit buffers",
      addScheduledPasses);
}

/// Runs the pipeline that `add` makes.
static LogicalResult run(mlir::ModuleOp module, Verification verification,
                         llvm::function_ref<void(OpPassManager &)> add) {
  PassManager pm(module.getContext());
  const bool each = verification == Verification::AfterEachPass;
  pm.enableVerifier(each);
  add(pm);
  if (failed(pm.run(module)))
    return failure();
  return verification == Verification::AtTheEnd ? verify(module) : success();
}

LogicalResult runPhases(mlir::ModuleOp module, Phase from, Phase to,
                        Verification verification, StringRef target,
                        bool overlap) {
  return run(module, verification, [&](OpPassManager &pm) {
    if (from < Phase::Sharded && to >= Phase::Sharded) {
      addDecidePasses(pm);
      addDifferentiatePasses(pm);
      addPartitionPassesFor(module, pm);
      addExecutionPasses(pm);
      addSavePasses(pm);
    }
    if (from >= Phase::Scheduled || to < Phase::Scheduled)
      return;
    addProgramPasses(pm, target, overlap);
    if (verification != Verification::Never)
      pm.addPass(createVerifySchedulePass());
  });
}

LogicalResult runDecisions(mlir::ModuleOp module, Verification verification) {
  return run(module, verification, addDecidePasses);
}

LogicalResult runDifferentiation(mlir::ModuleOp module,
                                 Verification verification) {
  return run(module, verification, [&](OpPassManager &pm) {
    addDifferentiatePasses(pm);
    addPartitionPassesFor(module, pm);
    addExecutionPasses(pm);
  });
}

LogicalResult runSaves(mlir::ModuleOp module, Verification verification) {
  return run(module, verification, addSavePasses);
}

std::string missingForPhase(mlir::ModuleOp module, Phase phase) {
  if (!sharding::findOnly<sharding::MeshOp>(module))
    return "it has no sharding.mesh";
  if (!sharding::findOnly<sharding::JobOp>(module))
    return "it has no sharding.job";
  if (!sharding::findOnly<sharding::GraphOp>(module))
    return "it has no sharding.graph";
  // Passes that ran must not run again.
  bool scheduled =
      static_cast<bool>(sharding::findOnly<schedule::ProgramOp>(module));
  if (phase < Phase::Scheduled && scheduled)
    return "it has a schedule.program, so it is of the phase 'scheduled'";
  if (phase == Phase::Model)
    return sharding::findOnly<sharding::UnitOp>(module)
               ? "it has a sharding.unit, so it is of the phase 'sharded'"
               : "";
  if (!sharding::findOnly<sharding::UnitOp>(module))
    return "it has no sharding.unit, so the wrap pass has not run";
  if (frameworkOf(module).eager())
    return std::string("it is decided for ") + frameworkOf(module).name() +
           ", and programs are accel-run's: compile the file with --executor "
           "accel-run";
  if (phase == Phase::Sharded)
    return "";
  if (!scheduled)
    return "it has no schedule.program, so lower-to-schedule has not run";
  return "";
}

} // namespace accel
