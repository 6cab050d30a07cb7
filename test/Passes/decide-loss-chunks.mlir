// RUN: accel-opt opt %s --decide-loss-chunks | FileCheck %s

// The call whose result is the loss gets the decision; nothing is cut yet.
// CHECK: aten._log_softmax %{{.*}}, 1 : tensor<8x5xf32>
func.func private @Head(%x: tensor<8x3xf32>, %l: tensor<8xi64>, %w: tensor<5x3xf32> {sharding.param = "w"}) -> tensor<f32> {
  %0 = aten.t %w : (tensor<5x3xf32>) -> tensor<3x5xf32>
  %1 = aten.mm %x, %0 : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
  %2 = aten._log_softmax %1, 1 : tensor<8x5xf32>
  %3, %n = aten.nll_loss_forward %2, %l : (tensor<8x5xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  return %3 : tensor<f32>
}
sharding.request "loss" {chunks = 4 : i64} because <"loss_chunks: 4" at "job.yaml" : 9 : 14>
sharding.param "w" : tensor<5x3xf32> init <ones>
// CHECK: sharding.call @Head({{.*}}) at "" {sharding.loss = #sharding.loss<4, because = <"loss_chunks: 4" at "job.yaml" : 9 : 14>>}
sharding.graph @model(%x: tensor<8x3xf32>, %l: tensor<8xi64>) {
  %0 = sharding.call @Head(%x, %l) at "" : (tensor<8x3xf32>, tensor<8xi64>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}
