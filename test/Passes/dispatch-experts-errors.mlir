// RUN: accel-opt opt %s --split-input-file --verify-diagnostics --decide-experts --dispatch-experts

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"ep" = 2>]
sharding.job "m" micro_batch 1 sequence_length 12 device "cpu"
// expected-error @+1 {{no rule says which parameters of this model are experts that the ranks of 'ep' share}}
sharding.request "experts" {axes = ["ep"], imbalance = 1.5e+00 : f64} because <"mesh">
sharding.module "model" class "LlamaModel"
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
sharding.graph @model(%x: tensor<f32>) {
  %0 = sharding.call @f(%x) at "" : (tensor<f32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"ep" = 2>]
sharding.job "m" micro_batch 1 sequence_length 12 device "cpu"
// expected-error @+1 {{'model.layers.0.mlp.experts.down_proj' has 3 experts, which 2 ranks of 'ep' do not divide}}
sharding.request "experts" {axes = ["ep"], imbalance = 1.5e+00 : f64} because <"mesh">
sharding.module "model" class "MixtralModel"
sharding.param "model.layers.0.mlp.experts.down_proj" : tensor<3x4x4xf32> init <ones>
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
sharding.graph @model(%x: tensor<f32>) {
  %0 = sharding.call @f(%x) at "" : (tensor<f32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"ep" = 2>]
sharding.job "m" micro_batch 1 sequence_length 12 device "cpu"
// expected-error @+1 {{needs 'axes', 'imbalance' of at least 1, a sharding.mesh and a sharding.graph}}
sharding.request "experts" {axes = ["ep"], imbalance = 5.0e-01 : f64} because <"mesh">
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
sharding.graph @model(%x: tensor<f32>) {
  %0 = sharding.call @f(%x) at "" : (tensor<f32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// Experts whose sum somebody reads.
sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"ep" = 2>]
sharding.job "m" micro_batch 1 sequence_length 12 device "cpu"
sharding.request "experts" {axes = ["ep"], imbalance = 1.5e+00 : f64} because <"mesh">
sharding.module "model" class "MixtralModel"
sharding.param "model.layers.0.mlp.experts.down_proj" : tensor<4x4x4xf32> init <ones>
func.func private @f(%x: tensor<f32>, %w: tensor<4x4x4xf32> {sharding.param = "mlp.experts.down_proj"}) -> tensor<f32> {
  // expected-error @+1 {{reads experts that the ranks of 'ep' share, and is no grouped matmul of rows that are sorted by expert}}
  %0 = aten.sum.dim_IntList %w, [0, 1, 2], false : (tensor<4x4x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
sharding.graph @model(%x: tensor<f32>) {
  %0 = sharding.call @f(%x) at "model.layers.0" : (tensor<f32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
// expected-error @+1 {{shares experts over [], expected names of axes}}
sharding.graph @model(%x: tensor<f32>) attributes {sharding.experts = #sharding.experts<[], 1.5e+00 : f64, because = <"mesh">>} {
  %0 = sharding.call @f(%x) at "" : (tensor<f32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}
