// Shards that interleave: packed layers and merged dimensions.
// RUN: accel-opt opt %s --propagate-sharding --split-input-file --verify-diagnostics | FileCheck %s

// Three layers in one weight, each cut: a slice of a layer has its part, and
// the gradient, put together from those of the layers, is cut as the weight.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.param "qkv" : tensor<8x24xf32> init <zeros> {spec = #sharding.spec<[], [3, "tp"] because <"packed_colwise">>}
// CHECK-LABEL: func.func private @packed(
// CHECK-SAME:  -> (tensor<6x2x4xf32> {sharding.spec = #sharding.spec<[], ["tp"], []>}, tensor<6x16xf32> {sharding.spec = #sharding.spec<[], [2, "tp"]>})
// CHECK:       aten.mm %{{.*}} {sharding.specs = [#sharding.spec<[], [3, "tp"]>]}
// CHECK:       aten.slice.Tensor %{{.*}} {sharding.specs = [#sharding.spec<[], ["tp"]>]}
// CHECK:       aten.view %{{.*}} {sharding.specs = [#sharding.spec<[], ["tp"], []>]}
// CHECK:       aten.slice.Tensor %{{.*}} {sharding.specs = [#sharding.spec<[], [2, "tp"]>]}
func.func private @packed(%x: tensor<6x8xf32>, %w: tensor<8x24xf32> {sharding.param = "qkv"}) -> (tensor<6x2x4xf32>, tensor<6x16xf32>) {
  %0 = aten.mm %x, %w : (tensor<6x8xf32>, tensor<8x24xf32>) -> tensor<6x24xf32>
  %1 = aten.slice.Tensor %0, 1[0 : 8 : 1] : (tensor<6x24xf32>) -> tensor<6x8xf32>
  %2 = aten.view %1, [6, 2, 4] : (tensor<6x8xf32>) -> tensor<6x2x4xf32>
  %3 = aten.slice.Tensor %0, 1[8 : 24 : 1] : (tensor<6x24xf32>) -> tensor<6x16xf32>
  return %2, %3 : tensor<6x2x4xf32>, tensor<6x16xf32>
}
// CHECK-LABEL: func.func private @packed.joint(
// CHECK-SAME:  -> (tensor<8x24xf32> {{{.*}}sharding.spec = #sharding.spec<[], [3, "tp"]>})
// CHECK:       aten.cat %{{.*}} {sharding.specs = [#sharding.spec<[], [3, "tp"]>]}
// CHECK:       aten.slice_backward %{{.*}} {sharding.specs = [#sharding.spec<[], [3, "tp"]>]}
func.func private @packed.joint(%x: tensor<6x8xf32> {aten.binding = #aten.binding<input 0>}, %w: tensor<8x24xf32> {aten.binding = #aten.binding<param 0>, sharding.param = "qkv"}, %g: tensor<6x2x4xf32> {aten.binding = #aten.binding<tangent 0>}, %h: tensor<6x16xf32> {aten.binding = #aten.binding<tangent 1>})
    -> (tensor<8x24xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "qkv"}) {
  %0 = aten.view %g, [6, 8] : (tensor<6x2x4xf32>) -> tensor<6x8xf32>
  %1 = aten.cat %0, %h dim 1 : (tensor<6x8xf32>, tensor<6x16xf32>) -> tensor<6x24xf32>
  %2 = aten.slice_backward %0, [6, 24], 1 [0 : 8 : 1] : (tensor<6x8xf32>) -> tensor<6x24xf32>
  %3 = aten.add.Tensor %1, %2 : (tensor<6x24xf32>, tensor<6x24xf32>) -> tensor<6x24xf32>
  %4 = aten.t %x : (tensor<6x8xf32>) -> tensor<8x6xf32>
  %5 = aten.mm %4, %3 : (tensor<8x6xf32>, tensor<6x24xf32>) -> tensor<8x24xf32>
  return %5 : tensor<8x24xf32>
}
sharding.graph @model(%x: tensor<6x8xf32>) {
  // CHECK: sharding.call @packed(%x) at "" {sharding.specs = [#sharding.spec<[], ["tp"], []>, #sharding.spec<[], [2, "tp"]>]}
  %0:2 = sharding.call @packed(%x) at "" : (tensor<6x8xf32>) -> (tensor<6x2x4xf32>, tensor<6x16xf32>)
  %1 = sharding.call @loss(%0#1) at "" : (tensor<6x16xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}
func.func private @loss(%x: tensor<6x16xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<6x16xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Part of each of two sequences, merged to rows and split again.
sharding.mesh @mesh [#sharding.axis<"cp" = 3>]
// CHECK-LABEL: @flattened
// CHECK-SAME:  -> (tensor<2x6x8xf32> {sharding.spec = #sharding.spec<[], ["cp"], []>})
func.func private @flattened(%x: tensor<2x6x8xf32> {sharding.spec = #sharding.spec<[], ["cp"], [] because <"plan">>}) -> tensor<2x6x8xf32> {
  // CHECK: aten.view %{{.*}} {sharding.specs = [#sharding.spec<[2, "cp"], []>]}
  %0 = aten.view %x, [12, 8] : (tensor<2x6x8xf32>) -> tensor<12x8xf32>
  // CHECK: aten.view %{{.*}} {sharding.specs = [#sharding.spec<[], ["cp"], []>]}
  %1 = aten.view %0, [2, 6, 8] : (tensor<12x8xf32>) -> tensor<2x6x8xf32>
  return %1 : tensor<2x6x8xf32>
}

// -----

// Heads of each of four rows, over an axis of half of the rows.
sharding.mesh @mesh [#sharding.axis<"dp" = 2>, #sharding.axis<"tp" = 2>]
// CHECK-LABEL: @both
func.func private @both(%x: tensor<4x6x8xf32> {sharding.spec = #sharding.spec<["dp"], ["tp"], [] because <"plan">>}) -> tensor<24x8xf32> {
  // CHECK: aten.view %{{.*}} {sharding.specs = [#sharding.spec<["dp", 2, "tp"], []>]}
  %0 = aten.view %x, [24, 8] : (tensor<4x6x8xf32>) -> tensor<24x8xf32>
  return %0 : tensor<24x8xf32>
}

// -----

// Of one sequence a part is consecutive rows.
sharding.mesh @mesh [#sharding.axis<"cp" = 2>]
// CHECK-LABEL: @one
func.func private @one(%x: tensor<1x6x8xf32> {sharding.spec = #sharding.spec<[], ["cp"], [] because <"plan">>}) -> tensor<6x8xf32> {
  // CHECK: aten.view %{{.*}} {sharding.specs = [#sharding.spec<["cp"], []>]}
  %0 = aten.view %x, [6, 8] : (tensor<1x6x8xf32>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}
