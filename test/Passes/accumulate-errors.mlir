// RUN: accel-opt opt %s --accumulate --split-input-file --verify-diagnostics

// expected-error @+1 {{accumulate needs a sharding.job}}
module {
}

// -----

// expected-error @+1 {{'sharding.request' op needs 'steps', at least 1}}
sharding.request "accumulation" {steps = 0 : i64} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

// expected-error @+1 {{'sharding.request' op needs 'steps', at least 1}}
sharding.request "accumulation" {keep_unsharded} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
