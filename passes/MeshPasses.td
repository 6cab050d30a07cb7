//===- MeshPasses.td - Shardings of values -----------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which part of which value each rank has.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_PASSES_TD
#define ACCEL_PASSES_MESH_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintShardingRulesPass
    : Pass<"print-sharding-rules", "::mlir::ModuleOp"> {
  let summary = "print the sharding rule of each aten operation as JSON";
  let description = [{
    To stdout, a list with an entry for each operation of each function, in
    order: {name, factors, operands, results, sizes}, without `factors` where the
    operator has no rule.
  }];
}

#endif // ACCEL_PASSES_MESH_PASSES_TD
