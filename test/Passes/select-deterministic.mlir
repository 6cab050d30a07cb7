// RUN: sed 's/DEVICE/cuda/; s/TRAINING/training = {deterministic = true}/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefixes=CHECK,SAME
// RUN: sed 's/DEVICE/cuda/; s/{TRAINING}//' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefixes=CHECK,ANY
// RUN: sed 's/DEVICE/cpu/; s/TRAINING/training = {deterministic = true}/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefixes=CHECK,ANY
// RUN: sed 's/DEVICE/cuda/; s/TRAINING/framework = #sharding.framework<"fsdp2" torch "2.15" accelerate "1.15.0">, training = {deterministic = true}/' %s | accel-opt opt --select-kernels | FileCheck %s --check-prefixes=CHECK,ANY

// Where a job asks for the same bits each time, CUDA counts the integers
// themselves and not their copies; CPUs have no kernel for them.
sharding.job "m" micro_batch 2 sequence_length 24 device "DEVICE" {TRAINING}

// CHECK-LABEL: @chosen
// SAME-NEXT: %[[COUNTS:.*]] = aten.histc %arg0, 8[0 : 8] : (tensor<32xi64>) -> tensor<8xi64>
// SAME-NEXT: %[[COPY:.*]] = aten._to_copy %[[COUNTS]], f32
// SAME-NEXT: return %[[COPY]]
// ANY-NEXT: %[[COPY:.*]] = aten._to_copy %arg0, f32
// ANY-NEXT: aten.histc %[[COPY]], 8[0 : 8] : (tensor<32xf32>) -> tensor<8xf32>
func.func @chosen(%ids: tensor<32xi64>) -> tensor<8xf32> {
  %0 = aten._to_copy %ids, f32 : (tensor<32xi64>) -> tensor<32xf32>
  %1 = aten.histc %0, 8 [0 : 8] : (tensor<32xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// A copy that is read elsewhere stays, and so do values that were no integers.
// CHECK-LABEL: @others
// CHECK: aten._to_copy %arg0, f32
// SAME: aten.histc %arg0
// CHECK: aten.histc %arg1, 8[0 : 8] : (tensor<32xf32>) -> tensor<8xf32>
func.func @others(%ids: tensor<32xi64>, %x: tensor<32xf32>) -> (tensor<32xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = aten._to_copy %ids, f32 : (tensor<32xi64>) -> tensor<32xf32>
  %1 = aten.histc %0, 8 [0 : 8] : (tensor<32xf32>) -> tensor<8xf32>
  %2 = aten.histc %x, 8 [0 : 8] : (tensor<32xf32>) -> tensor<8xf32>
  return %0, %1, %2 : tensor<32xf32>, tensor<8xf32>, tensor<8xf32>
}
