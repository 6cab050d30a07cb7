// RUN: accel-opt opt %s --prefetch --split-input-file | FileCheck %s

sharding.request "prefetch" {backward = 0 : i64, forward = 3 : i64} because <"--prefetch" at "job.yaml" : 5 : 3>
// CHECK: sharding.job {{.*}}{prefetch = #sharding.prefetch<forward = 3, backward = 0, because = <"--prefetch" at "job.yaml" : 5 : 3>>}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

// CHECK: sharding.job {{.*}}{prefetch = #sharding.prefetch<forward = 1, backward = 1, because = <"default: the next unit is gathered while this one computes">>}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
