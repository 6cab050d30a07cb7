// RUN: accel-opt opt %s --split-input-file --verify-diagnostics --differentiate

func.func private @norm(%x: tensor<2x8xf32>, %w: tensor<8xf32>) -> tensor<2x8xf32> {
  // expected-error @+2 {{'aten.rms_norm' op has no derivative rule}}
  // expected-note @+1 {{select-kernels replaces it by one that has}}
  %0 = aten.rms_norm %x, %w {eps = 1.0e-06 : f64} : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

func.func private @twice(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error @+1 {{'aten.silu_backward' op has no derivative rule}}
  %0 = aten.silu_backward %x, %x : tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

func.func private @statistics(%q: tensor<1x2x8x16xf32>) -> tensor<1x2x8xf32> {
  // expected-error @+1 {{has no derivative through its log-sum-exp}}
  %0:2 = aten._scaled_dot_product_flash_attention_for_cpu %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64} : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> (tensor<1x2x8x16xf32>, tensor<1x2x8xf32>)
  return %0#1 : tensor<1x2x8xf32>
}

// -----

func.func private @base(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{has no derivative for the base -2.0}}
  %0 = aten.pow.Scalar %x, -2.0 : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
