// RUN: accel-opt opt %s --pass-pipeline='builtin.module(select-kernels{device=cuda},differentiate)' | FileCheck %s
// RUN: not accel-opt opt %s --pass-pipeline='builtin.module(apply-precision{compute=bf16},select-kernels{device=cuda})' 2>&1 | FileCheck %s --check-prefix=BF16
// RUN: not accel-opt opt %s --pass-pipeline='builtin.module(apply-precision{compute=bf16},select-kernels{device=cpu})' 2>&1 | FileCheck %s --check-prefix=BF16

// 12 elements of fp32 are 48 bytes, of bf16 24.
// BF16: error: 'aten._grouped_mm' op has experts' matrices of 12 x 8, and in 'bf16' both sizes must be multiples of 8

// The weights are used as their transposes, so their gradient is computed
// transposed, and is [E, out, in] by views alone.
// CHECK-LABEL: func.func private @experts.joint
// CHECK: %[[W:.*]] = aten.transpose.int %arg1, 1, 2
// CHECK: aten._grouped_mm %arg0, %[[W]], %arg2
// CHECK: %[[T:.*]] = aten.transpose.int %arg3, 0, 1
// CHECK: %[[GW:.*]] = aten._grouped_mm %[[T]], %arg0, %arg2 {{.*}} -> tensor<3x8x12xf32>
// CHECK: %[[GX:.*]] = aten._grouped_mm %arg3, %arg1, %arg2 {{.*}} -> tensor<32x12xf32>
// CHECK: return %{{.*}}, %[[GX]], %{{.*}} : tensor<32x8xf32>, tensor<32x12xf32>, tensor<3x8x12xf32>
func.func private @experts(%x: tensor<32x12xf32>, %w: tensor<3x8x12xf32>, %ends: tensor<3xi32>) -> tensor<32x8xf32> {
  %t = aten.transpose.int %w, 1, 2 : (tensor<3x8x12xf32>) -> tensor<3x12x8xf32>
  %y = aten._grouped_mm %x, %t, %ends : (tensor<32x12xf32>, tensor<3x12x8xf32>, tensor<3xi32>) -> tensor<32x8xf32>
  return %y : tensor<32x8xf32>
}
