// Collectives of functions on one rank's parts.
// RUN: accel-opt opt %s | accel-opt opt | FileCheck %s

sharding.mesh @mesh [#sharding.axis<"cp" = 2>, #sharding.axis<"tp" = 4>]

// CHECK-LABEL: @exchange
func.func private @exchange(%x: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  // CHECK: sharding.all_reduce %{{.*}} over ["cp", "tp"] : tensor<8x16xf32>
  %0 = sharding.all_reduce %x over ["cp", "tp"] : tensor<8x16xf32>
  // CHECK: sharding.all_reduce max %{{.*}} over ["tp"] : tensor<8x16xf32>
  %m = sharding.all_reduce max %x over ["tp"] : tensor<8x16xf32>
  // CHECK: sharding.all_gather %{{.*}} dim 1 over "tp" : (tensor<8x16xf32>) -> tensor<8x64xf32>
  %1 = sharding.all_gather %0 dim 1 over "tp" : (tensor<8x16xf32>) -> tensor<8x64xf32>
  // CHECK: sharding.reduce_scatter %{{.*}} dim 0 over "cp" : (tensor<8x64xf32>) -> tensor<4x64xf32>
  %2 = sharding.reduce_scatter %1 dim 0 over "cp" : (tensor<8x64xf32>) -> tensor<4x64xf32>
  // CHECK: sharding.slice %{{.*}} dim 1 over "tp" pieces 2 : (tensor<4x64xf32>) -> tensor<4x16xf32>
  %3 = sharding.slice %2 dim 1 over "tp" pieces 2 : (tensor<4x64xf32>) -> tensor<4x16xf32>
  // CHECK: sharding.all_to_all %{{.*}} split 1 concat 0 over "cp" : (tensor<4x16xf32>) -> tensor<8x8xf32>
  %4 = sharding.all_to_all %3 split 1 concat 0 over "cp" : (tensor<4x16xf32>) -> tensor<8x8xf32>
  // CHECK: sharding.all_gather %{{.*}} dim 1 over "cp" pieces 2 : (tensor<8x8xf32>) -> tensor<8x16xf32>
  %5 = sharding.all_gather %4 dim 1 over "cp" pieces 2 : (tensor<8x8xf32>) -> tensor<8x16xf32>
  // CHECK: sharding.slice %{{.*}} dim 1 over "cp" pieces 2 mirrored : (tensor<8x16xf32>) -> tensor<8x8xf32>
  %6 = sharding.slice %5 dim 1 over "cp" pieces 2 mirrored : (tensor<8x16xf32>) -> tensor<8x8xf32>
  // CHECK: sharding.permute %{{.*}} by 3 over "tp" : tensor<8x8xf32>
  %7 = sharding.permute %6 by 3 over "tp" : tensor<8x8xf32>
  // CHECK: sharding.all_gather %{{.*}} dim 1 over "cp" pieces 4 mirrored : (tensor<8x8xf32>) -> tensor<8x16xf32>
  %8 = sharding.all_gather %7 dim 1 over "cp" pieces 4 mirrored : (tensor<8x8xf32>) -> tensor<8x16xf32>
  return %8 : tensor<8x16xf32>
}

// CHECK-LABEL: @standing
func.func private @standing(%b: tensor<16xf32>) -> (tensor<16xf32>, tensor<i64>) {
  // CHECK: sharding.first_rank %{{.*}} over ["tp"] : tensor<16xf32>
  %0 = sharding.first_rank %b over ["tp"] : tensor<16xf32>
  // CHECK: sharding.coordinate "tp" step 8 : tensor<i64>
  %1 = sharding.coordinate "tp" step 8 : tensor<i64>
  return %0, %1 : tensor<16xf32>, tensor<i64>
}

// CHECK-LABEL: @rows
func.func private @rows(%x: tensor<12x16xf32>, %e: tensor<4x8xi32>) -> (tensor<12x16xf32>, tensor<2xi32>) {
  // CHECK: sharding.expert_ends %{{.*}} rows 24 over ["tp"] : (tensor<4x8xi32>) -> tensor<2xi32>
  %0 = sharding.expert_ends %e rows 24 over ["tp"] : (tensor<4x8xi32>) -> tensor<2xi32>
  // CHECK: sharding.dispatch %{{.*}}, %{{.*}} over ["tp"] : (tensor<12x16xf32>, tensor<4x8xi32>) -> tensor<24x16xf32>
  %1 = sharding.dispatch %x, %e over ["tp"] : (tensor<12x16xf32>, tensor<4x8xi32>) -> tensor<24x16xf32>
  // CHECK: sharding.combine %{{.*}}, %{{.*}} over ["tp"] : (tensor<24x16xf32>, tensor<4x8xi32>) -> tensor<12x16xf32>
  %2 = sharding.combine %1, %e over ["tp"] : (tensor<24x16xf32>, tensor<4x8xi32>) -> tensor<12x16xf32>
  return %2, %0 : tensor<12x16xf32>, tensor<2xi32>
}
