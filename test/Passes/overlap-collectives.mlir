// RUN: accel-opt opt %s --overlap-collectives=target=h100-sxm-80gb | FileCheck %s
// RUN: accel-opt opt %s --overlap-collectives=target=h100-sxm-80gb | accel-opt opt --overlap-collectives | FileCheck %s
// RUN: accel-opt opt %s '--overlap-collectives=target=h100-sxm-80gb extra-bytes=0' | FileCheck %s --check-prefix=TIGHT
// RUN: not accel-opt opt %s --overlap-collectives=target=none 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: overlap-collectives knows no target 'none'
// RUN: accel-opt opt %s -o /dev/null --overlap-collectives=target=h100-sxm-80gb --print-functions | FileCheck %s --check-prefix=PLAN

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"tp" = 4>]

// The gradient of the weight is made beside the sum of the input's.
// CHECK-LABEL: @backward
// CHECK-NEXT:  %[[M:.*]] = aten.mm %arg0, %arg2
// CHECK-NEXT:  %[[S:.*]] = sharding.all_reduce %[[M]] over ["tp"] {schedule.start = "{{.*}} ms, beside 1 operator of {{.*}} ms"}
// CHECK-NEXT:  %[[T:.*]] = aten.t %arg0
// CHECK-NEXT:  %[[W:.*]] = aten.mm %[[T]], %arg1
// CHECK-NEXT:  %[[A:.*]] = schedule.await_exchange %[[S]] : tensor<4096x4096xbf16>
// CHECK-NEXT:  %[[X:.*]] = aten.mul.Tensor %[[A]], %arg1
// CHECK-NEXT:  return %[[X]], %[[W]]
// The sum is there while the gradient is made: one tensor more at the peak.
// TIGHT-NOT: schedule.
// A sum works on a copy, and its operand is free at once; a gather reads its own
// until it is awaited.
// PLAN: "op":"sharding::all_reduce.start","args":["%[[M:[0-9]+]]",0,{"text":"tp"}],"results":[[[S:[0-9]+]]],"frees":[[[M]]]}
// PLAN: "op":"sharding::await","args":["%[[S]]"]}
// PLAN: "op":"sharding::all_gather.start","args":["%2",0,1,0,{"text":"tp"}],"results":[[[G:[0-9]+]]]}
// PLAN: "op":"sharding::await","args":["%[[G]]","%2"],"frees":[2]}
func.func private @backward(%g: tensor<4096x4096xbf16>, %x: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %0 = aten.mm %g, %w : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %1 = sharding.all_reduce %0 over ["tp"] : tensor<4096x4096xbf16>
  %2 = aten.mul.Tensor %1, %x : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %3 = aten.t %g : (tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %4 = aten.mm %3, %x : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %2, %4 : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}

// The next operator reads it, and no other is there: nothing is started.
// CHECK-LABEL: @chain
// CHECK-NEXT:  aten.mm
// CHECK-NEXT:  %[[S:.*]] = sharding.all_reduce %{{.*}} over ["tp"] : tensor
// CHECK-NEXT:  aten.mm %[[S]]
// CHECK-NOT:   await
func.func private @chain(%x: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %0 = aten.mm %x, %w : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %1 = sharding.all_reduce %0 over ["tp"] : tensor<4096x4096xbf16>
  %2 = aten.mm %1, %w : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %2 : tensor<4096x4096xbf16>
}

// What is there from the start is gathered beside what stands before its reader,
// and no earlier than it must.
// CHECK-LABEL: @again
// CHECK-NEXT:  %[[A:.*]] = aten.mm %arg0, %arg1
// CHECK-NEXT:  %[[G:.*]] = sharding.all_gather %arg2 dim 0 over "tp" {schedule.start = "{{.*}} ms, beside 1 operator of {{.*}} ms"}
// CHECK-NEXT:  %[[B:.*]] = aten.mm %[[A]], %arg1
// CHECK-NEXT:  %[[W:.*]] = schedule.await_exchange %[[G]] : tensor<4096x4096xbf16> of %arg2 : tensor<1024x4096xbf16>
// CHECK-NEXT:  aten.mm %[[B]], %[[W]]
func.func private @again(%x: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>, %y: tensor<1024x4096xbf16>) -> tensor<4096x4096xbf16> {
  %0 = aten.mm %x, %w : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %1 = aten.mm %0, %w : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %2 = sharding.all_gather %y dim 0 over "tp" : (tensor<1024x4096xbf16>) -> tensor<4096x4096xbf16>
  %3 = aten.mm %1, %2 : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %3 : tensor<4096x4096xbf16>
}

// A slice sends nothing.
// CHECK-LABEL: @slice
// CHECK-NEXT:  sharding.slice
// CHECK-NEXT:  aten.mm
// CHECK-NOT:   await
func.func private @slice(%x: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> (tensor<1024x4096xbf16>, tensor<4096x4096xbf16>) {
  %0 = sharding.slice %x dim 0 over "tp" : (tensor<4096x4096xbf16>) -> tensor<1024x4096xbf16>
  %1 = aten.mm %x, %w : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %0, %1 : tensor<1024x4096xbf16>, tensor<4096x4096xbf16>
}
