//===- ApplyPasses.td - Passes that rewrite functions ------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each applies decisions to the segment functions; none takes a decision.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_APPLY_PASSES_TD
#define ACCEL_PASSES_APPLY_PASSES_TD

include "mlir/Pass/PassBase.td"

class Apply<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::accel::aten::AtenDialect",
                           "::accel::sharding::ShardingDialect"];
}

def ApplyAdapterPass : Apply<"apply-adapter"> {
  let summary = "add a LoRA adapter to the model, as PEFT does";
  let description = [{
    Rewrites a module of phase `model` into what PEFT's `get_peft_model` makes
    of it (Hu et al., LoRA, arXiv 2106.09685): y + (x A^T B^T) * scale behind
    each matmul with a targeted weight, modules and parameters under PEFT's
    names, everything frozen but the adapter, copies of `modules_to_save` and
    the biases that `bias` names. With `functions` the layers of attention and of
    gated MLPs are computed as axolotl does (`aten.lora_projections`,
    `aten.lora_mlp`), where all of a module's have an adapter.
  }];
  let options = [
    Option<"config", "config", "std::string", "", "an adapter_config.json">,
    Option<"functions", "functions", "bool", "false",
           "axolotl's autograd functions compute the layers that they take">
  ];
}

def ApplyPrecisionPass : Apply<"apply-precision"> {
  let summary = "compute each segment function in the dtype of its units";
  let description = [{
    Retypes each function that the graph calls to the compute dtype of the units
    that its parameters are in (without parameters: of the first unit), and
    infers every result type anew.
  }];
  let options = [
    Option<"compute", "compute", "std::string", "",
           "f32, bf16 or f16 for all functions, in place of the units' dtypes">
  ];
}

def ApplyAutocastPass : Apply<"apply-autocast"> {
  let summary = "compute as torch.autocast does, where the framework enters it";
  let description = [{
    Rewrites each function that the graph calls as torch.autocast runs it
    (aten/src/ATen/autocast_mode.h), with the inputs that its first call passes,
    where a unit's precision has `autocast`. A parameter is cast once, anything
    else at each use; operators of autocast's fp32 list compute in fp32; the
    rest promotes.
  }];
}

def SeparateEvalPass : Apply<"separate-eval"> {
  let summary = "give functions with dropout a copy without it, for evaluation";
  let description = [{
    Each function that draws random numbers gets a copy `.eval` that does not;
    `aten.eval` names it. Where `predictions` are requested, the function that
    makes the loss gets one that also returns for each row of the logits the
    place of the largest one. Fails where two operations of a function draw by
    the same key, or where the loss is no cross-entropy.
  }];
}

def SelectKernelsPass : Apply<"select-kernels"> {
  let summary = "replace attention and norms by the kernels of the device";
  let description = [{
    `aten.scaled_dot_product_attention` and `aten.rms_norm` become what the
    device runs: on CPUs flash attention and the norm's single steps, on CUDA
    flash attention for bf16 and fp16, memory-efficient attention for other
    types, and the fused norm. Where the job's capability and release of torch
    are such that torch's attention takes cuDNN's kernel, that is taken. Element
    types must be final.
  }];
  let options = [
    Option<"device", "device", "std::string", "",
           "cpu or cuda; by default the one of sharding.job">,
    Option<"eager", "eager", "bool", "false",
           "the operators that transformers' modules run; by default where the "
           "framework of sharding.job runs them">
  ];
}

def ApplyLossChunksPass : Apply<"apply-loss-chunks"> {
  let summary = "cut the cross-entropy into the chunks that were decided";
  let description = [{
    Applies `sharding.loss`: the rows of the logits are cut into chunks; loss
    and gradients of a chunk are computed before the logits of the next. No
    matmul is added, since nothing is recomputed. What stands between the matmul
    and the loss must be pointwise by rows: casts, scales, soft caps.
  }];
}

def CutGraphsPass : Apply<"cut-graphs"> {
  let summary = "cut functions where graphs of torch.compile end inside of them";
  let description = [{
    Applies `ends` of `#sharding.compile`: graphs end where DDP's
    buckets of gradients are full (`buckets`), or around each module
    (`modules`). Each part becomes a function, and a call of the
    whole becomes calls of its parts, so that nothing is fused and nothing is
    recomputed over a cut. A layer that is recomputed is one operator of the
    graph and stays whole.
  }];
}

def DifferentiatePass : Apply<"differentiate"> {
  let summary = "add the gradients to each segment function, as its joint function";
  let description = [{
    Makes `@F.joint` of each segment function that the graph calls and whose
    gradients the loss needs. Only what depends on a trainable parameter and
    leads to the loss gets a gradient. Calls of one function that need different
    gradients call variants of it (`@F.v1`, ...) afterwards.
  }];
}

def SplitCausalAttentionPass : Apply<"split-causal-attention"> {
  let summary = "leave out keys that no query of a CPU's attention sees";
  let description = [{
    torch's attention on CPUs takes keys in blocks of 512 and computes all
    scores of a block, also those that the order of tokens hides. Sequences of
    128 to 1024 tokens are therefore cut in four parts of queries (two below
    256), each with the keys up to its last query: the first part is causal, the
    others have a mask. 10 of 16 scores are computed, and the results are those
    of one call but for the order of sums. Longer sequences gain nothing
    (docs/benchmarks.md). For accel-run alone, in the forward and the backward
    of each joint function.

    ```mlir
    %q1 = aten.slice.Tensor %q, 2, 128, 256, 1 : (tensor<2x8x512x64xf32>) -> tensor<2x8x128x64xf32>
    %k1 = aten.slice.Tensor %k, 2, 0, 256, 1 : (tensor<2x4x512x64xf32>) -> tensor<2x4x256x64xf32>
    ```
  }];
}

def SumProductsPass : Apply<"sum-products"> {
  let summary = "add matmuls of a backward up without the sum";
  let description = [{
    The gradient of what several layers read (q, k and v; gate and up) is a sum
    of matmuls: each of them adds to the one before it, as an `aten.addmm` that
    writes over it, so that neither a second product nor the sum is made. For
    accel-run alone; a parameter's gradient is added up in its buffer anyway.

    ```mlir
    %0 = aten.mm %a, %wa : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
    %1 = aten.addmm %0, %b, %wb : (tensor<6x8xf32>, tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
    ```
  }];
}

def PartitionPass : Apply<"partition"> {
  let summary = "outline the forward and the backward of each joint function";
  let description = [{
    Splits each joint function by the marks of `checkpoint`: saved tensors
    become results of `@F.forward` and arguments of `@F.backward`, what is not
    saved is recomputed in the backward. The function itself stays, for
    evaluation.
  }];
}

def AnnotateLayoutPass : Pass<"annotate-layout", "::mlir::ModuleOp"> {
  let summary = "write the strides of each aten operation's results, and its "
                "cost, on it";
  let description = [{
    `aten.strides` holds the strides in elements of each result, `aten.cost` the
    floating-point operations and the bytes that are read and written.
  }];
}

def PrintOperatorsPass : Pass<"print-operators", "::mlir::ModuleOp"> {
  let summary = "print the operations of the aten dialect as JSON";
  let description = [{
    To stdout, a list of {name, derivative}, sorted by name.
  }];
  let dependentDialects = ["::accel::aten::AtenDialect"];
}

def PrintFunctionsPass : Pass<"print-functions", "::mlir::ModuleOp"> {
  let summary = "print the functions as a plan holds them";
  let description = [{
    To stdout, a plan of nothing but the module's functions. Every gradient is
    written, or with `accumulate` added.
  }];
  let options = [
    Option<"device", "device", "std::string", "\"cpu\"", "cpu or cuda">,
    Option<"accumulate", "accumulate", "bool", "false", "add to gradients">,
    Option<"gradients", "gradients", "std::string", "\"f32\"",
           "dtype of gradients">
  ];
}

def PrintJointPass : Pass<"print-joint", "::mlir::ModuleOp"> {
  let summary = "print the joint functions as graphs";
  let description = [{
    To stdout, a JSON list of the problems that activation checkpointing solves:
    operations, tensors, bytes and seconds of each joint function.
  }];
  let options = [
    Option<"device", "device", "std::string", "\"cpu\"", "cpu or cuda">
  ];
}

#endif // ACCEL_PASSES_APPLY_PASSES_TD
