// RUN: accel-opt opt %s --split-input-file --verify-diagnostics -o /dev/null --print-functions

func.func private @view(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %0 = aten.t %x : (tensor<4x6xf32>) -> tensor<6x4xf32>
  // expected-error @+1 {{cannot view 'tensor<6x4xf32>' as 'tensor<24xf32>' without a copy, because of its strides}}
  %1 = aten.view %0, [24] : (tensor<6x4xf32>) -> tensor<24xf32>
  return %1 : tensor<24xf32>
}

// -----

// expected-error @+1 {{result 0 is not contiguous; its producer needs an aten.clone}}
func.func private @output(%x: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %0 = aten.t %x : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// -----

func.func private @not_selected(%x: tensor<2x8xf32>, %w: tensor<8xf32>) -> tensor<2x8xf32> {
  // expected-error @+1 {{stands for no ATen operator; select-kernels replaces it}}
  %0 = aten.rms_norm %x, %w {eps = 1.0e-06 : f64} : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

func.func private @not_typed(%x: tensor<2x8xf32>, %y: tensor<8xbf16>) -> tensor<2x8xbf16> {
  // expected-error @+1 {{stands for no ATen operator; the precision pass replaces it}}
  %0 = aten.type_as %x, %y : (tensor<2x8xf32>, tensor<8xbf16>) -> tensor<2x8xbf16>
  return %0 : tensor<2x8xbf16>
}
