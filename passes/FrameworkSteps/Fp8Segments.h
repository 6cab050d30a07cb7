//===- Fp8Segments.h - The segments of a job in fp8 -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_FP8SEGMENTS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_FP8SEGMENTS_H

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/Framework.h"
#include "passes/StepModel/Float8.h"

#include <map>
#include <set>

namespace accel {

/// What the decision `fp8` of a job makes of its step model. Nothing changes
/// without one.
class Fp8Segments {
public:
  /// `splitsByDtensor`: layers are split over ranks of tp.
  void read(sharding::Fp8Attr attr, FrameworkKind framework, int64_t rounding,
            bool splitsByDtensor);

  /// A parameter of the model, in the order in which it has them.
  void addParameter(sharding::ParamOp op, int index, StepParameter &parameter);

  /// What tells apart the calls of one function: which of the parameters that
  /// they bind are converted (the first layer of a model is not).
  std::string key(llvm::ArrayRef<int> indices) const;

  /// Converts the layers of a function whose parameters are `indices`, and
  /// notes in `model` what they take with a target.
  void convert(const std::vector<int> &indices, SegmentGraph &graph,
               bool compiled, const Target *target, StepModel &model);

private:
  void note(const plan::Function &wide, const plan::Function &narrow,
            const Float8Layer &layer, bool compiled, const Target &target,
            StepModel &model);

  Float8Form form;
  int64_t buffers = 0; // of each layer
  std::set<int> converted;
  std::map<std::string, size_t> noted; // StepModel::fp8
};

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_FP8SEGMENTS_H
