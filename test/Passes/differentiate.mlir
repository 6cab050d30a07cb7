// RUN: accel-opt opt %s --differentiate --split-input-file | FileCheck %s

// The weight's gradient is a matmul in the weight's own layout; t of t is
// gone.
// CHECK-LABEL: func.func private @linear.joint
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32> {aten.binding = #aten.binding<input 0>}
// CHECK-SAME: %[[W:.*]]: tensor<2x3xf32> {aten.binding = #aten.binding<param 0>, sharding.param = "weight"}
// CHECK-SAME: %[[G:.*]]: tensor<4x2xf32> {aten.binding = #aten.binding<tangent 0>}
// CHECK-SAME: -> (tensor<4x2xf32> {aten.binding = #aten.binding<output 0>}, tensor<4x3xf32> {aten.binding = #aten.binding<input_grad 0>}, tensor<2x3xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "weight"})
// CHECK:      %[[Y:.*]] = aten.mm %[[X]]
// CHECK:      %[[GT:.*]] = aten.t %[[G]]
// CHECK-NEXT: %[[GW:.*]] = aten.mm %[[GT]], %[[X]] : {{.*}} -> tensor<2x3xf32>
// CHECK-NEXT: %[[GX:.*]] = aten.mm %[[G]], %[[W]] : {{.*}} -> tensor<4x3xf32>
// CHECK-NEXT: return %[[Y]], %[[GX]], %[[GW]]
func.func private @linear(%x: tensor<4x3xf32>, %w: tensor<2x3xf32> {sharding.param = "weight"}) -> tensor<4x2xf32> {
  %0 = aten.t %w : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = aten.mm %x, %0 : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}

// -----

// The halves of a rotary embedding come back as one cat.
// CHECK-LABEL: func.func private @halves.joint
// CHECK-NOT:  aten.slice_backward
// CHECK:      %[[FORWARD:.*]] = aten.cat
// CHECK:      %[[BACKWARD:.*]] = aten.cat %{{.*}}, %{{.*}} dim 1 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: return %[[FORWARD]], %[[BACKWARD]]
func.func private @halves(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.slice.Tensor %x, 1 [0 : 3 : 1] : (tensor<4x6xf32>) -> tensor<4x3xf32>
  %1 = aten.slice.Tensor %x, 1 [3 : 6 : 1] : (tensor<4x6xf32>) -> tensor<4x3xf32>
  %2 = aten.neg %1 : tensor<4x3xf32>
  %3 = aten.cat %2, %0 dim 1 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}

// -----

// Broadcasting is undone by a sum, several uses add up in autograd's order.
// CHECK-LABEL: func.func private @broadcast.joint
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32> {{.*}}, %[[B:.*]]: tensor<3xf32> {{.*}}, %[[G:.*]]: tensor<4x3xf32> {
// CHECK:      %[[GX:.*]] = aten.mul.Tensor %[[G]], %[[B]]
// CHECK:      %[[GB:.*]] = aten.mul.Tensor %[[G]], %[[X]]
// CHECK:      %[[SUM:.*]] = aten.sum.dim_IntList %[[GB]], [0], true
// CHECK:      %[[ROW:.*]] = aten.view %[[SUM]], [3]
// CHECK:      %[[TOTAL:.*]] = aten.add.Tensor %[[G]], %[[GX]]
// CHECK:      return %{{.*}}, %[[TOTAL]], %[[ROW]]
func.func private @broadcast(%x: tensor<4x3xf32>, %b: tensor<3xf32>) -> tensor<4x3xf32> {
  %0 = aten.mul.Tensor %x, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %1 = aten.add.Tensor %x, %0 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// A gradient whose layout does not allow a view is copied first, as
// Tensor.reshape does.
// CHECK-LABEL: func.func private @reshape.joint
// CHECK:      %[[BACK:.*]] = aten.transpose.int %{{.*}}, 0, 1 : (tensor<4x6xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: %[[COPY:.*]] = aten.clone %[[BACK]]
// CHECK-NEXT: aten.view %[[COPY]], [24]
func.func private @reshape(%x: tensor<24xf32>) -> tensor<4x6xf32> {
  %0 = aten.view %x, [6, 4] : (tensor<24xf32>) -> tensor<6x4xf32>
  %1 = aten.transpose.int %0, 0, 1 : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %2 = aten.clone %1 : tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

// -----

// Integers get no gradient; the loss's kernels have theirs.
// CHECK-LABEL: func.func private @loss.joint
// CHECK-SAME: %[[G:[a-z0-9]*]]: tensor<f32> {aten.binding = #aten.binding<tangent 0>}
// CHECK-SAME: -> (tensor<f32> {aten.binding = #aten.binding<output 0>}, tensor<8x9xf32> {aten.binding = #aten.binding<input_grad 0>})
// CHECK:      %[[LOGP:.*]] = aten._log_softmax
// CHECK-NEXT: %[[LOSS:.*]], %[[COUNT:.*]] = aten.nll_loss_forward %[[LOGP]], %[[T:.*]] :
// CHECK-NEXT: %[[NLL:.*]] = aten.nll_loss_backward %[[G]], %[[LOGP]], %[[T]], %[[COUNT]]
// CHECK-NEXT: aten._log_softmax_backward_data %[[NLL]], %[[LOGP]], 1, f32
func.func private @loss(%x: tensor<8x9xf32>, %t: tensor<8xi64>) -> tensor<f32> {
  %0 = aten._log_softmax %x, 1 : tensor<8x9xf32>
  %1:2 = aten.nll_loss_forward %0, %t : (tensor<8x9xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  return %1#0 : tensor<f32>
}

// -----

// CHECK-LABEL: func.func private @unmodelled.joint
// CHECK: aten.opaque_backward "aten::elu"(%{{.*}}) of(%{{.*}}) ["%0", 1.000000e+00, 1.000000e+00, 1.000000e+00] needed [0]
func.func private @unmodelled(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = aten.opaque "aten::elu"(%x) ["%0", 1.0, 1.0, 1.0] : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Two frozen parameters: nothing is computed for the first layer at all, and
// the second, whose input needs no gradient, gets a variant of its own.
// CHECK-LABEL: func.func private @Layer(
// CHECK-LABEL: func.func private @Layer.v1(
// CHECK-LABEL: func.func private @Layer.v1.joint
// CHECK-SAME:  -> (tensor<4x3xf32> {aten.binding = #aten.binding<output 0>}, tensor<3xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "scale"})
// CHECK-LABEL: func.func private @Layer.v2(
// CHECK-LABEL: func.func private @Layer.v2.joint
// CHECK-SAME:  -> (tensor<4x3xf32> {aten.binding = #aten.binding<output 0>}, tensor<4x3xf32> {aten.binding = #aten.binding<input_grad 0>}, tensor<3xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "scale"})
// CHECK:       sharding.call @Layer(%{{.*}}) at "0"
// CHECK:       sharding.call @Layer.v1(%{{.*}}) at "1"
// CHECK:       sharding.call @Layer.v2(%{{.*}}) at "2"
func.func private @Layer(%x: tensor<4x3xf32>, %s: tensor<3xf32> {sharding.param = "scale"}) -> tensor<4x3xf32> {
  %0 = aten.mul.Tensor %x, %s : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
func.func private @Sum(%x: tensor<4x3xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<4x3xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
sharding.param "0.scale" : tensor<3xf32> init <ones> frozen
sharding.param "1.scale" : tensor<3xf32> init <ones>
sharding.param "2.scale" : tensor<3xf32> init <ones>
sharding.graph @model(%x: tensor<4x3xf32>) {
  %0 = sharding.call @Layer(%x) at "0" : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = sharding.call @Layer(%0) at "1" : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = sharding.call @Layer(%1) at "2" : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %3 = sharding.call @Sum(%2) at "" : (tensor<4x3xf32>) -> tensor<f32>
  sharding.return %3 : tensor<f32>
}

// -----

// A mask that is trained has its gradient from the kernel, a sum over the
// samples that it was expanded to.
// CHECK-LABEL: func.func private @bias.joint
// CHECK:      %{{.*}}, %{{.*}}, %{{.*}}, %[[ALL:.*]] = aten._scaled_dot_product_efficient_attention_mask_backward
// CHECK-SAME: -> (tensor<2x4x32x16xf32>, tensor<2x4x32x16xf32>, tensor<2x4x32x16xf32>, tensor<2x4x32x32xf32>)
// CHECK:      aten.sum.dim_IntList %[[ALL]], [0], true
func.func private @bias(%q: tensor<2x4x32x16xf32>, %b: tensor<1x4x32x32xf32> {sharding.param = "bias"}) -> tensor<2x4x32x16xf32> {
  %0 = aten.expand %b, [2, 4, 32, 32] : (tensor<1x4x32x32xf32>) -> tensor<2x4x32x32xf32>
  %1:2 = aten._scaled_dot_product_efficient_attention %q, %q, %q mask %0 {is_causal = false, scale = 1.0 : f64} : (tensor<2x4x32x16xf32>, tensor<2x4x32x16xf32>, tensor<2x4x32x16xf32>, tensor<2x4x32x32xf32>) -> (tensor<2x4x32x16xf32>, tensor<2x4x32xf32>)
  return %1#0 : tensor<2x4x32x16xf32>
}
