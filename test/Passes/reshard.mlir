// RUN: accel-opt opt %s --reshard --split-input-file | FileCheck %s

sharding.request "reshard" {after_forward = true} because <"fsdp_reshard_after_forward" at "fsdp.yaml" : 12 : 31>
// CHECK: sharding.unit "layer" {{.*}}reshard = #sharding.reshard<after_forward = true, because = <"fsdp_reshard_after_forward" at "fsdp.yaml" : 12 : 31>>
sharding.unit "layer" modules [] shard ["dp_shard"] replicate [] params ["a"] {wrap = #sharding.wrap<because = <"x">>}
// CHECK: sharding.unit "tail" {{.*}}reshard = #sharding.reshard<after_forward = false, because = <"its last use in the forward is next to its first in the backward, so a second gather could not be hidden">>
sharding.unit "tail" modules [] shard ["dp_shard"] replicate [] params ["b"] {keep_gathered, wrap = #sharding.wrap<because = <"x">>}
// CHECK: sharding.unit "ignored" {{.*}}reshard = #sharding.reshard<after_forward = false, because = <"not sharded: every rank holds the parameters">>
sharding.unit "ignored" modules [] shard [] replicate ["dp_shard"] params ["c"] {wrap = #sharding.wrap<because = <"x">>}

// -----

// As in ZeRO 2.
sharding.request "reshard" {after_forward = false} because <"asked">
// CHECK: sharding.unit "layer" {{.*}}reshard = #sharding.reshard<after_forward = false, because = <"asked">>
sharding.unit "layer" modules [] shard ["dp_shard"] replicate [] params ["a"] {wrap = #sharding.wrap<because = <"x">>}

// -----

// CHECK: sharding.unit "layer" {{.*}}reshard = #sharding.reshard<after_forward = true, because = <"default: parameters are gathered again in the backward">>
sharding.unit "layer" modules [] shard ["dp_shard"] replicate [] params ["a"] {wrap = #sharding.wrap<because = <"x">>}

// -----

// Some units stay gathered although the others do not.
sharding.request "reshard" {after_forward = true, keep = ["last"]} because <"asked">
// CHECK: sharding.unit "first" {{.*}}reshard = #sharding.reshard<after_forward = true, because = <"asked">>
sharding.unit "first" modules [] shard ["dp_shard"] replicate [] params ["a"] {wrap = #sharding.wrap<because = <"x">>}
// CHECK: sharding.unit "last" {{.*}}reshard = #sharding.reshard<after_forward = false, because = <"asked">>
sharding.unit "last" modules [] shard ["dp_shard"] replicate [] params ["b"] {wrap = #sharding.wrap<because = <"x">>}
