// Context parallelism: a rank has its tokens everywhere, one part from the start
// and one from the end of a sequence; attention sends keys and values on.
// RUN: accel-opt opt %s --propagate-sharding | FileCheck %s
// RUN: accel-opt opt %s --propagate-sharding --partition-sharding --fold-collectives | FileCheck %s --check-prefix=PARTS
// RUN: accel-opt opt %s --propagate-sharding=context-axis= | FileCheck %s --check-prefix=NONE
// RUN: sed -e 's/sequence_length 8/sequence_length 6/' -e 's/"cp" = 2/"cp" = 4/' %s > %t.mlir
// RUN: not accel-opt opt %t.mlir --propagate-sharding 2>&1 | FileCheck %s --check-prefix=ODD
// ODD: error: {{.*}}sequences of 6 tokens cannot be divided among the 4 ranks of 'cp'; take a multiple of 8

// NONE-NOT: "cp",

sharding.mesh @mesh [#sharding.axis<"cp" = 2>]
sharding.job "m" micro_batch 1 sequence_length 8 device "cpu"
sharding.param "layers.0.norm" : tensor<4xf32> init <ones>

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:  %[[X:.*]]: tensor<1x8x4xf32> {sharding.spec = #sharding.spec<[], [2 mirrored, "cp"], []>}
// CHECK:       aten._scaled_dot_product_flash_attention_for_cpu {{.*}}sharding.specs = [#sharding.spec<[], [], [2 mirrored, "cp"], []>, #sharding.spec<[], [], [2 mirrored, "cp"]>]

// Its own tokens, and two blocks of the other rank's, without a mask.
// PARTS-LABEL: func.func private @layer(
// PARTS-SAME:  %[[X:.*]]: tensor<1x4x4xf32>
// PARTS:       %[[RANK:.*]] = sharding.coordinate "cp"
// PARTS:       aten._scaled_dot_product_flash_attention_for_cpu {{.*}} {is_causal = true
// PARTS-SAME:  (tensor<1x2x4x2xf32>, tensor<1x2x4x2xf32>, tensor<1x2x4x2xf32>)
// PARTS-COUNT-2: sharding.permute %{{.*}} by 1 over "cp" : tensor<1x4x2x2xf32>
// PARTS:       aten._scaled_dot_product_flash_attention_for_cpu {{.*}} {is_causal = false
// PARTS-SAME:  (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>)
// PARTS:       %[[BEFORE:.*]] = aten.ge.Scalar %[[RANK]], 1
// PARTS-COUNT-3: aten.where.self %[[BEFORE]]
// PARTS:       aten._scaled_dot_product_flash_attention_for_cpu {{.*}} {is_causal = false
// PARTS:       aten.cat {{.*}} dim 1 {sharding.joined_attention}
// PARTS-NOT:   sharding.
// PARTS:       return
func.func private @layer(%x: tensor<1x8x4xf32>, %n: tensor<4xf32> {sharding.param = "norm"}) -> tensor<1x8x4xf32> {
  %0 = aten.mul.Tensor %x, %n : (tensor<1x8x4xf32>, tensor<4xf32>) -> tensor<1x8x4xf32>
  %1 = aten.view %0, [1, 8, 2, 2] : (tensor<1x8x4xf32>) -> tensor<1x8x2x2xf32>
  %2 = aten.transpose.int %1, 1, 2 : (tensor<1x8x2x2xf32>) -> tensor<1x2x8x2xf32>
  %o, %l = aten._scaled_dot_product_flash_attention_for_cpu %2, %2, %2 {is_causal = true, scale = 5.0e-01 : f64} : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>) -> (tensor<1x2x8x2xf32>, tensor<1x2x8xf32>)
  %3 = aten.transpose.int %o, 1, 2 : (tensor<1x2x8x2xf32>) -> tensor<1x8x2x2xf32>
  %4 = aten.view %3, [1, 8, 4] : (tensor<1x8x2x2xf32>) -> tensor<1x8x4xf32>
  return %4 : tensor<1x8x4xf32>
}

// A table is read for a rank's tokens.
// PARTS-LABEL: func.func private @embed(
// PARTS:       sharding.slice %{{.*}} dim 1 over "cp" pieces 2 mirrored : (tensor<1x8xi64>) -> tensor<1x4xi64>
// PARTS-NEXT:  aten.embedding {{.*}} -> tensor<1x4x4xf32>
func.func private @embed(%ids: tensor<1x8xi64>, %w: tensor<16x4xf32> {sharding.param = "table"}) -> tensor<1x8x4xf32> {
  %0 = aten.embedding %w, %ids : (tensor<16x4xf32>, tensor<1x8xi64>) -> tensor<1x8x4xf32>
  return %0 : tensor<1x8x4xf32>
}

// A mean over the tokens of all ranks: counted, then added up.
// PARTS-LABEL: func.func private @loss(
// PARTS:       aten.nll_loss_forward {{.*}} {reduction = 2 : i64}
// PARTS:       %[[COUNT:.*]] = sharding.all_reduce %{{.*}} over ["cp"] : tensor<f32>
// PARTS:       %[[MEAN:.*]] = aten.div.Tensor %{{.*}}, %[[COUNT]]
// PARTS:       sharding.all_reduce %[[MEAN]] over ["cp"] : tensor<f32>
func.func private @loss(%x: tensor<1x8x4xf32>, %labels: tensor<1x8xi64>) -> tensor<f32> {
  %0 = aten.view %x, [8, 4] : (tensor<1x8x4xf32>) -> tensor<8x4xf32>
  %1 = aten._log_softmax %0, 1 : tensor<8x4xf32>
  %2 = aten.view %labels, [8] : (tensor<1x8xi64>) -> tensor<8xi64>
  %output, %total_weight = aten.nll_loss_forward %1, %2 : (tensor<8x4xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  return %output : tensor<f32>
}

sharding.param "table" : tensor<16x4xf32> init <zeros>
sharding.graph @model(%ids: tensor<1x8xi64>, %labels: tensor<1x8xi64>) {
  %0 = sharding.call @embed(%ids) at "" : (tensor<1x8xi64>) -> tensor<1x8x4xf32>
  %1 = sharding.call @layer(%0) at "layers.0" : (tensor<1x8x4xf32>) -> tensor<1x8x4xf32>
  %2 = sharding.call @loss(%1, %labels) at "" : (tensor<1x8x4xf32>, tensor<1x8xi64>) -> tensor<f32>
  sharding.return %2 : tensor<f32>
}
