// RUN: accel-opt opt %s --pass-pipeline='builtin.module(separate-eval)' | FileCheck %s
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(separate-eval,differentiate,select-saved-tensors{mode=full},partition)' | FileCheck %s --check-prefix=TRAIN

// CHECK-LABEL: func.func private @drops(
// CHECK-SAME:  attributes {aten.eval = @drops.eval}
// CHECK:       aten.dropout %{{.*}}, 1.000000e-01 key 0
// CHECK:       aten.dropout %{{.*}}, 5.000000e-01 key 1

// CHECK-LABEL: func.func private @drops.eval(
// CHECK-NOT:   aten.dropout
// CHECK:       %[[Y:.*]] = aten.silu %{{.*}} : tensor<4x2xf32>
// CHECK-NEXT:  return %[[Y]]

// Recomputed and on the gradient with the same keys; nothing is saved.
// TRAIN-LABEL: func.func private @drops.backward(
// TRAIN-NOT:   aten.binding<saved
// TRAIN:       aten.dropout %{{.*}}, 5.000000e-01 key 1
// TRAIN:       %[[X:.*]] = aten.dropout %{{.*}}, 1.000000e-01 key 0
// TRAIN:       aten.silu_backward %{{.*}}, %[[X]]
// TRAIN:       aten.dropout %{{.*}}, 1.000000e-01 key 0
func.func private @drops(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = aten.dropout %x, 1.0e-01 key 0 : tensor<4x2xf32>
  %1 = aten.silu %0 : tensor<4x2xf32>
  %2 = aten.dropout %1, 5.0e-01 key 1 : tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}

// CHECK-LABEL: func.func private @plain(
// CHECK-NOT:   aten.eval
// CHECK-NOT:   @plain.eval
func.func private @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = aten.silu %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
