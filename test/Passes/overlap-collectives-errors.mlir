// RUN: accel-opt opt %s --split-input-file --verify-diagnostics

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
func.func private @read(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{is started, and something else than one schedule.await_exchange reads it}}
  %0 = sharding.all_reduce %x over ["tp"] {schedule.start = "why"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
func.func private @twice(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // expected-error @below {{is started, and something else than one schedule.await_exchange reads it}}
  %0 = sharding.all_reduce %x over ["tp"] {schedule.start = "why"} : tensor<8xf32>
  %1 = schedule.await_exchange %0 : tensor<8xf32>
  %2 = schedule.await_exchange %0 : tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
func.func private @why(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{schedule.start is 3 : i64, expected the reason as text}}
  %0 = sharding.all_reduce %x over ["tp"] {schedule.start = 3} : tensor<8xf32>
  %1 = schedule.await_exchange %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
func.func private @slice(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{cannot be awaited later; schedule.start is for all_reduce, all_gather, reduce_scatter, all_to_all, permute, dispatch and combine of the sharding dialect}}
  %0 = sharding.slice %x dim 0 over "tp" {schedule.start = "why"} : (tensor<8xf32>) -> tensor<4xf32>
  %1 = schedule.await_exchange %0 : tensor<4xf32> of %x : tensor<8xf32>
  return %1 : tensor<4xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
func.func private @nothing(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sharding.all_reduce %x over ["tp"] : tensor<8xf32>
  // expected-error @below {{awaits a value that no exchange with schedule.start makes}}
  %1 = schedule.await_exchange %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
func.func private @value(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<16xf32> {
  %0 = sharding.all_gather %x dim 0 over "tp" {schedule.start = "why"} : (tensor<8xf32>) -> tensor<16xf32>
  // expected-error @below {{must name the value that the exchange reads, unless it is an all_reduce or a combine}}
  %1 = schedule.await_exchange %0 : tensor<16xf32> of %y : tensor<8xf32>
  return %1 : tensor<16xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
func.func private @forgotten(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<16xf32> {
  %0 = sharding.all_gather %x dim 0 over "tp" {schedule.start = "why"} : (tensor<8xf32>) -> tensor<16xf32>
  // expected-error @below {{must name the value that the exchange reads, unless it is an all_reduce or a combine}}
  %1 = schedule.await_exchange %0 : tensor<16xf32>
  return %1 : tensor<16xf32>
}
