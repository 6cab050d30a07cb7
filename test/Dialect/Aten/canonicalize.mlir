// RUN: accel-opt opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @double_transposition
// CHECK-NEXT: return %arg0
func.func @double_transposition(%w: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %0 = aten.t %w : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %1 = aten.t %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @views
// CHECK-NEXT: return %arg0
func.func @views(%x: tensor<6x2xf32>) -> tensor<6x2xf32> {
  %0 = aten.view %x, [12] : (tensor<6x2xf32>) -> tensor<12xf32>
  %1 = aten.view %0, [6, 2] : (tensor<12xf32>) -> tensor<6x2xf32>
  return %1 : tensor<6x2xf32>
}

// CHECK-LABEL: func.func @casts
// CHECK-NEXT: return %arg0
func.func @casts(%x: tensor<6xf32>, %y: tensor<2xf32>) -> tensor<6xf32> {
  %0 = aten._to_copy %x, f32 : (tensor<6xf32>) -> tensor<6xf32>
  %1 = aten.type_as %0, %y : (tensor<6xf32>, tensor<2xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// A cast there and back loses bits.
// CHECK-LABEL: func.func @round_trip
// CHECK-COUNT-2: aten._to_copy
func.func @round_trip(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = aten._to_copy %x, bf16 : (tensor<6xf32>) -> tensor<6xbf16>
  %1 = aten._to_copy %0, f32 : (tensor<6xbf16>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
