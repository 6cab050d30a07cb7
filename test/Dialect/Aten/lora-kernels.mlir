// RUN: accel-opt opt %s | accel-opt opt | FileCheck %s

// CHECK-LABEL: @others
func.func private @others(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %z: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: aten.alpha_mm %{{.*}}, %{{.*}} {alpha = 2.000000e+00 : f64}
  %0 = aten.alpha_mm %x, %y {alpha = 2.0 : f64} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  // CHECK: aten.alpha_addmm
  %1 = aten.alpha_addmm %0, %x, %y {alpha = 0.5 : f64} : (tensor<2x4xf32>, tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  // CHECK: aten.geglu %{{.*}}, %{{.*}} : tensor<2x4xf32>
  %2 = aten.geglu %1, %z : tensor<2x4xf32>
  // CHECK: aten.glu_in_place_backward %{{.*}} {gelu = true}
  %3:3 = aten.glu_in_place_backward %2, %1, %z {gelu = true} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  return %3#1 : tensor<2x4xf32>
}
