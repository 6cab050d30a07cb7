// RUN: accel-opt opt %s --split-input-file --verify-diagnostics

func.func @conv_channels(%x: tensor<1x3x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error @+2 {{weight 'tensor<4x2x3xf32>' in 1 groups does not fit the channels of 'tensor<1x3x8xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.convolution %x, %w {stride = array<i64: 1>, padding = array<i64: 0>, dilation = array<i64: 1>, transposed = false, output_padding = array<i64: 0>, groups = 1 : i64} : (tensor<1x3x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @bmm_batches(%a: tensor<2x3x4xf32>, %b: tensor<3x4x5xf32>) {
  // expected-error @+2 {{batches differ: 'tensor<2x3x4xf32>' and 'tensor<3x4x5xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.bmm %a, %b : (tensor<2x3x4xf32>, tensor<3x4x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @gather_index(%x: tensor<2x3xf32>, %i: tensor<4x3xi64>) {
  // expected-error @+2 {{index 'tensor<4x3xi64>' is larger than 'tensor<2x3xf32>' in dimension 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.gather %x, %i {dim = 1 : i64} : (tensor<2x3xf32>, tensor<4x3xi64>) -> tensor<4x3xf32>
  return
}

// -----

func.func @index_dims(%x: tensor<2x3xf32>, %i: tensor<4xi64>) {
  // expected-error @+2 {{dimensions do not rise}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.index.Tensor %x, %i, %i {dims = array<i64: 1, 0>} : (tensor<2x3xf32>, tensor<4xi64>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @fill(%x: tensor<2xi64>, %m: tensor<2xi1>) {
  // expected-error @+2 {{cannot fill 'i64' with a floating-point number}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.masked_fill.Scalar %x, %m {value = 0.5 : f64} : (tensor<2xi64>, tensor<2xi1>) -> tensor<2xi64>
  return
}

// -----

func.func @clamp(%x: tensor<2xf32>) {
  // expected-error @+2 {{expects 'min', 'max' or both}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.clamp %x : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @pool(%x: tensor<1x2x4x4xf32>) {
  // expected-error @+2 {{padding 2 is more than half of the kernel 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.avg_pool2d %x {kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 2, 2>, ceil_mode = false, count_include_pad = true} : (tensor<1x2x4x4xf32>) -> tensor<1x2x6x6xf32>
  return
}

// -----

func.func @batch_norm(%x: tensor<1x2xf32>, %w: tensor<2xf32>) {
  // expected-error @+2 {{expects more than one element for each channel, got 'tensor<1x2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = aten._native_batch_norm_legit.no_stats %x, %w, %w {momentum = 0.1 : f64, eps = 1.0e-5 : f64} : (tensor<1x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @opaque_writes(%x: tensor<4xf32>) {
  // expected-error @+1 {{operator 'aten::relu_' writes to its first argument; use 'aten::relu', which returns its result}}
  %0 = aten.opaque "aten::relu_"(%x) ["%0"] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @opaque_twice(%x: tensor<4xf32>) {
  // expected-error @+1 {{input 0 stands 2 times among the arguments, expected once}}
  %0 = aten.opaque "aten::mul.Tensor"(%x) ["%0", "%0"] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @opaque_list(%x: tensor<4xf32>) {
  // expected-error @+1 {{argument [1, 2] is no list of tensors}}
  %0 = aten.opaque "aten::sum.dim_IntList"(%x) ["%0", [1, 2]] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @turned(%w: tensor<4x8xf32>, %a: tensor<2x4xf32>, %b: tensor<8x2xf32>) {
  // expected-error @+2 {{matrices 'tensor<2x4xf32>' and 'tensor<8x2xf32>' do not multiply to the weight's 'tensor<4x8xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = aten.dora_norm %w, %a, %b {scale = 2.0 : f64, transposed = false} : (tensor<4x8xf32>, tensor<2x4xf32>, tensor<8x2xf32>) -> (tensor<8xf32>, tensor<56xf32>, tensor<8x4xf32>)
  return
}
