// RUN: accel-opt opt %s --lower-to-schedule --split-input-file --verify-diagnostics
// RUN: accel-opt opt %S/Inputs/two-layers.mlir --to-sharded --partition > %t.mlir
// RUN: sed -e 's/@Head(%1, /@Head(%0, /' %t.mlir | not accel-opt opt --lower-to-schedule 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: sed -e 's/func.func private @Head.forward/func.func private @Gone/' %t.mlir | not accel-opt opt --lower-to-schedule 2>&1 | FileCheck %s --check-prefix=GONE

// Edited after partition: the loss does not read what "b" makes.
// UNUSED: error: in the call of 'b': its backward needs the gradient of output 0, which no later call makes
// Without a forward the backward should return the outputs too.
// GONE: error: in the call of 'head': 'Head.backward' returns 1 values, expected 2

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
