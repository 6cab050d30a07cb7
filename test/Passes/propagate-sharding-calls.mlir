// Through calls: heads, sequences and vocabularies.
// RUN: accel-opt opt %s --propagate-sharding --split-input-file | FileCheck %s

// Heads are the outer factor of the columns; grouped keys have fewer.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.param "q" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"colwise">>}
sharding.param "k" : tensor<8x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"colwise">>}
// CHECK-LABEL: func.func private @attention(
// CHECK-SAME:  -> (tensor<1x4x6x4xf32> {sharding.spec = #sharding.spec<[], ["tp"], [], []>})
// CHECK:       aten.view %{{.*}}, [1, 6, 4, 4] {sharding.specs = [#sharding.spec<[], [], ["tp"], []>]}
// CHECK:       aten.view %{{.*}}, [1, 6, 2, 4] {sharding.specs = [#sharding.spec<[], [], ["tp"], []>]}
// CHECK:       aten.scaled_dot_product_attention {{.*}}sharding.specs = [#sharding.spec<[], ["tp"], [], []>]
func.func private @attention(%x: tensor<6x8xf32>, %q: tensor<16x8xf32> {sharding.param = "q"}, %k: tensor<8x8xf32> {sharding.param = "k"}) -> tensor<1x4x6x4xf32> {
  %0 = aten.t %q : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %1 = aten.mm %x, %0 : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %2 = aten.view %1, [1, 6, 4, 4] : (tensor<6x16xf32>) -> tensor<1x6x4x4xf32>
  %3 = aten.transpose.int %2, 1, 2 : (tensor<1x6x4x4xf32>) -> tensor<1x4x6x4xf32>
  %4 = aten.t %k : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = aten.mm %x, %4 : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %6 = aten.view %5, [1, 6, 2, 4] : (tensor<6x8xf32>) -> tensor<1x6x2x4xf32>
  %7 = aten.transpose.int %6, 1, 2 : (tensor<1x6x2x4xf32>) -> tensor<1x2x6x4xf32>
  %8 = aten.scaled_dot_product_attention %3, %7, %7 {is_causal = true, scale = 0.5 : f64} : (tensor<1x4x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>) -> tensor<1x4x6x4xf32>
  return %8 : tensor<1x4x6x4xf32>
}
func.func private @loss(%x: tensor<1x4x6x4xf32>) -> tensor<f32> {
  // CHECK: aten.sum.dim_IntList %{{.*}} {sharding.specs = [#sharding.spec<partial ["tp"]>]}
  %0 = aten.sum.dim_IntList %x, [0, 1, 2, 3], false : (tensor<1x4x6x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// CHECK: sharding.call @attention(%x) at "" {sharding.specs = [#sharding.spec<[], ["tp"], [], []>]}
sharding.graph @model(%x: tensor<6x8xf32>) {
  %0 = sharding.call @attention(%x) at "" : (tensor<6x8xf32>) -> tensor<1x4x6x4xf32>
  %1 = sharding.call @loss(%0) at "" : (tensor<1x4x6x4xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}

// -----

// A vocabulary over tp and a sequence over cp: rows of the table that a rank
// does not have are zeros in a sum, and the loss sums both.
sharding.mesh @mesh [#sharding.axis<"cp" = 2>, #sharding.axis<"tp" = 2>]
sharding.param "table" : tensor<32x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"embedding_rowwise">>}
// CHECK-LABEL: func.func private @head(
// CHECK-SAME:  %{{.*}}: tensor<6xi64> {sharding.spec = #sharding.spec<["cp"]>}
func.func private @head(%ids: tensor<6xi64>, %labels: tensor<6xi64>, %table: tensor<32x8xf32> {sharding.param = "table"}) -> tensor<f32> {
  // CHECK: aten.embedding %{{.*}} {sharding.specs = [#sharding.spec<["cp"], [] partial ["tp"]>]}
  %0 = aten.embedding %table, %ids : (tensor<32x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
  %1 = aten.t %table : (tensor<32x8xf32>) -> tensor<8x32xf32>
  // CHECK: aten.mm %{{.*}} {sharding.specs = [#sharding.spec<["cp"], ["tp"]>]}
  %2 = aten.mm %0, %1 : (tensor<6x8xf32>, tensor<8x32xf32>) -> tensor<6x32xf32>
  // CHECK: aten._log_softmax %{{.*}} {sharding.specs = [#sharding.spec<["cp"], ["tp"]>]}
  %3 = aten._log_softmax %2, 1 : tensor<6x32xf32>
  // CHECK: aten.nll_loss_forward %{{.*}} {sharding.specs = [#sharding.spec<partial ["cp", "tp"]>, #sharding.spec<partial ["cp"]>]}
  %4, %5 = aten.nll_loss_forward %3, %labels : (tensor<6x32xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<f32>)
  return %4 : tensor<f32>
}
sharding.graph @model(%ids: tensor<6xi64>, %labels: tensor<6xi64>) attributes {sharding.arg_specs = [#sharding.spec<["cp"]>, #sharding.spec<["cp"]>]} {
  %0 = sharding.call @head(%ids, %labels) at "" : (tensor<6xi64>, tensor<6xi64>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// A user's word on an operation counts, sequence parallelism here.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
// CHECK-LABEL: func.func private @norm(
func.func private @norm(%x: tensor<6x8xf32>, %w: tensor<8xf32> {sharding.param = "w"}) -> tensor<f32> {
  // CHECK: aten.neg %{{.*}} {sharding.specs = [#sharding.spec<["tp"], [] because <"sequence parallelism" at "job.yaml" : 1 : 1>>]}
  %0 = aten.neg %x {sharding.specs = [#sharding.spec<["tp"], [] because <"sequence parallelism" at "job.yaml" : 1 : 1>>]} : tensor<6x8xf32>
  // CHECK: aten.rms_norm %{{.*}} sharding.specs = [#sharding.spec<["tp"], []>]
  %1 = aten.rms_norm %0, %w {eps = 1.0e-06 : f64} : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  %2 = aten.sum.dim_IntList %1, [0, 1], false : (tensor<6x8xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
sharding.param "w" : tensor<8xf32> init <zeros>
sharding.graph @model(%x: tensor<6x8xf32>) {
  %0 = sharding.call @norm(%x) at "" : (tensor<6x8xf32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// A parameter's gradient may leave as a sum over what its unit reduces; the
// gradient of an input is summed where it is made.
sharding.mesh @mesh [#sharding.axis<"cp" = 2>]
sharding.param "w" : tensor<8xf32> init <zeros>
func.func private @scale(%x: tensor<6x8xf32>, %w: tensor<8xf32> {sharding.param = "w"}) -> tensor<6x8xf32> {
  %0 = aten.mul.Tensor %x, %w : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}
func.func private @loss(%x: tensor<6x8xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<6x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// CHECK-LABEL: func.func private @scale.backward(
// CHECK-SAME:  -> (tensor<6x8xf32> {aten.binding = #aten.binding<input_grad 0>, sharding.spec = #sharding.spec<["cp"], []>}, tensor<8xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "w", sharding.spec = #sharding.spec<[] partial ["cp"]>})
func.func private @scale.backward(%x: tensor<6x8xf32> {aten.binding = #aten.binding<input 0>},
                                  %w: tensor<8xf32> {aten.binding = #aten.binding<param 0>, sharding.param = "w"},
                                  %g: tensor<6x8xf32> {aten.binding = #aten.binding<tangent 0>})
    -> (tensor<6x8xf32> {aten.binding = #aten.binding<input_grad 0>}, tensor<8xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "w"}) {
  %0 = aten.mul.Tensor %g, %w : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  %1 = aten.mul.Tensor %g, %x : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %2 = aten.sum.dim_IntList %1, [0], false : (tensor<6x8xf32>) -> tensor<8xf32>
  return %0, %2 : tensor<6x8xf32>, tensor<8xf32>
}
sharding.graph @model(%x: tensor<6x8xf32>) attributes {sharding.arg_specs = [#sharding.spec<["cp"], []>]} {
  %0 = sharding.call @scale(%x) at "" : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %1 = sharding.call @loss(%0) at "" : (tensor<6x8xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}

// -----

// What a forward saves is sharded so where its backward reads it.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.param "w" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"colwise">>}
func.func private @up(%x: tensor<6x8xf32>, %w: tensor<16x8xf32> {sharding.param = "w"}) -> tensor<f32> {
  %0 = aten.t %w : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %1 = aten.mm %x, %0 : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %2 = aten.sum.dim_IntList %1, [0, 1], false : (tensor<6x16xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
func.func private @up.forward(%x: tensor<6x8xf32> {aten.binding = #aten.binding<input 0>}, %w: tensor<16x8xf32> {aten.binding = #aten.binding<param 0>, sharding.param = "w"})
    -> (tensor<f32> {aten.binding = #aten.binding<output 0>}, tensor<6x16xf32> {aten.binding = #aten.binding<saved 0>}) {
  %0 = aten.t %w : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %1 = aten.mm %x, %0 : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %2 = aten.sum.dim_IntList %1, [0, 1], false : (tensor<6x16xf32>) -> tensor<f32>
  return %2, %1 : tensor<f32>, tensor<6x16xf32>
}
// CHECK-LABEL: func.func private @up.backward(
// CHECK-SAME:  %{{.*}}: tensor<6x16xf32> {aten.binding = #aten.binding<saved 0>, sharding.spec = #sharding.spec<[], ["tp"]>}
func.func private @up.backward(%s: tensor<6x16xf32> {aten.binding = #aten.binding<saved 0>}) -> (tensor<6x16xf32> {aten.binding = #aten.binding<input_grad 0>}) {
  %0 = aten.neg %s : tensor<6x16xf32>
  return %0 : tensor<6x16xf32>
}
sharding.graph @model(%x: tensor<6x8xf32>) {
  %0 = sharding.call @up(%x) at "" : (tensor<6x8xf32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// A tied weight is one parameter under each of its names; an argument that was
// decided to be whole is.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.param "embed.weight" : tensor<16x8xf32> init <zeros> aliases ["head.weight"] {spec = #sharding.spec<["tp"], [] because <"embedding_rowwise">>}
func.func private @embed(%ids: tensor<6xi64>, %w: tensor<16x8xf32> {sharding.param = "weight"}) -> tensor<6x8xf32> {
  %0 = aten.embedding %w, %ids : (tensor<16x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}
// CHECK-LABEL: func.func private @head(
// CHECK-SAME:  sharding.param = "weight", sharding.spec = #sharding.spec<["tp"], []>
func.func private @head(%x: tensor<6x8xf32>, %w: tensor<16x8xf32> {sharding.param = "weight"}) -> tensor<6x16xf32> {
  %0 = aten.t %w : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %1 = aten.mm %x, %0 : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  return %1 : tensor<6x16xf32>
}
// CHECK-LABEL: func.func private @loss(
// CHECK-SAME:  %{{.*}}: tensor<6x16xf32> {sharding.spec = #sharding.spec<[], [] because <"asked" at "job.yaml" : 1 : 1>>}) -> tensor<f32> {
// CHECK-NOT:   sharding.specs
// CHECK:       return
func.func private @loss(%x: tensor<6x16xf32> {sharding.spec = #sharding.spec<[], [] because <"asked" at "job.yaml" : 1 : 1>>}) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<6x16xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
sharding.graph @model(%ids: tensor<6xi64>) {
  %0 = sharding.call @embed(%ids) at "embed" : (tensor<6xi64>) -> tensor<6x8xf32>
  %1 = sharding.call @head(%0) at "head" : (tensor<6x8xf32>) -> tensor<6x16xf32>
  %2 = sharding.call @loss(%1) at "" : (tensor<6x16xf32>) -> tensor<f32>
  sharding.return %2 : tensor<f32>
}

// -----

// The gradient of rows that read a whole input is as the rows are: each rank
// reads its part of the input. The view and the cast behind the matmul follow.
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.param "w" : tensor<4x8xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"rowwise_split_input">>}
func.func private @rows(%x: tensor<6x8xf32>, %w: tensor<4x8xf32> {sharding.param = "w"}) -> tensor<f32> {
  %0 = aten.t %w : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = aten.mm %x, %0 : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %2 = aten.sum.dim_IntList %1, [0, 1], false : (tensor<6x4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
// CHECK-LABEL: func.func private @rows.backward(
// CHECK-SAME:  -> (tensor<4x8xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "w", sharding.spec = #sharding.spec<[], ["tp"]>})
// CHECK:       aten.mm %{{.*}} {sharding.specs = [#sharding.spec<["tp"], []>]} : {{.*}} -> tensor<8x4xbf16>
// CHECK:       aten.t %{{.*}} {sharding.specs = [#sharding.spec<[], ["tp"]>]}
// CHECK:       aten._to_copy %{{.*}}, f32 {sharding.specs = [#sharding.spec<[], ["tp"]>]}
func.func private @rows.backward(%x: tensor<8x6xbf16>, %g: tensor<6x4xbf16>)
    -> (tensor<4x8xf32> {aten.binding = #aten.binding<param_grad 0>, sharding.param = "w"}) {
  %0 = aten.mm %x, %g : (tensor<8x6xbf16>, tensor<6x4xbf16>) -> tensor<8x4xbf16>
  %1 = aten.t %0 : (tensor<8x4xbf16>) -> tensor<4x8xbf16>
  %2 = aten._to_copy %1, f32 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
sharding.graph @model(%x: tensor<6x8xf32>) {
  %0 = sharding.call @rows(%x) at "" : (tensor<6x8xf32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}
