// RUN: accel-opt opt %s | accel-opt opt | FileCheck %s
// RUN: accel-opt opt %s --differentiate | FileCheck %s --check-prefix=JOINT

// CHECK-LABEL: @Linear
// CHECK: aten.lora_projections {{.*}} {scales = array<f64: 2.000000e+00>}
// With dropout the input is saved beside what is multiplied, which is one tensor else.
// JOINT-LABEL: @Linear.joint
// JOINT: aten.mm %[[GRAD:arg[0-9]+]], %arg5
// JOINT: aten.alpha_mm
// JOINT: aten.alpha_mm
// JOINT: aten.mm %[[GRAD]], %arg3
// JOINT: aten.mul.Scalar %{{.*}}, 2.0
// JOINT: %[[A:.*]] = aten.hold %{{.*}}, %arg1, false
// Turned gradients of matrices are copied, as AccumulateGrad does.
// JOINT: aten.clone %[[A]]
func.func private @Linear(%y: tensor<8x4xf32>, %x: tensor<8x6xf32>, %dropped: tensor<8x6xf32>, %w: tensor<4x6xf32> {sharding.param = "weight"}, %a: tensor<2x6xf32> {sharding.param = "a"}, %b: tensor<4x2xf32> {sharding.param = "b"}) -> tensor<8x4xf32> {
  %0 = aten.lora_projections %y, %x, %dropped, %w, %a, %b {scales = array<f64: 2.0>} : (tensor<8x4xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<4x6xf32>, tensor<2x6xf32>, tensor<4x2xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
