// Which parameters a family's plan shards, and why.
// RUN: accel-opt opt %s --import-tp-plan --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: sharding.param "model.embed_tokens.weight" : tensor<32x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"base_model_tp_plan of LlamaModel: embedding_rowwise">>}
// CHECK: sharding.param "model.layers.0.self_attn.q_proj.weight" : tensor<8x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"base_model_tp_plan of LlamaModel: colwise">>}
// CHECK: sharding.param "model.layers.0.self_attn.q_proj.bias" : tensor<8xf32> init <zeros> {spec = #sharding.spec<["tp"] because <"base_model_tp_plan of LlamaModel: colwise">>}
// A bias behind rows is added once, so it is whole.
// CHECK: sharding.param "model.layers.0.self_attn.o_proj.weight" : tensor<8x8xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"base_model_tp_plan of LlamaModel: rowwise">>}
// CHECK: sharding.param "model.layers.0.self_attn.o_proj.bias" : tensor<8xf32> init <zeros>{{$}}
// What is there stays.
// CHECK: sharding.param "model.layers.0.mlp.gate_proj.weight" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<[], [] because <"asked" at "job.yaml" : 3 : 5>>}
// CHECK: sharding.param "model.norm.weight" : tensor<8xf32> init <zeros>{{$}}
// CHECK: sharding.param "lm_head.weight" : tensor<32x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"base_model_tp_plan of LlamaModel: colwise_gather_output">>}
sharding.mesh @mesh [#sharding.axis<"dp_shard" = 2>, #sharding.axis<"tp" = 4>]
sharding.module "" class "LlamaForCausalLM"
sharding.module "model" class "LlamaModel"
sharding.param "model.embed_tokens.weight" : tensor<32x8xf32> init <zeros>
sharding.param "model.layers.0.self_attn.q_proj.weight" : tensor<8x8xf32> init <zeros>
sharding.param "model.layers.0.self_attn.q_proj.bias" : tensor<8xf32> init <zeros>
sharding.param "model.layers.0.self_attn.o_proj.weight" : tensor<8x8xf32> init <zeros>
sharding.param "model.layers.0.self_attn.o_proj.bias" : tensor<8xf32> init <zeros>
sharding.param "model.layers.0.mlp.gate_proj.weight" : tensor<16x8xf32> init <zeros> {spec = #sharding.spec<[], [] because <"asked" at "job.yaml" : 3 : 5>>}
sharding.param "model.norm.weight" : tensor<8xf32> init <zeros>
sharding.param "lm_head.weight" : tensor<32x8xf32> init <zeros>

// -----

// The weights of Conv1D are [in, out]; of three layers in one each is cut.
// CHECK-LABEL: GPT2LMHeadModel
// CHECK: sharding.param "transformer.h.0.attn.c_attn.weight" : tensor<8x24xf32> init <zeros> {spec = #sharding.spec<[], [3, "tp"] because <"derived plan of GPT2Model: packed_colwise">>}
// CHECK: sharding.param "transformer.h.0.attn.c_attn.bias" : tensor<24xf32> init <zeros> {spec = #sharding.spec<[3, "tp"] because <"derived plan of GPT2Model: packed_colwise">>}
// CHECK: sharding.param "transformer.h.0.attn.c_proj.weight" : tensor<8x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"derived plan of GPT2Model: rowwise">>}
// CHECK: sharding.param "transformer.h.0.mlp.c_fc.weight" : tensor<8x32xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"derived plan of GPT2Model: colwise">>}
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.module "" class "GPT2LMHeadModel"
sharding.module "transformer" class "GPT2Model"
sharding.module "transformer.h.0.attn.c_attn" class "Conv1D"
sharding.module "transformer.h.0.attn.c_proj" class "Conv1D"
sharding.module "transformer.h.0.mlp.c_fc" class "Conv1D"
sharding.param "transformer.h.0.attn.c_attn.weight" : tensor<8x24xf32> init <zeros>
sharding.param "transformer.h.0.attn.c_attn.bias" : tensor<24xf32> init <zeros>
sharding.param "transformer.h.0.attn.c_proj.weight" : tensor<8x8xf32> init <zeros>
sharding.param "transformer.h.0.mlp.c_fc.weight" : tensor<8x32xf32> init <zeros>

// -----

// Layers of different sizes in one are whole; experts' halves are cut each.
// CHECK-LABEL: GPTBigCodeModel
// CHECK: sharding.param "h.0.attn.c_attn.weight" : tensor<12x8xf32> init <zeros>{{$}}
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.module "" class "GPTBigCodeModel"
// expected-remark @+1 {{'h.*.attn.c_attn' holds layers of different sizes side by side (packed_colwise): every rank has it whole}}
sharding.param "h.0.attn.c_attn.weight" : tensor<12x8xf32> init <zeros>

// -----

// CHECK-LABEL: Qwen3MoeModel
// CHECK: sharding.param "layers.0.mlp.experts.gate_up_proj" : tensor<4x12x8xf32> init <zeros> {spec = #sharding.spec<[], [2, "tp"], [] because <"base_model_tp_plan of Qwen3MoeModel: packed_colwise">>}
// CHECK: sharding.param "layers.0.mlp.experts.down_proj" : tensor<4x8x6xf32> init <zeros> {spec = #sharding.spec<[], [], ["tp"] because <"base_model_tp_plan of Qwen3MoeModel: rowwise">>}
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.module "" class "Qwen3MoeModel"
sharding.param "layers.0.mlp.experts.gate_up_proj" : tensor<4x12x8xf32> init <zeros>
sharding.param "layers.0.mlp.experts.down_proj" : tensor<4x8x6xf32> init <zeros>

// -----

// Whole experts over ep, and everything else over tp.
// CHECK: sharding.axis<"ep" = 4>
// CHECK: sharding.param "layers.0.self_attn.q_proj.weight" : tensor<8x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"base_model_tp_plan of MixtralModel: colwise">>}
// CHECK: sharding.param "layers.0.mlp.experts.gate_up_proj" : tensor<4x12x8xf32> init <zeros> {spec = #sharding.spec<["ep"], [], [] because <"base_model_ep_plan of MixtralModel: grouped_gemm">>}
// CHECK: sharding.param "layers.0.mlp.experts.down_proj" : tensor<4x8x6xf32> init <zeros> {spec = #sharding.spec<["ep"], [], [] because <"base_model_ep_plan of MixtralModel: grouped_gemm">>}
sharding.mesh @mesh [#sharding.axis<"ep" = 4>, #sharding.axis<"tp" = 2>]
sharding.module "" class "MixtralModel"
sharding.param "layers.0.self_attn.q_proj.weight" : tensor<8x8xf32> init <zeros>
sharding.param "layers.0.mlp.experts.gate_up_proj" : tensor<4x12x8xf32> init <zeros>
sharding.param "layers.0.mlp.experts.down_proj" : tensor<4x8x6xf32> init <zeros>

// -----

// Without tp, experts alone.
// CHECK-LABEL: sharding.mesh @mesh [#sharding.axis<"ep" = 2>]
// CHECK: sharding.param "layers.0.self_attn.q_proj.weight" : tensor<8x8xf32> init <zeros>{{$}}
// CHECK: sharding.param "layers.0.mlp.experts.down_proj" : tensor<4x8x6xf32> init <zeros> {spec = #sharding.spec<["ep"], [], []
sharding.mesh @mesh [#sharding.axis<"ep" = 2>]
sharding.module "" class "MixtralModel"
sharding.param "layers.0.self_attn.q_proj.weight" : tensor<8x8xf32> init <zeros>
sharding.param "layers.0.mlp.experts.down_proj" : tensor<4x8x6xf32> init <zeros>

// -----

// A vocabulary of any size.
// CHECK-LABEL: Qwen2ForCausalLM
// CHECK: sharding.param "lm_head.weight" : tensor<33x8xf32> init <zeros>{{$}}
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.module "" class "Qwen2ForCausalLM"
sharding.module "model" class "Qwen2Model"
// expected-remark @+1 {{'lm_head.weight' has 33 rows, which 2 ranks of 'tp' do not divide: every rank has it whole}}
sharding.param "lm_head.weight" : tensor<33x8xf32> init <zeros>

// -----

// One rank has everything.
// CHECK: sharding.axis<"tp" = 1>
// CHECK: sharding.param "model.layers.0.mlp.up_proj.weight" : tensor<16x8xf32> init <zeros>{{$}}
sharding.mesh @mesh [#sharding.axis<"tp" = 1>]
sharding.module "model" class "LlamaModel"
sharding.param "model.layers.0.mlp.up_proj.weight" : tensor<16x8xf32> init <zeros>

// -----

// CHECK-LABEL: UnknownModel
// expected-remark @+1 {{no tensor-parallel plan is known for this model: every rank of 'tp' has whole parameters, unless they have a 'spec'}}
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.module "model" class "UnknownModel"
sharding.param "model.layers.0.mlp.up_proj.weight" : tensor<16x8xf32> init <zeros>

// -----

// PEFT's matrices: B makes what a column-wise layer makes, A reads what a
// row-wise layer reads; the others are whole.
// CHECK-LABEL: PeftModel
// CHECK: sharding.param "base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight" : tensor<8x8xf32> init <zeros> frozen {spec = #sharding.spec<["tp"], [] because <"base_model_tp_plan of LlamaModel: colwise">>}
// CHECK: q_proj.lora_A.default.weight" : tensor<2x8xf32> init <zeros>{{$}}
// CHECK: q_proj.lora_B.default.weight" : tensor<8x2xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"base_model_tp_plan of LlamaModel: colwise">>}
// CHECK: o_proj.lora_A.default.weight" : tensor<2x8xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"base_model_tp_plan of LlamaModel: rowwise">>}
// CHECK: o_proj.lora_B.default.weight" : tensor<8x2xf32> init <zeros>{{$}}
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.module "" class "PeftModel"
sharding.module "base_model.model.model" class "LlamaModel"
sharding.param "base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight" : tensor<8x8xf32> init <zeros> frozen
sharding.param "base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight" : tensor<2x8xf32> init <zeros>
sharding.param "base_model.model.model.layers.0.self_attn.q_proj.lora_B.default.weight" : tensor<8x2xf32> init <zeros>
sharding.param "base_model.model.model.layers.0.self_attn.o_proj.lora_A.default.weight" : tensor<2x8xf32> init <zeros>
sharding.param "base_model.model.model.layers.0.self_attn.o_proj.lora_B.default.weight" : tensor<8x2xf32> init <zeros>

// -----

// A plan names the base model's layers: a tower whose modules have the same
// names is whole, and the head lies beside the base model.
// CHECK-LABEL: LlavaForConditionalGeneration
// CHECK: sharding.param "model.vision_tower.encoder.layers.0.self_attn.q_proj.weight" : tensor<8x8xf32> init <zeros>{{$}}
// CHECK: sharding.param "model.language_model.layers.0.self_attn.q_proj.weight" : tensor<8x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"base_model_tp_plan of LlamaModel: colwise">>}
// CHECK: sharding.param "lm_head.weight" : tensor<32x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"base_model_tp_plan of LlamaModel: colwise_gather_output">>}
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.module "" class "LlavaForConditionalGeneration"
sharding.module "model.vision_tower" class "CLIPVisionModel"
sharding.module "model.language_model" class "LlamaModel"
sharding.param "model.vision_tower.encoder.layers.0.self_attn.q_proj.weight" : tensor<8x8xf32> init <zeros>
sharding.param "model.language_model.layers.0.self_attn.q_proj.weight" : tensor<8x8xf32> init <zeros>
sharding.param "lm_head.weight" : tensor<32x8xf32> init <zeros>

// -----

// A name that begins with that of the base model is not in it.
// CHECK-LABEL: Qwen2_5_VLTextModel
// CHECK: sharding.param "model.language_model.layers.0.mlp.down_proj.weight" : tensor<8x16xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"base_model_tp_plan of Qwen2_5_VLTextModel: rowwise">>}
// CHECK: sharding.param "model.language_model_2.layers.0.mlp.down_proj.weight" : tensor<8x16xf32> init <zeros>{{$}}
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.module "model.language_model" class "Qwen2_5_VLTextModel"
sharding.param "model.language_model.layers.0.mlp.down_proj.weight" : tensor<8x16xf32> init <zeros>
sharding.param "model.language_model_2.layers.0.mlp.down_proj.weight" : tensor<8x16xf32> init <zeros>

// -----

// What transformers leaves whole, by a plan derived here.
// CHECK-LABEL: Qwen3VLTextModel
// CHECK: sharding.param "model.language_model.layers.0.mlp.down_proj.weight" : tensor<8x16xf32> init <zeros> {spec = #sharding.spec<[], ["tp"] because <"derived plan of Qwen3VLTextModel: rowwise">>}
// CHECK: sharding.param "lm_head.weight" : tensor<32x8xf32> init <zeros> {spec = #sharding.spec<["tp"], [] because <"base_model_tp_plan of Qwen3VLTextModel: colwise_gather_output">>}
sharding.mesh @mesh [#sharding.axis<"tp" = 2>]
sharding.module "model.language_model" class "Qwen3VLTextModel"
sharding.param "model.language_model.layers.0.mlp.down_proj.weight" : tensor<8x16xf32> init <zeros>
sharding.param "lm_head.weight" : tensor<32x8xf32> init <zeros>
