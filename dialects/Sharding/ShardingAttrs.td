//===- ShardingAttrs.td - Axes and decisions ---------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SHARDING_ATTRS_TD
#define ACCEL_DIALECTS_SHARDING_ATTRS_TD

include "dialects/Sharding/ShardingBase.td"

def Sharding_AxisAttr : Sharding_Attr<"Axis", "axis"> {
  let summary = "a named mesh axis and its size";
  let parameters = (ins StringRefParameter<"axis name">:$name,
                        "int64_t":$size);
  let assemblyFormat = "`<` $name `=` $size `>`";
  let genVerifyDecl = 1;
}

def Sharding_BecauseAttr : Sharding_Attr<"Because", "because"> {
  let summary = "why a decision was taken, and which line asked for it";
  let description = [{
    `file` is empty and `line` 0 where a default decided. Example:

    ```mlir
    #sharding.because<"fsdp_reshard_after_forward: true" at "fsdp.yaml" : 9 : 3>
    #sharding.because<"default: the next gather hides behind compute">
    ```
  }];
  let parameters = (ins StringRefParameter<"one sentence">:$why,
                        OptionalParameter<"::mlir::StringAttr">:$file,
                        DefaultValuedParameter<"int64_t", "0">:$line,
                        DefaultValuedParameter<"int64_t", "0">:$column);
  // A string attribute would take the colon after it for its type's.
  let assemblyFormat = [{
    `<` custom<Reason>($why, $file, $line, $column) `>`
  }];
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$why), [{
    return $_get($_ctxt, why, ::mlir::StringAttr(), 0, 0);
  }]>];
}

def Sharding_FrameworkAttr : Sharding_Attr<"Framework", "framework"> {
  let summary = "who runs the job, and in which releases";
  let description = [{
    `name` as `--executor` spells it; deciding passes ask that framework
    (passes/Frameworks) what it does. A job without one is run by accel-run.

    ```mlir
    #sharding.framework<"fsdp2" torch "2.15" accelerate "1.15.0">
    ```
  }];
  let parameters = (ins StringRefParameter<"accel-run, fsdp2, ...">:$name,
                        StringRefParameter<"release of torch">:$torch,
                        StringRefParameter<"release of Accelerate">:$accelerate);
  let assemblyFormat = "`<` $name `torch` $torch `accelerate` $accelerate `>`";
  let genVerifyDecl = 1;
}

def Sharding_PrecisionAttr : Sharding_Attr<"Precision", "precision"> {
  let summary = "the dtypes of a unit";
  let description = [{
    `storage`: the parameters between steps; `compute`: what is gathered and
    computed with; `reduce`: gradients on the wire; `output`: the model's
    floating-point outputs. `gradient` (what the optimizer reads) and `state`
    (each of its states) are left out where they are `storage`. `autocast`:
    torch.autocast casts operands to `compute`, parameters stay in `storage`.
    `master_copy`: the optimizer holds an fp32 copy of the parameters.
  }];
  let parameters = (ins "::mlir::Type":$storage, "::mlir::Type":$compute,
                        "::mlir::Type":$reduce, "::mlir::Type":$output,
                        "::accel::sharding::BecauseAttr":$because,
                        OptionalParameter<"::mlir::Type">:$gradient,
                        OptionalParameter<"::mlir::Type">:$state,
                        DefaultValuedParameter<"bool", "false">:$autocast,
                        DefaultValuedParameter<"bool", "false">:$masterCopy);
  let assemblyFormat = [{
    `<` `storage` `=` $storage `,` `compute` `=` $compute `,`
        `reduce` `=` $reduce `,` `output` `=` $output
        (`gradient` $gradient^)? (`state` $state^)? (`autocast` $autocast^)?
        (`master_copy` $masterCopy^)? `,` `because` `=` $because `>`
  }];
  let builders = [AttrBuilder<(ins "::mlir::Type":$storage,
      "::mlir::Type":$compute, "::mlir::Type":$reduce, "::mlir::Type":$output,
      "::accel::sharding::BecauseAttr":$because), [{
    return $_get($_ctxt, storage, compute, reduce, output, because,
                 ::mlir::Type(), ::mlir::Type(), false, false);
  }]>];
  let genVerifyDecl = 1;
}

def Sharding_DiskAttr : Sharding_Attr<"Disk", "disk"> {
  let summary = "what only the update reads is in a file of each rank";
  let description = [{
    `buffers` of the host take a unit each, beside its update: `read_ahead` of
    it and `write_behind` it. `block` bytes are a request, `depth` requests and
    `threads` are there at once (plan::Disk).
  }];
  let parameters = (ins "::mlir::StringAttr":$folder, "int64_t":$buffers,
                        "bool":$readAhead, "bool":$writeBehind,
                        "int64_t":$block, "int64_t":$depth,
                        "int64_t":$threads);
  let assemblyFormat = [{
    `<` $folder `,` `buffers` `=` $buffers `,` `read_ahead` `=` $readAhead `,`
        `write_behind` `=` $writeBehind `,` `block` `=` $block `,`
        `depth` `=` $depth `,` `threads` `=` $threads `>`
  }];
}

def Sharding_OffloadAttr : Sharding_Attr<"Offload", "offload"> {
  let summary = "what waits in host memory";
  let description = [{
    `parameters` (with their gradients), `optimizer` states with the update,
    and `activations`: of frameworks the saved inputs of recomputed layers, of
    accel-run all that calls save for their backward. With `disk` the states
    are on a drive of the host.
  }];
  let parameters = (ins "bool":$parameters, "bool":$optimizer,
                        "bool":$activations,
                        "::accel::sharding::BecauseAttr":$because,
                        OptionalParameter<
                            "::accel::sharding::DiskAttr">:$disk);
  let assemblyFormat = [{
    `<` `parameters` `=` $parameters `,` `optimizer` `=` $optimizer `,`
        `activations` `=` $activations (`disk` $disk^)? `,`
        `because` `=` $because `>`
  }];
}

def Sharding_ExpertsAttr : Sharding_Attr<"Experts", "experts"> {
  let summary = "over which axes ranks share experts, and how unevenly";
  let description = [{
    Tensors of the rows that a rank's experts get are allocated for `imbalance`
    times the rows that it would get if every expert got as many. With
    `sorts_again` the rank sorts the rows that came by expert once more, and
    results go back before they are weighted, as transformers' experts do it.
    Where ranks of an axis read the same samples (tp), each sends the rows of a
    part of the tokens, and what comes back is gathered.

    ```mlir
    #sharding.experts<["ep"], 2.000000e+00 : f64, because = <"mesh: {ep: 2}">>
    ```
  }];
  let parameters = (ins "::mlir::ArrayAttr":$axes,
                        "::mlir::FloatAttr":$imbalance,
                        "::accel::sharding::BecauseAttr":$because,
                        DefaultValuedParameter<"bool", "false">:$sortsAgain);
  let assemblyFormat = [{
    `<` $axes `,` $imbalance `,` `because` `=` $because
        (`,` `sorts_again` `=` $sortsAgain^)? `>`
  }];
}

def Sharding_CompileRegions : I32EnumAttr<"CompileRegions",
    "what torch.compile compiles as one graph", [
      I32EnumAttrCase<"Layers", 0, "layers">,
      I32EnumAttrCase<"Model", 1, "model">]> {
  let cppNamespace = "::accel::sharding";
}

def Sharding_CompileEnds : I32EnumAttr<"CompileEnds",
    "where compiled graphs end", [
      I32EnumAttrCase<"Functions", 0, "functions">,
      I32EnumAttrCase<"Buckets", 1, "buckets">,
      I32EnumAttrCase<"Modules", 2, "modules">]> {
  let cppNamespace = "::accel::sharding";
}

def Sharding_CompileAttr : Sharding_Attr<"Compile", "compile"> {
  let summary = "which functions torch.compile compiles with Inductor";
  let description = [{
    `layers`: each repeated layer by itself, all else runs operator by operator.
    `model`: every function of the model. What a compiled function saves for its
    backward follows from the rules of torch's min-cut partitioner
    (passes/StepModel/CompiledCut.h).

    `ends` says where graphs end. `functions`: with the functions. `buckets`:
    inside of them too, where a bucket of DDP's gradients is full (DDPOptimizer,
    torch/_dynamo/backends/distributed.py). `modules`: around each module, as
    the hooks of ZeRO-3 are under torch.compiler.disable
    (deepspeed/runtime/zero/parameter_offload.py).

    `replays`: kernels are recorded once and replayed as CUDA graphs, whose
    tensors are in a pool of their own (torch/_inductor/cudagraph_trees.py).

    ```mlir
    #sharding.compile<layers, ends = functions, replays = false, because = <"dynamo_use_regional_compilation: true">>
    ```
  }];
  let parameters = (ins EnumParameter<Sharding_CompileRegions>:$regions,
                        EnumParameter<Sharding_CompileEnds>:$ends,
                        "bool":$replays,
                        "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = [{
    `<` $regions `,` `ends` `=` $ends `,` `replays` `=` $replays `,`
        `because` `=` $because `>`
  }];
}

def Sharding_Fp8Recipe : I32EnumAttr<"Fp8Recipe",
    "how the operands of linear layers are scaled to fp8", [
      I32EnumAttrCase<"Tensorwise", 0, "tensorwise">,
      I32EnumAttrCase<"Rowwise", 1, "rowwise">,
      I32EnumAttrCase<"RowwiseGradWeight", 2, "rowwise_with_gw_hp">,
      I32EnumAttrCase<"Delayed", 3, "te">]> {
  let cppNamespace = "::accel::sharding";
}

def Sharding_Fp8Attr : Sharding_Attr<"Fp8", "fp8"> {
  let summary = "linear layers whose matmuls have fp8 operands";
  let description = [{
    The first three recipes are torchao's (torchao/float8/config.py), `te` is
    TransformerEngine's DelayedScaling with `amax_history` steps. `gathers`:
    FSDP2 gathers the weights in fp8 and scales them by precomputed factors.
    The parameters that are converted have the attribute `sharding.fp8`.

    ```mlir
    #sharding.fp8<tensorwise, gathers = true, amax_history = 0, because = <"fp8_backend: AO">>
    ```
  }];
  let parameters = (ins EnumParameter<Sharding_Fp8Recipe>:$recipe,
                        "bool":$gathers, "int64_t":$amaxHistory,
                        "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = [{
    `<` $recipe `,` `gathers` `=` $gathers `,` `amax_history` `=` $amaxHistory
        `,` `because` `=` $because `>`
  }];
}

def Sharding_OptimizerKernel : I32EnumAttr<"OptimizerKernel",
    "how an optimizer's update is launched", [
      I32EnumAttrCase<"Fused", 0, "fused">,
      I32EnumAttrCase<"Foreach", 1, "foreach">,
      I32EnumAttrCase<"ForLoop", 2, "for_loop">]> {
  let cppNamespace = "::accel::sharding";
}

def Sharding_OptimizerStepAttr
    : Sharding_Attr<"OptimizerStep", "optimizer_step"> {
  let summary = "the optimizer's kernel, and whether gradients are clipped";
  let description = [{
    `state`: the dtype of states that would have the parameter's, where the
    optimizer is told another one. `one_by_one`, `paged`, `wide_embeddings`:
    plan::UpdateHabits.
  }];
  let parameters = (ins EnumParameter<Sharding_OptimizerKernel>:$kernel,
                        "bool":$clip,
                        "::accel::sharding::BecauseAttr":$because,
                        OptionalParameter<"::mlir::Type">:$state,
                        DefaultValuedParameter<"bool", "false">:$oneByOne,
                        DefaultValuedParameter<"bool", "false">:$paged,
                        DefaultValuedParameter<"bool", "false">:$wideEmbeddings);
  let assemblyFormat = [{
    `<` $kernel (`state` $state^)? (`one_by_one` `=` $oneByOne^)?
        (`paged` `=` $paged^)? (`wide_embeddings` `=` $wideEmbeddings^)? `,` `clip` `=` $clip `,`
        `because` `=` $because `>`
  }];
}

def Sharding_DdpAttr : Sharding_Attr<"Ddp", "ddp"> {
  let summary = "how DistributedDataParallel buckets gradients";
  let description = [{
    Bytes of all buckets but the `first`, which torch keeps small so that
    reduction starts early; `hook` is the communication hook: "", "fp16",
    "bf16" or "powersgd".
  }];
  let parameters = (ins "int64_t":$bucketBytes, "int64_t":$firstBucketBytes,
                        "bool":$gradientAsBucketView,
                        StringRefParameter<"communication hook">:$hook,
                        "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = [{
    `<` `bucket` `=` $bucketBytes `,` `first` `=` $firstBucketBytes `,`
        `as_view` `=` $gradientAsBucketView `,` `hook` `=` $hook `,`
        `because` `=` $because `>`
  }];
  let genVerifyDecl = 1;
}

def Sharding_ZeroPlusAttr : Sharding_Attr<"ZeroPlus", "zero_plus"> {
  let summary = "ZeRO++ and MiCS: groups within the ranks, quantised wires";
  let description = [{
    `secondary`: so many neighbouring ranks hold one more copy of the gathered
    parameters between the first forward and the update, and gather from it
    (ZeRO++ hpZ; the axis `zero_hpz` of the mesh). `shard`: so many ranks share
    one copy of the model and its states (MiCS; the axis `dp_shard`). Both are 0
    where nothing is asked. `weights`: what is gathered has 8 bits on the wire;
    `gradients`: what crosses machines has 4.

    ```mlir
    #sharding.zero_plus<secondary = 8, shard = 0, weights = true, gradients = false, because = <"ZeRO++">>
    ```
  }];
  let parameters = (ins "int64_t":$secondary, "int64_t":$shard,
                        "bool":$weights, "bool":$gradients,
                        "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = [{
    `<` `secondary` `=` $secondary `,` `shard` `=` $shard `,`
        `weights` `=` $weights `,` `gradients` `=` $gradients `,`
        `because` `=` $because `>`
  }];
  let genVerifyDecl = 1;
}

def Sharding_ZeroAttr : Sharding_Attr<"Zero", "zero"> {
  let summary = "DeepSpeed's ZeRO stage and its buffers, in elements";
  let description = [{
    `sub_group`: stage 3 updates so many elements at a time; `plus`: ZeRO++ and
    MiCS, where they are asked for.
  }];
  let parameters = (ins "int64_t":$stage, "int64_t":$reduceBucket,
                        "int64_t":$prefetchBucket,
                        "int64_t":$persistenceThreshold,
                        "bool":$overlapCommunication,
                        "::accel::sharding::BecauseAttr":$because,
                        DefaultValuedParameter<"int64_t",
                            "defaultZeroSubGroup">:$subGroup,
                        OptionalParameter<
                            "::accel::sharding::ZeroPlusAttr">:$plus);
  let assemblyFormat = [{
    `<` `stage` `=` $stage `,` `reduce_bucket` `=` $reduceBucket `,`
        `prefetch_bucket` `=` $prefetchBucket `,`
        `persistence_threshold` `=` $persistenceThreshold `,`
        `overlap` `=` $overlapCommunication (`sub_group` $subGroup^)?
        (`plus` $plus^)? `,` `because` `=` $because `>`
  }];
  let genVerifyDecl = 1;
}

def Sharding_MegatronAttr : Sharding_Attr<"Megatron", "megatron"> {
  let summary = "Megatron-Core's optimizer, overlap and pipeline";
  let description = [{
    `distributed`: the optimizer's states are sharded over the data-parallel
    ranks. `overlap_gradients` and `overlap_parameters`: gradients leave during
    the last micro-batch's backward, and parameters come back during the next
    forward. `chunks`: each stage of the pipeline (the axis `pp` of the mesh)
    has so many chunks of layers, in turns (virtual pipeline stages);
    `last_layers`: those of the last one, where it has fewer than the others
    (decoder_last_pipeline_num_layers). `experts`:
    ranks that share the experts of a layer (expert_model_parallel_size), each of
    which `expert_tensor` ranks split; `overlap_tensor`: what layers exchange
    over tp is exchanged while their matmuls run (tp_comm_overlap).
    `sends_once`: a token's row goes to each rank once, not for each expert there
    (moe_token_dispatcher_type flex: DeepEP, HybridEP); `overlap_experts`: while
    another micro-batch computes (overlap_moe_expert_parallel_comm).

    ```mlir
    #sharding.megatron<distributed = true, overlap_gradients = false, overlap_parameters = false, chunks = 1, because = <"megatron_lm_config">>
    ```
  }];
  let parameters = (ins "bool":$distributed, "bool":$overlapGradients,
                        "bool":$overlapParameters, "int64_t":$chunks,
                        "::accel::sharding::BecauseAttr":$because,
                        DefaultValuedParameter<"int64_t", "1">:$experts,
                        DefaultValuedParameter<"int64_t", "1">:$expertTensor,
                        DefaultValuedParameter<"bool", "false">:$overlapTensor,
                        DefaultValuedParameter<"bool", "false">:$sendsOnce,
                        DefaultValuedParameter<"bool", "false">:$overlapExperts,
                        DefaultValuedParameter<"int64_t", "0">:$lastLayers);
  let assemblyFormat = [{
    `<` `distributed` `=` $distributed `,` `overlap_gradients` `=`
        $overlapGradients `,` `overlap_parameters` `=` $overlapParameters `,`
        `chunks` `=` $chunks (`last_layers` $lastLayers^)? (`experts` $experts^)?
        (`expert_tensor` $expertTensor^)? (`overlap_tensor` $overlapTensor^)?
        (`sends_once` $sendsOnce^)? (`overlap_experts` $overlapExperts^)? `,`
        `because` `=` $because `>`
  }];
  let genVerifyDecl = 1;
}

def Sharding_LossAttr : Sharding_Attr<"Loss", "loss"> {
  let summary = "chunks of the cross-entropy";
  let description = [{
    On the call of the segment that ends in the loss, as `sharding.loss`: its
    rows are cut into `chunks`; the logits, loss and gradients of a chunk are
    computed before those of the next (fused linear cross-entropy).

    ```mlir
    #sharding.loss<8, because = <"loss_chunks of the job file">>
    ```
  }];
  let parameters = (ins "int64_t":$chunks,
                        "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = "`<` $chunks `,` `because` `=` $because `>`";
}

def Sharding_InitKind : I32EnumAttr<"InitKind", "initial values", [
      I32EnumAttrCase<"Zeros", 0, "zeros">,
      I32EnumAttrCase<"Ones", 1, "ones">,
      I32EnumAttrCase<"Normal", 2, "normal">,
      I32EnumAttrCase<"TruncatedNormal", 3, "truncated_normal">,
      I32EnumAttrCase<"Uniform", 4, "uniform">,
      I32EnumAttrCase<"Constant", 5, "constant">,
      I32EnumAttrCase<"Sinusoids", 6, "sinusoids">]> {
  let cppNamespace = "::accel::sharding";
}

def Sharding_InitAttr : Sharding_Attr<"Init", "init"> {
  let summary = "how a parameter gets its first value without weights";
  let description = [{
    `value` is the standard deviation of `normal` and `truncated_normal`, the
    value of `constant`, and the longest wavelength of `sinusoids` over 2 pi.
    `range` bounds `truncated_normal` and `uniform`. Row `zero_row` is zero
    whatever the rest is: the padding row of an embedding. Example:

    ```mlir
    #sharding.init<truncated_normal, 0.02 : f64 range array<f64: -2.0, 2.0>>
    #sharding.init<normal, 0.02 : f64 zero_row 0>
    ```
  }];
  let parameters = (ins EnumParameter<Sharding_InitKind>:$kind,
                        DefaultValuedParameter<"::mlir::FloatAttr",
                            "::mlir::FloatAttr()">:$value,
                        OptionalParameter<"::mlir::DenseF64ArrayAttr">:$range,
                        DefaultValuedParameter<"int64_t", "-1">:$zeroRow);
  let assemblyFormat = [{
    `<` $kind (`,` $value^)? (`range` $range^)? (`zero_row` $zeroRow^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Sharding_SpecAttr : Sharding_Attr<"Spec", "spec"> {
  let summary = "how a value is sharded over the mesh";
  let description = [{
    For each dimension the axes that shard it, outermost first; a list that is
    empty means that each rank has the whole dimension. `partial` names axes
    over which the value is a sum that is still to be reduced. A value without a
    spec is replicated. `because` says who asked.

    A number before an axis cuts each block that the axes before it leave into so
    many pieces, of each of which a rank has its part: `[3, "tp"]` is how the output
    features of three layers in one weight are sharded, and the merged rows of
    three sequences that are sharded each. Shards of it interleave. Of
    `mirrored` pieces every second one is shared from the last rank to the first:
    with `[2 mirrored, "cp"]` a rank has one part from the start of a sequence and
    one as far from its end, so that causal attention is as much work for each.

    A spec is the attribute `spec` of a `sharding.param`, `sharding.spec` of an
    argument or result of a segment function, and an element of the lists
    `sharding.specs` (of an operation's results) and `sharding.arg_specs` (of the
    graph's arguments). Its axes are those of the module's mesh, and they divide
    the dimension.

    ```mlir
    #sharding.spec<["cp"], ["tp"], [] partial ["ep"]>
    #sharding.spec<["tp"], [] because <"base_model_tp_plan: colwise">>
    #sharding.spec<[3, "tp"], []>
    #sharding.spec<[], [2 mirrored, "cp"], []>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::ArrayAttr">:$dims,
                        OptionalParameter<"::mlir::ArrayAttr">:$partial,
                        OptionalParameter<"::accel::sharding::BecauseAttr">:$because);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getDims().size(); }
    /// The axes of a dimension, outermost first.
    ::llvm::SmallVector<::llvm::StringRef> axesOf(int64_t dim) const;
    ::llvm::SmallVector<::llvm::StringRef> partialAxes() const;
    /// Neither sharded nor partial.
    bool isReplicated() const;
    /// The same sharding without its reason.
    SpecAttr withoutReason() const;
  }];
}

#endif // ACCEL_DIALECTS_SHARDING_ATTRS_TD
