// RUN: accel-opt opt %s --split-input-file --verify-diagnostics

func.func @groups(%x: tensor<1x32x68xf32>, %conv: tensor<48x1x4xf32>, %bias: tensor<48xf32>, %step: tensor<4xf32>, %decay: tensor<4xf32>, %skip: tensor<4xf32>, %norm: tensor<16xf32>) {
  // expected-error @+2 {{heads of 'tensor<4xf32>' are not divided by 3 groups}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = aten.mamba2_mixer %x, %conv, %bias, %step, %decay, %skip, %norm {chunk = 16 : i64, eps = 1.0e-05 : f64, groups = 3 : i64, head_dim = 4 : i64, state = 8 : i64, step_min = 1.0e-03 : f64} : (tensor<1x32x68xf32>, tensor<48x1x4xf32>, tensor<48xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xf32>) -> (tensor<1x32x16xf32>, tensor<1x32x16xf32>, tensor<1x32x2xf32>)
  return
}

// -----

func.func @projection(%x: tensor<1x32x70xf32>, %conv: tensor<48x1x4xf32>, %bias: tensor<48xf32>, %step: tensor<4xf32>, %decay: tensor<4xf32>, %skip: tensor<4xf32>, %norm: tensor<16xf32>) {
  // expected-error @+2 {{a projection of 70 elements is not gate, input, B, C and steps, 68}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = aten.mamba2_mixer %x, %conv, %bias, %step, %decay, %skip, %norm {chunk = 16 : i64, eps = 1.0e-05 : f64, groups = 2 : i64, head_dim = 4 : i64, state = 8 : i64, step_min = 1.0e-03 : f64} : (tensor<1x32x70xf32>, tensor<48x1x4xf32>, tensor<48xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xf32>) -> (tensor<1x32x16xf32>, tensor<1x32x16xf32>, tensor<1x32x2xf32>)
  return
}

// -----

func.func @channels(%x: tensor<1x32x68xf32>, %conv: tensor<40x1x4xf32>, %bias: tensor<48xf32>, %step: tensor<4xf32>, %decay: tensor<4xf32>, %skip: tensor<4xf32>, %norm: tensor<16xf32>) {
  // expected-error @+2 {{a convolution by 'tensor<40x1x4xf32>' is none of 48 channels}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = aten.mamba2_mixer %x, %conv, %bias, %step, %decay, %skip, %norm {chunk = 16 : i64, eps = 1.0e-05 : f64, groups = 2 : i64, head_dim = 4 : i64, state = 8 : i64, step_min = 1.0e-03 : f64} : (tensor<1x32x68xf32>, tensor<40x1x4xf32>, tensor<48xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xf32>) -> (tensor<1x32x16xf32>, tensor<1x32x16xf32>, tensor<1x32x2xf32>)
  return
}

// -----

func.func @norm(%x: tensor<1x32x68xf32>, %conv: tensor<48x1x4xf32>, %bias: tensor<48xf32>, %step: tensor<4xf32>, %decay: tensor<4xf32>, %skip: tensor<4xf32>, %norm: tensor<8xf32>) {
  // expected-error @+2 {{the norm's weight 'tensor<8xf32>' does not have 16 elements}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = aten.mamba2_mixer %x, %conv, %bias, %step, %decay, %skip, %norm {chunk = 16 : i64, eps = 1.0e-05 : f64, groups = 2 : i64, head_dim = 4 : i64, state = 8 : i64, step_min = 1.0e-03 : f64} : (tensor<1x32x68xf32>, tensor<48x1x4xf32>, tensor<48xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8xf32>) -> (tensor<1x32x16xf32>, tensor<1x32x16xf32>, tensor<1x32x2xf32>)
  return
}

// -----

func.func @chunk(%x: tensor<1x32x68xf32>, %conv: tensor<48x1x4xf32>, %bias: tensor<48xf32>, %step: tensor<4xf32>, %decay: tensor<4xf32>, %skip: tensor<4xf32>, %norm: tensor<16xf32>) {
  // expected-error @+2 {{sizes of heads, groups, states and chunks must be at least 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = aten.mamba2_mixer %x, %conv, %bias, %step, %decay, %skip, %norm {chunk = 0 : i64, eps = 1.0e-05 : f64, groups = 2 : i64, head_dim = 4 : i64, state = 8 : i64, step_min = 1.0e-03 : f64} : (tensor<1x32x68xf32>, tensor<48x1x4xf32>, tensor<48xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xf32>) -> (tensor<1x32x16xf32>, tensor<1x32x16xf32>, tensor<1x32x2xf32>)
  return
}

// -----

func.func @skip(%x: tensor<1x32x68xf32>, %conv: tensor<48x1x4xf32>, %bias: tensor<48xf32>, %step: tensor<4xf32>, %decay: tensor<4xf32>, %skip: tensor<3xf32>, %norm: tensor<16xf32>) {
  // expected-error @+2 {{biases of the convolution and the steps, and 'skip', must have a number for each channel or head}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = aten.mamba2_mixer %x, %conv, %bias, %step, %decay, %skip, %norm {chunk = 16 : i64, eps = 1.0e-05 : f64, groups = 2 : i64, head_dim = 4 : i64, state = 8 : i64, step_min = 1.0e-03 : f64} : (tensor<1x32x68xf32>, tensor<48x1x4xf32>, tensor<48xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<16xf32>) -> (tensor<1x32x16xf32>, tensor<1x32x16xf32>, tensor<1x32x2xf32>)
  return
}
