// RUN: accel-opt opt %s --apply-precision | FileCheck %s
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(apply-precision{compute=f32})' | FileCheck %s --check-prefix=F32

// Parameters and inputs take the units' compute dtype; what the model computes
// in fp32 stays there; type_as becomes a cast.
// CHECK-LABEL: func.func private @Scale(
// CHECK-SAME:  %arg0: tensor<4x3xbf16>, %arg1: tensor<4xi64>, %arg2: tensor<3xbf16> {sharding.param = "scale"}) -> tensor<4x3xbf16>
// CHECK:       %[[WIDE:.*]] = aten._to_copy %arg0, f32 : (tensor<4x3xbf16>) -> tensor<4x3xf32>
// CHECK-NEXT:  %[[EXP:.*]] = aten.exp %[[WIDE]] : tensor<4x3xf32>
// CHECK-NEXT:  %[[BACK:.*]] = aten._to_copy %[[EXP]], bf16 : (tensor<4x3xf32>) -> tensor<4x3xbf16>
// CHECK-NEXT:  aten.mul.Tensor %[[BACK]], %arg2 : (tensor<4x3xbf16>, tensor<3xbf16>) -> tensor<4x3xbf16>
// CHECK-LABEL: func.func private @Sum(%arg0: tensor<4x3xbf16>) -> tensor<f32>
// CHECK:       sharding.call @Scale(%{{.*}}, %{{.*}}) at "0" : (tensor<4x3xbf16>, tensor<4xi64>) -> tensor<4x3xbf16>

// In fp32 every cast is an identity and disappears.
// F32-LABEL: func.func private @Scale(
// F32-NEXT:  aten.exp %arg0
// F32-NEXT:  aten.mul.Tensor
// F32-NEXT:  return
func.func private @Start(%i: tensor<4xi64>, %t: tensor<9x3xf32> {sharding.param = "weight"}) -> tensor<4x3xf32> {
  %0 = aten.embedding %t, %i : (tensor<9x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
func.func private @Scale(%x: tensor<4x3xf32>, %i: tensor<4xi64>, %s: tensor<3xf32> {sharding.param = "scale"}) -> tensor<4x3xf32> {
  %0 = aten._to_copy %x, f32 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = aten.exp %0 : tensor<4x3xf32>
  %2 = aten.type_as %1, %x : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %3 = aten.mul.Tensor %2, %s : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %3 : tensor<4x3xf32>
}
func.func private @Sum(%x: tensor<4x3xf32>) -> tensor<f32> {
  %0 = aten._to_copy %x, f32 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = aten.sum.dim_IntList %0, [0, 1], false : (tensor<4x3xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
sharding.param "t.weight" : tensor<9x3xf32> init <ones> in "u"
sharding.param "0.scale" : tensor<3xf32> init <ones> in "u"
sharding.unit "u" modules [""] shard [] replicate [] params ["t.weight", "0.scale"] {
  wrap = #sharding.wrap<because = <"test">>,
  precision = #sharding.precision<storage = f32, compute = bf16, reduce = f32, output = f32, because = <"test">>}
sharding.graph @model(%i: tensor<4xi64>) {
  %0 = sharding.call @Start(%i) at "t" : (tensor<4xi64>) -> tensor<4x3xf32>
  %1 = sharding.call @Scale(%0, %i) at "0" : (tensor<4x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  %2 = sharding.call @Sum(%1) at "" : (tensor<4x3xf32>) -> tensor<f32>
  sharding.return %2 : tensor<f32>
}
