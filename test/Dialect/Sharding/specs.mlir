// Shardings of parameters, arguments, results and operations, read and written.
// RUN: accel-opt opt %s | accel-opt opt | FileCheck %s

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"cp" = 2>, #sharding.axis<"tp" = 4>]

// CHECK: sharding.param "w" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"base_model_tp_plan: colwise">>}
sharding.param "w" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"base_model_tp_plan: colwise">>}
// CHECK: sharding.param "both" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["cp", "tp"], [] because <"asked" at "job.yaml" : 3 : 5>>}
sharding.param "both" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["cp", "tp"], [] because <"asked" at "job.yaml" : 3 : 5>>}

// Each of three layers in one; half of each of two sequences' parts.
// CHECK: sharding.param "packed" : tensor<24x8xf32> init <zeros> {spec = #sharding.spec<[3, "tp"], []>}
sharding.param "packed" : tensor<24x8xf32> init <zeros> {spec = #sharding.spec<[3, "tp"], []>}
// CHECK: sharding.param "mirrored" : tensor<48x8xf32> init <zeros> {spec = #sharding.spec<[2 mirrored, "cp", 3, "tp"], []>}
sharding.param "mirrored" : tensor<48x8xf32> init <zeros> {spec = #sharding.spec<[2 mirrored, "cp", 3, "tp"], []>}
// CHECK: sharding.param "pieces" : tensor<48x8xf32> init <zeros> {spec = #sharding.spec<["cp", 2, "tp"], []>}
sharding.param "pieces" : tensor<48x8xf32> init <zeros> {spec = #sharding.spec<["cp", 2, "tp"], []>}

// An empty list of partial axes says nothing.
// CHECK: func.func private @F(%{{.*}}: tensor<8x16xf32> {sharding.spec = #sharding.spec<["cp"], []>},
// CHECK-SAME: %{{.*}}: tensor<16x8xf32> {sharding.param = "w", sharding.spec = #sharding.spec<["tp"], []>})
// CHECK-SAME: -> (tensor<8x16xf32> {sharding.spec = #sharding.spec<["cp"], ["tp"]>}, tensor<f32> {sharding.spec = #sharding.spec<partial ["cp", "tp"]>})
func.func private @F(%x: tensor<8x16xf32> {sharding.spec = #sharding.spec<["cp"], [] partial []>},
                     %w: tensor<16x8xf32> {sharding.param = "w", sharding.spec = #sharding.spec<["tp"], []>})
    -> (tensor<8x16xf32> {sharding.spec = #sharding.spec<["cp"], ["tp"]>},
        tensor<f32> {sharding.spec = #sharding.spec<partial ["cp", "tp"]>}) {
  // CHECK: aten.silu %{{.*}} {sharding.specs = [#sharding.spec<["cp"], []>]}
  %0 = aten.silu %x {sharding.specs = [#sharding.spec<["cp"], []>]} : tensor<8x16xf32>
  // CHECK: sharding.specs = [#sharding.spec<partial ["cp"] because <"flow">>]
  %1 = aten.sum.dim_IntList %0, [0, 1], false {sharding.specs = [#sharding.spec<partial ["cp"] because <"flow">>]} : (tensor<8x16xf32>) -> tensor<f32>
  return %0, %1 : tensor<8x16xf32>, tensor<f32>
}

// CHECK: sharding.graph @model(%x: tensor<8x16xf32>) attributes {sharding.arg_specs = [#sharding.spec<["cp"], []>]}
sharding.graph @model(%x: tensor<8x16xf32>) attributes {sharding.arg_specs = [#sharding.spec<["cp"], []>]} {
  // CHECK: sharding.call @F(%x) at "" {sharding.specs = [#sharding.spec<["cp"], ["tp"]>, #sharding.spec<>]}
  %0:2 = sharding.call @F(%x) at "" {sharding.specs = [#sharding.spec<["cp"], ["tp"]>, #sharding.spec<>]} : (tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<f32>)
  sharding.return %0#1 : tensor<f32>
}
