// RUN: accel-opt opt %s --wrap | FileCheck %s

// DDP flattens nothing: a module has a unit of each dtype.
sharding.mesh @mesh [#sharding.axis<"dp_replicate" = 2>]
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cuda" {framework = #sharding.framework<"ddp" torch "2.15" accelerate "1.15.0">, anatomy = {base = "model"}}
sharding.request "wrap" {classes = ["Layer"], policy = "TRANSFORMER_BASED_WRAP"} because <"x">
sharding.module "" class "Model"
sharding.module "layer" class "Layer"

// CHECK: sharding.param "layer.lora" : tensor<4xf32> init <ones> in "layer"
// CHECK: sharding.param "layer.norm" : tensor<4xbf16> init <ones> in "layer/bf16"
// CHECK: sharding.param "layer.frozen" : tensor<4xbf16> init <ones> frozen in "layer/frozen"
// CHECK: sharding.param "layer.scale" : tensor<4xf32> init <ones> in "layer"
sharding.param "layer.lora" : tensor<4xf32> init <ones>
sharding.param "layer.norm" : tensor<4xbf16> init <ones>
sharding.param "layer.frozen" : tensor<4xbf16> init <ones> frozen
sharding.param "layer.scale" : tensor<4xf32> init <ones>

// CHECK: sharding.unit "layer" {{.*}} params ["layer.lora", "layer.scale"]
// CHECK: sharding.unit "layer/bf16" {{.*}} params ["layer.norm"]
// CHECK: sharding.unit "layer/frozen" {{.*}} params ["layer.frozen"]
