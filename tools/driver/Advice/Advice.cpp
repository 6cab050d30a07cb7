//===- Advice.cpp - What a configuration costs, and what is better --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/Advice.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "passes/FrameworkSteps/GraphGradients.h"
#include "passes/PipelineSchedules/Schedule.h"
#include "passes/Tune/SearchConstraints.h"
#include "runtime/plan/Chunks.h"
#include "tools/driver/Advice/ChangePlanner.h"
#include "tools/driver/Advice/LayerClasses.h"
#include "tools/driver/Advice/MaxBatch.h"
#include "tools/driver/Advice/MeshAdvice.h"
#include "tools/driver/Advice/OptimizerAdvice.h"
#include "tools/driver/Advice/RunMeshes.h"
#include "tools/driver/Inputs/CompileInputs.h"
#include "tools/driver/Inputs/LigerInputs.h"
#include "tools/driver/Inputs/OffloadInputs.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <limits>
#include <map>

namespace accel {
namespace {

constexpr size_t changesPlanned = 10;
constexpr size_t splitsTried = 6;

/// Splits whose micro-batches the pipeline's schedule does not deal.
void dropUnscheduled(std::vector<tune::SplitOption> &splits,
                     const JobConfig &job, const plan::Mesh &mesh) {
  pipeline::Problem problem;
  problem.chunks = static_cast<int>(*job.pipelineChunks);
  if (problem.chunks <= 1)
    return;
  problem.kind =
      pipeline::findKind(plan::scheduleOf(*job.splitBackward, problem.chunks))
          ->kind;
  problem.stages =
      static_cast<int>(mesh.size(plan::pipelineAxis)) * problem.chunks;
  std::erase_if(splits, [&](const tune::SplitOption &split) {
    problem.microBatches = static_cast<int>(split.accumulation);
    return !pipeline::check(problem).empty();
  });
}

class Advisor {
public:
  Advisor(const AdviceInputs &in, DiagnosticEngine &engine)
      : in(in), engine(engine), job(in.inputs.job),
        training(in.inputs.training),
        target(in.target ? *in.target : in.device) {}

  std::optional<Advice> run() {
    advice.executor = in.executor;
    advice.hasTime = in.target != nullptr;
    constexpr int64_t unbounded = std::numeric_limits<int64_t>::max();
    advice.budgetBytes = in.budgetBytes.value_or(unbounded);
    advice.roomBytes = in.roomBytes.value_or(unbounded);
    auto step = in.source(training.microBatch, 0, 0);
    if (!step || !checkScript())
      return std::nullopt;
    advice.model = step->model;
    base = step->candidate;
    if (!checkGraphs())
      return std::nullopt;
    std::string wrong = verifyCandidate(*advice.model, base);
    if (!wrong.empty()) {
      engine.error(notSupportedCode, in.options.config,
                   std::string(toString(in.executor)) +
                       " cannot run this configuration: " + wrong);
      return std::nullopt;
    }
    advice.candidate = base;
    advice.configured = predicted(*advice.model, base);
    if (in.program) {
      const double recomputation = advice.configured.recomputeSeconds;
      advice.configured = planner.trimmed(*in.program);
      advice.configured.recomputeSeconds = recomputation;
    }
    if (advice.configured.allocatorRetries > 0)
      engine.note("allocator-full", in.options.config,
                  "the tensors fit, their segments do not: the allocator would "
                  "return idle ones to the full device " +
                      std::to_string(advice.configured.allocatorRetries) +
                      " times in a replayed step and ask again, which costs "
                      "time",
                  in.inputs.allocator.expandableSegments
                      ? ""
                      : "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
                        "leaves less idle; plan with --allocator-conf to see");
    findSmallestRank();
    if (in.options.maxBatch)
      advice.maxBatch = findMaxBatch(
          [&](int64_t microBatch) { return at(microBatch); },
          [&](const StepPrediction &p) { return planner.fits(p); });
    else
      recommend();
    return std::move(advice);
  }

private:
  /// torch stops, so that this is a job that is wrong, and not one that is not
  /// modelled.
  bool checkGraphs() const {
    const std::string wrong = overwrittenGradients(base);
    if (wrong.empty())
      return true;
    const auto asked = replaysGraphs(in.inputs);
    engine.report(diagnosticAt(
        asked ? asked->at : Location(), asked ? asked->key : "",
        Severity::Error, "cuda-graphs", wrong,
        (asked ? asked->key : std::string("dynamo_mode")) +
            ": max-autotune-no-cudagraphs or default compiles without graphs; "
            "or compute one micro-batch a step",
        in.options.config));
    return false;
  }

  /// What the script does with outputs, and what it passes to torch's DDP, is
  /// of a framework that has them.
  bool checkScript() const {
    if (in.options.holdOutputs && in.executor == FrameworkKind::AccelRun) {
      engine.error("executor-choice", in.options.config,
                   "--hold-outputs: accel-run has no outputs beside the loss",
                   "leave it out");
      return false;
    }
    if (!in.options.ddp)
      return true;
    if (in.executor != FrameworkKind::Ddp &&
        in.executor != FrameworkKind::AccelRun) {
      engine.error("executor-choice", in.options.config,
                   std::string("--ddp-kwargs: ") + toString(in.executor) +
                       " is not DistributedDataParallel",
                   "leave it out");
      return false;
    }
    return true;
  }

  /// With the allocator's segments by replay, where there is one.
  StepPrediction predicted(const StepModel &model,
                           const Candidate &candidate) const {
    StepEvaluator evaluator(model, target);
    StepPrediction p = evaluator.evaluate(candidate, true);
    if (in.target)
      replayInto(p, evaluator, candidate, in.inputs.allocator,
                 target.contextBytes, in.budgetBytes.value_or(0),
                 /*onDevice=*/true);
    return planner.trimmed(p);
  }

  /// Ranks with smaller shards hold less: by so much as the estimates differ.
  void findSmallestRank() {
    const StepPrediction &first = advice.configured;
    EvaluateOptions last;
    last.lastRank = true;
    StepPrediction smallest = planner.trimmed(
        StepEvaluator(*advice.model, target).evaluate(base, last));
    if (first.replayed) {
      smallest.reservedBytes += first.reservedBytes;
      smallest.reservedBytes -= first.estimatedReservedBytes;
      smallest.deviceBytes = smallest.reservedBytes + target.contextBytes;
    }
    if (smallest.deviceBytes < first.deviceBytes)
      advice.smallestRank = smallest;
  }

  //===--- The space ------------------------------------------------------===//

  std::optional<tune::Space> makeSpace(const tune::TuneRequest &request) const {
    tune::Space space;
    space.base = base;
    const plan::Mesh &mesh = base.mesh;
    const int64_t own = mesh.ranks(plan::AxisRole::Shard);
    const auto whole = wholeMesh(in, base, request.all);
    space.meshes = {whole.value_or(mesh)};
    if (own > 1 && in.executor == FrameworkKind::Fsdp1) {
      int64_t ranks = own * mesh.ranks(plan::AxisRole::Replicate);
      for (int64_t shard : {ranks, base.ranksPerNode})
        if (shard > 1 && shard != own && ranks % shard == 0)
          space.meshes.push_back(mesh.sharded(shard));
    } else if (own > 1 && in.executor != FrameworkKind::Deepspeed &&
               in.executor != FrameworkKind::Megatron) {
      space.meshes = tune::meshesOf(mesh, base.ranksPerNode);
      for (tune::MeshOption &option : space.meshes)
        if (whole)
          option.accumulation = whole->accumulation;
    }
    space.splits = tune::splitsOf({training.microBatch, training.accumulation},
                                  splitsTried);
    dropUnscheduled(space.splits, job, mesh);
    const std::string precision = toString(job.accelerate.mixedPrecision.value);
    space.precisions = {
        {"mixed_precision " + precision, base.dtypes, precision}};
    for (size_t i = 0; i < in.inputs.precisions.size(); ++i) {
      const std::string &value = in.inputs.precisions[i].value;
      auto step = in.source(training.microBatch, static_cast<int>(i) + 1, 0);
      if (!step)
        return std::nullopt;
      space.precisions.push_back(
          {"mixed_precision " + value, step->candidate.dtypes, value});
    }
    if (in.executor == FrameworkKind::Ddp) {
      space.buckets = {base.bucketBytes};
      for (int64_t mebibytes : {25, 12, 50, 100, 200})
        if (mebibytes << 20 != base.bucketBytes)
          space.buckets.push_back(mebibytes << 20);
    }
    space.lossChunks = lossOptions();
    space.optimizers = optimizerOptions(in, base, target);
    if (in.executor == FrameworkKind::Deepspeed) {
      space.zeroStages = {base.zeroStage};
      for (int stage : {1, 2, 3})
        if (stage != base.zeroStage)
          space.zeroStages.push_back(stage);
    }
    tune::addModel(space, *advice.model, tune::wrapsHalves(in.executor),
                   tune::wrapsSeveralLayers(in.executor));
    if (!tune::locate(space, *advice.model))
      return std::nullopt;
    tune::openKnobs(space, job, request);
    return space;
  }

  /// Parts of the loss, as configured first. accel-run's are compiled, so there
  /// are two besides, of parts that keep a matmul busy.
  std::vector<int64_t> lossOptions() const {
    constexpr int64_t rowsOfPart = 256;
    if (in.executor != FrameworkKind::AccelRun) {
      std::vector<int64_t> options = {base.lossChunks};
      if (base.lossChunks == 1 && !base.preference.logProbabilities &&
          hasLigerKernels(in.inputs) && fusedLossChunks(*advice.model) > 1)
        options.push_back(0);
      return options;
    }
    std::vector<int64_t> options = {in.lossChunks};
    const int64_t whole = fusedLossChunks(*advice.model);
    for (int64_t chunks : {1, 4, 16})
      if (chunks != in.lossChunks && (whole > 1 || chunks == 1) &&
          advice.model->tokens() / chunks >= rowsOfPart)
        options.push_back(chunks);
    return options;
  }

  tune::TuneRequest request(bool all) const {
    tune::TuneRequest r;
    r.all = all;
    r.precision = in.options.tunePrecision;
    r.microBatch = !all && !in.options.globalBatch &&
                   (in.options.microBatch || in.options.accumulation);
    r.prefetch = !all && in.options.prefetch;
    r.accumulationMode = !all && in.options.keepUnsharded;
    r.lossChunks = in.options.lossChunks.has_value();
    r.optimizer = !all && in.options.optim;
    // Told beside others, with what it changes; a search takes it unasked by no
    // means.
    r.narrowStates = !in.options.tune || in.options.tunePrecision;
    r.bucket = in.options.ddp && in.options.ddp->bucketBytes;
    r.noOffload = whyNotOffloaded(target, /*updates=*/false);
    r.noHostUpdates = whyNotOffloaded(target, /*updates=*/true);
    r.trainer = ownTrainer();
    return r;
  }

  tune::GivenOptions given() const {
    const PlanOptions &o = in.options;
    return {o.microBatch || o.accumulation || o.globalBatch,
            o.lossChunks.has_value(), o.optim != nullptr,
            o.gradientCheckpointing.value_or(false), ownTrainer()};
  }

  /// Megatron's is a form of its kernels, and not a program of its own.
  std::string ownTrainer() const {
    return in.executor == FrameworkKind::Fsdp2 ? in.inputs.trainer : "";
  }

  void recommend() {
    advice.job = std::make_shared<const JobConfig>(job);
    advice.texts = in.options.texts;
    const bool tuning = in.options.tune.has_value();
    if (planRunMeshes(in, in.options.tune == TuneScope::All))
      advice.runMeshes =
          runMeshes(in, base, advice.configured, advice.roomBytes);
    // The search shards all units over the same ranks, and has none of the
    // settings that only stages forbid.
    const bool staged = in.executor == FrameworkKind::AccelRun &&
                        base.mesh.size(plan::pipelineAxis) > 1;
    if (base.mesh.size(plan::expertAxis) > 1 || (tuning && staged)) {
      if (tuning)
        engine.note("not-tuned", in.options.config,
                    std::string("beside pp and ep --tune plans other meshes "
                                "alone") +
                        (advice.runMeshes ? "" : ", and the written one stays"),
                    advice.runMeshes ? "" : "pass --tune=all");
      return;
    }
    auto space = makeSpace(
        request(in.options.tune.value_or(TuneScope::All) == TuneScope::All));
    if (!space) {
      if (tuning)
        engine.note("not-tuned", in.options.config,
                    "the search does not support this wrapping, "
                    "so nothing is recommended");
      return;
    }
    if (space->mesh(space->configured).whole())
      advice.mesh =
          addMeshes(in, target, *advice.model, given(), advice.roomBytes,
                    *in.options.tune == TuneScope::All, *space);
    else if (tuning && base.mesh.ranksPerSample() > 1 && !advice.runMeshes)
      engine.note("not-tuned", in.options.config,
                  std::string("--tune keeps ranks that share samples (tp, cp, "
                              "sp, pp) as they are written for ") +
                      toString(in.executor),
                  in.executor == FrameworkKind::Fsdp2 &&
                          base.mesh.size("sp") == 1
                      ? "pass --tune=all, or set two meshes side by side with "
                        "accel-opt diff"
                      : "accel-opt diff sets two meshes side by side");
    auto kept = std::make_shared<tune::Space>(std::move(*space));
    advice.space = kept;
    advice.policies = {job.precision.value};
    for (const PlanInputs::Precision &other : in.inputs.precisions)
      advice.policies.push_back(other.job.precision.value);
    advice.editor = std::make_shared<tune::ConfigEditor>(
        *kept, *advice.job,
        layerClasses(*advice.model, in.inputs.model.info().modules), given());
    tune::CachedEvaluator evaluator(*kept, target, in.source,
                                    editedSource(in, *kept, *advice.editor));
    tune::Evaluation before = evaluator.evaluate(kept->configured);
    if (!tuning) {
      std::vector<tune::Change> all = tune::turns(
          *kept, evaluator, *advice.editor, kept->configured, advice.roomBytes);
      // Estimates say which changes are worth planning; what is told of them
      // is what a plan of the changed configuration says.
      std::vector<tune::Change> worth =
          tune::worthTelling(all, before, advice.roomBytes, changesPlanned,
                             /*estimated=*/true);
      planner.planAnew(evaluator, worth);
      if (in.target)
        advice.refused =
            tune::configuredDecisions(*kept, evaluator, *advice.editor, all);
      advice.changes =
          tune::worthTelling(worth, planner.asConfigured(), advice.roomBytes,
                             ChangePlanner::changesTold);
      planner.findSmallestSet(worth);
      return;
    }
    for (int k = 0; k < tune::numKnobs; ++k)
      if (!kept->knobs[k].open)
        advice.fixed.push_back({static_cast<tune::Knob>(k), kept->knobs[k]});
    std::map<tune::Point, tune::Evaluation> evaluated;
    std::vector<tune::Point> starts;
    if (advice.mesh) {
      starts = frontOf(advice.mesh->known);
      evaluated = std::move(advice.mesh->known);
    }
    advice.tuned = solve(*kept, evaluator, *advice.editor, evaluated, starts);
    planner.planAnew(evaluator, *advice.tuned, /*refusals=*/true);
    compareMeshes(evaluator);
    if (!advice.tuned->result.best && in.options.tune == TuneScope::Open)
      sayWhatAllFinds(evaluator);
    // Nothing else trains Megatron-LM's model, or torchtitan's.
    if (in.executor != FrameworkKind::AccelRun &&
        in.executor != FrameworkKind::Megatron && ownTrainer().empty() &&
        in.target)
      adviseSolved(*kept);
    tune::Space narrow = *kept;
    tune::restrictToYaml(narrow, in.options.scriptFileIsYaml,
                         given().layerCheckpointing);
    tune::CachedEvaluator narrowEvaluator(narrow, evaluator);
    advice.yaml = solve(narrow, narrowEvaluator, *advice.editor, evaluated, {});
    if (!job.isJob)
      planner.certifyLines(narrowEvaluator, *advice.yaml);
    planner.planAnew(narrowEvaluator, *advice.yaml, /*refusals=*/false);
  }

  /// Sets the chosen mesh beside the others. What the estimates take for too
  /// large may fit by its plan, and be faster than what they chose.
  void compareMeshes(tune::CachedEvaluator &evaluator) {
    bool slower = advice.mesh && advice.tuned->result.best;
    while (slower) {
      Tuned &tuned = *advice.tuned;
      accel::compareMeshes(
          *advice.space, tuned.result.best->point,
          [&](const std::vector<tune::Point> &points) {
            planner.planAhead(evaluator, points);
          },
          [&](const tune::Point &point, StepPrediction &predicted) {
            return planner.fitsAsPlanned(evaluator, point, predicted);
          },
          *advice.mesh);
      const auto &next = advice.mesh->next;
      slower = next && next->predicted.stepSeconds <
                           advice.mesh->chosen->predicted.stepSeconds;
      if (!slower)
        return;
      tuned.predicted = next->predicted;
      tuned.result.best = {next->point, {}};
      takeBackTrifles(*advice.space, evaluator, tuned);
      tuned.result.front.push_back(*tuned.result.best);
      decide(*advice.space, evaluator, *advice.editor,
             std::max(advice.roomBytes, tuned.result.best->evaluation.bytes),
             tuned);
      planner.planAnew(evaluator, tuned, /*refusals=*/true);
    }
  }

  /// Takes back what of the best is not worth a line, as the search does.
  void takeBackTrifles(const tune::Space &space,
                       tune::CachedEvaluator &evaluator, Tuned &tuned) const {
    tune::Point &point = tuned.result.best->point;
    const double limit =
        tuned.predicted.stepSeconds * (1 + tune::SearchOptions().worthwhile);
    for (int k = tune::numKnobs; k-- > 0;) {
      const auto knob = static_cast<tune::Knob>(k);
      tune::Point same = point;
      StepPrediction p;
      same[knob] = space.configured[knob];
      if (knob != tune::Knob::Mesh && same != point &&
          space.problem(same).empty() &&
          planner.fitsAsPlanned(evaluator, same, p) && p.stepSeconds <= limit) {
        point = std::move(same);
        tuned.predicted = std::move(p);
      }
    }
    tuned.result.best->evaluation = evaluator.evaluate(point);
  }

  /// What the best setting says of each knob, and the lines that say it.
  static void decide(const tune::Space &space, tune::CachedEvaluator &evaluator,
                     const tune::ConfigEditor &editor, int64_t budgetBytes,
                     Tuned &tuned) {
    const tune::Point &best = tuned.result.best->point;
    tuned.decisions =
        tune::decisions(space, evaluator, editor, best, budgetBytes);
    tuned.notInYaml.clear();
    tuned.lines = editor.lines(best, tuned.notInYaml);
  }

  /// Where nothing fits among the open keys, written ones may be what stands in
  /// the way.
  void sayWhatAllFinds(const tune::CachedEvaluator &open) const {
    auto space = makeSpace(request(true));
    if (!space)
      return;
    // Its own meshes, of which `open` has no models.
    if (space->mesh(space->configured).whole())
      addMeshes(in, target, *advice.model, given(), advice.roomBytes,
                /*all=*/true, *space);
    tune::ConfigEditor editor(*space, *advice.job, {}, given());
    tune::CachedEvaluator own(*space, target, in.source,
                              editedSource(in, *space, editor));
    tune::CachedEvaluator shared(*space, open);
    tune::CachedEvaluator &evaluator =
        space->mesh(space->configured).whole() ? own : shared;
    std::map<tune::Point, tune::Evaluation> evaluated;
    const Tuned all = solve(*space, evaluator, editor, evaluated, {});
    engine.note("tune-all", in.options.config,
                all.result.best
                    ? "no setting fits with the written keys as they are; "
                      "--tune=all finds one of " +
                          formatBytes(all.predicted.deviceBytes) + " and " +
                          formatSeconds(all.predicted.stepSeconds) + " a step"
                    : "no setting fits, with any of the written keys changed "
                      "either",
                all.result.best ? "pass --tune=all" : "");
  }

  /// From the best setting, or the smallest if nothing fits.
  void adviseSolved(tune::Space space) {
    const tune::SearchResult &result = advice.tuned->result;
    if (!tune::openSolved(space) ||
        (!result.best && !result.smallest.evaluation.possible))
      return;
    tune::ConfigEditor editor(space, *advice.job, {}, given());
    tune::CachedEvaluator evaluator(space, target, in.source,
                                    editedSource(in, space, editor));
    advice.solved = tune::solvedCheckpointing(
        space, evaluator, editor,
        result.best ? result.best->point : result.smallest.point,
        advice.roomBytes);
    if (advice.solved) {
      tune::Evaluation before = result.smallest.evaluation;
      if (result.best) {
        before.bytes = advice.tuned->predicted.deviceBytes;
        before.seconds = advice.tuned->predicted.stepSeconds;
      }
      planner.planAnew(evaluator, *advice.solved, before);
    }
    // Where something fits, it has to be faster to be of use.
    if (advice.solved && result.best &&
        advice.solved->seconds > -result.best->evaluation.seconds * 0.001)
      advice.solved.reset();
  }

  /// The fastest of the front that is planned to fit; `budgetBytes` becomes
  /// its own by the estimate.
  void takeFromFront(const tune::Space &space, tune::CachedEvaluator &evaluator,
                     Tuned &tuned, int64_t &budgetBytes) const {
    std::vector<tune::Verdict> front = tuned.result.front;
    std::stable_sort(front.begin(), front.end(),
                     [](const tune::Verdict &a, const tune::Verdict &b) {
                       return a.evaluation.seconds < b.evaluation.seconds;
                     });
    tuned.result.best.reset();
    for (const tune::Verdict &verdict : front)
      if (verdict.evaluation.bytes <= advice.roomBytes &&
          planner.fitsAsPlanned(evaluator, verdict.point, tuned.predicted)) {
        tuned.result.best = verdict;
        takeBackTrifles(space, evaluator, tuned);
        budgetBytes = tuned.result.best->evaluation.bytes;
        return;
      }
  }

  /// The search judges by estimates. Where a plan of its answer does not fit,
  /// it searches again with so much less, and then takes what is on the front.
  /// `evaluated`: of points by searches in the same models, which meet most of
  /// them again; `starts`: those that the search begins with.
  Tuned solve(const tune::Space &space, tune::CachedEvaluator &evaluator,
              const tune::ConfigEditor &editor,
              std::map<tune::Point, tune::Evaluation> &evaluated,
              std::vector<tune::Point> starts) const {
    tune::SearchOptions options;
    options.starts = std::move(starts);
    options.budgetBytes = advice.roomBytes;
    if (in.budgetBytes)
      options.shareOut = [&](int split, int64_t bytes) {
        return evaluator.shareOut(split, bytes);
      };
    auto look = [&] {
      return tune::search(
          space,
          [&](const tune::Point &point) {
            auto [known, isNew] = evaluated.try_emplace(point);
            if (isNew)
              known->second = evaluator.evaluate(point);
            return known->second;
          },
          [&](int s, int g, int v) { return evaluator.cost(s, g, v); },
          options);
    };
    Tuned tuned;
    tuned.result = look();
    // Nothing by the estimates, which err to either side.
    if (!tuned.result.best && tuned.result.smallest.evaluation.possible &&
        planner.fitsAsPlanned(evaluator, tuned.result.smallest.point,
                              tuned.predicted))
      tuned.result.best = tuned.result.smallest;
    if (!tuned.result.best)
      return tuned;
    if (!planner.fitsAsPlanned(evaluator, tuned.result.best->point,
                               tuned.predicted)) {
      options.budgetBytes -=
          std::max<int64_t>(0, tuned.predicted.deviceBytes - advice.roomBytes);
      tuned.result.best = look().best;
      if (!tuned.result.best ||
          !planner.fitsAsPlanned(evaluator, tuned.result.best->point,
                                 tuned.predicted))
        takeFromFront(space, evaluator, tuned, options.budgetBytes);
    }
    if (!tuned.result.best)
      return tuned;
    decide(space, evaluator, editor, options.budgetBytes, tuned);
    return tuned;
  }

  std::optional<StepPrediction> at(int64_t microBatch) {
    if (auto step = in.source(microBatch, 0, 0))
      return predicted(*step->model, step->candidate);
    return std::nullopt;
  }

  const AdviceInputs &in;
  DiagnosticEngine &engine;
  const JobConfig &job;
  const plan::Job &training;
  const Target &target;
  Candidate base;
  Advice advice;
  ChangePlanner planner{in, advice, target};
};

} // namespace

std::optional<Advice> advise(const AdviceInputs &inputs,
                             DiagnosticEngine &engine) {
  return Advisor(inputs, engine).run();
}

} // namespace accel
