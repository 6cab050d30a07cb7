// RUN: accel-opt opt %s --pass-pipeline='builtin.module(differentiate,select-saved-tensors)' | FileCheck %s --check-prefixes=CHECK,POINT
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(differentiate,select-saved-tensors{mode=none})' | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(differentiate,select-saved-tensors{mode=full})' | FileCheck %s --check-prefixes=CHECK,FULL

// The original keeps no marks; the joint's forward has one on each operation,
// its backward none.
// CHECK-LABEL: func.func private @mlp(
// CHECK-NOT:   aten.save
// CHECK-LABEL: func.func private @mlp.joint
// POINT:      aten.mean.dim {{.*}}aten.save = #aten.save<keep, "reduction; default">
// POINT-NEXT: aten.rsqrt {{.*}}aten.save = #aten.save<keep, "statistic; default">
// POINT-NEXT: aten.mul.Tensor {{.*}}aten.save = #aten.save<recompute, "pointwise; default">
// POINT-NEXT: aten.t {{.*}}aten.save = #aten.save<recompute, "view; default">
// POINT-NEXT: aten.mm {{.*}}aten.save = #aten.save<keep, "matmul; default">
// POINT-NEXT: aten.silu {{.*}}aten.save = #aten.save<recompute, "pointwise; default">
// POINT-NEXT: aten.cat {{.*}}aten.save = #aten.save<recompute, "data movement; default">
// NONE:       aten.rsqrt {{.*}}<keep
// NONE-NEXT:  aten.mul.Tensor {{.*}}<keep
// NONE-NEXT:  aten.t {{.*}}<recompute
// NONE-NEXT:  aten.mm {{.*}}<keep
// NONE-NEXT:  aten.silu {{.*}}<keep
// NONE-NEXT:  aten.cat {{.*}}<keep
// FULL-NOT:   <keep
// FULL:       aten.mm {{.*}}<recompute
// FULL-NOT:   <keep
// CHECK:      aten.silu_backward
// CHECK-NOT:  aten.save
func.func private @mlp(%x: tensor<4x3xf32>, %w: tensor<2x3xf32>) -> tensor<4x4xf32> {
  %0 = aten.mean.dim %x, [1], true : (tensor<4x3xf32>) -> tensor<4x1xf32>
  %1 = aten.rsqrt %0 : tensor<4x1xf32>
  %2 = aten.mul.Tensor %x, %1 : (tensor<4x3xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
  %3 = aten.t %w : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %4 = aten.mm %2, %3 : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %5 = aten.silu %4 : tensor<4x2xf32>
  %6 = aten.cat %5, %5 dim 1 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  return %6 : tensor<4x4xf32>
}
