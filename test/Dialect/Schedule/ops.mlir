// RUN: accel-opt opt %s --verify-roundtrip | accel-opt opt | FileCheck %s

// Every operation, type and attribute of the dialect, as it is printed.

// CHECK-LABEL: schedule.program @last
// CHECK-NEXT: inputs(%[[IDS:.*]] as "input_ids": !schedule.buffer<256, tensor<32xi64>>, %[[SEED:.*]] as "loss_seed": !schedule.buffer<64, tensor<f32>>)
// CHECK-NEXT: carried(%[[SHARD:.*]] as shard_gradient of "layers.0": !schedule.buffer<128>)
// CHECK-NEXT: persistent 640 peak 2048 at 3 {
schedule.program @last
    inputs(%ids as "input_ids": !schedule.buffer<256, tensor<32xi64>>,
           %seed as "loss_seed": !schedule.buffer<64, tensor<f32>>)
    carried(%sg as shard_gradient of "layers.0": !schedule.buffer<128>)
    persistent 640 peak 2048 at 3 {
  // CHECK: %[[G:.*]] = schedule.alloc gathered of "layers.0" on gather : <256>
  %g = schedule.alloc gathered of "layers.0" on gather : !schedule.buffer<256>
  // CHECK: %[[F:.*]] = schedule.all_gather_start "layers.0" into %[[G]] over ["dp_shard"] on gather : <256> -> <256>
  %f = schedule.all_gather_start "layers.0" into %g over ["dp_shard"] on gather : !schedule.buffer<256> -> !schedule.inflight<256>
  // CHECK: %[[P:.*]] = schedule.await %[[F]] : <256> -> !schedule.buffer<256>
  %p = schedule.await %f : !schedule.inflight<256> -> !schedule.buffer<256>
  // CHECK: %[[D:.*]] = schedule.alloc gradient of "layers.0" : <256>
  %d = schedule.alloc gradient of "layers.0" : !schedule.buffer<256>
  // CHECK: %[[Y:.*]]:3 = schedule.call @L.step(%[[IDS]], %[[SEED]]) consumes [0]
  // CHECK-SAME: reads(%[[P]]) params [#schedule.param<"layers.0", "layers.0.weight">]
  // CHECK-SAME: writes(%[[D]]) gradients [#schedule.gradient<"layers.0", "layers.0.weight">, #schedule.gradient<"layers.0", "layers.0.bias", accumulate = true>]
  // CHECK-SAME: peak 1024 own_peak 512
  // CHECK-SAME: reads(!schedule.buffer<256>) writes(!schedule.buffer<256>)
  // CHECK-SAME: names ["loss", "x", "view"] aliases [-1, -1, 3] drops [1]
  %y:3 = schedule.call @L.step(%ids, %seed) consumes [0]
      reads(%p) params [#schedule.param<"layers.0", "layers.0.weight">]
      writes(%d) gradients [#schedule.gradient<"layers.0", "layers.0.weight">, #schedule.gradient<"layers.0", "layers.0.bias", accumulate = true>]
      peak 1024 own_peak 512
      : (!schedule.buffer<256, tensor<32xi64>>, !schedule.buffer<64, tensor<f32>>)
        -> (!schedule.buffer<64, tensor<f32>>, !schedule.buffer<128, tensor<32xf32>>, !schedule.buffer<0, tensor<4x8xf32>>)
      reads(!schedule.buffer<256>) writes(!schedule.buffer<256>)
      names ["loss", "x", "view"] aliases [-1, -1, 3] drops [1] loc("layers.0")
  // CHECK: schedule.free %[[Y]]#1, %[[Y]]#2 : !schedule.buffer<128, tensor<32xf32>>, !schedule.buffer<0, tensor<4x8xf32>>
  schedule.free %y#1, %y#2 : !schedule.buffer<128, tensor<32xf32>>, !schedule.buffer<0, tensor<4x8xf32>>
  // CHECK: %[[R:.*]] = schedule.alloc receive of "layers.0" : <128>
  %r = schedule.alloc receive of "layers.0" : !schedule.buffer<128>
  // CHECK: schedule.reduce_scatter_start "layers.0" from %[[D]] to %[[SHARD]] via %[[R]] accumulate over ["dp_shard"] by "all_to_all" on reduce : (<256>, <128>, !schedule.buffer<128>) -> <256, 128, 128>
  %s = schedule.reduce_scatter_start "layers.0" from %d to %sg via %r accumulate over ["dp_shard"] by "all_to_all" on reduce
      : (!schedule.buffer<256>, !schedule.buffer<128>, !schedule.buffer<128>) -> !schedule.inflight<256, 128, 128>
  // CHECK: %[[A:.*]]:3 = schedule.await %{{.*}} on reduce : <256, 128, 128>
  %a:3 = schedule.await %s on reduce : !schedule.inflight<256, 128, 128> -> !schedule.buffer<256>, !schedule.buffer<128>, !schedule.buffer<128>
  // CHECK: schedule.all_reduce_start "layers.0" of %[[A]]#1 over ["dp_replicate"] on reduce : <128> -> <128>
  %h = schedule.all_reduce_start "layers.0" of %a#1 over ["dp_replicate"] on reduce : !schedule.buffer<128> -> !schedule.inflight<128>
  %b = schedule.await %h : !schedule.inflight<128> -> !schedule.buffer<128>
  // CHECK: schedule.grad_norm of(%[[B:.*]] : !schedule.buffer<128>)
  schedule.grad_norm of(%b : !schedule.buffer<128>)
  // CHECK: schedule.optimizer_step "layers.0" from %[[B]] : <128>
  schedule.optimizer_step "layers.0" from %b : !schedule.buffer<128>
  // CHECK: %[[O:.*]] = schedule.offload_start "layers.0" of %[[B]] on host_out : <128> -> <128>
  %o = schedule.offload_start "layers.0" of %b on host_out : !schedule.buffer<128> -> !schedule.inflight<128>
  // CHECK: schedule.await %[[O]] : <128>
  %c = schedule.await %o : !schedule.inflight<128> -> !schedule.buffer<128>
  // CHECK: schedule.grad_norm on host
  schedule.grad_norm on host
  // CHECK: schedule.host_step "layers.0"{{$}}
  schedule.host_step "layers.0"
  // CHECK: schedule.return loss(%[[Y]]#0 : !schedule.buffer<64, tensor<f32>>) keep(%[[B]] : !schedule.buffer<128>)
  schedule.return loss(%y#0 : !schedule.buffer<64, tensor<f32>>) keep(%b : !schedule.buffer<128>)
}

// Without steps the terminator is implied.
// CHECK-LABEL: schedule.program @nothing
// CHECK-NEXT: persistent 0 peak 0 at -1 {
// CHECK-NEXT: schedule.return
schedule.program @nothing persistent 0 peak 0 at -1 {
}

// A stage of a pipeline receives, computes and sends.
// CHECK-LABEL: schedule.program @stage1
// CHECK: attributes {schedule.stage = 1 : i64}
schedule.program @stage1 persistent 0 peak 64 at 0 attributes {schedule.stage = 1 : i64} {
  // CHECK: %[[X:.*]] = schedule.receive "x" by 1 : <64, tensor<4xf32>>
  %x = schedule.receive "x" by 1 : !schedule.buffer<64, tensor<4xf32>>
  // CHECK: schedule.pause
  schedule.pause
  // CHECK: %[[S:.*]] = schedule.send_start %[[X]] by -1 on send : <64, tensor<4xf32>> -> <64>
  %s = schedule.send_start %x by -1 on send : !schedule.buffer<64, tensor<4xf32>> -> !schedule.inflight<64>
  // CHECK: schedule.await_send %[[S]] of %[[X]] : <64>, !schedule.buffer<64, tensor<4xf32>>
  schedule.await_send %s of %x : !schedule.inflight<64>, !schedule.buffer<64, tensor<4xf32>>
}
