// RUN: accel-opt opt %s --offload-activations --insert-frees --verify-schedule | FileCheck %s
// RUN: accel-opt opt %s --offload-activations --insert-frees | accel-opt opt --insert-frees --verify-schedule | FileCheck %s

// What the first two calls make is away while the third one and the loss run,
// and comes back beside the call before the one that reads it. Two values on
// one storage are copied once. What is made shortly before the loss stays.
sharding.job "edited" micro_batch 1 sequence_length 4 device "cuda" {offload = #sharding.offload<parameters = false, optimizer = false, activations = true, because = <"test">>}

func.func private @twice(%x: tensor<512xf32>) -> (tensor<512xf32>, tensor<512xf32>) {
  %0 = aten.mul.Tensor %x, %x : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xf32>
  return %0, %0 : tensor<512xf32>, tensor<512xf32>
}
func.func private @loss(%x: tensor<512xf32>) -> tensor<f32> {
  %0 = aten.mean.dim %x, [0], false : (tensor<512xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @back(%x: tensor<512xf32>, %y: tensor<512xf32>) -> tensor<512xf32> {
  %0 = aten.mul.Tensor %x, %y : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}

// CHECK-LABEL: schedule.program @train
// CHECK:       %[[A:.*]]:2 = schedule.call @twice(%{{.*}})
// CHECK-NEXT:  %[[B:.*]]:2 = schedule.call @twice(%[[A]]#0)
// CHECK-NEXT:  %[[SA:.*]] = schedule.save_start %[[A]]#0, %[[A]]#1 on host_out : !schedule.buffer<2048, tensor<512xf32>>, !schedule.buffer<0, tensor<512xf32>> -> <2048, 0>
// CHECK-NEXT:  %[[C:.*]]:2 = schedule.call @twice(%[[B]]#0)
// CHECK-NEXT:  schedule.free %[[C]]#1
// CHECK-NEXT:  schedule.await_send %[[SA]] of %[[A]]#0, %[[A]]#1
// CHECK-NEXT:  schedule.free %[[A]]#0, %[[A]]#1
// CHECK-NEXT:  %[[LOSS:.*]] = schedule.call @loss(%[[C]]#0)
// CHECK-NEXT:  %[[D:.*]] = schedule.call @back(%[[C]]#0, %[[B]]#0)
// CHECK-NEXT:  %[[FA:.*]] = schedule.fetch_start %[[SA]] on host_in : <2048, 0> -> <2048, 0>
// CHECK-NEXT:  %[[E:.*]] = schedule.call @back(%[[D]], %[[B]]#1)
// CHECK:       %[[R:.*]]:2 = schedule.await_fetch %[[FA]] : <2048, 0> -> !schedule.buffer<2048, tensor<512xf32>>, !schedule.buffer<0, tensor<512xf32>>
// CHECK-NEXT:  schedule.call @back(%[[R]]#0, %[[R]]#1) consumes [0, 1]
schedule.program @train inputs(%x as "x": !schedule.buffer<2048, tensor<512xf32>>)
    persistent 128 peak 99968 at 0 {
  %a:2 = schedule.call @twice(%x) peak 64 own_peak 0 : (!schedule.buffer<2048, tensor<512xf32>>) -> (!schedule.buffer<2048, tensor<512xf32>>, !schedule.buffer<0, tensor<512xf32>>) names ["a", "b"] aliases [-1, 1]
  %b:2 = schedule.call @twice(%a#0) peak 64 own_peak 0 : (!schedule.buffer<2048, tensor<512xf32>>) -> (!schedule.buffer<2048, tensor<512xf32>>, !schedule.buffer<0, tensor<512xf32>>) names ["c", "d"] aliases [-1, 1]
  %c:2 = schedule.call @twice(%b#0) peak 64 own_peak 0 : (!schedule.buffer<2048, tensor<512xf32>>) -> (!schedule.buffer<2048, tensor<512xf32>>, !schedule.buffer<0, tensor<512xf32>>) names ["e", "f"] aliases [-1, 1]
  %loss = schedule.call @loss(%c#0) peak 64 own_peak 0 : (!schedule.buffer<2048, tensor<512xf32>>) -> !schedule.buffer<64, tensor<f32>> names ["loss"]
  %d = schedule.call @back(%c#0, %b#0) peak 64 own_peak 0 : (!schedule.buffer<2048, tensor<512xf32>>, !schedule.buffer<2048, tensor<512xf32>>) -> !schedule.buffer<2048, tensor<512xf32>> names ["g"]
  %e = schedule.call @back(%d, %b#1) peak 64 own_peak 0 : (!schedule.buffer<2048, tensor<512xf32>>, !schedule.buffer<0, tensor<512xf32>>) -> !schedule.buffer<2048, tensor<512xf32>> names ["h"]
  %f = schedule.call @back(%a#0, %a#1) peak 64 own_peak 0 : (!schedule.buffer<2048, tensor<512xf32>>, !schedule.buffer<0, tensor<512xf32>>) -> !schedule.buffer<2048, tensor<512xf32>> names ["i"]
  schedule.return loss(%loss : !schedule.buffer<64, tensor<f32>>)
}
