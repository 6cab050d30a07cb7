// RUN: accel-opt opt %s --split-input-file --verify-diagnostics

func.func @reduction(%x: tensor<4xf32>) {
  // expected-error @+2 {{reduction is 0 (none), 1 (mean) or 2 (sum), not 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.mse_loss %x, %x {reduction = 3 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @shapes(%x: tensor<4xf32>, %y: tensor<1xf32>) {
  // expected-error @+2 {{operand 'tensor<1xf32>' is not of the input's type 'tensor<4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.mse_loss %x, %y {reduction = 1 : i64} : (tensor<4xf32>, tensor<1xf32>) -> tensor<f32>
  return
}

// -----

func.func @types(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{operand 'tensor<4xf16>' is not of the input's type 'tensor<4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.huber_loss %x, %y {reduction = 1 : i64, delta = 1.0 : f64} : (tensor<4xf32>, tensor<4xf16>) -> tensor<f32>
  return
}

// -----

func.func @delta(%x: tensor<4xf32>) {
  // expected-error @+2 {{delta is not positive}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.huber_loss %x, %x {reduction = 1 : i64, delta = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @gradient(%g: tensor<4xf32>, %x: tensor<4xf32>) {
  // expected-error @+2 {{gradient 'tensor<4xf32>' is not of the loss's type 'tensor<f32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.mse_loss_backward %g, %x, %x {reduction = 1 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @halves(%x: tensor<4x5xf32>) {
  // expected-error @+2 {{dimension 1 of 'tensor<4x5xf32>' has no two halves}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.glu %x {dim = 1 : i64} : (tensor<4x5xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @truth(%x: tensor<4xi1>) {
  // expected-error @+1 {{'aten.abs' op expects numbers, got 'tensor<4xi1>'}}
  %0 = aten.abs %x : tensor<4xi1>
  return
}

// -----

func.func @none(%x: tensor<0xf32>) {
  // expected-error @+2 {{dimension 0 has no elements}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.linalg_vector_norm %x {ord = -1.0 : f64, dim = array<i64: 0>, keepdim = false} : (tensor<0xf32>) -> tensor<f32>
  return
}

// -----

func.func @slope(%x: tensor<2x3xf32>, %w: tensor<2xf32>) {
  // expected-error @+2 {{weight 'tensor<2xf32>' does not fit 'tensor<2x3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten._prelu_kernel %x, %w : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}
