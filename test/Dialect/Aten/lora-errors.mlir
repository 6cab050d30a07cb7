// RUN: accel-opt opt %s --split-input-file --verify-diagnostics

func.func @operands(%y: tensor<8x4xf32>, %x: tensor<8x6xf32>) {
  // expected-error @+2 {{expects 6 operands for 1 layers, got 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.lora_projections %y, %x {scales = array<f64: 2.0>} : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @rank(%y: tensor<8x4xf32>, %x: tensor<8x6xf32>, %w: tensor<4x6xf32>, %a: tensor<2x6xf32>, %b: tensor<4x3xf32>) {
  // expected-error @+2 {{matrices 'tensor<2x6xf32>' and 'tensor<4x3xf32>' do not multiply to the weight's 'tensor<4x6xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.lora_projections %y, %x, %x, %w, %a, %b {scales = array<f64: 2.0>} : (tensor<8x4xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<4x6xf32>, tensor<2x6xf32>, tensor<4x3xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @rows(%y: tensor<7x4xf32>, %x: tensor<8x6xf32>, %w: tensor<4x6xf32>, %a: tensor<2x6xf32>, %b: tensor<4x2xf32>) {
  // expected-error @+2 {{a weight 'tensor<4x6xf32>' does not make 'tensor<7x4xf32>' of 'tensor<8x6xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.lora_projections %y, %x, %x, %w, %a, %b {scales = array<f64: 2.0>} : (tensor<7x4xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<4x6xf32>, tensor<2x6xf32>, tensor<4x2xf32>) -> tensor<7x4xf32>
  return
}

// -----

func.func @sum(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error @+2 {{adds to 'tensor<2x3xf32>' a matmul of type 'tensor<2x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.alpha_addmm %x, %x, %y {alpha = 0.5 : f64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @gate(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error @+2 {{expects tensors of one type, got 'tensor<2x3xf32>', 'tensor<3x4xf32>' and 'tensor<2x3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = aten.glu_in_place_backward %x, %y, %x {gelu = true} : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<2x3xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>)
  return
}
