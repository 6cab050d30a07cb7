// RUN: accel-opt opt %s --split-input-file --verify-diagnostics --separate-eval

func.func private @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{the other one}}
  %0 = aten.dropout %x, 1.0e-01 key 2 : tensor<4xf32>
  // expected-error @+1 {{has the key 2 of another random operation of the function, so both would draw the same numbers}}
  %1 = aten.dropout %0, 1.0e-01 key 2 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func private @likely(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{drops with a probability between 0 and 1, not 1.5}}
  %0 = aten.dropout %x, 1.5 key 0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @keyless(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{needs a key of 0 or more, not -1}}
  %0 = aten.dropout %x, 0.5 key -1 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
