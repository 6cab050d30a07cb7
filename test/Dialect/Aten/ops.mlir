// RUN: accel-opt opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func.func @views
func.func @views(%w: tensor<3x2xf32>, %x: tensor<2x8x4x16xf32>, %e: tensor<2x8x1xf32>) {
  // CHECK: aten.t %{{.*}} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %0 = aten.t %w : (tensor<3x2xf32>) -> tensor<2x3xf32>
  // CHECK: aten.transpose.int %{{.*}}, 1, 2 :
  %1 = aten.transpose.int %x, 1, 2 : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  // CHECK: aten.permute %{{.*}}, [3, 0, 2, 1] :
  %2 = aten.permute %x, [3, 0, 2, 1] : (tensor<2x8x4x16xf32>) -> tensor<16x2x4x8xf32>
  // CHECK: aten.view %{{.*}}, [16, 64] :
  %3 = aten.view %x, [16, 64] : (tensor<2x8x4x16xf32>) -> tensor<16x64xf32>
  // CHECK: aten.expand %{{.*}}, [2, 8, 64] :
  %4 = aten.expand %e, [2, 8, 64] : (tensor<2x8x1xf32>) -> tensor<2x8x64xf32>
  // CHECK: aten.unsqueeze %{{.*}}, 1 :
  %5 = aten.unsqueeze %w, 1 : (tensor<3x2xf32>) -> tensor<3x1x2xf32>
  // CHECK: aten.squeeze.dim %{{.*}}, 1 :
  %6 = aten.squeeze.dim %5, 1 : (tensor<3x1x2xf32>) -> tensor<3x2xf32>
  // CHECK: aten.slice.Tensor %{{.*}}, 3[0 : 8 : 1] :
  %7 = aten.slice.Tensor %x, 3 [0 : 8 : 1] : (tensor<2x8x4x16xf32>) -> tensor<2x8x4x8xf32>
  return
}

// CHECK-LABEL: func.func @pointwise
func.func @pointwise(%x: tensor<2x8xf32>, %b: tensor<8xf32>, %h: tensor<2x8xbf16>, %i: tensor<8xi64>) {
  // CHECK: aten.neg %{{.*}} : tensor<2x8xf32>
  %0 = aten.neg %x : tensor<2x8xf32>
  %1 = aten.cos %x : tensor<2x8xf32>
  %2 = aten.sin %x : tensor<2x8xf32>
  %3 = aten.exp %x : tensor<2x8xf32>
  %4 = aten.sqrt %x : tensor<2x8xf32>
  %5 = aten.rsqrt %x : tensor<2x8xf32>
  %6 = aten.reciprocal %x : tensor<2x8xf32>
  %7 = aten.silu %x : tensor<2x8xf32>
  // CHECK: aten.add.Tensor %{{.*}}, %{{.*}} : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %8 = aten.add.Tensor %x, %b : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  // Element types promote: bf16 and f32 give f32.
  %9 = aten.sub.Tensor %h, %b : (tensor<2x8xbf16>, tensor<8xf32>) -> tensor<2x8xf32>
  %10 = aten.mul.Tensor %x, %i : (tensor<2x8xf32>, tensor<8xi64>) -> tensor<2x8xf32>
  // Integers divide to the default type.
  %11 = aten.div.Tensor %i, %i : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xf32>
  // CHECK: aten.add.Scalar %{{.*}}, 1.500000e+00 :
  %12 = aten.add.Scalar %h, 1.5 : (tensor<2x8xbf16>) -> tensor<2x8xbf16>
  // CHECK: aten.sub.Scalar %{{.*}}, -3 :
  %13 = aten.sub.Scalar %i, -3 : (tensor<8xi64>) -> tensor<8xi64>
  // CHECK: aten.mul.Scalar %{{.*}}, -5.000000e-01 :
  %14 = aten.mul.Scalar %x, -0.5 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %15 = aten.rsub.Scalar %x, 1.0 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %16 = aten.div.Scalar %i, 2 : (tensor<8xi64>) -> tensor<8xf32>
  %17 = aten.pow.Tensor_Scalar %x, 2 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %18 = aten.pow.Scalar %x, 10000.0 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %19 = aten.gt.Scalar %x, 0.0 : (tensor<2x8xf32>) -> tensor<2x8xi1>
  %20 = aten.lt.Scalar %x, 1.0 : (tensor<2x8xf32>) -> tensor<2x8xi1>
  %21 = aten.logical_and %19, %20 : (tensor<2x8xi1>, tensor<2x8xi1>) -> tensor<2x8xi1>
  %22 = aten.bitwise_and.Tensor %19, %20 : (tensor<2x8xi1>, tensor<2x8xi1>) -> tensor<2x8xi1>
  %23 = aten.bitwise_not %22 : tensor<2x8xi1>
  %24 = aten.where.self %23, %x, %b : (tensor<2x8xi1>, tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  // CHECK: aten._to_copy %{{.*}}, bf16 : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  %25 = aten._to_copy %x, bf16 : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  %26 = aten.type_as %x, %h : (tensor<2x8xf32>, tensor<2x8xbf16>) -> tensor<2x8xbf16>
  %27 = aten.clone %x : tensor<2x8xf32>
  %28 = aten.zeros_like %x : tensor<2x8xf32>
  %29 = aten.silu_backward %x, %x : tensor<2x8xf32>
  return
}

// CHECK-LABEL: func.func @linear
func.func @linear(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %bias: tensor<4xf32>, %ids: tensor<2x5xi64>) {
  %0 = aten.mm %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = aten.addmm %bias, %a, %b : (tensor<4xf32>, tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  // CHECK: aten.sum.dim_IntList %{{.*}}, [0], false :
  %2 = aten.sum.dim_IntList %a, [0], false : (tensor<2x3xf32>) -> tensor<3xf32>
  %3 = aten.mean.dim %a, [1], true : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %4 = aten.embedding %b, %ids : (tensor<3x4xf32>, tensor<2x5xi64>) -> tensor<2x5x4xf32>
  // CHECK: aten.embedding_dense_backward %{{.*}}, %{{.*}} {num_weights = 3 : i64} :
  %5 = aten.embedding_dense_backward %4, %ids {num_weights = 3 : i64} : (tensor<2x5x4xf32>, tensor<2x5xi64>) -> tensor<3x4xf32>
  // CHECK: aten.cat %{{.*}}, %{{.*}} dim 0 :
  %6 = aten.cat %a, %a dim 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %7 = aten.slice_backward %a, [4, 3], 0 [2 : 4 : 1] : (tensor<2x3xf32>) -> tensor<4x3xf32>
  // CHECK: aten.arange.start_step[0 : 64 : 2], i64 : tensor<32xi64>
  %8 = aten.arange.start_step [0 : 64 : 2], i64 : tensor<32xi64>
  return
}

// CHECK-LABEL: func.func @kernels
func.func @kernels(%q: tensor<2x4x40x16xf32>, %k: tensor<2x2x40x16xf32>, %x: tensor<2x8x16xf32>, %w: tensor<16xf32>, %logits: tensor<8x100xf32>, %t: tensor<8xi64>) {
  %0 = aten.scaled_dot_product_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x40x16xf32>, tensor<2x2x40x16xf32>, tensor<2x2x40x16xf32>) -> tensor<2x4x40x16xf32>
  // CHECK: aten._scaled_dot_product_flash_attention_for_cpu %{{.*}} -> (tensor<2x4x40x16xf32>, tensor<2x4x40xf32>)
  %1:2 = aten._scaled_dot_product_flash_attention_for_cpu %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x40x16xf32>, tensor<2x2x40x16xf32>, tensor<2x2x40x16xf32>) -> (tensor<2x4x40x16xf32>, tensor<2x4x40xf32>)
  %2:3 = aten._scaled_dot_product_flash_attention_for_cpu_backward %q, %q, %k, %k, %1#0, %1#1 {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x40x16xf32>, tensor<2x4x40x16xf32>, tensor<2x2x40x16xf32>, tensor<2x2x40x16xf32>, tensor<2x4x40x16xf32>, tensor<2x4x40xf32>) -> (tensor<2x4x40x16xf32>, tensor<2x2x40x16xf32>, tensor<2x2x40x16xf32>)
  // The statistics of the efficient kernel are padded to 32 rows.
  // CHECK: aten._scaled_dot_product_efficient_attention %{{.*}} -> (tensor<2x4x40x16xf32>, tensor<2x4x64xf32>)
  %3:2 = aten._scaled_dot_product_efficient_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x40x16xf32>, tensor<2x4x40x16xf32>, tensor<2x4x40x16xf32>) -> (tensor<2x4x40x16xf32>, tensor<2x4x64xf32>)
  %4 = aten.rms_norm %x, %w {eps = 1.0e-06 : f64} : (tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  // CHECK: aten._fused_rms_norm %{{.*}}, %{{.*}}, [16] {eps = {{.*}}} : {{.*}} -> (tensor<2x8x16xf32>, tensor<2x8x1xf32>)
  %5:2 = aten._fused_rms_norm %x, %w, [16] {eps = 1.0e-06 : f64} : (tensor<2x8x16xf32>, tensor<16xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x1xf32>)
  %6:2 = aten._fused_rms_norm_backward %x, %x, %5#1, %w, [16] : (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x1xf32>, tensor<16xf32>) -> (tensor<2x8x16xf32>, tensor<16xf32>)
  %7 = aten._log_softmax %logits, 1 : tensor<8x100xf32>
  %8:2 = aten.nll_loss_forward %7, %t : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  %9 = aten.nll_loss_backward %8#0, %7, %t, %8#1 : (tensor<f32>, tensor<8x100xf32>, tensor<8xi64>, tensor<f32>) -> tensor<8x100xf32>
  %10 = aten._log_softmax_backward_data %9, %7, 1, f32 : tensor<8x100xf32>
  // CHECK: aten.opaque "aten::elu"(%{{.*}}) ["%0", 1.000000e+00, 1.000000e+00, 1.000000e+00] :
  %11 = aten.opaque "aten::elu"(%x) ["%0", 1.0, 1.0, 1.0] : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %12 = aten.opaque_backward "aten::elu"(%x) of (%x) ["%0", 1.0, 1.0, 1.0] needed [0] : (tensor<2x8x16xf32>) of (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return
}

// CHECK-LABEL: func.func @attributes
// CHECK-SAME: {aten.binding = #aten.binding<input 0>}
func.func @attributes(%x: tensor<4xf32> {aten.binding = #aten.binding<input 0>}) {
  // CHECK: aten.silu %{{.*}} {aten.save = #aten.save<recompute, "pointwise">} : tensor<4xf32>
  %0 = aten.silu %x {aten.save = #aten.save<recompute, "pointwise">} : tensor<4xf32>
  return
}
