// RUN: accel-opt opt %s --verify-schedule | FileCheck %s

// A view keeps the storage of what it looks at: x (256 bytes) lives until v is
// freed, so that the peak is x + y + what g needs.
// CHECK-LABEL: schedule.program @views
schedule.program @views inputs(%x as "x": !schedule.buffer<256, tensor<64xf32>>) persistent 0 peak 832 at 1 {
  %v = schedule.call @view(%x) consumes [0] peak 0 own_peak 0
      : (!schedule.buffer<256, tensor<64xf32>>) -> !schedule.buffer<0, tensor<8x8xf32>> names ["v"] aliases [0]
  %y = schedule.call @g(%v) peak 640 own_peak 576
      : (!schedule.buffer<0, tensor<8x8xf32>>) -> !schedule.buffer<512, tensor<128xf32>> names ["y"]
  schedule.free %v : !schedule.buffer<0, tensor<8x8xf32>>
  schedule.free %y : !schedule.buffer<512, tensor<128xf32>>
}

// Two programs that hand a gradient shard on; the collectives keep to a stream.
// CHECK-LABEL: schedule.program @first
schedule.program @first persistent 640 peak 1152 at 3 {
  %g = schedule.alloc gathered of "u" : !schedule.buffer<256>
  %f = schedule.all_gather_start "u" into %g over ["dp_shard"] on gather : !schedule.buffer<256> -> !schedule.inflight<256>
  %p = schedule.await %f : !schedule.inflight<256> -> !schedule.buffer<256>
  %d = schedule.alloc gradient of "u" : !schedule.buffer<256>
  schedule.call @step() reads(%p) params [#schedule.param<"u", "w">] writes(%d) gradients [#schedule.gradient<"u", "w">]
      peak 0 own_peak 0 : () -> () reads(!schedule.buffer<256>) writes(!schedule.buffer<256>) names []
  schedule.free %p : !schedule.buffer<256>
  %s = schedule.alloc shard_gradient of "u" : !schedule.buffer<128>
  %r = schedule.reduce_scatter_start "u" from %d to %s over ["dp_shard"] by "direct" on reduce
      : (!schedule.buffer<256>, !schedule.buffer<128>) -> !schedule.inflight<256, 128>
  %a:2 = schedule.await %r : !schedule.inflight<256, 128> -> !schedule.buffer<256>, !schedule.buffer<128>
  schedule.free %a#0 : !schedule.buffer<256>
  schedule.return keep(%a#1 : !schedule.buffer<128>)
}

// CHECK-LABEL: schedule.program @last
schedule.program @last carried(%s as shard_gradient of "u": !schedule.buffer<128>) persistent 640 peak 768 at -1 {
  schedule.grad_norm of(%s : !schedule.buffer<128>)
  schedule.optimizer_step "u" from %s : !schedule.buffer<128>
  schedule.free %s : !schedule.buffer<128>
}
