// RUN: accel-opt opt %s --reductions --split-input-file | FileCheck %s

sharding.request "reductions" {await = 2 : i64} because <"await_reductions" at "job.yaml" : 5 : 3>
// CHECK: sharding.job {{.*}}{reductions = #sharding.reductions<await = 2, because = <"await_reductions" at "job.yaml" : 5 : 3>>}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

// Nobody asks: each is under way beside the next backward.
// CHECK-NOT: reductions
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
