// RUN: sed 's/CAPABILITY/9.0/; s/TORCH/2.15/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefixes=CHECK,NEWER
// RUN: sed 's/CAPABILITY/10.0/; s/TORCH/2.11/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefixes=CHECK,OLDER
// RUN: sed 's/CAPABILITY/9.0/; s/TORCH/2.10/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefix=NONE
// RUN: sed 's/CAPABILITY/8.9/; s/TORCH/2.15/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefix=NONE
// RUN: sed 's/CAPABILITY/12.0/; s/TORCH/2.15/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefix=NONE
// RUN: sed 's/CAPABILITY/9.0/; s/framework = .*15.0">, //' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefix=OWN
// RUN: sed 's/CAPABILITY/9.0/; s/framework = .*15.0">, /training = {deterministic = true}, /' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefix=NONE
// RUN: sed 's/CAPABILITY/9.0/; s/TORCH/2.15/; s/^\/\/ ASKED //' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefix=NONE

// torch's attention takes cuDNN's kernel from 2.11 on, on Hopper and Blackwell:
// in 16 bits, for heads of up to 128 elements (of 256 from 2.15 on), whatever
// the mask. Its statistics have a last dimension of their own.
// NONE-NOT: cudnn
// OWN-LABEL: @plain
// OWN: aten._scaled_dot_product_cudnn_attention %arg0
// OWN-NOT: cudnn
sharding.job "m" micro_batch 2 sequence_length 24 device "cuda" {framework = #sharding.framework<"fsdp2" torch "TORCH" accelerate "1.15.0">, capability = CAPABILITY : f64}
// ASKED sharding.request "compile" {flash_attention} because <"flash-attn">

// CHECK-LABEL: @plain
// CHECK: aten._scaled_dot_product_cudnn_attention %arg0, %arg1, %arg1 {is_causal = true, scale = 2.5{{.*}}} : {{.*}} -> (tensor<2x4x24x16xbf16>, tensor<2x4x24x1xf32>)
func.func @plain(%q: tensor<2x4x24x16xbf16>, %k: tensor<2x2x24x16xbf16>) -> tensor<2x4x24x16xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x24x16xbf16>, tensor<2x2x24x16xbf16>, tensor<2x2x24x16xbf16>) -> tensor<2x4x24x16xbf16>
  return %0 : tensor<2x4x24x16xbf16>
}

// CHECK-LABEL: @masked
// CHECK: aten._scaled_dot_product_cudnn_attention {{.*}} mask %arg1
func.func @masked(%q: tensor<2x4x24x16xf16>, %b: tensor<2x1x1x24xf16>) -> tensor<2x4x24x16xf16> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q mask %b {is_causal = false, scale = 2.5e-01 : f64} : (tensor<2x4x24x16xf16>, tensor<2x4x24x16xf16>, tensor<2x4x24x16xf16>, tensor<2x1x1x24xf16>) -> tensor<2x4x24x16xf16>
  return %0 : tensor<2x4x24x16xf16>
}

// CHECK-LABEL: @wide
// NEWER: aten._scaled_dot_product_cudnn_attention
// OLDER: aten._scaled_dot_product_flash_attention
func.func @wide(%q: tensor<2x4x24x256xbf16>) -> tensor<2x4x24x256xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x24x256xbf16>, tensor<2x4x24x256xbf16>, tensor<2x4x24x256xbf16>) -> tensor<2x4x24x256xbf16>
  return %0 : tensor<2x4x24x256xbf16>
}

// Heads between, and of no multiple of 8, go to FlashAttention 2; fp32 and one
// key to the memory-efficient kernel or to it.
// CHECK-LABEL: @others
// CHECK-NOT: cudnn
func.func @others(%a: tensor<2x4x24x160xbf16>, %b: tensor<2x4x24x20xbf16>, %c: tensor<2x4x24x16xf32>, %d: tensor<2x4x1x16xbf16>) -> (tensor<2x4x24x160xbf16>, tensor<2x4x24x20xbf16>, tensor<2x4x24x16xf32>, tensor<2x4x1x16xbf16>) {
  %0 = aten.scaled_dot_product_attention %a, %a, %a {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x24x160xbf16>, tensor<2x4x24x160xbf16>, tensor<2x4x24x160xbf16>) -> tensor<2x4x24x160xbf16>
  %1 = aten.scaled_dot_product_attention %b, %b, %b {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x24x20xbf16>, tensor<2x4x24x20xbf16>, tensor<2x4x24x20xbf16>) -> tensor<2x4x24x20xbf16>
  %2 = aten.scaled_dot_product_attention %c, %c, %c {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>) -> tensor<2x4x24x16xf32>
  %3 = aten.scaled_dot_product_attention %d, %d, %d {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x1x16xbf16>, tensor<2x4x1x16xbf16>, tensor<2x4x1x16xbf16>) -> tensor<2x4x1x16xbf16>
  return %0, %1, %2, %3 : tensor<2x4x24x160xbf16>, tensor<2x4x24x20xbf16>, tensor<2x4x24x16xf32>, tensor<2x4x1x16xbf16>
}

// cuDNN drops by sixteenths. What accel-run drops by a key, flash attention
// drops.
// OWN: aten.dropped_flash_attention
// CHECK-LABEL: @dropped
// CHECK-NOT: cudnn
// CHECK: return
func.func @dropped(%q: tensor<2x4x24x16xbf16>) -> tensor<2x4x24x16xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, dropout_p = 1.0e-01 : f64, dropout_key = 0 : i64} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>) -> tensor<2x4x24x16xbf16>
  return %0 : tensor<2x4x24x16xbf16>
}
