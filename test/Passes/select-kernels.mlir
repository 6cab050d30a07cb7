// RUN: accel-opt opt %s --pass-pipeline='builtin.module(select-kernels{device=cpu})' | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(select-kernels{device=cuda})' | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(select-kernels{device=cuda eager=true})' | FileCheck %s --check-prefix=EAGER

// CHECK-LABEL: func.func @norm_f32
// CPU:       %[[SQUARE:.*]] = aten.pow.Tensor_Scalar %arg0, 2
// CPU-NEXT:  %[[MEAN:.*]] = aten.mean.dim %[[SQUARE]], [2], true
// CPU-NEXT:  %[[SHIFTED:.*]] = aten.add.Scalar %[[MEAN]], 9.9{{.*}}E-7
// CPU-NEXT:  %[[RSTD:.*]] = aten.rsqrt %[[SHIFTED]]
// CPU-NEXT:  %[[NORMED:.*]] = aten.mul.Tensor %arg0, %[[RSTD]]
// CPU-NEXT:  aten.mul.Tensor %arg1, %[[NORMED]]
// CUDA:      aten._fused_rms_norm %arg0, %arg1, [16]

// As transformers runs it: the norm's steps, and the device's attention.
// EAGER-LABEL: func.func @norm_f32
// EAGER-NOT:   aten._fused_rms_norm
// EAGER:       aten.pow.Tensor_Scalar %arg0, 2
// EAGER-LABEL: func.func @attention_bf16
// EAGER:       aten._scaled_dot_product_flash_attention %arg0
func.func @norm_f32(%x: tensor<2x8x16xf32>, %w: tensor<16xf32>) -> tensor<2x8x16xf32> {
  %0 = aten.rms_norm %x, %w {eps = 1.0e-06 : f64} : (tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}

// In bf16 the steps run in fp32, and the result is rounded before the weight.
// CHECK-LABEL: func.func @norm_bf16
// CPU-NEXT:  aten._to_copy %arg0, f32
// CPU:       aten.rsqrt %{{.*}} : tensor<2x8x1xf32>
// CPU-NEXT:  aten.mul.Tensor
// CPU-NEXT:  aten._to_copy %{{.*}}, bf16
// CPU-NEXT:  aten.mul.Tensor %arg1, %{{.*}} -> tensor<2x8x16xbf16>
// CUDA:      aten._fused_rms_norm
func.func @norm_bf16(%x: tensor<2x8x16xbf16>, %w: tensor<16xbf16>) -> tensor<2x8x16xbf16> {
  %0 = aten.rms_norm %x, %w {eps = 1.0e-06 : f64} : (tensor<2x8x16xbf16>, tensor<16xbf16>) -> tensor<2x8x16xbf16>
  return %0 : tensor<2x8x16xbf16>
}

// CHECK-LABEL: func.func @attention_bf16
// CPU:  aten._scaled_dot_product_flash_attention_for_cpu %arg0, %arg1, %arg1
// CUDA: aten._scaled_dot_product_flash_attention %arg0, %arg1, %arg1
func.func @attention_bf16(%q: tensor<2x4x8x16xbf16>, %k: tensor<2x2x8x16xbf16>) -> tensor<2x4x8x16xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x8x16xbf16>, tensor<2x2x8x16xbf16>, tensor<2x2x8x16xbf16>) -> tensor<2x4x8x16xbf16>
  return %0 : tensor<2x4x8x16xbf16>
}

// The efficient kernel wants a key head for each query head.
// CHECK-LABEL: func.func @attention_f32
// CPU:       aten._scaled_dot_product_flash_attention_for_cpu
// CUDA:      %[[FIVE:.*]] = aten.unsqueeze %arg1, 2
// CUDA-NEXT: %[[WIDE:.*]] = aten.expand %[[FIVE]], [2, 2, 2, 8, 16]
// CUDA-NEXT: %[[COPY:.*]] = aten.clone %[[WIDE]]
// CUDA-NEXT: aten.view %[[COPY]], [2, 4, 8, 16]
// CUDA:      aten._scaled_dot_product_efficient_attention
func.func @attention_f32(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>) -> tensor<2x4x8x16xf32> {
  %0 = aten.scaled_dot_product_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %0 : tensor<2x4x8x16xf32>
}

// The statistics are of the input's type on CPUs, and of fp32 on CUDA.
// CHECK-LABEL: func.func @layer_norm_bf16
// CPU:       aten.native_layer_norm {{.*}}stats = bf16{{.*}} -> (tensor<8x16xbf16>, tensor<8x1xbf16>, tensor<8x1xbf16>)
// CUDA:      aten.native_layer_norm {{.*}}stats = f32{{.*}} -> (tensor<8x16xbf16>, tensor<8x1xf32>, tensor<8x1xf32>)
func.func @layer_norm_bf16(%x: tensor<8x16xbf16>, %w: tensor<16xbf16>, %b: tensor<16xbf16>) -> tensor<8x16xbf16> {
  %0 = aten.layer_norm %x, %w bias %b, 1.0e-05 : (tensor<8x16xbf16>, tensor<16xbf16>, tensor<16xbf16>) -> tensor<8x16xbf16>
  return %0 : tensor<8x16xbf16>
}
