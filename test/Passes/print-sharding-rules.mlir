// The index ranges of an operator, and which tensors have them.
// RUN: accel-opt opt %s -o /dev/null --pass-pipeline='builtin.module(print-sharding-rules)' | FileCheck %s

func.func @rules(%bias: tensor<4xf32>, %x: tensor<6x8xf32>, %w: tensor<8x4xf32>, %ids: tensor<3xi64>) -> tensor<6x4xf32> {
  // The bias is added once where the contracted dimension is cut.
  // CHECK: {"factors":[{"combine":"sum","form":"none","kind":"parallel","size":6},{"combine":"sum","form":"none","kind":"parallel","size":4},{"combine":"sum","form":"none","kind":"reduction","size":8}],
  // CHECK-SAME: "name":"aten.addmm","once":[0],"operands":[{"dims":{{\[\[}}1]],"partial":[]},{"dims":{{\[\[}}0],[2]],"partial":[]},{"dims":{{\[\[}}2],[1]],"partial":[]}],"results":[{"dims":{{\[\[}}0],[1]],"partial":[2]}],"sizes":[]}
  %0 = aten.addmm %bias, %x, %w : (tensor<4xf32>, tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  // Boundaries that cross: 6 and 4 have a 2 in common, the rest is whole.
  // CHECK: {"factors":[{"combine":"sum","form":"none","kind":"parallel","size":2}],"name":"aten.view"
  // CHECK-SAME: "operands":[{"dims":{{\[\[}}0],[]],"partial":[]}],"results":[{"dims":{{\[\[}}0],[]],"partial":[]}],"sizes":[{"dim":-1,"factor":-1,"name":"size","result":0}]}
  %1 = aten.view %0, [4, 6] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  // CHECK: "form":"rows","kind":"blocked","size":6{{.*}}"name":"aten.embedding"
  %2 = aten.embedding %0, %ids : (tensor<6x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  // Ends between pieces of two, of which every rank takes its part.
  // CHECK: "name":"aten.slice.Tensor"{{.*}}"operands":[{"dims":{{\[\[}}0],[1,3]],"partial":[]}],"results":[{"dims":{{\[\[}}0],[2,3]],"partial":[]}],"sizes":[{"dim":-1,"factor":3,"name":"start","result":0},{"dim":-1,"factor":3,"name":"end","result":0}]
  %4 = aten.slice.Tensor %x, 1[2 : 6 : 1] : (tensor<6x8xf32>) -> tensor<6x4xf32>
  // Nobody knows what this does.
  // CHECK: {"name":"aten.opaque"}
  %3 = aten.opaque "aten::celu"(%1) ["%0", 1.0] : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<6x4xf32>
}
