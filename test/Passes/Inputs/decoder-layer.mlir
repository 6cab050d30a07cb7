// The model phase of a layer with attention's four matrices and a gated MLP.
sharding.mesh @mesh [#sharding.axis<"dp_replicate" = 1>, #sharding.axis<"dp_shard" = 1>]
sharding.job "tiny" micro_batch 1 sequence_length 8 device "cpu" {anatomy = {no_split = ["Layer"]}, training = {optimizer = {groups = [{lr = 1.0e-03 : f64, weight_decay = 1.0e-02 : f64}], name = "adamw"}}}
sharding.module "" class "Model"
sharding.module "layers" class "ModuleList"
sharding.module "layers.0" class "Layer"
sharding.module "layers.0.self_attn" class "Attention"
sharding.module "layers.0.self_attn.q_proj" class "Linear"
sharding.module "layers.0.self_attn.k_proj" class "Linear"
sharding.module "layers.0.self_attn.v_proj" class "Linear"
sharding.module "layers.0.self_attn.o_proj" class "Linear"
sharding.module "layers.0.mlp" class "MLP"
sharding.module "layers.0.mlp.gate_proj" class "Linear"
sharding.module "layers.0.mlp.up_proj" class "Linear"
sharding.module "layers.0.mlp.down_proj" class "Linear"
sharding.param "layers.0.self_attn.q_proj.weight" : tensor<16x16xf32> init <ones>
sharding.param "layers.0.self_attn.q_proj.bias" : tensor<16xf32> init <ones>
sharding.param "layers.0.self_attn.k_proj.weight" : tensor<16x16xf32> init <ones>
sharding.param "layers.0.self_attn.v_proj.weight" : tensor<16x16xf32> init <ones>
sharding.param "layers.0.self_attn.o_proj.weight" : tensor<16x16xf32> init <ones>
sharding.param "layers.0.mlp.gate_proj.weight" : tensor<32x16xf32> init <ones>
sharding.param "layers.0.mlp.up_proj.weight" : tensor<32x16xf32> init <ones>
sharding.param "layers.0.mlp.down_proj.weight" : tensor<16x32xf32> init <ones>
func.func private @Layer(%x: tensor<8x16xf32>, %q: tensor<16x16xf32> {sharding.param = "self_attn.q_proj.weight"}, %qb: tensor<16xf32> {sharding.param = "self_attn.q_proj.bias"}, %k: tensor<16x16xf32> {sharding.param = "self_attn.k_proj.weight"}, %v: tensor<16x16xf32> {sharding.param = "self_attn.v_proj.weight"}, %o: tensor<16x16xf32> {sharding.param = "self_attn.o_proj.weight"}, %g: tensor<32x16xf32> {sharding.param = "mlp.gate_proj.weight"}, %u: tensor<32x16xf32> {sharding.param = "mlp.up_proj.weight"}, %d: tensor<16x32xf32> {sharding.param = "mlp.down_proj.weight"}) -> tensor<8x16xf32> {
  %0 = aten.t %q : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = aten.addmm %qb, %x, %0 : (tensor<16xf32>, tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %2 = aten.silu %1 : tensor<8x16xf32>
  %3 = aten.t %k : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %4 = aten.mm %x, %3 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %5 = aten.t %v : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %6 = aten.mm %x, %5 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %7 = aten.mul.Tensor %2, %4 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %8 = aten.mul.Tensor %7, %6 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %9 = aten.t %o : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %10 = aten.mm %8, %9 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %11 = aten.t %g : (tensor<32x16xf32>) -> tensor<16x32xf32>
  %12 = aten.mm %10, %11 : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %13 = aten.silu %12 : tensor<8x32xf32>
  %14 = aten.t %u : (tensor<32x16xf32>) -> tensor<16x32xf32>
  %15 = aten.mm %10, %14 : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %16 = aten.mul.Tensor %13, %15 : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %17 = aten.t %d : (tensor<16x32xf32>) -> tensor<32x16xf32>
  %18 = aten.mm %16, %17 : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %18 : tensor<8x16xf32>
}
func.func private @Loss(%x: tensor<8x16xf32>, %labels: tensor<8xi64>) -> tensor<f32> {
  %0 = aten._log_softmax %x, 1 : tensor<8x16xf32>
  %1:2 = aten.nll_loss_forward %0, %labels : (tensor<8x16xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  return %1#0 : tensor<f32>
}
sharding.graph @model(%x: tensor<8x16xf32>, %labels: tensor<8xi64>) {
  %0 = sharding.call @Layer(%x) at "layers.0" : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = sharding.call @Loss(%0, %labels) at "" : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  sharding.return %1 : tensor<f32>
}
