//===- ParameterDtypes.h - The dtypes of each parameter ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A recipe names one dtype for each purpose; parameters differ where a model is
// not uniform: an fp32 adapter on a bf16 base, a quantised base. Everything
// that sizes a tensor of a parameter asks here.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXECUTORS_PARAMETERDTYPES_H
#define ACCEL_PASSES_EXECUTORS_PARAMETERDTYPES_H

#include "passes/Executors/Executor.h"

namespace accel {

class ParameterDtypes {
public:
  explicit ParameterDtypes(const Candidate &candidate)
      : recipe(candidate.recipe),
        viewsFlat(candidate.executor == ExecutorKind::Fsdp1) {}

  /// As it is kept between steps.
  plan::DType storage(const StepParameter &p) const {
    if (p.quantized() || recipe.storesAsLoaded)
      return p.dtype;
    return p.trainable || recipe.upcastFrozen ? recipe.storage : p.dtype;
  }
  /// As it is gathered. A packed tensor is gathered as it is.
  plan::DType compute(const StepParameter &p) const {
    return p.quantized() || recipe.computesAsStored ? storage(p)
                                                    : recipe.compute;
  }
  /// In which autograd leaves the gradient: that of the tensor that is computed
  /// with, which under autocast is the parameter itself. FSDP1's is a view of
  /// the flat parameter, which is cast under autocast as well.
  plan::DType freshGradient(const StepParameter &p) const {
    return recipe.autocast && !viewsFlat ? storage(p) : compute(p);
  }
  /// On the wire.
  plan::DType reduce(const StepParameter &p) const {
    return recipe.computesAsStored && recipe.reduce == recipe.storage
               ? storage(p)
               : recipe.reduce;
  }
  /// That the update reads.
  plan::DType gradient(const StepParameter &p) const {
    return own(p, recipe.gradient);
  }
  /// Of states that the optimizer keeps in the parameter's dtype.
  plan::DType state(const StepParameter &p) const {
    return own(p, recipe.state);
  }

private:
  /// The parameter's, where the recipe's is that of what is stored.
  plan::DType own(const StepParameter &p, plan::DType of) const {
    return recipe.storesAsLoaded && of == recipe.storage ? storage(p) : of;
  }

  const DtypeRecipe &recipe;
  bool viewsFlat;
};

} // namespace accel

#endif // ACCEL_PASSES_EXECUTORS_PARAMETERDTYPES_H
