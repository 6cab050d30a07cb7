// RUN: accel-opt opt %s --gathers --split-input-file | FileCheck %s

sharding.request "gathers" {held = 2 : i64} because <"hold_gathers" at "job.yaml" : 5 : 3>
// CHECK: sharding.job {{.*}}{gathers = #sharding.gathers<held = 2, because = <"hold_gathers" at "job.yaml" : 5 : 3>>}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

// Nobody asks: each starts as far ahead as units are prefetched.
// CHECK-NOT: gathers
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
