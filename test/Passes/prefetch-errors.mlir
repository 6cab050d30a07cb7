// RUN: accel-opt opt %s --prefetch --split-input-file --verify-diagnostics

// expected-error @+1 {{prefetch needs a sharding.job}}
module {
}

// -----

// expected-error @+1 {{'sharding.request' op asks for a negative depth}}
sharding.request "prefetch" {backward = 1 : i64, forward = -1 : i64} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

// expected-error @+1 {{'sharding.request' op has the depth "deep" for 'forward', expected an integer}}
sharding.request "prefetch" {forward = "deep"} because <"x">
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
