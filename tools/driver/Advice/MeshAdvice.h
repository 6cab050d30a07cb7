//===- MeshAdvice.h - Meshes that are worth planning ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The search over meshes (passes/Tune/MeshSearch.h) of a configuration: each
// mesh is the configuration with its lines changed, read anew, and within it
// all that --tune searches.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_ADVICE_MESHADVICE_H
#define ACCEL_TOOLS_DRIVER_ADVICE_MESHADVICE_H

#include "passes/Tune/CachedEvaluator.h"
#include "tools/driver/Advice/Advice.h"

namespace accel {

/// The configuration's own mesh where a framework's whole mesh is searched,
/// with what goes with it. `all`: written sizes may change.
std::optional<tune::MeshOption> wholeMesh(const AdviceInputs &in,
                                          const Candidate &base, bool all);

/// What builds the models of other meshes and kernels. `space` and `editor`
/// must outlive it.
tune::EditedSource editedSource(const AdviceInputs &in,
                                const tune::Space &space,
                                const tune::ConfigEditor &editor);

/// Gives `space`, of one whole mesh, the meshes that are worth choosing from,
/// and opens the choice. `all`: written sizes may change.
MeshAnswer addMeshes(const AdviceInputs &in, const Target &target,
                     const StepModel &model, const tune::GivenOptions &given,
                     int64_t budgetBytes, bool all, tune::Space &space);

/// Points that no other is better than in both bytes and seconds.
std::vector<tune::Point>
frontOf(const std::map<tune::Point, tune::Evaluation> &evaluated);

/// Plans settings that are asked for next, in threads.
using PlanAhead = std::function<void(const std::vector<tune::Point> &)>;
/// What a plan says of a mesh of the space: whether it fits.
using PlanSetting = std::function<bool(const tune::Point &, StepPrediction &)>;

/// Fills in the chosen mesh and what speaks against the others.
void compareMeshes(const tune::Space &space, const tune::Point &chosen,
                   const PlanAhead &planAhead, const PlanSetting &plan,
                   MeshAnswer &answer);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_ADVICE_MESHADVICE_H
