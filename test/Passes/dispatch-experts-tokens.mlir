// Experts that ranks of tp share with those of ep (transformers' ep_size): of
// the tokens that the ranks of tp all have, each sends the rows of a part, and
// the sums over a token's experts are gathered. Rows move over both axes.
// RUN: accel-opt opt %s --decide-experts --dispatch-experts | FileCheck %s
// RUN: accel-opt opt %s --decide-experts --dispatch-experts --differentiate | FileCheck %s --check-prefix=JOINT
// RUN: accel-opt opt %s --decide-experts --dispatch-experts --differentiate --import-tp-plan=as-transformers --propagate-sharding --partition-sharding | FileCheck %s --check-prefix=SPLIT
// RUN: sed 's/"ep" = 2/"ep" = 1/' %s | accel-opt opt --decide-experts --dispatch-experts | FileCheck %s --check-prefix=TP
// RUN: sed 's/"tp" = 2/"tp" = 3/' %s | not accel-opt opt --decide-experts 2>&1 | FileCheck %s --check-prefix=EXPERTS
// RUN: sed 's/tensor<8x/tensor<9x/g; s/tensor<16x/tensor<18x/g; s/\[16/[18/g; s/\[8, /[9, /g; s/: 16 :/: 18 :/' %s | not accel-opt opt --decide-experts --dispatch-experts 2>&1 | FileCheck %s --check-prefix=TOKENS

// EXPERTS: error: 'model.layers.0.mlp.experts.gate_up_proj' has 4 experts, which 6 ranks of 'ep x tp' do not divide
// TOKENS: error: 'aten.sort.stable' op is of 9 tokens, which 2 ranks of 'tp' do not divide

// CHECK: sharding.param "model.layers.0.mlp.experts.gate_up_proj" {{.*}}{spec = #sharding.spec<["ep", "tp"], [], [] because <"base_model_ep_plan of Qwen3MoeModel">>}

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"ep" = 2>, #sharding.axis<"tp" = 2>]
sharding.job "m" micro_batch 1 sequence_length 8 device "cpu"
sharding.request "experts" {axes = ["ep", "tp"], imbalance = 1.0e+00 : f64} because <"mesh">
sharding.module "model" class "Qwen3MoeModel"
sharding.param "model.scale" : tensor<4xf32> init <ones>
sharding.param "model.other" : tensor<2xf32> init <ones>
sharding.param "model.layers.0.mlp.experts.gate_up_proj" : tensor<4x8x4xf32> init <ones>
sharding.param "model.layers.0.mlp.experts.down_proj" : tensor<4x4x4xf32> init <ones>

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:  %[[X:.*]]: tensor<8x4xf32>, %[[CHOSEN:.*]]: tensor<8x2xi64>, %[[WEIGHTS:.*]]: tensor<8x2xf32>
// CHECK-SAME:  tensor<1x8x4xf32> {sharding.param
// CHECK-DAG:   %[[MINE:.*]] = sharding.slice %[[CHOSEN]] dim 0 over "tp" : (tensor<8x2xi64>) -> tensor<4x2xi64>
// CHECK-DAG:   %[[ROWS:.*]] = sharding.slice %[[X]] dim 0 over "tp" : (tensor<8x4xf32>) -> tensor<4x4xf32>
// CHECK-DAG:   %[[SCORES:.*]] = sharding.slice %[[WEIGHTS]] dim 0 over "tp" : (tensor<8x2xf32>) -> tensor<4x2xf32>
// CHECK:       %[[SORTED:.*]], %[[ORDER:.*]] = aten.sort.stable {{.*}} : (tensor<8xi64>)
// CHECK:       aten.embedding %[[ROWS]], {{.*}} -> tensor<8x4xf32>
// CHECK:       %[[ENDS:.*]] = aten.searchsorted.Tensor %[[SORTED]]
// CHECK:       %[[ROW:.*]] = aten.view %[[ENDS]], [1, 4]
// CHECK:       %[[NEAR:.*]] = sharding.all_gather %[[ROW]] dim 0 over "tp" : (tensor<1x4xi32>) -> tensor<2x4xi32>
// CHECK:       %[[ALL:.*]] = sharding.all_gather %[[NEAR]] dim 0 over "ep" : (tensor<2x4xi32>) -> tensor<4x4xi32>
// CHECK:       sharding.expert_ends %[[ALL]] rows 8 over ["ep", "tp"] : (tensor<4x4xi32>) -> tensor<1xi32>
// CHECK:       sharding.dispatch {{.*}}, %[[ALL]] over ["ep", "tp"] : (tensor<8x4xf32>, tensor<4x4xi32>) -> tensor<8x4xf32>
// CHECK:       sharding.combine {{.*}}, %[[ALL]] over ["ep", "tp"]
// CHECK:       aten.arange.start_step[0 : 8 : 1]
// CHECK:       aten.view {{.*}}, [4, 2, 4]
// CHECK:       %[[SUM:.*]] = aten.sum.dim_IntList {{.*}} -> tensor<4x4xf32>
// CHECK:       %[[OUT:.*]] = sharding.all_gather %[[SUM]] dim 0 over "tp" : (tensor<4x4xf32>) -> tensor<8x4xf32>
// CHECK:       return %[[OUT]]
// CHECK: sharding.graph {{.*}}sharding.experts = #sharding.experts<["ep", "tp"], 1.000000e+00 : f64, because = <"mesh">>

// One rank of ep alone: the exchange is tp's.
// TP:     sharding.param "model.layers.0.mlp.experts.gate_up_proj" {{.*}}<["ep", "tp"], [], []
// TP:     sharding.all_gather {{.*}} over "tp" : (tensor<1x4xi32>) -> tensor<2x4xi32>
// TP-NOT: over "ep"
// TP:     sharding.dispatch {{.*}} over ["ep", "tp"] : (tensor<8x4xf32>, tensor<2x4xi32>)

// The gradient of what is gathered is sliced, those of hidden states and weights
// are gathered.
// JOINT-LABEL: @layer.joint
// JOINT:       sharding.combine
// JOINT:       sharding.all_gather {{.*}} -> tensor<8x4xf32>
// JOINT:       sharding.slice {{.*}} dim 0 over "tp" : (tensor<8x4xf32>) -> tensor<4x4xf32>
// JOINT:       sharding.dispatch
// JOINT:       sharding.combine
// JOINT-DAG:   sharding.all_gather {{.*}} dim 0 over "tp" : (tensor<4x2xf32>) -> tensor<8x2xf32>
// JOINT-DAG:   sharding.all_gather {{.*}} dim 0 over "tp" : (tensor<4x4xf32>) -> tensor<8x4xf32>

// The plan of tp leaves experts as they are, and functions have them already.
// SPLIT: sharding.param "model.layers.0.mlp.experts.gate_up_proj" {{.*}}<["ep", "tp"], [], [] because <"base_model_ep_plan of Qwen3MoeModel">>
// SPLIT: func.func private @layer.joint({{.*}}tensor<1x8x4xf32>
// SPLIT-NOT: all_reduce
func.func private @layer(%x: tensor<8x4xf32>, %chosen: tensor<8x2xi64>, %weights: tensor<8x2xf32>, %up: tensor<4x8x4xf32> {sharding.param = "mlp.experts.gate_up_proj"}, %down: tensor<4x4x4xf32> {sharding.param = "mlp.experts.down_proj"}) -> tensor<8x4xf32> {
  %0 = aten.view %chosen, [16] : (tensor<8x2xi64>) -> tensor<16xi64>
  %sorted, %order = aten.sort.stable %0, 0, false : (tensor<16xi64>) -> (tensor<16xi64>, tensor<16xi64>)
  %1 = aten.floor_divide.Scalar %order, 2 : tensor<16xi64>
  %2 = aten.embedding %x, %1 : (tensor<8x4xf32>, tensor<16xi64>) -> tensor<16x4xf32>
  %3 = aten.view %weights, [16, 1] : (tensor<8x2xf32>) -> tensor<16x1xf32>
  %4 = aten.embedding %3, %order : (tensor<16x1xf32>, tensor<16xi64>) -> tensor<16x1xf32>
  %5 = aten.arange.start_step [0 : 4 : 1], i64 : tensor<4xi64>
  %6 = aten.searchsorted.Tensor %sorted, %5, true, true : (tensor<16xi64>, tensor<4xi64>) -> tensor<4xi32>
  %7 = aten.transpose.int %up, 1, 2 : (tensor<4x8x4xf32>) -> tensor<4x4x8xf32>
  %8 = aten._grouped_mm %2, %7, %6 : (tensor<16x4xf32>, tensor<4x4x8xf32>, tensor<4xi32>) -> tensor<16x8xf32>
  %9 = aten.slice.Tensor %8, 1 [0 : 4 : 1] : (tensor<16x8xf32>) -> tensor<16x4xf32>
  %10 = aten.slice.Tensor %8, 1 [4 : 8 : 1] : (tensor<16x8xf32>) -> tensor<16x4xf32>
  %11 = aten.silu %9 : tensor<16x4xf32>
  %12 = aten.mul.Tensor %11, %10 : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  %13 = aten.transpose.int %down, 1, 2 : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  %14 = aten._grouped_mm %12, %13, %6 : (tensor<16x4xf32>, tensor<4x4x4xf32>, tensor<4xi32>) -> tensor<16x4xf32>
  %15 = aten.mul.Tensor %14, %4 : (tensor<16x4xf32>, tensor<16x1xf32>) -> tensor<16x4xf32>
  %16 = aten.arange.start_step [0 : 16 : 1], i64 : tensor<16xi64>
  %17 = aten.scatter.src %order, %order, %16 {dim = 0 : i64} : (tensor<16xi64>, tensor<16xi64>, tensor<16xi64>) -> tensor<16xi64>
  %18 = aten.embedding %15, %17 : (tensor<16x4xf32>, tensor<16xi64>) -> tensor<16x4xf32>
  %19 = aten.view %18, [8, 2, 4] : (tensor<16x4xf32>) -> tensor<8x2x4xf32>
  %20 = aten.sum.dim_IntList %19, [1], false : (tensor<8x2x4xf32>) -> tensor<8x4xf32>
  return %20 : tensor<8x4xf32>
}
func.func private @scaled(%x: tensor<8x4xf32>, %w: tensor<8x2xf32>, %s: tensor<4xf32> {sharding.param = "model.scale"}, %t: tensor<2xf32> {sharding.param = "model.other"}) -> (tensor<8x4xf32>, tensor<8x2xf32>) {
  %0 = aten.mul.Tensor %x, %s : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %1 = aten.mul.Tensor %w, %t : (tensor<8x2xf32>, tensor<2xf32>) -> tensor<8x2xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x2xf32>
}
func.func private @loss(%x: tensor<8x4xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<8x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
sharding.graph @model(%x: tensor<8x4xf32>, %chosen: tensor<8x2xi64>, %w: tensor<8x2xf32>) {
  %x1, %w1 = sharding.call @scaled(%x, %w) at "" : (tensor<8x4xf32>, tensor<8x2xf32>) -> (tensor<8x4xf32>, tensor<8x2xf32>)
  %0 = sharding.call @layer(%x1, %chosen, %w1) at "model.layers.0" : (tensor<8x4xf32>, tensor<8x2xi64>, tensor<8x2xf32>) -> tensor<8x4xf32>
  %1 = sharding.call @loss(%0) at "" : (tensor<8x4xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}
