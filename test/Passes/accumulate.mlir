// RUN: accel-opt opt %s --accumulate --split-input-file | FileCheck %s

sharding.request "accumulation" {keep_unsharded, steps = 4 : i64} because <"gradient_accumulation_steps" at "job.yaml" : 6 : 30>
// CHECK: sharding.job {{.*}}{accumulation = #sharding.accumulation<4, keep_unsharded, because = <"gradient_accumulation_steps" at "job.yaml" : 6 : 30>>}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

sharding.request "accumulation" {steps = 2 : i64} because <"x">
// CHECK: sharding.job {{.*}}{accumulation = #sharding.accumulation<2, reduce_each, because = <"x">>}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

// CHECK: sharding.job {{.*}}{accumulation = #sharding.accumulation<1, reduce_each, because = <"default: one micro-batch a step">>}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
