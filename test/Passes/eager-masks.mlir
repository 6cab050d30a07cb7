// RUN: accel-opt opt %s --split-input-file --pass-pipeline='builtin.module(select-kernels{device=cuda eager=true})' | FileCheck %s
// RUN: accel-opt opt %s --split-input-file --pass-pipeline='builtin.module(select-kernels{device=cuda})' | FileCheck %s --check-prefix=OWN

// Single matmuls take numbers, made once in the type of the layers' input: one
// mask of all keys and one of each window, also of one that hides nothing.
// Layers add them as they are.
// CHECK-LABEL: func.func private @Layer(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<2x24x4x16xf32>, %[[MASK:[a-z0-9]+]]: tensor<2x1x24x24xf32>
// CHECK-NOT:     aten.arange
// CHECK:         aten.add.Tensor %{{.*}}, %[[MASK]] : (tensor<2x4x24x24xf32>, tensor<2x1x24x24xf32>)
// CHECK:       sharding.graph
// CHECK:         %[[H:.*]] = sharding.call @Embedding
// CHECK-NEXT:    %[[FULL:.*]] = sharding.call @CausalMask(%[[H]]) at "model"
// CHECK-NEXT:    %[[LONG:.*]] = sharding.call @WindowMask.64(%[[H]]) at "model"
// CHECK-NEXT:    %[[A:.*]] = sharding.call @Layer(%[[H]], %[[FULL]])
// CHECK-NEXT:    %[[B:.*]] = sharding.call @Layer(%[[A]], %[[LONG]])
// CHECK-NEXT:    sharding.call @Layer(%[[B]], %[[FULL]])
// CHECK:       func.func private @CausalMask(%{{.*}}: tensor<2x24x4x16xf32>) -> tensor<2x1x24x24xf32>
// CHECK:         %[[SEEN:.*]] = aten.le.Tensor
// CHECK-NOT:     aten.gt.Tensor
// CHECK:         aten.expand {{.*}} [2, 1, 24, 24]
// CHECK:         aten.where.self
// CHECK:       func.func private @WindowMask.64
// CHECK:         aten.sub.Scalar %{{.*}}, 64
// CHECK:         aten.gt.Tensor
// CHECK:         aten.bitwise_and.Tensor
// OWN-LABEL: func.func private @Layer(
// OWN:         aten.arange
// OWN:         sharding.call @Layer(%{{[a-z0-9]+}}) at "model.layers.0"
func.func private @Embedding(%x: tensor<2x24x4x16xf32>) -> tensor<2x24x4x16xf32> {
  return %x : tensor<2x24x4x16xf32>
}
func.func private @Layer(%x: tensor<2x24x4x16xf32>) -> tensor<2x24x4x16xf32> {
  %q = aten.transpose.int %x, 1, 2 : (tensor<2x24x4x16xf32>) -> tensor<2x4x24x16xf32>
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, softcap = 5.0 : f64, by_parts} : (tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>) -> tensor<2x4x24x16xf32>
  %1 = aten.transpose.int %0, 1, 2 : (tensor<2x4x24x16xf32>) -> tensor<2x24x4x16xf32>
  return %1 : tensor<2x24x4x16xf32>
}
func.func private @Loss(tensor<2x24x4x16xf32>) -> tensor<f32>
sharding.graph @train(%x: tensor<2x24x4x16xf32>) {
  %0 = sharding.call @Embedding(%x) at "model.embed_tokens" : (tensor<2x24x4x16xf32>) -> tensor<2x24x4x16xf32>
  %1 = sharding.call @Layer(%0) at "model.layers.0" : (tensor<2x24x4x16xf32>) -> tensor<2x24x4x16xf32>
  %2 = sharding.call @Layer(%1) at "model.layers.1" {aten.whole_window = 64 : i64} : (tensor<2x24x4x16xf32>) -> tensor<2x24x4x16xf32>
  %3 = sharding.call @Layer(%2) at "model.layers.2" : (tensor<2x24x4x16xf32>) -> tensor<2x24x4x16xf32>
  %4 = sharding.call @Loss(%3) at "" : (tensor<2x24x4x16xf32>) -> tensor<f32>
  sharding.return %4 : tensor<f32>
}

// -----

// torch's attention takes truth values, one tensor for all samples, that each
// layer turns into numbers; where the order of tokens alone counts it is told
// that. The mask is made before the first layer, though that needs none.
// CHECK-LABEL: func.func private @Window(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<2x24x4x16xbf16>, %[[SEEN:[a-z0-9]+]]: tensor<1x1x24x24xi1>
// CHECK-NOT:     aten.arange
// CHECK:         %[[EACH:.*]] = aten.expand %[[SEEN]], [2, 1, 24, 24]
// CHECK:         aten.where.self %[[EACH]], {{.*}} -> tensor<2x1x24x24xbf16>
// CHECK:         aten._scaled_dot_product_efficient_attention {{.*}} mask {{.*}} {is_causal = false
// CHECK-LABEL: func.func private @Full(
// CHECK-SAME:    %{{[a-z0-9]+}}: tensor<2x24x4x16xbf16>) -> tensor<2x24x4x16xbf16>
// CHECK:         aten._scaled_dot_product_flash_attention {{.*}} {is_causal = true
// CHECK:       sharding.graph
// CHECK:         %[[MASK:.*]] = sharding.call @WindowMask.5(%[[X:.*]]) at "model"
// CHECK-NEXT:    %[[H:.*]] = sharding.call @Full(%[[X]])
// CHECK-NEXT:    %[[A:.*]] = sharding.call @Window(%[[H]], %[[MASK]])
// CHECK-NEXT:    sharding.call @Window(%[[A]], %[[MASK]])
// CHECK:       func.func private @WindowMask.5({{.*}} -> tensor<1x1x24x24xi1>
// CHECK-NOT:     aten.where.self
// OWN-LABEL: func.func private @Window(
// OWN:         aten._flash_attention_forward {{.*}} {before = 4
func.func private @Window(%x: tensor<2x24x4x16xbf16>) -> tensor<2x24x4x16xbf16> {
  %q = aten.transpose.int %x, 1, 2 : (tensor<2x24x4x16xbf16>) -> tensor<2x4x24x16xbf16>
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, window = 5 : i64} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>) -> tensor<2x4x24x16xbf16>
  %1 = aten.transpose.int %0, 1, 2 : (tensor<2x4x24x16xbf16>) -> tensor<2x24x4x16xbf16>
  return %1 : tensor<2x24x4x16xbf16>
}
func.func private @Full(%x: tensor<2x24x4x16xbf16>) -> tensor<2x24x4x16xbf16> {
  %q = aten.transpose.int %x, 1, 2 : (tensor<2x24x4x16xbf16>) -> tensor<2x4x24x16xbf16>
  %0 = aten.scaled_dot_product_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>) -> tensor<2x4x24x16xbf16>
  %1 = aten.transpose.int %0, 1, 2 : (tensor<2x4x24x16xbf16>) -> tensor<2x24x4x16xbf16>
  return %1 : tensor<2x24x4x16xbf16>
}
func.func private @Loss(tensor<2x24x4x16xbf16>) -> tensor<bf16>
sharding.graph @train(%x: tensor<2x24x4x16xbf16>) {
  %0 = sharding.call @Full(%x) at "model.layers.0" : (tensor<2x24x4x16xbf16>) -> tensor<2x24x4x16xbf16>
  %1 = sharding.call @Window(%0) at "model.layers.1" : (tensor<2x24x4x16xbf16>) -> tensor<2x24x4x16xbf16>
  %2 = sharding.call @Window(%1) at "model.layers.2" : (tensor<2x24x4x16xbf16>) -> tensor<2x24x4x16xbf16>
  %4 = sharding.call @Loss(%2) at "" : (tensor<2x24x4x16xbf16>) -> tensor<bf16>
  sharding.return %4 : tensor<bf16>
}
