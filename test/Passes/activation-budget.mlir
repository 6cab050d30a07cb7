// RUN: accel-opt opt %s --split-input-file --pass-pipeline='builtin.module(differentiate,activation-budget,select-saved-tensors)' | FileCheck %s

// Of the three 64-byte values that a layer's backward reads, 384 bytes are six
// of nine. Each layer gets what makes the sum of all recomputation least, the
// last ones more: they meet the others' bytes in the backward.
// CHECK:     #aten.save<{{keep|recompute}}, "{{[0-9]+}} of {{[0-9]+}} bytes, {{.*}} ms recomputed, proven the least; asked: of 384 bytes for all layers this one keeps
// CHECK:     sharding.call @Layer{{.*}} at "0" {checkpoint = #sharding.checkpoint<budget bytes [[A:[0-9]+]], because = <"asked: of 384 bytes for all layers this one keeps [[A]] and recomputes
// CHECK:     sharding.call @Layer{{.*}} at "1" {checkpoint = #sharding.checkpoint<budget bytes [[B:[0-9]+]],
// CHECK:     sharding.call @Layer{{.*}} at "2" {checkpoint = #sharding.checkpoint<budget bytes [[C:[0-9]+]],
sharding.request "checkpoint" {mode = "budget", bytes = 384 : i64} because <"asked">
func.func private @Layer(%x: tensor<4x4xf32>, %s: tensor<4x4xf32> {sharding.param = "scale"}) -> tensor<4x4xf32> {
  %0 = aten.mul.Tensor %x, %s : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = aten.silu %0 : tensor<4x4xf32>
  %2 = aten.silu %1 : tensor<4x4xf32>
  %3 = aten.silu %2 : tensor<4x4xf32>
  return %3 : tensor<4x4xf32>
}
func.func private @Sum(%x: tensor<4x4xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<4x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
sharding.param "0.scale" : tensor<4x4xf32> init <ones>
sharding.param "1.scale" : tensor<4x4xf32> init <ones>
sharding.param "2.scale" : tensor<4x4xf32> init <ones>
sharding.graph @model(%x: tensor<4x4xf32>) {
  %0 = sharding.call @Layer(%x) at "0" {checkpoint = #sharding.checkpoint<budget, because = <"asked">>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = sharding.call @Layer(%0) at "1" {checkpoint = #sharding.checkpoint<budget, because = <"asked">>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = sharding.call @Layer(%1) at "2" {checkpoint = #sharding.checkpoint<budget, because = <"asked">>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = sharding.call @Sum(%2) at "" : (tensor<4x4xf32>) -> tensor<f32>
  sharding.return %3 : tensor<f32>
}

// -----

// What is kept can be listed: here the first silu alone.
// CHECK:     aten.mul.Tensor {{.*}}#aten.save<recompute, "as listed; tuned">
// CHECK:     aten.silu {{.*}}#aten.save<keep, "as listed; tuned">
// CHECK:     aten.silu {{.*}}#aten.save<recompute, "as listed; tuned">
func.func private @Layer(%x: tensor<4x4xf32>, %s: tensor<4x4xf32> {sharding.param = "scale"}) -> tensor<4x4xf32> {
  %0 = aten.mul.Tensor %x, %s : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = aten.silu %0 : tensor<4x4xf32>
  %2 = aten.silu %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
func.func private @Sum(%x: tensor<4x4xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<4x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
sharding.param "0.scale" : tensor<4x4xf32> init <ones>
sharding.graph @model(%x: tensor<4x4xf32>) {
  %0 = sharding.call @Layer(%x) at "0" {checkpoint = #sharding.checkpoint<set keep [1], because = <"tuned">>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = sharding.call @Sum(%0) at "" : (tensor<4x4xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}
