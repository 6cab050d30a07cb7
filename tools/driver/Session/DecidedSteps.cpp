//===- DecidedSteps.cpp - What plan says of other settings ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/DecidedSteps.h"

#include "dialects/Sharding/Sharding.h"
#include "frontends/TorchExport/BuildProgram.h"
#include "frontends/TorchExport/Describe.h"
#include "passes/FrameworkSteps/BuildStepModel.h"
#include "passes/FrameworkSteps/DecidedCandidate.h"
#include "passes/Pipeline/Phases.h"
#include "tools/driver/Inputs/EditFiles.h"
#include "tools/driver/Session/AccelRunPrediction.h"
#include "tools/driver/Session/ImportModule.h"
#include "tools/driver/Session/Waits.h"

using namespace mlir;

namespace accel {

/// Caps in bytes at which --tune solves each segment: what is between them is
/// made up of layers of both kinds.
static constexpr int solvedPoints = 12;

// Without seconds there is nothing to be solved, and Megatron-LM's model is
// recomputed in its own ways alone.
DecidedSteps::DecidedSteps(Session &session)
    : session(session),
      solved(session.options.tune && session.target &&
                     session.inputs->executor != FrameworkKind::Megatron
                 ? solvedPoints
                 : 0) {}

/// How ranks share a function: those of tp, cp and sp, and whether tokens are
/// shared between tensor-parallel layers.
static std::array<int64_t, 4> sharingOf(const PlanInputs &from) {
  const plan::Mesh &mesh = *from.job.accelerate.mesh;
  const auto &megatron = from.job.accelerate.megatron;
  return {mesh.size("tp"), mesh.size("cp"), mesh.size("sp"),
          megatron ? *megatron->sequenceParallelism
                   : *from.job.sequenceParallel};
}

/// Whether compiled graphs end inside of functions. Where they do is of the
/// wrapper, its buckets and what is checkpointed
/// (passes/Partition/CutGraphs.cpp), so that no other setting has the same
/// parts.
static bool cutsFunctions(mlir::ModuleOp module) {
  auto job = sharding::findOnly<sharding::JobOp>(module);
  auto compile = job ? job.getCompileAttr() : sharding::CompileAttr();
  return compile && compile.getEnds() != sharding::CompileEnds::Functions;
}

DecidedSteps::FunctionsKey DecidedSteps::keyOf(mlir::ModuleOp module,
                                               const PlanInputs &from,
                                               int64_t microBatch) {
  auto asked = [&](StringRef name) -> const void * {
    auto request = sharding::findRequest(module, name);
    return request ? request.getValue().getAsOpaquePointer() : nullptr;
  };
  return {asked("precision"), asked("compile"), microBatch, sharingOf(from)};
}

std::shared_ptr<const DecidedStep> DecidedSteps::read(mlir::ModuleOp module,
                                                      bool solves) {
  StepModelOptions options;
  options.target = &session.machine();
  options.solved = solves ? &solved : nullptr;
  options.variants = &variants;
  FailureOr<DecidedStep> step = decidedStep(module, options);
  return succeeded(step) ? std::make_shared<const DecidedStep>(std::move(*step))
                         : nullptr;
}

Session::Module DecidedSteps::differentiated(const PlanInputs &from,
                                             const ImportOptions &with,
                                             DiagnosticEngine &problems) {
  if (with.lossChunks && !kept.empty())
    if (Session::Module asked = session.importSignatures(from, with, problems))
      for (Differentiated &known : kept)
        if (known.module &&
            OperationEquivalence::isEquivalentTo(
                *asked, *known.asked, OperationEquivalence::IgnoreLocations))
          return std::move(known.module);
  Session::Module module = session.import(from, with, problems);
  if (!module || failed(runDecisions(*module, session.verificationOfTried())) ||
      failed(runDifferentiation(*module, session.verificationOfTried())))
    return {};
  return module;
}

std::shared_ptr<const DecidedStep>
DecidedSteps::decide(const PlanInputs &from, const ImportOptions &with,
                     DiagnosticEngine &problems, bool solves) {
  Session::Module module = differentiated(from, with, problems);
  if (!module)
    return nullptr;
  auto step = read(*module, solves);
  if (step && session.own() && with.lossChunks && !session.options.tune)
    if (Session::Module asked = session.importSignatures(from, with, problems))
      kept.push_back({std::move(asked), std::move(module)});
  return step;
}

bool DecidedSteps::keep(mlir::ModuleOp module) {
  auto step = read(module);
  if (!step)
    return false;
  const int64_t microBatch = session.inputs->training.microBatch;
  if (!cutsFunctions(module))
    models[keyOf(module, *session.inputs, microBatch)] = step->model;
  ofMesh[{sharingOf(*session.inputs), microBatch}] = step->model;
  steps[{microBatch, 0, 0}] = std::move(step);
  return true;
}

/// A GPU's seconds are its target's.
bool DecidedSteps::weighsWaits() const {
  return !session.options.noOverlap &&
         (session.target || session.importing.device == "cpu");
}

static OpenWaits openWaits(sharding::JobOp job) {
  return {!job.getGathersAttr(), !job.getReductionsAttr()};
}

static void apply(const WaitChoice &choice, sharding::JobOp job) {
  MLIRContext *context = job.getContext();
  auto why = sharding::BecauseAttr::get(context, choice.why);
  if (choice.gathers > 0)
    job.setGathersAttr(
        sharding::GathersAttr::get(context, choice.gathers, why));
  if (choice.reductions > 0)
    job.setReductionsAttr(
        sharding::ReductionsAttr::get(context, choice.reductions, why));
}

void DecidedSteps::decideWaits(mlir::ModuleOp module) {
  auto job = sharding::findOnly<sharding::JobOp>(module);
  if (!session.own() || !job || !weighsWaits())
    return;
  auto &kept = steps[{session.inputs->training.microBatch, 0, 0}];
  const WaitChoice choice = chooseWaits(*kept, session.machine(),
                                        session.roomBytes(), openWaits(job));
  apply(choice, job);
  DecidedStep waiting = *kept;
  ImportOptions &importing = session.importing;
  if (choice.gathers > 0) {
    waiting.candidate.holdGathers = choice.gathers;
    importing.holdGathers = choice.gathers;
    importing.gathersWhy = choice.why;
  }
  if (choice.reductions > 0) {
    waiting.candidate.awaitReductions = choice.reductions;
    importing.awaitReductions = choice.reductions;
    importing.reductionsWhy = choice.why;
  }
  kept = std::make_shared<const DecidedStep>(std::move(waiting));
}

bool DecidedSteps::hasBatch(int64_t microBatch) const {
  const torchexport::Program *program = session.inputs->model.program();
  if (!program)
    return true;
  const torchexport::ExportedSizes sizes = torchexport::exportedSizes(*program);
  return sizes.openBatch || sizes.microBatch == microBatch;
}

std::shared_ptr<const DecidedStep>
DecidedSteps::unsolvedAt(int64_t microBatch) {
  if (auto known = steps.find({microBatch, 0, 0}); known != steps.end())
    return known->second;
  if (!hasBatch(microBatch))
    return nullptr;
  ImportOptions with = session.importing;
  with.microBatch = microBatch;
  DiagnosticEngine ignored;
  const Session::Quiet quiet(session);
  return decide(*session.inputs, with, ignored, /*solves=*/false);
}

std::shared_ptr<const DecidedStep>
DecidedSteps::at(int64_t microBatch, int precision, int64_t lossChunks) {
  auto [known, isNew] = steps.try_emplace({microBatch, precision, lossChunks});
  if (!isNew)
    return known->second;
  if (!hasBatch(microBatch))
    return nullptr;
  ImportOptions with = session.importing;
  with.microBatch = microBatch;
  PlanInputs other = *session.inputs;
  if (precision)
    other.job = session.inputs->precisions[precision - 1].job;
  // A graph that cannot be cut is no error here.
  std::optional<Session::Quiet> quiet;
  DiagnosticEngine tried;
  if (lossChunks > 0) {
    with.lossChunks = LossChunks{lossChunks};
    with.lossWhy = "tried";
    quiet.emplace(session);
  }
  known->second = decide(other, with, quiet ? tried : session.engine);
  return known->second;
}

std::shared_ptr<const StepModel>
DecidedSteps::modelFor(mlir::ModuleOp module, const PlanInputs &from,
                       const ImportOptions &with) {
  const FunctionsKey key = keyOf(module, from, with.microBatch);
  const bool same = from.executor == session.inputs->executor;
  if (auto known = models.find(key); same && known != models.end())
    return known->second;
  // No line of a file names a solved way.
  auto step = decide(from, with, session.engine, /*solves=*/false);
  if (!step)
    return nullptr;
  if (same)
    models[key] = step->model;
  return step->model;
}

std::shared_ptr<const StepModel>
DecidedSteps::modelOf(const tune::ConfigEdit &edit) {
  const auto other = edited(edit);
  if (!other)
    return nullptr;
  // With kernels of its own it is told apart by its functions.
  if (*other->inputs.job.script.fusedLoss !=
      *session.inputs->job.script.fusedLoss) {
    const auto step = plannedStep(*other);
    return step ? step->model : nullptr;
  }
  auto [known, isNew] = ofMesh.try_emplace(
      {sharingOf(other->inputs), other->inputs.training.microBatch});
  if (isNew) {
    DiagnosticEngine ignored;
    Session::Quiet quiet(session);
    if (auto step = decide(other->inputs, other->importing, ignored,
                           /*solves=*/false))
      known->second = step->model;
  }
  if (!known->second)
    return nullptr;
  const plan::Mesh &mesh = *other->inputs.job.accelerate.mesh;
  if (known->second->stages == mesh.size(plan::pipelineAxis))
    return known->second;
  auto model = std::make_shared<StepModel>(*known->second);
  model->stages = mesh.size(plan::pipelineAxis);
  model->ranksPerSample = mesh.ranksPerSample();
  return model;
}

std::optional<StepPrediction> DecidedSteps::planProgram(const PlanInputs &from,
                                                        ImportOptions with) {
  DiagnosticEngine ignored;
  Session::Quiet quiet(session);
  if (!session.chooseLossChunks(from, with, ignored))
    return std::nullopt;
  if (with.lossChunks)
    with.lossWhy = "tried";
  Session::Module module = differentiated(from, with, ignored);
  // As `plan` would choose for it. Where a budget is known it is taken to be
  // enough.
  if (auto job = module ? sharding::findOnly<sharding::JobOp>(*module)
                        : sharding::JobOp();
      job && openWaits(job).any() && weighsWaits() && !session.budgetBytes()) {
    Session::Module copy = module->clone();
    if (const auto step = read(*copy, /*solves=*/false))
      apply(chooseWaits(*step, session.machine(), std::nullopt, openWaits(job)),
            job);
  }
  plan::Plan plan;
  if (!module || failed(runSaves(*module, session.verificationOfTried())) ||
      failed(runPhases(*module, Phase::Sharded, Phase::Scheduled,
                       session.verificationOfTried(), session.options.target,
                       !session.options.noOverlap)) ||
      failed(buildPredictedPlan(*module, session.targetOrNone(),
                                with.ranksPerNode, session.ownAllocator(),
                                plan)))
    return std::nullopt;
  return accelRunPrediction(plan, session.targetOrNone(), with.ranksPerNode);
}

std::optional<DecidedSteps::Edited>
DecidedSteps::edited(const tune::ConfigEdit &edit) {
  const PlanInputs &inputs = *session.inputs;
  PlanOptions changed = session.options;
  changed.emit.clear();
  changed.remarks.clear();
  changed.tune.reset();
  changed.tunePrecision = false;
  if (changed.globalBatch) {
    changed.globalBatch.reset();
    changed.microBatch = inputs.training.microBatch;
    changed.accumulation = inputs.training.accumulation;
  }
  if (!setPlanOptions(changed, edit.flags))
    return std::nullopt;
  FileEditor editor(changed.texts);
  if (!editor.set(edit.yaml))
    return std::nullopt;
  changed.texts = editor.texts();
  DiagnosticEngine ignored;
  auto other = readPlanInputs(changed, ignored, &inputs);
  if (!other)
    return std::nullopt;
  const ImportOptions with =
      importOptions(*other, changed, session.targetOrNone());
  return Edited{std::move(*other), with};
}

std::optional<PlannedStep> DecidedSteps::plannedStep(const Edited &edited) {
  DiagnosticEngine ignored;
  Session::Quiet quiet(session);
  Session::Module module =
      session.importSignatures(edited.inputs, edited.importing, ignored);
  if (!module || failed(runDecisions(*module, session.verificationOfTried())))
    return std::nullopt;
  std::shared_ptr<const StepModel> model;
  FailureOr<Candidate> candidate = failure();
  if (cutsFunctions(*module)) {
    // Signatures have no parts.
    if (auto step = decide(edited.inputs, edited.importing, ignored,
                           /*solves=*/false)) {
      model = step->model;
      candidate = step->candidate;
    }
  } else if ((model = modelFor(*module, edited.inputs, edited.importing))) {
    candidate = decidedCandidate(*module, *model);
  }
  if (failed(candidate) || !verifyCandidate(*model, *candidate).empty())
    return std::nullopt;
  const bool onDevice = neverShards(candidate->executor);
  return PlannedStep{std::move(model), std::move(*candidate),
                     edited.inputs.allocator, onDevice};
}

std::vector<std::optional<StepPrediction>>
DecidedSteps::planAgain(const std::vector<tune::ConfigEdit> &edits) {
  DeviceRoom room = {session.machine()};
  if (session.target)
    room.contextBytes = session.target->contextBytes;
  room.budgetBytes = session.budgetBytes().value_or(0);
  room.replays = session.target.has_value();
  StepPredictions predictions(room);
  std::vector<std::optional<StepPrediction>> results(edits.size());
  std::vector<size_t> ofEdit;
  for (size_t i = 0; i < edits.size(); ++i) {
    const auto other = edited(edits[i]);
    if (!other)
      continue;
    if (other->inputs.executor == FrameworkKind::AccelRun) {
      results[i] = planProgram(other->inputs, other->importing);
    } else if (auto step = plannedStep(*other)) {
      // It is predicted while the next change is decided.
      predictions.start(std::move(*step));
      ofEdit.push_back(i);
    }
  }
  std::vector<StepPrediction> predicted = predictions.take();
  for (size_t p = 0; p < predicted.size(); ++p)
    results[ofEdit[p]] = std::move(predicted[p]);
  return results;
}

} // namespace accel
