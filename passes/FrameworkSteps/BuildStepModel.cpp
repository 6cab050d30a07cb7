//===- BuildStepModel.cpp - The step model of a module --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/BuildStepModel.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Eager.h"
#include "dialects/Aten/Schema.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Differentiate/Joint.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Export/ExportFunction.h"
#include "passes/FrameworkSteps/AccelRunVariants.h"
#include "passes/FrameworkSteps/Fp8Segments.h"
#include "passes/FrameworkSteps/LossFrames.h"
#include "passes/FrameworkSteps/MegatronSegments.h"
#include "passes/FrameworkSteps/ParameterForm.h"
#include "passes/FrameworkSteps/SegmentGradients.h"
#include "passes/FrameworkSteps/SegmentMarks.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Partition/GraphParts.h"
#include "passes/Quantize/MarkQuantized.h"
#include "passes/Recompute/DecideSaved.h"
#include "passes/Recompute/ExtractJoint.h"
#include "passes/Simulate/Time.h"
#include "passes/StepModel/CompiledVariant.h"
#include "passes/StepModel/Dequantize.h"
#include "passes/StepModel/GatherAgain.h"
#include "passes/StepModel/LossFragments.h"
#include "passes/StepModel/SegmentGraph.h"
#include "passes/StepModel/TensorExchanges.h"
#include "passes/StepModel/TrainerKernels.h"
#include "runtime/plan/ModulePath.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace accel {
namespace {

/// transformers loads GPTQ by GPTQModel since 4.49 (PR 35012), which compiles
/// what makes the copy; by AutoGPTQ before, which runs it by operators.
bool kernelUnpacksGptq(mlir::ModuleOp module) {
  return atLeast(versionsOf(module).transformers, "4.49");
}

class StepModelBuilder {
public:
  StepModelBuilder(mlir::ModuleOp module, const StepModelOptions &options)
      : options(options), framework(frameworkOf(module)),
        kernels(kernelsOf(module)), module(module), symbols(module) {
    if (options.target) {
      modelTarget = targetOfModel(*options.target, kernels);
      layerTarget = targetOfLayers(modelTarget, kernels);
    }
  }

  FailureOr<StepModel> run() {
    auto job = sharding::findOnly<sharding::JobOp>(module);
    if (!job)
      return module.emitError("a step model needs a sharding.job");
    model.device = job.getDevice().str();
    compile = job.getCompileAttr();
    device = model.device == "cpu" ? aten::Device::Cpu : aten::Device::Cuda;
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    if (!graph)
      return module.emitError("a step model needs a sharding.graph");
    model.microBatch = job.getMicroBatch();
    model.sequenceLength = job.getSequenceLength();
    rounding =
        device == aten::Device::Cpu || !eager() ? plan::alignmentBytes : 512;
    ranksPerNode = std::max<int64_t>(job.getRanksPerNode().value_or(1), 1);
    addMesh();
    megatron.read(module, job, kernels, mesh.size("tp"));
    fp8.read(job.getFp8Attr(), framework.kind(), rounding,
             kernels.dtensor && mesh.size("tp") > 1);
    addParameters();
    for (BlockArgument arg : graph.getBody().getArguments())
      addValue(arg, -1);
    Value loss = graph.getBody().front().getTerminator()->getOperand(0);
    for (auto call : graph.getBody().getOps<sharding::CallOp>())
      if (failed(addCall(call, llvm::is_contained(call.getResults(), loss))))
        return failure();
    markGradients();
    return std::move(model);
  }

private:
  bool eager() const { return framework.eager(); }

  int64_t bytesOf(Type type) const {
    auto tensor = cast<RankedTensorType>(type);
    const int64_t bytes =
        tensor.getNumElements() *
        plan::itemSize(
            toDType(tensor.getElementType()).value_or(plan::DType::F32));
    return (bytes + rounding - 1) / rounding * rounding;
  }

  void addMesh() {
    auto op = sharding::findOnly<sharding::MeshOp>(module);
    if (!op)
      return;
    for (auto axis : op.getAxes().getAsRange<sharding::AxisAttr>())
      mesh.resize(axis.getName().str(), axis.getSize());
    model.ranksPerSample = mesh.ranksPerSample();
    model.ranksPerSequence = mesh.ranksPerSequence();
    model.stages = mesh.size(plan::pipelineAxis);
  }

  void addParameters() {
    for (auto op : module.getOps<sharding::ParamOp>()) {
      const int index = static_cast<int>(model.parameters.size());
      StepParameter parameter;
      parameter.fqn = op.getFqn().str();
      parameter.shape = ownType(op).getShape().vec();
      parameter.dtype = toDType(op.getTensorType().getElementType())
                            .value_or(plan::DType::F32);
      parameter.trainable = !op.getFrozen();
      parameter.expert = isOfSharedExperts(op);
      parameter.staysGathered = op->hasAttr(sharding::staysGatheredAttr);
      megatron.addParameter(op, parameter);
      if (auto held = packQuantized(op, framework.kind(), rounding, parameter))
        quantized[index] = *held;
      fp8.addParameter(op, index, parameter);
      parameterOf[op.getFqn()] = index;
      if (ArrayAttr aliases = op.getAliasesAttr())
        for (auto alias : aliases.getAsRange<StringAttr>())
          parameterOf[alias.getValue()] = index;
      model.parameters.push_back(std::move(parameter));
    }
    for (auto op : module.getOps<sharding::UnitOp>()) {
      if (joinFrozen(op))
        continue;
      StepUnit unit;
      unit.name = op.getName().str();
      for (auto fqn : op.getParams().getAsRange<StringAttr>())
        unit.parameters.push_back(parameterOf.lookup(fqn.getValue()));
      unit.root = llvm::any_of(op.getModules().getAsRange<StringAttr>(),
                               [](StringAttr m) { return m.empty(); });
      unit.reshardAfterForward = op.getReshardAttr().getAfterForward();
      unit.replicated = op.getShardAxes().empty() &&
                        !model.parameters[unit.parameters.front()].expert;
      auto precision = op.getPrecisionAttr();
      const bool straight =
          unit.replicated && precision.getReduce() == precision.getStorage();
      for (int parameter : unit.parameters)
        gradientType[parameter] =
            toDType(straight ? precision.getStorage() : precision.getReduce())
                .value_or(plan::DType::F32);
      model.units.push_back(std::move(unit));
    }
  }

  /// What autocast caches of the call's parameters, and what matmuls with
  /// quantised weights make and save beside what its function says.
  void addParameterTraits(sharding::CallOp call, SegmentGraph &graph) {
    for (const std::string &name : graph.function.paramNames)
      graph.frozenParameters.push_back(
          !model.parameters[parameterOf.lookup(call.bindParam(name))]
               .trainable);
    graph.reentrantCheckpoints = scriptOf(module).reentrant;
    for (size_t i = 0; i < graph.function.params.size() && !quantized.empty();
         ++i) {
      auto held = quantized.find(
          parameterOf.lookup(call.bindParam(graph.function.paramNames[i])));
      if (held != quantized.end())
        dequantize(graph, graph.function.params[i],
                   plan::describe(held->second.format).product,
                   held->second.weight,
                   {held->second.format == plan::WeightFormat::Gptq &&
                        !kernelUnpacksGptq(module),
                    held->second.findsOutliers});
    }
  }

  void convertLayers(sharding::CallOp call, SegmentGraph &graph,
                     bool compiled) {
    std::vector<int> indices;
    for (const std::string &name : graph.function.paramNames)
      indices.push_back(parameterOf.lookup(call.bindParam(name)));
    fp8.convert(indices, graph, compiled, target, model);
    useDtensorExchanges(graph, kernels, isRepeated(call.getPath()), target);
  }

  /// accel-run keeps the frozen part of a unit as one of its own; torch gathers
  /// both in one collective, and FSDP1 flattens them into one parameter.
  bool joinFrozen(sharding::UnitOp op) {
    StringRef name = op.getName();
    if (!framework.joinsFrozen() || !name.consume_back("/frozen"))
      return false;
    for (StepUnit &unit : model.units)
      if (unit.name == name) {
        for (auto fqn : op.getParams().getAsRange<StringAttr>())
          unit.parameters.push_back(parameterOf.lookup(fqn.getValue()));
        llvm::sort(unit.parameters);
        return true;
      }
    return false;
  }

  int addValue(Value value, int producer) {
    StepValue v;
    v.bytes = bytesOf(value.getType());
    v.producer = producer;
    v.buffer = producer < 0 && isBuffer(cast<BlockArgument>(value));
    const int index = static_cast<int>(model.values.size());
    model.values.push_back(v);
    values[value] = index;
    return index;
  }

  LogicalResult addCall(sharding::CallOp op, bool loss) {
    StepCall call;
    call.path = op.getPath().str();
    const int index = static_cast<int>(model.calls.size());
    for (Value operand : op.getOperands())
      call.inputs.push_back(values.lookup(operand));
    auto callee = symbols.lookup<func::FuncOp>(op.getCallee());
    // transformers' model makes these for each sample.
    auto samples = callee->getAttrOfType<IntegerAttr>(aten::perSampleAttr);
    for (Value result : op.getResults()) {
      call.outputs.push_back(addValue(result, index));
      if (samples && kernels.transformers)
        model.values.back().bytes *= samples.getInt();
    }
    for (unsigned i = 0; i < callee.getNumArguments(); ++i)
      if (auto name =
              callee.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr)) {
        std::string fqn = op.bindParam(name.getValue());
        auto it = parameterOf.find(fqn);
        if (it == parameterOf.end())
          return op.emitOpError()
                 << "reads '" << fqn << "', which is no parameter of the model";
        call.parameters.push_back(it->second);
        model.parameters[it->second].embedding |=
            isTable(callee.getArgument(i));
        if (loss)
          noteHead(it->second);
      }
    FailureOr<int> kind = kindOf(op, loss, call.parameters);
    if (failed(kind))
      return failure();
    call.kind = *kind;
    call.layer = isRepeated(call.path) && !call.parameters.empty();
    model.calls.push_back(std::move(call));
    return success();
  }

  /// The head's matrix has a row for each token of the vocabulary.
  void noteHead(int parameter) {
    const StepParameter &p = model.parameters[parameter];
    if (p.shape.size() == 2)
      model.vocab = std::max(model.vocab, p.shape[0]);
  }

  FailureOr<int> kindOf(sharding::CallOp op, bool loss,
                        ArrayRef<int> parameters) {
    auto function = symbols.lookup<func::FuncOp>(op.getCallee());
    const std::string key = op.getCallee().str() + fp8.key(parameters);
    if (auto known = kinds.find(key); known != kinds.end())
      return known->second;
    auto joint =
        symbols.lookup<func::FuncOp>((op.getCallee() + jointSuffix).str());
    SegmentKind kind;
    kind.name = op.getCallee().str();
    kind.loss = loss;
    target = !options.target            ? nullptr
             : isRepeated(op.getPath()) ? &layerTarget
                                        : &modelTarget;
    for (Value operand : op.getOperands())
      kind.inputBytes += bytesOf(operand.getType());
    for (Value result : op.getResults())
      kind.outputBytes += bytesOf(result.getType());
    LogicalResult measured = !joint ? measureForward(op, function, kind)
                                    : measureJoint(op, joint, kind);
    if (failed(measured))
      return failure();
    megatron.count(model, parameters, kind);
    const int index = static_cast<int>(model.kinds.size());
    model.kinds.push_back(std::move(kind));
    return kinds[key] = index;
  }

  SegmentGraph emptyGraph() const {
    SegmentGraph graph;
    graph.rounding = rounding;
    graph.inside = eager() && device == aten::Device::Cuda;
    graph.namesArguments = framework.namesHiddenStates() && !kernels.compiled;
    if (options.target)
      graph.device = {options.target->capability,
                      options.target->multiprocessors};
    graph.mesh = mesh;
    graph.ranksPerNode = ranksPerNode;
    graph.fuses = compile || kernels.compiled;
    return graph;
  }

  /// A segment of which nothing is trained.
  LogicalResult measureForward(sharding::CallOp op, func::FuncOp function,
                               SegmentKind &kind) {
    auto exported = exportFunction(function, {}, device, Reuse::Sums);
    if (failed(exported))
      return failure();
    addModelFlops(function, *exported, kind);
    SegmentGraph graph = emptyGraph();
    graph.inputs = static_cast<int>(exported->inputs.size());
    graph.outputs = static_cast<int>(exported->outputs.size());
    graph.inputHasGradient.assign(graph.inputs, false);
    graph.function = std::move(*exported);
    markInstructions(function, {}, graph);
    addParameterTraits(op, graph);
    addFlops(graph, kind);
    convertLayers(op, graph, /*compiled=*/false);
    SegmentVariant variant = measureVariant(graph, EagerMode::None, target);
    runEagerly(variant);
    kind.variants.push_back(std::move(variant));
    return success();
  }

  /// How accel-run leaves the parameters' gradients: in the dtype of the wire,
  /// or straight in the shard's.
  SmallVector<GradientMode> gradientModes(sharding::CallOp op,
                                          func::FuncOp joint) {
    SmallVector<GradientMode> modes;
    for (unsigned i = 0; i < joint.getNumResults(); ++i) {
      if (resultBinding(joint, i).getKind() != aten::BindingKind::ParamGrad)
        continue;
      auto name =
          joint.getResultAttrOfType<StringAttr>(i, sharding::paramArgAttr);
      int parameter = parameterOf.lookup(op.bindParam(name.getValue()));
      modes.push_back({false, gradientType.lookup(parameter)});
    }
    return modes;
  }

  LogicalResult measureJoint(sharding::CallOp op, func::FuncOp joint,
                             SegmentKind &kind) {
    for (unsigned i = 0; i < joint.getNumResults(); ++i) {
      auto binding = resultBinding(joint, i);
      Type type = joint.getResultTypes()[i];
      if (binding.getKind() == aten::BindingKind::InputGrad)
        kind.inputGradientBytes += bytesOf(type);
      if (binding.getKind() == aten::BindingKind::ParamGrad)
        kind.parameterGradientBytes += bytesOf(type);
    }
    if (Value logits = kind.loss ? logitsOf(joint) : Value()) {
      kind.logitsBytes = bytesOf(logits.getType());
      kind.returnsWideLogits =
          eager() && returnsWide(logits, versionsOf(module).transformers);
    }
    noteInputGradients(op, joint, kind);
    noteParameterGradients(symbols.lookup<func::FuncOp>(op.getCallee()), joint,
                           kind);
    ArrayRef<SavedSetPlan> solved;
    if (options.solved && options.target && !op.getPath().empty()) {
      auto extracted = extractJoint(joint, device);
      if (failed(extracted))
        return failure();
      solved = options.solved->of(joint.getName().str(), extracted->graph,
                                  *options.target);
    }
    FailureOr<SegmentGraph> graph = graphOf(op, joint, kind, nullptr);
    if (failed(graph))
      return failure();
    addModelFlops(symbols.lookup<func::FuncOp>(op.getCallee()), graph->function,
                  kind);
    addFlops(*graph, kind);
    if (failed(megatron.convert(op, *graph, target)))
      return failure();
    convertLayers(op, *graph, kernels.compiled);
    if (!eager())
      return addAccelRunVariants(joint, device, options.target,
                                 gradientModes(op, joint), solved, kind,
                                 options.variants);
    if (kind.loss && target)
      measureLogits(*graph, *target, kind);
    for (EagerMode mode :
         {EagerMode::None, EagerMode::Pointwise, EagerMode::Full})
      kind.variants.push_back(measureVariant(*graph, mode, target));
    if (failed(compileVariants(op, joint, kind)))
      return failure();
    if (kernels.lossOutside && kind.loss)
      kind.lossFragmentBytes = lossFragments(*graph);
    if (kernels.selective == frameworks::Selective::AllButAttention ||
        kernels.selective == frameworks::Selective::CoreAttention) {
      kind.variants[1] = measureVariant(*graph, EagerMode::Children, target);
      kind.variants[1].name = "pointwise";
    }
    if (framework.checkpointsChildren(versionsOf(module)) &&
        markChildren(joint, op.getPath(), *graph))
      kind.variants.back() =
          measureVariant(*graph, EagerMode::Children, target);
    for (const SavedSetPlan &way : solved)
      if (failed(addSolvedEagerly(op, joint, way, kind)))
        return failure();
    return success();
  }

  bool isCompiled(StringRef path) const {
    return compile &&
           (compile.getRegions() == sharding::CompileRegions::Model ||
            isRepeated(path));
  }

  /// What torch.compile makes of the variants that it compiles; the others run
  /// operator by operator beside it.
  LogicalResult compileVariants(sharding::CallOp op, func::FuncOp joint,
                                SegmentKind &kind) {
    if (!isCompiled(op.getPath())) {
      for (SegmentVariant &variant : kind.variants)
        runEagerly(variant);
      return success();
    }
    FailureOr<SegmentGraph> graph =
        graphOf(op, joint, kind, nullptr, /*autograd=*/false);
    if (failed(graph))
      return failure();
    convertLayers(op, *graph, /*compiled=*/true);
    kind.variants.front() = measureCompiled(*graph, EagerMode::None, target);
    // What ZeRO-3's hooks end inside of a checkpoint is counted by operators.
    if (compile.getEnds() == sharding::CompileEnds::Modules)
      runEagerly(kind.variants.back());
    else
      kind.variants.back() = measureCompiled(*graph, EagerMode::Full, target);
    return success();
  }

  /// Of a job that compiles other segments: seconds with the launches.
  void runEagerly(SegmentVariant &v) const {
    if (!compile || !target)
      return;
    const double launch = target->dispatchSeconds;
    v.compiledForwardSeconds =
        std::max(v.forwardSeconds, launch * v.forwardOps);
    v.compiledBackwardSeconds =
        std::max(v.backwardSeconds, launch * v.backwardOps);
  }

  /// What selective checkpointing holds and takes that keeps what was solved.
  LogicalResult addSolvedEagerly(sharding::CallOp op, func::FuncOp joint,
                                 const SavedSetPlan &way, SegmentKind &kind) {
    FailureOr<SegmentGraph> graph = graphOf(op, joint, kind, &way);
    if (failed(graph) || failed(megatron.convert(op, *graph, target)))
      return failure();
    convertLayers(op, *graph, /*compiled=*/false);
    SegmentVariant variant =
        measureVariant(*graph, EagerMode::Pointwise, target);
    variant.name = way.name;
    variant.solved = true;
    for (size_t op = 0; op < way.saved.size(); ++op)
      if (way.saved[op])
        variant.keeps.push_back(static_cast<int64_t>(op));
    kind.variants.push_back(std::move(variant));
    return success();
  }

  /// The first matrix that is as wide as a parameter has rows, in the dtype of
  /// the matmul.
  /// The joint as an operator list whose parameter gradients are results like
  /// any other: autograd makes tensors of them. What selective checkpointing
  /// keeps is that of `way`, or of the mode "pointwise". `autograd`: with the
  /// temporaries of autograd's own formulas.
  FailureOr<SegmentGraph> graphOf(sharding::CallOp op, func::FuncOp joint,
                                  const SegmentKind &kind,
                                  const SavedSetPlan *way,
                                  bool autograd = true) {
    SegmentGraph graph = emptyGraph();
    graph.loss = kind.loss;
    noteFrames(eager(), versionsOf(module).transformers, graph);
    graph.namesHiddenStates =
        framework.namesHiddenStates() && !kernels.compiled;
    for (unsigned i = 0; i < joint.getNumArguments(); ++i)
      graph.inputs +=
          argBinding(joint, i).getKind() == aten::BindingKind::Input;
    graph.inputHasGradient.assign(graph.inputs, false);
    for (int i : kind.inputGradients)
      graph.inputHasGradient[i] = !llvm::is_contained(kind.sharedInputs, i);
    SmallVector<unsigned> parameterGradients;
    for (unsigned i = 0; i < joint.getNumResults(); ++i) {
      auto binding = resultBinding(joint, i);
      switch (binding.getKind()) {
      case aten::BindingKind::Output:
        ++graph.outputs;
        break;
      case aten::BindingKind::InputGrad:
        ++graph.inputGradients;
        break;
      default:
        ++graph.parameterGradients;
        parameterGradients.push_back(i);
      }
    }
    auto rebind = [&](aten::BindingKind kind) {
      for (unsigned i : parameterGradients) {
        auto old = resultBinding(joint, i);
        joint.setResultAttr(
            i, aten::bindingAttr,
            aten::BindingAttr::get(joint.getContext(), kind, old.getIndex()));
      }
    };
    rebind(aten::BindingKind::InputGrad);
    auto exported = exportFunction(joint, {}, device, Reuse::Sums);
    rebind(aten::BindingKind::ParamGrad);
    if (failed(exported))
      return failure();
    graph.function = std::move(*exported);
    if (!way && failed(decideSaved(joint, CheckpointMode::Pointwise, "")))
      return failure();
    markInstructions(joint, forwardOps(joint), graph);
    if (way)
      graph.pointwiseKeeps = way->saved;
    addParameterTraits(op, graph);
    if (autograd)
      toAutogradForm(graph);
    if (kernels.derivativesInPlace)
      writeDerivativesInPlace(graph);
    if (kernels.gathersAgain)
      gatherAgain(graph, "tp");
    if (!way && kernels.selective != frameworks::Selective::None)
      markSelective(graph, kernels.selective);
    if (kernels.lossOutside && kind.loss)
      holdLogits(graph);
    return graph;
  }

  /// `exported` is the callee, or its joint function.
  void addModelFlops(func::FuncOp callee, const plan::Function &exported,
                     SegmentKind &kind) {
    FunctionFlops flops =
        functionFlops(exported, static_cast<double>(model.tokens()),
                      {mesh.size("cp"), model.sequenceLength});
    kind.attentionFlops = flops.attention;
    for (unsigned i = 0; i < callee.getNumArguments(); ++i)
      if (auto name =
              callee.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr)) {
        const auto at = llvm::find(exported.paramNames, name.getValue());
        kind.multiplied.push_back(
            at == exported.paramNames.end()
                ? 0
                : flops.multiplied[at - exported.paramNames.begin()]);
      }
  }

  void addFlops(const SegmentGraph &graph, SegmentKind &kind) {
    for (size_t i = 0; i < graph.forward.size(); ++i)
      if (graph.forward[i])
        kind.forwardFlops += graph.function.instructions[i].flops;
  }

  /// Which values between calls get a gradient.
  void markGradients() {
    for (const StepCall &call : model.calls)
      for (int i : model.kinds[call.kind].inputGradients) {
        StepValue &value = model.values[call.inputs[i]];
        value.gradient = true;
        value.gradientBytes = value.bytes;
      }
  }

  const StepModelOptions &options;
  const frameworks::Framework &framework;
  const frameworks::Kernels kernels;
  mlir::ModuleOp module;
  const SymbolTable symbols;       // of what the calls name
  Target modelTarget, layerTarget; // with the rates of the job's kernels
  const Target *target = nullptr;  // of the kind that is measured
  sharding::CompileAttr compile;   // null: torch.compile is not used
  StepModel model;
  aten::Device device = aten::Device::Cpu;
  int64_t rounding = plan::alignmentBytes, ranksPerNode = 1;
  plan::Mesh mesh;
  llvm::StringMap<int> parameterOf, kinds;
  DenseMap<int, QuantizedParam> quantized; // by parameter
  Fp8Segments fp8;
  MegatronSegments megatron;
  DenseMap<Value, int> values;
  DenseMap<int, plan::DType> gradientType; // by parameter
};

} // namespace

FailureOr<StepModel> buildStepModel(mlir::ModuleOp module,
                                    const StepModelOptions &options) {
  return StepModelBuilder(module, options).run();
}

} // namespace accel
