//===- LayerClasses.h - Classes that a wrap policy may name -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_ADVICE_LAYERCLASSES_H
#define ACCEL_TOOLS_DRIVER_ADVICE_LAYERCLASSES_H

#include "frontends/HuggingFace/ModelInfo.h"
#include "passes/Tune/ConfigEdits.h"

namespace accel {

/// Of the model's repeated layers, and of the block with most parameters in
/// each: what `fsdp_transformer_layer_cls_to_wrap` names.
tune::LayerClasses
layerClasses(const StepModel &model,
             const std::vector<huggingface::ModuleInfo> &modules);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_ADVICE_LAYERCLASSES_H
