// RUN: accel-opt opt %s --apply-autocast | FileCheck %s
// RUN: sed 's/device "cuda"/device "cpu"/' %s | accel-opt opt - --apply-autocast | FileCheck %s --check-prefix=CPU

// log_softmax is of autocast's fp32 list, but torch's cross_entropy asks for the
// type of its input; what it makes is widened for nll_loss. CPUs take all of
// cross_entropy in fp32.
// CHECK-LABEL: func.func private @Head(
// CHECK:       %[[Y:.*]] = aten.mm {{.*}} -> tensor<4x5xf16>
// CHECK-NEXT:  %[[LOGS:.*]] = aten._log_softmax %[[Y]], 1 {aten.own_type} : tensor<4x5xf16>
// CHECK-NEXT:  %[[WIDE:.*]] = aten._to_copy %[[LOGS]], f32
// CHECK-NEXT:  aten.nll_loss_forward %[[WIDE]]
// CHECK-LABEL: func.func private @Asked(
// CHECK:       %[[Y:.*]] = aten.mm {{.*}} -> tensor<4x5xf16>
// CHECK-NEXT:  %[[WIDE:.*]] = aten._to_copy %[[Y]], f32
// CHECK-NEXT:  %[[LOGS:.*]] = aten._log_softmax %[[WIDE]], 1 : tensor<4x5xf32>
// CHECK-NEXT:  aten.nll_loss_forward %[[LOGS]]

// CPU-LABEL:   func.func private @Head(
// CPU:         %[[Y:.*]] = aten.mm {{.*}} -> tensor<4x5xf16>
// CPU-NEXT:    %[[WIDE:.*]] = aten._to_copy %[[Y]], f32
// CPU-NEXT:    %[[LOGS:.*]] = aten._log_softmax %[[WIDE]], 1 {aten.own_type} : tensor<4x5xf32>
// CPU-NEXT:    aten.nll_loss_forward %[[LOGS]]
func.func private @Head(%x: tensor<4x3xf32>, %labels: tensor<4xi64>, %w: tensor<3x5xf32> {sharding.param = "w"}) -> tensor<f32> {
  %0 = aten.mm %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %1 = aten._log_softmax %0, 1 {aten.own_type} : tensor<4x5xf32>
  %2:2 = aten.nll_loss_forward %1, %labels : (tensor<4x5xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  return %2#0 : tensor<f32>
}
func.func private @Asked(%x: tensor<4x3xf32>, %labels: tensor<4xi64>, %w: tensor<3x5xf32> {sharding.param = "w"}) -> tensor<f32> {
  %0 = aten.mm %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %1 = aten._log_softmax %0, 1 : tensor<4x5xf32>
  %2:2 = aten.nll_loss_forward %1, %labels : (tensor<4x5xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  return %2#0 : tensor<f32>
}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "cuda" {framework = #sharding.framework<"ddp" torch "2.15" accelerate "1.15.0">}
sharding.param "w" : tensor<3x5xf32> init <ones> in "u"
sharding.unit "u" modules [""] shard [] replicate [] params ["w"] {
  wrap = #sharding.wrap<because = <"test">>,
  precision = #sharding.precision<storage = f32, compute = f16, reduce = f32, output = f32 autocast true, because = <"mixed_precision: fp16">>}
sharding.graph @model(%x: tensor<4x3xf32>, %labels: tensor<4xi64>) {
  %0 = sharding.call @Head(%x, %labels) at "" {unit = "u"} : (tensor<4x3xf32>, tensor<4xi64>) -> tensor<f32>
  %1 = sharding.call @Asked(%x, %labels) at "" {unit = "u"} : (tensor<4x3xf32>, tensor<4xi64>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}
