// RUN: accel-opt opt %S/Inputs/two-layers.mlir --to-sharded --partition --lower-to-schedule=overlap=false | FileCheck %s

// Each unit is gathered before its first use and awaited at once, freed after
// the forward, gathered again for the backward, reduced and updated.
// CHECK:      schedule.program @train
// CHECK-NEXT: inputs(%{{.*}} as "x": !schedule.buffer<512, tensor<8x16xf32>>, %{{.*}} as "labels": {{.*}}, %{{.*}} as "loss_seed": {{.*}})
// CHECK:      %[[A:.*]] = schedule.alloc gathered of "a" : <1024>
// CHECK-NEXT: %[[F:.*]] = schedule.all_gather_start "a" into %[[A]] over ["dp_shard"] on gather
// CHECK-NEXT: %[[W:.*]] = schedule.await %[[F]]
// CHECK-NEXT: %[[Y:.*]] = schedule.call @Linear.forward(%{{.*}}) reads(%[[W]]) params [#schedule.param<"a", "a.weight">]
// CHECK-NEXT: schedule.free %[[W]]
// CHECK:      schedule.call @Linear{{.*}}.forward(%[[Y]])
// The root stays gathered from its forward to its backward.
// CHECK:      schedule.all_gather_start ""
// CHECK:      schedule.call @Head.forward
// CHECK-NOT:  schedule.free
// CHECK:      schedule.call @Head.backward
// CHECK:      schedule.free
// CHECK:      %[[S:.*]] = schedule.reduce_scatter_start "" from %{{.*}} over ["dp_shard"] by "all_to_all" on reduce
// CHECK-NEXT: schedule.await %[[S]]
// CHECK:      schedule.optimizer_step ""
// CHECK:      schedule.all_gather_start "b"
// CHECK:      schedule.call @Linear{{.*}}.backward({{.*}}) reads(
// CHECK:      schedule.optimizer_step "b"
// The first layer's backward needs no weight, so nothing is gathered for it.
// CHECK-NOT:  schedule.all_gather_start
// CHECK:      schedule.call @Linear{{.*}}.backward({{.*}}) writes(
// CHECK:      schedule.optimizer_step "a"
// CHECK:      schedule.return loss(

// An evaluation is the forward alone.
// CHECK:      schedule.program @eval
// CHECK-NOT:  reduce_scatter
// CHECK:      schedule.call @Head(
// CHECK:      schedule.return loss(

// A backward function is one of the module for each way in which its gradients
// are left; one that no call asks for goes.
// RUN: sed -e 's/^sharding.graph/sharding.request "accumulation" {keep_unsharded, steps = 3 : i64} because <"test">\nsharding.graph/' %S/Inputs/two-layers.mlir > %t.accumulate.mlir
// RUN: accel-opt opt %t.accumulate.mlir --to-sharded --partition --lower-to-schedule=overlap=false > %t.accumulated.mlir
// RUN: FileCheck %s --check-prefix=VARIANT < %t.accumulated.mlir
// VARIANT:     func.func private @Head.backward(
// VARIANT-SAME:  {aten.binding = #aten.binding<param_grad 0>, schedule.destination = #schedule.destination<f32>, sharding.param = "weight"}
// VARIANT:     func.func private @"Head.backward+0"(
// VARIANT-SAME:  schedule.destination = #schedule.destination<f32, accumulate = true>
// VARIANT:     schedule.program @first
// VARIANT:     schedule.call @Head.backward(
// VARIANT:     schedule.program @middle
// VARIANT-NOT: schedule.call @Head.backward(
// VARIANT:     schedule.call @"Head.backward+0"(
// VARIANT:     schedule.program @last

// The text is complete: later passes need nothing but it.
// RUN: accel-opt opt %t.accumulated.mlir --hoist-gathers --sink-awaits --insert-frees --verify-schedule | FileCheck %s --check-prefix=VARIANT
