// RUN: accel-opt opt %s --optimizer-in-backward --split-input-file --verify-diagnostics

// expected-error @+1 {{update needs a sharding.job}}
module {
}

// -----

// expected-error @+1 {{'sharding.request' op needs 'at_end', true or false}}
sharding.request "update" {at_end} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
