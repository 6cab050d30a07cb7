// Behind all backwards units are updated as the next forward reads them, so
// that its first gather begins beside the other updates. Updates on the host
// go as gradients come.
// RUN: sed -e 's/name = "adamw"/max_grad_norm = 1.0 : f64, name = "adamw"/; s/^sharding.graph/sharding.request "update" {at_end = true} because <"test">\nsharding.graph/' %S/Inputs/two-layers.mlir > %t.clipped.mlir
// RUN: accel-opt opt %t.clipped.mlir --to-sharded --partition --lower-to-schedule | FileCheck %s --check-prefix=CLIPPED
// CLIPPED:      schedule.grad_norm
// CLIPPED:      schedule.optimizer_step "a"
// CLIPPED:      schedule.optimizer_step "b"
// CLIPPED:      schedule.optimizer_step ""
// CLIPPED:      schedule.program @eval
