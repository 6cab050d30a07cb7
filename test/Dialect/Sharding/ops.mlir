// Every operation and attribute, parsed, printed and parsed again.
// RUN: accel-opt opt %s > %t.once.mlir
// RUN: FileCheck %s < %t.once.mlir
// RUN: accel-opt opt %t.once.mlir | diff %t.once.mlir -
// RUN: accel-opt opt --mlir-print-op-generic %s | accel-opt opt | diff %t.once.mlir -

// CHECK: sharding.mesh @mesh [#sharding.axis<"dp_replicate" = 2>, #sharding.axis<"dp_shard" = 4>]
sharding.mesh @mesh [#sharding.axis<"dp_replicate" = 2>, #sharding.axis<"dp_shard" = 4>]

// Job-wide decisions, with and without the line that asked for them.
// CHECK:      sharding.job "tiny" micro_batch 2 sequence_length 4 device "cpu" {
// CHECK-SAME:   accumulation = #sharding.accumulation<3, keep_unsharded, because = <"--accumulation keep_unsharded">>
// CHECK-SAME:   anatomy = {base = "model", no_split = ["Layer"]}
// CHECK-SAME:   checkpoint = #sharding.checkpoint<full, because = <"fsdp_activation_checkpointing" at "fsdp.yaml" : 4 : 34>>
// CHECK-SAME:   gathers = #sharding.gathers<held = 1, because = <"hold_gathers">>
// CHECK-SAME:   prefetch = #sharding.prefetch<forward = 2, backward = 0, because = <"asked for">>
// CHECK-SAME:   reductions = #sharding.reductions<await = 2, because = <"await_reductions">>
// CHECK-SAME:   training = {seed = 7 : i64}
// CHECK-SAME:   update = #sharding.update<in_backward, because = <"frees gradients early">>}
sharding.job "tiny" micro_batch 2 sequence_length 4 device "cpu" {
  accumulation = #sharding.accumulation<3, keep_unsharded, because = <"--accumulation keep_unsharded">>,
  anatomy = {base = "model", no_split = ["Layer"]},
  checkpoint = #sharding.checkpoint<full, because = <"fsdp_activation_checkpointing" at "fsdp.yaml" : 4 : 34>>,
  gathers = #sharding.gathers<held = 1, because = <"hold_gathers">>,
  prefetch = #sharding.prefetch<forward = 2, backward = 0, because = <"asked for">>,
  reductions = #sharding.reductions<await = 2, because = <"await_reductions">>,
  training = {seed = 7 : i64},
  update = #sharding.update<in_backward, because = <"frees gradients early">>}

// CHECK: sharding.request "reshard" {after_forward = true} because <"fsdp_reshard_after_forward" at "fsdp.yaml" : 9 : 3>
sharding.request "reshard" {after_forward = true} because <"fsdp_reshard_after_forward" at "fsdp.yaml" : 9 : 3>
// CHECK: sharding.request "update" {} because <"default">
sharding.request "update" {} because <"default">

// CHECK: sharding.module "" class "Model"
sharding.module "" class "Model"
// CHECK: sharding.module "layers.0" class "Layer"
sharding.module "layers.0" class "Layer"

// CHECK: sharding.param "table" : tensor<8x4xf32> init <normal, 2.000000e-02 : f64> aliases ["head", "tail"] in ""
sharding.param "table" : tensor<8x4xf32> init <normal, 2.000000e-02 : f64> aliases ["head", "tail"] in ""
// CHECK: sharding.param "lora_A.default.weight" : tensor<2x4xf32> init <uniform range [-5.000000e-01, 5.000000e-01]> {adapter_key = "lora_A.weight", keeps_dtype}
sharding.param "lora_A.default.weight" : tensor<2x4xf32> init <uniform range [-5.000000e-01, 5.000000e-01]> {adapter_key = "lora_A.weight", keeps_dtype}
// CHECK: sharding.param "base_layer.weight" : tensor<4x4xf32> init <ones> frozen {base_names = ["weight"]}
sharding.param "base_layer.weight" : tensor<4x4xf32> init <ones> frozen {base_names = ["weight"]}
// CHECK: sharding.param "layers.0.weight" : tensor<4x4xbf16> init <ones> frozen in "layers.0"
sharding.param "layers.0.weight" : tensor<4x4xbf16> init <ones> frozen in "layers.0"
// CHECK: sharding.param "layers.0.bias" : tensor<4xf16> init <zeros> {group = 1 : i64}
sharding.param "layers.0.bias" : tensor<4xf16> init <zeros> {group = 1 : i64}

// CHECK:      sharding.unit "layers.0" modules ["layers.0"] shard ["dp_shard"] replicate ["dp_replicate"] params ["layers.0.weight"] {
// CHECK-SAME:   keep_gathered
// CHECK-SAME:   precision = #sharding.precision<storage = f32, compute = bf16, reduce = f16, output = f64, because = <"mixed_precision: bf16" at "fsdp.yaml" : 3 : 18>>
// CHECK-SAME:   reshard = #sharding.reshard<after_forward = false, because = <"the tail">>
// CHECK-SAME:   wrap = #sharding.wrap<because = <"class Layer">>}
sharding.unit "layers.0" modules ["layers.0"] shard ["dp_shard"] replicate ["dp_replicate"] params ["layers.0.weight"] {
  keep_gathered,
  precision = #sharding.precision<storage = f32, compute = bf16, reduce = f16, output = f64, because = <"mixed_precision: bf16" at "fsdp.yaml" : 3 : 18>>,
  reshard = #sharding.reshard<after_forward = false, because = <"the tail">>,
  wrap = #sharding.wrap<because = <"class Layer">>}

func.func private @Layer(%x: tensor<2x4xf32>, %w: tensor<4x4xbf16> {sharding.param = "weight"}) -> tensor<2x4xf32> {
  return %x : tensor<2x4xf32>
}
func.func private @Loss(%x: tensor<2x4xf32>) -> tensor<f32>

// Arguments keep their names, which is what the batch is bound by.
// CHECK: sharding.graph @train(%[[IN:input_ids]]: tensor<2x4xf32>) attributes {note = "one batch"} {
sharding.graph @train(%input_ids: tensor<2x4xf32>) attributes {note = "one batch"} {
  // CHECK: %[[X:.*]] = sharding.call @Layer(%[[IN]]) at "layers.0" : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %0 = sharding.call @Layer(%input_ids) at "layers.0" : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: sharding.call @Layer(%[[X]]) at "layers.0" {checkpoint = #sharding.checkpoint<none, because = <"asked for">>} :
  %1 = sharding.call @Layer(%0) at "layers.0" {checkpoint = #sharding.checkpoint<none, because = <"asked for">>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = sharding.call @Loss(%1) at "" : (tensor<2x4xf32>) -> tensor<f32>
  // CHECK: sharding.return %{{.*}} : tensor<f32>
  sharding.return %2 : tensor<f32>
}
