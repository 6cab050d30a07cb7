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
#include "tools/driver/Text/Progress.h"

#include <algorithm>

namespace accel {
namespace {

using tune::Knob;
using tune::MeshOption;
using tune::MeshSizes;

/// Heads of attention, and elements of a token between layers, of the model
/// whose sizes Megatron-LM's has.
std::array<int64_t, 2> headsOf(const PlanInputs &inputs) {
  const huggingface::ModelConfig *config =
      inputs.sized ? inputs.sized->config() : nullptr;
  if (!config)
    return {1, 0};
  if (const auto *gpt2 = std::get_if<huggingface::Gpt2Config>(&config->family))
    return {gpt2->heads, gpt2->hiddenSize};
  if (const auto *llama =
          std::get_if<huggingface::LlamaConfig>(&config->family))
    return {llama->heads, llama->hiddenSize};
  return {1, 0};
}

/// Micro-batches of a step, of all ranks that compute different samples.
int64_t microBatchesOf(const Candidate &base) {
  return base.accumulation * base.mesh.ranks() / base.mesh.ranksPerSample();
}

/// What a layer takes at the rates that the device attains at best. Half of
/// attention's FLOPs are counted, as causal masks leave them.
tune::LayerCost layerCost(const AdviceInputs &in, const StepModel &model,
                          const Candidate &base, const Target &target) {
  tune::LayerCost cost;
  const auto call = std::find_if(model.calls.begin(), model.calls.end(),
                                 [](const StepCall &c) { return c.layer; });
  if (call == model.calls.end())
    return cost;
  const auto tensor = static_cast<double>(base.mesh.size("tp"));
  const auto sharing = tensor * static_cast<double>(model.ranksPerSequence);
  for (int p : call->parameters)
    if (model.parameters[p].shape.size() > 1)
      cost.elements +=
          static_cast<double>(model.parameters[p].numel()) * tensor;
  const ComputeRate &rate = computeRate(target, base.dtypes.compute);
  const double attention =
      std::max({rate.attentionEfficiency, rate.attentionBackwardEfficiency,
                rate.cudnnEfficiency, rate.cudnnBackwardEfficiency});
  const auto tokens =
      static_cast<double>(model.microBatch * in.inputs.training.sequenceLength);
  cost.seconds =
      6 * cost.elements * tokens / (rate.peakFlops * rate.matmulEfficiency) +
      model.kinds[call->kind].attentionFlops / 2 * sharing /
          (rate.peakFlops * attention);
  const auto compute = static_cast<double>(plan::itemSize(base.dtypes.compute));
  cost.inputBytes =
      tokens * compute * static_cast<double>(headsOf(in.inputs)[1]);
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

tune::MeshProblem problemOf(const AdviceInputs &in, const StepModel &model,
                            const Candidate &base, const Target &target,
                            bool all) {
  const MegatronSettings &written = *in.inputs.job.accelerate.megatron;
  tune::MeshProblem problem;
  problem.ranks = base.mesh.ranks();
  problem.ranksPerNode = base.ranksPerNode;
  problem.layers = std::count_if(model.calls.begin(), model.calls.end(),
                                 [](const StepCall &c) { return c.layer; });
  problem.heads = headsOf(in.inputs)[0];
  problem.tokens = in.inputs.training.sequenceLength;
  problem.microBatches = microBatchesOf(base);
  auto keep = [&](auto &kept, const auto &setting) {
    if (!all && setting.written())
      kept = *setting;
  };
  keep(problem.tensor, written.tensorParallel);
  keep(problem.context, written.contextParallel);
  keep(problem.stages, written.pipelineParallel);
  keep(problem.sequence, written.sequenceParallelism);
  problem.idleSequence = *written.sequenceParallelism;
  if (!in.options.globalBatch)
    keep(problem.accumulation, written.microBatches);
  if (in.options.accumulation)
    problem.accumulation = base.accumulation;
  problem.layer = layerCost(in, model, base, target);
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
  return problem;
}

/// Of the ways to compute a layer, the fastest.
std::optional<double> fastestLayer(const StepModel *model) {
  if (!model)
    return std::nullopt;
  std::optional<double> least;
  for (const StepCall &call : model->calls)
    for (const SegmentVariant &way : model->kinds[call.kind].variants)
      if (const double seconds = way.forwardSeconds + way.backwardSeconds;
          call.layer && (!least || seconds < *least))
        least = seconds;
  return least;
}

MeshSizes sizesOf(const MeshOption &option) {
  return {option.mesh.size("tp"), option.mesh.size("cp"),
          option.mesh.size(plan::pipelineAxis), option.sequence};
}

/// Stages are outermost, and tensor-parallel ranks neighbours
/// (frontends/Accelerate/Strategy.cpp).
MeshOption optionOf(const tune::MeshProblem &problem, const MeshSizes &sizes) {
  plan::Mesh mesh = plan::Mesh::dataParallel();
  mesh.resize("dp_replicate", problem.copies(sizes));
  if (sizes.context > 1)
    mesh.resize("cp", sizes.context);
  if (sizes.tensor > 1)
    mesh.resize("tp", sizes.tensor);
  if (sizes.stages > 1)
    mesh.axes.insert(mesh.axes.begin(), {plan::pipelineAxis, sizes.stages});
  return {std::move(mesh), problem.accumulationOf(sizes), sizes.sequence};
}

} // namespace

std::optional<MeshOption> wholeMesh(const AdviceInputs &in,
                                    const Candidate &base) {
  // Chunks of stages have no key beside which others could be chosen.
  if (in.executor != FrameworkKind::Megatron || !in.options.tune ||
      !in.target || base.megatron.chunks > 1)
    return std::nullopt;
  return MeshOption(base.mesh, base.accumulation,
                    *in.inputs.job.accelerate.megatron->sequenceParallelism);
}

tune::MeshSource meshSource(const AdviceInputs &in, const tune::Space &space,
                            const tune::ConfigEditor &editor) {
  return [&in, &space, &editor](int mesh) {
    tune::Point point = space.configured;
    point[Knob::Mesh] = mesh;
    return in.modelOf(editor.express(Knob::Mesh, point));
  };
}

MeshAnswer addMeshes(const AdviceInputs &in, const Target &target,
                     const StepModel &model, const tune::GivenOptions &given,
                     int64_t budgetBytes, bool all, tune::Space &space) {
  const tune::MeshProblem problem =
      problemOf(in, model, space.base, target, all);
  const MeshOption configured = space.mesh(space.configured);
  tune::Space every = space; // each mesh, the configured one first
  std::map<MeshSizes, int> numbers = {{sizesOf(configured), 0}};
  for (const MeshSizes &sizes : tune::meshesOf(problem))
    if (numbers.try_emplace(sizes, static_cast<int>(every.meshes.size()))
            .second)
      every.meshes.push_back(optionOf(problem, sizes));
  tune::Space one = every; // the mesh of which is configured
  tune::ConfigEditor editor(every, in.inputs.job, {}, given);
  tune::CachedEvaluator evaluator(one, target, in.source,
                                  meshSource(in, every, editor));
  tune::SearchOptions options;
  options.budgetBytes = budgetBytes;
  Progress progress("meshes");
  const tune::MeshSearchResult found = tune::searchMeshes(
      problem, budgetBytes,
      [&](const MeshSizes &sizes) {
        tune::Point point = every.configured;
        point[Knob::Mesh] = numbers.at(sizes);
        const auto other = point[Knob::Mesh]
                               ? in.modelOf(editor.express(Knob::Mesh, point))
                               : nullptr;
        return fastestLayer(point[Knob::Mesh] ? other.get() : &model);
      },
      [&](const MeshSizes &sizes) {
        one.configured[Knob::Mesh] = numbers.at(sizes);
        const tune::SearchResult inside = tune::search(
            one, [&](const tune::Point &p) { return evaluator.evaluate(p); },
            [&](int s, int g, int v) { return evaluator.cost(s, g, v); },
            options);
        tune::MeshVerdict verdict = {sizes, std::nullopt,
                                     inside.smallest.evaluation};
        if (inside.best)
          verdict.best = inside.best->evaluation;
        return verdict;
      },
      [&](int64_t done, int64_t of) { progress.show(done, of); });
  auto add = [&](const MeshSizes &sizes) {
    const MeshOption &option = every.meshes[numbers.at(sizes)];
    for (const MeshOption &known : space.meshes)
      if (sizesOf(known) == sizes)
        return;
    space.meshes.push_back(option);
  };
  constexpr size_t kept = 4;
  for (size_t i = 0; i < found.fitting.size() && i < kept; ++i)
    add(found.fitting[i].mesh);
  if (found.lacking)
    add(found.lacking->mesh);
  if (found.otherSide)
    add(found.otherSide->mesh);
  space.state(Knob::Mesh).open = space.meshes.size() > 1;
  const auto &first = in.inputs.job.accelerate.megatron->tensorParallel;
  if (!all && space.meshes.size() == 1 && first.written()) {
    tune::KnobState &state = space.state(Knob::Mesh);
    state = {false, "megatron_lm_tp_degree: " + std::to_string(*first),
             first.at.file, first.at.line, first.at.column};
  }
  MeshAnswer answer;
  answer.meshes = found.meshes;
  answer.evaluated = found.evaluated;
  answer.ranksPerNode = problem.ranksPerNode;
  return answer;
}

void compareMeshes(const tune::Space &space, const tune::Point &chosen,
                   const PlanSetting &plan, MeshAnswer &answer) {
  auto faster = [](const MeshChoice &choice,
                   const std::optional<MeshChoice> &than) {
    return !than || choice.predicted.stepSeconds < than->predicted.stepSeconds;
  };
  MeshChoice best{space.mesh(chosen), {}};
  plan(chosen, best.predicted);
  answer.chosen = best;
  for (size_t m = 0; m < space.meshes.size(); ++m) {
    if (static_cast<int>(m) == chosen[Knob::Mesh])
      continue;
    std::optional<MeshChoice> fits, small;
    for (const std::vector<int> &counts : space.uniformCounts()) {
      tune::Point point = chosen;
      point[Knob::Mesh] = static_cast<int>(m);
      point.counts = counts;
      MeshChoice choice{space.meshes[m], {}};
      if (!space.problem(point).empty())
        continue;
      if (plan(point, choice.predicted) && faster(choice, fits))
        fits = choice;
      if (choice.predicted.deviceBytes > 0 &&
          (!small ||
           choice.predicted.deviceBytes < small->predicted.deviceBytes))
        small = choice;
    }
    if (fits && faster(*fits, answer.next))
      answer.next = fits;
    if (!fits && small && faster(*small, best) &&
        (!answer.lacking ||
         small->predicted.deviceBytes < answer.lacking->predicted.deviceBytes))
      answer.lacking = small;
    auto crosses = [&](const MeshOption &option) {
      return option.mesh.size("tp") > answer.ranksPerNode;
    };
    if (fits && crosses(space.meshes[m]) != crosses(best.mesh) &&
        faster(*fits, answer.otherSide))
      answer.otherSide = fits;
  }
}

} // namespace accel
