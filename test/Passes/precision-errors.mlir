// RUN: accel-opt opt %s --precision --split-input-file --verify-diagnostics

sharding.param "a" : tensor<4xf32> init <ones>
// expected-error @+1 {{'sharding.unit' op holds 'c', which is no sharding.param}}
sharding.unit "u" modules ["u"] shard [] replicate [] params ["a", "c"] {wrap = #sharding.wrap<because = <"x">>}

// -----

sharding.param "a" : tensor<4xf32> init <ones>
sharding.param "b" : tensor<4xbf16> init <ones>
// expected-error @+2 {{unit 'u' has parameters of fp32 and bf16; accel-run has one buffer of one dtype for a unit [not-supported]}}
// expected-note @+1 {{load the model in fp32 (--dtype float32)}}
sharding.unit "u" modules ["u"] shard [] replicate [] params ["a", "b"] {wrap = #sharding.wrap<because = <"x">>}

// -----

// expected-error @+1 {{'sharding.request' op asks for the param dtype i8, expected f64, f32, bf16 or f16}}
sharding.request "precision" {param = i8} because <"x">
sharding.param "a" : tensor<4xf32> init <ones>
sharding.unit "u" modules ["u"] shard [] replicate [] params ["a"] {wrap = #sharding.wrap<because = <"x">>}

// -----

sharding.job "tiny" micro_batch 1 sequence_length 4 device "cuda" {framework = #sharding.framework<"fsdp2" torch "2.15" accelerate "1.15.0">}
sharding.param "a" : tensor<4xf32> init <ones>
sharding.param "b" : tensor<4xbf16> init <ones>
// expected-error @+2 {{unit 'u' trains parameters of fp32 and bf16; FSDP2 stops with "FSDP expects uniform original parameter dtype" [mixed-dtypes]}}
// expected-note @+1 {{accelerate from 1.14 on turns what is trained into fp32}}
sharding.unit "u" modules ["u"] shard [] replicate [] params ["a", "b"] {wrap = #sharding.wrap<because = <"x">>}

// -----

sharding.job "tiny" micro_batch 1 sequence_length 4 device "cuda" {framework = #sharding.framework<"fsdp1" torch "2.15" accelerate "1.15.0">}
sharding.param "a" : tensor<4xf32> init <ones>
sharding.param "b" : tensor<4xbf16> init <ones>
// expected-error @+2 {{unit 'u' has parameters of fp32 and bf16; FSDP1 stops with "Must flatten tensors with uniform dtype" [mixed-dtypes]}}
// expected-note @+1 {{load the model in fp32 (--dtype float32)}}
sharding.unit "u" modules ["u"] shard [] replicate [] params ["a", "b"] {wrap = #sharding.wrap<because = <"x">>}

// -----

// DeepSpeed casts both to one dtype.
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cuda" {framework = #sharding.framework<"deepspeed" torch "2.15" accelerate "1.15.0">}
sharding.request "precision" {mixed = bf16} because <"x">
sharding.param "a" : tensor<4xf32> init <ones>
sharding.param "b" : tensor<4xbf16> init <ones>
sharding.unit "u" modules ["u"] shard [] replicate [] params ["a", "b"] {wrap = #sharding.wrap<because = <"x">>}
