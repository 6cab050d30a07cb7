// RUN: accel-opt opt %s --cut-graphs | FileCheck %s
// RUN: sed 's/ends = buckets/ends = modules/' %s | accel-opt opt --cut-graphs | FileCheck %s --check-prefix=MODULES
// RUN: sed 's/checkpoint = #sharding.checkpoint<none/checkpoint = #sharding.checkpoint<full/' %s | accel-opt opt --cut-graphs | FileCheck %s --check-prefix=WHOLE
// RUN: sed 's/ends = buckets/ends = layers/' %s | not accel-opt opt --cut-graphs 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/^ *ddp = .*//' %s | not accel-opt opt --cut-graphs 2>&1 | FileCheck %s --check-prefix=NONE

// Weights of 1 MiB. The bucket that a graph ends with is full with the first of
// them, and so are the next: what stands before the operator that fills a
// bucket is in the one before. A view is made by each part that reads it, and
// the cast of a weight is where the weight is read.

// CHECK-LABEL: func.func private @MLP.cut(
// CHECK-SAME: %{{.*}}: tensor<64x512xbf16>, %{{.*}}: tensor<512x512xf32> {sharding.param = "gate.weight"}) -> tensor<64x512xbf16>
// CHECK: aten._to_copy {{.*}}tensor<512x512xbf16>
// CHECK: aten.mm
// CHECK: aten.silu
// CHECK-NEXT: return
// CHECK-LABEL: func.func private @MLP.cut_0(
// CHECK-SAME: "up.weight"
// CHECK-NOT: aten.silu
// CHECK: aten.mul.Tensor
// CHECK-LABEL: func.func private @MLP.cut_1(
// CHECK-SAME: "down.weight"
// CHECK-LABEL: sharding.graph
// CHECK: %[[GATE:.*]] = sharding.call @MLP.cut(%[[X:.*]]) at "layers.0"
// CHECK: %[[PRODUCT:.*]] = sharding.call @MLP.cut_0(%[[X]], %[[GATE]]) at "layers.0"
// CHECK: %[[DOWN:.*]] = sharding.call @MLP.cut_1(%[[PRODUCT]]) at "layers.0"
// CHECK: sharding.return %[[DOWN]]

// Around each module: the activation is one of its own.
// MODULES: sharding.call @MLP.cut(
// MODULES: sharding.call @MLP.cut_0(
// MODULES: sharding.call @MLP.cut_1(
// MODULES: sharding.call @MLP.cut_2(
// MODULES: sharding.call @MLP.cut_3(
// MODULES-NOT: sharding.call

// What is recomputed is one operator of the graph.
// WHOLE: sharding.call @MLP(
// WHOLE-NOT: sharding.call

// OTHER: error: expected {{.*}}to be one of: functions, buckets, modules
// NONE: error: {{.*}}ends graphs at buckets and has none; decide-framework decides them

sharding.mesh @mesh [#sharding.axis<"dp_replicate" = 2>]
sharding.job "m" micro_batch 1 sequence_length 64 device "cuda" {
  checkpoint = #sharding.checkpoint<none, because = <"test">>,
  ddp = #sharding.ddp<bucket = 1048576, first = 1048576, as_view = false, hook = "", because = <"test">>,
  compile = #sharding.compile<model, ends = buckets, replays = false, because = <"test">>}
sharding.param "layers.0.gate.weight" : tensor<512x512xf32> init <ones>
sharding.param "layers.0.up.weight" : tensor<512x512xf32> init <ones>
sharding.param "layers.0.down.weight" : tensor<512x512xf32> init <ones>
func.func private @MLP(%x: tensor<64x512xbf16>, %gate: tensor<512x512xf32> {sharding.param = "gate.weight"}, %up: tensor<512x512xf32> {sharding.param = "up.weight"}, %down: tensor<512x512xf32> {sharding.param = "down.weight"}) -> tensor<bf16> {
  %0 = aten._to_copy %gate, bf16 : (tensor<512x512xf32>) -> tensor<512x512xbf16>
  %1 = aten.t %0 : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %2 = aten.mm %x, %1 : (tensor<64x512xbf16>, tensor<512x512xbf16>) -> tensor<64x512xbf16> loc("layers.*.gate")
  %3 = aten.silu %2 : tensor<64x512xbf16> loc("layers.*.act_fn")
  %4 = aten._to_copy %up, bf16 : (tensor<512x512xf32>) -> tensor<512x512xbf16>
  %5 = aten.t %4 : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %6 = aten.mm %x, %5 : (tensor<64x512xbf16>, tensor<512x512xbf16>) -> tensor<64x512xbf16> loc("layers.*.up")
  %7 = aten.mul.Tensor %3, %6 : (tensor<64x512xbf16>, tensor<64x512xbf16>) -> tensor<64x512xbf16> loc("layers.*")
  %8 = aten._to_copy %down, bf16 : (tensor<512x512xf32>) -> tensor<512x512xbf16>
  %9 = aten.t %8 : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %10 = aten.mm %7, %9 : (tensor<64x512xbf16>, tensor<512x512xbf16>) -> tensor<64x512xbf16> loc("layers.*.down")
  %11 = aten.sum.dim_IntList %10, [0, 1], false : (tensor<64x512xbf16>) -> tensor<bf16>
  return %11 : tensor<bf16>
}
sharding.graph @model(%x: tensor<64x512xbf16>) {
  %0 = sharding.call @MLP(%x) at "layers.0" : (tensor<64x512xbf16>) -> tensor<bf16>
  sharding.return %0 : tensor<bf16>
}
