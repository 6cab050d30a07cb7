// RUN: accel-opt opt %s --split-input-file --verify-diagnostics

schedule.program @p persistent 0 peak 0 at -1 {
  // expected-error @+1 {{100 bytes are not a multiple of 64}}
  %0 = schedule.alloc gathered of "u" : !schedule.buffer<100>
}

// -----

schedule.program @p persistent 0 peak 0 at -1 {
  // expected-error @+1 {{-64 bytes are not a multiple of 64}}
  %0 = schedule.alloc gathered of "u" : !schedule.buffer<-64>
}

// -----

schedule.program @p persistent 0 peak 0 at -1 {
  // expected-error @+1 {{an activation is a tensor of static shape, not 'tensor<?xf32>'}}
  %0 = schedule.alloc gathered of "u" : !schedule.buffer<64, tensor<?xf32>>
}

// -----

schedule.program @p persistent 0 peak 0 at -1 {
  // expected-error @+1 {{takes an activation as its result, expected a unit's buffer}}
  %0 = schedule.alloc gathered of "u" : !schedule.buffer<64, tensor<4xf32>>
}

// -----

schedule.program @p persistent 0 peak 0 at -1 {
  // expected-error @+1 {{unknown role 'gather', expected gathered, gradient, receive or shard_gradient}}
  %0 = schedule.alloc gather of "u" : !schedule.buffer<64>
}

// -----

schedule.program @p persistent 0 peak 0 at -1 {
  // expected-error @+1 {{unknown stream 'copy', expected compute, gather, reduce, send, host_out, host_in or host}}
  %0 = schedule.alloc gathered of "u" on copy : !schedule.buffer<64>
}

// -----

// expected-error @+1 {{has a peak of 64 bytes, below its persistent 128}}
schedule.program @p persistent 128 peak 64 at -1 {
}

// -----

// expected-error @+1 {{has its peak at the impossible instruction -2}}
schedule.program @p persistent 0 peak 0 at -2 {
}

// -----

// expected-error @+1 {{has two inputs 'a'}}
schedule.program @p
    inputs(%a as "a": !schedule.buffer<64, tensor<f32>>, %b as "a": !schedule.buffer<64, tensor<f32>>)
    persistent 0 peak 128 at -1 {
}

// -----

// expected-error @+1 {{argument 0 is a unit's buffer, expected an activation}}
schedule.program @p inputs(%a as "a": !schedule.buffer<64>) persistent 0 peak 64 at -1 {
}

// -----

// expected-error @+1 {{argument 0 is an activation, expected a unit's buffer}}
schedule.program @p carried(%a as gradient of "u": !schedule.buffer<64, tensor<f32>>) persistent 0 peak 64 at -1 {
}

// -----

// expected-error @+1 {{has an argument that is no buffer: 'i32'}}
schedule.program @p inputs(%a as "a": i32) persistent 0 peak 64 at -1 {
}

// -----

// expected-error @+1 {{is carried the same buffer twice}}
schedule.program @p
    carried(%a as gradient of "u": !schedule.buffer<64>, %b as gradient of "u": !schedule.buffer<64>)
    persistent 0 peak 128 at -1 {
}

// -----

schedule.program @p inputs(%a as "a": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-error @+1 {{expects a 0-d f32 as the loss}}
  schedule.return loss(%a : !schedule.buffer<64, tensor<4xf32>>)
}

// -----

schedule.program @p inputs(%a as "a": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-error @+1 {{takes an activation as what it keeps}}
  schedule.return keep(%a : !schedule.buffer<64, tensor<4xf32>>)
}

// -----

schedule.program @p carried(%g as gathered of "u": !schedule.buffer<128>) persistent 0 peak 128 at -1 {
  // expected-error @+1 {{gives '!schedule.inflight<64>', but its buffers have 128 bytes}}
  %f = schedule.all_gather_start "u" into %g over ["dp_shard"] on gather : !schedule.buffer<128> -> !schedule.inflight<64>
}

// -----

schedule.program @p carried(%g as gathered of "u": !schedule.buffer<128>) persistent 0 peak 128 at -1 {
  // expected-error @+1 {{names the mesh axis 'dp_shard' twice}}
  %f = schedule.all_gather_start "u" into %g over ["dp_shard", "dp_shard"] on gather : !schedule.buffer<128> -> !schedule.inflight<128>
}

// -----

schedule.program @p carried(%g as gradient of "u": !schedule.buffer<128>, %s as shard_gradient of "u": !schedule.buffer<64>) persistent 0 peak 192 at -1 {
  // expected-error @+1 {{has the unknown algorithm 'ring', expected direct or all_to_all}}
  %f = schedule.reduce_scatter_start "u" from %g to %s over ["dp_shard"] by "ring" on reduce : (!schedule.buffer<128>, !schedule.buffer<64>) -> !schedule.inflight<128, 64>
}

// -----

schedule.program @p carried(%g as gradient of "u": !schedule.buffer<128>, %s as shard_gradient of "u": !schedule.buffer<64>, %r as receive of "u": !schedule.buffer<128>) persistent 0 peak 320 at -1 {
  // expected-error @+1 {{receives into 128 bytes, the pieces of the other ranks are less than the 128 of all gradients}}
  %f = schedule.reduce_scatter_start "u" from %g to %s via %r over ["dp_shard"] by "all_to_all" on reduce : (!schedule.buffer<128>, !schedule.buffer<64>, !schedule.buffer<128>) -> !schedule.inflight<128, 64, 128>
}

// -----

schedule.program @p carried(%g as gradient of "u": !schedule.buffer<128>, %s as shard_gradient of "u": !schedule.buffer<64>, %r as receive of "u": !schedule.buffer<128>) persistent 0 peak 320 at -1 {
  // expected-error @+1 {{by "direct" needs no buffer to receive into}}
  %f = schedule.reduce_scatter_start "u" from %g to %s via %r over ["dp_shard"] by "direct" on reduce : (!schedule.buffer<128>, !schedule.buffer<64>, !schedule.buffer<128>) -> !schedule.inflight<128, 64, 128>
}

// -----

schedule.program @p carried(%g as gathered of "u": !schedule.buffer<128>) persistent 0 peak 128 at -1 {
  %f = schedule.all_gather_start "u" into %g over ["dp_shard"] on gather : !schedule.buffer<128> -> !schedule.inflight<128>
  // expected-error @+1 {{gives '!schedule.inflight<128>', but its buffers have 128, 64 bytes}}
  %a:2 = schedule.await %f : !schedule.inflight<128> -> !schedule.buffer<128>, !schedule.buffer<64>
}

// -----

// In flight is a type of its own: what reads too early does not type-check.
schedule.program @p carried(%g as gathered of "u": !schedule.buffer<128>) persistent 0 peak 128 at -1 {
  // expected-note @+1 {{prior use here}}
  %f = schedule.all_gather_start "u" into %g over ["dp_shard"] on gather : !schedule.buffer<128> -> !schedule.inflight<128>
  // expected-error @+1 {{use of value '%f' expects different type than prior uses}}
  schedule.free %f : !schedule.buffer<128>
}

// -----

schedule.program @p carried(%g as gathered of "u": !schedule.buffer<128>, %h as gathered of "v": !schedule.buffer<128>) persistent 0 peak 256 at -1 {
  // expected-error @+1 {{frees a unit's buffer together with others}}
  schedule.free %g, %h : !schedule.buffer<128>, !schedule.buffer<128>
}

// -----

schedule.program @p inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-error @+1 {{consumes input 1, it has 1}}
  schedule.call @f(%x) consumes [1] peak 0 own_peak 0 : (!schedule.buffer<64, tensor<4xf32>>) -> () names []
}

// -----

schedule.program @p inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-error @+1 {{consumes input 0 twice}}
  schedule.call @f(%x) consumes [0, 0] peak 0 own_peak 0 : (!schedule.buffer<64, tensor<4xf32>>) -> () names []
}

// -----

schedule.program @p inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-error @+1 {{has 1 results but names 0}}
  %y = schedule.call @f(%x) peak 0 own_peak 0 : (!schedule.buffer<64, tensor<4xf32>>) -> !schedule.buffer<64, tensor<4xf32>> names []
}

// -----

schedule.program @p inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-error @+1 {{result 0 shares a storage but owns 64 bytes}}
  %y = schedule.call @f(%x) peak 0 own_peak 0 : (!schedule.buffer<64, tensor<4xf32>>) -> !schedule.buffer<64, tensor<4xf32>> names ["y"] aliases [0]
}

// -----

schedule.program @p inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-error @+1 {{result 0 shares the storage of the impossible value 1}}
  %y = schedule.call @f(%x) peak 0 own_peak 0 : (!schedule.buffer<64, tensor<4xf32>>) -> !schedule.buffer<0, tensor<4xf32>> names ["y"] aliases [1]
}

// -----

schedule.program @p inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-error @+1 {{drops the impossible result 3}}
  %y = schedule.call @f(%x) peak 0 own_peak 0 : (!schedule.buffer<64, tensor<4xf32>>) -> !schedule.buffer<64, tensor<4xf32>> names ["y"] drops [3]
}

// -----

schedule.program @p carried(%g as gathered of "u": !schedule.buffer<128>) persistent 0 peak 128 at -1 {
  // expected-error @+1 {{passes a unit's buffer as an activation}}
  schedule.call @f(%g) peak 0 own_peak 0 : (!schedule.buffer<128>) -> () names []
}

// -----

schedule.program @p carried(%g as gathered of "u": !schedule.buffer<128>) persistent 0 peak 128 at -1 {
  // expected-error @+1 {{reads buffers without parameters}}
  schedule.call @f() reads(%g) peak 0 own_peak 0 : () -> () reads(!schedule.buffer<128>) names []
}

// -----

schedule.program @p persistent 0 peak 128 at -1 {
  // expected-error @+1 {{has gradients but nothing to write them to}}
  schedule.call @f() gradients [#schedule.gradient<"u", "w">] peak 0 own_peak 0 : () -> () names []
}

// -----

schedule.program @p persistent 0 peak 128 at -1 {
  // expected-error @+1 {{has a peak of 64 bytes and one of 128 without workspaces}}
  schedule.call @f() peak 64 own_peak 128 : () -> () names []
}

// -----

schedule.program @p inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-error @+1 {{moves an activation by 2 stages, expected 1 or -1}}
  %s = schedule.send_start %x by 2 on send : !schedule.buffer<64, tensor<4xf32>> -> !schedule.inflight<64>
}

// -----

schedule.program @p persistent 0 peak 64 at -1 {
  // expected-error @+1 {{moves a unit's buffer, expected an activation}}
  %x = schedule.receive "x" by 1 : !schedule.buffer<64>
}
