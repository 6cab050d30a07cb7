// RUN: accel-opt opt %s --decide-framework | FileCheck %s
// RUN: sed 's/"layers"/"model"/' %s | accel-opt opt --decide-framework | FileCheck %s --check-prefix=MODEL
// RUN: sed '/request/d' %s | accel-opt opt --decide-framework | FileCheck %s --check-prefix=EAGER

// RUN: sed 's/{regions/{replays, regions/' %s | accel-opt opt --decide-framework | FileCheck %s --check-prefix=GRAPHS
// RUN: sed 's/{regions/{replays, regions/; s/device "cuda"/device "cpu"/' %s | accel-opt opt --decide-framework | FileCheck %s

// Nothing is compiled that nobody asked for.

// CHECK: compile = #sharding.compile<layers, ends = functions, replays = false, because = <"dynamo_backend" at "fsdp.yaml" : 3 : 33>>
// MODEL: compile = #sharding.compile<model, ends = functions, replays = false,
// GRAPHS: compile = #sharding.compile<layers, ends = functions, replays = true,
// EAGER: sharding.job
// EAGER-NOT: compile
sharding.job "m" micro_batch 1 sequence_length 8 device "cuda" {framework = #sharding.framework<"fsdp2" torch "2.15" accelerate "1.15.0">}
sharding.request "compile" {regions = "layers"} because <"dynamo_backend" at "fsdp.yaml" : 3 : 33>
