// RUN: accel-opt opt %s -split-input-file -verify-diagnostics

func.func @too_many(%x: tensor<16x8xf32>) {
  // expected-error @+2 {{cannot take 9 of 8 elements}}
  // expected-error @+1 {{failed to infer returned types}}
  %v, %i = aten.topk %x, 9, 1 : (tensor<16x8xf32>) -> (tensor<16x9xf32>, tensor<16x9xi64>)
  return
}

// -----

func.func @offsets(%x: tensor<32x16xf32>, %w: tensor<8x16x24xf32>, %ends: tensor<7xi32>) {
  // expected-error @+2 {{has 7 offsets for the matrices}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten._grouped_mm %x, %w, %ends : (tensor<32x16xf32>, tensor<8x16x24xf32>, tensor<7xi32>) -> tensor<32x24xf32>
  return
}

// -----

func.func @inner(%x: tensor<32x12xf32>, %w: tensor<8x16x24xf32>, %ends: tensor<8xi32>) {
  // expected-error @+2 {{cannot multiply 'tensor<32x12xf32>' and 'tensor<8x16x24xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten._grouped_mm %x, %w, %ends : (tensor<32x12xf32>, tensor<8x16x24xf32>, tensor<8xi32>) -> tensor<32x24xf32>
  return
}

// -----

func.func @types(%x: tensor<32x16xbf16>, %w: tensor<8x16x24xf32>, %ends: tensor<8xi32>) {
  // expected-error @+2 {{expects one element type}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten._grouped_mm %x, %w, %ends : (tensor<32x16xbf16>, tensor<8x16x24xf32>, tensor<8xi32>) -> tensor<32x24xbf16>
  return
}

// -----

func.func @rows(%x: tensor<32x16xf32>, %w: tensor<8x16x24xf32>, %ends: tensor<8xi32>) {
  // expected-error @+1 {{expects 33 rows in groups, of 32}}
  %y = aten._grouped_mm %x, %w, %ends rows 33 : (tensor<32x16xf32>, tensor<8x16x24xf32>, tensor<8xi32>) -> tensor<32x24xf32>
  return
}

// -----

func.func @zero(%x: tensor<32xi64>) {
  // expected-error @+1 {{divides by 0}}
  %0 = aten.floor_divide.Scalar %x, 0 : tensor<32xi64>
  return
}

// -----

func.func @ranges(%x: tensor<32xf32>) {
  // expected-error @+2 {{expects min <= max and at least one range}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = aten.histc %x, 0 [0 : 8] : (tensor<32xf32>) -> tensor<0xf32>
  return
}
