// What a model leaves wide where others read it: log_softmax is taken in f32,
// mixed factors are cast to the compute type, and a result whose readers all
// want the compute type is cast where it is returned.
// RUN: accel-opt opt %s --apply-precision | FileCheck %s

// CHECK-LABEL: func.func private @Start(
// CHECK:       %[[WIDE:.*]] = aten.exp %{{.*}} : tensor<4x3xf32>
// CHECK:       %[[LOSS:.*]] = aten._to_copy %[[WIDE]], bf16 : (tensor<4x3xf32>) -> tensor<4x3xbf16>
// CHECK-NEXT:  return %[[LOSS]] : tensor<4x3xbf16>
func.func private @Start(%i: tensor<4xi64>, %t: tensor<9x3xf32> {sharding.param = "weight"}) -> tensor<4x3xf32> {
  %0 = aten.embedding %t, %i : (tensor<9x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  %1 = aten._to_copy %0, f32 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = aten.exp %1 : tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}

// CHECK-LABEL: func.func private @Head(%arg0: tensor<4x3xbf16>
// CHECK:       %[[EXP:.*]] = aten.exp %{{.*}} : tensor<4x3xf32>
// CHECK-NEXT:  %[[NARROW:.*]] = aten._to_copy %[[EXP]], bf16
// CHECK-NEXT:  %[[LOGITS:.*]] = aten.mm %[[NARROW]], %arg1 : (tensor<4x3xbf16>, tensor<3x5xbf16>) -> tensor<4x5xbf16>
// CHECK-NEXT:  %[[UP:.*]] = aten._to_copy %[[LOGITS]], f32
// CHECK-NEXT:  %[[LOG:.*]] = aten._log_softmax %[[UP]], 1 : tensor<4x5xf32>
// CHECK-NEXT:  %[[SUM:.*]] = aten.sum.dim_IntList %[[LOG]]{{.*}} -> tensor<f32>
// CHECK-NEXT:  return %[[SUM]] : tensor<f32>
func.func private @Head(%x: tensor<4x3xf32>, %w: tensor<3x5xf32> {sharding.param = "weight"}) -> tensor<f32> {
  %0 = aten._to_copy %x, f32 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = aten.exp %0 : tensor<4x3xf32>
  %2 = aten.mm %1, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %3 = aten._log_softmax %2, 1 : tensor<4x5xf32>
  %4 = aten.sum.dim_IntList %3, [0, 1], false : (tensor<4x5xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
sharding.param "t.weight" : tensor<9x3xf32> init <ones> in "u"
sharding.param "h.weight" : tensor<3x5xf32> init <ones> in "u"
sharding.unit "u" modules [""] shard [] replicate [] params ["t.weight", "h.weight"] {
  wrap = #sharding.wrap<because = <"test">>,
  precision = #sharding.precision<storage = f32, compute = bf16, reduce = f32, output = f32, because = <"test">>}
sharding.graph @model(%i: tensor<4xi64>) {
  %0 = sharding.call @Start(%i) at "t" : (tensor<4xi64>) -> tensor<4x3xf32>
  %1 = sharding.call @Head(%0) at "h" : (tensor<4x3xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}
