// What the verifiers of the sharding dialect refuse.
// RUN: accel-opt opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error @+1 {{a mesh axis needs a name}}
sharding.mesh @mesh [#sharding.axis<"" = 2>]

// -----

// expected-error @+1 {{mesh axis 'dp_shard' has size 0, expected at least 1}}
sharding.mesh @mesh [#sharding.axis<"dp_shard" = 0>]

// -----

// expected-error @+1 {{'sharding.mesh' op has two axes named 'dp_shard'}}
sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"dp_shard" = 4>]

// -----

// expected-error @+1 {{axes}}
sharding.mesh @mesh ["dp_shard"]

// -----

// expected-error @+1 {{'sharding.job' op needs a micro-batch of at least 1}}
sharding.job "tiny" micro_batch 0 sequence_length 4 device "cpu"

// -----

// expected-error @+1 {{'sharding.job' op has a negative sequence length}}
sharding.job "tiny" micro_batch 1 sequence_length -1 device "cpu"

// -----

// expected-error @+1 {{'sharding.job' op has device 'gpu', expected 'cpu' or 'cuda'}}
sharding.job "tiny" micro_batch 1 sequence_length 4 device "gpu"

// -----

// expected-error @+1 {{prefetch depth is negative}}
"test.op"() {d = #sharding.prefetch<forward = 1, backward = -1, because = <"x">>} : () -> ()

// -----

// expected-error @+1 {{a negative number of gathers is held back}}
"test.op"() {d = #sharding.gathers<held = -1, because = <"x">>} : () -> ()

// -----

// expected-error @+1 {{a negative number of reductions is awaited}}
"test.op"() {d = #sharding.reductions<await = -1, because = <"x">>} : () -> ()

// -----

// expected-error @+1 {{accumulation over 0 micro-batches, expected at least 1}}
"test.op"() {d = #sharding.accumulation<0, reduce_each, because = <"x">>} : () -> ()

// -----

// expected-error @+2 {{expected ::accel::sharding::AccumulationMode to be one of: reduce_each, keep_unsharded}}
// expected-error @+1 {{failed to parse Sharding_AccumulationAttr}}
"test.op"() {d = #sharding.accumulation<1, sometimes, because = <"x">>} : () -> ()

// -----

// expected-error @+1 {{reduce dtype is 'i32', expected f64, f32, bf16 or f16}}
"test.op"() {d = #sharding.precision<storage = f32, compute = f32, reduce = i32, output = f32, because = <"x">>} : () -> ()

// -----

// expected-error @+1 {{compute dtype is 'tensor<2xf32>', expected f64, f32, bf16 or f16}}
"test.op"() {d = #sharding.precision<storage = f32, compute = tensor<2xf32>, reduce = f32, output = f32, because = <"x">>} : () -> ()

// -----

// expected-error @+1 {{normal takes a value}}
sharding.param "w" : tensor<4xf32> init <normal>

// -----

// expected-error @+1 {{ones takes no value}}
sharding.param "w" : tensor<4xf32> init <ones, 1.0 : f64>

// -----

// expected-error @+1 {{uniform takes a range}}
sharding.param "w" : tensor<4xf32> init <uniform>

// -----

// expected-error @+1 {{uniform takes no value}}
sharding.param "w" : tensor<4xf32> init <uniform, 1.0 : f64 range [-1.0, 1.0]>

// -----

// expected-error @+1 {{the range must be two ascending numbers}}
sharding.param "w" : tensor<4xf32> init <uniform range [1.0, -1.0]>

// -----

// expected-error @+1 {{negative standard deviation}}
sharding.param "w" : tensor<4xf32> init <normal, -1.0 : f64>

// -----

// expected-error @+1 {{'sharding.param' op 'w' has type 'tensor<?x4xf32>', expected a floating-point tensor of static shape}}
sharding.param "w" : tensor<?x4xf32> init <ones>

// -----

// expected-error @+1 {{'sharding.param' op 'w' has type 'tensor<4xi64>', expected a floating-point tensor of static shape}}
sharding.param "w" : tensor<4xi64> init <ones>

// -----

// expected-error @+1 {{'sharding.param' op 'w' has type 'f32', expected a floating-point tensor of static shape}}
sharding.param "w" : f32 init <ones>

// -----

// expected-error @+1 {{'sharding.param' op needs a name}}
sharding.param "" : tensor<4xf32> init <ones>

// -----

// expected-error @+1 {{'sharding.unit' op 'u' has no parameters}}
sharding.unit "u" modules ["u"] shard [] replicate [] params [] {wrap = #sharding.wrap<because = <"x">>}

// -----

// expected-error @+1 {{'sharding.unit' op 'u' uses the axis 'dp' twice}}
sharding.unit "u" modules ["u"] shard ["dp"] replicate ["dp"] params ["w"] {wrap = #sharding.wrap<because = <"x">>}

// -----

// expected-error @+1 {{requires attribute 'wrap'}}
sharding.unit "u" modules ["u"] shard [] replicate [] params ["w"]

// -----

// Units, requests and the like belong to the module.
func.func @f() {
  // expected-error @+1 {{'sharding.module' op expects parent op 'builtin.module'}}
  sharding.module "" class "Model"
  return
}

// -----

// expected-error @+1 {{'sharding.graph' op returns 0 values, expected the loss alone}}
sharding.graph @train() {
}

// -----

// expected-error @+1 {{'sharding.graph' op returns 'tensor<2xf32>', expected a 0-d floating-point loss}}
sharding.graph @train(%x: tensor<2xf32>) {
  sharding.return %x : tensor<2xf32>
}

// -----

// expected-error @+1 {{'sharding.graph' op returns 'tensor<i64>', expected a 0-d floating-point loss}}
sharding.graph @train(%x: tensor<i64>) {
  sharding.return %x : tensor<i64>
}

// -----

// expected-error @+1 {{'sharding.graph' op names 2 of 1 arguments}}
"sharding.graph"() <{arg_names = ["a", "b"], sym_name = "train"}> ({
^bb0(%x: tensor<f32>):
  "sharding.return"(%x) : (tensor<f32>) -> ()
}) : () -> ()

// -----

sharding.graph @train(%x: tensor<f32>) {
  // expected-error @+1 {{'sharding.call' op calls 'Layer', which is no function of this module}}
  %0 = sharding.call @Layer(%x) at "" : (tensor<f32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// A mesh is a symbol, but none that can be called.
sharding.mesh @mesh []
sharding.graph @train(%x: tensor<f32>) {
  // expected-error @+1 {{'sharding.call' op calls 'mesh', which is no function of this module}}
  %0 = sharding.call @mesh(%x) at "" : (tensor<f32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

// Parameters bind by name and are not passed.
func.func private @Layer(tensor<f32>, tensor<4xf32> {sharding.param = "w"}) -> tensor<f32>
sharding.graph @train(%x: tensor<f32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'sharding.call' op passes 2 operands to 'Layer', which takes 1}}
  %0 = sharding.call @Layer(%x, %w) at "" : (tensor<f32>, tensor<4xf32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

func.func private @Layer(tensor<2xf32>) -> tensor<f32>
sharding.graph @train(%x: tensor<f32>) {
  // expected-error @+1 {{'sharding.call' op operand 0 is 'tensor<f32>', but 'Layer' takes 'tensor<2xf32>'}}
  %0 = sharding.call @Layer(%x) at "" : (tensor<f32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

func.func private @Layer(tensor<f32>) -> tensor<2xf32>
sharding.graph @train(%x: tensor<f32>) {
  // expected-error @+1 {{'sharding.call' op result types differ from those of 'Layer'}}
  %0 = sharding.call @Layer(%x) at "" : (tensor<f32>) -> tensor<f32>
  sharding.return %0 : tensor<f32>
}

// -----

func.func private @Layer(tensor<f32>) -> tensor<f32>
func.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{'sharding.call' op expects parent op 'sharding.graph'}}
  %0 = sharding.call @Layer(%x) at "" : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// expected-error@+1 {{experts are on at least one rank, not 0}}
sharding.job "m" micro_batch 1 sequence_length 8 device "cuda" {megatron = #sharding.megatron<distributed = true, overlap_gradients = false, overlap_parameters = false, chunks = 1 experts 0, because = <"asked">>}
