// What the rule saves is [B, M] in fp32; with casts it has matmuls' operands in
// 16 bits, which are more where chunks are many.
// RUN: accel-opt opt %s | FileCheck %s
// CHECK: aten.gated_delta_rule {{.*}} -> (tensor<1x64x32xf32>, tensor<1x106244xf32>)
// CHECK: aten.gated_delta_rule {{.*}} {cast = true, {{.*}} -> (tensor<2x130x32xbf16>, tensor<2x246172xf32>)
func.func @rule(%x: tensor<1x64x64xf32>, %g: tensor<1x64x4xf32>) {
  %0:2 = aten.gated_delta_rule %x, %g, %g {cast = false, key_dim = 8 : i64, key_heads = 2 : i64} : (tensor<1x64x64xf32>, tensor<1x64x4xf32>, tensor<1x64x4xf32>) -> (tensor<1x64x32xf32>, tensor<1x106244xf32>)
  return
}

func.func @padded(%x: tensor<2x130x64xbf16>, %g: tensor<2x130x4xf32>, %b: tensor<2x130x4xbf16>) {
  %0:2 = aten.gated_delta_rule %x, %g, %b {cast = true, key_dim = 8 : i64, key_heads = 2 : i64} : (tensor<2x130x64xbf16>, tensor<2x130x4xf32>, tensor<2x130x4xbf16>) -> (tensor<2x130x32xbf16>, tensor<2x246172xf32>)
  return
}
