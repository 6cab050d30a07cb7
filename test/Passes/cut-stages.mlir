// Calls become stages by what they take, and a unit belongs to the stage that
// reads it.
// RUN: sed 's/^sharding.mesh @mesh \[/sharding.mesh @mesh [#sharding.axis<"pp" = 2>, /' %S/Inputs/two-layers.mlir > %t.mlir
// RUN: accel-opt opt %t.mlir --to-sharded --partition --cut-stages=target=cpu > %t.cut.mlir
// RUN: FileCheck %s < %t.cut.mlir
// CHECK-DAG: sharding.unit "a" {{.*}}sharding.stage = 0
// CHECK-DAG: sharding.unit "" {{.*}}sharding.stage = 1
// CHECK:     sharding.graph
// CHECK-SAME: sharding.stages = [#sharding.because<"{{.*}} ms a micro-batch; the slowest stage takes {{.*}} ms">
// CHECK:     sharding.call @Linear{{.*}} at "a" {sharding.stage = 0
// CHECK:     sharding.call @Head{{.*}}sharding.stage = 1

// Each stage has programs of its own, which send and receive at their ends; the
// loss is the last one's.
// RUN: accel-opt opt %t.cut.mlir --lower-to-schedule --insert-frees --verify-schedule | FileCheck %s --check-prefix=PROGRAMS
// PROGRAMS:     schedule.program @stage0.train
// PROGRAMS-NOT: loss_seed
// PROGRAMS:     attributes {schedule.stage = 0
// PROGRAMS:     %[[S:.*]] = schedule.send_start %[[Y:.*]] by 1 on send
// PROGRAMS:     schedule.pause
// PROGRAMS:     schedule.await_send %[[S]] of %[[Y]]
// PROGRAMS:     schedule.receive "grad {{.*}}" by -1
// PROGRAMS:     .backward
// PROGRAMS:     schedule.return
// PROGRAMS-NOT: loss(
// PROGRAMS:     schedule.program @stage1.train
// PROGRAMS:     "loss_seed"
// PROGRAMS:     schedule.receive {{.*}} by 1
// PROGRAMS:     schedule.pause
// PROGRAMS:     schedule.send_start {{.*}} by -1 on send
// PROGRAMS:     schedule.await_send
// PROGRAMS:     schedule.return loss(

// What both stages read is a unit of the first and a copy in the other; its
// gradients are summed over both behind all that a stage sends.
// RUN: sed -e 's/^sharding.mesh @mesh \[/sharding.mesh @mesh [#sharding.axis<"pp" = 2>, /' -e 's/tensor<10x16xf32>/tensor<16x16xf32>/g' -e 's/tensor<16x10xf32>/tensor<16x16xf32>/g' -e 's/tensor<8x10xf32>/tensor<8x16xf32>/g' -e '/param "head.weight"/d' -e '/^sharding.param "a.weight"/s/$/ {aliases = ["head.weight"]}/' %S/Inputs/two-layers.mlir > %t.tied.mlir
// RUN: accel-opt opt %t.tied.mlir --to-sharded --partition --cut-stages=target=cpu > %t.tied-cut.mlir
// RUN: FileCheck %s --check-prefix=TIED < %t.tied-cut.mlir
// TIED:     sharding.unit "a" {{.*}}replicate ["pp"] params ["a.weight"]{{.*}}sharding.stage = 0
// TIED:     sharding.unit "a@stage1-tied" {{.*}}replicate ["pp"] params ["a.weight"]{{.*}}sharding.copy_of = "a"{{.*}}sharding.stage = 1
// RUN: accel-opt opt %t.tied-cut.mlir --lower-to-schedule --insert-frees --verify-schedule | FileCheck %s --check-prefix=SUM
// SUM:     schedule.program @stage1.train
// SUM:     schedule.send_start {{.*}} by -1 on send
// SUM:     schedule.all_reduce_start "a@stage1-tied"{{.*}}"pp"
// SUM:     schedule.optimizer_step "a@stage1-tied"

// More stages than calls, and no such target.
// RUN: sed 's/^sharding.mesh @mesh \[/sharding.mesh @mesh [#sharding.axis<"pp" = 9>, /' %S/Inputs/two-layers.mlir > %t.many.mlir
// RUN: not accel-opt opt %t.many.mlir --to-sharded --partition --cut-stages 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: cannot be cut into stages: {{[0-9]}} calls make at most {{[0-9]}} stages, this is 9
// RUN: not accel-opt opt %t.mlir --to-sharded --partition --cut-stages=target=none 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: cut-stages knows no target 'none'
