//===- JobFramework.cpp - The framework that a module names ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/JobFramework.h"

#include "dialects/Sharding/Sharding.h"
#include "runtime/plan/Optimizers.h"

using namespace mlir;

namespace accel {

static sharding::FrameworkAttr attributeOf(mlir::ModuleOp module) {
  auto job = sharding::findOnly<sharding::JobOp>(module);
  return job ? job.getFrameworkAttr() : sharding::FrameworkAttr();
}

const frameworks::Framework &frameworkOf(mlir::ModuleOp module) {
  auto named = attributeOf(module);
  const auto *found =
      named ? frameworks::findFramework(named.getName().str()) : nullptr;
  return found ? *found : frameworks::framework(FrameworkKind::AccelRun);
}

frameworks::Versions versionsOf(mlir::ModuleOp module) {
  frameworks::Versions versions;
  if (auto named = attributeOf(module)) {
    versions.torch = named.getTorch().str();
    versions.accelerate = named.getAccelerate().str();
  }
  versions.transformers = scriptOf(module).transformers;
  return versions;
}

ScriptTraits scriptOf(mlir::ModuleOp module) {
  ScriptTraits script;
  auto job = sharding::findOnly<sharding::JobOp>(module);
  auto attr =
      job ? job->getAttrOfType<DictionaryAttr>(scriptAttr) : DictionaryAttr();
  if (!attr)
    return script;
  if (auto version = attr.getAs<StringAttr>("transformers"))
    script.transformers = version.getValue().str();
  script.autocastAlone = attr.contains("autocast_alone");
  script.reentrant = attr.contains("reentrant");
  if (auto reference = attr.getAs<StringAttr>("reference"))
    script.reference = reference.getValue().str();
  script.scoresFirst = attr.contains("scores_first");
  script.scoresItself = attr.contains("scores_itself");
  script.loadsShards = attr.contains("loads_shards");
  script.loadsWhole = attr.contains("loads_whole");
  script.logProbabilities = attr.contains("log_probabilities");
  script.wholeLogProbabilities = attr.contains("whole_log_probabilities");
  if (auto bytes = attr.getAs<IntegerAttr>("generation_bytes"))
    script.generationBytes = bytes.getInt();
  return script;
}

void setScript(mlir::ModuleOp module, const ScriptTraits &script) {
  auto job = sharding::findOnly<sharding::JobOp>(module);
  Builder b(module.getContext());
  SmallVector<NamedAttribute> values;
  auto flag = [&](StringRef name, bool set) {
    if (set)
      values.push_back(b.getNamedAttr(name, b.getUnitAttr()));
  };
  flag("autocast_alone", script.autocastAlone);
  if (script.generationBytes)
    values.push_back(b.getNamedAttr(
        "generation_bytes", b.getI64IntegerAttr(script.generationBytes)));
  flag("loads_shards", script.loadsShards);
  flag("loads_whole", script.loadsWhole);
  flag("log_probabilities", script.logProbabilities);
  if (!script.reference.empty())
    values.push_back(
        b.getNamedAttr("reference", b.getStringAttr(script.reference)));
  flag("reentrant", script.reentrant);
  flag("scores_first", script.scoresFirst);
  flag("scores_itself", script.scoresItself);
  if (script.transformers != ScriptTraits().transformers)
    values.push_back(
        b.getNamedAttr("transformers", b.getStringAttr(script.transformers)));
  flag("whole_log_probabilities", script.wholeLogProbabilities);
  if (job && !values.empty())
    job->setAttr(scriptAttr, b.getDictionaryAttr(values));
}

bool castsByAutocast(mlir::ModuleOp module) {
  return frameworkOf(module).castsByAutocast() ||
         scriptOf(module).autocastAlone;
}

bool isDeterministic(mlir::ModuleOp module) {
  auto job = sharding::findOnly<sharding::JobOp>(module);
  auto training = job ? job.getTrainingAttr() : DictionaryAttr();
  return training && training.get("deterministic");
}

/// Trainers with models of their own run the kernels that their rates were
/// fitted to. cuDNN's kernel is not deterministic. torch's ring attention has
/// it over shards of tokens (_scaled_dot_product_ring_cudnn_attention of
/// torch/distributed/tensor/experimental/_context_parallel); accel-run's, which
/// merges statistics of parts, has not been run with it.
static int64_t cudnnHeadOf(mlir::ModuleOp module,
                           const frameworks::Kernels &kernels, bool flash) {
  auto job = sharding::findOnly<sharding::JobOp>(module);
  auto mesh = sharding::findOnly<sharding::MeshOp>(module);
  if (!job || !job.getCapability() || !kernels.transformers || flash ||
      (mesh && mesh.axisSize("cp") > 1 && !frameworkOf(module).eager()))
    return 0;
  if (isDeterministic(module))
    return 0;
  const int64_t head = frameworks::cudnnHead(
      versionsOf(module).torch, job.getCapability()->convertToDouble());
  // accel-run may be built against any torch from 2.11 on.
  return frameworkOf(module).eager() ? head : std::min<int64_t>(head, 128);
}

frameworks::Kernels kernelsOf(mlir::ModuleOp module) {
  auto request = sharding::findRequest(module, "compile");
  auto asked = [&](StringRef name) {
    return request && request.getValue().get(name);
  };
  frameworks::Kernels kernels =
      frameworkOf(module).kernels(versionsOf(module), asked("layers"));
  kernels.operands = asked("fp8")     ? LinearOperands::Fp8
                     : asked("mxfp8") ? LinearOperands::Mxfp8
                     : asked("nvfp4") ? LinearOperands::Nvfp4
                                      : LinearOperands::Computed;
  kernels.tf32 = asked("tf32");
  kernels.asyncTensor = kernels.dtensor && asked("async_tensor");
  kernels.cudnnHead = cudnnHeadOf(module, kernels, asked("flash_attention"));
  kernels.efficientTakesAll = atLeast(versionsOf(module).torch, "2.14");
  auto sets =
      request ? request.getValue().getAs<ArrayAttr>("kernels") : ArrayAttr();
  if (sets)
    for (auto name : sets.getAsRange<StringAttr>())
      if (auto set = frameworks::parseKernelSet(name.getValue().str()))
        frameworks::useKernels(*set, kernels);
  return kernels;
}

const plan::OptimizerDescription *optimizerOf(mlir::ModuleOp module) {
  auto job = sharding::findOnly<sharding::JobOp>(module);
  auto training = job ? job.getTrainingAttr() : DictionaryAttr();
  auto optimizer =
      training ? training.getAs<DictionaryAttr>("optimizer") : DictionaryAttr();
  auto name = optimizer ? optimizer.getAs<StringAttr>("name") : StringAttr();
  return plan::findOptimizer(name ? name.getValue().str() : "adamw");
}

Type floatType(MLIRContext *context, plan::DType dtype) {
  Builder b(context);
  switch (dtype) {
  case plan::DType::F64:
    return b.getF64Type();
  case plan::DType::BF16:
    return b.getBF16Type();
  case plan::DType::F16:
    return b.getF16Type();
  default:
    return b.getF32Type();
  }
}

} // namespace accel
