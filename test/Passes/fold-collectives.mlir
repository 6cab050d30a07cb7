// RUN: accel-opt opt %s --fold-collectives | FileCheck %s

sharding.mesh @mesh [#sharding.axis<"cp" = 2>, #sharding.axis<"tp" = 4>]

// A part of a sum is scattered; what other axes sum stays a sum, of the part.
// CHECK-LABEL: @scatter
// CHECK-NEXT:  %[[S:.*]] = sharding.reduce_scatter %{{.*}} dim 0 over "tp"
// CHECK-NEXT:  %[[R:.*]] = sharding.all_reduce %[[S]] over ["cp"] : tensor<2x16xf32>
// CHECK-NEXT:  return %[[R]]
func.func private @scatter(%x: tensor<8x16xf32>) -> tensor<2x16xf32> {
  %0 = sharding.all_reduce %x over ["cp", "tp"] : tensor<8x16xf32>
  %1 = sharding.slice %0 dim 0 over "tp" : (tensor<8x16xf32>) -> tensor<2x16xf32>
  return %1 : tensor<2x16xf32>
}

// Where the sum is read whole too, it is made once.
// CHECK-LABEL: @shared
// CHECK:       sharding.all_reduce
// CHECK-NEXT:  sharding.slice
// CHECK-NOT:   sharding.reduce_scatter
func.func private @shared(%x: tensor<8x16xf32>) -> (tensor<2x16xf32>, tensor<8x16xf32>) {
  %0 = sharding.all_reduce %x over ["tp"] : tensor<8x16xf32>
  %1 = sharding.slice %0 dim 0 over "tp" : (tensor<8x16xf32>) -> tensor<2x16xf32>
  return %1, %0 : tensor<2x16xf32>, tensor<8x16xf32>
}

// CHECK-LABEL: @cancel
// CHECK-SAME:  (%[[X:.*]]: tensor<8x16xf32>, %[[Y:.*]]: tensor<8x16xf32>)
// CHECK-NEXT:  return %[[X]], %[[Y]]
func.func private @cancel(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = sharding.all_gather %x dim 1 over "tp" pieces 2 : (tensor<8x16xf32>) -> tensor<8x64xf32>
  %1 = sharding.slice %0 dim 1 over "tp" pieces 2 : (tensor<8x64xf32>) -> tensor<8x16xf32>
  %2 = sharding.slice %y dim 0 over "tp" : (tensor<8x16xf32>) -> tensor<2x16xf32>
  %3 = sharding.all_gather %2 dim 0 over "tp" : (tensor<2x16xf32>) -> tensor<8x16xf32>
  return %1, %3 : tensor<8x16xf32>, tensor<8x16xf32>
}

// Other pieces, or another axis, are another part.
// CHECK-LABEL: @differ
// CHECK:       sharding.all_gather
// CHECK-NEXT:  sharding.slice
// CHECK-NEXT:  sharding.slice
func.func private @differ(%x: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %0 = sharding.all_gather %x dim 1 over "tp" pieces 2 : (tensor<8x16xf32>) -> tensor<8x64xf32>
  %1 = sharding.slice %0 dim 1 over "tp" : (tensor<8x64xf32>) -> tensor<8x16xf32>
  %2 = sharding.slice %1 dim 0 over "cp" : (tensor<8x16xf32>) -> tensor<4x16xf32>
  return %2 : tensor<4x16xf32>
}

// CHECK-LABEL: @exchange
// CHECK-NEXT:  sharding.all_to_all %{{.*}} split 0 concat 1 over "tp" : (tensor<8x16xf32>) -> tensor<2x64xf32>
// CHECK-NEXT:  return
func.func private @exchange(%x: tensor<8x16xf32>) -> tensor<2x64xf32> {
  %0 = sharding.all_gather %x dim 1 over "tp" : (tensor<8x16xf32>) -> tensor<8x64xf32>
  %1 = sharding.slice %0 dim 0 over "tp" : (tensor<8x64xf32>) -> tensor<2x64xf32>
  return %1 : tensor<2x64xf32>
}

// CHECK-LABEL: @twice
// CHECK:       %[[G:.*]] = sharding.all_gather
// CHECK-NOT:   sharding.all_gather
// CHECK:       aten.add.Tensor %[[G]], %[[G]]
func.func private @twice(%x: tensor<8x16xf32>) -> tensor<8x64xf32> {
  %0 = sharding.all_gather %x dim 1 over "tp" : (tensor<8x16xf32>) -> tensor<8x64xf32>
  %1 = sharding.all_gather %x dim 1 over "tp" : (tensor<8x16xf32>) -> tensor<8x64xf32>
  %2 = aten.add.Tensor %0, %1 : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %2 : tensor<8x64xf32>
}

// A slice of the largest is not scattered.
// CHECK-LABEL: @largest
// CHECK-NEXT:  sharding.all_reduce max
// CHECK-NEXT:  sharding.slice
func.func private @largest(%x: tensor<8x16xf32>) -> tensor<2x16xf32> {
  %0 = sharding.all_reduce max %x over ["tp"] : tensor<8x16xf32>
  %1 = sharding.slice %0 dim 0 over "tp" : (tensor<8x16xf32>) -> tensor<2x16xf32>
  return %1 : tensor<2x16xf32>
}

// The slice of a sum behind a view: tokens of a batch of 2 are rows in 2 pieces.
// CHECK-LABEL: @tokens
// CHECK-NEXT:  %[[S:.*]] = sharding.reduce_scatter %{{.*}} dim 0 over "tp" pieces 2 : (tensor<16x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT:  %[[V:.*]] = aten.view %[[S]], [2, 2, 6]
// CHECK-NEXT:  return %[[V]]
func.func private @tokens(%x: tensor<16x6xf32>) -> tensor<2x2x6xf32> {
  %0 = sharding.all_reduce %x over ["tp"] : tensor<16x6xf32>
  %1 = aten.view %0, [2, 8, 6] : (tensor<16x6xf32>) -> tensor<2x8x6xf32>
  %2 = sharding.slice %1 dim 1 over "tp" : (tensor<2x8x6xf32>) -> tensor<2x2x6xf32>
  return %2 : tensor<2x2x6xf32>
}

// Sizes whose product 64 bits do not hold.
// CHECK-LABEL: @many
// CHECK-NEXT:  sharding.reduce_scatter %{{.*}} dim 0 over "tp" pieces 32768
// CHECK-NEXT:  aten.view %{{.*}}, [32768, 1024, 4096]
func.func private @many(%x: tensor<134217728x4096xbf16>) -> tensor<32768x1024x4096xbf16> {
  %0 = sharding.all_reduce %x over ["tp"] : tensor<134217728x4096xbf16>
  %1 = aten.view %0, [32768, 4096, 4096] : (tensor<134217728x4096xbf16>) -> tensor<32768x4096x4096xbf16>
  %2 = sharding.slice %1 dim 1 over "tp" : (tensor<32768x4096x4096xbf16>) -> tensor<32768x1024x4096xbf16>
  return %2 : tensor<32768x1024x4096xbf16>
}

// Merged rows are cut by their outer part: pieces across the view stay.
// CHECK-LABEL: @across
// CHECK-NEXT:  sharding.all_reduce
// CHECK-NEXT:  aten.view
// CHECK-NEXT:  sharding.slice
func.func private @across(%x: tensor<4x4x6xf32>) -> tensor<4x6xf32> {
  %0 = sharding.all_reduce %x over ["tp"] : tensor<4x4x6xf32>
  %1 = aten.view %0, [16, 6] : (tensor<4x4x6xf32>) -> tensor<16x6xf32>
  %2 = sharding.slice %1 dim 0 over "tp" : (tensor<16x6xf32>) -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

// CHECK-LABEL: @sums
// CHECK:       %[[A:.*]] = aten.add.Tensor %{{.*}}, %{{.*}} : (tensor<8x16xf32>
// CHECK-NEXT:  sharding.all_reduce %[[A]] over ["tp"]
// CHECK-NEXT:  return
func.func private @sums(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = sharding.all_reduce %x over ["tp"] : tensor<8x16xf32>
  %1 = sharding.all_reduce %y over ["tp"] : tensor<8x16xf32>
  %2 = aten.add.Tensor %0, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// Parts of two sums that are added are the part of one sum.
// CHECK-LABEL: @sum_of_scatters
// CHECK:       %[[SUM:.*]] = aten.add.Tensor %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<8x4xf32>)
// CHECK-NEXT:  %[[PART:.*]] = sharding.reduce_scatter %[[SUM]] dim 0 over "cp" : (tensor<8x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:  return %[[PART]]
func.func private @sum_of_scatters(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = sharding.reduce_scatter %a dim 0 over "cp" : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = sharding.reduce_scatter %b dim 0 over "cp" : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %2 = aten.add.Tensor %0, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// Along other dimensions they stay two.
// CHECK-LABEL: @scatters_of_two_kinds
// CHECK-COUNT-2: sharding.reduce_scatter
func.func private @scatters_of_two_kinds(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = sharding.reduce_scatter %a dim 0 over "cp" : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = sharding.reduce_scatter %b dim 0 over "cp" pieces 2 : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %2 = aten.add.Tensor %0, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// A matrix and its transpose are gathered once.
// CHECK-LABEL: @gather_of_transpose
// CHECK:       %[[ALL:.*]] = sharding.all_gather %{{.*}} dim 0 over "cp" : (tensor<4x6xf32>) -> tensor<8x6xf32>
// CHECK-NEXT:  %[[TURNED:.*]] = aten.t %[[ALL]]
// CHECK-NOT:   sharding.all_gather
// CHECK:       aten.mm %[[TURNED]]
func.func private @gather_of_transpose(%x: tensor<4x6xf32>, %w: tensor<8x2xf32>) -> (tensor<6x2xf32>, tensor<8x6xf32>) {
  %0 = aten.t %x : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = sharding.all_gather %0 dim 1 over "cp" : (tensor<6x4xf32>) -> tensor<6x8xf32>
  %2 = sharding.all_gather %x dim 0 over "cp" : (tensor<4x6xf32>) -> tensor<8x6xf32>
  %3 = aten.mm %1, %w : (tensor<6x8xf32>, tensor<8x2xf32>) -> tensor<6x2xf32>
  return %3, %2 : tensor<6x2xf32>, tensor<8x6xf32>
}

// Gathered in one way alone it stays where it is.
// CHECK-LABEL: @gather_of_transpose_alone
// CHECK:       aten.t
// CHECK-NEXT:  sharding.all_gather
func.func private @gather_of_transpose_alone(%x: tensor<4x6xf32>) -> tensor<6x8xf32> {
  %0 = aten.t %x : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = sharding.all_gather %0 dim 1 over "cp" : (tensor<6x4xf32>) -> tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}

// An exchange that undoes another, and two that are equal behind equal views.
// CHECK-LABEL: func.func private @undone(
// CHECK-SAME:  %[[X:.*]]: tensor<1x8x2x2xf32>, %[[Y:.*]]: tensor<1x2x4x2xf32>)
// CHECK:       %[[TURNED:.*]] = aten.transpose.int %[[Y]], 1, 2
// CHECK-NEXT:  %[[HEADS:.*]] = sharding.all_to_all %[[TURNED]] split 2 concat 1
// CHECK-NEXT:  %[[SUM:.*]] = aten.add.Tensor %[[X]], %[[X]]
// CHECK-NEXT:  aten.add.Tensor %[[HEADS]], %[[HEADS]]
func.func private @undone(%x: tensor<1x8x2x2xf32>, %y: tensor<1x2x4x2xf32>) -> (tensor<1x8x2x2xf32>, tensor<1x8x1x2xf32>) {
  %0 = sharding.all_to_all %x split 1 concat 2 over "cp" : (tensor<1x8x2x2xf32>) -> tensor<1x4x4x2xf32>
  %1 = aten.transpose.int %0, 1, 2 : (tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
  %2 = aten.transpose.int %1, 1, 2 : (tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
  %3 = sharding.all_to_all %2 split 2 concat 1 over "cp" : (tensor<1x4x4x2xf32>) -> tensor<1x8x2x2xf32>
  %a = aten.transpose.int %y, 1, 2 : (tensor<1x2x4x2xf32>) -> tensor<1x4x2x2xf32>
  %b = sharding.all_to_all %a split 2 concat 1 over "cp" : (tensor<1x4x2x2xf32>) -> tensor<1x8x1x2xf32>
  %c = aten.transpose.int %y, 1, 2 : (tensor<1x2x4x2xf32>) -> tensor<1x4x2x2xf32>
  %d = sharding.all_to_all %c split 2 concat 1 over "cp" : (tensor<1x4x2x2xf32>) -> tensor<1x8x1x2xf32>
  %4 = aten.add.Tensor %x, %3 : (tensor<1x8x2x2xf32>, tensor<1x8x2x2xf32>) -> tensor<1x8x2x2xf32>
  %5 = aten.add.Tensor %b, %d : (tensor<1x8x1x2xf32>, tensor<1x8x1x2xf32>) -> tensor<1x8x1x2xf32>
  return %4, %5 : tensor<1x8x2x2xf32>, tensor<1x8x1x2xf32>
}
