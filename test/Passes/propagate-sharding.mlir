// Shardings that follow from those of parameters.
// RUN: accel-opt opt %s --propagate-sharding | FileCheck %s
// What flowed is derived again, to the same.
// RUN: accel-opt opt %s --propagate-sharding --propagate-sharding | FileCheck %s

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"tp" = 2>]
sharding.param "layers.0.up" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"colwise">>}
sharding.param "layers.0.down" : tensor<8x16xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"rowwise">>}
sharding.param "layers.1.up" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"colwise">>}
sharding.param "layers.1.down" : tensor<8x16xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"rowwise">>}

// Columns stay sharded through what is pointwise, and contract with rows to a
// sum; whoever reads it has the whole sum.
// CHECK-LABEL: func.func private @mlp(
// CHECK-SAME:  %[[X:.*]]: tensor<4x8xf32>,
// CHECK-SAME:  {sharding.param = "up", sharding.spec = #sharding.spec<["tp"], []>}
// CHECK-SAME:  {sharding.param = "down", sharding.spec = #sharding.spec<[], ["tp"]>}) -> tensor<4x8xf32> {
// CHECK:       aten.t %{{.*}} {sharding.specs = [#sharding.spec<[], ["tp"]>]}
// CHECK:       aten.mm %[[X]], %{{.*}} {sharding.specs = [#sharding.spec<[], ["tp"]>]}
// CHECK:       aten.silu %{{.*}} {sharding.specs = [#sharding.spec<[], ["tp"]>]}
// CHECK:       aten.t %{{.*}} {sharding.specs = [#sharding.spec<["tp"], []>]}
// CHECK:       aten.mm %{{.*}} {sharding.specs = [#sharding.spec<[], [] partial ["tp"]>]}
// CHECK:       aten.add.Tensor %{{[^{]*}} : (tensor<4x8xf32>
func.func private @mlp(%x: tensor<4x8xf32>, %up: tensor<16x8xf32> {sharding.param = "up"}, %down: tensor<8x16xf32> {sharding.param = "down"}) -> tensor<4x8xf32> {
  %0 = aten.t %up : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %1 = aten.mm %x, %0 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %2 = aten.silu %1 : tensor<4x16xf32>
  %3 = aten.t %down : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %4 = aten.mm %2, %3 : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %5 = aten.add.Tensor %x, %4 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}

// The gradient of a column weight is sharded as it is; that of the input is a
// sum. A parameter's gradient may leave as a sum, another value not.
// CHECK-LABEL: func.func private @mlp.joint(
// CHECK-SAME:  -> (tensor<4x8xf32> {aten.binding = #aten.binding<input_grad 0>}, tensor<16x8xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "up", sharding.spec = #sharding.spec<["tp"], []>})
// CHECK:       aten.mm %{{.*}} {sharding.specs = [#sharding.spec<["tp"], []>]} : {{.*}} -> tensor<16x8xf32>
// CHECK:       aten.mm %{{.*}} {sharding.specs = [#sharding.spec<[], [] partial ["tp"]>]} : {{.*}} -> tensor<4x8xf32>
func.func private @mlp.joint(%x: tensor<4x8xf32> {aten.binding = #aten.binding<input 0>},
                             %up: tensor<16x8xf32> {aten.binding = #aten.binding<param 0>, sharding.param = "up"},
                             %down: tensor<8x16xf32> {aten.binding = #aten.binding<param 1>, sharding.param = "down"},
                             %g: tensor<4x8xf32> {aten.binding = #aten.binding<tangent 0>})
    -> (tensor<4x8xf32> {aten.binding = #aten.binding<input_grad 0>}, tensor<16x8xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "up"}) {
  %0 = aten.mm %g, %down : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = aten.t %0 : (tensor<4x16xf32>) -> tensor<16x4xf32>
  %2 = aten.mm %1, %x : (tensor<16x4xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
  %3 = aten.mm %0, %up : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return %3, %2 : tensor<4x8xf32>, tensor<16x8xf32>
}

// CHECK-LABEL: sharding.graph @model
// CHECK-NOT:   sharding.specs
sharding.graph @model(%x: tensor<4x8xf32>) {
  %0 = sharding.call @mlp(%x) at "layers.0" : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = sharding.call @mlp(%0) at "layers.1" : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = sharding.call @loss(%1) at "" : (tensor<4x8xf32>) -> tensor<f32>
  sharding.return %2 : tensor<f32>
}

func.func private @loss(%x: tensor<4x8xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<4x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
