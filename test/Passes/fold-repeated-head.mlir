// Under torch's autograd a rank that has one head of keys repeats it by a view,
// where several are copied; accel-run computes what the function says.
// RUN: accel-opt opt %s --fold-collectives | FileCheck %s
// RUN: sed '/sharding.job/d' %s | accel-opt opt --fold-collectives | FileCheck %s --check-prefix=OWN

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"tp" = 2>]
sharding.job "m" micro_batch 1 sequence_length 8 device "cpu" {framework = #sharding.framework<"fsdp2" torch "2.15" accelerate "1.15.0">}

// CHECK-LABEL: @one
// CHECK:       %[[E:.*]] = aten.expand
// CHECK-NEXT:  aten.view %[[E]], [2, 3, 8, 4]
// OWN-LABEL:   @one
// OWN:         aten.clone
func.func private @one(%x: tensor<2x1x8x4xf32>) -> tensor<2x3x8x4xf32> {
  %0 = aten.unsqueeze %x, 2 : (tensor<2x1x8x4xf32>) -> tensor<2x1x1x8x4xf32>
  %1 = aten.expand %0, [2, 1, 3, 8, 4] : (tensor<2x1x1x8x4xf32>) -> tensor<2x1x3x8x4xf32>
  %2 = aten.clone %1 : tensor<2x1x3x8x4xf32>
  %3 = aten.view %2, [2, 3, 8, 4] : (tensor<2x1x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %3 : tensor<2x3x8x4xf32>
}

// CHECK-LABEL: @two
// CHECK:       aten.clone
func.func private @two(%x: tensor<2x2x8x4xf32>) -> tensor<2x6x8x4xf32> {
  %0 = aten.unsqueeze %x, 2 : (tensor<2x2x8x4xf32>) -> tensor<2x2x1x8x4xf32>
  %1 = aten.expand %0, [2, 2, 3, 8, 4] : (tensor<2x2x1x8x4xf32>) -> tensor<2x2x3x8x4xf32>
  %2 = aten.clone %1 : tensor<2x2x3x8x4xf32>
  %3 = aten.view %2, [2, 6, 8, 4] : (tensor<2x2x3x8x4xf32>) -> tensor<2x6x8x4xf32>
  return %3 : tensor<2x6x8x4xf32>
}

// What else reads the copy may need it.
// CHECK-LABEL: @other
// CHECK:       aten.clone
func.func private @other(%x: tensor<2x1x8x4xf32>) -> tensor<6x8x4xf32> {
  %0 = aten.unsqueeze %x, 2 : (tensor<2x1x8x4xf32>) -> tensor<2x1x1x8x4xf32>
  %1 = aten.expand %0, [2, 1, 3, 8, 4] : (tensor<2x1x1x8x4xf32>) -> tensor<2x1x3x8x4xf32>
  %2 = aten.clone %1 : tensor<2x1x3x8x4xf32>
  %3 = aten.view %2, [6, 8, 4] : (tensor<2x1x3x8x4xf32>) -> tensor<6x8x4xf32>
  return %3 : tensor<6x8x4xf32>
}
