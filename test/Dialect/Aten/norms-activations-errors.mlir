// RUN: accel-opt opt %s -split-input-file -verify-diagnostics

func.func @bias(%x: tensor<2x8xf32>, %w: tensor<8xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{bias 'tensor<4xf32>' is not of the weight's type 'tensor<8xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.layer_norm %x, %w bias %b, 1.0e-05 : (tensor<2x8xf32>, tensor<8xf32>, tensor<4xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @weight(%x: tensor<2x8xf32>, %w: tensor<2xf32>) {
  // expected-error @+2 {{does not fit the last dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.layer_norm %x, %w, 1.0e-05 : (tensor<2x8xf32>, tensor<2xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @shape(%x: tensor<2x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+2 {{normalized shape is not the weight's}}
  // expected-error @+1 {{failed to infer returned types}}
  %0, %m, %r = aten.native_layer_norm %x, %w, [2] {eps = 1.0e-05 : f64, stats = f32} : (tensor<2x8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  return
}

// -----

func.func @mask(%x: tensor<2x8xf32>, %s: tensor<2x1xf32>, %w: tensor<8xf32>) {
  // expected-error @+2 {{output mask does not fit the operands}}
  // expected-error @+1 {{failed to infer returned types}}
  %a, %b = aten.native_layer_norm_backward %x, %x, %s, %s, %w, [8] {output_mask = array<i1: true, true, true>} : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @gelu(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{approximates by 'none' or 'tanh', not 'erf'}}
  %0 = aten.gelu %x, "erf" : tensor<2x8xf32>
  return
}
