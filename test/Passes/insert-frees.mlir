// RUN: accel-opt opt %S/Inputs/two-layers.mlir --to-sharded --partition --lower-to-schedule=overlap=false > %t.mlir
// RUN: accel-opt opt %t.mlir --insert-frees > %t.once.mlir
// RUN: FileCheck %s < %t.once.mlir
// Where values are freed already, they are freed at the same places again, and
// the result is sound: calls and programs have their true peaks.
// RUN: accel-opt opt %t.mlir --insert-frees --insert-frees --verify-schedule | diff %t.once.mlir -

// What nothing reads later is given up to the call that reads it last; the
// batch and the loss are kept.
// CHECK:      schedule.program @train
// CHECK:      %[[A:[0-9]+]] = schedule.call @Linear.forward(%[[X:[a-z0-9]+]]) reads
// CHECK:      %[[B:[0-9]+]] = schedule.call @Linear{{.*}}.forward(%[[A]]) reads
// CHECK:      %[[H:[0-9]+]]:3 = schedule.call @Head.forward(%[[B]], %[[L:[a-z0-9]+]]) reads
// CHECK:      schedule.call @Head.backward(%[[B]], %[[L]], %[[H]]#1, %[[H]]#2, %{{.*}}) consumes [0, 2, 3]
// CHECK:      schedule.call @Linear{{.*}}.backward(%[[A]], %{{.*}}) consumes [0, 1]
// CHECK:      schedule.call @Linear{{.*}}.backward(%[[X]], %{{.*}}) consumes [1]
// CHECK:      schedule.return loss(%[[H]]#0

// CHECK:      schedule.program @eval
// CHECK:      schedule.call @Linear(%{{.*}}) reads
// CHECK:      schedule.call @Linear{{.*}}(%{{.*}}) consumes [0] reads
