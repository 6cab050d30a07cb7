// RUN: accel-opt opt %s --verify-schedule --split-input-file --verify-diagnostics

// A collective that nothing awaits.
schedule.program @p persistent 0 peak 256 at 0 {
  %g = schedule.alloc gathered of "u" : !schedule.buffer<256>
  // expected-error @+1 {{'schedule.all_gather_start' op is never awaited}}
  %f = schedule.all_gather_start "u" into %g over ["dp_shard"] on gather : !schedule.buffer<256> -> !schedule.inflight<256>
}

// -----

schedule.program @p persistent 0 peak 256 at 0 {
  %g = schedule.alloc gathered of "u" : !schedule.buffer<256>
  %f = schedule.all_gather_start "u" into %g over ["dp_shard"] on gather : !schedule.buffer<256> -> !schedule.inflight<256>
  // expected-note @+1 {{awaited here}}
  %a = schedule.await %f : !schedule.inflight<256> -> !schedule.buffer<256>
  // expected-error @+1 {{awaits a collective for the second time}}
  %b = schedule.await %f : !schedule.inflight<256> -> !schedule.buffer<256>
  schedule.free %a : !schedule.buffer<256>
}

// -----

// The buffer itself, while the collective works on it.
schedule.program @p persistent 0 peak 256 at 0 {
  %g = schedule.alloc gathered of "u" : !schedule.buffer<256>
  // expected-note @+1 {{given here}}
  %f = schedule.all_gather_start "u" into %g over ["dp_shard"] on gather : !schedule.buffer<256> -> !schedule.inflight<256>
  // expected-error @+1 {{reads the gathered buffer of unit 'u', which was given to a collective and comes back only from its await}}
  schedule.call @f() reads(%g) params [#schedule.param<"u", "w">] peak 0 own_peak 0 : () -> () reads(!schedule.buffer<256>) names []
  %a = schedule.await %f : !schedule.inflight<256> -> !schedule.buffer<256>
  schedule.free %a : !schedule.buffer<256>
}

// -----

schedule.program @p persistent 0 peak 256 at 0 {
  %g = schedule.alloc gathered of "u" : !schedule.buffer<256>
  // expected-note @+1 {{given here}}
  %f = schedule.all_gather_start "u" into %g over ["dp_shard"] on gather : !schedule.buffer<256> -> !schedule.inflight<256>
  // expected-error @+1 {{gathers into the gathered buffer of unit 'u', which was given to a collective}}
  %h = schedule.all_gather_start "u" into %g over ["dp_shard"] on gather : !schedule.buffer<256> -> !schedule.inflight<256>
  %a = schedule.await %f : !schedule.inflight<256> -> !schedule.buffer<256>
  %b = schedule.await %h : !schedule.inflight<256> -> !schedule.buffer<256>
  schedule.return keep(%a, %b : !schedule.buffer<256>, !schedule.buffer<256>)
}

// -----

// Use after free.
schedule.program @p carried(%g as gathered of "u": !schedule.buffer<256>) persistent 0 peak 256 at -1 {
  // expected-note @+1 {{freed here}}
  schedule.free %g : !schedule.buffer<256>
  // expected-error @+1 {{reads the gathered buffer of unit 'u', which is freed}}
  schedule.call @f() reads(%g) params [#schedule.param<"u", "w">] peak 0 own_peak 0 : () -> () reads(!schedule.buffer<256>) names []
}

// -----

// Double free.
schedule.program @p carried(%g as gathered of "u": !schedule.buffer<256>) persistent 0 peak 256 at -1 {
  // expected-note @+1 {{freed here}}
  schedule.free %g : !schedule.buffer<256>
  // expected-error @+1 {{frees the gathered buffer of unit 'u', which is freed}}
  schedule.free %g : !schedule.buffer<256>
}

// -----

schedule.program @p inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-note @+1 {{given up here}}
  schedule.call @f(%x) consumes [0] peak 0 own_peak 0 : (!schedule.buffer<64, tensor<4xf32>>) -> () names []
  // expected-error @+1 {{reads a value that is gone}}
  schedule.call @f(%x) peak 0 own_peak 0 : (!schedule.buffer<64, tensor<4xf32>>) -> () names []
}

// -----

schedule.program @p inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-note @+1 {{given up here}}
  schedule.free %x : !schedule.buffer<64, tensor<4xf32>>
  // expected-error @+1 {{frees a value that is gone}}
  schedule.free %x : !schedule.buffer<64, tensor<4xf32>>
}

// -----

schedule.program @p inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>) persistent 0 peak 64 at -1 {
  // expected-note @+1 {{it is made here}}
  %y = schedule.call @f(%x) peak 64 own_peak 64 : (!schedule.buffer<64, tensor<4xf32>>) -> !schedule.buffer<64, tensor<4xf32>> names ["y"]
  // expected-error @+1 {{leaves a value that is never freed}}
  schedule.return
}

// -----

schedule.program @p persistent 0 peak 256 at 0 {
  // expected-note @+1 {{it comes from here}}
  %g = schedule.alloc gathered of "u" : !schedule.buffer<256>
  // expected-error @+1 {{leaves the gathered buffer of unit 'u' neither freed nor kept}}
  schedule.return
}

// -----

schedule.program @p carried(%g as gathered of "u": !schedule.buffer<256>) persistent 0 peak 256 at -1 {
  // expected-error @+1 {{allocates the gathered buffer of unit 'u', which is allocated already}}
  %h = schedule.alloc gathered of "u" : !schedule.buffer<256>
  schedule.return keep(%g, %h : !schedule.buffer<256>, !schedule.buffer<256>)
}

// -----

schedule.program @p persistent 0 peak 256 at 0 {
  %g = schedule.alloc gathered of "u" : !schedule.buffer<256>
  // expected-error @+1 {{reads the gathered buffer of unit 'u', which nothing was gathered into}}
  schedule.call @f() reads(%g) params [#schedule.param<"u", "w">] peak 0 own_peak 0 : () -> () reads(!schedule.buffer<256>) names []
  schedule.free %g : !schedule.buffer<256>
}

// -----

schedule.program @p carried(%g as gathered of "v": !schedule.buffer<256>) persistent 0 peak 256 at -1 {
  // expected-error @+1 {{reads the gathered buffer of unit 'v', which holds none of its parameters}}
  schedule.call @f() reads(%g) params [#schedule.param<"u", "w">] peak 0 own_peak 0 : () -> () reads(!schedule.buffer<256>) names []
  schedule.free %g : !schedule.buffer<256>
}

// -----

schedule.program @p carried(%g as receive of "u": !schedule.buffer<256>) persistent 0 peak 256 at -1 {
  // expected-error @+1 {{writes the receive buffer of unit 'u', which holds none of its gradients}}
  schedule.call @f() writes(%g) gradients [#schedule.gradient<"u", "w">] peak 0 own_peak 0 : () -> () writes(!schedule.buffer<256>) names []
  schedule.free %g : !schedule.buffer<256>
}

// -----

schedule.program @p carried(%g as gradient of "u": !schedule.buffer<256>) persistent 0 peak 256 at -1 {
  // expected-error @+1 {{has no buffer for the gradient of 'b'}}
  schedule.call @f() writes(%g) gradients [#schedule.gradient<"u", "w">, #schedule.gradient<"v", "b">] peak 0 own_peak 0 : () -> () writes(!schedule.buffer<256>) names []
  schedule.free %g : !schedule.buffer<256>
}

// -----

schedule.program @p carried(%g as gathered of "u": !schedule.buffer<256>) persistent 0 peak 256 at -1 {
  // expected-error @+1 {{updates from the gathered buffer of unit 'u', expected the shard_gradient buffer of unit 'u'}}
  schedule.optimizer_step "u" from %g : !schedule.buffer<256>
  // expected-error @+1 {{takes the norm of the gathered buffer of unit 'u'}}
  schedule.grad_norm of(%g : !schedule.buffer<256>)
  schedule.free %g : !schedule.buffer<256>
}

// -----

// Awaited on the gather stream alone: computation may not look yet.
schedule.program @p carried(%g as gathered of "u": !schedule.buffer<256>) persistent 0 peak 256 at -1 {
  %f = schedule.all_gather_start "u" into %g over ["dp_shard"] on gather : !schedule.buffer<256> -> !schedule.inflight<256>
  %a = schedule.await %f on gather : !schedule.inflight<256> -> !schedule.buffer<256>
  // expected-error @+1 {{reads the gathered buffer of unit 'u' on stream compute, it was awaited on stream gather}}
  schedule.call @f() reads(%a) params [#schedule.param<"u", "w">] peak 0 own_peak 0 : () -> () reads(!schedule.buffer<256>) names []
  schedule.free %a on gather : !schedule.buffer<256>
}

// -----

// One communicator, one order.
schedule.program @p carried(%g as gathered of "u": !schedule.buffer<256>) persistent 0 peak 256 at -1 {
  // expected-note @+1 {{here}}
  %f = schedule.all_gather_start "u" into %g over ["dp_shard"] on gather : !schedule.buffer<256> -> !schedule.inflight<256>
  %a = schedule.await %f : !schedule.inflight<256> -> !schedule.buffer<256>
  // expected-error @+1 {{runs on stream compute, elsewhere this collective over the same axes runs on gather}}
  %h = schedule.all_gather_start "u" into %a over ["dp_shard"] on compute : !schedule.buffer<256> -> !schedule.inflight<256>
  %b = schedule.await %h : !schedule.inflight<256> -> !schedule.buffer<256>
  schedule.free %b : !schedule.buffer<256>
}

// -----

// Bytes of one buffer, in two programs.
schedule.program @p persistent 0 peak 256 at 0 {
  // expected-note @+1 {{here}}
  %g = schedule.alloc gathered of "u" : !schedule.buffer<256>
  schedule.free %g : !schedule.buffer<256>
}
schedule.program @q persistent 0 peak 512 at 0 {
  // expected-error @+1 {{says that the gathered buffer of unit 'u' has 512 bytes, elsewhere it has 256}}
  %g = schedule.alloc gathered of "u" : !schedule.buffer<512>
  schedule.free %g : !schedule.buffer<512>
}

// -----

// expected-error @+1 {{records a peak of 320 bytes at instruction 0, its timeline has 256 at instruction 0}}
schedule.program @p persistent 0 peak 320 at 0 {
  %g = schedule.alloc gathered of "u" : !schedule.buffer<256>
  schedule.free %g : !schedule.buffer<256>
}

// -----

// Workspaces decide where the peak is, not how high own buffers go.
// expected-error @+1 {{records a peak of 256 bytes at instruction 0, its timeline has 256 at instruction 2}}
schedule.program @p persistent 0 peak 256 at 0 {
  %g = schedule.alloc gathered of "u" : !schedule.buffer<256>
  schedule.free %g : !schedule.buffer<256>
  schedule.call @f() peak 512 own_peak 64 : () -> () names []
}
