// RUN: accel-opt opt %s --pass-pipeline='builtin.module(differentiate,select-saved-tensors,partition)' | FileCheck %s --check-prefixes=CHECK,POINT
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(differentiate,select-saved-tensors{mode=full},partition)' | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(differentiate,select-saved-tensors{mode=none},partition)' | FileCheck %s --check-prefixes=CHECK,NONE

// The original stays, for evaluation; the joint is gone.
// CHECK-LABEL: func.func private @mlp(
// CHECK-NOT:   @mlp.joint

// CHECK-LABEL: func.func private @mlp.forward(
// CHECK-SAME:  %[[X:.*]]: tensor<4x3xf32> {aten.binding = #aten.binding<input 0>}, %[[W:.*]]: tensor<2x3xf32> {aten.binding = #aten.binding<param 0>, sharding.param = "weight"})
// POINT-SAME:  -> (tensor<4x2xf32> {aten.binding = #aten.binding<output 0>}, tensor<4x2xf32> {aten.binding = #aten.binding<saved 0>})
// FULL-SAME:   -> (tensor<4x2xf32> {aten.binding = #aten.binding<output 0>})
// NONE-SAME:   -> (tensor<4x2xf32> {aten.binding = #aten.binding<output 0>}, tensor<4x2xf32> {aten.binding = #aten.binding<saved 0>}, tensor<4x2xf32> {aten.binding = #aten.binding<saved 1>})
// CHECK-NOT:   aten.save
// CHECK:       return

// What the backward reads: the silu is recomputed right before its use,
// the view t(w) always.
// POINT-LABEL: func.func private @mlp.backward(
// POINT-SAME:  %[[X:.*]]: tensor<4x3xf32> {aten.binding = #aten.binding<input 0>}, %[[S:.*]]: tensor<4x2xf32> {aten.binding = #aten.binding<saved 0>}, %[[W:.*]]: tensor<2x3xf32> {aten.binding = #aten.binding<param 0>, sharding.param = "weight"}, %[[G:.*]]: tensor<4x2xf32> {aten.binding = #aten.binding<tangent 0>})
// POINT-SAME:  -> (tensor<4x3xf32> {aten.binding = #aten.binding<input_grad 0>}, tensor<2x3xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "weight"})
// POINT:       aten.silu %[[S]]
// POINT-NOT:   aten.mm %[[X]]
// POINT:       aten.mm %{{.*}}, %[[X]] : {{.*}} -> tensor<2x3xf32>
// POINT-NEXT:  aten.mm %{{.*}}, %[[W]] : {{.*}} -> tensor<4x3xf32>

// FULL-LABEL:  func.func private @mlp.backward(
// FULL-NOT:    aten.binding<saved
// FULL:        aten.mm %{{.*}}, %{{.*}} : {{.*}} -> tensor<4x2xf32>
// FULL:        aten.silu
// FULL:        aten.mm

// NONE-LABEL:  func.func private @mlp.backward(
// NONE-NOT:    aten.silu %
// NONE:        aten.silu_backward
func.func private @mlp(%x: tensor<4x3xf32>, %w: tensor<2x3xf32> {sharding.param = "weight"}) -> tensor<4x2xf32> {
  %0 = aten.t %w : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = aten.mm %x, %0 : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %2 = aten.silu %1 : tensor<4x2xf32>
  %3 = aten.mul.Tensor %2, %1 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %3 : tensor<4x2xf32>
}

// A saved value that is not contiguous says so where it arrives, and an output
// that the backward reads is not saved twice.
// CHECK-LABEL: func.func private @attention.forward
// NONE-SAME:   -> (tensor<1x2x8x16xf32> {aten.binding = #aten.binding<output 0>}, tensor<1x2x8xf32> {aten.binding = #aten.binding<saved 0>})
// POINT-LABEL: func.func private @attention.backward
// POINT-SAME:  tensor<1x2x8x16xf32> {aten.binding = #aten.binding<output 0>}
// POINT-SAME:  tensor<1x2x8xf32> {aten.binding = #aten.binding<saved 0>, aten.strides = array<i64: 16, 1, 2>}
func.func private @attention(%q: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  %0:2 = aten._scaled_dot_product_flash_attention_for_cpu %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64} : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> (tensor<1x2x8x16xf32>, tensor<1x2x8xf32>)
  return %0#0 : tensor<1x2x8x16xf32>
}
