// RUN: sed 's/FRAMEWORK/llm-foundry/;s/ASKED/layers/' %s | accel-opt opt --pass-pipeline='builtin.module(select-kernels,differentiate)' | FileCheck %s --check-prefixes=CHECK,INPLACE
// RUN: sed 's/FRAMEWORK/torchtitan/;s/ASKED/layers/' %s | accel-opt opt --pass-pipeline='builtin.module(select-kernels,differentiate)' | FileCheck %s --check-prefixes=CHECK,COMPILED

// Derivatives of kernels that ATen does not have.
sharding.job "m" micro_batch 1 sequence_length 4 device "cuda" {framework = #sharding.framework<"FRAMEWORK" torch "2.10" accelerate "1.15.0">}
sharding.request "compile" {ASKED} because <"torch.compile">

func.func private @Gated(%gate: tensor<4x8xbf16>, %up: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %0 = aten.silu %gate : tensor<4x8xbf16>
  %1 = aten.mul.Tensor %0, %up : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
  return %1 : tensor<4x8xbf16>
}
// CHECK-LABEL: func.func private @Gated.joint
// CHECK:       %[[OUT:.*]] = aten.swiglu %arg0, %arg1
// CHECK:       %[[GATE:.*]], %[[UP:.*]] = aten.swiglu_backward %arg2, %arg0, %arg1
// CHECK:       return %[[OUT]], %[[GATE]], %[[UP]]

func.func private @Loss(%logits: tensor<4x32xbf16>, %targets: tensor<4xi64>) -> tensor<f32> {
  %0 = aten._to_copy %logits, f32 : (tensor<4x32xbf16>) -> tensor<4x32xf32>
  %1 = aten._log_softmax %0, 1 : tensor<4x32xf32>
  %2, %3 = aten.nll_loss_forward %1, %targets : (tensor<4x32xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  return %2 : tensor<f32>
}
// CHECK-LABEL: func.func private @Loss.joint
// INPLACE:     %[[LOSS:.*]], %[[SUMS:.*]] = aten.cross_entropy %arg0, %arg1 {ignore_index = -100 : i64, in_place = true}
// INPLACE:     aten.cross_entropy_in_place_backward %arg0, %arg2, %arg1, %[[SUMS]]
// COMPILED:    %[[LOSS:.*]], %[[SUMS:.*]] = aten.cross_entropy %arg0, %arg1 {ignore_index = -100 : i64, in_place = false}
// COMPILED:    aten.cross_entropy_backward %arg0, %arg2, %arg1, %[[SUMS]]
// CHECK-NOT:   aten._log_softmax
