// RUN: accel-opt opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(differentiate,partition)'

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has no aten.save; checkpoint decides before partition applies}}
  %0 = aten.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
