// RUN: accel-opt opt %s | accel-opt opt | FileCheck %s
// RUN: accel-opt opt %s --mlir-print-op-generic | accel-opt opt | FileCheck %s

// CHECK-LABEL: func.func @losses
func.func @losses(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %h: tensor<4x6xbf16>, %w: tensor<6xf32>) {
  // CHECK: aten.mse_loss {{.*}} {reduction = 1 : i64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<f32>
  %0 = aten.mse_loss %x, %y {reduction = 1 : i64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<f32>
  // A bf16 x with fp32 targets, as with weights in 16 bits.
  // CHECK: aten.mse_loss {{.*}} -> tensor<4x6xf32>
  %1 = aten.mse_loss %h, %y {reduction = 0 : i64} : (tensor<4x6xbf16>, tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: aten.huber_loss {{.*}} {delta = 5.000000e-01 : f64, reduction = 2 : i64}
  %2 = aten.huber_loss %x, %y {reduction = 2 : i64, delta = 5.0e-01 : f64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<f32>
  // CHECK: aten.binary_cross_entropy_with_logits
  %3 = aten.binary_cross_entropy_with_logits %x, %y, %w {reduction = 1 : i64} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<f32>
  // CHECK: aten.binary_cross_entropy_backward
  %4 = aten.binary_cross_entropy_backward %0, %x, %y {reduction = 1 : i64} : (tensor<f32>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return
}

// CHECK-LABEL: func.func @functions
func.func @functions(%x: tensor<4x6xf32>, %n: tensor<3x1xi32>, %image: tensor<1x2x3x3xf32>) {
  // CHECK: aten.glu {{.*}} -> tensor<4x3xf32>
  %0 = aten.glu %x {dim = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x3xf32>
  // CHECK: aten.log_sigmoid
  %1 = aten.log_sigmoid %x : tensor<4x6xf32>
  // CHECK: aten.prod.dim_int {{.*}} -> tensor<3xi64>
  %2 = aten.prod.dim_int %n {dim = 1 : i64, keepdim = false} : (tensor<3x1xi32>) -> tensor<3xi64>
  // CHECK: aten.linalg_vector_norm {{.*}} ord = 0x7FF0000000000000 : f64
  %3 = aten.linalg_vector_norm %x {ord = 0x7FF0000000000000 : f64, dim = array<i64: 0, 1>, keepdim = false} : (tensor<4x6xf32>) -> tensor<f32>
  // CHECK: aten.upsample_bilinear2d {{.*}} -> tensor<1x2x5x4xf32>
  %4 = aten.upsample_bilinear2d %image {output_size = array<i64: 5, 4>, align_corners = true} : (tensor<1x2x3x3xf32>) -> tensor<1x2x5x4xf32>
  // CHECK: aten.remainder.Scalar {{.*}} -> tensor<3x1xf32>
  %5 = aten.remainder.Scalar %n, 1.5 : (tensor<3x1xi32>) -> tensor<3x1xf32>
  return
}
