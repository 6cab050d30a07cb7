// RUN: accel-opt opt %s --pass-pipeline='builtin.module(select-kernels{device=cpu})' | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(select-kernels{device=cuda})' | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: accel-opt opt %s --pass-pipeline='builtin.module(select-kernels{device=cuda eager=true})' | FileCheck %s --check-prefix=EAGER

// A window is a mask that keeps each query from keys too far behind; that keys
// lie behind at all is the kernel's to see. In 16 bits CUDA has a kernel that
// takes windows, of [B, S, H, D], which scaled_dot_product_attention does not
// call.
// CHECK-LABEL: func.func @window
// CUDA:      %[[Q:.*]] = aten.transpose.int %arg0, 1, 2 {{.*}} -> tensor<2x24x4x16xbf16>
// CUDA-NEXT: %[[K:.*]] = aten.transpose.int %arg1, 1, 2
// CUDA-NEXT: %[[V:.*]] = aten.transpose.int %arg1, 1, 2
// CUDA-NEXT: %[[OUT:.*]], %{{.*}} = aten._flash_attention_forward %[[Q]], %[[K]], %[[V]] {before = 4 : i64, scale = 2.5{{.*}}} {{.*}} -> (tensor<2x24x4x16xbf16>, tensor<2x4x24xf32>)
// CUDA-NEXT: aten.transpose.int %[[OUT]], 1, 2
// CUDA-NEXT: return
// EAGER-LABEL: func.func @window
// EAGER-NOT: _flash_attention_forward
// EAGER: aten._scaled_dot_product_efficient_attention {{.*}} mask
func.func @window(%q: tensor<2x4x24x16xbf16>, %k: tensor<2x2x24x16xbf16>) -> tensor<2x4x24x16xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64, window = 5 : i64} : (tensor<2x4x24x16xbf16>, tensor<2x2x24x16xbf16>, tensor<2x2x24x16xbf16>) -> tensor<2x4x24x16xbf16>
  return %0 : tensor<2x4x24x16xbf16>
}

// Rows of other than 16 bytes are filled up, as for the other kernels.
// CUDA-LABEL: func.func @odd_window
// CUDA:      aten.cat {{.*}} -> tensor<2x4x24x24xf16>
// CUDA:      aten._flash_attention_forward {{.*}} -> (tensor<2x24x4x24xf16>, tensor<2x4x24xf32>)
// CUDA:      aten.slice.Tensor %{{.*}}, 3[0 : 20 : 1]
func.func @odd_window(%q: tensor<2x4x24x20xf16>) -> tensor<2x4x24x20xf16> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, window = 5 : i64} : (tensor<2x4x24x20xf16>, tensor<2x4x24x20xf16>, tensor<2x4x24x20xf16>) -> tensor<2x4x24x20xf16>
  return %0 : tensor<2x4x24x20xf16>
}

// That kernel knows no fp32, no mask of its own, no cap, and heads of up to
// 256 elements.
// CUDA-LABEL: func.func @other_windows
// CUDA-NOT: _flash_attention_forward
// CUDA: return
func.func @other_windows(%q: tensor<2x4x24x16xbf16>, %b: tensor<1x4x1x24xbf16>, %w: tensor<2x4x24x512xbf16>) -> (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x512xbf16>) {
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, window = 5 : i64, softcap = 5.0 : f64} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>) -> tensor<2x4x24x16xbf16>
  %1 = aten.scaled_dot_product_attention %q, %q, %q mask %b {is_causal = true, scale = 2.5e-01 : f64, window = 5 : i64} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<1x4x1x24xbf16>) -> tensor<2x4x24x16xbf16>
  %2 = aten.scaled_dot_product_attention %w, %w, %w {is_causal = true, scale = 2.5e-01 : f64, window = 5 : i64} : (tensor<2x4x24x512xbf16>, tensor<2x4x24x512xbf16>, tensor<2x4x24x512xbf16>) -> tensor<2x4x24x512xbf16>
  return %0, %1, %2 : tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x512xbf16>
}

// CUDA's kernel for fp32 wants rows that start at multiples of 16 elements, and
// a mask for each head.
// CHECK-LABEL: func.func @window_fp32
// CHECK:      aten.sub.Tensor {{.*}} -> tensor<24x24xi32>
// CHECK-NEXT: %[[NEAR:.*]] = aten.lt.Scalar %{{.*}}, 5
// CHECK-NEXT: %[[ONE:.*]] = aten._to_copy %[[NEAR]], f32
// CHECK-NEXT: %[[ZERO:.*]] = aten.sub.Scalar %[[ONE]], 1.0
// CHECK-NEXT: %[[MANY:.*]] = aten.mul.Scalar %[[ZERO]], 3.40{{.*}}E+38
// CHECK-NEXT: %[[MASK:.*]] = aten.view %[[MANY]], [1, 1, 24, 24]
// CPU-NEXT:   aten._scaled_dot_product_flash_attention_for_cpu %arg0, %arg1, %arg1 mask %[[MASK]] {is_causal = true
// CUDA-NEXT:  aten.slice.Tensor %[[MASK]], 3[0 : 8 : 1]
// CUDA-NEXT:  aten.cat {{.*}} -> tensor<1x1x24x32xf32>
// CUDA-NEXT:  aten.slice.Tensor {{.*}} 3[0 : 24 : 1]
// CUDA-NEXT:  %[[WIDE:.*]] = aten.expand {{.*}} [2, 4, 24, 24]
// CUDA:       aten._scaled_dot_product_efficient_attention {{.*}} mask %[[WIDE]] {is_causal = true
func.func @window_fp32(%q: tensor<2x4x24x16xf32>, %k: tensor<2x2x24x16xf32>) -> tensor<2x4x24x16xf32> {
  %0 = aten.scaled_dot_product_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64, window = 5 : i64} : (tensor<2x4x24x16xf32>, tensor<2x2x24x16xf32>, tensor<2x2x24x16xf32>) -> tensor<2x4x24x16xf32>
  return %0 : tensor<2x4x24x16xf32>
}

// A window that holds all keys is none.
// CHECK-LABEL: func.func @wide_window
// CHECK-NOT: aten.arange
// CPU:  aten._scaled_dot_product_flash_attention_for_cpu %arg0, %arg0, %arg0 {
// CUDA: aten._scaled_dot_product_flash_attention %arg0
func.func @wide_window(%q: tensor<2x4x24x16xbf16>) -> tensor<2x4x24x16xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, window = 24 : i64} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>) -> tensor<2x4x24x16xbf16>
  return %0 : tensor<2x4x24x16xbf16>
}

// No kernel caps scores.
// CHECK-LABEL: func.func @softcap
// CHECK:      %[[SCORES:.*]] = aten.bmm
// CHECK:      aten.mul.Scalar %{{.*}}, 2.500000e-01
// CHECK-NEXT: aten.div.Scalar %{{.*}}, 5.0
// CHECK-NEXT: aten.tanh
// CHECK-NEXT: aten.mul.Scalar %{{.*}}, 5.0
// CHECK:      aten.gt.Scalar %{{.*}}, -1
// CHECK:      aten.add.Tensor
// CHECK-NEXT: aten._to_copy {{.*}}, f32
// CHECK-NEXT: aten._softmax %{{.*}}, 3
// CHECK-NEXT: aten._to_copy {{.*}}, bf16
// CHECK:      aten.bmm
func.func @softcap(%q: tensor<2x4x8x16xbf16>) -> tensor<2x4x8x16xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, softcap = 5.0 : f64} : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>) -> tensor<2x4x8x16xbf16>
  return %0 : tensor<2x4x8x16xbf16>
}

// A bias for each head. CUDA's kernel reads it in the element type of q alone.
// CHECK-LABEL: func.func @bias
// CPU:       aten._scaled_dot_product_flash_attention_for_cpu %arg0, %arg0, %arg0 mask %arg1
// CUDA:      aten.add.Tensor %{{.*}}, %{{.*}} : (tensor<2x4x8x8xbf16>, tensor<1x4x8x8xf32>) -> tensor<2x4x8x8xf32>
// CUDA-NEXT: aten._softmax
func.func @bias(%q: tensor<2x4x8x16xbf16>, %b: tensor<1x4x1x8xf32>) -> tensor<2x4x8x16xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q mask %b {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<1x4x1x8xf32>) -> tensor<2x4x8x16xbf16>
  return %0 : tensor<2x4x8x16xbf16>
}

// What transformers runs by parts, its own modules are judged by; a plan of
// ours takes the kernel.
// CHECK-LABEL: func.func @by_parts
// CHECK-NOT: aten.bmm
// EAGER-LABEL: func.func @by_parts
// EAGER: aten.bmm
// EAGER: aten._softmax
func.func @by_parts(%q: tensor<2x4x8x16xbf16>) -> tensor<2x4x8x16xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, by_parts} : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>) -> tensor<2x4x8x16xbf16>
  return %0 : tensor<2x4x8x16xbf16>
}

// OLMo 2 rounds after the weight; Gemma's factor is 1 + weight, in fp32, which
// the fused kernel cannot read in less.
// CHECK-LABEL: func.func @norms
// CPU:      aten.rsqrt
// CPU-NEXT: aten.mul.Tensor
// CPU-NEXT: aten.mul.Tensor %{{.*}}, %arg1 : (tensor<8x16xf32>, tensor<16xbf16>) -> tensor<8x16xf32>
// CPU-NEXT: aten._to_copy
// CUDA:     aten._fused_rms_norm
// CHECK:    aten.rsqrt
// CHECK:    aten._to_copy %arg1, f32
// CHECK-NEXT: aten.add.Scalar %{{.*}}, 1.0
// CHECK-NEXT: aten.mul.Tensor
// CHECK-NEXT: aten._to_copy {{.*}}, bf16
func.func @norms(%x: tensor<8x16xbf16>, %w: tensor<16xbf16>) -> tensor<8x16xbf16> {
  %0 = aten.rms_norm %x, %w {eps = 1.0e-06 : f64, wide} : (tensor<8x16xbf16>, tensor<16xbf16>) -> tensor<8x16xbf16>
  %1 = aten.rms_norm %0, %w {eps = 1.0e-06 : f64, shifted, wide} : (tensor<8x16xbf16>, tensor<16xbf16>) -> tensor<8x16xbf16>
  return %1 : tensor<8x16xbf16>
}

// Attention that drops weights by a key: CUDA's kernels drop where they make
// them, CPUs make all of them. Where transformers runs it, a generator's state
// decides, which has no operand. Windows and masks go to the memory-efficient
// kernel; a trained mask, whose gradient no kernel has then, by parts.
// CHECK-LABEL: func.func @dropped
// CPU-COUNT-4: aten.dropout %{{.*}}, 1.000000e-01 key
// CUDA:      aten.dropped_flash_attention %arg0, %arg1, %arg1 {dropout_key = 0 : i64, dropout_p = 1.000000e-01 : f64, is_causal = true, scale = 2.5{{.*}}} {{.*}} -> (tensor<2x4x24x16xbf16>, tensor<2x4x24xf32>)
// CUDA-NOT:  24x24
// CUDA:      aten.dropped_efficient_attention %arg2, %{{.*}}, %{{.*}} {dropout_key = 1 : i64, {{.*}} -> (tensor<2x4x24x16xf32>, tensor<2x4x32xf32>)
// CUDA:      aten.dropped_efficient_attention %arg0, %{{.*}}, %{{.*}} mask %{{.*}} {dropout_key = 2 : i64
// CUDA:      aten.dropout %{{.*}}, 1.000000e-01 key 3 : tensor<2x4x24x24xbf16>
// EAGER-LABEL: func.func @dropped
// EAGER:     aten._scaled_dot_product_flash_attention
// EAGER-NOT: aten.dropped
func.func @dropped(%q: tensor<2x4x24x16xbf16>, %k: tensor<2x2x24x16xbf16>, %f: tensor<2x4x24x16xf32>, %b: tensor<1x4x24x24xbf16>) -> (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>) {
  %0 = aten.scaled_dot_product_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64, dropout_p = 1.0e-01 : f64, dropout_key = 0 : i64} : (tensor<2x4x24x16xbf16>, tensor<2x2x24x16xbf16>, tensor<2x2x24x16xbf16>) -> tensor<2x4x24x16xbf16>
  %1 = aten.scaled_dot_product_attention %f, %f, %f {is_causal = true, scale = 2.5e-01 : f64, dropout_p = 1.0e-01 : f64, dropout_key = 1 : i64} : (tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>) -> tensor<2x4x24x16xf32>
  %2 = aten.scaled_dot_product_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64, window = 5 : i64, dropout_p = 1.0e-01 : f64, dropout_key = 2 : i64} : (tensor<2x4x24x16xbf16>, tensor<2x2x24x16xbf16>, tensor<2x2x24x16xbf16>) -> tensor<2x4x24x16xbf16>
  %3 = aten.scaled_dot_product_attention %q, %q, %q mask %b {is_causal = false, scale = 1.0 : f64, dropout_p = 1.0e-01 : f64, dropout_key = 3 : i64, aten.trained_mask} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<1x4x24x24xbf16>) -> tensor<2x4x24x16xbf16>
  return %0, %1, %2, %3 : tensor<2x4x24x16xbf16>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>
}
