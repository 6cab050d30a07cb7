// RUN: accel-opt opt %s --lower-to-schedule --split-input-file --verify-diagnostics

// expected-error @+1 {{a plan needs a sharding.mesh and a sharding.job}}
module {
}

// -----

sharding.mesh @mesh []
// expected-error @+1 {{'sharding.job' op lacks the decision accumulation}}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu"

// -----

sharding.mesh @mesh []
// expected-error @+1 {{'sharding.job' op has a bad 'training': }}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cpu" {training = {sead = 7 : i64}}
