// RUN: accel-opt opt %s | accel-opt opt | FileCheck %s
// RUN: accel-opt opt %s --pass-pipeline="builtin.module(differentiate,print-functions)" -o %t | FileCheck %s --check-prefix=PLAN

// A list of tensors, a text, a missing optional and a list of numbers.
// CHECK-LABEL: func.func @stack
// CHECK: aten.opaque "aten::stack"(%{{.*}}, %{{.*}}) {{\[\[}}"%0", "%1"], 0]
// PLAN-DAG: "kind":"opaque","op":"aten::stack","args":{{\[\[}}"%0","%1"],0]
// PLAN-DAG: "kind":"opaque","op":"aten::stack","args":{{\[\[}}"%0","%1"],0,{"text":"backward"},["%2"],[0,1]]
func.func @stack(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = aten.opaque "aten::stack"(%a, %b) [["%0", "%1"], 0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// The second operand is wanted: it is the first tensor of the call.
// CHECK-LABEL: func.func @order
// PLAN-DAG: "op":"aten::div.Tensor_mode","args":["%1","%0",{"text":"trunc"},{"text":"backward"},["%2"],[0]]
func.func @order(%ids: tensor<4xi64>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = aten.opaque "aten::div.Tensor_mode"(%ids, %x) ["%1", "%0", "=trunc"] : (tensor<4xi64>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @optional
// CHECK: aten.opaque "aten::upsample_nearest1d.vec"(%{{.*}}) ["%0", array<i64: 8>, "none"]
func.func @optional(%x: tensor<1x2x4xf32>) -> tensor<1x2x8xf32> {
  %0 = aten.opaque "aten::upsample_nearest1d.vec"(%x) ["%0", array<i64: 8>, "none"] : (tensor<1x2x4xf32>) -> tensor<1x2x8xf32>
  return %0 : tensor<1x2x8xf32>
}
