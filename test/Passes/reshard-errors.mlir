// RUN: accel-opt opt %s --reshard --split-input-file --verify-diagnostics

// expected-error @+1 {{'sharding.request' op needs 'after_forward', true or false}}
sharding.request "reshard" {} because <"x">

// -----

// expected-error @+1 {{'sharding.request' op needs 'after_forward', true or false}}
sharding.request "reshard" {after_forward = "FULL_SHARD"} because <"x">

// -----

// expected-error @+1 {{'sharding.request' op keeps 'layer', which is no unit that could be freed}}
sharding.request "reshard" {after_forward = true, keep = ["layer"]} because <"x">

// -----

// expected-error @+1 {{'sharding.request' op needs names of units in 'keep'}}
sharding.request "reshard" {after_forward = true, keep = [1]} because <"x">
