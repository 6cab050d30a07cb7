// RUN: accel-opt opt %s --pass-pipeline='builtin.module(decide-loss-chunks,apply-loss-chunks)' | FileCheck %s
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(decide-loss-chunks,apply-loss-chunks,differentiate,select-saved-tensors,partition)' | FileCheck %s --check-prefix=FUSED
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(decide-loss-chunks,apply-loss-chunks,differentiate,select-saved-tensors,partition,print-functions)' | FileCheck %s --check-prefix=PLAN

// Seven rows in three chunks of 2, 2 and 3; a soft cap and a bias are by rows.
// CHECK-LABEL: func.func private @Head(
// CHECK-SAME:  %[[X:.*]]: tensor<7x3xf32>, %[[L:.*]]: tensor<7xi64>
// CHECK-SAME:  attributes {aten.fused}
// CHECK:       %[[VALID:.*]] = aten.gt.Scalar %[[L]], -100
// CHECK:       %[[COUNT:.*]] = aten.sum.dim_IntList
// CHECK:       aten.slice.Tensor %[[X]], 0[0 : 2 : 1] {aten.chunk = 0 : i64}
// CHECK:       aten.addmm %{{.*}} -> tensor<2x5xf32>
// CHECK:       aten.tanh %{{.*}} : tensor<2x5xf32>
// CHECK:       aten.nll_loss_forward %{{.*}} {reduction = 2 : i64}
// CHECK:       aten.slice.Tensor %[[X]], 0[2 : 4 : 1] {aten.chunk = 1 : i64}
// CHECK:       aten.slice.Tensor %[[X]], 0[4 : 7 : 1] {aten.chunk = 2 : i64}
// CHECK:       aten.tanh %{{.*}} : tensor<3x5xf32>
// CHECK:       %[[SUM:.*]] = aten.add.Tensor
// CHECK:       %[[MEAN:.*]] = aten.div.Tensor %[[SUM]], %[[COUNT]]
// CHECK-NEXT:  return %[[MEAN]]

// One function, chunk after chunk, each with its gradients.
// FUSED-NOT:   @Head.forward
// FUSED-LABEL: func.func private @Head.backward(
// FUSED-SAME:  -> (tensor<f32> {aten.binding = #aten.binding<output 0>}
// FUSED:       aten.addmm %{{.*}} -> tensor<2x5xf32>
// FUSED:       aten.nll_loss_backward
// FUSED:       aten.mm %{{.*}} -> tensor<5x3xf32>
// FUSED:       aten.addmm %{{.*}} -> tensor<2x5xf32>
// FUSED:       aten.nll_loss_backward
// FUSED:       aten.mm %{{.*}} -> tensor<5x3xf32>
// FUSED:       aten.addmm %{{.*}} -> tensor<3x5xf32>
// FUSED:       aten.mm %{{.*}} -> tensor<5x3xf32>

// The table's gradient is added up in place.
// PLAN:        "name": "Head.backward"
// PLAN-COUNT-1: "op":"aten::mm.out"
// PLAN-COUNT-2: "op":"aten::addmm.out"
// PLAN-NOT:    "op":"aten::addmm.out"
func.func private @Head(%x: tensor<7x3xf32>, %l: tensor<7xi64>, %w: tensor<5x3xf32> {sharding.param = "w"}, %b: tensor<5xf32> {sharding.param = "b"}) -> tensor<f32> {
  %0 = aten.t %w : (tensor<5x3xf32>) -> tensor<3x5xf32>
  %1 = aten.addmm %b, %x, %0 : (tensor<5xf32>, tensor<7x3xf32>, tensor<3x5xf32>) -> tensor<7x5xf32>
  %2 = aten.tanh %1 : tensor<7x5xf32>
  %3 = aten.mul.Scalar %2, 3.0 : (tensor<7x5xf32>) -> tensor<7x5xf32>
  %4 = aten._log_softmax %3, 1 : tensor<7x5xf32>
  %5, %n = aten.nll_loss_forward %4, %l : (tensor<7x5xf32>, tensor<7xi64>) -> (tensor<f32>, tensor<f32>)
  return %5 : tensor<f32>
}
sharding.request "loss" {chunks = 3 : i64} because <"asked">
sharding.param "w" : tensor<5x3xf32> init <ones>
sharding.param "b" : tensor<5xf32> init <ones>
// CHECK: sharding.call @Head({{.*}}) at "" {sharding.loss = #sharding.loss<3, because = <"asked">>}
sharding.graph @model(%x: tensor<7x3xf32>, %l: tensor<7xi64>) {
  %0 = sharding.call @Head(%x, %l) at "" : (tensor<7x3xf32>, tensor<7xi64>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}
