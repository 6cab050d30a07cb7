// RUN: accel-opt opt %s --sum-products | FileCheck %s
// RUN: accel-opt opt %s --sum-products -o - | sed 's/\.joint//' | accel-opt opt - -o /dev/null --print-functions | FileCheck %s --check-prefix=PLAN

#input = #aten.binding<input 0>
#param = #aten.binding<param 0>
#tangent = #aten.binding<tangent 0>
#output = #aten.binding<output 0>

// What q, k and v read: each product is added to the one before it, and the sum
// of something else stays.
// CHECK-LABEL: @three.joint
// CHECK:       aten.mm
// CHECK-NEXT:  %[[A:.*]] = aten.mm
// CHECK-NEXT:  %[[B:.*]] = aten.addmm %[[A]], %{{.*}}
// CHECK-NEXT:  %[[C:.*]] = aten.addmm %[[B]], %{{.*}}
// CHECK-NEXT:  %[[V:.*]] = aten.view %[[C]], [2, 3, 8]
// CHECK-NEXT:  %[[R:.*]] = aten.add.Tensor %{{.*}}, %[[V]]
// CHECK-NEXT:  return %{{.*}}, %[[R]]

// One buffer, and no other operator.
// PLAN:      "op":"aten::mm","args":["%2","%1"],"results":{{\[}}[[A:[0-9]+]]]
// PLAN-NEXT: "op":"aten::addmm.out","args":["%[[A]]","%2","%1",1,1,"%[[A]]"]
// PLAN-NEXT: "op":"aten::addmm.out","args":["%[[A]]","%2","%1",1,1,"%[[A]]"]
// PLAN-NEXT: "op":"aten::view"
// PLAN-NEXT: "op":"aten::add.out"
func.func private @three.joint(%x: tensor<6x4xf32> {aten.binding = #input}, %w: tensor<4x8xf32> {aten.binding = #param}, %g: tensor<6x4xf32> {aten.binding = #tangent}, %rest: tensor<2x3x8xf32> {aten.binding = #aten.binding<carry 0>}) -> (tensor<6x8xf32> {aten.binding = #output}, tensor<2x3x8xf32> {aten.binding = #aten.binding<input_grad 0>}) {
  %y = aten.mm %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %0 = aten.mm %g, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %1 = aten.view %0, [2, 3, 8] : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %2 = aten.mm %g, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %3 = aten.view %2, [2, 3, 8] : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %4 = aten.add.Tensor %1, %3 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %5 = aten.mm %g, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %6 = aten.view %5, [2, 3, 8] : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %7 = aten.add.Tensor %4, %6 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %8 = aten.add.Tensor %rest, %7 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y, %8 : tensor<6x8xf32>, tensor<2x3x8xf32>
}

// The forward's sums, a product that somebody else reads, and a parameter's
// gradient, which plans add up in its buffer, stay.
// CHECK-LABEL: @others.joint
// CHECK-NOT:   aten.addmm
// CHECK:       return
func.func private @others.joint(%x: tensor<6x4xf32> {aten.binding = #input}, %w: tensor<4x8xf32> {aten.binding = #param}, %g: tensor<6x4xf32> {aten.binding = #tangent}) -> (tensor<6x8xf32> {aten.binding = #output}, tensor<6x8xf32> {aten.binding = #aten.binding<input_grad 0>}, tensor<6x8xf32> {aten.binding = #aten.binding<input_grad 1>}, tensor<6x8xf32> {aten.binding = #aten.binding<param_grad 0>}) {
  %a = aten.mm %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %b = aten.mm %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %y = aten.add.Tensor %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %0 = aten.mm %g, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %1 = aten.mm %g, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %2 = aten.add.Tensor %0, %1 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %3 = aten.mm %g, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %4 = aten.mm %g, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %5 = aten.add.Tensor %3, %4 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y, %2, %0, %5 : tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>
}
