// RUN: accel-opt opt %s --activation-checkpointing --split-input-file | FileCheck %s

// Full checkpointing is for the layers that the wrap policy names; the rest of
// the model recomputes what is nearly free.
sharding.request "checkpoint" {mode = "full"} because <"fsdp_activation_checkpointing" at "fsdp.yaml" : 4 : 34>
// CHECK: sharding.job {{.*}}checkpoint = #sharding.checkpoint<pointwise, because = <"default:
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu" {anatomy = {no_split = ["Layer"]}}
sharding.module "layers.0" class "Layer"
sharding.module "head" class "Linear"
func.func private @Layer(tensor<4xf32>) -> tensor<4xf32>
func.func private @Loss(tensor<4xf32>) -> tensor<f32>
sharding.graph @train(%x: tensor<4xf32>) {
  // CHECK: sharding.call @Layer(%{{.*}}) at "layers.0" {checkpoint = #sharding.checkpoint<full, because = <"fsdp_activation_checkpointing" at "fsdp.yaml" : 4 : 34>>} :
  %0 = sharding.call @Layer(%x) at "layers.0" : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: sharding.call @Loss(%{{.*}}) at "head" :
  %1 = sharding.call @Loss(%0) at "head" : (tensor<4xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}

// -----

// The classes of the YAML go before those of the model.
sharding.request "checkpoint" {mode = "full"} because <"x">
sharding.request "wrap" {classes = ["Linear"]} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu" {anatomy = {no_split = ["Layer"]}}
sharding.module "layers.0" class "Layer"
sharding.module "head" class "Linear"
func.func private @Layer(tensor<4xf32>) -> tensor<4xf32>
func.func private @Loss(tensor<4xf32>) -> tensor<f32>
sharding.graph @train(%x: tensor<4xf32>) {
  // CHECK: sharding.call @Layer(%{{.*}}) at "layers.0" :
  %0 = sharding.call @Layer(%x) at "layers.0" : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: sharding.call @Loss(%{{.*}}) at "head" {checkpoint = #sharding.checkpoint<full, because = <"x">>} :
  %1 = sharding.call @Loss(%0) at "head" : (tensor<4xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}

// -----

// Other modes are the job's, and calls have none of their own.
sharding.request "checkpoint" {mode = "none"} because <"asked">
// CHECK: sharding.job {{.*}}checkpoint = #sharding.checkpoint<none, because = <"asked">>
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
sharding.graph @train(%x: tensor<f32>) {
  sharding.return %x : tensor<f32>
}

// -----

// CHECK: sharding.job {{.*}}checkpoint = #sharding.checkpoint<pointwise, because = <"default: pointwise operators, norms and views are recomputed, which costs next to nothing">>
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
sharding.graph @train(%x: tensor<f32>) {
  sharding.return %x : tensor<f32>
}

// -----

// Single segments may differ from the job.
sharding.request "checkpoint" {mode = "none", calls = {"layers.0" = "full"}} because <"asked">
// CHECK: sharding.job {{.*}}checkpoint = #sharding.checkpoint<none, because = <"asked">>
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
func.func private @Layer(tensor<f32>) -> tensor<f32>
sharding.graph @train(%x: tensor<f32>) {
  // CHECK: sharding.call @Layer(%{{.*}}) at "layers.0" {checkpoint = #sharding.checkpoint<full, because = <"asked">>} :
  %0 = sharding.call @Layer(%x) at "layers.0" : (tensor<f32>) -> tensor<f32>
  // CHECK: sharding.call @Layer(%{{.*}}) at "layers.1" :
  %1 = sharding.call @Layer(%0) at "layers.1" : (tensor<f32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}

// -----

// A budget is the layers'; another pass shares it among them.
sharding.request "checkpoint" {mode = "budget", bytes = 4096 : i64} because <"--activation-budget 4KiB">
// CHECK: sharding.job {{.*}}checkpoint = #sharding.checkpoint<pointwise,
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu" {anatomy = {no_split = ["Layer"]}}
sharding.module "layers.0" class "Layer"
func.func private @Layer(tensor<4xf32>) -> tensor<4xf32>
func.func private @Loss(tensor<4xf32>) -> tensor<f32>
sharding.graph @train(%x: tensor<4xf32>) {
  // CHECK: at "layers.0" {checkpoint = #sharding.checkpoint<budget, because = <"--activation-budget 4KiB">>}
  %0 = sharding.call @Layer(%x) at "layers.0" : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: at "head" :
  %1 = sharding.call @Loss(%0) at "head" : (tensor<4xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}

// -----

// Each call on its own.
sharding.request "checkpoint" {calls = {"0" = "full", "1" = 1024 : i64, "2" = array<i64: 0, 2>}} because <"tuned">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
func.func private @Layer(tensor<4xf32>) -> tensor<4xf32>
func.func private @Loss(tensor<4xf32>) -> tensor<f32>
sharding.graph @train(%x: tensor<4xf32>) {
  // CHECK: at "0" {checkpoint = #sharding.checkpoint<full, because = <"tuned">>}
  %0 = sharding.call @Layer(%x) at "0" : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: at "1" {checkpoint = #sharding.checkpoint<budget bytes 1024, because = <"tuned">>}
  %1 = sharding.call @Layer(%0) at "1" : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: at "2" {checkpoint = #sharding.checkpoint<set keep{{ ?}}[0, 2], because = <"tuned">>}
  %2 = sharding.call @Layer(%1) at "2" : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: at "3" :
  %3 = sharding.call @Layer(%2) at "3" : (tensor<4xf32>) -> tensor<4xf32>
  %4 = sharding.call @Loss(%3) at "head" : (tensor<4xf32>) -> tensor<f32>
  sharding.return %4 : tensor<f32>
}
