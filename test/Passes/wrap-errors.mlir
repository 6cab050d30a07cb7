// RUN: accel-opt opt %s --wrap --split-input-file --verify-diagnostics

// expected-error @+1 {{wrap needs a sharding.mesh and a sharding.request "wrap"}}
module {
  sharding.mesh @mesh []
}

// -----

sharding.mesh @mesh []
// expected-error @+1 {{'sharding.request' op asks for the policy 'LAYERS', expected TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP or NO_WRAP}}
sharding.request "wrap" {policy = "LAYERS"} because <"x">
sharding.module "" class "Model"

// -----

sharding.mesh @mesh []
// expected-error @+2 {{could not find the transformer layer class 'Block' in the model}}
// expected-note @+1 {{classes of this model with layers: 'Layer'}}
sharding.request "wrap" {classes = ["Block"], policy = "TRANSFORMER_BASED_WRAP"} because <"x">
sharding.module "" class "Model"
sharding.module "layer" class "Layer"
sharding.module "layer.proj" class "Linear"
sharding.param "layer.proj.weight" : tensor<4xf32> init <ones>

// -----

sharding.mesh @mesh []
// expected-error @+2 {{fsdp_ignored_modules 'norm' matches no module of the model}}
// expected-note @+1 {{it is matched against whole module names such as 'model.layers.0'}}
sharding.request "wrap" {ignored_modules = "norm"} because <"x">
sharding.module "" class "Model"
sharding.module "final_norm" class "Norm"

// -----

sharding.mesh @mesh []
// expected-error @+2 {{fsdp_ignored_modules is no regular expression}}
// expected-note @+1 {{it is matched against whole module names}}
sharding.request "wrap" {ignored_modules = "(("} because <"x">
sharding.module "" class "Model"

// -----

sharding.mesh @mesh []
// expected-error @+2 {{SIZE_BASED_WRAP with fsdp_min_num_params 3 matches the ModuleList 'layers', which FSDP2 cannot wrap: every rank would raise}}
// expected-note @+1 {{use TRANSFORMER_BASED_WRAP}}
sharding.request "wrap" {fsdp_version = 2 : i64, min_params = 3 : i64, policy = "SIZE_BASED_WRAP"} because <"x">
sharding.module "" class "Model"
sharding.module "layers" class "ModuleList"
sharding.module "layers.0" class "Layer"
sharding.param "layers.0.weight" : tensor<4xf32> init <ones>

// -----

sharding.mesh @mesh []
// expected-error @+1 {{the model has no root module}}
sharding.request "wrap" {} because <"x">
sharding.module "model" class "Model"
sharding.param "model.weight" : tensor<4xf32> init <ones>
