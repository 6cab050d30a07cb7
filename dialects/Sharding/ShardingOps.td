//===- ShardingOps.td - Operations of the sharding dialect -*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SHARDING_OPS_TD
#define ACCEL_DIALECTS_SHARDING_OPS_TD

include "dialects/Sharding/ShardingAttrs.td"
include "dialects/Sharding/CollectiveOps.td"
include "dialects/Sharding/UnitAttrs.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def Sharding_MeshOp : Sharding_Op<"mesh", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "the device mesh";
  let description = [{
    Named axes; the last one varies fastest with the rank. FSDP knows
    `dp_replicate` and `dp_shard`.

    ```mlir
    sharding.mesh @mesh [#sharding.axis<"dp_replicate" = 2>, #sharding.axis<"dp_shard" = 4>]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypedArrayAttrBase<Sharding_AxisAttr, "axes">:$axes);
  let assemblyFormat = "$sym_name $axes attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Size of the axis, 1 if the mesh has no axis of this name.
    int64_t axisSize(::llvm::StringRef name);
    int64_t numRanks();
  }];
}

def Sharding_JobOp : Sharding_Op<"job", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "what a rank computes per optimizer step";
  let description = [{
    Sequences of `sequence_length` tokens, `micro_batch` of them at a time (0:
    samples that have no tokens), on a device `cpu` or `cuda`, by `framework`
    (accel-run without one). Job-wide decisions hang here. `hold_outputs`: the
    script keeps the model's outputs until the backward has run. `capability` is the
    CUDA compute capability of the device, where it is known. `anatomy` names the places of the model that wrapping knows: `no_split` (classes), `base`,
    `input_embedding`, `output_embedding`. `training` holds what only the
    runtime reads (optimizer, schedule, data, checkpoints).
  }];
  let arguments = (ins StrAttr:$model, I64Attr:$micro_batch,
                       I64Attr:$sequence_length, StrAttr:$device,
                       OptionalAttr<Sharding_AccumulationAttr>:$accumulation,
                       OptionalAttr<Sharding_PrefetchAttr>:$prefetch,
                       OptionalAttr<Sharding_UpdateAttr>:$update,
                       OptionalAttr<Sharding_CheckpointAttr>:$checkpoint,
                       OptionalAttr<DictionaryAttr>:$anatomy,
                       OptionalAttr<DictionaryAttr>:$training,
                       OptionalAttr<Sharding_FrameworkAttr>:$framework,
                       OptionalAttr<Sharding_OffloadAttr>:$offload,
                       OptionalAttr<Sharding_OptimizerStepAttr>:$optimizer_step,
                       OptionalAttr<Sharding_DdpAttr>:$ddp,
                       OptionalAttr<Sharding_ZeroAttr>:$zero,
                       OptionalAttr<Sharding_MegatronAttr>:$megatron,
                       OptionalAttr<Sharding_CompileAttr>:$compile,
                       OptionalAttr<Sharding_Fp8Attr>:$fp8,
                       OptionalAttr<I64Attr>:$ranks_per_node,
                       UnitAttr:$hold_outputs,
                       OptionalAttr<F64Attr>:$capability,
                       OptionalAttr<Sharding_ReductionsAttr>:$reductions,
                       OptionalAttr<Sharding_GathersAttr>:$gathers);
  let assemblyFormat = [{
    $model `micro_batch` $micro_batch `sequence_length` $sequence_length
    `device` $device attr-dict
  }];
  let hasVerifier = 1;
}

def Sharding_RequestOp
    : Sharding_Op<"request", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "what the configuration asks a pass to decide";
  let description = [{
    One per subject (`wrap`, `precision`, `reshard`, `checkpoint`, `loss`, `prefetch`,
    `accumulation`, `update`, `offload`, `optimizer`, `ddp`, `zero`, `megatron`, `compile`, `fp8`, `sequence_parallel`, `experts`). The pass that decides the subject reads `value`
    and copies `because` into its decisions.

    ```mlir
    sharding.request "reshard" {after_forward = true} because <"fsdp_reshard_after_forward: true" at "fsdp.yaml" : 9 : 3>
    ```
  }];
  let arguments = (ins StrAttr:$what, DictionaryAttr:$value,
                       Sharding_BecauseAttr:$because);
  let assemblyFormat = "$what $value `because` $because attr-dict";
}

def Sharding_ModuleOp : Sharding_Op<"module", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "a module of the model: FQN and class";
  let description = [{
    In the order of `named_modules()`; the tree is the one of the FQNs. The
    root has the empty FQN.

    ```mlir
    sharding.module "model.layers.0" class "LlamaDecoderLayer"
    ```
  }];
  let arguments = (ins StrAttr:$fqn, StrAttr:$class_name);
  let assemblyFormat = "$fqn `class` $class_name attr-dict";
}

def Sharding_ParamOp : Sharding_Op<"param", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "a parameter, in the order of named_parameters()";
  let description = [{
    `aliases` are further FQNs of a tied parameter. The wrap pass sets `unit`.
    `stored` are the tensors of a checkpoint that the parameter is made of, where
    they are not it under its FQN (plan::Parameter::stored). An adapter renames
    parameters: `base_names` are the FQN and aliases in the model without it,
    `adapter_key` the name in the adapter's weight file. `keeps_dtype` is set
    where the type is the parameter's own, whatever dtype the model is loaded in.
    `spec` is how the parameter is sharded for computation; what a unit shards
    further is each rank's part of it.

    ```mlir
    sharding.param "model.norm.weight" : tensor<512xf32> init <ones>
    ```
  }];
  let arguments = (ins StrAttr:$fqn, TypeAttr:$type,
                       Sharding_InitAttr:$init,
                       OptionalAttr<StrArrayAttr>:$aliases,
                       UnitAttr:$frozen,
                       OptionalAttr<StrAttr>:$unit,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$group,
                       OptionalAttr<StrArrayAttr>:$stored,
                       OptionalAttr<StrArrayAttr>:$base_names,
                       OptionalAttr<StrAttr>:$adapter_key,
                       UnitAttr:$keeps_dtype,
                       OptionalAttr<Sharding_SpecAttr>:$spec);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$fqn,
      "::mlir::Type":$type, "::accel::sharding::InitAttr":$init,
      "::mlir::ArrayAttr":$aliases, "bool":$frozen,
      "::mlir::StringAttr":$unit, "int64_t":$group,
      "::mlir::ArrayAttr":$stored), [{
    build($_builder, $_state, fqn, type, init, aliases, frozen, unit, group,
          stored, ::mlir::ArrayAttr(), ::mlir::StringAttr(),
          /*keeps_dtype=*/false, ::accel::sharding::SpecAttr());
  }]>];
  let assemblyFormat = [{
    $fqn `:` $type `init` $init (`aliases` $aliases^)? (`stored` $stored^)?
    (`frozen` $frozen^)?
    (`in` $unit^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType();
    int64_t numel();
  }];
}

def Sharding_BufferOp : Sharding_Op<"buffer", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "a tensor of the model that is not trained";
  let description = [{
    Its values come from the model's archive, or from its weight files; without
    either they are zeros. The graph has an argument of its
    name, and every rank holds all of it.

    ```mlir
    sharding.buffer "model.rotary_emb.inv_freq" : tensor<32xf32>
    ```
  }];
  let arguments = (ins StrAttr:$fqn, TypeAttr:$type, UnitAttr:$persistent);
  let assemblyFormat = "$fqn `:` $type (`persistent` $persistent^)? attr-dict";
}

def Sharding_UnitOp : Sharding_Op<"unit", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "parameters that are stored, gathered and reduced together";
  let description = [{
    `modules` are the FQNs that the unit was made of, `params` its parameters
    in flat order. Axes name the mesh; each further attribute is a decision.
    `keep_gathered` marks the units that Accelerate and torch do not reshard
    after the forward whatever the YAML says: the tail and the root.
  }];
  let arguments = (ins StrAttr:$name, StrArrayAttr:$modules,
                       StrArrayAttr:$params,
                       StrArrayAttr:$shard_axes, StrArrayAttr:$replicate_axes,
                       Sharding_WrapAttr:$wrap, UnitAttr:$keep_gathered,
                       OptionalAttr<Sharding_PrecisionAttr>:$precision,
                       OptionalAttr<Sharding_ReshardAttr>:$reshard);
  let assemblyFormat = [{
    $name `modules` $modules `shard` $shard_axes `replicate` $replicate_axes
    `params` $params attr-dict
  }];
  let hasVerifier = 1;
}

def Sharding_GraphOp : Sharding_Op<"graph", [
    Symbol, HasParent<"::mlir::ModuleOp">, IsolatedFromAbove,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    SingleBlockImplicitTerminator<"::accel::sharding::ReturnOp">]> {
  let summary = "one forward pass as calls of segment functions";
  let description = [{
    Arguments are the batch (named by the `arg_names`), the one result is the
    0-d loss.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$arg_names);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Sharding_ReturnOp : Sharding_Op<"return", [
    Pure, Terminator, ParentOneOf<["::accel::sharding::GraphOp"]>]> {
  let summary = "ends a graph with the loss";
  let arguments = (ins Variadic<AnyRankedTensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, ::mlir::ValueRange());
  }]>];
}

def Sharding_CallOp : Sharding_Op<"call", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    ParentOneOf<["::accel::sharding::GraphOp"]>]> {
  let summary = "calls a segment function at a module path";
  let description = [{
    The callee's arguments without `sharding.param` take the operands in
    order; those with it bind to the parameter `path.name` (`name` where the
    path is empty). One function serves all identical layers.

    ```mlir
    %1 = sharding.call @LlamaDecoderLayer(%0, %cos, %sin) at "model.layers.0" : (tensor<2x512x512xf32>, tensor<512x64xf32>, tensor<512x64xf32>) -> tensor<2x512x512xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
                       Variadic<AnyRankedTensor>:$operands, StrAttr:$path,
                       OptionalAttr<Sharding_CheckpointAttr>:$checkpoint);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $callee `(` $operands `)` `at` $path attr-dict `:`
    functional-type($operands, $results)
  }];
  let extraClassDeclaration = [{
    /// FQN of the callee's parameter `name` when called from here.
    std::string bindParam(::llvm::StringRef name);
  }];
}

#endif // ACCEL_DIALECTS_SHARDING_OPS_TD
