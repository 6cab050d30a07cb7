// RUN: accel-opt opt %s --insert-frees --verify-schedule | FileCheck %s
// RUN: accel-opt opt %s --insert-frees | accel-opt opt --insert-frees --verify-schedule | FileCheck %s

// Old frees and wrong peaks are replaced. A call that returns its input cannot
// drop it, and what nobody reads goes after the call that makes it.
sharding.job "edited" micro_batch 1 sequence_length 4 device "cpu"

func.func private @square(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = aten.mul.Tensor %x, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = aten.add.Tensor %0, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %1, %0 : tensor<64xf32>, tensor<64xf32>
}
func.func private @same(%x: tensor<64xf32>) -> tensor<64xf32> {
  return %x : tensor<64xf32>
}

// CHECK-LABEL: schedule.program @train
// CHECK:       persistent 128 peak 1408 at 1
// CHECK-NEXT:  %[[A:.*]]:2 = schedule.call @square(%{{.*}}) peak 512 own_peak 512
// CHECK-NEXT:  %[[B:.*]]:2 = schedule.call @square(%[[A]]#0) consumes [0] peak 512 own_peak 512
// CHECK-NEXT:  schedule.free %[[B]]#1
// CHECK-NEXT:  %[[C:.*]] = schedule.call @same(%[[A]]#1) peak 0 own_peak 0
// CHECK-NEXT:  schedule.free %[[A]]#1, %[[C]]
// CHECK-NEXT:  schedule.call @square(%[[B]]#0) consumes [0]
// CHECK-NEXT:  schedule.free %{{.*}}#0, %{{.*}}#1
// CHECK-NEXT:  schedule.return
schedule.program @train inputs(%x as "x": !schedule.buffer<256, tensor<64xf32>>)
    persistent 128 peak 99968 at 0 {
  %0:2 = schedule.call @square(%x) peak 64 own_peak 0 : (!schedule.buffer<256, tensor<64xf32>>) -> (!schedule.buffer<256, tensor<64xf32>>, !schedule.buffer<256, tensor<64xf32>>) names ["a", "b"]
  %1:2 = schedule.call @square(%0#0) peak 64 own_peak 0 : (!schedule.buffer<256, tensor<64xf32>>) -> (!schedule.buffer<256, tensor<64xf32>>, !schedule.buffer<256, tensor<64xf32>>) names ["c", "d"]
  schedule.free %0#0 : !schedule.buffer<256, tensor<64xf32>>
  %2 = schedule.call @same(%0#1) consumes [0] peak 64 own_peak 0 : (!schedule.buffer<256, tensor<64xf32>>) -> !schedule.buffer<0, tensor<64xf32>> names ["e"] aliases [0]
  %3:2 = schedule.call @square(%1#0) peak 64 own_peak 0 : (!schedule.buffer<256, tensor<64xf32>>) -> (!schedule.buffer<256, tensor<64xf32>>, !schedule.buffer<256, tensor<64xf32>>) names ["f", "g"]
  schedule.free %1#0, %1#1, %2, %3#0, %3#1 : !schedule.buffer<256, tensor<64xf32>>, !schedule.buffer<256, tensor<64xf32>>, !schedule.buffer<0, tensor<64xf32>>, !schedule.buffer<256, tensor<64xf32>>, !schedule.buffer<256, tensor<64xf32>>
}
