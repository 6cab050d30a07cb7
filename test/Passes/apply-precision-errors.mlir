// RUN: accel-opt opt %s --split-input-file --verify-diagnostics --apply-precision

// expected-error @+1 {{apply-precision needs a sharding.graph, or the option compute}}
module {
}

// -----

func.func private @f(%x: tensor<3xf32>, %s: tensor<3xf32> {sharding.param = "s"}) -> tensor<f32> {
  %0 = aten.mul.Tensor %x, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = aten.sum.dim_IntList %0, [0], false : (tensor<3xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
sharding.param "s" : tensor<3xf32> init <ones>
sharding.graph @model(%x: tensor<3xf32>) {
  // expected-error @+1 {{reads 's', whose unit has no precision yet}}
  %0 = sharding.call @f(%x) at "" : (tensor<3xf32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}
