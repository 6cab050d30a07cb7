// RUN: accel-opt opt %s --split-input-file --verify-diagnostics

func.func @mm_inner(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{inner sizes differ: 'tensor<2x3xf32>' and 'tensor<2x3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.mm %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @mm_types(%a: tensor<2x2xf32>, %b: tensor<2x2xbf16>) {
  // expected-error @+2 {{expects one element type, got 'tensor<2x2xf32>' and 'tensor<2x2xbf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.mm %a, %b : (tensor<2x2xf32>, tensor<2x2xbf16>) -> tensor<2x2xf32>
  return
}

// -----

func.func @mm_result(%a: tensor<2x2xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<2x2xf32>' are incompatible with return type(s) of operation 'tensor<2x3xf32>'}}
  %0 = aten.mm %a, %a : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @addmm_bias(%b: tensor<3xf32>, %a: tensor<2x2xf32>) {
  // expected-error @+2 {{cannot add 'tensor<3xf32>' to 'tensor<2x2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.addmm %b, %a, %a : (tensor<3xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @view_numel(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{cannot view 6 elements as 8}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.view %a, [2, 4] : (tensor<2x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @t_rank(%a: tensor<2x3x4xf32>) {
  // expected-error @+2 {{expects a matrix, got 'tensor<2x3x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.t %a : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  return
}

// -----

func.func @transpose_dim(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{dimension 2 is outside of a tensor of 2 dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.transpose.int %a, 0, 2 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @permute_twice(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{dimension 0 appears twice}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.permute %a, [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @slice_range(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{slice [1 : 4 : 1] is outside of a dimension of size 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.slice.Tensor %a, 1 [1 : 4 : 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @expand_size(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{cannot expand 'tensor<2x3xf32>' to the given size}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.expand %a, [4, 3] : (tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @squeeze_size(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{dimension 1 has size 3, expected 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.squeeze.dim %a, 1 : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @broadcast(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+2 {{shapes do not broadcast: 'tensor<2x3xf32>' and 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.add.Tensor %a, %b : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @not_float(%a: tensor<3xf32>) {
  // expected-error @+1 {{expects integers or truth values, got 'tensor<3xf32>'}}
  %0 = aten.bitwise_not %a : tensor<3xf32>
  return
}

// -----

func.func @dynamic(%a: tensor<?x3xf32>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor}}
  %0 = aten.neg %a : tensor<?x3xf32>
  return
}

// -----

func.func @cast(%a: tensor<3xf32>) {
  // expected-error @+2 {{cannot cast to 'i7'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten._to_copy %a, i7 : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @cat_shapes(%a: tensor<2x3xf32>, %b: tensor<3x3xf32>) {
  // expected-error @+2 {{cannot join 'tensor<2x3xf32>' and 'tensor<3x3xf32>' along dimension 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.cat %a, %b dim 1 : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @heads(%q: tensor<1x4x8x16xf32>, %k: tensor<1x3x8x16xf32>) {
  // expected-error @+2 {{3 key heads cannot serve 4 query heads}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.scaled_dot_product_attention %q, %k, %k {is_causal = true, scale = 1.0 : f64} : (tensor<1x4x8x16xf32>, tensor<1x3x8x16xf32>, tensor<1x3x8x16xf32>) -> tensor<1x4x8x16xf32>
  return
}

// -----

func.func @norm_weight(%x: tensor<2x8xf32>, %w: tensor<4xf32>) {
  // expected-error @+2 {{weight 'tensor<4xf32>' does not fit the last dimension of 'tensor<2x8xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.rms_norm %x, %w {eps = 1.0e-6 : f64} : (tensor<2x8xf32>, tensor<4xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @targets(%x: tensor<8x100xf32>, %t: tensor<7xi64>) {
  // expected-error @+2 {{targets 'tensor<7xi64>' do not fit the rows of 'tensor<8x100xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = aten.nll_loss_forward %x, %t : (tensor<8x100xf32>, tensor<7xi64>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @softmax_dim(%x: tensor<8x100xf32>) {
  // expected-error @+1 {{dimension 2 is outside of a tensor of 2 dimensions}}
  %0 = aten._log_softmax %x, 2 : tensor<8x100xf32>
  return
}

// -----

func.func @opaque_namespace(%x: tensor<8xf32>) {
  // expected-error @+1 {{operator 'mine::elu' is not of the namespace aten}}
  %0 = aten.opaque "mine::elu"(%x) ["%0"] : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @opaque_input(%x: tensor<8xf32>) {
  // expected-error @+1 {{argument "%1" names none of the 1 inputs}}
  %0 = aten.opaque "aten::elu"(%x) ["%1"] : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @opaque_needed(%x: tensor<8xf32>) {
  // expected-error @+1 {{has no input 3}}
  %0 = aten.opaque_backward "aten::elu"(%x) of (%x) ["%0"] needed [3] : (tensor<8xf32>) of (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @arange(%x: tensor<8xf32>) {
  // expected-error @+2 {{expects start <= end and a positive step}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.arange.start_step [8 : 0 : 1], i64 : tensor<8xi64>
  return
}
