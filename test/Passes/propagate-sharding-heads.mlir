// Consecutive tokens for heads (DeepSpeed Ulysses): a rank has its tokens
// everywhere but in attention, of which it computes some heads.
// RUN: accel-opt opt %s --propagate-sharding | FileCheck %s
// RUN: accel-opt opt %s --propagate-sharding --partition-sharding --fold-collectives | FileCheck %s --check-prefix=PARTS
// RUN: accel-opt opt %s --propagate-sharding=heads-axis= | FileCheck %s --check-prefix=NONE
// RUN: sed -e 's/sequence_length 8/sequence_length 6/' -e 's/"sp" = 2/"sp" = 4/' %s > %t.mlir
// RUN: not accel-opt opt %t.mlir --propagate-sharding 2>&1 | FileCheck %s --check-prefix=ODD
// ODD: error: {{.*}}sequences of 6 tokens cannot be divided among the 4 ranks of 'sp'; take a multiple of 4
// RUN: sed 's/<"sp" = 2>/<"cp" = 2>, #sharding.axis<"sp" = 2>/' %s > %t.both.mlir
// RUN: not accel-opt opt %t.both.mlir --propagate-sharding 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: 'cp' and 'sp' both shard sequences; one of them has one rank

// NONE-NOT: "sp",

sharding.mesh @mesh [#sharding.axis<"sp" = 2>]
sharding.job "m" micro_batch 1 sequence_length 8 device "cpu"
sharding.param "layers.0.norm" : tensor<8xf32> init <ones>

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:  tensor<1x8x8xf32> {sharding.spec = #sharding.spec<[], ["sp"], []>}
// CHECK:       aten._scaled_dot_product_flash_attention_for_cpu {{.*}}sharding.specs = [#sharding.spec<[], [], ["sp"], []>, #sharding.spec<[], [], ["sp"]>]

// Four heads of queries and one of keys: keys are repeated for the two ranks.
// PARTS-LABEL: func.func private @layer(
// PARTS-SAME:  tensor<1x4x8xf32>
// PARTS:       %[[Q:.*]] = sharding.all_to_all %{{.*}} split 2 concat 1 over "sp" : (tensor<1x4x4x2xf32>) -> tensor<1x8x2x2xf32>
// PARTS:       aten.expand %{{.*}}, [1, 4, 1, 2, 2]
// PARTS:       sharding.all_to_all %{{.*}} split 2 concat 1 over "sp" : (tensor<1x4x2x2xf32>) -> tensor<1x8x1x2xf32>
// PARTS:       aten._scaled_dot_product_flash_attention_for_cpu {{.*}} {is_causal = true
// PARTS-SAME:  (tensor<1x2x8x2xf32>, tensor<1x1x8x2xf32>, tensor<1x1x8x2xf32>)
// PARTS:       sharding.all_to_all %{{.*}} split 1 concat 2 over "sp" : (tensor<1x8x2x2xf32>) -> tensor<1x4x4x2xf32>
// PARTS:       return {{.*}} : tensor<1x4x8xf32>
func.func private @layer(%x: tensor<1x8x8xf32>, %n: tensor<8xf32> {sharding.param = "norm"}) -> tensor<1x8x8xf32> {
  %0 = aten.mul.Tensor %x, %n : (tensor<1x8x8xf32>, tensor<8xf32>) -> tensor<1x8x8xf32>
  %1 = aten.view %0, [1, 8, 4, 2] : (tensor<1x8x8xf32>) -> tensor<1x8x4x2xf32>
  %2 = aten.transpose.int %1, 1, 2 : (tensor<1x8x4x2xf32>) -> tensor<1x4x8x2xf32>
  %k = aten.slice.Tensor %2, 1[0 : 1 : 1] : (tensor<1x4x8x2xf32>) -> tensor<1x1x8x2xf32>
  %o, %l = aten._scaled_dot_product_flash_attention_for_cpu %2, %k, %k {is_causal = true, scale = 5.0e-01 : f64} : (tensor<1x4x8x2xf32>, tensor<1x1x8x2xf32>, tensor<1x1x8x2xf32>) -> (tensor<1x4x8x2xf32>, tensor<1x4x8xf32>)
  %3 = aten.transpose.int %o, 1, 2 : (tensor<1x4x8x2xf32>) -> tensor<1x8x4x2xf32>
  %4 = aten.view %3, [1, 8, 8] : (tensor<1x8x4x2xf32>) -> tensor<1x8x8xf32>
  return %4 : tensor<1x8x8xf32>
}

// A table is read for a rank's tokens, which are consecutive.
// PARTS-LABEL: func.func private @embed(
// PARTS:       sharding.slice %{{.*}} dim 1 over "sp" : (tensor<1x8xi64>) -> tensor<1x4xi64>
func.func private @embed(%ids: tensor<1x8xi64>, %w: tensor<16x8xf32> {sharding.param = "table"}) -> tensor<1x8x8xf32> {
  %0 = aten.embedding %w, %ids : (tensor<16x8xf32>, tensor<1x8xi64>) -> tensor<1x8x8xf32>
  return %0 : tensor<1x8x8xf32>
}

sharding.param "table" : tensor<16x8xf32> init <zeros>
func.func private @loss(%x: tensor<1x8x8xf32>, %labels: tensor<1x8xi64>) -> tensor<f32> {
  %0 = aten.view %x, [8, 8] : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
  %1 = aten._log_softmax %0, 1 : tensor<8x8xf32>
  %2 = aten.view %labels, [8] : (tensor<1x8xi64>) -> tensor<8xi64>
  %output, %total_weight = aten.nll_loss_forward %1, %2 : (tensor<8x8xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  return %output : tensor<f32>
}

sharding.graph @model(%ids: tensor<1x8xi64>, %labels: tensor<1x8xi64>) {
  %0 = sharding.call @embed(%ids) at "" : (tensor<1x8xi64>) -> tensor<1x8x8xf32>
  %1 = sharding.call @layer(%0) at "layers.0" : (tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
  %2 = sharding.call @loss(%1, %labels) at "" : (tensor<1x8x8xf32>, tensor<1x8xi64>) -> tensor<f32>
  sharding.return %2 : tensor<f32>
}
