// RUN: accel-opt opt %s --differentiate | FileCheck %s
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(differentiate,select-saved-tensors,partition)' | FileCheck %s --check-prefix=SPLIT

// Two segments read what @Front returns. The backward of "b" runs first and
// hands its gradient on; the one of "a" adds its own to it.
module {
  sharding.param "front.weight" : tensor<4xf32> init <ones>
  sharding.param "a.weight" : tensor<4xf32> init <ones>
  sharding.param "b.weight" : tensor<4xf32> init <ones>
  func.func private @Front(%x: tensor<2x4xf32>, %w: tensor<4xf32> {sharding.param = "weight"}) -> tensor<2x4xf32> {
    %0 = aten.mul.Tensor %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }

  // CHECK-LABEL: func.func private @Mix.joint(
  // CHECK-SAME:  %[[H:[a-z0-9]+]]: tensor<2x4xf32> {aten.binding = #aten.binding<input 0>}, %[[E:[a-z0-9]+]]: tensor<2x4xf32> {aten.binding = #aten.binding<input 1>}
  // CHECK-SAME:  %[[G:[a-z0-9]+]]: tensor<2x4xf32> {aten.binding = #aten.binding<tangent 0>}, %[[CARRY:[a-z0-9]+]]: tensor<2x4xf32> {aten.binding = #aten.binding<carry 1>})
  // CHECK:       %[[SUM:.*]] = aten.add.Tensor %[[CARRY]],
  // CHECK:       return %{{.*}}, %[[SUM]], %{{.*}} :
  // CHECK-LABEL: func.func private @Mix.v1.joint(
  // CHECK-NOT:   carry
  // CHECK:       return
  // SPLIT-LABEL: func.func private @Mix.forward(
  // SPLIT-NOT:   carry
  // SPLIT-LABEL: func.func private @Mix.backward(
  // SPLIT-SAME:  #aten.binding<tangent 0>}, %{{.*}}: tensor<2x4xf32> {aten.binding = #aten.binding<carry 1>})
  func.func private @Mix(%h: tensor<2x4xf32>, %e: tensor<2x4xf32>, %w: tensor<4xf32> {sharding.param = "weight"}) -> tensor<2x4xf32> {
    %0 = aten.mul.Tensor %e, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %1 = aten.add.Tensor %h, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    return %1 : tensor<2x4xf32>
  }
  func.func private @Mean(%x: tensor<2x4xf32>) -> tensor<f32> {
    %0 = aten.mean.dim %x, [0, 1], false : (tensor<2x4xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }

  // CHECK: sharding.call @Mix(%{{.*}}) at "a"
  // CHECK: sharding.call @Mix.v1(%{{.*}}) at "b"
  sharding.graph @model(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
    %0 = sharding.call @Front(%x) at "front" : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %1 = sharding.call @Mix(%y, %0) at "a" : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = sharding.call @Mix(%1, %0) at "b" : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %3 = sharding.call @Mean(%2) at "" : (tensor<2x4xf32>) -> tensor<f32>
    sharding.return %3 : tensor<f32>
  }
}
