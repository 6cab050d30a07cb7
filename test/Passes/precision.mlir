// RUN: accel-opt opt %s --precision --split-input-file | FileCheck %s

// What the configuration asks for; the masters of trained bf16 weights are
// f32 where it upcasts, frozen ones are not touched.
sharding.request "precision" {output = f16, param = bf16, reduce = f32, upcast} because <"mixed_precision: bf16" at "fsdp.yaml" : 3 : 18>
sharding.param "a" : tensor<4xbf16> init <ones>
sharding.param "b" : tensor<4xbf16> init <ones> frozen
// CHECK: sharding.unit "trained" {{.*}}precision = #sharding.precision<storage = f32, compute = bf16, reduce = f32, output = f16, because = <"mixed_precision: bf16" at "fsdp.yaml" : 3 : 18>>
sharding.unit "trained" modules ["a"] shard [] replicate [] params ["a"] {wrap = #sharding.wrap<because = <"x">>}
// CHECK: sharding.unit "frozen" {{.*}}precision = #sharding.precision<storage = bf16, compute = bf16, reduce = f32, output = f16,
sharding.unit "frozen" modules ["b"] shard [] replicate [] params ["b"] {wrap = #sharding.wrap<because = <"x">>}

// -----

// Half a request: the rest follows from the storage and the compute dtype.
sharding.request "precision" {param = bf16} because <"x">
sharding.param "a" : tensor<4xf32> init <ones>
// CHECK: sharding.unit "u" {{.*}}precision = #sharding.precision<storage = f32, compute = bf16, reduce = f32, output = bf16, because = <"x">>
sharding.unit "u" modules ["a"] shard [] replicate [] params ["a"] {wrap = #sharding.wrap<because = <"x">>}

// -----

sharding.param "a" : tensor<4xf16> init <ones>
// CHECK: sharding.unit "u" {{.*}}precision = #sharding.precision<storage = f16, compute = f16, reduce = f16, output = f16, because = <"default: the dtype of the checkpoint throughout">>
sharding.unit "u" modules ["a"] shard [] replicate [] params ["a"] {wrap = #sharding.wrap<because = <"x">>}
