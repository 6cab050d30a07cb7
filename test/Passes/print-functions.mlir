// RUN: accel-opt opt %s -o /dev/null --pass-pipeline='builtin.module(differentiate,select-saved-tensors,partition,print-functions)' | FileCheck %s --check-prefixes=CHECK,WRITE
// RUN: accel-opt opt %s -o /dev/null --pass-pipeline='builtin.module(differentiate,select-saved-tensors,partition,print-functions{accumulate=true})' | FileCheck %s --check-prefixes=CHECK,ADD
// RUN: accel-opt opt %s -o /dev/null --pass-pipeline='builtin.module(differentiate,select-saved-tensors,partition,print-functions{gradients=bf16})' | FileCheck %s --check-prefixes=CHECK,CAST

// A view names its base, the slot of its storage; slots are freed at their last
// use, outputs, parameters and gradients never.
// CHECK:      {"name": "linear",
// CHECK-NEXT:   "slots": {{\[}}["f32",[4,3]],["f32",[2,3]],["f32",[3,2],1],["f32",[4,2]]],
// CHECK-NEXT:   "inputs": [0],
// CHECK-NEXT:   "params": {{\[}}[1,"weight"]],
// CHECK-NEXT:   "gradients": [],
// CHECK-NEXT:   "outputs": [3],
// CHECK:        "op":"aten::t","args":["%1"],"results":[2]
// CHECK:        "op":"aten::mm","args":["%0","%2"],"results":[3],"frees":[0,2]

// The matmul that is the weight's gradient goes to its destination.
// CHECK:      {"name": "linear.backward",
// CHECK:        "gradients": {{\[}}[[[G:[0-9]+]],"weight"]],
// WRITE:        "op":"aten::mm.out","args":["%{{.*}}","%0","%[[G]]"],"frees"
// ADD:          "op":"aten::addmm.out","args":["%[[G]]","%{{.*}}","%0",1,1,"%[[G]]"],"frees"
// CAST:         "op":"aten::mm","args":["%{{.*}}","%0"],"results":[[[P:[0-9]+]]]
// CAST-NEXT:    "op":"aten::copy_","args":["%[[G]]","%[[P]]",false],"frees":[[[P]]]
func.func private @linear(%x: tensor<4x3xf32>, %w: tensor<2x3xf32> {sharding.param = "weight"}) -> tensor<4x2xf32> {
  %0 = aten.t %w : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = aten.mm %x, %0 : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}

// Rows of a table's gradient are added in place, without a table of their own.
// CHECK:      {"name": "table.backward",
// CHECK:        "gradients": {{\[}}[[[T:[0-9]+]],"weight"]],
// WRITE:        "op":"aten::view","args":["%{{.*}}",[8,3]]
// WRITE:        "op":"aten::view","args":["%0",[8]]
// WRITE:        "op":"aten::zero_","args":["%[[T]]"]
// WRITE-NEXT:   "op":"aten::index_add_","args":["%[[T]]",0,
// ADD-NOT:      aten::zero_
// ADD:          "op":"aten::index_add_","args":["%[[T]]",0,
func.func private @table(%i: tensor<2x4xi64>, %t: tensor<9x3xf32> {sharding.param = "weight"}) -> tensor<2x4x3xf32> {
  %0 = aten.embedding %t, %i : (tensor<9x3xf32>, tensor<2x4xi64>) -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}
