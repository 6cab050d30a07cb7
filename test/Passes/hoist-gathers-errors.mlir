// RUN: accel-opt opt %s --hoist-gathers --split-input-file --verify-diagnostics

// expected-error @+1 {{hoist-gathers needs a sharding.job with its prefetch decision}}
module {
}

// -----

// expected-error @+1 {{hoist-gathers needs a sharding.job with its prefetch decision}}
module {
  sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"
}
