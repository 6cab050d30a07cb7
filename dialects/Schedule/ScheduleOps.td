//===- ScheduleOps.td - Operations of the schedule dialect -*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SCHEDULE_OPS_TD
#define ACCEL_DIALECTS_SCHEDULE_OPS_TD

include "dialects/Schedule/ScheduleBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Schedule_ProgramOp
    : Schedule_Op<"program", [Symbol, IsolatedFromAbove, HasParent<"::mlir::ModuleOp">,
                              SingleBlockImplicitTerminator<"ReturnOp">]> {
  let summary = "one kind of micro-batch";
  let description = [{
    Its arguments are the values that the runtime binds, named by `inputs`
    (`input_ids`, `labels`, `loss_seed`), and then the buffers that earlier
    programs of the step left, named by `carried`. `persistent` are the bytes
    of shards, optimizer states and buffers of the model, which own no bytes as
    arguments; `peak` is the most that own buffers take
    (with the persistent ones, without operator workspaces) and `at` the instruction
    with the highest total.

    ```mlir
    schedule.program @train
        inputs(%ids as "input_ids": !schedule.buffer<512, tensor<64xi64>>)
        persistent 98304 peak 163840 at 4 {
      ...
      schedule.return loss(%loss : !schedule.buffer<64, tensor<f32>>)
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$inputs,
                       TypedArrayAttrBase<Schedule_CarriedAttr, "carried buffers">:$carried,
                       I64Attr:$persistent_bytes, I64Attr:$peak_bytes,
                       I64Attr:$peak_instruction);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Schedule_ReturnOp
    : Schedule_Op<"return", [Terminator, HasParent<"ProgramOp">, AttrSizedOperandSegments]> {
  let summary = "the end of a program";
  let description = [{
    The loss and, of an evaluation that asks for them, the predictions, which
    the runtime reads, and the buffers of units that live on into the next
    program. Inputs that are not freed are dropped here.
  }];
  let arguments = (ins Optional<Schedule_BufferType>:$loss,
                       Optional<Schedule_BufferType>:$predictions,
                       Variadic<Schedule_BufferType>:$kept);
  let assemblyFormat = [{
    (`loss` `(` $loss^ `:` type($loss) `)`)?
    (`predictions` `(` $predictions^ `:` type($predictions) `)`)?
    (`keep` `(` $kept^ `:` type($kept) `)`)? attr-dict
  }];
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, ::mlir::Value(), ::mlir::Value(),
          ::mlir::ValueRange());
  }]>];
  let hasVerifier = 1;
}

def Schedule_AllocOp : Schedule_Op<"alloc", [HasParent<"ProgramOp">]> {
  let summary = "allocates a unit's buffer";
  let description = [{
    A unit has at most one buffer of each role at a time. The gaps between the
    parameters of a `gradient` buffer are zeroed.

    ```mlir
    %0 = schedule.alloc gathered of "model.layers.0" : !schedule.buffer<65536>
    ```
  }];
  let arguments = (ins Schedule_RoleAttr:$role, StrAttr:$unit,
                       DefaultValuedAttr<Schedule_StreamAttr, "Stream::Compute">:$stream);
  let results = (outs Schedule_BufferType:$buffer);
  let assemblyFormat = "custom<Role>($role) `of` $unit (`on` custom<Stream>($stream)^)? attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def Schedule_FreeOp : Schedule_Op<"free", [HasParent<"ProgramOp">]> {
  let summary = "frees one buffer of a unit, or values";
  let description = [{
    The storage of a value goes when nothing shares it any more.
  }];
  let arguments = (ins Variadic<Schedule_BufferType>:$buffers,
                       DefaultValuedAttr<Schedule_StreamAttr, "Stream::Compute">:$stream);
  let assemblyFormat = "$buffers (`on` custom<Stream>($stream)^)? attr-dict `:` type($buffers)";
  let hasVerifier = 1;
}

def Schedule_AllGatherStartOp
    : Schedule_Op<"all_gather_start", [HasParent<"ProgramOp">]> {
  let summary = "starts to gather a unit's parameters";
  let description = [{
    The rank's shard, cast to the unit's gather dtype, goes to its place in the
    buffer, which is then gathered over the mesh `axes`. Without axes it is the
    cast alone.

    ```mlir
    %1 = schedule.all_gather_start "model.layers.0" into %0 over ["dp_shard"] on gather
           : !schedule.buffer<65536> -> !schedule.inflight<65536>
    ```
  }];
  let arguments = (ins StrAttr:$unit, Schedule_BufferType:$buffer, StrArrayAttr:$axes,
                       Schedule_StreamAttr:$stream);
  let results = (outs Schedule_InflightType:$inflight);
  let assemblyFormat = [{
    $unit `into` $buffer `over` $axes `on` custom<Stream>($stream) attr-dict
    `:` type($buffer) `->` type($inflight)
  }];
  let hasVerifier = 1;
}

def Schedule_ReduceScatterStartOp
    : Schedule_Op<"reduce_scatter_start", [HasParent<"ProgramOp">]> {
  let summary = "starts to reduce a unit's gradients into its gradient shard";
  let description = [{
    Sums the gradient buffers of the ranks along `axes`; each rank gets its part
    in `shard`, cast to the storage dtype, added to what is there with
    `accumulate`. The algorithm `direct` is one collective; `all_to_all`
    exchanges parts into the buffer `via` and adds them when it is awaited.

    ```mlir
    %5 = schedule.reduce_scatter_start "model.layers.0" from %2 to %3 via %4
           over ["dp_shard"] by "all_to_all" on reduce
           : (!schedule.buffer<65536>, !schedule.buffer<32768>, !schedule.buffer<65536>)
           -> !schedule.inflight<65536, 32768, 65536>
    ```
  }];
  let arguments = (ins StrAttr:$unit, Schedule_BufferType:$gradient,
                       Schedule_BufferType:$shard, Optional<Schedule_BufferType>:$receive,
                       UnitAttr:$accumulate, StrArrayAttr:$axes, StrAttr:$algorithm,
                       Schedule_StreamAttr:$stream);
  let results = (outs Schedule_InflightType:$inflight);
  let assemblyFormat = [{
    $unit `from` $gradient `to` $shard (`via` $receive^)? (`accumulate` $accumulate^)?
    `over` $axes `by` $algorithm `on` custom<Stream>($stream) attr-dict
    `:` `(` type($gradient) `,` type($shard) (`,` type($receive)^)? `)` `->` type($inflight)
  }];
  let hasVerifier = 1;
}

def Schedule_AllReduceStartOp
    : Schedule_Op<"all_reduce_start", [HasParent<"ProgramOp">]> {
  let summary = "starts to sum a unit's gradient shard over its replicas";
  let description = [{
    With `via`, the shard is cast into that buffer, which is summed, and back
    when it is awaited.

    ```mlir
    %7 = schedule.all_reduce_start "model.layers.0" of %6 over ["dp_replicate"] on reduce
           : !schedule.buffer<32768> -> !schedule.inflight<32768>
    ```
  }];
  let arguments = (ins StrAttr:$unit, Schedule_BufferType:$shard,
                       Optional<Schedule_BufferType>:$receive, StrArrayAttr:$axes,
                       Schedule_StreamAttr:$stream);
  let results = (outs Schedule_InflightType:$inflight);
  let assemblyFormat = [{
    $unit `of` $shard (`via` $receive^)? `over` $axes `on` custom<Stream>($stream) attr-dict
    `:` type($shard) (`,` type($receive)^)? `->` type($inflight)
  }];
  let hasVerifier = 1;
}

def Schedule_AwaitOp : Schedule_Op<"await", [HasParent<"ProgramOp">]> {
  let summary = "waits for a collective and gives its buffers back";
  let description = [{
    The stream waits; what follows on it may use the buffers, which come in the
    order in which the start took them.

    ```mlir
    %2 = schedule.await %1 : !schedule.inflight<65536> -> !schedule.buffer<65536>
    ```
  }];
  let arguments = (ins Schedule_InflightType:$inflight,
                       DefaultValuedAttr<Schedule_StreamAttr, "Stream::Compute">:$stream);
  let results = (outs Variadic<Schedule_BufferType>:$buffers);
  let assemblyFormat = "$inflight (`on` custom<Stream>($stream)^)? attr-dict `:` type($inflight) `->` type($buffers)";
  let hasVerifier = 1;
}

def Schedule_CallOp
    : Schedule_Op<"call", [HasParent<"ProgramOp">, AttrSizedOperandSegments]> {
  let summary = "calls a compute function";
  let description = [{
    `callee` names a function of the module (a backward function has a variant
    for each way in which its gradients are left, `@"L.backward@bf16+0"`). It
    takes the activations `inputs`, of which it drops those at the positions `consumes`
    after their last use; the parameters `params`, which are views of the
    buffers that it `reads`; and writes, or adds to, the `gradients` in the
    buffers that it `writes`.

    Results are new activations called `names`. Result i shares the storage of
    input `aliases[i]`, or of result `aliases[i]` minus the number of inputs; -1
    has its own. Results of the function at the positions `drops` are not kept.
    A function that draws random numbers draws by the number `draw` of the call
    in the forward, which its backward repeats. `own_peak` is what the function's storages take at most over the entry, and
    `peak` the same with operator workspaces.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Schedule_BufferType>:$inputs,
                       Variadic<Schedule_BufferType>:$reads,
                       Variadic<Schedule_BufferType>:$writes,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$consumes,
                       DefaultValuedAttr<TypedArrayAttrBase<Schedule_ParamAttr, "parameters">, "{}">:$params,
                       DefaultValuedAttr<TypedArrayAttrBase<Schedule_GradientAttr, "gradients">, "{}">:$gradients,
                       StrArrayAttr:$names, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$aliases,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$drops, I64Attr:$own_peak, I64Attr:$peak,
                       DefaultValuedAttr<Schedule_StreamAttr, "Stream::Compute">:$stream,
                       OptionalAttr<I64Attr>:$draw);
  let results = (outs Variadic<Schedule_BufferType>:$outputs);
  let assemblyFormat = [{
    $callee `(` $inputs `)` (`consumes` $consumes^)?
    (`reads` `(` $reads^ `)`)? (`params` $params^)?
    (`writes` `(` $writes^ `)`)? (`gradients` $gradients^)?
    `peak` $peak `own_peak` $own_peak
    (`on` custom<Stream>($stream)^)? (`draw` $draw^)? attr-dict `:` functional-type($inputs, $outputs)
    (`reads` `(` type($reads)^ `)`)? (`writes` `(` type($writes)^ `)`)?
    `names` $names (`aliases` $aliases^)? (`drops` $drops^)?
  }];
  let hasVerifier = 1;
}

def Schedule_GradNormOp : Schedule_Op<"grad_norm", [HasParent<"ProgramOp">]> {
  let summary = "computes the gradient norm over all units";
  let description = [{
    Gives the runtime the clip coefficient and whether a gradient is infinite.
    Takes the gradient shards of all trainable units, or on stream `host` their
    copies there.
  }];
  let arguments = (ins Variadic<Schedule_BufferType>:$shards,
                       DefaultValuedAttr<Schedule_StreamAttr, "Stream::Compute">:$stream);
  let assemblyFormat = "(`of` `(` $shards^ `:` type($shards) `)`)? (`on` custom<Stream>($stream)^)? attr-dict";
}

def Schedule_OptimizerStepOp
    : Schedule_Op<"optimizer_step", [HasParent<"ProgramOp">]> {
  let summary = "updates a unit's shard from its gradient shard";
  let arguments = (ins StrAttr:$unit, Schedule_BufferType:$shard,
                       DefaultValuedAttr<Schedule_StreamAttr, "Stream::Compute">:$stream);
  let assemblyFormat = "$unit `from` $shard (`on` custom<Stream>($stream)^)? attr-dict `:` type($shard)";
}

def Schedule_HostStepOp : Schedule_Op<"host_step", [HasParent<"ProgramOp">]> {
  let summary = "updates a unit on the host";
  let description = [{
    From the copy of its gradient shard that a `schedule.offload_start` has made,
    for which the host waits. What follows reads the updated shard.
  }];
  let arguments = (ins StrAttr:$unit,
                       DefaultValuedAttr<Schedule_StreamAttr, "Stream::Host">:$stream);
  let assemblyFormat = "$unit (`on` custom<Stream>($stream)^)? attr-dict";
}

def Schedule_OffloadStartOp
    : Schedule_Op<"offload_start", [HasParent<"ProgramOp">]> {
  let summary = "starts to copy a unit's gradient shard to the host";
  let description = [{
    Into the host's pinned memory, where the unit is updated from it.

    ```mlir
    %7 = schedule.offload_start "model.layers.0" of %6 on host_out
           : !schedule.buffer<32768> -> !schedule.inflight<32768>
    ```
  }];
  let arguments = (ins StrAttr:$unit, Schedule_BufferType:$shard,
                       Schedule_StreamAttr:$stream);
  let results = (outs Schedule_InflightType:$inflight);
  let assemblyFormat = [{
    $unit `of` $shard `on` custom<Stream>($stream) attr-dict
    `:` type($shard) `->` type($inflight)
  }];
  let hasVerifier = 1;
}

def Schedule_SendStartOp : Schedule_Op<"send_start", [HasParent<"ProgramOp">]> {
  let summary = "starts to send an activation to another stage";
  let description = [{
    To the stage `by` stages after this one: 1, or -1 for a gradient. Messages
    between two stages arrive in the order in which they are sent. Where stages
    have several chunks of the model, the next chunk is meant: the first stage's
    next one follows the last stage's, or by zb-v its own.

    ```mlir
    %3 = schedule.send_start %2 by 1 on send
           : !schedule.buffer<65536, tensor<2x64x128xf32>> -> !schedule.inflight<65536>
    ```
  }];
  let arguments = (ins Schedule_BufferType:$value, I64Attr:$shift,
                       Schedule_StreamAttr:$stream);
  let results = (outs Schedule_InflightType:$inflight);
  let assemblyFormat = [{
    $value `by` $shift `on` custom<Stream>($stream) attr-dict
    `:` type($value) `->` type($inflight)
  }];
  let hasVerifier = 1;
}

def Schedule_HandOverOp : Schedule_Op<"hand_over", [HasParent<"ProgramOp">]> {
  let summary = "copies an activation for the next chunk of the same stage";
  let description = [{
    For the chunk `by` chunks after this one, whose program receives the copy:
    1, or -1 for a gradient.

    ```mlir
    schedule.hand_over %2 by 1 : !schedule.buffer<65536, tensor<2x64x128xf32>>
    ```
  }];
  let arguments = (ins Schedule_BufferType:$value, I64Attr:$shift,
                       DefaultValuedAttr<Schedule_StreamAttr, "Stream::Compute">:$stream);
  let assemblyFormat = [{
    $value `by` $shift (`on` custom<Stream>($stream)^)? attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
}

def Schedule_AwaitSendOp : Schedule_Op<"await_send", [HasParent<"ProgramOp">]> {
  let summary = "waits until activations were sent, or are on the host";
  let description = [{
    Until then their storages stay.

    ```mlir
    schedule.await_send %3 of %2
        : !schedule.inflight<65536>, !schedule.buffer<65536, tensor<2x64x128xf32>>
    ```
  }];
  let arguments = (ins Schedule_InflightType:$inflight, Variadic<Schedule_BufferType>:$values,
                       DefaultValuedAttr<Schedule_StreamAttr, "Stream::Compute">:$stream);
  let assemblyFormat = [{
    $inflight `of` $values (`on` custom<Stream>($stream)^)? attr-dict
    `:` type($inflight) `,` type($values)
  }];
}

def Schedule_SaveStartOp : Schedule_Op<"save_start", [HasParent<"ProgramOp">]> {
  let summary = "starts to copy activations to the host";
  let description = [{
    Their storages, into pinned memory. Of values that share one, the first has
    its bytes in the result, the others none.

    ```mlir
    %3 = schedule.save_start %1, %2 on host_out
           : !schedule.buffer<65536, tensor<2x64x128xf32>>, !schedule.buffer<0, tensor<128x128xf32>>
           -> !schedule.inflight<65536, 0>
    schedule.await_send %3 of %1, %2
        : !schedule.inflight<65536, 0>, !schedule.buffer<65536, tensor<2x64x128xf32>>,
          !schedule.buffer<0, tensor<128x128xf32>>
    ```
  }];
  let arguments = (ins Variadic<Schedule_BufferType>:$values, Schedule_StreamAttr:$stream);
  let results = (outs Schedule_InflightType:$inflight);
  let assemblyFormat = [{
    $values `on` custom<Stream>($stream) attr-dict `:` type($values) `->` type($inflight)
  }];
  let hasVerifier = 1;
}

def Schedule_FetchStartOp : Schedule_Op<"fetch_start", [HasParent<"ProgramOp">]> {
  let summary = "starts to copy activations back from the host";
  let description = [{
    Those that a `schedule.save_start` has copied there, into new storages.

    ```mlir
    %5 = schedule.fetch_start %3 on host_in
           : !schedule.inflight<65536, 0> -> !schedule.inflight<65536, 0>
    %6:2 = schedule.await_fetch %5 : !schedule.inflight<65536, 0>
           -> !schedule.buffer<65536, tensor<2x64x128xf32>>, !schedule.buffer<0, tensor<128x128xf32>>
    ```
  }];
  let arguments = (ins Schedule_InflightType:$saved, Schedule_StreamAttr:$stream);
  let results = (outs Schedule_InflightType:$inflight);
  let assemblyFormat = [{
    $saved `on` custom<Stream>($stream) attr-dict `:` type($saved) `->` type($inflight)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What made the copies on the host; null where that is something else.
    SaveStartOp getSave();
  }];
}

def Schedule_AwaitFetchOp : Schedule_Op<"await_fetch", [HasParent<"ProgramOp">]> {
  let summary = "waits for activations that come back from the host";
  let description = [{
    In the order in which they were saved.
  }];
  let arguments = (ins Schedule_InflightType:$inflight,
                       DefaultValuedAttr<Schedule_StreamAttr, "Stream::Compute">:$stream);
  let results = (outs Variadic<Schedule_BufferType>:$values);
  let assemblyFormat = [{
    $inflight (`on` custom<Stream>($stream)^)? attr-dict
    `:` type($inflight) `->` type($values)
  }];
  let hasVerifier = 1;
}

def Schedule_AwaitExchangeOp
    : Schedule_Op<"await_exchange", [Pure, AllTypesMatch<["exchange", "result"]>]> {
  let summary = "waits for what ranks exchange in a function";
  let description = [{
    Of a collective of the sharding dialect that is marked `schedule.start`, and
    that nothing else reads. The value that it reads is named, so that its
    storage stays until here; a sum works on a copy and needs none.

    ```mlir
    %1 = sharding.all_gather %0 dim 1 over "tp" {schedule.start = "0.2 of 0.3 ms beside 2 operators"}
           : (tensor<8x32xf32>) -> tensor<8x64xf32>
    %2 = aten.mm %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = schedule.await_exchange %1 : tensor<8x64xf32> of %0 : tensor<8x32xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$exchange, Optional<AnyRankedTensor>:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$exchange attr-dict `:` type($exchange) (`of` $value^ `:` type($value))?";
  let hasVerifier = 1;
}

def Schedule_ReceiveOp : Schedule_Op<"receive", [HasParent<"ProgramOp">]> {
  let summary = "receives an activation from another stage";
  let description = [{
    From the stage `by` stages before this one: 1, or -1 for a gradient. What
    follows may read it.

    ```mlir
    %0 = schedule.receive "model.layers.1" by 1 : !schedule.buffer<65536, tensor<2x64x128xf32>>
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$shift,
                       DefaultValuedAttr<Schedule_StreamAttr, "Stream::Compute">:$stream);
  let results = (outs Schedule_BufferType:$value);
  let assemblyFormat = [{
    $name `by` $shift (`on` custom<Stream>($stream)^)? attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
}

def Schedule_PauseOp : Schedule_Op<"pause", [HasParent<"ProgramOp">]> {
  let summary = "ends a part of a micro-batch in a stage";
  let description = [{
    What is there stays in the micro-batch's frame, and the rank runs parts of
    other micro-batches before it goes on.
  }];
  let arguments = (ins DefaultValuedAttr<Schedule_StreamAttr, "Stream::Compute">:$stream);
  let assemblyFormat = "(`on` custom<Stream>($stream)^)? attr-dict";
}

#endif // ACCEL_DIALECTS_SCHEDULE_OPS_TD
