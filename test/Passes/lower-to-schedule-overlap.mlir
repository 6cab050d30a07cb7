// What lower-to-schedule writes is what hoist-gathers and sink-awaits make of
// programs in which every collective is awaited where it starts, and they
// change nothing in it: they are for programs from elsewhere.
// RUN: accel-opt opt %S/Inputs/two-layers.mlir --to-sharded --partition > %t.mlir
// RUN: accel-opt opt %t.mlir --lower-to-schedule > %t.issued.mlir
// RUN: accel-opt opt %t.mlir --lower-to-schedule=overlap=false --hoist-gathers --sink-awaits | diff %t.issued.mlir -
// RUN: accel-opt opt %t.mlir --lower-to-schedule --hoist-gathers --sink-awaits | diff %t.issued.mlir -
// RUN: accel-opt opt %t.issued.mlir --hoist-gathers --sink-awaits --insert-frees --verify-schedule | FileCheck %s

// The same on a hybrid mesh with accumulation, where reductions go on across
// replicas, and with two units ahead.
// RUN: sed -e 's/"dp_replicate" = 1/"dp_replicate" = 2/; s/^sharding.graph/sharding.request "accumulation" {steps = 3 : i64} because <"test">\nsharding.request "prefetch" {forward = 2 : i64, backward = 2 : i64} because <"test">\nsharding.graph/' %S/Inputs/two-layers.mlir > %t.hybrid.mlir
// RUN: accel-opt opt %t.hybrid.mlir --to-sharded --partition > %t.mlir
// RUN: accel-opt opt %t.mlir --lower-to-schedule > %t.issued.mlir
// RUN: accel-opt opt %t.mlir --lower-to-schedule=overlap=false --hoist-gathers --sink-awaits | diff %t.issued.mlir -
// RUN: accel-opt opt %t.mlir --lower-to-schedule --hoist-gathers --sink-awaits | diff %t.issued.mlir -
// RUN: FileCheck %s --check-prefix=HYBRID < %t.issued.mlir

// CHECK:      schedule.program @train
// CHECK:      schedule.all_gather_start "a"
// CHECK-NEXT: schedule.await
// CHECK-NEXT: schedule.alloc gathered of "b"
// CHECK-NEXT: schedule.all_gather_start "b"
// CHECK-NEXT: schedule.call @Linear.forward
// CHECK:      %[[H:.*]] = schedule.reduce_scatter_start ""
// CHECK-NEXT: schedule.alloc gradient of "b"
// CHECK-NEXT: schedule.call @Linear{{.*}}.backward
// CHECK-NEXT: schedule.free
// CHECK-NEXT: schedule.await %[[H]]

// Both others are under way while the first computes.
// HYBRID:      schedule.program @last
// HYBRID:      schedule.all_gather_start "a"
// HYBRID-NEXT: schedule.await
// HYBRID-NEXT: schedule.alloc gathered of "b"
// HYBRID-NEXT: schedule.all_gather_start "b"
// HYBRID-NEXT: schedule.alloc gathered of ""
// HYBRID-NEXT: schedule.all_gather_start ""
// HYBRID-NEXT: schedule.call @Linear.forward
// HYBRID:      %[[R:.*]] = schedule.reduce_scatter_start "" {{.*}} accumulate
// HYBRID:      schedule.call @Linear
// HYBRID:      schedule.await %[[R]]
// HYBRID:      %[[A:.*]] = schedule.all_reduce_start ""
// HYBRID:      schedule.reduce_scatter_start "b"
// HYBRID:      schedule.call @Linear
// HYBRID:      schedule.await %[[A]]
