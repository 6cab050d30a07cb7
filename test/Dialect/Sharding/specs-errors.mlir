// What the verifier refuses of shardings.
// RUN: accel-opt opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"tp" = 4>]
// expected-error @+1 {{'sharding.param' op 'w' is sharded over 'cp', which is no axis of the mesh (dp_shard, tp)}}
sharding.param "w" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["cp"], []>}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
// expected-error @+1 {{'sharding.param' op 'w' is sharded over 'cp', which is no axis of the mesh (tp)}}
sharding.param "w" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<[], [] partial ["cp"]>}

// -----

// expected-error @+1 {{'sharding.param' op 'w' is sharded over 'tp', but the module has no mesh}}
sharding.param "w" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["tp"], []>}

// -----

// expected-error @+1 {{the axis 'tp' is used twice in one spec}}
"test.op"() {d = #sharding.spec<["tp"], ["tp"]>} : () -> ()

// -----

// expected-error @+1 {{the axis 'tp' is used twice in one spec}}
"test.op"() {d = #sharding.spec<["tp"], [] partial ["tp"]>} : () -> ()

// -----

// expected-error @+1 {{an axis of a spec is "", expected a name}}
"test.op"() {d = #sharding.spec<[""]>} : () -> ()

// -----

// expected-error @+1 {{expected '['}}
"test.op"() {d = #sharding.spec<["tp"], "cp">} : () -> ()

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
// expected-error @+1 {{'sharding.param' op 'w' has a spec of 1 dimensions, but its type is 'tensor<16x8xf32>'}}
sharding.param "w" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<["tp"]>}

// -----

sharding.mesh @mesh [#sharding.axis<"cp" = 2>, #sharding.axis<"tp" = 4>]
// expected-error @+1 {{'sharding.param' op 'w' has dimension 0 of size 12, which 8 shards do not divide}}
sharding.param "w" : tensor<12x8xf32> init <zeros> {spec = #sharding.spec<["cp", "tp"], []>}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
// expected-error @+1 {{'func.func' op argument 0 has dimension 0 of size 6, which 4 shards do not divide}}
func.func private @F(%x: tensor<6xf32> {sharding.spec = #sharding.spec<["tp"]>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument 0 has 'sharding.spec' = 1 : i64, expected a #sharding.spec}}
func.func private @F(%x: tensor<6xf32> {sharding.spec = 1 : i64}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument 0 has a spec but is no tensor: 'i64'}}
func.func private @F(%x: i64 {sharding.spec = #sharding.spec<[]>}) {
  return
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
// expected-error @+1 {{'func.func' op result 0 is sharded over 'ep', which is no axis of the mesh (tp)}}
func.func private @F(%x: tensor<8xf32>) -> (tensor<8xf32> {sharding.spec = #sharding.spec<["ep"]>}) {
  return %x : tensor<8xf32>
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @F(%x: tensor<8xf32>) {
  // expected-error @+1 {{'aten.silu' op has 1 results, but 'sharding.specs' lists 2 specs}}
  %0 = aten.silu %x {sharding.specs = [#sharding.spec<["tp"]>, #sharding.spec<[]>]} : tensor<8xf32>
  return
}

// -----

func.func private @F(%x: tensor<8xf32>) {
  // expected-error @+1 {{'aten.silu' op has 'sharding.specs' = #sharding.spec<["tp"]>, expected a list of #sharding.spec}}
  %0 = aten.silu %x {sharding.specs = #sharding.spec<["tp"]>} : tensor<8xf32>
  return
}

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
func.func private @F(%x: tensor<6xf32>) {
  // expected-error @+1 {{'aten.silu' op result 0 has dimension 0 of size 6, which 4 shards do not divide}}
  %0 = aten.silu %x {sharding.specs = [#sharding.spec<["tp"]>]} : tensor<6xf32>
  return
}

// -----

// expected-error @+1 {{'func.func' op has 'sharding.arg_specs', which belongs to a sharding.graph}}
func.func private @F(%x: tensor<6xf32>) attributes {sharding.arg_specs = []} {
  return
}

// -----

// expected-error @+1 {{'sharding.graph' op has 1 arguments, but 'sharding.arg_specs' lists 0 specs}}
sharding.graph @model(%x: tensor<f32>) attributes {sharding.arg_specs = []} {
  sharding.return %x : tensor<f32>
}

// -----

// expected-error @+1 {{a spec cuts a dimension in 1 pieces, expected at least 2}}
"test.op"() {d = #sharding.spec<[1, "tp"]>} : () -> ()

// -----

// expected-error @+1 {{the number of pieces 3 is not followed by the axis that shards each of them}}
"test.op"() {d = #sharding.spec<["tp", 3]>} : () -> ()

// -----

// expected-error @+1 {{the number of pieces 3 is not followed by the axis that shards each of them}}
"test.op"() {d = #sharding.spec<[3, 2, "tp"]>} : () -> ()

// -----

// expected-error @+1 {{a spec mirrors 3 pieces, expected an even number}}
"test.op"() {d = #sharding.spec<[3 mirrored, "tp"]>} : () -> ()

// -----

// expected-error @+1 {{the number of pieces 2 is not followed by the axis that shards each of them}}
"test.op"() {d = #sharding.spec<[2 mirrored]>} : () -> ()

// -----

// expected-error @+1 {{an axis of a spec is 2 : i64, expected a name}}
"test.op"() {d = #sharding.spec<[] partial [2, "tp"]>} : () -> ()

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
// expected-error @+1 {{'sharding.param' op 'w' has dimension 0 of size 16, which 3 pieces in 4 shards do not divide}}
sharding.param "w" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<[3, "tp"], []>}
