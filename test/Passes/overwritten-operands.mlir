// RUN: accel-opt opt %s -o /dev/null --print-functions | FileCheck %s

// What a plan writes over an operand: a storage that the function made, and
// that nobody reads again.

// A product that is made here is written over by what is made of it, through
// the view; a number is a factor as a tensor.
// CHECK-LABEL: "name": "chain"
// CHECK:      "op":"aten::mm","args":["%0","%1"],"results":[[[P:[0-9]+]]]
// CHECK-NEXT: "op":"aten::view","args":["%[[P]]",[2,3,8]],"results":[[[V:[0-9]+]]]
// CHECK-NEXT: "op":"aten::silu.out","args":["%[[V]]","%[[V]]"]
// CHECK-NEXT: "op":"aten::mul.out","args":["%2","%[[V]]","%[[V]]"]
// CHECK-NEXT: "op":"aten::mul.out","args":["%[[V]]",{"scalar":2.0},"%[[V]]"]
// CHECK-NEXT: ]}
func.func private @chain(%x: tensor<6x4xf32> {aten.binding = #aten.binding<input 0>}, %w: tensor<4x8xf32> {aten.binding = #aten.binding<param 0>}, %y: tensor<2x3x8xf32> {aten.binding = #aten.binding<input 1>}) -> tensor<2x3x8xf32> {
  %0 = aten.mm %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %1 = aten.view %0, [2, 3, 8] : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %2 = aten.silu %1 : tensor<2x3x8xf32>
  %3 = aten.mul.Tensor %y, %2 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %4 = aten.mul.Scalar %3, 2.0 : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %4 : tensor<2x3x8xf32>
}

// Not over what the caller gave, what is read again, what another view of it
// reads, what a smaller or transposed tensor lies in, or what is returned.
// CHECK-LABEL: "name": "kept"
// CHECK-NOT:  .out"
// CHECK:      ]}
func.func private @kept(%x: tensor<4x4xf32> {aten.binding = #aten.binding<input 0>}) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>) {
  %0 = aten.silu %x : tensor<4x4xf32>
  %1 = aten.neg %0 : tensor<4x4xf32>
  %2 = aten.mul.Tensor %0, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = aten.mm %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = aten.t %3 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = aten.mul.Tensor %3, %4 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = aten.mm %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %7 = aten.slice.Tensor %6, 0[0 : 2 : 1] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %8 = aten.silu %7 : tensor<2x4xf32>
  return %1, %0, %2, %5, %8 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>
}
