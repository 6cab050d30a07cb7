// RUN: accel-opt opt %s --reductions --split-input-file --verify-diagnostics

// expected-error @+1 {{reductions needs a sharding.job}}
module {
}

// -----

// expected-error @+1 {{'sharding.request' op needs 'await', at least 0}}
sharding.request "reductions" {} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

// expected-error @+1 {{'sharding.request' op needs 'await', at least 0}}
sharding.request "reductions" {await = -1 : i64} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
