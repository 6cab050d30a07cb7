// RUN: accel-opt opt %s --optimizer-in-backward --split-input-file | FileCheck %s

sharding.request "update" {at_end = true} because <"clipping needs all gradients" at "job.yaml" : 5 : 3>
// CHECK: sharding.job {{.*}}{update = #sharding.update<at_end, because = <"clipping needs all gradients" at "job.yaml" : 5 : 3>>}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

sharding.request "update" {at_end = false} because <"x">
// CHECK: sharding.job {{.*}}{update = #sharding.update<in_backward, because = <"x">>}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

// CHECK: sharding.job {{.*}}{update = #sharding.update<in_backward, because = <"default: gradients are freed as soon as a unit is updated">>}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
