// The first gathers of a backward, behind the head's, start where they are
// needed, and their units are freed before the loss.
// RUN: sed -e 's/^sharding.graph/sharding.request "gathers" {held = 1 : i64} because <"test">\nsharding.graph/' %S/Inputs/two-layers.mlir > %t.one.mlir
// RUN: accel-opt opt %t.one.mlir --to-sharded --to-scheduled | FileCheck %s --check-prefix=ONE
// None is what nobody asked for: "b" stays gathered, and nothing is beside its
// backward, since the backward of "a" reads no parameter.
// RUN: sed -e 's/held = 1/held = 0/' %t.one.mlir | accel-opt opt - --to-sharded --to-scheduled | sed -e 's/gathers = #sharding.gathers<held = 0, because = <"test">>, //; /sharding.request "gathers"/d' > %t.none.mlir
// RUN: accel-opt opt %S/Inputs/two-layers.mlir --to-sharded --to-scheduled > %t.plain.mlir
// RUN: diff %t.none.mlir %t.plain.mlir
// RUN: FileCheck %s --check-prefix=NONE --input-file=%t.plain.mlir

// ONE:      schedule.program @train
// ONE:      schedule.alloc gathered of "b"
// ONE:      %[[B:.*]] = schedule.await
// ONE:      schedule.alloc gathered of ""
// ONE:      schedule.call @Linear{{.*}}.forward({{.*}} reads(%[[B]])
// ONE-NEXT: schedule.free %[[B]]
// ONE:      schedule.call @Head.forward
// ONE:      schedule.call @Head.backward
// ONE:      %[[S:.*]] = schedule.all_gather_start "b"
// ONE-NEXT: %[[A:.*]] = schedule.await %[[S]]
// ONE:      schedule.call @Linear{{.*}}.backward({{.*}} reads(%[[A]])
// ONE-NEXT: schedule.free %[[A]]

// NONE:     schedule.program @train
// NONE:     schedule.all_gather_start "b"
// NONE-NOT: schedule.all_gather_start "b"
// NONE:     schedule.return
