// RUN: accel-opt opt %s --split-input-file --verify-diagnostics

func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'sharding.all_reduce' op is over 'tp', but the module has no mesh}}
  %0 = sharding.all_reduce %x over ["tp"] : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'sharding.all_reduce' op is over 'cp', which is no axis of the mesh}}
  %0 = sharding.all_reduce %x over ["cp"] : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'sharding.first_rank' op is over 'tp' twice}}
  %0 = sharding.first_rank %x over ["tp", "tp"] : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'sharding.all_reduce' op is over no axis}}
  %0 = "sharding.all_reduce"(%x) {axes = []} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @f(%x: tensor<8xf32>) -> tensor<32xf32> {
  // expected-error @+1 {{'sharding.all_gather' op dim 1 is no dimension of 'tensor<8xf32>'}}
  %0 = sharding.all_gather %x dim 1 over "tp" : (tensor<8xf32>) -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @f(%x: tensor<8xf32>) -> tensor<16xf32> {
  // expected-error @+1 {{'sharding.all_gather' op makes 'tensor<16xf32>' of 'tensor<8xf32>', expected 'tensor<32xf32>'}}
  %0 = sharding.all_gather %x dim 0 over "tp" : (tensor<8xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @f(%x: tensor<12xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{'sharding.slice' op has dimension 0 of size 12, which 8 parts do not divide}}
  %0 = sharding.slice %x dim 0 over "tp" pieces 2 : (tensor<12xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @f(%x: tensor<12xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{'sharding.reduce_scatter' op has 0 pieces, expected at least 1}}
  %0 = sharding.reduce_scatter %x dim 0 over "tp" pieces 0 : (tensor<12xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @f(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{'sharding.all_to_all' op splits and concatenates dimension 1}}
  %0 = sharding.all_to_all %x split 1 concat 1 over "tp" : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @f() -> tensor<1xi64> {
  // expected-error @+1 {{'sharding.coordinate' op makes 'tensor<1xi64>', expected tensor<i64>}}
  %0 = sharding.coordinate "tp" step 8 : tensor<1xi64>
  return %0 : tensor<1xi64>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @f() -> tensor<i64> {
  // expected-error @+1 {{'sharding.coordinate' op counts in steps of 0, expected at least 1}}
  %0 = sharding.coordinate "tp" step 0 : tensor<i64>
  return %0 : tensor<i64>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
func.func private @f(%x: tensor<12xf32>) -> tensor<6xf32> {
  // expected-error @+1 {{'sharding.slice' op mirrors 3 pieces, expected an even number}}
  %0 = sharding.slice %x dim 0 over "tp" pieces 3 mirrored : (tensor<12xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
func.func private @f(%x: tensor<12xf32>) -> tensor<12xf32> {
  // expected-error @+1 {{'sharding.permute' op moves values by 2 of 2 ranks, expected 1 to 1}}
  %0 = sharding.permute %x by 2 over "tp" : tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"ep" = 2>]
func.func private @f(%x: tensor<12x4xf32>, %e: tensor<2x5xi32>) -> tensor<24x4xf32> {
  // expected-error @+1 {{'sharding.dispatch' op reads ends 'tensor<2x5xi32>', expected tensor<2 x experts x i32>, of experts that 2 ranks divide}}
  %0 = sharding.dispatch %x, %e over ["ep"] : (tensor<12x4xf32>, tensor<2x5xi32>) -> tensor<24x4xf32>
  return %0 : tensor<24x4xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"ep" = 2>]
func.func private @f(%x: tensor<12x4xf32>, %e: tensor<2x4xi32>) -> tensor<24x5xf32> {
  // expected-error @+1 {{'sharding.combine' op makes 'tensor<24x5xf32>' of 'tensor<12x4xf32>', expected 'tensor<24x4xf32>'}}
  %0 = sharding.combine %x, %e over ["ep"] : (tensor<12x4xf32>, tensor<2x4xi32>) -> tensor<24x5xf32>
  return %0 : tensor<24x5xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"ep" = 2>]
func.func private @f(%x: tensor<3x4x4xf32>, %e: tensor<2x4xi32>) -> tensor<24x4xf32> {
  // expected-error @+1 {{'sharding.dispatch' op moves rows of 'tensor<3x4x4xf32>', expected [rows, features]}}
  %0 = sharding.dispatch %x, %e over ["ep"] : (tensor<3x4x4xf32>, tensor<2x4xi32>) -> tensor<24x4xf32>
  return %0 : tensor<24x4xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"ep" = 2>]
func.func private @f(%e: tensor<2x4xi32>) -> tensor<2xi32> {
  // expected-error @+1 {{'sharding.expert_ends' op has a place for 0 rows, expected at least 1}}
  %0 = sharding.expert_ends %e rows 0 over ["ep"] : (tensor<2x4xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"ep" = 2>]
func.func private @f(%e: tensor<2x4xi32>) -> tensor<4xi32> {
  // expected-error @+1 {{'sharding.expert_ends' op makes 'tensor<4xi32>' of 'tensor<2x4xi32>', expected 'tensor<2xi32>'}}
  %0 = sharding.expert_ends %e rows 8 over ["ep"] : (tensor<2x4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
