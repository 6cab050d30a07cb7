// RUN: accel-opt opt %s --split-input-file --verify-diagnostics | FileCheck %s
// RUN: accel-opt opt %s --split-input-file --verify-diagnostics --differentiate | FileCheck %s --check-prefix=JOINT

// A backward has the probability and the key of its forward; the mask, which
// it does not derive, stands behind what the forward made.
// CHECK-LABEL: func.func private @flash
// CHECK: aten.dropped_flash_attention %arg0, %arg1, %arg1 {dropout_key = 3 : i64, dropout_p = 1.000000e-01 : f64, is_causal = true, scale = 2.500000e-01 : f64}
// JOINT-LABEL: func.func private @flash.joint
// JOINT: %[[OUT:.*]], %[[SUMS:.*]] = aten.dropped_flash_attention
// JOINT: aten.dropped_flash_attention_backward %{{.*}}, %arg0, %arg1, %arg1, %[[OUT]], %[[SUMS]] {dropout_key = 3 : i64, dropout_p = 1.000000e-01 : f64, is_causal = true, scale = 2.500000e-01 : f64}
func.func private @flash(%q: tensor<2x4x24x16xbf16>, %k: tensor<2x2x24x16xbf16>) -> tensor<2x4x24x16xbf16> {
  %0, %1 = aten.dropped_flash_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64, dropout_p = 1.0e-01 : f64, dropout_key = 3 : i64} : (tensor<2x4x24x16xbf16>, tensor<2x2x24x16xbf16>, tensor<2x2x24x16xbf16>) -> (tensor<2x4x24x16xbf16>, tensor<2x4x24xf32>)
  return %0 : tensor<2x4x24x16xbf16>
}

// The statistics are padded to rows of 32.
// JOINT-LABEL: func.func private @efficient.joint
// JOINT: aten.dropped_efficient_attention %arg0, %arg0, %arg0 mask %[[M:.*]] {dropout_key
// JOINT: aten.dropped_efficient_attention_backward %{{.*}}, %arg0, %arg0, %arg0, %{{.*}}, %{{.*}}, %[[M]] {dropout_key = 0 : i64
func.func private @efficient(%q: tensor<2x4x24x16xf32>) -> tensor<2x4x24x16xf32> {
  %m = aten.full {size = array<i64: 2, 4, 24, 24>, fill_value = 0.0 : f64, dtype = f32} : () -> tensor<2x4x24x24xf32>
  %0, %1 = aten.dropped_efficient_attention %q, %q, %q mask %m {is_causal = false, scale = 2.5e-01 : f64, dropout_p = 1.0e-01 : f64, dropout_key = 0 : i64} : (tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>, tensor<2x4x24x24xf32>) -> (tensor<2x4x24x16xf32>, tensor<2x4x32xf32>)
  return %0 : tensor<2x4x24x16xf32>
}

// -----

func.func private @probability(%q: tensor<2x4x24x16xbf16>) -> tensor<2x4x24x16xbf16> {
  // expected-error @+1 {{drops with a probability between 0 and 1, not 1.500000e+00}}
  %0, %1 = aten.dropped_flash_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, dropout_p = 1.5 : f64, dropout_key = 0 : i64} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>) -> (tensor<2x4x24x16xbf16>, tensor<2x4x24xf32>)
  return %0 : tensor<2x4x24x16xbf16>
}

// -----

func.func private @key(%q: tensor<2x4x24x16xbf16>) -> tensor<2x4x24x16xbf16> {
  // expected-error @+1 {{needs a dropout_key of 0 or more, not -1}}
  %0, %1 = aten.dropped_flash_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, dropout_p = 1.0e-01 : f64, dropout_key = -1 : i64} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>) -> (tensor<2x4x24x16xbf16>, tensor<2x4x24xf32>)
  return %0 : tensor<2x4x24x16xbf16>
}
