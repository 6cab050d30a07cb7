// RUN: split-file %s %t
// RUN: accel-opt opt %t/groups.mlir --decide-framework | FileCheck %s --check-prefix=GROUPS
// RUN: sed 's/stage = 3/stage = 2/' %t/groups.mlir | accel-opt opt --decide-framework | FileCheck %s --check-prefix=STAGE
// RUN: sed 's/ranks_per_node = 4/ranks_per_node = 8/' %t/groups.mlir | accel-opt opt --decide-framework | FileCheck %s --check-prefix=NODE
// RUN: not accel-opt opt %t/both.mlir 2>&1 | FileCheck %s --check-prefix=BOTH

// ZeRO++ is what was asked for, in stage 3, with the groups as axes of the mesh;
// gradients are quantised between machines alone.

// GROUPS: sub_group 1000 plus <secondary = 4, shard = 0, weights = true, gradients = true, because = <"zero_hpz_partition_size">>, because = <"stage">
// STAGE: plus <secondary = 0, shard = 0, weights = false, gradients = false, because = <"ZeRO++ and MiCS are read in stage 3 alone">>
// NODE: plus <secondary = 4, shard = 0, weights = true, gradients = false, because = <"all ranks are on one machine, where gradients are reduced as they are">>
// BOTH: error: ZeRO++ and MiCS exclude each other

//--- groups.mlir
sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"zero_hpz" = 4>]
sharding.job "m" micro_batch 1 sequence_length 8 device "cuda" {framework = #sharding.framework<"deepspeed" torch "2.15" accelerate "1.15.0">, ranks_per_node = 4 : i64}
sharding.request "zero" {stage = 3, sub_group = 1000} because <"stage">
sharding.request "zero_plus" {secondary = 4, weights, gradients} because <"zero_hpz_partition_size">
//--- both.mlir
sharding.mesh @mesh [#sharding.zero_plus<secondary = 4, shard = 4, weights = false, gradients = false, because = <"asked">>]
