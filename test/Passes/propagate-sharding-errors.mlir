// Conflicts, operators without a rule, and calls that disagree.
// RUN: accel-opt opt %s --propagate-sharding --split-input-file --verify-diagnostics | FileCheck %s

// The larger parameter decides.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.param "a" : tensor<8x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"plan">>}
sharding.param "b" : tensor<2x8x8xf32> init <zeros> {spec = #sharding.spec<[], [], ["tp"] because <"plan">>}
// CHECK-LABEL: @larger
func.func private @larger(%a: tensor<8x8xf32> {sharding.param = "a"}, %b: tensor<2x8x8xf32> {sharding.param = "b"}) -> tensor<f32> {
  // CHECK: aten.add.Tensor %{{.*}} {sharding.specs = [#sharding.spec<[], [], ["tp"]>]}
  // expected-remark @+1 {{operand 0 is resharded: another operand of higher priority is sharded otherwise}}
  %0 = aten.add.Tensor %a, %b : (tensor<8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %1 = aten.sum.dim_IntList %0, [0, 1, 2], false : (tensor<2x8x8xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
sharding.graph @model() {
  %0 = sharding.call @larger() at "" : () -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// A user's word goes before a plan's, whatever the bytes.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.param "a" : tensor<8x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"asked" at "job.yaml" : 1 : 1>>}
sharding.param "b" : tensor<2x8x8xf32> init <zeros> {spec = #sharding.spec<[], [], ["tp"] because <"plan">>}
// CHECK-LABEL: @asked
func.func private @asked(%a: tensor<8x8xf32> {sharding.param = "a"}, %b: tensor<2x8x8xf32> {sharding.param = "b"}) -> tensor<f32> {
  // CHECK: aten.add.Tensor %{{.*}} {sharding.specs = [#sharding.spec<[], ["tp"], []>]}
  // expected-remark @+1 {{operand 1 is resharded: another operand of higher priority is sharded otherwise}}
  %0 = aten.add.Tensor %a, %b : (tensor<8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %1 = aten.sum.dim_IntList %0, [0, 1, 2], false : (tensor<2x8x8xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
sharding.graph @model() {
  %0 = sharding.call @asked() at "" : () -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// Heads are not cut: two ranks share none of three.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
// CHECK-LABEL: @heads
func.func private @heads(%x: tensor<4x12xf32> {sharding.spec = #sharding.spec<[], ["tp"] because <"plan">>}) -> tensor<4x3x4xf32> {
  // CHECK: aten.view %{{[^{]*}} : (tensor<4x12xf32>) -> tensor<4x3x4xf32>
  // expected-remark @+1 {{operand 0 is resharded: dimension 1 is sharded over 'tp', which does not divide a part that the operator can be cut into}}
  %0 = aten.view %x, [4, 3, 4] : (tensor<4x12xf32>) -> tensor<4x3x4xf32>
  return %0 : tensor<4x3x4xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
func.func private @whole(%x: tensor<4x12xf32> {sharding.spec = #sharding.spec<[], ["tp"] because <"plan">>}) -> tensor<4x12xf32> {
  // expected-remark @+1 {{operand 0 is resharded: dimension 1 is sharded over 'tp', but the operator needs all of it}}
  %0 = aten.cumsum %x {dim = 1 : i64} : (tensor<4x12xf32>) -> tensor<4x12xf32>
  return %0 : tensor<4x12xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
func.func private @opaque(%x: tensor<4x12xf32> {sharding.spec = #sharding.spec<[], ["tp"] because <"plan">>}) -> tensor<4x12xf32> {
  // expected-remark @+1 {{has no sharding rule: each rank gathers whole operands, 192 bytes, and computes all of it}}
  %0 = aten.opaque "aten::celu"(%x) ["%0", 1.0] : (tensor<4x12xf32>) -> tensor<4x12xf32>
  return %0 : tensor<4x12xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.param "a.w" : tensor<8xf32> init <zeros> {spec = #sharding.spec<["tp"] because <"plan">>}
sharding.param "b.w" : tensor<8xf32> init <zeros>
func.func private @scale(%x: tensor<8xf32>, %w: tensor<8xf32> {sharding.param = "w"}) -> tensor<8xf32> {
  %0 = aten.mul.Tensor %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @loss(%x: tensor<8xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0], false : (tensor<8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
sharding.graph @model(%x: tensor<8xf32>) {
  %0 = sharding.call @scale(%x) at "a" : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{binds 'b.w' as #sharding.spec<[]>, but another call of 'scale' binds its parameter as #sharding.spec<["tp"]>; parameters of one function are sharded alike}}
  %1 = sharding.call @scale(%0) at "b" : (tensor<8xf32>) -> tensor<8xf32>
  %2 = sharding.call @loss(%1) at "" : (tensor<8xf32>) -> tensor<f32>
  sharding.return %2 : tensor<f32>
}

// -----

// Each rank has a part of the gradient of a parameter that is whole.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.param "w" : tensor<8xf32> init <zeros>
func.func private @scale(%x: tensor<8xf32>, %w: tensor<8xf32> {sharding.param = "w"}) -> tensor<f32> {
  %0 = aten.mul.Tensor %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = aten.sum.dim_IntList %0, [0], false : (tensor<8xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
// CHECK-LABEL: @scale.backward
// CHECK-SAME:  -> (tensor<8xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "w"}) {
// expected-remark @+1 {{result 0, a parameter's gradient, is resharded as the parameter}}
func.func private @scale.backward(%x: tensor<8xf32> {aten.binding = #aten.binding<input 0>}) -> (tensor<8xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "w"}) {
  %0 = aten.neg %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
sharding.graph @model(%x: tensor<8xf32>) attributes {sharding.arg_specs = [#sharding.spec<["tp"]>]} {
  %0 = sharding.call @scale(%x) at "" : (tensor<8xf32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// Flattened rows, of which three are no part of a sequence.
sharding.mesh @mesh [#sharding.axis<"cp" = 4>]
// CHECK-LABEL: @crossing
func.func private @crossing(%x: tensor<12x8xf32> {sharding.spec = #sharding.spec<["cp"], [] because <"plan">>}) -> tensor<2x6x8xf32> {
  // CHECK: aten.view %{{[^{]*}} : (tensor<12x8xf32>) -> tensor<2x6x8xf32>
  // expected-remark @+1 {{operand 0 is resharded: dimension 0 is sharded over 'cp', which does not divide a part that the operator can be cut into}}
  %0 = aten.view %x, [2, 6, 8] : (tensor<12x8xf32>) -> tensor<2x6x8xf32>
  return %0 : tensor<2x6x8xf32>
}

// -----

// A slice that begins inside of a piece.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
// CHECK-LABEL: @inside
func.func private @inside(%x: tensor<4x24xf32> {sharding.spec = #sharding.spec<[], [3, "tp"] because <"plan">>}) -> tensor<4x8xf32> {
  // CHECK: aten.slice.Tensor %{{[^{]*}} : (tensor<4x24xf32>) -> tensor<4x8xf32>
  // expected-remark @+1 {{operand 0 is resharded: dimension 1 is sharded over 'tp', which does not divide a part that the operator can be cut into}}
  %0 = aten.slice.Tensor %x, 1[4 : 12 : 1] : (tensor<4x24xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Rows of a table in pieces have no first row to count from.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
// CHECK-LABEL: @rows
func.func private @rows(%w: tensor<8x4xf32> {sharding.spec = #sharding.spec<[2, "tp"], [] because <"plan">>}, %i: tensor<6xi64>) -> tensor<6x4xf32> {
  // CHECK: aten.embedding %{{[^{]*}} : (
  // expected-remark @+1 {{operand 0 is resharded: dimension 0 is sharded over 'tp', which does not divide a part that the operator can be cut into}}
  %0 = aten.embedding %w, %i : (tensor<8x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

