// RUN: accel-opt opt %s | accel-opt opt | FileCheck %s

// A Linear's weight is [out, in], a Conv1D's [in, out]; norms are in the dtype of the matrices. The frame holds a
// wide copy of the weight where the dtypes differ; autograd keeps the sum of a Conv1D where they are the same.

// CHECK: aten.dora_norm %arg0, %arg1, %arg2 {scale = 2.000000e+00 : f64, transposed = false} : (tensor<8x4xbf16>, tensor<2x4xf32>, tensor<8x2xf32>) -> (tensor<8xf32>, tensor<88xf32>, tensor<0xf32>)
func.func @linear(%w: tensor<8x4xbf16>, %a: tensor<2x4xf32>, %b: tensor<8x2xf32>) -> tensor<8xf32> {
  %0:3 = aten.dora_norm %w, %a, %b {scale = 2.0 : f64, transposed = false} : (tensor<8x4xbf16>, tensor<2x4xf32>, tensor<8x2xf32>) -> (tensor<8xf32>, tensor<88xf32>, tensor<0xf32>)
  return %0#0 : tensor<8xf32>
}

// CHECK: transposed = true} {{.*}} -> (tensor<8xf32>, tensor<56xf32>, tensor<8x4xf32>)
// CHECK: aten.hold %arg1, {{.*}}, true : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
func.func @conv1d(%w: tensor<4x8xf32>, %a: tensor<2x4xf32>, %b: tensor<8x2xf32>) -> tensor<8xf32> {
  %0:3 = aten.dora_norm %w, %a, %b {scale = 2.0 : f64, transposed = true} : (tensor<4x8xf32>, tensor<2x4xf32>, tensor<8x2xf32>) -> (tensor<8xf32>, tensor<56xf32>, tensor<8x4xf32>)
  %1 = aten.hold %a, %0#2, true : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  return %0#0 : tensor<8xf32>
}
