// Tokens that context parallelism shares and sequence parallelism shares again:
// between calls a rank has its part of both. A matmul whose weight is sharded
// over the inner axis gathers that axis alone, and its sum is scattered over it.
// RUN: accel-opt opt %s --propagate-sharding=sequence-axis=tp | FileCheck %s
// RUN: accel-opt opt %s --propagate-sharding=sequence-axis=tp --partition-sharding --fold-collectives | FileCheck %s --check-prefix=PARTS

sharding.mesh @mesh [#sharding.axis<"cp" = 2>, #sharding.axis<"tp" = 2>]
sharding.job "m" micro_batch 1 sequence_length 16 device "cpu"
sharding.param "layers.0.up" : tensor<16x4xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"colwise">>}
sharding.param "layers.0.down" : tensor<4x16xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"rowwise">>}

// CHECK-LABEL: func.func private @layer(
// CHECK:       aten.mm {{.*}} {sharding.specs = [#sharding.spec<[{{.*}}"cp"{{.*}}], ["tp"]>]}

// PARTS-LABEL: func.func private @layer(
// PARTS-SAME:  %[[X:.*]]: tensor<1x4x4xf32>
// PARTS-SAME:  -> tensor<1x4x4xf32>
// PARTS-NOT:   "cp"
// PARTS:       sharding.all_gather %{{.*}} dim 0 over "tp" pieces 2 : (tensor<4x4xf32>) -> tensor<8x4xf32>
// PARTS-NOT:   "cp"
// PARTS:       sharding.reduce_scatter %{{.*}} dim 0 over "tp" pieces 2 : (tensor<8x4xf32>) -> tensor<4x4xf32>
// PARTS-NOT:   sharding.all_reduce
// PARTS:       return
func.func private @layer(%x: tensor<1x16x4xf32>, %up: tensor<16x4xf32> {sharding.param = "up"}, %down: tensor<4x16xf32> {sharding.param = "down"}) -> tensor<1x16x4xf32> {
  %1 = aten.view %x, [16, 4] : (tensor<1x16x4xf32>) -> tensor<16x4xf32>
  %2 = aten.t %up : (tensor<16x4xf32>) -> tensor<4x16xf32>
  %3 = aten.mm %1, %2 : (tensor<16x4xf32>, tensor<4x16xf32>) -> tensor<16x16xf32>
  %4 = aten.t %down : (tensor<4x16xf32>) -> tensor<16x4xf32>
  %5 = aten.mm %3, %4 : (tensor<16x16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  %6 = aten.view %5, [1, 16, 4] : (tensor<16x4xf32>) -> tensor<1x16x4xf32>
  %7 = aten.add.Tensor %x, %6 : (tensor<1x16x4xf32>, tensor<1x16x4xf32>) -> tensor<1x16x4xf32>
  return %7 : tensor<1x16x4xf32>
}

func.func private @embed(%x: tensor<1x16x4xf32>) -> tensor<1x16x4xf32> {
  return %x : tensor<1x16x4xf32>
}

sharding.graph @model(%x: tensor<1x16x4xf32>) {
  %0 = sharding.call @embed(%x) at "" : (tensor<1x16x4xf32>) -> tensor<1x16x4xf32>
  %1 = sharding.call @layer(%0) at "layers.0" : (tensor<1x16x4xf32>) -> tensor<1x16x4xf32>
  %2 = sharding.call @loss(%1) at "" : (tensor<1x16x4xf32>) -> tensor<f32>
  sharding.return %2 : tensor<f32>
}

func.func private @loss(%x: tensor<1x16x4xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1, 2], false : (tensor<1x16x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
