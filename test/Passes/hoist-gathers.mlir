// RUN: accel-opt opt %S/Inputs/two-layers.mlir --to-sharded --partition --lower-to-schedule=overlap=false > %t.mlir
// RUN: accel-opt opt %t.mlir --hoist-gathers | FileCheck %s
// RUN: sed -e 's/forward = 1, backward = 1/forward = 0, backward = 0/' %t.mlir > %t.none.mlir
// RUN: accel-opt opt %t.none.mlir --hoist-gathers | FileCheck %s --check-prefix=NONE

// Without prefetch each unit is gathered where it is used.
// NONE:      schedule.call @Linear.forward
// NONE-NEXT: schedule.free
// NONE-NEXT: schedule.alloc gathered of "b"
// NONE-NEXT: schedule.all_gather_start "b"
// NONE-NEXT: schedule.await
// NONE-NEXT: schedule.call @Linear{{.*}}.forward
// NONE:      schedule.call @Head.backward
// NONE:      schedule.all_gather_start "b"

// The next unit is gathered while this one computes.
// CHECK:      schedule.program @train
// CHECK:      schedule.all_gather_start "a"
// CHECK-NEXT: schedule.await
// CHECK-NEXT: schedule.alloc gathered of "b"
// CHECK-NEXT: %[[B:.*]] = schedule.all_gather_start "b"
// CHECK-NEXT: schedule.call @Linear.forward
// CHECK-NEXT: schedule.free
// CHECK-NEXT: %[[W:.*]] = schedule.await %[[B]]
// CHECK-NEXT: schedule.alloc gathered of ""
// CHECK-NEXT: %[[H:.*]] = schedule.all_gather_start ""
// CHECK-NEXT: schedule.call @Linear{{.*}}.forward
// "b" would be freed and gathered again with no computation in between.
// CHECK-NEXT: schedule.await %[[H]]
// CHECK-NEXT: schedule.call @Head.forward
// CHECK-NOT:  schedule.all_gather_start
// CHECK:      schedule.call @Linear{{.*}}.backward({{.*}}) reads(%[[W]])
// CHECK:      schedule.program @eval
