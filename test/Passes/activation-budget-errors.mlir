// RUN: accel-opt opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(differentiate,activation-budget,select-saved-tensors)'

// expected-error @+1 {{activation-budget: calls share a budget, but no request "checkpoint" has 'bytes'}}
module {
  func.func private @Layer(%x: tensor<4xf32>, %s: tensor<4xf32> {sharding.param = "scale"}) -> tensor<f32> {
    %0 = aten.mul.Tensor %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = aten.sum.dim_IntList %0, [0], false : (tensor<4xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  sharding.param "0.scale" : tensor<4xf32> init <ones>
  sharding.graph @model(%x: tensor<4xf32>) {
    %0 = sharding.call @Layer(%x) at "0" {checkpoint = #sharding.checkpoint<budget, because = <"asked">>} : (tensor<4xf32>) -> tensor<f32>
    sharding.return %0 : tensor<f32>
  }
}

// -----

// An operation that draws random numbers is not computed twice.
// expected-error @+1 {{'sharding.request' op allows 64 bytes of activations, but the layers need at least 128}}
sharding.request "checkpoint" {mode = "budget", bytes = 64 : i64} because <"asked">
func.func private @Layer(%x: tensor<32xf32>, %s: tensor<32xf32> {sharding.param = "scale"}) -> tensor<f32> {
  %0 = aten.opaque "aten::bernoulli"(%x) ["%0", "none"] : (tensor<32xf32>) -> tensor<32xf32>
  %1 = aten.mul.Tensor %0, %s : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %2 = aten.sum.dim_IntList %1, [0], false : (tensor<32xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
sharding.param "0.scale" : tensor<32xf32> init <ones>
sharding.graph @model(%x: tensor<32xf32>) {
  %0 = sharding.call @Layer(%x) at "0" {checkpoint = #sharding.checkpoint<budget, because = <"asked">>} : (tensor<32xf32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{'sharding.request' op names the target 'tpu', which cannot be read}}
sharding.request "checkpoint" {mode = "budget", bytes = 64 : i64, target = "tpu"} because <"asked">
sharding.graph @model(%x: tensor<f32>) {
  sharding.return %x : tensor<f32>
}

// -----

// expected-error @+1 {{'func.func' op has no forward operation 9 that could be kept}}
func.func private @Layer(%x: tensor<4xf32>, %s: tensor<4xf32> {sharding.param = "scale"}) -> tensor<f32> {
  %0 = aten.mul.Tensor %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = aten.sum.dim_IntList %0, [0], false : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
sharding.param "0.scale" : tensor<4xf32> init <ones>
sharding.graph @model(%x: tensor<4xf32>) {
  %0 = sharding.call @Layer(%x) at "0" {checkpoint = #sharding.checkpoint<set keep [9], because = <"asked">>} : (tensor<4xf32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{only the mode 'budget' has bytes}}
#bad = #sharding.checkpoint<full bytes 4, because = <"asked">>
