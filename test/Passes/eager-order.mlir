// RUN: accel-opt opt %s --pass-pipeline='builtin.module(select-kernels{device=cuda eager=true},differentiate)' | FileCheck %s
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(select-kernels{device=cuda},differentiate)' | FileCheck %s --check-prefix=OWN

// A part that the model computes ahead comes before all that it does not read;
// autograd runs it backward behind that.
// CHECK-LABEL: func.func private @ahead(
// CHECK-NEXT:    %[[N:.*]] = aten.neg %arg0
// CHECK-NEXT:    %[[E:.*]] = aten.exp %[[N]]
// CHECK-NEXT:    aten.relu %[[E]] {aten.ahead}
// CHECK-NEXT:    aten.tanh %[[N]]
// OWN-LABEL: func.func private @ahead(
// OWN-NEXT:    %[[N:.*]] = aten.neg %arg0
// OWN-NEXT:    aten.tanh %[[N]]
func.func private @ahead(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %n = aten.neg %x : tensor<4x3xf32>
  %0 = aten.tanh %n : tensor<4x3xf32>
  %1 = aten.exp %n : tensor<4x3xf32>
  %2 = aten.relu %1 {aten.ahead} : tensor<4x3xf32>
  %3 = aten.add.Tensor %0, %2 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %3 : tensor<4x3xf32>
}

// MulBackward0 computes the second operand's gradient first, and sums up the
// broadcast one when both are there.
// CHECK-LABEL: func.func private @product.joint
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<4x3xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<4x1xf32> {{.*}}, %[[G:[a-z0-9]+]]: tensor<4x3xf32>
// CHECK:         %[[GB:.*]] = aten.mul.Tensor %[[G]], %[[X]]
// CHECK-NEXT:    %[[GX:.*]] = aten.mul.Tensor %[[G]], %[[B]]
// CHECK-NEXT:    aten.sum.dim_IntList %[[GB]], [1], true
// OWN-LABEL: func.func private @product.joint
// OWN-SAME:    %[[X:[a-z0-9]+]]: tensor<4x3xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<4x1xf32> {{.*}}, %[[G:[a-z0-9]+]]: tensor<4x3xf32>
// OWN:         aten.mul.Tensor %[[G]], %[[B]]
// OWN-NEXT:    %[[GB:.*]] = aten.mul.Tensor %[[G]], %[[X]]
// OWN-NEXT:    aten.sum.dim_IntList %[[GB]], [1], true
func.func private @product(%x: tensor<4x3xf32>, %b: tensor<4x1xf32>) -> tensor<4x3xf32> {
  %0 = aten.mul.Tensor %x, %b : (tensor<4x3xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
