// RUN: accel-opt opt %s --wrap | FileCheck %s

sharding.mesh @mesh [#sharding.axis<"dp_replicate" = 2>, #sharding.axis<"dp_shard" = 2>]
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu" {anatomy = {base = "model", input_embedding = "model.embed", no_split = ["Other"], output_embedding = "head"}}
sharding.request "wrap" {classes = ["Layer"], fsdp_version = 2 : i64, ignored_modules = "model\\.layers\\.1\\.router", policy = "TRANSFORMER_BASED_WRAP"} because <"fsdp_transformer_layer_cls_to_wrap" at "fsdp.yaml" : 11 : 39>
sharding.module "" class "Model"
sharding.module "model" class "Base"
sharding.module "model.embed" class "Embedding"
sharding.module "model.layers" class "ModuleList"
sharding.module "model.layers.0" class "Layer"
sharding.module "model.layers.1" class "Layer"
sharding.module "model.layers.1.router" class "Linear"
sharding.module "model.norm" class "RMSNorm"
sharding.module "head" class "Linear"

// CHECK: sharding.param "model.scale" : tensor<4xf32> init <ones> in ""
// CHECK: sharding.param "model.embed.weight" : tensor<8x4xf32> init <ones> in "model.embed"
// CHECK: sharding.param "model.layers.0.a" : tensor<4x4xf32> init <ones> in "model.layers.0" {group = 1 : i64}
// CHECK: sharding.param "model.layers.0.frozen" : tensor<4xf32> init <ones> frozen in "model.layers.0/frozen"
sharding.param "model.scale" : tensor<4xf32> init <ones>
sharding.param "model.embed.weight" : tensor<8x4xf32> init <ones>
sharding.param "model.layers.0.a" : tensor<4x4xf32> init <ones> {group = 1 : i64}
sharding.param "model.layers.0.frozen" : tensor<4xf32> init <ones> frozen
sharding.param "model.layers.0.b" : tensor<4xf32> init <ones>
sharding.param "model.layers.1.a" : tensor<4x4xf32> init <ones>
sharding.param "model.layers.1.router.weight" : tensor<4x4xf32> init <ones>
sharding.param "model.norm.weight" : tensor<4xf32> init <ones>
sharding.param "head.weight" : tensor<8x4xf32> init <ones>

// The root holds the rest and, like the tail, stays gathered.
// CHECK:      sharding.unit "" modules [""] shard ["dp_shard"] replicate ["dp_replicate"] params ["model.scale"] {keep_gathered,
// CHECK:      sharding.unit "model.embed" modules ["model.embed"]
// CHECK-NOT:  keep_gathered
// A frozen part is a unit of its own, and groups are contiguous.
// CHECK:      sharding.unit "model.layers.0" modules ["model.layers.0"] shard ["dp_shard"] replicate ["dp_replicate"] params ["model.layers.0.b", "model.layers.0.a"] {wrap = #sharding.wrap<because = <"class Layer is in fsdp_transformer_layer_cls_to_wrap" at "fsdp.yaml" : 11 : 39>>}
// CHECK-NEXT: sharding.unit "model.layers.0/frozen" modules ["model.layers.0"] {{.*}} params ["model.layers.0.frozen"]
// CHECK-NEXT: sharding.unit "model.layers.1" {{.*}} params ["model.layers.1.a"]
// What is ignored is on every rank: no shard axis, gradients over both.
// CHECK-NEXT: sharding.unit "model.layers.1.router" modules ["model.layers.1.router"] shard [] replicate ["dp_replicate", "dp_shard"] params ["model.layers.1.router.weight"] {wrap = #sharding.wrap<because = <"matches fsdp_ignored_modules 'model\\.layers\\.1\\.router': replicated on every rank"
// CHECK-NEXT: sharding.unit "model.norm" modules ["model.norm", "head"] {{.*}} params ["model.norm.weight", "head.weight"] {keep_gathered,
// CHECK-NOT:  sharding.unit
