// The first reductions of a backward end before the next backward begins, the
// others beside it.
// RUN: sed -e 's/^sharding.graph/sharding.request "reductions" {await = 1 : i64} because <"test">\nsharding.graph/' %S/Inputs/two-layers.mlir > %t.one.mlir
// RUN: accel-opt opt %t.one.mlir --to-sharded --to-scheduled | FileCheck %s --check-prefix=ONE
// RUN: sed -e 's/await = 1/await = 2/' %t.one.mlir > %t.two.mlir
// RUN: accel-opt opt %t.two.mlir --to-sharded --to-scheduled | FileCheck %s --check-prefix=TWO
// None is what nobody asked for.
// RUN: sed -e 's/await = 1/await = 0/' %t.one.mlir | accel-opt opt - --to-sharded --to-scheduled | sed -e 's/, reductions = #sharding.reductions<await = 0, because = <"test">>//; /sharding.request "reductions"/d' > %t.none.mlir
// RUN: accel-opt opt %S/Inputs/two-layers.mlir --to-sharded --to-scheduled | diff %t.none.mlir -

// ONE:      schedule.program @train
// ONE:      %[[H:.*]] = schedule.reduce_scatter_start ""
// ONE-NEXT: schedule.await %[[H]]
// ONE:      schedule.free
// ONE:      schedule.optimizer_step ""
// ONE:      schedule.alloc gradient of "b"
// ONE:      schedule.call @Linear{{.*}}.backward
// ONE:      %[[B:.*]] = schedule.reduce_scatter_start "b"
// ONE-NEXT: schedule.alloc gradient of "a"
// ONE:      schedule.call @Linear{{.*}}.backward
// ONE:      schedule.await %[[B]]

// TWO:      %[[B:.*]] = schedule.reduce_scatter_start "b"
// TWO-NEXT: schedule.await %[[B]]
// TWO:      schedule.alloc gradient of "a"
