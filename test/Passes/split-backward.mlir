// A backward is parted where the graph says so: gradients of inputs first, and
// what makes those of weights from what the first part leaves.
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(differentiate,select-saved-tensors{mode=none},partition,split-backward)' | FileCheck %s
// RUN: sed 's/ attributes {sharding.split_backward}//' %s | accel-opt opt --pass-pipeline='builtin.module(differentiate,select-saved-tensors{mode=none},partition,split-backward)' | FileCheck %s --check-prefix=WHOLE
// WHOLE-NOT: .weights

sharding.mesh @mesh [#sharding.axis<"pp" = 2>, #sharding.axis<"dp_shard" = 1>]

// The gradient of the first product is made once: it is a result of the first
// part and the third saved value of the second. Nothing of the second reads
// a parameter.
// CHECK-LABEL: func.func private @Mlp.backward(
// CHECK-NOT:     binding<input 0>
// CHECK-SAME:    %[[W1:[a-z0-9]+]]: tensor<6x4xf32> {aten.binding = #aten.binding<param 0>, sharding.param = "up"}
// CHECK-SAME:    -> (tensor<8x4xf32> {aten.binding = #aten.binding<input_grad 0>}, tensor<8x6xf32> {aten.binding = #aten.binding<saved 2>})
// CHECK:         %[[D:.*]] = aten.silu_backward
// CHECK:         %[[DX:.*]] = aten.mm %[[D]], %[[W1]]
// CHECK-NOT:     aten.mm
// CHECK:         return %[[DX]], %[[D]]
// CHECK-LABEL: func.func private @Mlp.backward.weights(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<8x4xf32> {aten.binding = #aten.binding<input 0>}
// CHECK-SAME:    %[[H:[a-z0-9]+]]: tensor<8x6xf32> {aten.binding = #aten.binding<saved {{[01]}}>}
// CHECK-SAME:    %[[D:[a-z0-9]+]]: tensor<8x6xf32> {aten.binding = #aten.binding<saved 2>}
// CHECK-NOT:     binding<param
// CHECK-SAME:    %[[G:[a-z0-9]+]]: tensor<8x4xf32> {aten.binding = #aten.binding<tangent 0>}
// CHECK-SAME:    -> (tensor<6x4xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "up"}, tensor<4x6xf32> {aten.binding = #aten.binding<param_grad 1>, sharding.param = "down"})
// CHECK-DAG:     %[[DT:.*]] = aten.t %[[D]]
// CHECK-DAG:     %[[GT:.*]] = aten.t %[[G]]
// CHECK-DAG:     aten.mm %[[DT]], %[[X]]
// CHECK-DAG:     aten.mm %[[GT]], %[[H]]
func.func private @Mlp(%x: tensor<8x4xf32>, %up: tensor<6x4xf32> {sharding.param = "up"}, %down: tensor<4x6xf32> {sharding.param = "down"}) -> tensor<8x4xf32> {
  %0 = aten.t %up : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %1 = aten.mm %x, %0 : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %2 = aten.silu %1 : tensor<8x6xf32>
  %3 = aten.t %down : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %4 = aten.mm %2, %3 : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}

// Nothing before it is trained: all of it is of weights.
// CHECK-NOT:   func.func private @Embed.backward(
// CHECK-LABEL: func.func private @Embed.backward.weights(
// CHECK:         aten.embedding_dense_backward
func.func private @Embed(%ids: tensor<8xi64>, %w: tensor<10x4xf32> {sharding.param = "weight"}) -> tensor<8x4xf32> {
  %0 = aten.embedding %w, %ids : (tensor<10x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// An operator that makes both gradients at once stays in the first part: the
// weight's arrives as a saved value and is returned as it is.
// CHECK-LABEL: func.func private @Norm.backward(
// CHECK:         %[[R:.*]], %[[R1:.*]], %[[R2:.*]] = aten.native_layer_norm_backward
// CHECK:         return %[[R]], %[[R1]], %[[R2]]
// CHECK-LABEL: func.func private @Norm.backward.weights(
// CHECK-SAME:    %[[DW:[a-z0-9]+]]: tensor<4xf32> {aten.binding = #aten.binding<saved 2>}, %[[DB:[a-z0-9]+]]: tensor<4xf32> {aten.binding = #aten.binding<saved 3>})
// CHECK-NEXT:    return %[[DW]], %[[DB]]
func.func private @Norm(%x: tensor<8x4xf32>, %w: tensor<4xf32> {sharding.param = "weight"}, %b: tensor<4xf32> {sharding.param = "bias"}) -> tensor<8x4xf32> {
  %0:3 = aten.native_layer_norm %x, %w bias %b, [4] {eps = 1.0e-05 : f64, stats = f32} : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
  return %0#0 : tensor<8x4xf32>
}

// Without parameters there is nothing to part.
// CHECK-LABEL: func.func private @Loss.backward(
// CHECK-NOT:   @Loss.backward.weights
func.func private @Loss(%x: tensor<8x4xf32>, %labels: tensor<8xi64>) -> tensor<f32> {
  %0 = aten._log_softmax %x, 1 : tensor<8x4xf32>
  %1:2 = aten.nll_loss_forward %0, %labels : (tensor<8x4xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  return %1#0 : tensor<f32>
}

sharding.param "embed.weight" : tensor<10x4xf32> init <ones>
sharding.param "mlp.up" : tensor<6x4xf32> init <ones>
sharding.param "mlp.down" : tensor<4x6xf32> init <ones>
sharding.param "norm.weight" : tensor<4xf32> init <ones>
sharding.param "norm.bias" : tensor<4xf32> init <ones>
sharding.graph @model(%ids: tensor<8xi64>, %labels: tensor<8xi64>) attributes {sharding.split_backward} {
  %0 = sharding.call @Embed(%ids) at "embed" : (tensor<8xi64>) -> tensor<8x4xf32>
  %1 = sharding.call @Mlp(%0) at "mlp" : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = sharding.call @Norm(%1) at "norm" : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = sharding.call @Loss(%2, %labels) at "" : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<f32>
  sharding.return %3 : tensor<f32>
}
