// RUN: accel-opt opt %s --activation-checkpointing --split-input-file --verify-diagnostics

// expected-error @+1 {{activation-checkpointing needs a sharding.job and a sharding.graph}}
module {
  sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
}

// -----

// expected-error @+1 {{'sharding.request' op needs 'mode', none, pointwise, full or budget, or 'calls'}}
sharding.request "checkpoint" {mode = "half"} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
sharding.graph @train(%x: tensor<f32>) {
  sharding.return %x : tensor<f32>
}

// -----

// expected-error @+1 {{'sharding.request' op needs 'mode', none, pointwise, full or budget, or 'calls'}}
sharding.request "checkpoint" {} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
sharding.graph @train(%x: tensor<f32>) {
  sharding.return %x : tensor<f32>
}

// -----

// Nothing is silent: a request that no segment answers is a warning.
// expected-warning @+1 {{activation checkpointing is on, but no segment of the model is one of the layers that the wrap policy names}}
sharding.request "checkpoint" {mode = "full"} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu" {anatomy = {no_split = ["Layer"]}}
sharding.module "head" class "Linear"
func.func private @Loss(tensor<4xf32>) -> tensor<f32>
sharding.graph @train(%x: tensor<4xf32>) {
  %1 = sharding.call @Loss(%x) at "head" : (tensor<4xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}

// -----

// expected-error @+1 {{'sharding.request' op has for the call at 'layers.0' neither a mode, nor bytes, nor a list of operations}}
sharding.request "checkpoint" {mode = "none", calls = {"layers.0" = "half"}} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
func.func private @Layer(tensor<f32>) -> tensor<f32>
sharding.graph @train(%x: tensor<f32>) {
  %0 = sharding.call @Layer(%x) at "layers.0" : (tensor<f32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{'sharding.request' op needs 'bytes', 0 or more, for the mode budget}}
sharding.request "checkpoint" {mode = "budget", bytes = -1 : i64} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
sharding.graph @train(%x: tensor<f32>) {
  sharding.return %x : tensor<f32>
}

// -----

// expected-error @+1 {{'sharding.request' op names the call at 'layers.9', which the graph does not have}}
sharding.request "checkpoint" {calls = {layers.9 = "full"}} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
sharding.graph @train(%x: tensor<f32>) {
  sharding.return %x : tensor<f32>
}

// -----

// expected-error @+1 {{'sharding.request' op has for the call at 'head' neither a mode, nor bytes, nor a list of operations}}
sharding.request "checkpoint" {calls = {head = "half"}} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
func.func private @Loss(tensor<4xf32>) -> tensor<f32>
sharding.graph @train(%x: tensor<4xf32>) {
  %1 = sharding.call @Loss(%x) at "head" : (tensor<4xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}
