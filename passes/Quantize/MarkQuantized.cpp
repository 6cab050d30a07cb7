//===- MarkQuantized.cpp - Which weights are quantised --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Quantize/MarkQuantized.h"

#include "frontends/ModuleTree/LinearClasses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace accel {
namespace {

/// The name without what PEFT adds to it.
std::string plainName(StringRef fqn) {
  fqn.consume_front("base_model.model.");
  std::string name = fqn.str();
  for (StringRef part : {".base_layer", ".original_module"})
    if (size_t at = name.find(part); at != std::string::npos)
      name.erase(at, part.size());
  return name;
}

/// transformers/quantizers/quantizers_utils.py: should_convert_module.
bool isSkipped(StringRef module, ArrayRef<std::string> skipped) {
  return llvm::any_of(skipped, [&](StringRef name) {
    name.consume_back(".weight");
    return module == name || module.starts_with((name + ".").str()) ||
           module.ends_with(("." + name).str()) ||
           module.contains(("." + name + ".").str());
  });
}

bool isExpert(StringRef fqn) { return fqn.contains(".experts."); }

class Marker {
public:
  Marker(mlir::ModuleOp module, const QuantizationConfig &config,
         StringRef outputEmbedding, LinearLayers layers)
      : module(module), config(config), b(module.getContext()),
        skipped(config.skipped.value_or(
            std::vector<std::string>{outputEmbedding.str()})),
        layers(layers) {}

  int64_t run() {
    for (auto op : module.getOps<sharding::ModuleOp>())
      classes[op.getFqn()] = op.getClassName();
    int64_t count = 0;
    Type wide = b.getF32Type();
    for (auto param : module.getOps<sharding::ParamOp>()) {
      if (isQuantized(param)) {
        mark(param);
        marked.insert(param.getFqn());
        ++count;
      }
      // prepare_model_for_kbit_training: what is not quantised is fp32, and
      // matmuls take and return what they are given.
      if (config.preparedForTraining)
        param.setType(param.getTensorType().clone(wide));
    }
    markArguments();
    return count;
  }

private:
  /// Functions say it of their arguments.
  void markArguments() {
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    if (!graph || marked.empty())
      return;
    SymbolTable symbols(module);
    for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      for (unsigned i = 0; callee && i < callee.getNumArguments(); ++i)
        if (auto name =
                callee.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr);
            name && marked.contains(call.bindParam(name.getValue())))
          callee.setArgAttr(
              i, quantizedAttr,
              b.getStringAttr(plan::describe(config.values.format).name));
    }
  }

  bool isQuantized(sharding::ParamOp param) {
    auto [owner, leaf] = param.getFqn().rsplit('.');
    if (!param.getFrozen() || param.getKeepsDtype() ||
        isSkipped(StringRef(plainName(param.getFqn())).rsplit('.').first,
                  skipped))
      return false;
    const int64_t rank = param.getTensorType().getRank();
    if (rank == 3)
      return layers.experts && isExpert(param.getFqn());
    const StringRef className = classes.lookup(owner);
    return rank == 2 && leaf == "weight" &&
           (className == "Linear" || className == "Conv1D" ||
            (isLinearClass(className) && takesSubclasses()));
  }

  /// GPTQ's and AWQ's ask for isinstance in every release.
  bool takesSubclasses() const {
    return layers.derived || config.values.format == plan::WeightFormat::Gptq ||
           config.values.format == plan::WeightFormat::Awq;
  }

  void mark(sharding::ParamOp param) {
    ArrayRef<int64_t> shape = param.getTensorType().getShape();
    const int64_t experts = shape.size() == 3 ? shape[0] : 1;
    const plan::QuantizedWeight weight = plan::quantizedWeight(
        config.values, shape[shape.size() - 2], shape.back(), experts);
    const plan::WeightFormatDescription &format =
        plan::describe(config.values.format);
    param->setAttr(
        quantizedAttr,
        b.getDictionaryAttr(
            {b.getNamedAttr("copy", b.getI64IntegerAttr(weight.copyBytes)),
             b.getNamedAttr("expanded",
                            b.getI64IntegerAttr(weight.expandedScaleBytes)),
             b.getNamedAttr("format", b.getStringAttr(format.name)),
             b.getNamedAttr("outliers",
                            b.getBoolAttr(config.values.findsOutliers())),
             b.getNamedAttr("packed", b.getI64IntegerAttr(weight.packedBytes)),
             b.getNamedAttr("scales", b.getDenseI64ArrayAttr(weight.scales)),
             b.getNamedAttr("storage", b.getStringAttr(plan::toString(
                                           config.values.storageDtype())))}));
  }

  mlir::ModuleOp module;
  const QuantizationConfig &config;
  Builder b;
  std::vector<std::string> skipped;
  LinearLayers layers;
  llvm::StringMap<StringRef> classes;
  llvm::StringSet<> marked;
};

} // namespace

std::optional<QuantizedParam> quantizedParam(sharding::ParamOp param) {
  auto attr = param->getAttrOfType<DictionaryAttr>(quantizedAttr);
  if (!attr)
    return std::nullopt;
  auto number = [&](StringRef name) {
    auto value = attr.getAs<IntegerAttr>(name);
    return value ? value.getInt() : 0;
  };
  auto text = [&](StringRef name) {
    auto value = attr.getAs<StringAttr>(name);
    return value ? value.getValue().str() : std::string();
  };
  const auto *format = plan::findWeightFormat(text("format"));
  if (!format)
    return std::nullopt;
  QuantizedParam result;
  result.format = format->format;
  result.storage = plan::parseDType(text("storage")).value_or(format->storage);
  if (auto outliers = attr.getAs<BoolAttr>("outliers"))
    result.findsOutliers = outliers.getValue();
  result.weight.packedBytes = number("packed");
  result.weight.copyBytes = number("copy");
  result.weight.expandedScaleBytes = number("expanded");
  if (auto scales = attr.getAs<DenseI64ArrayAttr>("scales"))
    result.weight.scales.assign(scales.asArrayRef().begin(),
                                scales.asArrayRef().end());
  return result;
}

int64_t markQuantized(mlir::ModuleOp module, const QuantizationConfig &config,
                      StringRef outputEmbedding, LinearLayers layers) {
  return Marker(module, config, outputEmbedding, layers).run();
}

} // namespace accel
