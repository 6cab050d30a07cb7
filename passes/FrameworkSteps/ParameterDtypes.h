//===- ParameterDtypes.h - The dtypes of each parameter ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A dtypes names one dtype for each purpose; parameters differ where a model is
// not uniform: an fp32 adapter on a bf16 base, a quantised base. Everything
// that sizes a tensor of a parameter asks here.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_PARAMETERDTYPES_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_PARAMETERDTYPES_H

#include "passes/FrameworkSteps/StepEvaluator.h"

namespace accel {

class ParameterDtypes {
public:
  explicit ParameterDtypes(const Candidate &candidate)
      : dtypes(candidate.dtypes),
        castsParameters(candidate.executor == FrameworkKind::Fsdp1 ||
                        candidate.executor == FrameworkKind::Fsdp2) {}

  /// As it is kept between steps.
  plan::DType storage(const StepParameter &p) const {
    if (p.quantized() || dtypes.storesAsLoaded)
      return p.dtype;
    return p.trainable || dtypes.upcastFrozen ? dtypes.storage : p.dtype;
  }
  /// As it is gathered. A packed tensor is gathered as it is.
  plan::DType compute(const StepParameter &p) const {
    return p.gathersFp8 ? plan::DType::U8 : used(p);
  }
  /// In which autograd leaves the gradient: that of the tensor that is computed
  /// with, which under autocast is the parameter itself. FSDP1's view of the
  /// flat parameter and FSDP2's gathered parameter have the policy's dtype
  /// under autocast as well.
  plan::DType freshGradient(const StepParameter &p) const {
    return dtypes.autocast && !castsParameters ? storage(p) : used(p);
  }
  /// On the wire.
  plan::DType reduce(const StepParameter &p) const {
    return dtypes.computesAsStored && dtypes.reduce == dtypes.storage
               ? storage(p)
               : dtypes.reduce;
  }
  /// That the update reads.
  plan::DType gradient(const StepParameter &p) const {
    return own(p, dtypes.gradient);
  }
  /// Of states that the optimizer keeps in the parameter's dtype.
  plan::DType state(const StepParameter &p) const {
    return own(p, dtypes.state);
  }

private:
  /// That autograd sees: a weight in fp8 says that it is of the policy's dtype.
  plan::DType used(const StepParameter &p) const {
    return p.quantized() || dtypes.computesAsStored || dtypes.gathersAsStored
               ? storage(p)
               : dtypes.compute;
  }
  /// The parameter's, where the dtypes's is that of what is stored.
  plan::DType own(const StepParameter &p, plan::DType of) const {
    return dtypes.storesAsLoaded && of == dtypes.storage ? storage(p) : of;
  }

  const StepDtypes &dtypes;
  bool castsParameters;
};

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_PARAMETERDTYPES_H
