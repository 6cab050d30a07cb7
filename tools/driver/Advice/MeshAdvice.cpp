//===- MeshAdvice.cpp - Meshes that are worth planning --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/MeshAdvice.h"

#include "frontends/HuggingFace/ModelConfig.h"
#include "passes/Cost/CollectiveCost.h"
#include "passes/Cost/OpCost.h"
#include "passes/Tune/MeshSearch.h"
#include "runtime/plan/Stages.h"
#include "tools/driver/Inputs/MeshInputs.h"
#include "tools/driver/Text/Progress.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel {
namespace {

using tune::Knob;
using tune::MeshOption;
using tune::MeshSizes;

/// Heads of attention, those of keys and values, and elements of a token
/// between layers, of the model, or of the one whose sizes Megatron-LM's has.
struct Heads {
  int64_t count = 1, ofKeys = 1, hidden = 0;
};
Heads headsOf(const AdviceInputs &in) {
  const PlanInputs &inputs = in.inputs;
  if (in.executor != FrameworkKind::Megatron) {
    const auto tree = moduleTreeOf(inputs, in.options);
    if (!tree || !tree->sizes.heads)
      return {};
    const int64_t heads = tree->sizes.heads, keys = tree->sizes.keyValueHeads;
    return {heads, keys ? keys : heads, tree->sizes.hidden};
  }
  // Accelerate hands Megatron-LM no key-value heads.
  const huggingface::ModelConfig *config =
      inputs.sized ? inputs.sized->config() : nullptr;
  if (!config)
    return {};
  if (const auto *gpt2 = std::get_if<huggingface::Gpt2Config>(&config->family))
    return {gpt2->heads, gpt2->heads, gpt2->hiddenSize};
  if (const auto *llama =
          std::get_if<huggingface::LlamaConfig>(&config->family))
    return {llama->heads, llama->heads, llama->hiddenSize};
  return {};
}

/// Micro-batches of a step, of all ranks that compute different samples.
int64_t microBatchesOf(const Candidate &base) {
  return base.accumulation * base.mesh.ranks() / base.mesh.ranksPerSample();
}

/// The first call that is a layer, if any.
const StepCall *layerOf(const StepModel &model) {
  const auto call = std::find_if(model.calls.begin(), model.calls.end(),
                                 [](const StepCall &c) { return c.layer; });
  return call == model.calls.end() ? nullptr : &*call;
}

/// Of attention of a layer, as long as one rank does it for all that share it:
/// half of the scores, as causal masks leave them, two matmuls forward and at
/// least four backward, against the keys of one rank at a time where they are
/// `passed` round.
tune::AttentionSeconds attentionOf(const AdviceInputs &in,
                                   const StepModel &model,
                                   const Candidate &base, const Target &target,
                                   const Heads &heads, bool passed,
                                   int64_t context) {
  const StepCall *call = layerOf(model);
  if (!call)
    return {};
  const double flops =
      model.kinds[call->kind].attentionFlops / 2 *
      static_cast<double>(base.mesh.size("tp") * model.ranksPerSequence);
  AttentionShape shape;
  shape.keys = in.inputs.training.sequenceLength / (passed ? context : 1);
  shape.headSize = std::max<int64_t>(1, heads.hidden / heads.count);
  auto least = [&](bool backward, double part) {
    AttentionShape own = shape, library = shape;
    own.backward = library.backward = backward;
    library.cudnn = true;
    return std::min(
        attentionSeconds(target, base.dtypes.compute, own, flops * part),
        attentionSeconds(target, base.dtypes.compute, library, flops * part));
  };
  return {least(false, 1.0 / 3), least(true, 2.0 / 3)};
}

/// What a layer takes but attention, at the rates that the device attains at
/// best.
tune::LayerCost layerCost(const AdviceInputs &in, const StepModel &model,
                          const Candidate &base, const Target &target,
                          const Heads &heads) {
  tune::LayerCost cost;
  const StepCall *call = layerOf(model);
  if (!call)
    return cost;
  const auto tensor = static_cast<double>(base.mesh.size("tp"));
  for (int p : call->parameters)
    if (model.parameters[p].shape.size() > 1)
      cost.elements +=
          static_cast<double>(model.parameters[p].numel()) * tensor;
  const ComputeRate &rate = computeRate(target, base.dtypes.compute);
  const double matmul =
      std::max(rate.matmulEfficiency, rate.libraryMatmulEfficiency);
  const auto tokens =
      static_cast<double>(model.microBatch * in.inputs.training.sequenceLength);
  cost.seconds = 6 * cost.elements * tokens / (rate.peakFlops * matmul);
  const auto compute = static_cast<double>(plan::itemSize(base.dtypes.compute));
  cost.inputBytes = tokens * compute * static_cast<double>(heads.hidden);
  cost.keyBytes = 2 * cost.inputBytes * static_cast<double>(heads.ofKeys) /
                  static_cast<double>(heads.count);
  // Shards and inputs of layers may wait on the host.
  if (in.executor != FrameworkKind::Megatron) {
    cost.inputsStay = false;
    return cost;
  }
  cost.bytesPerElement =
      compute + static_cast<double>(plan::itemSize(base.dtypes.gradient));
  double states = base.dtypes.masterCopy ? 4 : 0;
  constexpr int64_t many = 1 << 20;
  for (const plan::StateRule &state : base.update->states)
    states +=
        static_cast<double>(plan::OptimizerRule::elements(state, {many}, many) *
                            plan::itemSize(plan::OptimizerRule::dtypeOf(
                                state, base.dtypes.state))) /
        many;
  if (base.offloadOptimizer)
    states = 0;
  (base.megatron.distributedOptimizer ? cost.sharedBytesPerElement
                                      : cost.bytesPerElement) += states;
  return cost;
}

/// What of megatron_lm_config is kept, and what says nothing.
void keepMegatron(const AdviceInputs &in, const Candidate &base, bool all,
                  tune::MeshProblem &problem) {
  const MegatronSettings &written = *in.inputs.job.accelerate.megatron;
  auto keep = [&](auto &kept, const auto &setting) {
    if (!all && setting.written())
      kept = *setting;
  };
  keep(problem.tensor, written.tensorParallel);
  keep(problem.context, written.contextParallel);
  keep(problem.stages, written.pipelineParallel);
  keep(problem.sequence, written.sequenceParallelism);
  if (base.megatron.lastLayers)
    keep(problem.lastLayers, written.lastStageLayers);
  problem.idleSequence = *written.sequenceParallelism;
  if (!in.options.globalBatch)
    keep(problem.accumulation, written.microBatches);
  if (in.options.accumulation)
    problem.accumulation = base.accumulation;
}

/// FSDP2 under Accelerate has no stages; its tensor parallelism stops with an
/// ImportError beside the newest transformers (lint's tp-import), so that it is
/// proposed where it is written already or transformers is older. Context
/// parallelism is not proposed to a release that leaves it out (cp-skipped);
/// axolotl brings its own.
void keepFsdp2(const AdviceInputs &in, const Candidate &base,
               tune::MeshProblem &problem) {
  problem.stages = 1;
  problem.sequence = false;
  const auto transformers =
      parseAccelerateVersion(in.options.script.versions.transformers);
  if (base.mesh.size("tp") == 1 &&
      (!transformers || *transformers >= AccelerateVersion{5, 23}))
    problem.tensor = 1;
  const auto accelerate =
      parseAccelerateVersion(in.inputs.job.accelerate.version);
  if (in.inputs.trainer.empty() && in.inputs.job.script.owner != "axolotl" &&
      accelerate && skipsContextParallelism(*accelerate))
    problem.context = 1;
}

tune::MeshProblem problemOf(const AdviceInputs &in, const StepModel &model,
                            const Candidate &base, const Target &target,
                            bool all) {
  tune::MeshProblem problem;
  problem.ranks = base.mesh.ranks();
  problem.ranksPerNode = base.ranksPerNode;
  problem.layers = std::count_if(model.calls.begin(), model.calls.end(),
                                 [](const StepCall &c) { return c.layer; });
  const Heads heads = headsOf(in);
  problem.heads = heads.count;
  problem.tokens = in.inputs.training.sequenceLength;
  problem.microBatches = microBatchesOf(base);
  if (in.executor == FrameworkKind::Megatron)
    keepMegatron(in, base, all, problem);
  else
    keepFsdp2(in, base, problem);
  problem.layer = layerCost(in, model, base, target, heads);
  problem.fixedBytes = target.contextBytes;
  auto exchange = [&target](Collective kind, int64_t ranks, int64_t inNode,
                            double bytes) {
    return collectiveSeconds(target, kind, {ranks, inNode}, bytes);
  };
  problem.gather = [=](int64_t ranks, int64_t inNode, double bytes) {
    return exchange(Collective::AllGather, ranks, inNode, bytes);
  };
  problem.addUp = [=](int64_t ranks, int64_t inNode, double bytes) {
    return std::min(
        exchange(Collective::AllReduce, ranks, inNode, bytes),
        exchange(Collective::AllGather, ranks, inNode, bytes) +
            exchange(Collective::ReduceScatter, ranks, inNode, bytes));
  };
  const bool passed = in.executor == FrameworkKind::Megatron;
  if (passed)
    problem.pass = [=](int64_t ranks, int64_t inNode, double bytes) {
      return exchange(Collective::Permute, ranks, inNode, bytes);
    };
  // Blocks are merged by their log-sums, and gradients added up.
  constexpr double launchesOfBlock = 8;
  problem.blockSeconds = launchesOfBlock * target.launchSeconds;
  problem.overlap = target.overlap;
  problem.attention = [&in, &model, &base, &target, heads,
                       passed](int64_t context) {
    return attentionOf(in, model, base, target, heads, passed, context);
  };
  return problem;
}

/// The ways to compute a layer, of all kinds of them.
std::vector<tune::LayerWay> waysOf(const StepModel &model, bool compiled) {
  std::set<int> kinds;
  for (const StepCall &call : model.calls)
    if (call.layer)
      kinds.insert(call.kind);
  std::vector<tune::LayerWay> ways;
  for (int kind : kinds)
    for (const SegmentVariant &way : model.kinds[kind].variants) {
      const int64_t copies =
          way.savesParameterCopies ? way.parameterCopyBytes : 0;
      ways.push_back(
          {static_cast<double>(way.savedBytes - copies),
           compiled ? way.compiledForwardSeconds + way.compiledBackwardSeconds
                    : way.forwardSeconds + way.backwardSeconds});
    }
  return ways;
}

MeshSizes sizesOf(const MeshOption &option) {
  return {option.mesh.size("tp"), option.mesh.size("cp"),
          option.mesh.size(plan::pipelineAxis), option.sequence};
}

/// Stages are outermost, and tensor-parallel ranks neighbours
/// (frontends/Accelerate/Strategy.cpp). `axis`: over which data is parallel.
MeshOption optionOf(const tune::MeshProblem &problem, const MeshSizes &sizes,
                    const char *axis) {
  plan::Mesh mesh = plan::Mesh::dataParallel();
  mesh.resize(axis, problem.copies(sizes));
  if (sizes.context > 1)
    mesh.resize("cp", sizes.context);
  if (sizes.tensor > 1)
    mesh.resize("tp", sizes.tensor);
  if (sizes.stages > 1)
    mesh.axes.insert(mesh.axes.begin(), {plan::pipelineAxis, sizes.stages});
  MeshOption option(std::move(mesh), problem.accumulationOf(sizes),
                    sizes.sequence);
  const auto layers = layersOfStages(problem, sizes.stages);
  if (layers->last != layers->other)
    option.lastLayers = layers->last;
  return option;
}

} // namespace

std::optional<MeshOption> wholeMesh(const AdviceInputs &in,
                                    const Candidate &base, bool all) {
  if (!in.options.tune || !in.target)
    return std::nullopt;
  const AccelerateConfig &accelerate = in.inputs.job.accelerate;
  if (in.executor == FrameworkKind::Megatron) {
    // Chunks of stages have no key beside which others could be chosen.
    if (base.megatron.chunks > 1)
      return std::nullopt;
    MeshOption own(base.mesh, base.accumulation,
                   *accelerate.megatron->sequenceParallelism);
    own.lastLayers = base.megatron.lastLayers;
    return own;
  }
  // Nobody else's mesh of Accelerate is chosen. What writes Python has no word
  // for ranks that share a sample.
  if (in.executor != FrameworkKind::Fsdp2 ||
      (!all && accelerate.mesh.written()) || base.mesh.size("sp") > 1 ||
      !in.inputs.model.config() || !in.inputs.trainer.empty() ||
      in.inputs.job.quantization || in.options.emits(EmitKind::Python))
    return std::nullopt;
  return MeshOption(base.mesh, base.accumulation);
}

tune::EditedSource editedSource(const AdviceInputs &in,
                                const tune::Space &space,
                                const tune::ConfigEditor &editor) {
  return [&in, &space, &editor](const tune::Point &asked) {
    constexpr Knob knobs[] = {Knob::Mesh, Knob::Split, Knob::Precision,
                              Knob::Loss};
    tune::Point point = space.configured;
    for (Knob knob : knobs)
      point[knob] = asked[knob];
    tune::ConfigEdit edit;
    for (Knob knob : knobs) {
      if (point[knob] == space.configured[knob])
        continue;
      const tune::ConfigEdit one = editor.express(knob, point);
      edit.yaml.insert(edit.yaml.end(), one.yaml.begin(), one.yaml.end());
      edit.flags.insert(edit.flags.end(), one.flags.begin(), one.flags.end());
    }
    return in.modelOf(edit);
  };
}

namespace {

/// The meshes of a search, in all layouts of their data-parallel ranks, and
/// what it finds in each.
class MeshesOfAdvice {
public:
  MeshesOfAdvice(const AdviceInputs &in, const Target &target,
                 const StepModel &model, const tune::GivenOptions &given,
                 int64_t budgetBytes, bool all, tune::Space &space)
      : in(in), target(target), model(model), given(given), space(space),
        all(all), problem(problemOf(in, model, space.base, target, all)),
        every(space), one(space) {
    options.budgetBytes = budgetBytes;
    // The search among what is found here refines the best, and fills in what
    // is told of memory against time.
    options.maxEvaluations = 1000;
    options.frontLevels = 0;
    addLayouts();
  }

  MeshAnswer run() {
    tune::ConfigEditor editor(every, in.inputs.job, {}, given);
    const tune::EditedSource source = editedSource(in, every, editor);
    tune::CachedEvaluator evaluator(one, target, in.source, source);
    Progress progress("meshes");
    const tune::MeshSearchResult found = tune::searchMeshes(
        problem, options.budgetBytes,
        [&](const MeshSizes &sizes) { return waysOf(source, sizes); },
        [&](const MeshSizes &sizes) { return judge(evaluator, sizes); },
        [&](int64_t done, int64_t of) { progress.show(done, of); });
    keep(found);
    MeshAnswer answer;
    answer.meshes = found.meshes;
    answer.evaluated = found.evaluated;
    answer.ranksPerNode = problem.ranksPerNode;
    answer.known = knownOfSpace();
    return answer;
  }

private:
  /// The configured one first. FSDP2's shards are of all ranks, or of some.
  void addLayouts() {
    const bool shards = in.executor == FrameworkKind::Fsdp2;
    const MeshSizes own = sizesOf(space.mesh(space.configured));
    for (size_t m = 0; m < every.meshes.size(); ++m)
      layouts[own].push_back(static_cast<int>(m));
    for (const MeshSizes &sizes : tune::meshesOf(problem)) {
      if (sizes == own)
        continue;
      const MeshOption whole =
          optionOf(problem, sizes, shards ? "dp_shard" : "dp_replicate");
      std::vector<MeshOption> options = {whole};
      if (shards)
        options = tune::meshesOf(whole.mesh, problem.ranksPerNode);
      for (MeshOption &option : options) {
        option.accumulation = whole.accumulation;
        option.sequence = whole.sequence;
        option.lastLayers = whole.lastLayers;
        layouts[sizes].push_back(static_cast<int>(every.meshes.size()));
        every.meshes.push_back(std::move(option));
      }
    }
    one.meshes = every.meshes;
    one.state(Knob::Mesh).open = true;
  }

  /// Of each form of the loss that has operators of its own.
  std::vector<tune::LayerWay> waysOf(const tune::EditedSource &source,
                                     const MeshSizes &sizes) {
    tune::Point point = every.configured;
    point[Knob::Mesh] = layouts.at(sizes).front();
    std::vector<tune::LayerWay> ways;
    auto add = [&](const StepModel &of) {
      const auto own = accel::waysOf(of, every.base.compiled);
      ways.insert(ways.end(), own.begin(), own.end());
    };
    std::set<int> forms = {every.configured[Knob::Loss]};
    for (int loss : every.values(Knob::Loss, point)) {
      point[Knob::Loss] = loss;
      if (every.functionsOfLoss(point))
        forms.insert(loss);
    }
    for (int loss : forms) {
      point[Knob::Loss] = loss;
      if (!point[Knob::Mesh] && !every.functionsOfLoss(point))
        add(model);
      else if (const auto other = source(point))
        add(*other);
    }
    return ways;
  }

  /// The best of one mesh: layouts and all that --tune searches.
  tune::MeshVerdict judge(tune::CachedEvaluator &evaluator,
                          const MeshSizes &sizes) {
    for (MeshOption &option : one.meshes)
      option.allowed = false;
    for (int m : layouts.at(sizes))
      one.meshes[m].allowed = true;
    one.configured[Knob::Mesh] = layouts.at(sizes).front();
    const tune::SearchResult inside = tune::search(
        one,
        [&](const tune::Point &p) {
          return evaluated.emplace(p, evaluator.evaluate(p)).first->second;
        },
        [&](int s, int g, int v) { return evaluator.cost(s, g, v); }, options);
    tune::MeshVerdict verdict = {sizes, std::nullopt,
                                 inside.smallest.evaluation};
    if (inside.best)
      verdict.best = inside.best->evaluation;
    for (const auto &point :
         {inside.best ? inside.best->point : inside.smallest.point,
          inside.smallest.point})
      best[sizes].insert(point[Knob::Mesh]);
    return verdict;
  }

  /// The space gets what is worth choosing from: of the configured mesh all
  /// layouts, of others the best.
  void keep(const tune::MeshSearchResult &found) {
    const MeshSizes own = sizesOf(space.mesh(space.configured));
    auto add = [&](const MeshSizes &sizes) {
      if (sizes != own)
        for (int m : best.at(sizes))
          if (std::none_of(space.meshes.begin(), space.meshes.end(),
                           [&](const MeshOption &known) {
                             return known.mesh == every.meshes[m].mesh &&
                                    known.sharesAs(every.meshes[m]);
                           }))
            space.meshes.push_back(every.meshes[m]);
    };
    constexpr size_t kept = 4;
    for (size_t i = 0; i < found.fitting.size() && i < kept; ++i)
      add(found.fitting[i].mesh);
    if (found.lacking)
      add(found.lacking->mesh);
    if (found.otherSide)
      add(found.otherSide->mesh);
    space.state(Knob::Mesh).open = space.meshes.size() > 1;
    if (in.executor != FrameworkKind::Megatron)
      return;
    const auto &first = in.inputs.job.accelerate.megatron->tensorParallel;
    if (!all && space.meshes.size() == 1 && first.written())
      space.state(Knob::Mesh) = {
          false, "megatron_lm_tp_degree: " + std::to_string(*first),
          first.at.file, first.at.line, first.at.column};
  }

  /// What was evaluated, where the space has its mesh.
  std::map<tune::Point, tune::Evaluation> knownOfSpace() const {
    std::map<int, int> meshOf; // in the space, of those in `every`
    for (size_t s = 0; s < space.meshes.size(); ++s)
      for (size_t m = 0; m < every.meshes.size(); ++m)
        if (every.meshes[m].mesh == space.meshes[s].mesh &&
            every.meshes[m].sharesAs(space.meshes[s]))
          meshOf.try_emplace(static_cast<int>(m), static_cast<int>(s));
    std::map<tune::Point, tune::Evaluation> known;
    for (const auto &[point, evaluation] : evaluated)
      if (const auto at = meshOf.find(point[Knob::Mesh]); at != meshOf.end()) {
        tune::Point own = point;
        own[Knob::Mesh] = at->second;
        known.emplace(std::move(own), evaluation);
      }
    return known;
  }

  const AdviceInputs &in;
  const Target &target;
  const StepModel &model;
  const tune::GivenOptions &given;
  tune::Space &space;
  bool all;
  tune::SearchOptions options;
  const tune::MeshProblem problem;
  tune::Space every; // each mesh in each layout, the configured one first
  tune::Space one;   // the mesh of which is configured
  std::map<MeshSizes, std::vector<int>> layouts;     // in `every`
  std::map<MeshSizes, std::set<int>> best;           // of those judged
  std::map<tune::Point, tune::Evaluation> evaluated; // in `every`
};

} // namespace

MeshAnswer addMeshes(const AdviceInputs &in, const Target &target,
                     const StepModel &model, const tune::GivenOptions &given,
                     int64_t budgetBytes, bool all, tune::Space &space) {
  return MeshesOfAdvice(in, target, model, given, budgetBytes, all, space)
      .run();
}

std::vector<tune::Point>
frontOf(const std::map<tune::Point, tune::Evaluation> &evaluated) {
  std::vector<tune::Verdict> possible;
  for (const auto &[point, evaluation] : evaluated)
    if (evaluation.possible)
      possible.push_back({point, evaluation});
  std::vector<tune::Point> front;
  for (const tune::Verdict &verdict : tune::paretoFront(std::move(possible)))
    front.push_back(verdict.point);
  return front;
}

/// The chosen setting with another mesh, as far as the space allows it.
static std::vector<tune::Point>
withMesh(const tune::Space &space, const tune::Point &chosen, size_t mesh) {
  std::vector<tune::Point> points;
  for (const std::vector<int> &counts : space.uniformCounts()) {
    tune::Point point = chosen;
    point[Knob::Mesh] = static_cast<int>(mesh);
    point.counts = counts;
    if (space.problem(point).empty())
      points.push_back(std::move(point));
  }
  return points;
}

void compareMeshes(const tune::Space &space, const tune::Point &chosen,
                   const PlanAhead &planAhead, const PlanSetting &plan,
                   MeshAnswer &answer) {
  auto faster = [](const MeshChoice &choice,
                   const std::optional<MeshChoice> &than) {
    return !than || choice.predicted.stepSeconds < than->predicted.stepSeconds;
  };
  MeshChoice best{space.mesh(chosen), chosen, {}};
  best.mesh.accumulation = space.accumulationOf(chosen);
  std::vector<std::vector<tune::Point>> others(space.meshes.size());
  std::vector<tune::Point> all = {chosen};
  for (size_t m = 0; m < space.meshes.size(); ++m)
    if (!space.meshes[m].sharesAs(best.mesh)) {
      others[m] = withMesh(space, chosen, m);
      all.insert(all.end(), others[m].begin(), others[m].end());
    }
  planAhead(all);
  plan(chosen, best.predicted);
  answer.chosen = best;
  answer.next = answer.lacking = answer.otherSide = std::nullopt;
  for (size_t m = 0; m < space.meshes.size(); ++m) {
    // What lacks memory is a setting: others of its mesh may fit, and be
    // slower.
    std::optional<MeshChoice> fits, lacks;
    for (const tune::Point &point : others[m]) {
      MeshChoice choice{space.meshes[m], point, {}};
      choice.mesh.accumulation = space.accumulationOf(point);
      if (plan(point, choice.predicted)) {
        if (faster(choice, fits))
          fits = choice;
      } else if (choice.predicted.deviceBytes > 0 && faster(choice, best) &&
                 (!lacks || choice.predicted.deviceBytes <
                                lacks->predicted.deviceBytes)) {
        lacks = choice;
      }
    }
    if (fits && faster(*fits, answer.next))
      answer.next = fits;
    if (lacks && (!answer.lacking || lacks->predicted.deviceBytes <
                                         answer.lacking->predicted.deviceBytes))
      answer.lacking = lacks;
    auto crosses = [&](const MeshOption &option) {
      return option.mesh.size("tp") > answer.ranksPerNode;
    };
    if (fits && crosses(space.meshes[m]) != crosses(best.mesh) &&
        faster(*fits, answer.otherSide))
      answer.otherSide = fits;
  }
}

} // namespace accel
