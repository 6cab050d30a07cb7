// RUN: accel-opt opt %s --apply-autocast | FileCheck %s
// RUN: sed 's/"nf4"/"gptq"/' %s | accel-opt opt --apply-autocast | FileCheck %s --check-prefix=GPTQ

// PEFT's adapter beside a linear layer takes its input in fp32, and the sum goes
// back to what the base's matmul returns: autocast decides that. A frozen
// weight is copied at each use.
// CHECK-LABEL: func.func private @Plain(
// CHECK: %[[FIRST:.*]] = aten._to_copy %arg1, bf16
// CHECK: aten.t %[[FIRST]]
// CHECK: %[[Y:.*]] = aten.mm %{{.*}} -> tensor<8x8xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = aten._to_copy %[[Y]], f32
// CHECK: aten._to_copy %[[WIDE]], bf16
// CHECK: aten._to_copy %arg1, bf16
// CHECK: %[[SUM:.*]] = aten.add.Tensor %[[Y]], %{{.*}} : (tensor<8x8xbf16>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: aten._to_copy %[[SUM]], bf16

// Beside a layer of bitsandbytes nothing is converted; beside GPTQ's it is.
// CHECK-LABEL: func.func private @Packed(
// CHECK: %[[X:.*]] = aten.mm
// CHECK-NOT: aten._to_copy %[[X]], f32
// CHECK: return
// GPTQ-LABEL: func.func private @Packed(
// GPTQ: %[[X:.*]] = aten.mm
// GPTQ: aten._to_copy %[[X]], f32

func.func private @Plain(%x: tensor<8x8xf32>, %w: tensor<8x8xf32> {sharding.param = "q.base_layer.weight"}, %a: tensor<8x8xf32> {sharding.param = "q.lora_A.default.weight"}, %m: tensor<8xf32> {sharding.param = "q.lora_magnitude_vector.default.weight"}) -> tensor<8x8xf32> {
  %1 = aten.t %w : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = aten.mm %x, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = aten.type_as %2, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = aten.t %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = aten.mm %3, %4 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = aten.t %w : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %7 = aten.mm %5, %6 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %8 = aten.mul.Tensor %m, %7 : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %9 = aten.add.Tensor %2, %8 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %10 = aten.type_as %9, %2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %10 : tensor<8x8xf32>
}
func.func private @Packed(%x: tensor<8x8xf32>, %w: tensor<8x8xf32> {sharding.param = "q.base_layer.weight", sharding.quantized = "nf4"}, %a: tensor<8x8xf32> {sharding.param = "q.lora_A.default.weight"}) -> tensor<f32> {
  %0 = aten.t %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = aten.mm %x, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = aten.type_as %1, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = aten.mm %2, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = aten.sum.dim_IntList %3, [0, 1], false : (tensor<8x8xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
sharding.job "tiny" micro_batch 1 sequence_length 8 device "cuda" {framework = #sharding.framework<"ddp" torch "2.15" accelerate "1.15.0">}
sharding.param "q.base_layer.weight" : tensor<8x8xf32> init <ones> frozen in "u"
sharding.param "q.lora_A.default.weight" : tensor<8x8xf32> init <ones> in "u"
sharding.param "q.lora_magnitude_vector.default.weight" : tensor<8xf32> init <ones> in "u"
sharding.unit "u" modules [""] shard [] replicate [] params ["q.base_layer.weight", "q.lora_A.default.weight", "q.lora_magnitude_vector.default.weight"] {
  wrap = #sharding.wrap<because = <"test">>,
  precision = #sharding.precision<storage = f32, compute = bf16, reduce = f32, output = f32 autocast true, because = <"mixed_precision: bf16">>}
sharding.graph @model(%x: tensor<8x8xf32>) {
  %0 = sharding.call @Plain(%x) at "" {unit = "u"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sharding.call @Packed(%0) at "" {unit = "u"} : (tensor<8x8xf32>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}
