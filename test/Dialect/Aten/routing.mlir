// RUN: accel-opt opt %s | accel-opt opt | FileCheck %s

// CHECK-LABEL: func.func @router
// CHECK: aten._softmax %arg0, 1 : tensor<16x8xf32>
// CHECK: aten.topk %{{.*}}, 2, 1 : (tensor<16x8xf32>) -> (tensor<16x2xf32>, tensor<16x2xi64>)
// CHECK: aten.value_selecting_reduction_backward %{{.*}}, %{{.*}}, 1, [16, 8]
// CHECK: aten._softmax_backward_data %{{.*}}, %{{.*}}, 1, f32
func.func @router(%x: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %p = aten._softmax %x, 1 : tensor<16x8xf32>
  %v, %i = aten.topk %p, 2, 1 : (tensor<16x8xf32>) -> (tensor<16x2xf32>, tensor<16x2xi64>)
  %g = aten.value_selecting_reduction_backward %v, %i, 1, [16, 8] : (tensor<16x2xf32>, tensor<16x2xi64>) -> tensor<16x8xf32>
  %0 = aten._softmax_backward_data %g, %p, 1, f32 : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK: aten.sort.stable %arg0, 0, false
// CHECK: aten.floor_divide.Scalar %{{.*}}, 2 : tensor<32xi64>
// CHECK: aten.searchsorted.Tensor %{{.*}}, %arg1, true, true : (tensor<32xi64>, tensor<8xi64>) -> tensor<8xi32>
// CHECK: aten.scatter.src
// CHECK: aten.histc %arg2, 8[0 : 8] : (tensor<32xf32>) -> tensor<8xf32>
func.func @rows(%ids: tensor<32xi64>, %e: tensor<8xi64>, %f: tensor<32xf32>) -> (tensor<8xi32>, tensor<32xi64>, tensor<8xf32>) {
  %v, %p = aten.sort.stable %ids, 0, false : (tensor<32xi64>) -> (tensor<32xi64>, tensor<32xi64>)
  %t = aten.floor_divide.Scalar %p, 2 : tensor<32xi64>
  %ends = aten.searchsorted.Tensor %v, %e, true, true : (tensor<32xi64>, tensor<8xi64>) -> tensor<8xi32>
  %back = aten.scatter.src %p, %p, %t {dim = 0 : i64} : (tensor<32xi64>, tensor<32xi64>, tensor<32xi64>) -> tensor<32xi64>
  %h = aten.histc %f, 8 [0 : 8] : (tensor<32xf32>) -> tensor<8xf32>
  return %ends, %back, %h : tensor<8xi32>, tensor<32xi64>, tensor<8xf32>
}

// CHECK-LABEL: func.func @experts
// CHECK: aten._grouped_mm %arg0, %arg1, %arg2 : (tensor<32x16xf32>, tensor<8x16x24xf32>, tensor<8xi32>) -> tensor<32x24xf32>
func.func @experts(%x: tensor<32x16xf32>, %w: tensor<8x16x24xf32>, %ends: tensor<8xi32>) -> tensor<8x24x16xf32> {
  %y = aten._grouped_mm %x, %w, %ends : (tensor<32x16xf32>, tensor<8x16x24xf32>, tensor<8xi32>) -> tensor<32x24xf32>
  %t = aten.t %y : (tensor<32x24xf32>) -> tensor<24x32xf32>
  // CHECK: aten._grouped_mm %arg0, %arg1, %arg2 rows 16 :
  %b = aten._grouped_mm %x, %w, %ends rows 16 : (tensor<32x16xf32>, tensor<8x16x24xf32>, tensor<8xi32>) -> tensor<32x24xf32>
  // CHECK: aten._grouped_mm {{.*}} -> tensor<8x24x16xf32>
  %g = aten._grouped_mm %t, %x, %ends : (tensor<24x32xf32>, tensor<32x16xf32>, tensor<8xi32>) -> tensor<8x24x16xf32>
  return %g : tensor<8x24x16xf32>
}
