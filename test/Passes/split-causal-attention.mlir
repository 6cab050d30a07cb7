// RUN: accel-opt opt %s --split-causal-attention | FileCheck %s

#input = #aten.binding<input 0>
#tangent = #aten.binding<tangent 0>
#output = #aten.binding<output 0>

// Two parts below 256 tokens. The first is causal; the second sees all keys and
// a mask hides those behind each query. Keys' gradients of the first half are
// the sum of both parts'.
// CHECK-LABEL: @long.joint
// CHECK:       %[[Q0:.*]] = aten.slice.Tensor %arg0, 2[0 : 64 : 1]
// CHECK:       %[[K0:.*]] = aten.slice.Tensor %arg1, 2[0 : 64 : 1]
// CHECK:       %[[V0:.*]] = aten.slice.Tensor %arg2, 2[0 : 64 : 1]
// CHECK:       %[[O0:.*]], %[[L0:.*]] = aten._scaled_dot_product_flash_attention_for_cpu %[[Q0]], %[[K0]], %[[V0]] {is_causal = true
// CHECK:       %[[Q1:.*]] = aten.slice.Tensor %arg0, 2[64 : 128 : 1]
// CHECK:       %[[KEY:.*]] = aten.arange.start_step[0 : 128 : 1], i32
// CHECK:       %[[ROW:.*]] = aten.arange.start_step[64 : 128 : 1], i32
// CHECK:       %[[COLUMN:.*]] = aten.unsqueeze %[[ROW]], 1
// CHECK:       %[[BEHIND:.*]] = aten.sub.Tensor %[[COLUMN]], %[[KEY]]
// CHECK:       %[[SEEN:.*]] = aten.gt.Scalar %[[BEHIND]], -1
// CHECK:       aten._to_copy %[[SEEN]], f32
// CHECK:       aten.sub.Scalar %{{.*}}, 1.0
// CHECK:       aten.mul.Scalar %{{.*}}, 3.4028234663852886E+38
// CHECK:       %[[MASK:.*]] = aten.view %{{.*}}, [1, 1, 64, 128]
// CHECK:       %[[O1:.*]], %[[L1:.*]] = aten._scaled_dot_product_flash_attention_for_cpu %[[Q1]], %arg1, %arg2 mask %[[MASK]] {is_causal = false
// CHECK:       %[[S0:.*]] = aten.transpose.int %[[O0]], 1, 2
// CHECK:       %[[S1:.*]] = aten.transpose.int %[[O1]], 1, 2
// CHECK:       %[[JOINED:.*]] = aten.cat %[[S0]], %[[S1]] dim 1
// CHECK:       %[[OUT:.*]] = aten.transpose.int %[[JOINED]], 1, 2
// CHECK:       %[[GQ0:.*]], %[[GK0:.*]], %[[GV0:.*]] = aten._scaled_dot_product_flash_attention_for_cpu_backward {{.*}}is_causal = true
// CHECK:       %[[GQ1:.*]], %[[GK1:.*]], %[[GV1:.*]] = aten._scaled_dot_product_flash_attention_for_cpu_backward {{.*}}is_causal = false
// CHECK:       %[[FIRST:.*]] = aten.slice.Tensor %[[GK1]], 2[0 : 64 : 1]
// CHECK:       aten.add.Tensor %[[FIRST]], %[[GK0]]
// CHECK:       aten.slice.Tensor %[[GK1]], 2[64 : 128 : 1]
// CHECK:       return %[[OUT]]
func.func private @long.joint(%q: tensor<2x8x128x64xf32> {aten.binding = #input}, %k: tensor<2x4x128x64xf32> {aten.binding = #aten.binding<input 1>}, %v: tensor<2x4x128x64xf32> {aten.binding = #aten.binding<input 2>}, %g: tensor<2x8x128x64xf32> {aten.binding = #tangent}) -> (tensor<2x8x128x64xf32> {aten.binding = #output}, tensor<2x8x128x64xf32> {aten.binding = #aten.binding<input_grad 0>}, tensor<2x4x128x64xf32> {aten.binding = #aten.binding<input_grad 1>}, tensor<2x4x128x64xf32> {aten.binding = #aten.binding<input_grad 2>}) {
  %o, %l = aten._scaled_dot_product_flash_attention_for_cpu %q, %k, %v {is_causal = true, scale = 1.250000e-01 : f64} : (tensor<2x8x128x64xf32>, tensor<2x4x128x64xf32>, tensor<2x4x128x64xf32>) -> (tensor<2x8x128x64xf32>, tensor<2x8x128xf32>)
  %gq, %gk, %gv = aten._scaled_dot_product_flash_attention_for_cpu_backward %g, %q, %k, %v, %o, %l {is_causal = true, scale = 1.250000e-01 : f64} : (tensor<2x8x128x64xf32>, tensor<2x8x128x64xf32>, tensor<2x4x128x64xf32>, tensor<2x4x128x64xf32>, tensor<2x8x128x64xf32>, tensor<2x8x128xf32>) -> (tensor<2x8x128x64xf32>, tensor<2x4x128x64xf32>, tensor<2x4x128x64xf32>)
  return %o, %gq, %gk, %gv : tensor<2x8x128x64xf32>, tensor<2x8x128x64xf32>, tensor<2x4x128x64xf32>, tensor<2x4x128x64xf32>
}

// Four parts of 512 tokens, of which the last is shorter where they do not
// divide.
// CHECK-LABEL: @uneven.joint
// CHECK:       aten.slice.Tensor %arg0, 2[0 : 126 : 1]
// CHECK:       aten.slice.Tensor %arg0, 2[126 : 252 : 1]
// CHECK:       aten.slice.Tensor %arg0, 2[252 : 378 : 1]
// CHECK:       aten.slice.Tensor %arg0, 2[378 : 501 : 1]
// CHECK:       return
func.func private @uneven.joint(%q: tensor<1x2x501x64xf32> {aten.binding = #input}) -> (tensor<1x2x501x64xf32> {aten.binding = #output}) {
  %o, %l = aten._scaled_dot_product_flash_attention_for_cpu %q, %q, %q {is_causal = true, scale = 1.250000e-01 : f64} : (tensor<1x2x501x64xf32>, tensor<1x2x501x64xf32>, tensor<1x2x501x64xf32>) -> (tensor<1x2x501x64xf32>, tensor<1x2x501xf32>)
  return %o : tensor<1x2x501x64xf32>
}

// Short and long sequences, attention that sees all keys, and functions that no
// rank trains with stay.
// CHECK-LABEL: @short.joint
// CHECK-NOT:   aten.slice
// CHECK:       return
func.func private @short.joint(%q: tensor<1x2x127x64xf32> {aten.binding = #input}) -> (tensor<1x2x127x64xf32> {aten.binding = #output}) {
  %o, %l = aten._scaled_dot_product_flash_attention_for_cpu %q, %q, %q {is_causal = true, scale = 1.250000e-01 : f64} : (tensor<1x2x127x64xf32>, tensor<1x2x127x64xf32>, tensor<1x2x127x64xf32>) -> (tensor<1x2x127x64xf32>, tensor<1x2x127xf32>)
  return %o : tensor<1x2x127x64xf32>
}
// CHECK-LABEL: @endless.joint
// CHECK-NOT:   aten.slice
// CHECK:       return
func.func private @endless.joint(%q: tensor<1x2x2048x64xf32> {aten.binding = #input}) -> (tensor<1x2x2048x64xf32> {aten.binding = #output}) {
  %o, %l = aten._scaled_dot_product_flash_attention_for_cpu %q, %q, %q {is_causal = true, scale = 1.250000e-01 : f64} : (tensor<1x2x2048x64xf32>, tensor<1x2x2048x64xf32>, tensor<1x2x2048x64xf32>) -> (tensor<1x2x2048x64xf32>, tensor<1x2x2048xf32>)
  return %o : tensor<1x2x2048x64xf32>
}
// CHECK-LABEL: @whole.joint
// CHECK-NOT:   aten.slice
// CHECK:       return
func.func private @whole.joint(%q: tensor<1x2x512x64xf32> {aten.binding = #input}) -> (tensor<1x2x512x64xf32> {aten.binding = #output}) {
  %o, %l = aten._scaled_dot_product_flash_attention_for_cpu %q, %q, %q {is_causal = false, scale = 1.250000e-01 : f64} : (tensor<1x2x512x64xf32>, tensor<1x2x512x64xf32>, tensor<1x2x512x64xf32>) -> (tensor<1x2x512x64xf32>, tensor<1x2x512xf32>)
  return %o : tensor<1x2x512x64xf32>
}
// CHECK-LABEL: @evaluated
// CHECK-NOT:   aten.slice
// CHECK:       return
func.func private @evaluated(%q: tensor<1x2x512x64xf32> {aten.binding = #input}) -> (tensor<1x2x512x64xf32> {aten.binding = #output}) {
  %o, %l = aten._scaled_dot_product_flash_attention_for_cpu %q, %q, %q {is_causal = true, scale = 1.250000e-01 : f64} : (tensor<1x2x512x64xf32>, tensor<1x2x512x64xf32>, tensor<1x2x512x64xf32>) -> (tensor<1x2x512x64xf32>, tensor<1x2x512xf32>)
  return %o : tensor<1x2x512x64xf32>
}
