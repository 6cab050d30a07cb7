// RUN: accel-opt opt %s --sink-awaits | FileCheck %s
// RUN: accel-opt opt %s --sink-awaits | accel-opt opt --sink-awaits | FileCheck %s

// What must not move. An await stays above what uses its buffers, and where the
// norm over all gradients is taken, nothing is in flight.

// CHECK-LABEL: schedule.program @used
// CHECK:       %[[A:.*]] = schedule.reduce_scatter_start "a"
// CHECK-NEXT:  %[[D:.*]] = schedule.alloc gradient of "b"
// CHECK-NEXT:  %[[G:.*]]:2 = schedule.await %[[A]]
// CHECK-NEXT:  schedule.free %[[G]]#0
// CHECK-NEXT:  schedule.call @f() writes(%[[D]], %[[G]]#1)
// CHECK-NEXT:  schedule.return keep(%[[D]], %[[G]]#1
schedule.program @used persistent 0 peak 320 at 4 {
  %0 = schedule.alloc gradient of "a" : <128>
  %1 = schedule.alloc shard_gradient of "a" : <64>
  %2 = schedule.reduce_scatter_start "a" from %0 to %1 over [] by "direct" on reduce : (<128>, <64>) -> <128, 64>
  %3:2 = schedule.await %2 : <128, 64> -> !schedule.buffer<128>, !schedule.buffer<64>
  schedule.free %3#0 : !schedule.buffer<128>
  %4 = schedule.alloc gradient of "b" : <128>
  schedule.call @f() writes(%4, %3#1) gradients [#schedule.gradient<"b", "b.weight">, #schedule.gradient<"a", "a.bias", accumulate = true>] peak 0 own_peak 0 : () -> () writes(!schedule.buffer<128>, !schedule.buffer<64>) names []
  schedule.return keep(%4, %3#1 : !schedule.buffer<128>, !schedule.buffer<64>)
}

// CHECK-LABEL: schedule.program @norm
// CHECK:       %[[A:.*]] = schedule.all_reduce_start "a"
// CHECK-NEXT:  schedule.call @f
// CHECK-NEXT:  %[[G:.*]] = schedule.await %[[A]]
// CHECK-NEXT:  schedule.grad_norm of(%[[G]]
schedule.program @norm persistent 0 peak 64 at 0 {
  %0 = schedule.alloc shard_gradient of "a" : <64>
  %1 = schedule.all_reduce_start "a" of %0 over ["dp_replicate"] on reduce : <64> -> <64>
  %2 = schedule.await %1 : <64> -> !schedule.buffer<64>
  schedule.call @f() peak 0 own_peak 0 : () -> () names []
  schedule.grad_norm of(%2 : !schedule.buffer<64>)
  schedule.optimizer_step "a" from %2 : <64>
  schedule.free %2 : !schedule.buffer<64>
}

// A gather of the same unit is not held back with its reduction.
// CHECK-LABEL: schedule.program @gather
// CHECK:       schedule.all_reduce_start "a"
// CHECK-NEXT:  schedule.alloc gathered of "a"
// CHECK-NEXT:  schedule.all_gather_start "a"
// CHECK-NEXT:  schedule.await
// CHECK-NEXT:  schedule.free
// CHECK-NEXT:  schedule.await
// CHECK-NEXT:  schedule.return
schedule.program @gather persistent 0 peak 192 at 3 {
  %0 = schedule.alloc shard_gradient of "a" : <64>
  %1 = schedule.all_reduce_start "a" of %0 over ["dp_replicate"] on reduce : <64> -> <64>
  %2 = schedule.await %1 : <64> -> !schedule.buffer<64>
  %3 = schedule.alloc gathered of "a" : <128>
  %4 = schedule.all_gather_start "a" into %3 over ["dp_shard"] on gather : <128> -> <128>
  %5 = schedule.await %4 : <128> -> !schedule.buffer<128>
  schedule.free %5 : !schedule.buffer<128>
  schedule.return keep(%2 : !schedule.buffer<64>)
}

// Without programs nothing is to do.
module @empty {
}
