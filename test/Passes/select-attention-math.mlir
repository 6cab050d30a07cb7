// RUN: accel-opt opt --select-kernels %s | FileCheck %s --check-prefixes=CHECK,OLDER
// RUN: sed 's/torch "2.11"/torch "2.14"/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefixes=CHECK,NEWER
// RUN: sed 's/{framework = .*15.0">, /{/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefix=OWN

// transformers hands grouped queries to torch as they are: no kernel of CUDA's
// takes them in fp32 before torch 2.14, and torch's math saves the scores of all
// heads; from then on the memory-efficient kernel does. A plan of ours repeats
// the keys for it, as it may run on an older torch.
// OWN-LABEL: @grouped
// OWN: aten._scaled_dot_product_efficient_attention
// OWN-NOT: aten._softmax
// OWN-LABEL: @alone
sharding.job "m" micro_batch 2 sequence_length 24 device "cuda" {framework = #sharding.framework<"ddp" torch "2.11" accelerate "1.15.0">, capability = 9.0 : f64}

// CHECK-LABEL: @grouped
// OLDER: %[[Q:.*]] = aten.mul.Scalar %arg0, 5.0{{.*}}
// OLDER: aten.clone %[[Q]]
// OLDER: aten.bmm {{.*}} -> tensor<8x24x24xf32>
// OLDER: aten.add.Tensor
// OLDER: aten._softmax {{.*}} {aten.whole_scores} : tensor<2x4x24x24xf32>
// OLDER: aten.bmm {{.*}} -> tensor<8x24x16xf32>
// NEWER-NEXT: aten._scaled_dot_product_efficient_attention %arg0, %arg1, %arg1 {{.*}} : (tensor<2x4x24x16xf32>, tensor<2x2x24x16xf32>, tensor<2x2x24x16xf32>)
func.func @grouped(%q: tensor<2x4x24x16xf32>, %k: tensor<2x2x24x16xf32>) -> tensor<2x4x24x16xf32> {
  %0 = aten.scaled_dot_product_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x24x16xf32>, tensor<2x2x24x16xf32>, tensor<2x2x24x16xf32>) -> tensor<2x4x24x16xf32>
  return %0 : tensor<2x4x24x16xf32>
}

// CHECK-LABEL: @alone
// CHECK: aten._scaled_dot_product_efficient_attention %arg0, %arg0, %arg0
func.func @alone(%q: tensor<2x4x24x16xf32>) -> tensor<2x4x24x16xf32> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>) -> tensor<2x4x24x16xf32>
  return %0 : tensor<2x4x24x16xf32>
}

// With a mask transformers repeats the keys itself.
// CHECK-LABEL: @masked
// CHECK: aten._scaled_dot_product_efficient_attention {{.*}} mask
func.func @masked(%q: tensor<2x4x24x16xf32>, %k: tensor<2x2x24x16xf32>, %b: tensor<2x1x1x24xf32>) -> tensor<2x4x24x16xf32> {
  %0 = aten.scaled_dot_product_attention %q, %k, %k mask %b {is_causal = false, scale = 2.5e-01 : f64} : (tensor<2x4x24x16xf32>, tensor<2x2x24x16xf32>, tensor<2x2x24x16xf32>, tensor<2x1x1x24xf32>) -> tensor<2x4x24x16xf32>
  return %0 : tensor<2x4x24x16xf32>
}

// Query and key that were joined lie head by head, and so does the result.
// CHECK-LABEL: @joined
// CHECK: %[[A:.*]], %{{.*}} = aten._scaled_dot_product_cudnn_attention
// CHECK: %[[T:.*]] = aten.transpose.int %[[A]],
// CHECK: aten.clone %[[T]]
func.func @joined(%q: tensor<2x4x24x16xbf16>) -> tensor<2x4x24x16xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, aten.joined} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>) -> tensor<2x4x24x16xbf16>
  return %0 : tensor<2x4x24x16xbf16>
}

// A mask that is trained: the memory-efficient kernel has its gradient from torch
// 2.14 on, and what has 16 bits is copied to fp32 before.
// CHECK-LABEL: @trained
// NEWER: %[[M:.*]] = aten.expand %arg1
// NEWER: aten._scaled_dot_product_efficient_attention %arg0, %arg0, %arg0 mask %[[M]]
// OLDER: aten._to_copy %arg0, f32
// OLDER: aten.bmm {{.*}} -> tensor<8x32x32xf32>
// OLDER: aten._to_copy %arg1, f32
// OLDER: aten._softmax {{.*}} {aten.whole_scores} : tensor<2x4x32x32xf32>
// OLDER: aten.native_dropout
// OLDER: aten._to_copy {{.*}}, bf16
func.func @trained(%q: tensor<2x4x32x16xbf16>, %b: tensor<1x4x32x32xbf16>) -> tensor<2x4x32x16xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q mask %b {is_causal = false, scale = 1.0 : f64, dropout_p = 1.0e-01 : f64, dropout_key = 0 : i64, aten.trained_mask} : (tensor<2x4x32x16xbf16>, tensor<2x4x32x16xbf16>, tensor<2x4x32x16xbf16>, tensor<1x4x32x32xbf16>) -> tensor<2x4x32x16xbf16>
  return %0 : tensor<2x4x32x16xbf16>
}
