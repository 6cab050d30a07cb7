// RUN: accel-opt opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(decide-loss-chunks,apply-loss-chunks)'

// expected-error @+1 {{needs 'chunks', 1 or more}}
sharding.request "loss" {chunks = 0 : i64} because <"asked">
sharding.graph @model(%x: tensor<f32>) {
  sharding.return %x : tensor<f32>
}

// -----

// expected-error @+1 {{the loss is not what the graph's last call returns}}
sharding.request "loss" {chunks = 2 : i64} because <"asked">
sharding.graph @model(%x: tensor<f32>) {
  sharding.return %x : tensor<f32>
}

// -----

func.func private @Head(%x: tensor<2x5xf32>, %l: tensor<2xi64>) -> tensor<f32> {
  // expected-error @+1 {{reads logits that come from outside}}
  %0 = aten._log_softmax %x, 1 : tensor<2x5xf32>
  %1, %n = aten.nll_loss_forward %0, %l : (tensor<2x5xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>)
  return %1 : tensor<f32>
}
sharding.request "loss" {chunks = 2 : i64} because <"asked">
sharding.graph @model(%x: tensor<2x5xf32>, %l: tensor<2xi64>) {
  %0 = sharding.call @Head(%x, %l) at "" : (tensor<2x5xf32>, tensor<2xi64>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

func.func private @Head(%x: tensor<2x5xf32>, %w: tensor<5x5xf32>, %l: tensor<2xi64>) -> tensor<f32> {
  %0 = aten.mm %x, %w : (tensor<2x5xf32>, tensor<5x5xf32>) -> tensor<2x5xf32>
  %1 = aten._log_softmax %0, 1 : tensor<2x5xf32>
  // expected-error @+1 {{has 2 rows, which cannot be cut into 3 chunks}}
  %2, %n = aten.nll_loss_forward %1, %l : (tensor<2x5xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>)
  return %2 : tensor<f32>
}
sharding.request "loss" {chunks = 3 : i64} because <"asked">
sharding.graph @model(%x: tensor<2x5xf32>, %w: tensor<5x5xf32>, %l: tensor<2xi64>) {
  %0 = sharding.call @Head(%x, %w, %l) at "" : (tensor<2x5xf32>, tensor<5x5xf32>, tensor<2xi64>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{does not end in a mean cross-entropy}}
func.func private @Head(%x: tensor<2x5xf32>) -> tensor<f32> {
  %0 = aten.sum.dim_IntList %x, [0, 1], false : (tensor<2x5xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
sharding.request "loss" {chunks = 2 : i64} because <"asked">
sharding.graph @model(%x: tensor<2x5xf32>) {
  %0 = sharding.call @Head(%x) at "" : (tensor<2x5xf32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

func.func private @Head(%x: tensor<2x5xf32>, %w: tensor<5x5xf32>, %l: tensor<2xi64>) -> tensor<f32> {
  %0 = aten.mm %x, %w : (tensor<2x5xf32>, tensor<5x5xf32>) -> tensor<2x5xf32>
  // expected-error @+1 {{is not computed row by row}}
  %1 = aten.cat %0 dim 0 : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %2 = aten._log_softmax %1, 1 : tensor<2x5xf32>
  %3, %n = aten.nll_loss_forward %2, %l : (tensor<2x5xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>)
  return %3 : tensor<f32>
}
sharding.request "loss" {chunks = 2 : i64} because <"asked">
sharding.graph @model(%x: tensor<2x5xf32>, %w: tensor<5x5xf32>, %l: tensor<2xi64>) {
  %0 = sharding.call @Head(%x, %w, %l) at "" : (tensor<2x5xf32>, tensor<5x5xf32>, tensor<2xi64>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}
