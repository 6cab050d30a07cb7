// RUN: accel-opt opt %s --gathers --split-input-file --verify-diagnostics

// expected-error @+1 {{gathers needs a sharding.job}}
module {
}

// -----

// expected-error @+1 {{'sharding.request' op needs 'held', at least 0}}
sharding.request "gathers" {} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

// expected-error @+1 {{'sharding.request' op needs 'held', at least 0}}
sharding.request "gathers" {held = -1 : i64} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
