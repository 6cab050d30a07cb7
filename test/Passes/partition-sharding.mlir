// Functions of one rank's parts.
// RUN: accel-opt opt %s --propagate-sharding --partition-sharding 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.err
// What has no specs is left alone, so that a second run changes nothing.
// RUN: accel-opt opt %s --propagate-sharding --partition-sharding -o %t.mlir 2>/dev/null
// RUN: accel-opt opt %t.mlir --partition-sharding | diff %t.mlir -

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"tp" = 2>]
sharding.param "layers.0.up" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"colwise">>}
sharding.param "layers.0.down" : tensor<8x16xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"rowwise">>}
sharding.param "layers.0.bias" : tensor<8xf32> init <zeros>
sharding.param "table" : tensor<64x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"rows">>}
sharding.param "head" : tensor<64x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"colwise">>}
// Each rank looks up what lies in its rows, and has zeros for the rest.
// CHECK-LABEL: func.func private @embed(
// CHECK-SAME:  %[[I:.*]]: tensor<2x4xi64>, %[[T:.*]]: tensor<32x8xf32> {sharding.param = "table"}) -> tensor<2x4x8xf32>
// CHECK:       %[[FIRST:.*]] = sharding.coordinate "tp" step 32 : tensor<i64>
// CHECK:       %[[OWN:.*]] = aten.sub.Tensor %[[I]], %[[FIRST]]
// CHECK:       %[[IN:.*]] = aten.clamp %[[OWN]] {max = 31 : i64, min = 0 : i64}
// CHECK:       %[[OTHERS:.*]] = aten.ne.Tensor %[[OWN]], %[[IN]]
// CHECK:       %[[ROWS:.*]] = aten.embedding %[[T]], %[[IN]] :
// CHECK:       %[[MASK:.*]] = aten.unsqueeze %[[OTHERS]], 2
// CHECK:       %[[PART:.*]] = aten.masked_fill.Scalar %[[ROWS]], %[[MASK]] {value = 0.0
// CHECK:       %[[SUM:.*]] = sharding.all_reduce %[[PART]] over ["tp"]
// CHECK:       return %[[SUM]]
func.func private @embed(%i: tensor<2x4xi64>, %t: tensor<64x8xf32> {sharding.param = "table"}) -> tensor<2x4x8xf32> {
  %0 = aten.embedding %t, %i {padding_idx = 3 : i64} : (tensor<64x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}
// The padding row gets no gradient on the rank that has it.
// CHECK-LABEL: func.func private @embed.joint(
// CHECK-SAME:  -> (tensor<32x8xf32>
// CHECK:       %[[OTHERS:.*]] = aten.ne.Tensor
// CHECK:       %[[PADDED:.*]] = aten.eq.Scalar %{{.*}}, 3
// CHECK:       aten.logical_or %[[OTHERS]], %[[PADDED]]
// CHECK:       aten.embedding_dense_backward %{{.*}} {num_weights = 32 : i64} :
// CHECK-NOT:   sharding.all_reduce
func.func private @embed.joint(%i: tensor<2x4xi64> {aten.binding = #aten.binding<input 0>}, %t: tensor<64x8xf32> {aten.binding = #aten.binding<param 0>, sharding.param = "table"}, %g: tensor<2x4x8xf32> {aten.binding = #aten.binding<tangent 0>})
    -> (tensor<64x8xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "table"}) {
  %0 = aten.embedding_dense_backward %g, %i {num_weights = 64 : i64, padding_idx = 3 : i64} : (tensor<2x4x8xf32>, tensor<2x4xi64>) -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}
// Sizes are a rank's; one rank adds the bias, and the sum is reduced where it
// is made.
// CHECK-LABEL: func.func private @mlp(
// CHECK:       aten.view %{{.*}}, [2, 4, 8]
// CHECK:       %[[BIAS:.*]] = sharding.first_rank %{{.*}} over ["tp"] : tensor<8xf32>
// CHECK:       %[[PART:.*]] = aten.addmm %[[BIAS]]
// CHECK:       %[[SUM:.*]] = sharding.all_reduce %[[PART]] over ["tp"]
// CHECK:       return %[[SUM]]
func.func private @mlp(%x: tensor<8x8xf32>, %up: tensor<16x8xf32> {sharding.param = "up"}, %down: tensor<8x16xf32> {sharding.param = "down"}, %b: tensor<8xf32> {sharding.param = "bias"}) -> tensor<8x8xf32> {
  %0 = aten.t %up : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %1 = aten.mm %x, %0 : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = aten.view %1, [2, 4, 16] : (tensor<8x16xf32>) -> tensor<2x4x16xf32>
  %3 = aten.view %2, [8, 16] : (tensor<2x4x16xf32>) -> tensor<8x16xf32>
  %4 = aten.t %down : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %5 = aten.addmm %b, %3, %4 : (tensor<8xf32>, tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}
// What combines along the classes, and is not written otherwise, gets all of
// them.
// CHECK-LABEL: func.func private @head(
// CHECK:       %[[ALL:.*]] = sharding.all_gather %{{.*}} dim 1 over "tp" : (tensor<8x32xf32>) -> tensor<8x64xf32>
// CHECK:       aten._softmax %[[ALL]], 1
// CHECK:       sharding.slice %{{.*}} dim 1 over "tp"
// CHECK:       sharding.all_reduce %{{.*}} over ["tp"] : tensor<f32>
// REMARK:      remark: dimension 1 of operand 0 is gathered: the operator combines, or counts, along it
func.func private @head(%x: tensor<8x8xf32>, %w: tensor<64x8xf32> {sharding.param = "head"}) -> tensor<f32> {
  %0 = aten.t %w : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %1 = aten.mm %x, %0 : (tensor<8x8xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = aten._softmax %1, 1 : tensor<8x64xf32>
  %3 = aten.sum.dim_IntList %2, [0, 1], false : (tensor<8x64xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
// A cross-entropy over a rank's classes: the ranks exchange the largest, the
// sum, and the target's logit, which one of them has.
// CHECK-LABEL: func.func private @loss(
// CHECK:       sharding.all_reduce max %{{.*}} over ["tp"] : tensor<8x1xf32>
// CHECK:       sharding.all_reduce %{{.*}} over ["tp"] : tensor<8x1xf32>
// CHECK:       %[[FIRST:.*]] = sharding.coordinate "tp" step 32
// CHECK:       aten.masked_fill.Scalar %{{.*}} {value = -100 : i64}
// CHECK:       %[[OWN:.*]], %{{.*}} = aten.nll_loss_forward %{{.*}} {reduction = 2 : i64}
// CHECK:       %[[COUNT:.*]] = aten.sum.dim_IntList
// CHECK:       %[[PART:.*]] = aten.div.Tensor %[[OWN]], %[[COUNT]]
// CHECK:       sharding.all_reduce %[[PART]] over ["tp"] : tensor<f32>
// CHECK-NOT:   sharding.all_gather
func.func private @loss(%x: tensor<8x8xf32>, %y: tensor<8xi64>, %w: tensor<64x8xf32> {sharding.param = "head"}) -> tensor<f32> {
  %0 = aten.t %w : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %1 = aten.mm %x, %0 : (tensor<8x8xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = aten._log_softmax %1, 1 : tensor<8x64xf32>
  %3:2 = aten.nll_loss_forward %2, %y : (tensor<8x64xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  return %3#0 : tensor<f32>
}

// CHECK-LABEL: sharding.graph @model(
// CHECK:       sharding.call @loss(%{{.*}}, %{{.*}}) at "" : (tensor<8x8xf32>, tensor<8xi64>) -> tensor<f32>
sharding.graph @model(%i: tensor<2x4xi64>, %y: tensor<8xi64>) {
  %0 = sharding.call @embed(%i) at "" : (tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %1 = sharding.call @flat(%0) at "" : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %2 = sharding.call @mlp(%1) at "layers.0" : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = sharding.call @head(%2) at "" : (tensor<8x8xf32>) -> tensor<f32>
  %4 = sharding.call @loss(%2, %y) at "" : (tensor<8x8xf32>, tensor<8xi64>) -> tensor<f32>
  sharding.return %4 : tensor<f32>
}
func.func private @flat(%x: tensor<2x4x8xf32>) -> tensor<8x8xf32> {
  %0 = aten.view %x, [8, 8] : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
