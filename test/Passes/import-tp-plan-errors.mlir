// Parameters that the ranks do not divide.
// RUN: accel-opt opt %s --import-tp-plan --split-input-file --verify-diagnostics

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
sharding.module "model" class "LlamaModel"
// expected-error @+1 {{'model.layers.0.self_attn.k_proj.weight' has 6 output features, which 4 ranks of 'tp' do not divide (colwise); 2, 3, 6 would fit}}
sharding.param "model.layers.0.self_attn.k_proj.weight" : tensor<6x8xf32> init <zeros>

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.module "encoder" class "T5Stack"
// expected-error @+1 {{'encoder.block.0.layer.1.DenseReluDense.wo.weight' has 7 input features, which 2 ranks of 'tp' do not divide (rowwise); 7 would fit}}
sharding.param "encoder.block.0.layer.1.DenseReluDense.wo.weight" : tensor<8x7xf32> init <zeros>

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 4>]
sharding.module "" class "GPT2Model"
// expected-error @+1 {{'h.0.attn.c_attn.bias' has 3 layers of 6 output features, which 4 ranks of 'tp' do not divide (packed_colwise); 2, 3, 6 would fit}}
sharding.param "h.0.attn.c_attn.bias" : tensor<18xf32> init <zeros>

// -----

sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.module "" class "GPT2Model"
// expected-error @+1 {{'h.0.attn.c_attn.bias' has 16 output features, which are no 3 layers of one size (packed_colwise)}}
sharding.param "h.0.attn.c_attn.bias" : tensor<16xf32> init <zeros>

// -----

sharding.mesh @mesh [#sharding.axis<"ep" = 4>]
sharding.module "" class "Qwen3MoeModel"
// expected-error @+1 {{'layers.0.mlp.experts.down_proj' has 6 experts, which 4 ranks of 'ep' do not divide (grouped_gemm); 2, 3, 6 would fit}}
sharding.param "layers.0.mlp.experts.down_proj" : tensor<6x8x6xf32> init <zeros>
