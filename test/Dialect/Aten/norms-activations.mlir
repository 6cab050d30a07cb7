// RUN: accel-opt opt %s | accel-opt opt | FileCheck %s

// CHECK-LABEL: func.func @norms
// CHECK: aten.layer_norm %arg0, %arg1 bias %arg2, 1.000000e-05
// CHECK: aten.layer_norm %{{.*}}, %arg1, 1.000000e-05
func.func @norms(%x: tensor<2x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  %0 = aten.layer_norm %x, %w bias %b, 1.0e-05 : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %1 = aten.layer_norm %0, %w, 1.0e-05 : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @kernels
// CHECK: aten.native_layer_norm %arg0, %arg1 bias %arg2, [8] {{.*}} -> (tensor<2x8xbf16>, tensor<2x1xf32>, tensor<2x1xf32>)
// CHECK: aten.native_layer_norm_backward {{.*}} bias {{.*}} -> (tensor<2x8xbf16>, tensor<8xbf16>, tensor<8xbf16>)
func.func @kernels(%x: tensor<2x8xbf16>, %w: tensor<8xbf16>, %b: tensor<8xbf16>) -> tensor<8xbf16> {
  %y, %m, %r = aten.native_layer_norm %x, %w bias %b, [8] {eps = 1.0e-05 : f64, stats = f32} : (tensor<2x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> (tensor<2x8xbf16>, tensor<2x1xf32>, tensor<2x1xf32>)
  %gx, %gw, %gb = aten.native_layer_norm_backward %y, %x, %m, %r, %w bias %b, [8] {output_mask = array<i1: true, true, true>} : (tensor<2x8xbf16>, tensor<2x8xbf16>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<8xbf16>, tensor<8xbf16>) -> (tensor<2x8xbf16>, tensor<8xbf16>, tensor<8xbf16>)
  return %gb : tensor<8xbf16>
}

// CHECK-LABEL: func.func @activations
// CHECK: aten.gelu %arg0, "none"
// CHECK: aten.gelu_backward %{{.*}}, %arg0, "tanh"
// CHECK: aten.tanh_backward
// CHECK: aten.threshold_backward
func.func @activations(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = aten.gelu %x, "none" : tensor<2x8xf32>
  %1 = aten.gelu_backward %0, %x, "tanh" : tensor<2x8xf32>
  %2 = aten.tanh %1 : tensor<2x8xf32>
  %3 = aten.tanh_backward %2, %x : tensor<2x8xf32>
  %4 = aten.relu %3 : tensor<2x8xf32>
  %5 = aten.threshold_backward %4, %x : tensor<2x8xf32>
  return %5 : tensor<2x8xf32>
}
