// A loss that the model computes in 16 bits is returned as f32; in f32 nothing changes.
// RUN: accel-opt opt %s --apply-precision | FileCheck %s
// RUN: accel-opt opt %s --apply-precision=compute=f32 | FileCheck %s --check-prefix=F32

// CHECK-LABEL: func.func private @Sum(
// CHECK-SAME:  -> tensor<f32>
// CHECK-NEXT:  %[[SUM:.*]] = aten.sum.dim_IntList %arg0, [0, 1], false : (tensor<4x3xbf16>) -> tensor<bf16>
// CHECK-NEXT:  %[[WIDE:.*]] = aten._to_copy %[[SUM]], f32 : (tensor<bf16>) -> tensor<f32>
// CHECK-NEXT:  return %[[WIDE]] : tensor<f32>
// CHECK:       sharding.call @Sum(%{{.*}}) at "" : (tensor<4x3xbf16>) -> tensor<f32>

// F32-LABEL: func.func private @Sum(
// F32-NEXT:  %[[SUM:.*]] = aten.sum.dim_IntList
// F32-NEXT:  return %[[SUM]] : tensor<f32>
func.func private @Start(%i: tensor<4xi64>, %t: tensor<9x3xf32> {sharding.param = "weight"}) -> tensor<4x3xf32> {
  %0 = aten.embedding %t, %i : (tensor<9x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
func.func private @Sum(%x: tensor<4x3xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<4x3xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
sharding.param "t.weight" : tensor<9x3xf32> init <ones> in "u"
sharding.unit "u" modules [""] shard [] replicate [] params ["t.weight"] {
  wrap = #sharding.wrap<because = <"test">>,
  precision = #sharding.precision<storage = f32, compute = bf16, reduce = f32, output = f32, because = <"test">>}
sharding.graph @model(%i: tensor<4xi64>) {
  %0 = sharding.call @Start(%i) at "t" : (tensor<4xi64>) -> tensor<4x3xf32>
  %1 = sharding.call @Sum(%0) at "" : (tensor<4x3xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}
