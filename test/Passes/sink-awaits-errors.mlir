// RUN: accel-opt opt %s --sink-awaits --split-input-file --verify-diagnostics

// expected-error @+1 {{a plan needs a sharding.mesh and a sharding.job}}
module {
}

// -----

// Before lower-to-schedule there is nothing to rewrite.
// expected-error @+1 {{the module has no schedule.program to train with}}
module {
  sharding.mesh @mesh []
  sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu" {
    accumulation = #sharding.accumulation<1, reduce_each, because = <"x">>,
    prefetch = #sharding.prefetch<forward = 1, backward = 1, because = <"x">>,
    update = #sharding.update<at_end, because = <"x">>}
}
