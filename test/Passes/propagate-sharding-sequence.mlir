// Sequence parallelism: tokens are sharded between calls, the norm works on a
// rank's, and the sum of the rows is scattered.
// RUN: accel-opt opt %s --propagate-sharding=sequence-axis=tp | FileCheck %s
// RUN: accel-opt opt %s --propagate-sharding=sequence-axis=tp --partition-sharding --fold-collectives | FileCheck %s --check-prefix=PARTS

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"tp" = 2>]
sharding.job "m" micro_batch 2 sequence_length 8 device "cpu"
sharding.param "layers.0.norm" : tensor<4xf32> init <ones>
sharding.param "layers.0.up" : tensor<16x4xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"colwise">>}
sharding.param "layers.0.down" : tensor<4x16xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"rowwise">>}
sharding.param "layers.1.norm" : tensor<4xf32> init <ones>
sharding.param "layers.1.up" : tensor<16x4xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"colwise">>}
sharding.param "layers.1.down" : tensor<4x16xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"rowwise">>}

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:  %[[X:.*]]: tensor<2x8x4xf32> {sharding.spec = #sharding.spec<[], ["tp"], []>}
// CHECK-SAME:  -> (tensor<2x8x4xf32> {sharding.spec = #sharding.spec<[], ["tp"], []>})
// CHECK:       aten.mul.Tensor %[[X]], %{{.*}} {sharding.specs = [#sharding.spec<[], ["tp"], []>]}

// PARTS-LABEL: func.func private @layer(
// PARTS-SAME:  %[[X:.*]]: tensor<2x4x4xf32>
// PARTS-SAME:  -> tensor<2x4x4xf32>
// PARTS:       aten.mul.Tensor %[[X]], %{{.*}} : (tensor<2x4x4xf32>, tensor<4xf32>)
// PARTS:       sharding.all_gather %{{.*}} over "tp"
// PARTS:       sharding.reduce_scatter %{{.*}} dim 0 over "tp" pieces 2 : (tensor<16x4xf32>) -> tensor<8x4xf32>
// PARTS:       aten.view %{{.*}}, [2, 4, 4]
// PARTS-NOT:   sharding.all_reduce
func.func private @layer(%x: tensor<2x8x4xf32>, %n: tensor<4xf32> {sharding.param = "norm"}, %up: tensor<16x4xf32> {sharding.param = "up"}, %down: tensor<4x16xf32> {sharding.param = "down"}) -> tensor<2x8x4xf32> {
  %0 = aten.mul.Tensor %x, %n : (tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8x4xf32>
  %1 = aten.view %0, [16, 4] : (tensor<2x8x4xf32>) -> tensor<16x4xf32>
  %2 = aten.t %up : (tensor<16x4xf32>) -> tensor<4x16xf32>
  %3 = aten.mm %1, %2 : (tensor<16x4xf32>, tensor<4x16xf32>) -> tensor<16x16xf32>
  %4 = aten.t %down : (tensor<4x16xf32>) -> tensor<16x4xf32>
  %5 = aten.mm %3, %4 : (tensor<16x16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  %6 = aten.view %5, [2, 8, 4] : (tensor<16x4xf32>) -> tensor<2x8x4xf32>
  %7 = aten.add.Tensor %x, %6 : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %7 : tensor<2x8x4xf32>
}

func.func private @embed(%x: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  return %x : tensor<2x8x4xf32>
}

// PARTS-LABEL: sharding.graph @model(
// PARTS:       sharding.call @embed(%{{.*}}) at "" : (tensor<2x8x4xf32>) -> tensor<2x4x4xf32>
// PARTS:       sharding.call @layer(%{{.*}}) at "layers.0" : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
sharding.graph @model(%x: tensor<2x8x4xf32>) {
  %0 = sharding.call @embed(%x) at "" : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %1 = sharding.call @layer(%0) at "layers.0" : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %2 = sharding.call @layer(%1) at "layers.1" : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %3 = sharding.call @loss(%2) at "" : (tensor<2x8x4xf32>) -> tensor<f32>
  sharding.return %3 : tensor<f32>
}

func.func private @loss(%x: tensor<2x8x4xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1, 2], false : (tensor<2x8x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
