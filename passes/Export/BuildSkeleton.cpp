//===- BuildSkeleton.cpp - What each rank holds, from the IR --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Export/BuildSkeleton.h"

#include "dialects/Aten/Dropped.h"
#include "dialects/Sharding/Pipeline.h"
#include "dialects/Sharding/Spec.h"
#include "passes/Frameworks/Fp8Layers.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Loss/LossHead.h"
#include "passes/Pipeline/JobAttr.h"
#include "runtime/plan/UpdateLayout.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace accel {
namespace {

std::vector<std::string> strings(ArrayAttr list) {
  std::vector<std::string> result;
  for (auto text : list.getAsRange<StringAttr>())
    result.push_back(text.str());
  return result;
}

plan::Decision decision(StringRef what, StringRef where, std::string choice,
                        sharding::BecauseAttr because) {
  plan::Decision d;
  d.what = what.str();
  d.where = where.str();
  d.choice = std::move(choice);
  d.why = because.getWhy().str();
  if (because.getFile()) {
    d.file = because.getFile().str();
    d.line = static_cast<int>(because.getLine());
    d.column = static_cast<int>(because.getColumn());
  }
  return d;
}

} // namespace

plan::Disk toDisk(sharding::DiskAttr disk) {
  if (!disk)
    return {};
  return {disk.getFolder().str(), disk.getBuffers(), disk.getReadAhead(),
          disk.getWriteBehind(),  disk.getBlock(),   disk.getDepth(),
          disk.getThreads()};
}

namespace {

class SkeletonBuilder {
public:
  SkeletonBuilder(mlir::ModuleOp module, plan::Plan &plan)
      : module(module), plan(plan), framework(frameworkOf(module)) {}

  LogicalResult run() {
    auto mesh = sharding::findOnly<sharding::MeshOp>(module);
    auto job = sharding::findOnly<sharding::JobOp>(module);
    if (!mesh || !job)
      return module.emitError(
          "a plan needs a sharding.mesh and a sharding.job");
    for (auto axis : mesh.getAxes().getAsRange<sharding::AxisAttr>())
      plan.axes.push_back({axis.getName().str(), axis.getSize()});
    if (failed(addJob(job)))
      return failure();
    auto params = module.getOps<sharding::ParamOp>();
    plan.parameters.reserve(std::distance(params.begin(), params.end()));
    for (auto param : params)
      addParameter(param);
    for (auto buffer : module.getOps<sharding::BufferOp>())
      if (failed(addBuffer(buffer)))
        return failure();
    for (auto unit : module.getOps<sharding::UnitOp>())
      if (failed(addUnit(unit)))
        return failure();
    addCallDecisions();
    for (const plan::Parameter &p : plan.parameters)
      if (p.unit < 0)
        return module.emitError()
               << "parameter '" << p.fqn << "' is in no unit";
    return success();
  }

private:
  LogicalResult addJob(sharding::JobOp job) {
    if (auto training = job.getTrainingAttr()) {
      std::string error = jobFromAttr(training, plan.job);
      if (!error.empty())
        return job.emitOpError() << "has a bad 'training': " << error;
    }
    plan.device = job.getDevice().str();
    if (auto offload = job.getOffloadAttr();
        offload && framework.kind() == FrameworkKind::AccelRun)
      plan.offload = {offload.getOptimizer(), offload.getParameters(),
                      offload.getActivations(), toDisk(offload.getDisk())};
    plan.job.microBatch = job.getMicroBatch();
    plan.job.sequenceLength = job.getSequenceLength();
    if (plan.job.optimizer.groups.empty())
      plan.job.optimizer.groups.emplace_back();
    auto accumulation = job.getAccumulationAttr();
    auto prefetch = job.getPrefetchAttr();
    auto update = job.getUpdateAttr();
    const bool gathers = framework.prefetch().has_value();
    if (!accumulation || (gathers && !prefetch) || !update)
      return job.emitOpError() << "lacks the decision "
                               << (!accumulation ? "accumulation"
                                   : !prefetch   ? "prefetch"
                                                 : "update");
    plan.job.accumulation = accumulation.getSteps();
    plan.decisions.push_back(
        decision("accumulation", "job",
                 std::to_string(accumulation.getSteps()) + " x " +
                     stringifyAccumulationMode(accumulation.getMode()).str(),
                 accumulation.getBecause()));
    if (prefetch)
      plan.decisions.push_back(
          decision("prefetch", "job",
                   "forward " + std::to_string(prefetch.getForward()) +
                       ", backward " + std::to_string(prefetch.getBackward()),
                   prefetch.getBecause()));
    if (auto gathers = job.getGathersAttr())
      plan.decisions.push_back(
          decision("gathers", "job",
                   gathers.getHeld() > 0
                       ? "the first " + std::to_string(gathers.getHeld()) +
                             " of a backward held back"
                       : "as far ahead as prefetched",
                   gathers.getBecause()));
    if (auto reductions = job.getReductionsAttr())
      plan.decisions.push_back(
          decision("reductions", "job",
                   reductions.getAwait() > 0
                       ? "the first " + std::to_string(reductions.getAwait()) +
                             " of a backward awaited"
                       : "beside the next backward",
                   reductions.getBecause()));
    plan.decisions.push_back(
        decision("update", "job", stringifyUpdateMode(update.getMode()).str(),
                 update.getBecause()));
    if (auto checkpoint = job.getCheckpointAttr())
      plan.decisions.push_back(
          decision("checkpoint", "job",
                   stringifyCheckpointMode(checkpoint.getMode()).str(),
                   checkpoint.getBecause()));
    addDropout();
    addFrameworkDecisions(job);
    return success();
  }

  /// Attention whose kernel drops by itself draws other numbers than CPUs do.
  void addDropout() {
    bool drops = false;
    module.walk([&](Operation *op) {
      drops |=
          isa<aten::DroppedFlashAttentionOp, aten::DroppedEfficientAttentionOp>(
              op);
    });
    if (!drops)
      return;
    plan::Decision d;
    d.what = "dropout";
    d.where = "job";
    d.choice = "attention's weights by its kernel";
    d.why = "CUDA's kernels drop where they multiply, so that no scores are "
            "kept; each call draws from a state that its key gives, other "
            "numbers than on CPUs";
    if (llvm::any_of(plan.axes, [](const plan::Axis &axis) {
          return axis.size > 1 && axis.name == "tp";
        }))
      d.why += "; each rank of tp draws for its own heads, so that other "
               "sizes of tp drop other weights";
    plan.decisions.push_back(std::move(d));
  }

  static std::string onOff(bool b) { return b ? "host" : "device"; }
  static std::string onDisk(sharding::DiskAttr disk) {
    if (!disk)
      return "";
    return ", its states in files of " + disk.getFolder().str() +
           (disk.getReadAhead() ? ", read ahead" : "") +
           (disk.getWriteBehind() ? ", written behind" : "") + ", by " +
           std::to_string(disk.getBuffers()) + " buffers";
  }

  std::string fp8Text(sharding::Fp8Attr fp8) {
    const bool delayed = fp8.getRecipe() == sharding::Fp8Recipe::Delayed;
    const auto [converted, all] = countFp8Layers(module);
    return (delayed
                ? std::string("delayed scaling by TransformerEngine")
                : stringifyFp8Recipe(fp8.getRecipe()).str() + " by torchao") +
           ", " + std::to_string(converted) + " of " + std::to_string(all) +
           " linear layers" +
           (fp8.getGathers() ? ", weights gathered in fp8" : "");
  }

  void addFrameworkDecisions(sharding::JobOp job) {
    if (auto step = job.getOptimizerStepAttr())
      plan.decisions.push_back(
          decision("optimizer", "job",
                   stringifyOptimizerKernel(step.getKernel()).str() +
                       (step.getClip() ? ", gradients clipped" : ""),
                   step.getBecause()));
    if (auto offload = job.getOffloadAttr())
      plan.decisions.push_back(
          decision("offload", "job",
                   "parameters on the " + onOff(offload.getParameters()) +
                       ", optimizer on the " + onOff(offload.getOptimizer()) +
                       onDisk(offload.getDisk()) +
                       (framework.kind() == FrameworkKind::AccelRun
                            ? ", saved activations on the "
                            : ", inputs of recomputed layers on the ") +
                       onOff(offload.getActivations()),
                   offload.getBecause()));
    if (auto compile = job.getCompileAttr())
      plan.decisions.push_back(decision(
          "compile", "job",
          stringifyCompileRegions(compile.getRegions()).str() +
              (compile.getReplays() ? ", replayed as CUDA graphs" : ""),
          compile.getBecause()));
    if (auto fp8 = job.getFp8Attr())
      plan.decisions.push_back(
          decision("fp8", "job", fp8Text(fp8), fp8.getBecause()));
    if (auto ddp = job.getDdpAttr();
        ddp && framework.kind() == FrameworkKind::AccelRun)
      plan.decisions.push_back(decision(
          "all_reduce", "job",
          ddp.getHook().empty() ? std::string("gradients in their own dtype")
                                : "gradients cast to " + ddp.getHook().str(),
          ddp.getBecause()));
    else if (ddp)
      plan.decisions.push_back(decision(
          "buckets", "job",
          std::to_string(ddp.getBucketBytes()) + " bytes, the first of " +
              std::to_string(ddp.getFirstBucketBytes()) +
              (ddp.getGradientAsBucketView() ? ", gradients are views" : "") +
              (ddp.getHook().empty() ? "" : ", hook " + ddp.getHook().str()),
          ddp.getBecause()));
    if (auto zero = job.getZeroAttr()) {
      plan.decisions.push_back(decision(
          "zero", "job",
          "stage " + std::to_string(zero.getStage()) + ", reduce bucket " +
              std::to_string(zero.getReduceBucket()) + ", prefetch bucket " +
              std::to_string(zero.getPrefetchBucket()) +
              ", persistence threshold " +
              std::to_string(zero.getPersistenceThreshold()) +
              (zero.getOverlapCommunication() ? ", communication overlapped"
                                              : "") +
              (zero.getSubGroup() != sharding::defaultZeroSubGroup
                   ? ", updates of " + std::to_string(zero.getSubGroup())
                   : ""),
          zero.getBecause()));
      if (auto plus = zero.getPlus())
        plan.decisions.push_back(
            decision("zero_plus", "job", textOf(plus), plus.getBecause()));
    }
  }

  static std::string textOf(sharding::ZeroPlusAttr plus) {
    std::string text;
    auto add = [&](bool set, const std::string &what) {
      if (set)
        text += (text.empty() ? "" : ", ") + what;
    };
    add(plus.getSecondary() > 1, "a second copy of the parameters over " +
                                     std::to_string(plus.getSecondary()) +
                                     " ranks");
    add(plus.getShard() > 0,
        "one copy of all over " + std::to_string(plus.getShard()) + " ranks");
    add(plus.getWeights(), "parameters gathered in 8 bits");
    add(plus.getGradients(), "gradients between machines in 4 bits");
    return text.empty() ? "none" : text;
  }

  static plan::Initializer initializer(sharding::InitAttr attr) {
    using Kind = plan::Initializer::Kind;
    plan::Initializer init;
    switch (attr.getKind()) {
    case sharding::InitKind::Zeros:
      init.kind = Kind::Zeros;
      break;
    case sharding::InitKind::Ones:
      init.kind = Kind::Ones;
      break;
    case sharding::InitKind::Normal:
      init.kind = Kind::Normal;
      break;
    case sharding::InitKind::TruncatedNormal:
      init.kind = Kind::TruncatedNormal;
      break;
    case sharding::InitKind::Uniform:
      init.kind = Kind::Uniform;
      break;
    case sharding::InitKind::Constant:
      init.kind = Kind::Constant;
      break;
    case sharding::InitKind::Sinusoids:
      init.kind = Kind::Sinusoids;
      break;
    }
    if (attr.getValue())
      init.value = attr.getValue().getValueAsDouble();
    if (attr.getRange()) {
      init.low = attr.getRange()[0];
      init.high = attr.getRange()[1];
    }
    init.zeroRow = attr.getZeroRow();
    return init;
  }

  void addParameter(sharding::ParamOp op) {
    plan::Parameter parameter;
    parameter.fqn = op.getFqn().str();
    if (auto aliases = op.getAliases())
      parameter.aliases = strings(*aliases);
    if (auto stored = op.getStored())
      parameter.stored = strings(*stored);
    if (auto names = op.getBaseNames())
      parameter.baseNames = strings(*names);
    parameter.adapterKey = op.getAdapterKey().value_or("").str();
    parameter.shape = op.getTensorType().getShape().vec();
    if (auto spec = op.getSpecAttr())
      for (int64_t dim = 0; dim < spec.getRank(); ++dim)
        for (sharding::ShardedBy by : sharding::shardedBy(spec, dim))
          parameter.split.push_back({by.axis.str(), dim, by.pieces});
    parameter.trainable = !op.getFrozen();
    parameter.group = static_cast<int>(op.getGroup());
    parameter.init = initializer(op.getInit());
    index[op.getFqn()] = static_cast<int>(plan.parameters.size());
    plan.parameters.push_back(std::move(parameter));
  }

  LogicalResult addBuffer(sharding::BufferOp op) {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    auto dtype = type ? toDType(type.getElementType()) : std::nullopt;
    if (!dtype)
      return op.emitOpError()
             << "'" << op.getFqn() << "' is of " << op.getType()
             << ", expected a tensor of a plan's dtype";
    plan.buffers.push_back(
        {op.getFqn().str(), type.getShape().vec(), *dtype, op.getPersistent()});
    return success();
  }

  LogicalResult addUnit(sharding::UnitOp op) {
    auto precision = op.getPrecisionAttr();
    if (!precision || !op.getReshardAttr())
      return op.emitOpError() << "'" << op.getName() << "' lacks the decision "
                              << (precision ? "reshard" : "precision");
    plan::Unit unit;
    unit.name = op.getName().str();
    unit.stage = static_cast<int>(sharding::stageOf(op));
    if (auto copied = op->getAttrOfType<StringAttr>(sharding::copyOfAttr)) {
      for (auto [i, other] : llvm::enumerate(plan.units))
        if (other.name == copied.getValue())
          unit.copyOf = static_cast<int>(i);
      if (unit.copyOf < 0)
        return op.emitOpError() << "'" << op.getName() << "' is a copy of '"
                                << copied.getValue() << "', which is no unit "
                                << "before it";
    }
    unit.shardAxes = strings(op.getShardAxes());
    unit.replicateAxes = strings(op.getReplicateAxes());
    unit.storage = *toDType(precision.getStorage());
    unit.gather = *toDType(precision.getCompute());
    unit.reduce = *toDType(precision.getReduce());
    int64_t smallest =
        std::min({plan::itemSize(unit.storage), plan::itemSize(unit.gather),
                  plan::itemSize(unit.reduce)});
    int64_t align = plan::alignmentBytes / smallest;
    int unitIndex = static_cast<int>(plan.units.size());
    int64_t offset = 0;
    unit.trainable = false;
    for (auto fqn : op.getParams().getAsRange<StringAttr>()) {
      auto it = index.find(fqn.getValue());
      if (it == index.end())
        return op.emitOpError()
               << "holds '" << fqn.getValue() << "', which is no parameter";
      plan::Parameter &parameter = plan.parameters[it->second];
      if (unit.copyOf < 0) {
        parameter.unit = unitIndex;
        parameter.offset = offset;
        parameter.dtype = unit.storage;
      }
      unit.trainable |= parameter.trainable;
      unit.parameters.push_back(it->second);
      const int64_t numel = plan::ownNumel(plan, parameter);
      unit.numel += numel;
      int64_t end = offset + numel;
      offset = (end + align - 1) / align * align;
      if (!parameter.trainable)
        continue;
      if (!unit.groupRanges.empty() &&
          unit.groupRanges.back().group == parameter.group)
        unit.groupRanges.back().end = offset;
      else
        unit.groupRanges.push_back({parameter.group, end - numel, offset});
    }
    int64_t chunk = 64 * plan.groupSize(unit.shardAxes);
    unit.padded = (offset + chunk - 1) / chunk * chunk;
    if (unit.trainable) {
      unit.groupRanges.back().end = unit.padded;
      unit.states = plan::unitStates(plan, unit);
    }
    if (!framework.unshards() || castsByAutocast(module))
      unit.gather = unit.storage; // what it holds is used as it is
    auto ddp = sharding::findOnly<sharding::JobOp>(module).getDdpAttr();
    if (ddp && framework.kind() == FrameworkKind::AccelRun &&
        unit.shardAxes.empty() && !unit.replicateAxes.empty())
      unit.hook = ddp.getHook().str();
    unit.whole = op.getReshardAttr().getWhole() && framework.unshards() &&
                 !plan::readsShard(plan, unit);
    addDecisions(op, unit);
    plan.units.push_back(std::move(unit));
    return success();
  }

  void addDecisions(sharding::UnitOp op, const plan::Unit &unit) {
    auto precision = op.getPrecisionAttr();
    plan.decisions.push_back(
        decision("wrap", unit.name,
                 "unit of " + std::to_string(unit.parameters.size()) +
                     " parameters, " + std::to_string(unit.numel) + " elements",
                 op.getWrap().getBecause()));
    plan.decisions.push_back(decision(
        "precision", unit.name,
        std::string("storage ") + plan::toString(unit.storage) + ", compute " +
            plan::toString(*toDType(precision.getCompute())) + ", reduce " +
            plan::toString(unit.reduce) +
            (precision.getAutocast() ? ", autocast" : "") +
            (precision.getMasterCopy() && unit.trainable ? ", fp32 master copy"
                                                         : ""),
        precision.getBecause()));
    if (framework.unshards())
      plan.decisions.push_back(decision("reshard", unit.name,
                                        reshardText(op, unit),
                                        op.getReshardAttr().getBecause()));
  }

  std::string reshardText(sharding::UnitOp op, const plan::Unit &unit) {
    const std::string whole = "whole on every rank";
    const std::string updated = whole + ", gathered after its update";
    auto zero = sharding::findOnly<sharding::JobOp>(module).getZeroAttr();
    if (zero && framework.kind() == FrameworkKind::Deepspeed) {
      const int64_t small = zero.getPersistenceThreshold();
      if (zero.getStage() == 3 && llvm::any_of(unit.parameters, [&](int p) {
            return plan::ownNumel(plan, plan.parameters[p]) > small;
          }))
        return "freed after each use, but for what is used again soon";
      return zero.getStage() > 0 && unit.trainable ? updated : whole;
    }
    return op.getReshardAttr().getAfterForward() ? "freed after the forward"
           : unit.whole ? updated
                        : "kept until its last use in the backward";
  }

  /// Segments that are checkpointed otherwise than the job.
  void addCallDecisions() {
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    if (!graph)
      return;
    if (auto experts =
            graph->getAttrOfType<sharding::ExpertsAttr>(sharding::expertsAttr))
      plan.decisions.push_back(decision(
          "experts", "job",
          "shared by the ranks of " + sharding::axisNames(experts.getAxes()) +
              ", a place for " + factorText(experts) +
              " times the even share of rows",
          experts.getBecause()));
    if (auto request = sharding::findRequest(module, "pipeline");
        request && sharding::scheduleOf(graph) != plan::oneFOneB) {
      std::string schedule = sharding::scheduleOf(graph);
      const bool split = plan::splitsBackward(schedule);
      if (const int64_t chunks = sharding::chunksOf(graph); chunks > 1)
        schedule += ", " + std::to_string(chunks) +
                    " chunks of the model in each stage";
      if (schedule == plan::allForwardsFirst)
        schedule += ", all forwards before the first backward";
      if (split)
        schedule += ", gradients of weights behind those of inputs";
      plan.decisions.push_back(
          decision("pipeline", "job", schedule, request.getBecause()));
    }
    if (auto reasons = graph->getAttrOfType<ArrayAttr>(sharding::stagesAttr))
      for (auto [stage, because] :
           llvm::enumerate(reasons.getAsRange<sharding::BecauseAttr>()))
        plan.decisions.push_back(
            decision("stage", chunkName(graph, static_cast<int64_t>(stage)),
                     callsOf(graph, static_cast<int64_t>(stage)), because));
    for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
      if (auto loss = call->getAttrOfType<sharding::LossAttr>(lossAttr))
        plan.decisions.push_back(decision(
            "loss", call.getPath().empty() ? "job" : call.getPath(),
            std::to_string(loss.getChunks()) + " chunks", loss.getBecause()));
      if (auto checkpoint = call.getCheckpointAttr())
        plan.decisions.push_back(decision("checkpoint", call.getPath(),
                                          choiceOf(checkpoint),
                                          checkpoint.getBecause()));
    }
  }

  /// Of a chunk's number in the model: "stage 1", "stage 1, chunk 1".
  static std::string chunkName(sharding::GraphOp graph, int64_t chunk) {
    auto reasons = graph->getAttrOfType<ArrayAttr>(sharding::stagesAttr);
    const plan::ChunkLayout layout =
        sharding::chunkLayoutOf(graph, static_cast<int64_t>(reasons.size()) /
                                           sharding::chunksOf(graph));
    return plan::chunkName(layout.stageOf(static_cast<int>(chunk)),
                           layout.chunkOf(static_cast<int>(chunk)));
  }

  static std::string factorText(sharding::ExpertsAttr experts) {
    std::string text;
    llvm::raw_string_ostream(text)
        << llvm::format("%g", experts.getImbalance().getValueAsDouble());
    return text;
  }

  /// "model.embed_tokens to model.layers.3"
  static std::string callsOf(sharding::GraphOp graph, int64_t stage) {
    std::string first, last;
    for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
      if (sharding::stageOf(call) != stage)
        continue;
      last = (call.getPath().empty() ? call.getCallee() : call.getPath()).str();
      if (first.empty())
        first = last;
    }
    return first == last ? first : first + " to " + last;
  }

  static std::string choiceOf(sharding::CheckpointAttr checkpoint) {
    std::string choice = stringifyCheckpointMode(checkpoint.getMode()).str();
    if (checkpoint.getBytes() >= 0)
      choice += " of " + std::to_string(checkpoint.getBytes()) + " bytes";
    if (!checkpoint.getKeep().empty())
      choice +=
          " of " + std::to_string(checkpoint.getKeep().size()) + " operations";
    return choice;
  }

  mlir::ModuleOp module;
  plan::Plan &plan;
  const frameworks::Framework &framework;
  llvm::StringMap<int> index;
};

} // namespace

std::optional<plan::DType> toDType(Type type) {
  return llvm::TypeSwitch<Type, std::optional<plan::DType>>(type)
      .Case([](Float64Type) { return plan::DType::F64; })
      .Case([](Float32Type) { return plan::DType::F32; })
      .Case([](BFloat16Type) { return plan::DType::BF16; })
      .Case([](Float16Type) { return plan::DType::F16; })
      .Case([](IntegerType t) -> std::optional<plan::DType> {
        switch (t.getWidth()) {
        case 1:
          return plan::DType::I1;
        case 8:
          return plan::DType::U8;
        case 16:
          return plan::DType::I16;
        case 32:
          return plan::DType::I32;
        case 64:
          return plan::DType::I64;
        default:
          return std::nullopt;
        }
      })
      .Default([](Type) { return std::nullopt; });
}

LogicalResult buildSkeleton(mlir::ModuleOp module, plan::Plan &plan) {
  return SkeletonBuilder(module, plan).run();
}

} // namespace accel
