// Rows of experts are on their way beside what does not read them: a shared
// expert.
// RUN: accel-opt opt %s --overlap-collectives=target=h100-sxm-80gb | FileCheck %s
// RUN: accel-opt opt %s -o /dev/null --overlap-collectives=target=h100-sxm-80gb --print-functions | FileCheck %s --check-prefix=PLAN

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"ep" = 4>]

// CHECK-LABEL: @layer
// CHECK-NEXT:  %[[SENT:.*]] = sharding.dispatch %arg0, %arg1 over ["ep"] {schedule.start = "{{.*}} ms, beside 1 operator of {{.*}} ms"}
// CHECK-NEXT:  %[[UP:.*]] = aten.mm %arg0, %arg4
// CHECK-NEXT:  %[[CAME:.*]] = schedule.await_exchange %[[SENT]] : tensor<4096x4096xbf16> of %arg0 : tensor<4096x4096xbf16>
// CHECK-NEXT:  %[[ROWS:.*]] = aten._grouped_mm %[[CAME]]
// CHECK-NEXT:  %[[BACK:.*]] = sharding.combine %[[ROWS]], %arg1 over ["ep"] {schedule.start = "{{.*}} ms, beside 1 operator of {{.*}} ms"}
// CHECK-NEXT:  %[[DOWN:.*]] = aten.mm %[[UP]], %arg4
// CHECK-NEXT:  %[[OWN:.*]] = schedule.await_exchange %[[BACK]] : tensor<4096x4096xbf16>
// CHECK-NEXT:  aten.add.Tensor %[[OWN]], %[[DOWN]]
// What comes is sorted by rank in one buffer, what goes back in another.
// PLAN: "op":"sharding::dispatch.start","args":["%0","%1",4096,{"text":"ep"}],"results":[[[S:[0-9]+]],[[B:[0-9]+]]]
// PLAN: "op":"sharding::await","args":["%[[S]]","%[[B]]","%0"]
// PLAN: "op":"sharding::combine.start"
// PLAN: "op":"sharding::await"
func.func private @layer(%x: tensor<4096x4096xbf16>, %ends: tensor<4x8xi32>, %own: tensor<2xi32>, %w: tensor<2x4096x4096xbf16>, %s: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %0 = sharding.dispatch %x, %ends over ["ep"] : (tensor<4096x4096xbf16>, tensor<4x8xi32>) -> tensor<4096x4096xbf16>
  %1 = aten._grouped_mm %0, %w, %own rows 4096 : (tensor<4096x4096xbf16>, tensor<2x4096x4096xbf16>, tensor<2xi32>) -> tensor<4096x4096xbf16>
  %2 = sharding.combine %1, %ends over ["ep"] : (tensor<4096x4096xbf16>, tensor<4x8xi32>) -> tensor<4096x4096xbf16>
  %3 = aten.mm %x, %s : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %4 = aten.mm %3, %s : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %5 = aten.add.Tensor %2, %4 : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %5 : tensor<4096x4096xbf16>
}
