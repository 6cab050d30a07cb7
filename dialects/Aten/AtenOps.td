//===- AtenOps.td - All operations of the aten dialect -----*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_OPS_TD
#define ACCEL_DIALECTS_ATEN_OPS_TD

include "dialects/Aten/AtenViews.td"
include "dialects/Aten/AtenPointwise.td"
include "dialects/Aten/AtenActivations.td"
include "dialects/Aten/AtenLinear.td"
include "dialects/Aten/AtenKernels.td"
include "dialects/Aten/AtenNorms.td"
include "dialects/Aten/AtenRouting.td"
include "dialects/Aten/AtenRandom.td"
include "dialects/Aten/AtenAttention.td"
include "dialects/Aten/AtenCompare.td"
include "dialects/Aten/AtenMath.td"
include "dialects/Aten/AtenProducts.td"
include "dialects/Aten/AtenReduce.td"
include "dialects/Aten/AtenIndex.td"
include "dialects/Aten/AtenConv.td"
include "dialects/Aten/AtenImage.td"
include "dialects/Aten/AtenLosses.td"

#endif // ACCEL_DIALECTS_ATEN_OPS_TD
