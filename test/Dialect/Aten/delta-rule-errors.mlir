// RUN: accel-opt opt %s --split-input-file --verify-diagnostics

func.func @heads(%x: tensor<1x64x64xf32>, %g: tensor<1x64x4xf32>) {
  // expected-error @+2 {{4 heads of values are not divided by 3 of keys, of 8 elements}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = aten.gated_delta_rule %x, %g, %g {cast = false, key_dim = 8 : i64, key_heads = 3 : i64} : (tensor<1x64x64xf32>, tensor<1x64x4xf32>, tensor<1x64x4xf32>) -> (tensor<1x64x32xf32>, tensor<1x1xf32>)
  return
}

// -----

func.func @elements(%x: tensor<1x64x66xf32>, %g: tensor<1x64x4xf32>) {
  // expected-error @+2 {{66 elements are not queries and keys of 2 heads and values of 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = aten.gated_delta_rule %x, %g, %g {cast = false, key_dim = 8 : i64, key_heads = 2 : i64} : (tensor<1x64x66xf32>, tensor<1x64x4xf32>, tensor<1x64x4xf32>) -> (tensor<1x64x32xf32>, tensor<1x1xf32>)
  return
}

// -----

func.func @tokens(%x: tensor<1x64x64xf32>, %g: tensor<1x32x4xf32>) {
  // expected-error @+2 {{expects [B, S, C] and two of [B, S, heads], got}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = aten.gated_delta_rule %x, %g, %g {cast = false, key_dim = 8 : i64, key_heads = 2 : i64} : (tensor<1x64x64xf32>, tensor<1x32x4xf32>, tensor<1x32x4xf32>) -> (tensor<1x64x32xf32>, tensor<1x1xf32>)
  return
}

// -----

func.func @beta(%x: tensor<1x64x64xbf16>, %g: tensor<1x64x4xf32>) {
  // expected-error @+2 {{beta must be of the type of 'tensor<1x64x64xbf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = aten.gated_delta_rule %x, %g, %g {cast = false, key_dim = 8 : i64, key_heads = 2 : i64} : (tensor<1x64x64xbf16>, tensor<1x64x4xf32>, tensor<1x64x4xf32>) -> (tensor<1x64x32xbf16>, tensor<1x1xf32>)
  return
}

// -----

func.func @saved(%d: tensor<1x64x32xf32>, %s: tensor<1x100xf32>) {
  // expected-error @+2 {{of the forward, got 'tensor<1x100xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = aten.gated_delta_rule_backward %d, %s {cast = false, heads = 4 : i64, key_dim = 8 : i64, key_heads = 2 : i64} : (tensor<1x64x32xf32>, tensor<1x100xf32>) -> (tensor<1x64x64xf32>, tensor<1x64x4xf32>, tensor<1x64x4xf32>)
  return
}
