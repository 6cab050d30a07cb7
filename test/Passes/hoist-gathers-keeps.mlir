// RUN: accel-opt opt %s --hoist-gathers | FileCheck %s
// RUN: accel-opt opt %s --hoist-gathers | accel-opt opt --hoist-gathers | FileCheck %s

// What must not move.
sharding.job "edited" micro_batch 1 sequence_length 4 device "cpu" {
  prefetch = #sharding.prefetch<forward = 1, backward = 1, because = <"x">>}

// A gather that overlaps computation already was placed by someone: it stays,
// and the next one follows its await.
// CHECK-LABEL: schedule.program @placed
// CHECK-NEXT:  persistent 0 peak 192 at 5
// CHECK-NEXT:  %[[A0:.*]] = schedule.alloc gathered of "a"
// CHECK-NEXT:  %[[A1:.*]] = schedule.all_gather_start "a"
// CHECK-NEXT:  schedule.call @f
// CHECK-NEXT:  %[[B0:.*]] = schedule.alloc gathered of "b"
// CHECK-NEXT:  %[[B1:.*]] = schedule.all_gather_start "b"
// CHECK-NEXT:  schedule.call @f
// CHECK-NEXT:  schedule.await %[[A1]]
// CHECK-NEXT:  schedule.call @f
// CHECK-NEXT:  schedule.await %[[B1]]
// CHECK-NEXT:  %[[C0:.*]] = schedule.alloc gathered of "c"
// CHECK-NEXT:  %[[C1:.*]] = schedule.all_gather_start "c"
// CHECK-NEXT:  schedule.call @f
// CHECK-NEXT:  schedule.await %[[C1]]
schedule.program @placed persistent 0 peak 192 at 10 {
  %0 = schedule.alloc gathered of "a" : <64>
  %1 = schedule.all_gather_start "a" into %0 over ["dp_shard"] on gather : <64> -> <64>
  schedule.call @f() peak 0 own_peak 0 : () -> () names []
  %2 = schedule.alloc gathered of "b" : <64>
  %3 = schedule.all_gather_start "b" into %2 over ["dp_shard"] on gather : <64> -> <64>
  schedule.call @f() peak 64 own_peak 64 : () -> () names []
  %4 = schedule.await %1 : <64> -> !schedule.buffer<64>
  schedule.call @f() peak 0 own_peak 0 : () -> () names []
  %5 = schedule.await %3 : <64> -> !schedule.buffer<64>
  schedule.call @f() peak 0 own_peak 0 : () -> () names []
  %6 = schedule.alloc gathered of "c" : <64>
  %7 = schedule.all_gather_start "c" into %6 over ["dp_shard"] on gather : <64> -> <64>
  %8 = schedule.await %7 : <64> -> !schedule.buffer<64>
  schedule.free %8 : !schedule.buffer<64>
  schedule.free %5 : !schedule.buffer<64>
  schedule.free %4 : !schedule.buffer<64>
}

// A unit is gathered anew after it is freed and updated, not before, and not
// kept with its old values.
// CHECK-LABEL: schedule.program @updated
// CHECK:       schedule.call @f
// CHECK-NEXT:  schedule.free
// CHECK-NEXT:  schedule.optimizer_step "a"
// CHECK-NEXT:  schedule.alloc gathered of "a"
// CHECK-NEXT:  schedule.all_gather_start "a"
// CHECK-NEXT:  schedule.call @g
schedule.program @updated
    carried(%sg as shard_gradient of "a": !schedule.buffer<64>)
    persistent 0 peak 128 at 0 {
  %0 = schedule.alloc gathered of "a" : <64>
  %1 = schedule.all_gather_start "a" into %0 over ["dp_shard"] on gather : <64> -> <64>
  %2 = schedule.await %1 : <64> -> !schedule.buffer<64>
  schedule.call @f() peak 0 own_peak 0 : () -> () names []
  schedule.free %2 : !schedule.buffer<64>
  schedule.optimizer_step "a" from %sg : <64>
  schedule.call @g() peak 0 own_peak 0 : () -> () names []
  %3 = schedule.alloc gathered of "a" : <64>
  %4 = schedule.all_gather_start "a" into %3 over ["dp_shard"] on gather : <64> -> <64>
  %5 = schedule.await %4 : <64> -> !schedule.buffer<64>
  schedule.free %5 : !schedule.buffer<64>
  schedule.return keep(%sg : !schedule.buffer<64>)
}
