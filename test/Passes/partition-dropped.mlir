// Attention whose kernel drops weights, on a rank's heads: the rank draws by its
// place along the axes that shard them, and a backward as its forward.
// RUN: accel-opt opt %s --partition-sharding | FileCheck %s

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"tp" = 2>]

// CHECK-LABEL: func.func private @heads(
// CHECK:       aten.dropped_flash_attention %arg0, %arg1, %arg1 {aten.own_key = ["tp"], dropout_key = 3 : i64
// CHECK-SAME:  (tensor<2x2x24x16xbf16>, tensor<2x1x24x16xbf16>, tensor<2x1x24x16xbf16>) -> (tensor<2x2x24x16xbf16>, tensor<2x2x24xf32>)
// CHECK:       aten.dropped_flash_attention_backward %arg2, %arg0, %arg1, %arg1, %{{.*}}, %{{.*}} {aten.own_key = ["tp"], dropout_key = 3 : i64
// CHECK-NOT:   sharding.all_
// CHECK:       return {{.*}} : tensor<2x2x24x16xbf16>, tensor<2x1x24x16xbf16>
func.func private @heads(%q: tensor<2x4x24x16xbf16> {sharding.spec = #sharding.spec<[], ["tp"], [], []>}, %k: tensor<2x2x24x16xbf16> {sharding.spec = #sharding.spec<[], ["tp"], [], []>}, %g: tensor<2x4x24x16xbf16> {sharding.spec = #sharding.spec<[], ["tp"], [], []>})
    -> (tensor<2x4x24x16xbf16> {sharding.spec = #sharding.spec<[], ["tp"], [], []>}, tensor<2x2x24x16xbf16> {sharding.spec = #sharding.spec<[], ["tp"], [], []>}) {
  %0, %1 = aten.dropped_flash_attention %q, %k, %k {is_causal = true, scale = 2.5e-01 : f64, dropout_p = 1.0e-01 : f64, dropout_key = 3 : i64, sharding.specs = [#sharding.spec<[], ["tp"], [], []>, #sharding.spec<[], ["tp"], []>]} : (tensor<2x4x24x16xbf16>, tensor<2x2x24x16xbf16>, tensor<2x2x24x16xbf16>) -> (tensor<2x4x24x16xbf16>, tensor<2x4x24xf32>)
  %2, %3, %4 = aten.dropped_flash_attention_backward %g, %q, %k, %k, %0, %1 {is_causal = true, scale = 2.5e-01 : f64, dropout_p = 1.0e-01 : f64, dropout_key = 3 : i64, sharding.specs = [#sharding.spec<[], ["tp"], [], []>, #sharding.spec<[], ["tp"], [], []>, #sharding.spec<[], ["tp"], [], []>]} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x2x24x16xbf16>, tensor<2x2x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24xf32>) -> (tensor<2x4x24x16xbf16>, tensor<2x2x24x16xbf16>, tensor<2x2x24x16xbf16>)
  return %2, %3 : tensor<2x4x24x16xbf16>, tensor<2x2x24x16xbf16>
}

// Ranks that all have the same heads draw alike.
// CHECK-LABEL: func.func private @whole(
// CHECK-NOT:   own_key
// CHECK:       aten.dropped_efficient_attention %arg0, %arg0, %arg0 {dropout_key = 0 : i64
// CHECK:       return
func.func private @whole(%q: tensor<2x4x24x16xf32>) -> tensor<2x4x24x16xf32> {
  %0, %1 = aten.dropped_efficient_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, dropout_p = 1.0e-01 : f64, dropout_key = 0 : i64} : (tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>) -> (tensor<2x4x24x16xf32>, tensor<2x4x32xf32>)
  return %0 : tensor<2x4x24x16xf32>
}

// Tokens that are shards are gathered: a kernel numbers those of its call.
// CHECK-LABEL: func.func private @tokens(
// CHECK:       sharding.all_gather
// CHECK:       aten.dropped_flash_attention
// CHECK-SAME:  {dropout_key = 1 : i64
// CHECK-SAME:  -> (tensor<2x4x24x16xbf16>, tensor<2x4x24xf32>)
func.func private @tokens(%q: tensor<2x4x24x16xbf16> {sharding.spec = #sharding.spec<[], [], ["tp"], []>}) -> tensor<2x4x24x16xbf16> {
  %0, %1 = aten.dropped_flash_attention %q, %q, %q {is_causal = true, scale = 2.5e-01 : f64, dropout_p = 1.0e-01 : f64, dropout_key = 1 : i64} : (tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>, tensor<2x4x24x16xbf16>) -> (tensor<2x4x24x16xbf16>, tensor<2x4x24xf32>)
  return %0 : tensor<2x4x24x16xbf16>
}
