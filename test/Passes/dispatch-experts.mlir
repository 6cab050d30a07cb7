// Experts that ranks share: rows go to the ranks that have them, and back; the
// gradient of each goes the other way.
// RUN: accel-opt opt %s --decide-experts | FileCheck %s --check-prefix=DECIDED
// RUN: accel-opt opt %s --decide-experts --dispatch-experts | FileCheck %s
// RUN: accel-opt opt %s --decide-experts --dispatch-experts --differentiate | FileCheck %s --check-prefix=JOINT
// RUN: accel-opt opt %s --dispatch-experts | FileCheck %s --check-prefix=NONE
// RUN: sed 's/imbalance = 1.5e+00/imbalance = 9.0e+00/' %s | accel-opt opt --decide-experts --dispatch-experts | FileCheck %s --check-prefix=ALL

// DECIDED: sharding.param "model.layers.0.mlp.experts.gate_up_proj" : tensor<4x8x4xf32> {{.*}}{spec = #sharding.spec<["ep"], [], [] because <"base_model_ep_plan of Qwen3MoeModel">>
// DECIDED: sharding.graph {{.*}}sharding.experts = #sharding.experts<["ep"], 1.500000e+00 : f64, because = <"mesh">>

// NONE-NOT: sharding.dispatch

// No more rows than there are have a place.
// ALL: sharding.expert_ends {{.*}} rows 24 over ["ep"]

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"ep" = 2>]
sharding.job "m" micro_batch 1 sequence_length 12 device "cpu"
sharding.request "experts" {axes = ["ep"], imbalance = 1.5e+00 : f64} because <"mesh">
sharding.module "model" class "Qwen3MoeModel"
sharding.param "model.scale" : tensor<4xf32> init <ones>
sharding.param "model.layers.0.mlp.experts.gate_up_proj" : tensor<4x8x4xf32> init <ones>
sharding.param "model.layers.0.mlp.experts.down_proj" : tensor<4x4x4xf32> init <ones>

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:  %[[X:.*]]: tensor<12x4xf32>, %[[ENDS:.*]]: tensor<4xi32>, %[[W:.*]]: tensor<12x1xf32>
// CHECK-SAME:  %[[UP:.*]]: tensor<2x8x4xf32> {sharding.param
// CHECK:       %[[ROW:.*]] = aten.view %[[ENDS]], [1, 4]
// CHECK:       %[[OF:.*]] = sharding.all_gather %[[ROW]] dim 0 over "ep" : (tensor<1x4xi32>) -> tensor<2x4xi32>
// CHECK:       %[[OWN:.*]] = sharding.expert_ends %[[OF]] rows 18 over ["ep"]
// CHECK:       %[[T:.*]] = aten.transpose.int %[[UP]], 1, 2 : (tensor<2x8x4xf32>) -> tensor<2x4x8xf32>
// CHECK:       %[[SENT:.*]] = sharding.dispatch %[[X]], %[[OF]] over ["ep"] : (tensor<12x4xf32>, tensor<2x4xi32>) -> tensor<18x4xf32>
// CHECK:       aten._grouped_mm %[[SENT]], %[[T]], %[[OWN]] rows 12 : {{.*}} -> tensor<18x8xf32>
// Row by row they stay where they are.
// CHECK-NOT:   sharding.
// CHECK:       aten.slice.Tensor {{.*}} -> tensor<18x4xf32>
// CHECK:       aten.silu {{.*}}tensor<18x4xf32>
// CHECK:       %[[Y:.*]] = aten._grouped_mm {{.*}} rows 12 {{.*}} -> tensor<18x4xf32>
// CHECK:       %[[BACK:.*]] = sharding.combine %[[Y]], %[[OF]] over ["ep"] : (tensor<18x4xf32>, tensor<2x4xi32>) -> tensor<12x4xf32>
// CHECK:       aten.mul.Tensor %[[BACK]], %[[W]]
// CHECK-NOT:   sharding.
// CHECK:       return

// JOINT-LABEL: @layer.joint
// JOINT:       sharding.dispatch
// JOINT:       sharding.combine
// JOINT:       sharding.dispatch {{.*}} : (tensor<12x4xf32>, tensor<2x4xi32>) -> tensor<18x4xf32>
// JOINT:       aten._grouped_mm {{.*}} rows 12 : (tensor<4x18xf32>, tensor<18x4xf32>, tensor<2xi32>) -> tensor<2x4x4xf32>
// JOINT:       sharding.combine {{.*}} : (tensor<18x4xf32>, tensor<2x4xi32>) -> tensor<12x4xf32>
// JOINT-NOT:   sharding.
// JOINT:       return
func.func private @layer(%x: tensor<12x4xf32>, %ends: tensor<4xi32>, %weight: tensor<12x1xf32>, %up: tensor<4x8x4xf32> {sharding.param = "mlp.experts.gate_up_proj"}, %down: tensor<4x4x4xf32> {sharding.param = "mlp.experts.down_proj"}) -> tensor<12x4xf32> {
  %0 = aten.transpose.int %up, 1, 2 : (tensor<4x8x4xf32>) -> tensor<4x4x8xf32>
  %1 = aten._grouped_mm %x, %0, %ends : (tensor<12x4xf32>, tensor<4x4x8xf32>, tensor<4xi32>) -> tensor<12x8xf32>
  %2 = aten.slice.Tensor %1, 1 [0 : 4 : 1] : (tensor<12x8xf32>) -> tensor<12x4xf32>
  %3 = aten.slice.Tensor %1, 1 [4 : 8 : 1] : (tensor<12x8xf32>) -> tensor<12x4xf32>
  %4 = aten.silu %2 : tensor<12x4xf32>
  %5 = aten.mul.Tensor %4, %3 : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
  %6 = aten.transpose.int %down, 1, 2 : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  %7 = aten._grouped_mm %5, %6, %ends : (tensor<12x4xf32>, tensor<4x4x4xf32>, tensor<4xi32>) -> tensor<12x4xf32>
  %8 = aten.mul.Tensor %7, %weight : (tensor<12x4xf32>, tensor<12x1xf32>) -> tensor<12x4xf32>
  return %8 : tensor<12x4xf32>
}
func.func private @scaled(%x: tensor<12x4xf32>, %s: tensor<4xf32> {sharding.param = "model.scale"}) -> tensor<12x4xf32> {
  %0 = aten.mul.Tensor %x, %s : (tensor<12x4xf32>, tensor<4xf32>) -> tensor<12x4xf32>
  return %0 : tensor<12x4xf32>
}
func.func private @loss(%x: tensor<12x4xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<12x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
sharding.graph @model(%x: tensor<12x4xf32>, %ends: tensor<4xi32>, %w: tensor<12x1xf32>) {
  %x1 = sharding.call @scaled(%x) at "" : (tensor<12x4xf32>) -> tensor<12x4xf32>
  %0 = sharding.call @layer(%x1, %ends, %w) at "model.layers.0" : (tensor<12x4xf32>, tensor<4xi32>, tensor<12x1xf32>) -> tensor<12x4xf32>
  %1 = sharding.call @loss(%0) at "" : (tensor<12x4xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}
