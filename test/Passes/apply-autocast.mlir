// RUN: accel-opt opt %s --apply-autocast | FileCheck %s

// Matmuls take bf16 copies of their operands, log is of autocast's fp32 list,
// and the parameter itself stays in fp32.
// CHECK-LABEL: func.func private @Linear(
// CHECK-SAME:  %[[X:.*]]: tensor<4x3xf32>, %[[W:.*]]: tensor<3x5xf32> {sharding.param = "w"}) -> tensor<f32>
// CHECK-DAG:   %[[LOWX:.*]] = aten._to_copy %[[X]], bf16
// CHECK-DAG:   %[[LOWW:.*]] = aten._to_copy %[[W]], bf16
// CHECK:       %[[Y:.*]] = aten.mm %[[LOWX]], %[[LOWW]] : (tensor<4x3xbf16>, tensor<3x5xbf16>) -> tensor<4x5xbf16>
// CHECK:       %[[WIDE:.*]] = aten._to_copy %[[Y]], f32
// CHECK:       %[[LOG:.*]] = aten.log %[[WIDE]] : tensor<4x5xf32>
// CHECK:       aten.sum.dim_IntList %[[LOG]], [0, 1], false : (tensor<4x5xf32>) -> tensor<f32>
func.func private @Linear(%x: tensor<4x3xf32>, %w: tensor<3x5xf32> {sharding.param = "w"}) -> tensor<f32> {
  %0 = aten.mm %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %1 = aten.log %0 : tensor<4x5xf32>
  %2 = aten.sum.dim_IntList %1, [0, 1], false : (tensor<4x5xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cuda" {framework = #sharding.framework<"ddp" torch "2.15" accelerate "1.15.0">}
sharding.param "w" : tensor<3x5xf32> init <ones> in "u"
sharding.unit "u" modules [""] shard [] replicate [] params ["w"] {
  wrap = #sharding.wrap<because = <"test">>,
  precision = #sharding.precision<storage = f32, compute = bf16, reduce = f32, output = f32 autocast true, because = <"mixed_precision: bf16">>}
sharding.graph @model(%x: tensor<4x3xf32>) {
  %0 = sharding.call @Linear(%x) at "" {unit = "u"} : (tensor<4x3xf32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}
