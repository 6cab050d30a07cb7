// RUN: sed 's/RECIPE/tensorwise/; s/FRAMEWORK/fsdp2/' %s | accel-opt opt --decide-framework | FileCheck %s --check-prefixes=AO,FSDP2
// RUN: sed 's/RECIPE/tensorwise/; s/FRAMEWORK/ddp/' %s | accel-opt opt --decide-framework | FileCheck %s --check-prefixes=DDP,AO
// RUN: sed 's/RECIPE/rowwise/; s/FRAMEWORK/fsdp2/' %s | accel-opt opt --decide-framework | FileCheck %s --check-prefix=ROWS
// RUN: sed 's/RECIPE/te/; s/FRAMEWORK/ddp/' %s | accel-opt opt --decide-framework | FileCheck %s --check-prefix=TE

// Accelerate's filters: torchao leaves the first and the last linear layer and those whose sizes are no multiples
// of 16; TransformerEngine's conversion ends for the siblings of such a layer. FSDP2 alone gathers in fp8, and only
// what has one scale.

// FSDP2: fp8 = #sharding.fp8<tensorwise, gathers = true, amax_history = 0, because = <"mixed_precision: fp8">>
// DDP: fp8 = #sharding.fp8<tensorwise, gathers = false,
// ROWS: fp8 = #sharding.fp8<rowwise, gathers = false,
// TE: fp8 = #sharding.fp8<te, gathers = false, amax_history = 16,

// AO-NOT: sharding.param "l.0.q.weight"{{.*}}{sharding.fp8}
// AO: sharding.param "l.0.k.weight"{{.*}}{sharding.fp8}
// AO-NOT: {sharding.fp8}
// AO: sharding.param "l.1.c.weight"{{.*}}{sharding.fp8}
// AO-NOT: {sharding.fp8}

// TE: sharding.param "l.0.q.weight"{{.*}}{sharding.fp8}
// TE: sharding.param "l.0.k.weight"{{.*}}{sharding.fp8}
// TE-NOT: {sharding.fp8}
// TE: sharding.param "head.weight"{{.*}}{sharding.fp8}

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>]
sharding.job "m" micro_batch 1 sequence_length 8 device "cuda" {framework = #sharding.framework<"FRAMEWORK" torch "2.15" accelerate "1.15.0">}
sharding.request "fp8" {recipe = "RECIPE", gathers, amax_history = 16} because <"mixed_precision: fp8">
sharding.module "" class "M"
sharding.module "embed" class "Embedding"
sharding.module "l.0.q" class "Linear"
sharding.module "l.0.k" class "Linear"
sharding.module "l.1.odd" class "Linear"
sharding.module "l.1.c" class "Linear"
sharding.module "conv" class "Conv1D"
sharding.module "head" class "Linear"
sharding.param "embed.weight" : tensor<64x32xbf16> init <ones>
sharding.param "l.0.q.weight" : tensor<32x32xbf16> init <ones>
sharding.param "l.0.k.weight" : tensor<16x32xbf16> init <ones>
sharding.param "l.1.odd.weight" : tensor<24x32xbf16> init <ones>
sharding.param "l.1.c.weight" : tensor<32x32xbf16> init <ones>
sharding.param "conv.weight" : tensor<32x32xbf16> init <ones>
sharding.param "head.weight" : tensor<64x32xbf16> init <ones>
