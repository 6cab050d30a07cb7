// RUN: sed 's/FRAMEWORK/torchtitan/;s/TORCH/2.6/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefixes=CHECK,EAGER
// RUN: sed 's/FRAMEWORK/torchtitan/;s/TORCH/2.10/;s/ASKED/layers/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefixes=CHECK,FUSED
// RUN: sed 's/FRAMEWORK/llm-foundry/;s/TORCH/2.10/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefix=MPT
// RUN: sed 's/FRAMEWORK/kempnerforge/;s/TORCH/2.10/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefix=KEMPNER
// RUN: sed 's/FRAMEWORK/fsdp2/;s/TORCH/2.10/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefix=EAGER-MODULES

// A trainer's models compute in their own way.
sharding.job "m" micro_batch 1 sequence_length 4 device "cuda" {framework = #sharding.framework<"FRAMEWORK" torch "TORCH" accelerate "1.15.0">}
sharding.request "compile" {ASKED} because <"torch.compile">

// CHECK-LABEL: func.func @norm
// EAGER:       aten.pow.Tensor_Scalar
// FUSED-NOT:   aten.pow
// FUSED:       aten._fused_rms_norm
// KEMPNER-LABEL: func.func @norm
// KEMPNER:     %[[NORMED:.*]] = aten.mul.Tensor %{{.*}} : (tensor<1x4x16xf32>, tensor<1x4x1xf32>)
// KEMPNER-NEXT: %[[WIDE:.*]] = aten.mul.Tensor %[[NORMED]], %arg1 {aten.autograd_order} : (tensor<1x4x16xf32>, tensor<16xbf16>) -> tensor<1x4x16xf32>
// KEMPNER-NEXT: aten._to_copy %[[WIDE]], bf16
func.func @norm(%x: tensor<1x4x16xbf16>, %w: tensor<16xbf16>) -> tensor<1x4x16xbf16> {
  %0 = aten.rms_norm %x, %w {eps = 1.0e-06 : f64} : (tensor<1x4x16xbf16>, tensor<16xbf16>) -> tensor<1x4x16xbf16>
  return %0 : tensor<1x4x16xbf16>
}

// Complex multiplications in fp32; torch.compile makes one kernel of them.
// CHECK-LABEL: func.func @rotary
// EAGER-NEXT:  %[[WIDE:.*]] = aten._to_copy %arg0, f32
// EAGER-NEXT:  %[[TURNED:.*]] = aten.rotary %[[WIDE]], %arg1, %arg2, false : (tensor<1x4x2x8xf32>, tensor<4x1x8xbf16>, tensor<4x1x8xbf16>) -> tensor<1x4x2x8xf32>
// EAGER-NEXT:  aten._to_copy %[[TURNED]], bf16
// FUSED-NEXT:  aten.rotary %arg0, %arg1, %arg2, false
// FUSED-NEXT:  return
// KEMPNER-LABEL: func.func @rotary
// KEMPNER-NOT: aten.rotary
// KEMPNER:     aten.neg
// EAGER-MODULES-LABEL: func.func @rotary
// EAGER-MODULES-NOT: aten.rotary
// EAGER-MODULES: aten.neg
func.func @rotary(%x: tensor<1x4x2x8xbf16>, %cos: tensor<4x1x8xbf16>, %sin: tensor<4x1x8xbf16>) -> tensor<1x4x2x8xbf16> {
  %first = aten.slice.Tensor %x, 3 [0 : 4 : 1] : (tensor<1x4x2x8xbf16>) -> tensor<1x4x2x4xbf16>
  %second = aten.slice.Tensor %x, 3 [4 : 8 : 1] : (tensor<1x4x2x8xbf16>) -> tensor<1x4x2x4xbf16>
  %plain = aten.mul.Tensor %x, %cos : (tensor<1x4x2x8xbf16>, tensor<4x1x8xbf16>) -> tensor<1x4x2x8xbf16>
  %neg = aten.neg %second : tensor<1x4x2x4xbf16>
  %turned = aten.cat %neg, %first dim 3 : (tensor<1x4x2x4xbf16>, tensor<1x4x2x4xbf16>) -> tensor<1x4x2x8xbf16>
  %crossed = aten.mul.Tensor %turned, %sin : (tensor<1x4x2x8xbf16>, tensor<4x1x8xbf16>) -> tensor<1x4x2x8xbf16>
  %0 = aten.add.Tensor %plain, %crossed : (tensor<1x4x2x8xbf16>, tensor<1x4x2x8xbf16>) -> tensor<1x4x2x8xbf16>
  return %0 : tensor<1x4x2x8xbf16>
}

// Key and value heads are copied for each query head.
// CHECK-LABEL: func.func @attention
// CHECK:       aten.expand %{{.*}}, [1, 2, 2, 8, 16]
// CHECK-NEXT:  aten.clone
// CHECK:       aten._scaled_dot_product_flash_attention %arg0, %{{.*}} : (tensor<1x4x8x16xbf16>, tensor<1x4x8x16xbf16>, tensor<1x4x8x16xbf16>)
// EAGER-MODULES-LABEL: func.func @attention
// EAGER-MODULES-NOT: aten.expand
// EAGER-MODULES: aten._scaled_dot_product_flash_attention
func.func @attention(%q: tensor<1x4x8x16xbf16>, %k: tensor<1x2x8x16xbf16>) -> tensor<1x4x8x16xbf16> {
  %0 = aten.scaled_dot_product_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64} : (tensor<1x4x8x16xbf16>, tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>) -> tensor<1x4x8x16xbf16>
  return %0 : tensor<1x4x8x16xbf16>
}

// CHECK-LABEL: func.func @gated
// EAGER:       aten.silu
// FUSED-NEXT:  aten.swiglu %arg0, %arg1
// FUSED-NEXT:  return
func.func @gated(%gate: tensor<4x8xbf16>, %up: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %0 = aten.silu %gate : tensor<4x8xbf16>
  %1 = aten.mul.Tensor %0, %up : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
  return %1 : tensor<4x8xbf16>
}

// flash-attn's loss overwrites the logits with their gradient; KempnerForge's
// is in bf16.
// CHECK-LABEL: func.func @loss
// EAGER:       aten._log_softmax %{{.*}}, 1 : tensor<4x32xf32>
// FUSED-NEXT:  aten.cross_entropy %arg0, %arg1 {ignore_index = -100 : i64, in_place = false}
// MPT-LABEL:   func.func @loss
// MPT-NEXT:    aten.cross_entropy %arg0, %arg1 {ignore_index = -100 : i64, in_place = true}
// KEMPNER-LABEL: func.func @loss
// KEMPNER-NEXT: aten._log_softmax %arg0, 1 : tensor<4x32xbf16>
func.func @loss(%logits: tensor<4x32xbf16>, %targets: tensor<4xi64>) -> tensor<f32> {
  %0 = aten._to_copy %logits, f32 : (tensor<4x32xbf16>) -> tensor<4x32xf32>
  %1 = aten._log_softmax %0, 1 : tensor<4x32xf32>
  %2, %3 = aten.nll_loss_forward %1, %targets : (tensor<4x32xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  return %2 : tensor<f32>
}
