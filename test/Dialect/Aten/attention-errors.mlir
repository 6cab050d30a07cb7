// RUN: accel-opt opt %s --split-input-file --verify-diagnostics

func.func @window(%q: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{has a window of -1 keys}}
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 1.0 : f64, window = -1 : i64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @window_alone(%q: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{has a window, which needs a causal mask}}
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = false, scale = 1.0 : f64, window = 2 : i64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @cap(%q: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{caps scores at a number below 0}}
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 1.0 : f64, softcap = -2.0 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @mask(%q: tensor<2x4x8x16xf32>, %m: tensor<1x3x8x8xf32>) {
  // expected-error @+2 {{mask 'tensor<1x3x8x8xf32>' does not fit scores of 'tensor<2x4x8x8xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.scaled_dot_product_attention %q, %q, %q mask %m {is_causal = true, scale = 1.0 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<1x3x8x8xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @bmm(%a: tensor<2x4x8xf32>, %b: tensor<2x4x8xf32>) {
  // expected-error @+2 {{inner sizes differ: 'tensor<2x4x8xf32>' and 'tensor<2x4x8xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.bmm %a, %b : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @softmax_dim(%x: tensor<8x100xf32>) {
  // expected-error @+1 {{dimension 2 is outside of a tensor of 2 dimensions}}
  %0 = aten._softmax %x, 2 : tensor<8x100xf32>
  return
}
