// RUN: accel-opt opt %s --pass-pipeline='builtin.module(differentiate,select-saved-tensors)' | FileCheck %s

// One function, two modes: the second caller gets a copy of its own.
// CHECK-LABEL: func.func private @Layer.joint
// CHECK:       aten.silu {{.*}}#aten.save<recompute, "pointwise; wanted">
// CHECK:       aten.mul.Tensor {{.*}}#aten.save<recompute, "pointwise; wanted">
// CHECK-LABEL: func.func private @Layer.none.joint
// CHECK:       aten.silu {{.*}}#aten.save<keep, "pointwise; on request">
// CHECK:       sharding.call @Layer(%{{.*}}) at "0"
// CHECK:       sharding.call @Layer.none(%{{.*}}) at "1"
// CHECK:       sharding.call @Layer(%{{.*}}) at "2"
func.func private @Layer(%x: tensor<4x3xf32>, %s: tensor<3xf32> {sharding.param = "scale"}) -> tensor<4x3xf32> {
  %0 = aten.silu %x : tensor<4x3xf32>
  %1 = aten.mul.Tensor %0, %s : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}
func.func private @Sum(%x: tensor<4x3xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<4x3xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @Table(%i: tensor<4xi64>, %t: tensor<9x3xf32> {sharding.param = "weight"}) -> tensor<4x3xf32> {
  %0 = aten.embedding %t, %i : (tensor<9x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
sharding.param "t.weight" : tensor<9x3xf32> init <ones>
sharding.param "0.scale" : tensor<3xf32> init <ones>
sharding.param "1.scale" : tensor<3xf32> init <ones>
sharding.param "2.scale" : tensor<3xf32> init <ones>
sharding.graph @model(%i: tensor<4xi64>) {
  %x = sharding.call @Table(%i) at "t" : (tensor<4xi64>) -> tensor<4x3xf32>
  %0 = sharding.call @Layer(%x) at "0" {checkpoint = #sharding.checkpoint<full, because = <"wanted">>} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = sharding.call @Layer(%0) at "1" {checkpoint = #sharding.checkpoint<none, because = <"on request">>} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = sharding.call @Layer(%1) at "2" {checkpoint = #sharding.checkpoint<full, because = <"wanted">>} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %3 = sharding.call @Sum(%2) at "" : (tensor<4x3xf32>) -> tensor<f32>
  sharding.return %3 : tensor<f32>
}
