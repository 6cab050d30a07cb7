// RUN: accel-opt opt %S/Inputs/two-layers.mlir --to-sharded --partition --lower-to-schedule=overlap=false > %t.mlir
// RUN: accel-opt opt %t.mlir --hoist-gathers --sink-awaits | FileCheck %s

// A reduction runs beside the next backward and is awaited before the next one
// starts, so that one receive buffer at a time exists.
// CHECK:      schedule.program @train
// CHECK:      %[[H:.*]] = schedule.reduce_scatter_start ""
// CHECK-NEXT: schedule.alloc gradient of "b"
// CHECK-NEXT: schedule.call @Linear{{.*}}.backward
// CHECK-NEXT: schedule.free
// CHECK-NEXT: %[[G:.*]]:3 = schedule.await %[[H]]
// CHECK-NEXT: schedule.free %[[G]]#2
// CHECK-NEXT: schedule.free %[[G]]#0
// CHECK-NEXT: schedule.optimizer_step "" from %[[G]]#1
// CHECK-NEXT: schedule.free %[[G]]#1
// CHECK-NEXT: schedule.alloc receive of "b"
// CHECK-NEXT: schedule.alloc shard_gradient of "b"
// CHECK-NEXT: %[[B:.*]] = schedule.reduce_scatter_start "b"
// CHECK-NEXT: schedule.alloc gradient of "a"
// CHECK-NEXT: schedule.call @Linear{{.*}}.backward
// CHECK-NEXT: schedule.await %[[B]]
// The last has nothing to run beside.
// CHECK:      %[[A:.*]] = schedule.reduce_scatter_start "a"
// CHECK-NEXT: schedule.await %[[A]]
