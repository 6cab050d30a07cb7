// The model phase of two linear layers and a head, for the passes that
// make and rewrite programs.
sharding.mesh @mesh [#sharding.axis<"dp_replicate" = 1>, #sharding.axis<"dp_shard" = 2>]
sharding.job "tiny" micro_batch 1 sequence_length 8 device "cpu" {anatomy = {no_split = ["Linear"]}, training = {optimizer = {groups = [{lr = 1.0e-03 : f64, weight_decay = 1.0e-02 : f64}], name = "adamw"}}}
sharding.request "wrap" {fsdp_version = 2 : i64, policy = "TRANSFORMER_BASED_WRAP"} because <"fsdp_auto_wrap_policy" at "fsdp.yaml" : 7 : 3>
sharding.module "" class "Model"
sharding.module "a" class "Linear"
sharding.module "b" class "Linear"
sharding.module "head" class "Head"
sharding.param "a.weight" : tensor<16x16xf32> init <ones>
sharding.param "b.weight" : tensor<16x16xf32> init <ones>
sharding.param "head.weight" : tensor<10x16xf32> init <ones>
func.func private @Linear(%x: tensor<8x16xf32>, %w: tensor<16x16xf32> {sharding.param = "weight"}) -> tensor<8x16xf32> {
  %0 = aten.t %w : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = aten.mm %x, %0 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
func.func private @Head(%x: tensor<8x16xf32>, %labels: tensor<8xi64>, %w: tensor<10x16xf32> {sharding.param = "weight"}) -> tensor<f32> {
  %0 = aten.t %w : (tensor<10x16xf32>) -> tensor<16x10xf32>
  %1 = aten.mm %x, %0 : (tensor<8x16xf32>, tensor<16x10xf32>) -> tensor<8x10xf32>
  %2 = aten._log_softmax %1, 1 : tensor<8x10xf32>
  %3:2 = aten.nll_loss_forward %2, %labels : (tensor<8x10xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  return %3#0 : tensor<f32>
}
sharding.graph @model(%x: tensor<8x16xf32>, %labels: tensor<8xi64>) {
  %0 = sharding.call @Linear(%x) at "a" : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = sharding.call @Linear(%0) at "b" : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = sharding.call @Head(%1, %labels) at "head" : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  sharding.return %2 : tensor<f32>
}
