// RUN: accel-opt opt %s --apply-autocast | FileCheck %s

// Autocast leaves _grouped_mm alone, and the input follows wide weights.
// CHECK-LABEL: func.func private @Wide(
// CHECK-SAME:  %[[X:.*]]: tensor<8x16xf32>
// CHECK:       %[[T:.*]] = aten.transpose.int %{{.*}}, 1, 2
// CHECK-NEXT:  aten._grouped_mm %[[X]], %[[T]], %{{.*}} : (tensor<8x16xf32>, tensor<4x16x8xf32>, tensor<4xi32>) -> tensor<8x8xf32>
func.func private @Wide(%x: tensor<8x16xf32>, %ends: tensor<4xi32>, %w: tensor<4x8x16xf32> {sharding.param = "a"}) -> tensor<8x8xf32> {
  %0 = aten.transpose.int %w, 1, 2 : (tensor<4x8x16xf32>) -> tensor<4x16x8xf32>
  %1 = aten._grouped_mm %x, %0, %ends : (tensor<8x16xf32>, tensor<4x16x8xf32>, tensor<4xi32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Quantised experts are layers of bitsandbytes, which compute in 16 bits and
// return what they were given.
// CHECK-LABEL: func.func private @Quantised(
// CHECK:       %[[Y:.*]] = aten._grouped_mm %{{.*}} : (tensor<8x16xbf16>, tensor<4x16x8xbf16>, tensor<4xi32>) -> tensor<8x8xbf16>
// CHECK-NEXT:  %[[WIDE:.*]] = aten._to_copy %[[Y]], f32
// CHECK-NEXT:  aten.sum.dim_IntList %[[WIDE]], [0, 1], false : (tensor<8x8xf32>) -> tensor<f32>
func.func private @Quantised(%x: tensor<8x16xf32>, %ends: tensor<4xi32>, %w: tensor<4x8x16xf32> {sharding.param = "b", sharding.quantized}) -> tensor<f32> {
  %0 = aten.transpose.int %w, 1, 2 : (tensor<4x8x16xf32>) -> tensor<4x16x8xf32>
  %1 = aten._grouped_mm %x, %0, %ends : (tensor<8x16xf32>, tensor<4x16x8xf32>, tensor<4xi32>) -> tensor<8x8xf32>
  %2 = aten.sum.dim_IntList %1, [0, 1], false : (tensor<8x8xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
sharding.job "tiny" micro_batch 1 sequence_length 8 device "cuda" {framework = #sharding.framework<"ddp" torch "2.15" accelerate "1.15.0">}
sharding.param "a" : tensor<4x8x16xf32> init <ones> in "u"
sharding.param "b" : tensor<4x8x16xf32> init <ones> in "u"
sharding.unit "u" modules [""] shard [] replicate [] params ["a", "b"] {
  wrap = #sharding.wrap<because = <"test">>,
  precision = #sharding.precision<storage = f32, compute = bf16, reduce = f32, output = f32 autocast true, because = <"mixed_precision: bf16">>}
sharding.graph @model(%x: tensor<8x16xf32>, %ends: tensor<4xi32>) {
  %0 = sharding.call @Wide(%x, %ends) at "" {unit = "u"} : (tensor<8x16xf32>, tensor<4xi32>) -> tensor<8x8xf32>
  %1 = sharding.call @Quantised(%x, %ends) at "" {unit = "u"} : (tensor<8x16xf32>, tensor<4xi32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}
