// RUN: accel-opt opt %s --insert-frees --split-input-file --verify-diagnostics

// Without programs there is nothing to free.
module {
}

// -----

schedule.program @train inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>)
    persistent 0 peak 64 at -1 {
  // expected-error @+1 {{calls 'L', which is no function of the module}}
  %0 = schedule.call @L(%x) peak 64 own_peak 64 : (!schedule.buffer<64, tensor<4xf32>>) -> !schedule.buffer<64, tensor<4xf32>> names ["y"]
  schedule.return
}

// -----

// expected-note @+1 {{the function is here}}
func.func private @L(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = aten.mul.Tensor %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
schedule.program @train inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>)
    persistent 0 peak 64 at -1 {
  // expected-error @+1 {{passes 1 activations to 'L', which takes 2}}
  %0 = schedule.call @L(%x) peak 64 own_peak 64 : (!schedule.buffer<64, tensor<4xf32>>) -> !schedule.buffer<64, tensor<4xf32>> names ["y"]
  schedule.return
}

// -----

// expected-error @+1 {{'L' leaves a parameter's gradient, result 0, without a schedule.destination; lower-to-schedule says where gradients go}}
func.func private @L(%x: tensor<4xf32> {aten.binding = #aten.binding<input 0>})
    -> (tensor<4xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "weight"}) {
  return %x : tensor<4xf32>
}
schedule.program @train inputs(%x as "x": !schedule.buffer<64, tensor<4xf32>>)
    persistent 0 peak 64 at -1 {
  schedule.call @L(%x) peak 64 own_peak 64 : (!schedule.buffer<64, tensor<4xf32>>) -> () names []
  schedule.return
}
