// RUN: accel-opt opt %s --verify-schedule --split-input-file --verify-diagnostics

schedule.program @early inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 128 at 1 {
  %s = schedule.save_start %x on host_out : !schedule.buffer<64, tensor<4xf32>> -> !schedule.inflight<64>
  // expected-error @+1 {{fetches before the copy to the host is awaited}}
  %f = schedule.fetch_start %s on host_in : !schedule.inflight<64> -> !schedule.inflight<64>
  schedule.await_send %s of %x : !schedule.inflight<64>, !schedule.buffer<64, tensor<4xf32>>
  %y = schedule.await_fetch %f : !schedule.inflight<64> -> !schedule.buffer<64, tensor<4xf32>>
  schedule.free %y : !schedule.buffer<64, tensor<4xf32>>
}

// -----

schedule.program @never inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-error @+1 {{is never awaited}}
  %s = schedule.save_start %x on host_out : !schedule.buffer<64, tensor<4xf32>> -> !schedule.inflight<64>
}

// -----

schedule.program @bytes inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-error @+1 {{copies 128 bytes of a value, its storage has 64}}
  %s = schedule.save_start %x on host_out : !schedule.buffer<64, tensor<4xf32>> -> !schedule.inflight<128>
  schedule.await_send %s of %x : !schedule.inflight<128>, !schedule.buffer<64, tensor<4xf32>>
}

// -----

schedule.program @type inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 128 at 1 {
  %s = schedule.save_start %x on host_out : !schedule.buffer<64, tensor<4xf32>> -> !schedule.inflight<64>
  schedule.await_send %s of %x : !schedule.inflight<64>, !schedule.buffer<64, tensor<4xf32>>
  %f = schedule.fetch_start %s on host_in : !schedule.inflight<64> -> !schedule.inflight<64>
  // expected-error @+1 {{gives '!schedule.buffer<64, tensor<8xf32>>' for a saved '!schedule.buffer<64, tensor<4xf32>>'}}
  %y = schedule.await_fetch %f : !schedule.inflight<64> -> !schedule.buffer<64, tensor<8xf32>>
}
