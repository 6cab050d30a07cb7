// RUN: accel-opt opt %s --split-input-file --verify-diagnostics --split-backward

sharding.graph @model(%x: tensor<f32>) attributes {sharding.split_backward} {
  sharding.return %x : tensor<f32>
}
// expected-error @+1 {{argument 0 has no aten.binding}}
func.func private @f.backward(%x: tensor<4xf32>) -> (tensor<4xf32> {aten.binding = #aten.binding<input_grad 0>}) {
  return %x : tensor<4xf32>
}

// -----

sharding.graph @model(%x: tensor<f32>) attributes {sharding.split_backward} {
  sharding.return %x : tensor<f32>
}
// expected-error @+1 {{result 0 has no aten.binding}}
func.func private @f.backward(%x: tensor<4xf32> {aten.binding = #aten.binding<tangent 0>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

sharding.graph @model(%x: tensor<f32>) attributes {sharding.split_backward} {
  sharding.return %x : tensor<f32>
}
// expected-error @+1 {{result 0 is saved already: it is split}}
func.func private @f.backward(%x: tensor<4xf32> {aten.binding = #aten.binding<tangent 0>}) -> (tensor<4xf32> {aten.binding = #aten.binding<saved 0>}) {
  return %x : tensor<4xf32>
}
